"""What tests of several pairs give back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tuplet.evaluate.statistics.scores import p_text, rows_text


@dataclass(frozen=True, eq=False, repr=False)
class PairTests:
    """Tests of all pairs of models.

    Attributes
    ----------
    test : str
        Name of the test and of the adjustment.
    p_values : DataFrame, shape (k, k)
        Symmetric, with ones on the diagonal; adjusted where the test adjusts.
    advantage : DataFrame, shape (k, k)
        By how much the model of the row is ahead of that of the column, in what the test compares: average
        ranks, or rank sums.
    ranks : Series, shape (k,)
        Average ranks of the kind that the test uses; the best model has the lowest.
    critical_difference : float or None
        Difference of average ranks that is significant at `alpha`, for tests that have a single one.
    alpha : float
        Level of significance.
    n_rows, n_left_out : int
        Rows used, and rows left out because of gaps.
    """

    test: str
    p_values: pd.DataFrame
    advantage: pd.DataFrame
    ranks: pd.Series
    alpha: float
    n_rows: int
    n_left_out: int
    critical_difference: float | None = None

    def table(self) -> pd.DataFrame:
        """A line for each pair, smallest p value first: better, worse, advantage, p_value, significant."""
        first, second = np.triu_indices(len(self.ranks), 1)
        ahead = self.advantage.to_numpy()[first, second]
        models, p_values = self.p_values.columns, self.p_values.to_numpy()[first, second]
        lines = pd.DataFrame(
            {
                "better": models[np.where(ahead >= 0, first, second)],
                "worse": models[np.where(ahead >= 0, second, first)],
                "advantage": np.abs(ahead),
                "p_value": p_values,
                "significant": p_values <= self.alpha,
            }
        )
        return lines.sort_values("p_value", kind="stable", ignore_index=True)

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        lines = self.table()
        found = [f"{line.better} > {line.worse}" for line in lines[lines["significant"]].itertuples()]
        distance = self.critical_difference
        return (
            f"{self.test}: {len(found)} of {len(lines)} pairs differ at {self.alpha:g}"
            + (f" ({', '.join(found)})" if found else "")
            + (f"; critical difference {distance:.3g}" if distance is not None else "")
            + f"; {rows_text(self.n_rows, self.n_left_out)}"
        )

    def __repr__(self) -> str:
        return self.summary


@dataclass(frozen=True, eq=False, repr=False)
class ControlTests:
    """Tests of all other models against one.

    Attributes
    ----------
    test : str
        Name of the test and of the adjustment.
    control : label
        The model that the others are held against.
    table : DataFrame
        A line for each other model, indexed by it, the smallest p value first: `rank_difference` (rank of
        the control minus its own: positive if it is better than the control), `z`, `p_value` and `adjusted`.
    ranks : Series, shape (k,)
        Average ranks.
    critical_difference : float or None
        Difference of average ranks that is significant at `alpha`, for tests that have a single one.
    alpha : float
    n_rows, n_left_out : int
    """

    test: str
    control: Any
    table: pd.DataFrame
    ranks: pd.Series
    alpha: float
    n_rows: int
    n_left_out: int
    critical_difference: float | None = None

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        different = self.table[self.table["adjusted"] <= self.alpha]
        found = [
            f"{model} is {'better' if difference > 0 else 'worse'} ({p_text(p)})"
            for model, difference, p in zip(
                different.index, different["rank_difference"], different["adjusted"], strict=True
            )
        ]
        return (
            f"{self.test}: {len(found)} of {len(self.table)} models differ from {self.control} at"
            f" {self.alpha:g}"
            + (f": {', '.join(found)}" if found else "")
            + f"; {rows_text(self.n_rows, self.n_left_out)}"
        )

    def __repr__(self) -> str:
        return self.summary

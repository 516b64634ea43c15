"""Scores of two models on the data sets that both have: what pictures of pairs are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.plots.canvas import BLUE, GREY, ORANGE
from tuplet.space.words import clip
from tuplet.typing import Floats

LOOKS = {1: (BLUE, "o"), -1: (ORANGE, "s"), 0: (GREY, "D")}
"""Colour and mark of a win of the first model, of the second, and of a tie."""


@dataclass(frozen=True)
class Pair:
    """Scores of two models on the data sets where both have one.

    Attributes
    ----------
    models : tuple
        The two columns.
    index : Index
        Names of the n data sets.
    scores : array, shape (n, 2)
    outcome : array of int, shape (n,)
        1 where the first model is better, -1 where the second is, 0 where they are equal.
    n_missing : int
        Data sets that are left out.
    """

    models: tuple[Any, Any]
    index: pd.Index
    scores: Floats
    outcome: npt.NDArray[np.int_]
    n_missing: int

    @classmethod
    def of(cls, caller: str, scores: pd.DataFrame, a: Any, b: Any, greater_is_better: bool) -> Pair:
        """Take two columns of a table of scores; errors speak for the `caller`."""
        for model in (a, b):
            if model not in scores.columns:
                raise InputError(f"{caller}: no scores of '{model}', only of {list(scores.columns)}.")
        both = scores[a].astype(float).notna() & scores[b].astype(float).notna()
        values = np.column_stack([scores.loc[both, model].to_numpy(dtype=float) for model in (a, b)])
        if not len(values):
            raise InputError(f"{caller}: '{a}' and '{b}' have no data set on which both have a score.")
        higher = (values[:, 0] > values[:, 1]).astype(int) - (values[:, 0] < values[:, 1])
        outcome = higher if greater_is_better else -higher
        return cls((a, b), scores.index[both], values, outcome, len(scores) - len(values))

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Whether both scores are finite, shape (n,)."""
        return np.asarray(np.isfinite(self.scores).all(axis=1))

    @property
    def names(self) -> list[str]:
        """The data sets."""
        return [str(name) for name in self.index]

    def errors(self, errors: pd.DataFrame | None) -> Floats:
        """Return the errors of the two models (n, 2), NaN for unknown."""
        if errors is None:
            return np.full(self.scores.shape, np.nan)
        return errors.reindex(index=self.index, columns=list(self.models)).to_numpy(dtype=float)

    def tally(self, side: int, width: int) -> str:
        """Return the model of a side (1 or -1), its name no longer than `width`, and its wins."""
        model = self.models[0 if side == 1 else 1]
        return f"{clip(str(model), width)} better: {np.count_nonzero(self.outcome == side)}"

    def remark(self) -> str:
        """Return what the marks do not tell, if anything."""
        counts = {
            "equal": np.count_nonzero(self.outcome == 0),
            "infinite, not drawn": np.count_nonzero(~self.drawn),
            "without a result": self.n_missing,
        }
        return ",  ".join(f"{text}: {count}" for text, count in counts.items() if count)

"""Average ranks, and the tests of Friedman that they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from tuplet.core.typing import Floats
from tuplet.evaluate.statistics.scores import (
    Complete,
    check_choice,
    complete_rows,
    p_text,
    rows_text,
    tie_classes,
)


def plain_ranks(values: Floats) -> Floats:
    """Ranks (n, k) within each row of scores; the greatest has rank 1, ties share the mean rank."""
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    return stats.rankdata(-tie_classes(values, finite.max(axis=1)), axis=1)


def aligned_ranks(values: Floats) -> Floats:
    """Ranks (n, k) of the distances to the means of their rows, all rows together; the best has rank 1."""
    aligned = values - values.mean(axis=1, keepdims=True)
    return stats.rankdata(-tie_classes(aligned.ravel(), np.abs(values).max())).reshape(values.shape)


def mean_ranks(ranks: Floats, complete: Complete, name: str) -> pd.Series:
    """Average ranks by model; `attrs` has the numbers of rows used and left out."""
    series = pd.Series(ranks.mean(axis=0), index=complete.models, name=name)
    series.attrs.update(n_rows=len(ranks), n_left_out=complete.n_left_out)
    return series


def average_ranks(scores: pd.DataFrame) -> pd.Series:
    """Average rank of each model over the rows; the best possible is 1, ties share the mean rank.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better.

    Returns
    -------
    Series, shape (k,)
        Its `attrs` hold `n_rows` and `n_left_out`, the number of rows with gaps.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"tree": [0.7, 0.8, 0.5], "forest": [0.9, 0.8, 0.6], "prior": [0.5, 0.4, 0.3]})
    >>> average_ranks(scores).round(2)
    tree      1.83
    forest    1.17
    prior     3.00
    Name: average rank, dtype: float64
    """
    complete = complete_rows("average_ranks", scores)
    return mean_ranks(plain_ranks(complete.values), complete, "average rank")


@dataclass(frozen=True, eq=False, repr=False)
class Friedman:
    """Result of `friedman`.

    Attributes
    ----------
    statistic, p_value : float
        Friedman's chi square with k - 1 degrees of freedom.
    f_statistic, f_p_value : float
        Iman and Davenport's F with k - 1 and (k - 1)(n - 1) degrees of freedom; missing where all rows agree
        on one order, for which it would be infinite however few they are.
    ranks : Series, shape (k,)
        Average ranks.
    n_rows, n_left_out : int
    """

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    ranks: pd.Series
    n_rows: int
    n_left_out: int

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        k = len(self.ranks)
        F = f"F({k - 1}, {(k - 1) * (self.n_rows - 1)})"
        if np.isnan(self.f_statistic):
            second = "Iman-Davenport F is not defined, since all rows agree on one order"
        else:
            second = f"Iman-Davenport {F} = {self.f_statistic:.2f}, {p_text(self.f_p_value)}"
        return (
            f"Friedman: chi2({k - 1}) = {self.statistic:.2f}, {p_text(self.p_value)}; {second};"
            f" {rows_text(self.n_rows, self.n_left_out)}"
        )

    def __repr__(self) -> str:
        return self.summary


def friedman(scores: pd.DataFrame, *, ties: Literal["corrected", "plain"] = "corrected") -> Friedman:
    """Friedman's test that all models perform alike, and the less conservative one of Iman and Davenport.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better.
    ties : {"corrected", "plain"}
        "corrected" divides by the variance that the ranks have in fact, as scipy and R do. "plain" is the
        formula of Demšar (2006), which takes it as if there were no ties and gives a smaller statistic where
        there are. Without ties both are the same.

    Notes
    -----
    With rank sums R_j, chi2 = (k - 1) sum_j (R_j - n (k + 1) / 2)^2 / A, where A is the sum of squared
    deviations of all ranks from (k + 1) / 2 ("corrected") or n k (k^2 - 1) / 12 ("plain"). In both cases
    F = (n - 1) chi2 / (n (k - 1) - chi2). If all models tie everywhere, chi2 is 0.

    References
    ----------
    Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"tree": [0.7, 0.8, 0.5], "forest": [0.9, 0.8, 0.6], "prior": [0.5, 0.4, 0.3]})
    >>> friedman(scores)
    Friedman: chi2(2) = 5.64, p = 0.06; Iman-Davenport F(2, 4) = 31.00, p = 0.0037; 3 rows
    """
    check_choice("friedman", "ties", ties, ("corrected", "plain"))
    complete = complete_rows("friedman", scores)
    ranks = plain_ranks(complete.values)
    n, k = ranks.shape
    between = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    spread = float(((ranks - (k + 1) / 2) ** 2).sum()) if ties == "corrected" else n * k * (k**2 - 1) / 12
    statistic = (k - 1) * between / spread if between else 0.0
    rest = n * (k - 1) - statistic
    agreed = rest <= 1e-12 * n * k
    f_statistic = np.nan if agreed else (n - 1) * statistic / rest
    return Friedman(
        statistic,
        float(stats.chi2.sf(statistic, k - 1)),
        f_statistic,
        float(stats.f.sf(f_statistic, k - 1, (k - 1) * (n - 1))),
        mean_ranks(ranks, complete, "average rank"),
        n,
        complete.n_left_out,
    )


@dataclass(frozen=True, eq=False, repr=False)
class AlignedFriedman:
    """Result of `friedman_aligned`.

    Attributes
    ----------
    statistic, p_value : float
        Chi square with k - 1 degrees of freedom.
    ranks : Series, shape (k,)
        Average aligned ranks, between 1 and n k.
    n_rows, n_left_out : int
    """

    statistic: float
    p_value: float
    ranks: pd.Series
    n_rows: int
    n_left_out: int

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        return (
            f"Friedman aligned ranks: chi2({len(self.ranks) - 1}) = {self.statistic:.2f},"
            f" {p_text(self.p_value)}; {rows_text(self.n_rows, self.n_left_out)}"
        )

    def __repr__(self) -> str:
        return self.summary


def friedman_aligned(scores: pd.DataFrame) -> AlignedFriedman:
    """Friedman's test on aligned ranks: scores minus the mean of their row, ranked all together.

    Unlike plain ranks, aligned ranks compare rows with each other: a large difference on one data set counts
    for more than a small one on another. It pays off where the models are few.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better. The scores of all rows must be comparable.

    Notes
    -----
    With N = n k, sums of ranks by column R_j and by row R_i,
    T = (k - 1) (sum_j R_j^2 - k n^2 (N + 1)^2 / 4) / (N (N + 1) (2 N + 1) / 6 - sum_i R_i^2 / k).

    References
    ----------
    Hodges and Lehmann, Rank methods for combination of independent experiments in analysis of variance,
    Annals of Mathematical Statistics 33, 1962. García et al. (2010), section 3.2.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"tree": [0.7, 0.8, 0.5], "forest": [0.9, 0.7, 0.6], "prior": [0.5, 0.4, 0.3]})
    >>> friedman_aligned(scores)
    Friedman aligned ranks: chi2(2) = 4.47, p = 0.11; 3 rows
    """
    complete = complete_rows("friedman_aligned", scores, finite=True)
    ranks = aligned_ranks(complete.values)
    n, k = ranks.shape
    every = n * k
    between = float((ranks.sum(axis=0) ** 2).sum()) - k * n**2 * (every + 1) ** 2 / 4
    rows = float((ranks.sum(axis=1) ** 2).sum()) / k
    statistic = (k - 1) * between / (every * (every + 1) * (2 * every + 1) / 6 - rows)
    return AlignedFriedman(
        statistic,
        float(stats.chi2.sf(statistic, k - 1)),
        mean_ranks(ranks, complete, "average aligned rank"),
        n,
        complete.n_left_out,
    )

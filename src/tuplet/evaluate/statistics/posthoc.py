"""Which models differ, once some do: tests of pairs on average ranks, and adjusted p values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.evaluate.statistics.ranks import aligned_ranks, mean_ranks, plain_ranks
from tuplet.evaluate.statistics.scores import (
    Complete,
    check_alpha,
    check_choice,
    complete_rows,
    p_text,
    rows_text,
)

RankKind = Literal["plain", "aligned"]


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


def nemenyi(scores: pd.DataFrame, *, alpha: float = 0.05) -> PairTests:
    """Nemenyi's test of all pairs, with the critical difference of average ranks.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better.
    alpha : float
        Level of the whole family of pairs.

    Notes
    -----
    Differences of average ranks, divided by sqrt(k (k + 1) / (12 n)), are held against the studentized range
    of k means with infinitely many degrees of freedom.

    References
    ----------
    Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"tree": [3, 5, 3, 4], "forest": [4, 6, 4, 5], "prior": [1, 1, 2, 2]})
    >>> nemenyi(scores)
    Nemenyi: 1 of 3 pairs differ at 0.05 (forest > prior); critical difference 1.66; 4 rows
    """
    check_alpha("nemenyi", alpha)
    ranked = _rank("nemenyi", scores, "plain")
    k = len(ranked.models)
    scale = ranked.scale / np.sqrt(2)
    p_values = stats.studentized_range.sf(np.abs(ranked.steps()) / scale, k, np.inf)
    distance = float(scale * stats.studentized_range.isf(alpha, k, np.inf))
    return ranked.pairs("Nemenyi", np.minimum(1.0, p_values), alpha, distance)


def conover(scores: pd.DataFrame, *, adjust: Literal["holm"] | None = None, alpha: float = 0.05) -> PairTests:
    """Conover's test of all pairs: a t test on rank sums, more powerful than `nemenyi` and less cautious.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better.
    adjust : {None, "holm"}
        None gives the p value of each pair on its own; use it only if `friedman` finds a difference.
    alpha : float

    Notes
    -----
    The variance is what the rank sums leave over, so it is zero where all rows agree on one order. Then every
    difference is certain (p = 0).

    References
    ----------
    Conover, Practical nonparametric statistics, third edition, Wiley, 1999, section 5.8.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"tree": [3, 7, 3, 4], "forest": [4, 6, 4, 5], "prior": [1, 1, 2, 2]})
    >>> conover(scores)
    Conover: 2 of 3 pairs differ at 0.05 (forest > prior, tree > prior); 4 rows
    """
    check_alpha("conover", alpha)
    check_choice("conover", "adjust", adjust, (None, "holm"))
    ranked = _rank("conover", scores, "plain")
    n, k = ranked.matrix.shape
    degrees = (n - 1) * (k - 1)
    within = float(((ranked.matrix - (k + 1) / 2) ** 2).sum())
    between = n * float(((ranked.matrix.mean(axis=0) - (k + 1) / 2) ** 2).sum())
    variance = max(0.0, 2 * n * (within - between) / degrees)
    steps = np.abs(n * ranked.steps())
    # All rows agree: the statistic is infinite, except for models that tie.
    t = np.divide(steps, np.sqrt(variance), out=np.where(steps > 0, np.inf, 0.0), where=variance > 1e-12 * n)
    p_values = 2 * stats.t.sf(t, degrees)
    if adjust is None:
        return ranked.pairs("Conover", p_values, alpha)
    return ranked.pairs("Conover with Holm", holm(p_values), alpha)


def all_pairs(
    scores: pd.DataFrame,
    *,
    ranks: RankKind = "aligned",
    method: Literal["holm", "nemenyi"] = "holm",
    alpha: float = 0.05,
) -> PairTests:
    """Test the average ranks of all pairs, plain or aligned, by z tests with Holm or Nemenyi.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better.
    ranks : {"aligned", "plain"}
        The ranks of `friedman_aligned` or of `friedman`.
    method : {"holm", "nemenyi"}
        "nemenyi" multiplies every p value by the number of pairs, as García and Herrera (2008) define it for
        z tests; the function `nemenyi` uses the studentized range, which is sharper.
    alpha : float

    Notes
    -----
    The variance of a difference of average ranks is k (k + 1) / (6 n) for plain and k (n k + 1) / 6 for
    aligned ranks.

    References
    ----------
    García et al. (2010). García and Herrera, An extension on "Statistical comparisons of classifiers over
    multiple data sets" for all pairwise comparisons, JMLR 9, 2008.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"tree": [3, 7, 3, 4], "forest": [4, 6, 4, 5], "prior": [1, 1, 2, 2]})
    >>> all_pairs(scores)
    z tests of aligned ranks with Holm: 1 of 3 pairs differ at 0.05 (forest > prior); 4 rows
    """
    check_alpha("all_pairs", alpha)
    check_choice("all_pairs", "method", method, ("holm", "nemenyi"))
    ranked = _rank("all_pairs", scores, ranks)
    p_values = _two_sided(ranked.steps() / ranked.scale)
    adjusted = holm(p_values) if method == "holm" else _bonferroni(p_values, len(p_values))
    return ranked.pairs(f"z tests of {ranks} ranks with {method.title()}", adjusted, alpha)


def versus_control(
    scores: pd.DataFrame,
    control: Any,
    *,
    method: Literal["holm", "bonferroni-dunn"] = "holm",
    ranks: RankKind = "plain",
    alpha: float = 0.05,
) -> ControlTests:
    """Test the average ranks of all other models against those of a control, by z tests.

    Fewer tests than all pairs, and so more power, if the question is whether one model differs from the rest.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better.
    control : label of a column
    method : {"holm", "bonferroni-dunn"}
        Holm's step-down adjustment, or the p values times k - 1, which has a critical difference.
    ranks : {"plain", "aligned"}
        The ranks of `friedman` or of `friedman_aligned`.
    alpha : float

    References
    ----------
    Demšar (2006), section 3.2.2; García et al. (2010).

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"tree": [3, 7, 3, 4], "forest": [4, 6, 4, 5], "prior": [1, 1, 2, 2]})
    >>> versus_control(scores, "prior").table.round(3)
            rank_difference      z  p_value  adjusted
    forest             1.75  2.475    0.013     0.027
    tree               1.25  1.768    0.077     0.077
    """
    check_alpha("versus_control", alpha)
    check_choice("versus_control", "method", method, ("holm", "bonferroni-dunn"))
    ranked = _rank("versus_control", scores, ranks)
    if control not in ranked.models:
        complete_rows("versus_control", scores, [control, ranked.models[0]])  # raises the error
    means = mean_ranks(ranked.matrix, ranked.complete, f"average {ranks} rank")
    lines = pd.DataFrame({"rank_difference": means[control] - means.drop(control)})
    lines["z"] = lines["rank_difference"] / ranked.scale
    lines["p_value"] = _two_sided(lines["z"].to_numpy())
    distance = None
    if method == "holm":
        lines["adjusted"] = holm(lines["p_value"])
    else:
        lines["adjusted"] = _bonferroni(lines["p_value"], len(lines))
        distance = float(ranked.scale * stats.norm.isf(alpha / 2 / len(lines)))
    return ControlTests(
        f"z tests of {ranks} ranks with {method.title()}",
        control,
        lines.sort_values("p_value", kind="stable"),
        means,
        alpha,
        len(ranked.matrix),
        ranked.complete.n_left_out,
        distance,
    )


def holm(p_values: Any) -> Any:
    """Holm's step-down adjustment: the i-th smallest of m p values times m - i + 1, never decreasing.

    Parameters
    ----------
    p_values : list, array, Series, shape (m,); or symmetric array or DataFrame, shape (k, k)
        Of a symmetric matrix, the pairs above the diagonal are the family, and the diagonal stays as it is.
        Missing values (nan) stay missing and do not count.

    Returns
    -------
    adjusted
        In the container that came in; a list gives an array.

    References
    ----------
    Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p_values, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise InputError("holm: p values must be between 0 and 1.")
    if values.ndim == 1:
        adjusted = _step_down(values)
    elif values.ndim == 2 and values.shape[0] == values.shape[1] and _is_symmetric(values):
        upper = np.triu_indices(len(values), 1)
        adjusted = _symmetric_matrix(_step_down(values[upper]), len(values))
        np.fill_diagonal(adjusted, values.diagonal())
    else:
        raise InputError(
            f"holm: p values must be a vector or a symmetric matrix, found shape {values.shape}; flatten them"
            " if all of them are one family."
        )
    if isinstance(p_values, pd.Series):
        return pd.Series(adjusted, index=p_values.index, name=p_values.name)
    if isinstance(p_values, pd.DataFrame):
        return pd.DataFrame(adjusted, index=p_values.index, columns=p_values.columns)
    return adjusted


class _Ranked(NamedTuple):
    """Ranks of scores, with the standard deviation of a difference of two averages."""

    complete: Complete
    matrix: Floats  # (n, k)
    kind: RankKind
    scale: float

    @property
    def models(self) -> pd.Index:
        return self.complete.models

    def steps(self) -> Floats:
        """By how much the first of each pair is ahead of the second, in average ranks."""
        means = self.matrix.mean(axis=0)
        first, second = np.triu_indices(len(means), 1)
        return means[second] - means[first]

    def pairs(self, test: str, p_values: Floats, alpha: float, distance: float | None = None) -> PairTests:
        means = mean_ranks(self.matrix, self.complete, f"average {self.kind} rank")
        ahead = means.to_numpy()[None, :] - means.to_numpy()[:, None]
        return PairTests(
            test,
            pd.DataFrame(_symmetric_matrix(p_values, len(means)), index=self.models, columns=self.models),
            pd.DataFrame(ahead, index=self.models, columns=self.models),
            means,
            alpha,
            len(self.matrix),
            self.complete.n_left_out,
            distance,
        )


def _rank(query: str, scores: pd.DataFrame, kind: RankKind) -> _Ranked:
    check_choice(query, "ranks", kind, ("plain", "aligned"))
    complete = complete_rows(query, scores, finite=kind == "aligned")
    n, k = complete.values.shape
    if kind == "plain":
        return _Ranked(complete, plain_ranks(complete.values), kind, float(np.sqrt(k * (k + 1) / (6 * n))))
    return _Ranked(complete, aligned_ranks(complete.values), kind, float(np.sqrt(k * (n * k + 1) / 6)))


def _two_sided(z: Floats) -> Floats:
    return np.asarray(2 * stats.norm.sf(np.abs(z)))


def _bonferroni(p_values: npt.ArrayLike, n_tests: int) -> Floats:
    """Return p values times the number of tests, at most one."""
    return np.minimum(1.0, n_tests * np.asarray(p_values, dtype=np.float64))


def _symmetric_matrix(upper: Floats, k: int) -> Floats:
    """Symmetric matrix (k, k) of the values above its diagonal, with ones on the diagonal."""
    matrix = np.ones((k, k))
    rows, columns = np.triu_indices(k, 1)
    matrix[rows, columns] = matrix[columns, rows] = upper
    return matrix


def _step_down(p_values: Floats) -> Floats:
    order = np.argsort(p_values, kind="stable")  # nan comes last
    order = order[: np.count_nonzero(~np.isnan(p_values))]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(p_values.shape, np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def _is_symmetric(values: Floats) -> bool:
    return bool(np.allclose(values, values.T, rtol=1e-9, atol=0, equal_nan=True))

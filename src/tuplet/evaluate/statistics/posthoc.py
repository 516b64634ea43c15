"""Which models differ, once some do: tests of pairs on average ranks."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from tuplet.evaluate.statistics.adjust import bonferroni, holm, spread
from tuplet.evaluate.statistics.ranks import aligned_ranks, mean_ranks, plain_ranks
from tuplet.evaluate.statistics.results import ControlTests, PairTests
from tuplet.evaluate.statistics.scores import Complete, check_alpha, check_choice, complete_rows
from tuplet.typing import Floats

RankKind = Literal["plain", "aligned"]


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
    adjusted = holm(p_values) if method == "holm" else bonferroni(p_values, len(p_values))
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
        complete_rows("versus_control", scores, [control, ranked.models[0]])  # says what is wrong
    means = mean_ranks(ranked.matrix, ranked.complete, f"average {ranks} rank")
    lines = pd.DataFrame({"rank_difference": means[control] - means.drop(control)})
    lines["z"] = lines["rank_difference"] / ranked.scale
    lines["p_value"] = _two_sided(lines["z"].to_numpy())
    distance = None
    if method == "holm":
        lines["adjusted"] = holm(lines["p_value"])
    else:
        lines["adjusted"] = bonferroni(lines["p_value"], len(lines))
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
            pd.DataFrame(spread(p_values, len(means)), index=self.models, columns=self.models),
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

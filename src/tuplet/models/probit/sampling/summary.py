"""Posterior summaries as tables (correlations, traces, features, combinations of a row) and convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.core.typing import Floats
from tuplet.joint.probit import Probit
from tuplet.models.probit.sampling.draws import Draws

FEWEST = 100
"""Draws of a chain below which nothing is judged."""


def trace_table(traces: npt.ArrayLike, names: Sequence[Any], level: float = 0.95) -> pd.DataFrame:
    """Posterior means, intervals and diagnostics of some numbers.

    Parameters
    ----------
    traces : array, shape (chains, draws, v)
    names : sequence of v names
    level : float
        Share of the draws between `lower` and `upper`.

    Returns
    -------
    frame of v lines, by name
        `mean`, `sd`, `lower`, `upper`, `r_hat` (rank-normalised, of split chains) and `ess` (effective number
        of draws, bulk). The last two are missing for a number that never changes.

    Raises
    ------
    MissingDependencyError
        Without the package arviz-stats.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> trace_table(3 + rng.normal(size=(4, 500, 1)), ["x"])[["mean", "sd", "r_hat"]].round(1)
       mean   sd  r_hat
    x   3.0  1.0    1.0
    """
    array = np.asarray(traces, dtype=float)
    if array.ndim != 3 or array.shape[2] != len(names):
        raise InputError(f"trace_table: traces of shape {array.shape} do not fit {len(names)} names.")
    _check_level("trace_table", level)
    lower, upper = np.quantile(array, [(1 - level) / 2, (1 + level) / 2], axis=(0, 1))
    r_hat, ess = _diagnose(array)
    columns = {
        "mean": array.mean(axis=(0, 1)),
        "sd": array.std(axis=(0, 1)),
        "lower": lower,
        "upper": upper,
        "r_hat": r_hat,
        "ess": ess,
    }
    return pd.DataFrame(columns, index=pd.Index(list(names)))


def correlation_table(correlations: npt.ArrayLike, names: Sequence[Any], level: float = 0.95) -> pd.DataFrame:
    """Correlations of all pairs of labels, with intervals and diagnostics.

    Parameters
    ----------
    correlations : array, shape (chains, draws, q, q)
    names : sequence of q names
    level : float
        Share of the draws between `lower` and `upper`.

    Returns
    -------
    frame of q (q - 1) / 2 lines, by the two names
        See `trace_table`.

    Examples
    --------
    >>> import numpy as np
    >>> rho = 0.5 + 0.1 * np.random.default_rng(0).normal(size=(2, 300))
    >>> draws = np.stack([np.ones_like(rho), rho, rho, np.ones_like(rho)], axis=-1).reshape(2, 300, 2, 2)
    >>> correlation_table(draws, ["happy", "calm"])[["mean", "sd"]].round(2)
                mean   sd
    happy calm   0.5  0.1
    """
    array = _check_correlations("correlation_table", correlations, names)
    first, second = np.triu_indices(len(names), 1)
    pairs = pd.MultiIndex.from_arrays([[names[int(i)] for i in first], [names[int(j)] for j in second]])
    return trace_table(array[:, :, first, second], list(pairs), level).set_axis(pairs, axis=0)


def correlation_frame(correlations: npt.ArrayLike, names: Sequence[Any]) -> pd.DataFrame:
    """Posterior mean of the correlation matrix, from draws (chains, draws, q, q), as a frame (q, q).

    Examples
    --------
    >>> import numpy as np
    >>> correlation_frame(np.tile(np.eye(2), (1, 10, 1, 1)), ["a", "b"])
         a    b
    a  1.0  0.0
    b  0.0  1.0
    """
    array = _check_correlations("correlation_frame", correlations, names)
    return pd.DataFrame(array.mean(axis=(0, 1)), index=list(names), columns=list(names))


def inclusion_table(
    split_counts: npt.ArrayLike, labels: Sequence[Any], features: Sequence[Any]
) -> pd.DataFrame:
    """How often forests split on each feature: mean number of splits of a draw.

    Parameters
    ----------
    split_counts : array of int, shape (D, q, d)
    labels : sequence of q names
    features : sequence of d names

    Returns
    -------
    frame of d lines, most used features first
        A column for each label, and `share`: the part of all splits.

    Examples
    --------
    >>> inclusion_table([[[1, 3]], [[1, 5]]], ["sick"], ["age", "weight"])
            sick  share
    weight   4.0    0.8
    age      1.0    0.2
    """
    counts = np.asarray(split_counts, dtype=float)
    if counts.ndim != 3 or counts.shape[1:] != (len(labels), len(features)):
        raise InputError(
            f"inclusion_table: split_counts of shape {counts.shape} do not fit {len(labels)} labels and"
            f" {len(features)} features."
        )
    mean = counts.mean(axis=0).T
    frame = pd.DataFrame(mean, index=pd.Index(list(features)), columns=list(labels))
    total = mean.sum()
    name = "share_" if "share" in frame.columns else "share"
    frame[name] = mean.sum(axis=1) / total if total else 0.0
    order = np.argsort(-mean.sum(axis=1), kind="stable")
    return frame.iloc[order]


def combination_table(joint: Probit, names: Sequence[Any], k: int = 5, level: float = 0.95) -> pd.DataFrame:
    """Return the most probable combinations of one row and the marginals, all with credible intervals.

    Parameters
    ----------
    joint : Probit
        Of a single row.
    names : sequence of m names
    k : int
        Number of combinations.
    level : float
        Share of the draws inside an interval.

    Returns
    -------
    frame of k + 3 lines
        Lines 1 to k are combinations: a 0/1 column for each label, then `probability`, `lower`, `upper`. The
        last lines hold the ends of the interval and the mean of each label's own probability.

    Examples
    --------
    >>> import numpy as np
    >>> means = np.linspace(0, 1, 11)[:, None, None] * [1, -2]
    >>> joint = Probit(means, np.tile(np.eye(2), (11, 1, 1)))
    >>> combination_table(joint, ["a", "b"], k=2).round(2)
                      a     b  probability  lower  upper
    1              1.00  0.00         0.56   0.25   0.82
    2              0.00  0.00         0.24   0.16   0.28
    P(= 1), lower  0.50  0.02          NaN    NaN    NaN
    P(= 1), upper  0.84  0.50          NaN    NaN    NaN
    P(= 1)         0.68  0.20          NaN    NaN    NaN
    """
    if len(joint) != 1 or joint.n_variables != len(names):
        raise InputError(
            f"combination_table: needs one row of {len(names)} labels, found {len(joint)} rows of"
            f" {joint.n_variables}."
        )
    _check_level("combination_table", level)
    ranking = joint.top_k(k)
    real = np.isfinite(ranking.log_prob[0])
    codes = ranking.codes[0][real]
    ends = joint.intervals(codes[:, None], level)[:, 0]
    lines = np.column_stack([codes, np.exp(ranking.log_prob[0][real]), ends])
    alone = np.full((3, lines.shape[1]), np.nan)
    alone[:2, : len(names)] = joint.marginal_intervals(level)[0].T
    alone[2, : len(names)] = [marginal[0, 1] for marginal in joint.marginals()]
    index = [*range(1, len(lines) + 1), "P(= 1), lower", "P(= 1), upper", "P(= 1)"]
    return pd.DataFrame(
        np.vstack([lines, alone]), index=index, columns=[*names, "probability", "lower", "upper"]
    )


class Convergence(NamedTuple):
    """The worst R-hat and the least effective sample size of all correlations and label frequencies."""

    r_hat: float
    effective_size: float

    @property
    def poor(self) -> bool:
        """Whether chains disagree, or posterior means rest on few independent draws."""
        return not (self.r_hat <= 1.1 and self.effective_size >= 50)  # nan is no good sign, either


def convergence_of(draws: Draws) -> Convergence | None:
    """Judge correlations and levels of all chains; None with too few draws, or without arviz-stats."""
    if draws.levels.shape[1] < FEWEST:
        return None
    watched = _watched(draws)
    if not watched.size:
        return None
    try:
        r_hat, ess = _diagnose(watched)
    except MissingDependencyError:
        return None
    return Convergence(float(np.max(r_hat)), float(np.min(ess)))


def _diagnose(array: Floats) -> tuple[Floats, Floats]:
    """Return R-hat and the effective sample size of draws (chains, draws, v), nan for what never changes."""
    try:
        from arviz_stats.base.array import array_stats
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "R-hat and effective sample sizes need arviz-stats; run `pip install tuplet[bart]`."
        ) from None
    statistics: Any = array_stats
    r_hat, ess = np.full((2, array.shape[2]), np.nan)
    moving = np.ptp(array, axis=(0, 1)) > 0
    if moving.any() and array.shape[1] >= 4:
        draws, axes = array[..., moving], {"chain_axis": 0, "draw_axis": 1}
        ess[moving] = statistics.ess(draws, **axes)
        if len(draws) == 1:  # of one chain the halves are compared
            draws = np.stack(np.split(draws[0, : draws.shape[1] // 2 * 2], 2))
        r_hat[moving] = statistics.rhat(draws, **axes)
    return r_hat, ess


def _check_correlations(query: str, correlations: npt.ArrayLike, names: Sequence[Any]) -> Floats:
    array = np.asarray(correlations, dtype=float)
    if array.ndim != 4 or array.shape[2:] != (len(names), len(names)):
        raise InputError(
            f"{query}: draws must be of shape (chains, draws, {len(names)}, {len(names)}) for"
            f" {len(names)} names, found {array.shape}."
        )
    return array


def _check_level(query: str, level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"{query}: level must lie between 0 and 1, found {level}.")


def _watched(draws: Draws) -> Floats:
    """All that is judged, (chains, draws, numbers); what never changes is left out."""
    q = draws.levels.shape[2]
    pairs = draws.correlations[:, :, *np.triu_indices(q, 1)]
    numbers = np.concatenate([pairs, draws.levels], axis=2)
    return numbers[:, :, np.ptp(numbers, axis=(0, 1)) > 0]

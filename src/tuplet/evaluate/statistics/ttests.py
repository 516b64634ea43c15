"""Paired t tests of folds, data set by data set, counted as wins, ties and losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.evaluate.statistics.scores import check_alpha, check_choice
from tuplet.space.containers import listing

_NOISE = 1e-13
"""Standard deviation, relative to the scores, that rounding errors can make."""


@dataclass(frozen=True, eq=False, repr=False)
class PairedT:
    """Result of `paired_t`.

    Attributes
    ----------
    table : DataFrame
        A line for each data set and pair: `dataset`, `a`, `b`, `n_folds` (with scores of both),
        `mean_difference` (positive if a is better), `t`, `p_value`, `constant` (whether all folds have the
        same difference) and `outcome` of a: "win", "tie" or "loss", or missing where two folds in common
        are lacking.
    counts : DataFrame
        A line for each pair, indexed by `a` and `b`: numbers of data sets with `win`, `tie` and `loss` of a,
        and `untested`.
    alpha : float
    correction : str or None
    """

    table: pd.DataFrame
    counts: pd.DataFrame
    alpha: float
    correction: str | None

    def count(self, a: Any, b: Any) -> tuple[int, int, int]:
        """Number of data sets on which a wins, ties and loses against b."""
        if (a, b) in self.counts.index:
            place = list(self.counts.index).index((a, b))
            win, tie, loss = self.counts[["win", "tie", "loss"]].to_numpy()[place]
            return int(win), int(tie), int(loss)
        if (b, a) in self.counts.index:
            return self.count(b, a)[::-1]
        raise InputError(f"count: the models {a!r} and {b!r} were not compared.")

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        lines = self.counts.reset_index()[["a", "b", "win", "tie", "loss"]].to_numpy()
        pairs = [f"{a} - {b} {win}/{tie}/{loss}" for a, b, win, tie, loss in lines]
        kind = "Corrected paired t tests" if self.correction else "Paired t tests, uncorrected,"
        constant, untested = int(self.table["constant"].sum()), int(self.counts["untested"].sum())
        return (
            f"{kind} at {self.alpha:g}, win/tie/loss over {self.table['dataset'].nunique()} data sets: "
            + ", ".join(pairs)
            + (f"; {constant} tests without variance" if constant else "")
            + (f"; {untested} tests left out for want of folds" if untested else "")
        )

    def __repr__(self) -> str:
        return self.summary


def paired_t(
    folds: Mapping[Any, pd.DataFrame],
    *,
    alpha: float = 0.05,
    correction: Literal["nadeau-bengio"] | None = None,
    test_share: float | Mapping[Any, float] | None = None,
) -> PairedT:
    """Paired t tests of all pairs of models on each data set, and how often each wins, ties and loses.

    Parameters
    ----------
    folds : mapping from data set to DataFrame
        Rows are folds, columns are models, greater is better. A fold without a score of one of the two
        models is left out of their test, and so is a data set with fewer than two folds in common.
    alpha : float
        A p value of at most alpha is a win or a loss, any other a tie. Nothing is adjusted for the number of
        tests.
    correction : {None, "nadeau-bengio"}
        Folds share training rows, so their differences are correlated and the plain test finds differences
        too often. The correction takes the variance of the mean as (1 / n_folds + share / (1 - share))
        times that of the differences, where `share` is the share of the rows that is tested.
    test_share : float, or mapping from data set to float, optional
        Share of the rows that a fold tests; by default one over the number of rows of the frame, which is
        that of a single cross-validation. Say it for repeated ones.

    Returns
    -------
    PairedT

    Notes
    -----
    Where all folds have the same difference, the variance is zero. No difference at all is a tie with t = 0
    and p = 1. A constant difference is the limit t = ±inf and p = 0, a win or loss, and the line is marked
    `constant`: with coarse scores and few folds it can be an accident.

    References
    ----------
    Nadeau and Bengio, Inference for the generalization error, Machine Learning 52, 2003.

    Examples
    --------
    >>> import pandas as pd
    >>> yeast = pd.DataFrame({"chain": [0.22, 0.25, 0.21, 0.24], "independent": [0.15, 0.17, 0.15, 0.15]})
    >>> scene = pd.DataFrame({"chain": [0.62, 0.65, 0.61, 0.64], "independent": [0.61, 0.66, 0.64, 0.62]})
    >>> paired_t({"yeast": yeast, "scene": scene})
    Paired t tests, uncorrected, at 0.05, win/tie/loss over 2 data sets: chain - independent 1/1/0
    """
    check_alpha("paired_t", alpha)
    check_choice("paired_t", "correction", correction, (None, "nadeau-bengio"))
    models = _models(folds)
    shares = _shares(folds, test_share)
    lines = []
    for dataset, frame in folds.items():
        scores = frame.reindex(columns=models).to_numpy(dtype=np.float64, na_value=np.nan)
        shared = shares[dataset] / (1 - shares[dataset]) if correction else 0.0
        for i, j in combinations(range(len(models)), 2):
            found = _test(scores[:, [i, j]], shared)
            lines.append((dataset, models[i], models[j], *found, _outcome(found, alpha)))
    table = pd.DataFrame(
        lines,
        columns=["dataset", "a", "b", "n_folds", "mean_difference", "t", "p_value", "constant", "outcome"],
    )
    return PairedT(table, _count(table), alpha, correction)


def _shares(folds: Mapping[Any, pd.DataFrame], given: Any) -> dict[Any, float]:
    """Return the share of the rows that a fold tests, for each data set."""
    shares = {}
    for dataset, frame in folds.items():
        share = given.get(dataset) if isinstance(given, Mapping) else given
        if share is not None and not 0 < share < 1:
            raise InputError(f"paired_t: test_share must be between 0 and 1, found {share!r}.")
        shares[dataset] = 1 / max(2, len(frame)) if share is None else share
    return shares


def _models(folds: Mapping[Any, pd.DataFrame]) -> list[Any]:
    if not folds or not all(isinstance(frame, pd.DataFrame) for frame in folds.values()):
        raise InputError(
            "paired_t: folds must map each data set to a pandas DataFrame with a row for each fold and a"
            " column for each model."
        )
    models = list(dict.fromkeys(model for frame in folds.values() for model in frame.columns))
    if len(models) < 2:
        raise InputError(f"paired_t: two different models are needed, found {listing(models)}.")
    for dataset, frame in folds.items():
        if not frame.columns.is_unique:
            raise InputError(f"paired_t: several columns of {dataset!r} have the same name.")
        infinite = [model for model in frame if np.isinf(frame[model].to_numpy(np.float64, na_value=0)).any()]
        if infinite:
            raise InputError(
                f"paired_t: the scores of {listing(infinite)} on {dataset!r} are infinite in places;"
                " differences need finite scores."
            )
    return models


def _test(scores: Floats, shared: float) -> tuple[int, float, float, float, bool]:
    """Folds in common, mean difference, t, p value, and whether the differences have no variance."""
    scores = scores[~np.isnan(scores).any(axis=1)]
    n = len(scores)
    if n < 2:
        return n, np.nan, np.nan, np.nan, False
    difference = scores[:, 0] - scores[:, 1]
    mean, deviation = float(difference.mean()), float(difference.std(ddof=1))
    noise = _NOISE * float(np.abs(scores).max())
    if deviation <= noise:
        if abs(mean) <= noise:
            return n, 0.0, 0.0, 1.0, True
        return n, mean, float(np.copysign(np.inf, mean)), 0.0, True
    t = mean / (deviation * np.sqrt(1 / n + shared))
    return n, mean, float(t), float(2 * stats.t.sf(abs(t), n - 1)), False


def _outcome(found: tuple[int, float, float, float, bool], alpha: float) -> str | None:
    _, mean, _, p_value, _ = found
    if np.isnan(p_value):
        return None
    if p_value > alpha:
        return "tie"
    return "win" if mean > 0 else "loss"


def _count(table: pd.DataFrame) -> pd.DataFrame:
    outcome = table["outcome"].astype(object)
    flags = pd.DataFrame({name: (outcome == name).astype(int) for name in ("win", "tie", "loss")})
    flags["untested"] = outcome.isna().astype(int)
    return flags.groupby([table["a"], table["b"]], sort=False).sum()

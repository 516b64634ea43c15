"""Estimated answers: one wording and one warning for all queries."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np

from tuplet.core.exceptions import ApproximationWarning
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution

_REMEDY = "; ChainClassifier(engine=MonteCarlo(size=...)) narrows it, Enumerate(limit=...) is exact"


def is_estimated(joint: JointDistribution) -> bool:
    """Whether sums over outcomes are estimates; computes the tolerance only where it is needed."""
    return not joint.scores_exactly or joint.tolerance > 0


def estimate_text(joint: JointDistribution, what: str = "probabilities", *, measure: bool = True) -> str:
    """Return how far the probabilities of a distribution can be trusted, in words; empty if they are exact.

    Parameters
    ----------
    joint : JointDistribution
    what : str
        What is an estimate, a plural.
    measure : bool
        Whether to state the error even if finding it takes as long as finding all marginals: given evidence,
        that is what it takes.
    """
    if not is_estimated(joint):
        return ""
    if not measure and not joint.scores_exactly:
        return f"{what} are estimates, with the error that `tolerance` states"
    if np.isinf(joint.tolerance):
        return f"{what} are approximations without a guarantee"
    return f"{what} are estimated within {joint.tolerance:.2g}"


def warn_estimated(
    query: str, joint: JointDistribution, *, measure: bool = True, marginals: bool = False
) -> None:
    """Warn, once per call, that a query was answered by estimates; do nothing if it was not.

    With `marginals`, the query is about marginals of single variables only.
    """
    if marginals and joint.has_exact_marginals:
        return
    text = estimate_text(joint, measure=measure)
    if not text:
        return
    if "within" in text:
        text += " (four standard errors)"
    chain = any(isinstance(part, Autoregressive) for part in parts(joint))
    warn_outside(f"{query}: {text}{_REMEDY if chain else ''}.", ApproximationWarning)


def parts(joint: JointDistribution) -> Iterator[JointDistribution]:
    """Yield a distribution and those that it is made of."""
    yield joint
    inner = getattr(joint, "components", None) or [getattr(joint, "joint", None)]
    for part in inner:
        if isinstance(part, JointDistribution):
            yield from parts(part)


def warn_outside(message: str, category: type[Warning]) -> None:
    """Warn with the line outside of the library as the origin."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tuplet":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)

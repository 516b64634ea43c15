"""One check for the draws of every form: right frequencies, and nothing in common between draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution

_SIZE = 2000

_SIGMAS = 5
"""Standard errors that are allowed, so that thousands of comparisons do not fail by chance."""

_SPREAD = 0.05
"""Variance of a 0/1 variable below which its draws are too much alike to say whether they depend."""


def check_draws(
    joint: JointDistribution, probabilities: Floats, possible: npt.NDArray[np.bool_], atol: float
) -> None:
    """Compare draws with the probabilities (n, L) of all outcomes, and with each other.

    Draws of a row must not depend on the draws before them, nor the draws of two rows on each other: two
    copies of one row that share random numbers would give the same draws.

    Raises
    ------
    AssertionError
        That says what is wrong with the draws.
    """
    draws = joint.sample(_SIZE, 0)
    assert draws.shape == (_SIZE, len(joint), joint.n_variables), "sample: wrong shape"
    assert (draws == joint.sample(_SIZE, 0)).all(), "sample: one seed, two answers"
    assert ((draws >= 0) & (draws < np.array(joint.cards))).all(), "sample: codes out of range"
    drawn = _positions(draws, joint.cards)
    assert np.take_along_axis(possible.T, drawn, axis=0).all(), "sample: an impossible outcome was drawn"
    frequencies = [np.bincount(column, minlength=probabilities.shape[1]) / _SIZE for column in drawn.T]
    error = np.sqrt(probabilities * (1 - probabilities) / _SIZE)
    slack = _SIGMAS * (error + 1 / _SIZE) + atol
    assert (np.abs(np.array(frequencies) - probabilities) <= slack).all(), "sample: wrong frequencies"
    _check_independence(joint, drawn, probabilities)


def _check_independence(joint: JointDistribution, drawn: Codes, probabilities: Floats) -> None:
    for column, p in zip(drawn.T, probabilities, strict=True):
        likely = _likely(p)[column]
        _uncorrelated("a draw and the one before it", likely[1:], likely[:-1])
    row = int(np.argmax([_likely(p)[column].var() for column, p in zip(drawn.T, probabilities, strict=True)]))
    twins = _positions(joint[[row, row]].sample(_SIZE, 1), joint.cards)
    likely = _likely(probabilities[row])[twins]
    _uncorrelated("the draws of two rows", likely[:, 0], likely[:, 1])
    _uncorrelated("the draws of two rows", likely[1:, 0], likely[:-1, 1])


def _positions(draws: Codes, cards: tuple[int, ...]) -> Codes:
    """Positions (size, n) of draws (size, n, m) among all outcomes."""
    return np.ravel_multi_index(tuple(np.moveaxis(draws, -1, 0)), cards)


def _likely(probabilities: Floats) -> npt.NDArray[np.bool_]:
    """Which outcomes (L,) are the most probable ones that make up about half of the probability."""
    order = np.argsort(-probabilities, kind="stable")
    before = np.cumsum(probabilities[order]) - probabilities[order]
    likely = np.empty(len(order), bool)
    likely[order] = before < 0.5
    return likely


def _uncorrelated(what: str, left: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_]) -> None:
    spread = np.sqrt(left.var() * right.var())
    if spread < _SPREAD:
        return
    covariance = abs((left & right).mean() - left.mean() * right.mean())
    slack = _SIGMAS * (spread / np.sqrt(len(left)) + 1 / len(left))
    assert covariance <= slack, f"sample: {what} depend on each other"

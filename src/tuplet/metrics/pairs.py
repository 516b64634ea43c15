"""A row as the set of its active pairs (variable, category), and how these are counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.metrics.encoding import check_weights
from tuplet.space.classes import ClassSpace


class Pairs(NamedTuple):
    """Where a variable has an active pair, all of shape (n, m)."""

    true: npt.NDArray[np.bool_]
    pred: npt.NDArray[np.bool_]
    both: npt.NDArray[np.bool_]  # the same one
    known: npt.NDArray[np.bool_]  # whether the truth is known; without it nothing is active


class Counts(NamedTuple):
    """Weights of the active pairs of one variable, one number per category that counts."""

    true: Floats
    pred: Floats
    hits: Floats


def active_pairs(y_true: Codes, y_pred: Codes, space: ClassSpace) -> Pairs:
    """Find the active pairs of true and predicted codes (n, m)."""
    known = y_true != UNKNOWN
    wide, positive = np.array(space.cards) > 2, _positive_codes(space)
    true = known & (wide | (y_true == positive))
    pred = known & (y_pred != UNKNOWN) & (wide | (y_pred == positive))
    return Pairs(true, pred, true & pred & (y_true == y_pred), known)


def _positive_codes(space: ClassSpace) -> Codes:
    """Return the code of the active category (m,) of binary variables; of no meaning for the others."""
    constant_one = [len(values) == 1 and values[0] == 1 for values in space.categories]
    return np.where(constant_one, 0, 1)


def count_pairs(
    y_true: Codes, y_pred: Codes, space: ClassSpace, sample_weight: npt.ArrayLike | None
) -> list[Counts]:
    """Count the pairs of each variable of which some truth is known.

    The positives are what counts of a binary variable, of any other the categories that occur.
    """
    weights, pairs = check_weights(sample_weight, len(y_true)), active_pairs(y_true, y_pred, space)
    positive = _positive_codes(space)
    counts = []
    for j in np.flatnonzero(weights @ pairs.known):
        true = _weigh(y_true[:, j], pairs.true[:, j], weights, space.cards[j])
        pred = _weigh(y_pred[:, j], pairs.pred[:, j], weights, space.cards[j])
        hits = _weigh(y_true[:, j], pairs.both[:, j], weights, space.cards[j])
        kept = np.flatnonzero(true + pred > 0) if space.cards[j] > 2 else positive[[j]]
        counts.append(Counts(true[kept], pred[kept], hits[kept]))
    return counts


def _weigh(codes: Codes, active: npt.NDArray[np.bool_], weights: Floats, card: int) -> Floats:
    """Return the weight of each category, (max(card, 2),), over the rows that are active."""
    return np.bincount(codes[active], weights[active], max(card, 2)).astype(float)


def macro(values: list[Floats]) -> float:
    """Mean over the variables of the mean over their categories; nan without variables."""
    return float(np.mean([categories.mean() for categories in values])) if values else float("nan")


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike, zero_division: float) -> Floats:
    """Part over whole, `zero_division` where the whole is zero."""
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    return np.divide(part, whole, out=np.full(whole.shape, float(zero_division)), where=whole > 0)

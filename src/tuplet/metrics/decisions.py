"""How good decisions are: true labels against predicted labels, as `tuplet.metrics` defines them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.losses.base import Loss
from tuplet.losses.decomposable import Hamming
from tuplet.losses.registry import get_loss
from tuplet.losses.subset import SubsetZeroOne
from tuplet.metrics.encoding import average, check_weights, encode_both, reject_prediction
from tuplet.space import labels
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import open_table

Weights = npt.ArrayLike | None


def mean_loss(
    Y_true: Any,
    Y_pred: Any,
    loss: Loss | str,
    *,
    sample_weight: Weights = None,
    space: ClassSpace | None = None,
) -> float:
    """Mean of any loss over the rows.

    Parameters
    ----------
    Y_true, Y_pred : labels, shape (n, m)
    loss : Loss or str
    sample_weight : array, shape (n,), optional
    space : ClassSpace, optional
        The categories in code order; see `tuplet.metrics`.
    """
    return average(_losses(get_loss(loss), Y_true, Y_pred, space), sample_weight)


def exact_match(
    Y_true: Any, Y_pred: Any, *, sample_weight: Weights = None, space: ClassSpace | None = None
) -> float:
    """Share of rows that are right as a whole.

    A row in which an answer is missing, because the decision abstained, is not.

    Examples
    --------
    >>> exact_match([["a", "x"], ["b", "y"]], [["a", "x"], ["b", "x"]])
    0.5
    """
    return average(1 - _losses(SubsetZeroOne(), Y_true, Y_pred, space), sample_weight)


def hamming_loss(
    Y_true: Any, Y_pred: Any, *, sample_weight: Weights = None, space: ClassSpace | None = None
) -> float:
    """Share of labels that are wrong, averaged over the rows."""
    return average(_losses(Hamming(), Y_true, Y_pred, space), sample_weight)


def hamming_score(
    Y_true: Any, Y_pred: Any, *, sample_weight: Weights = None, space: ClassSpace | None = None
) -> float:
    """Share of labels that are right, averaged over the rows: one minus the Hamming loss.

    A label without an answer, where the decision abstained, is not right; `answered_accuracy` leaves it out
    and `coverage` is the share of answers.
    """
    return average(1 - _losses(Hamming(), Y_true, Y_pred, space), sample_weight)


def answered_accuracy(
    Y_true: Any, Y_pred: Any, *, sample_weight: Weights = None, space: ClassSpace | None = None
) -> float:
    """Share of right labels among those that have an answer; nan if there is none.

    The measure of decisions that abstain, together with `coverage`.

    Examples
    --------
    >>> answered_accuracy([["a", "x"], ["b", "y"]], [["a", None], ["b", "x"]])
    0.6666666666666666
    """
    true, pred, _ = encode_both(Y_true, Y_pred, space)
    weights = check_weights(sample_weight, len(true))
    answered = (true != UNKNOWN) & (pred != UNKNOWN)
    hits = weights @ (answered & (true == pred))
    return float(_ratio(hits.sum(), (weights @ answered).sum(), np.nan))


def coverage(Y_pred: Any, *, sample_weight: Weights = None) -> float:
    """Share of labels that have an answer; the others were left open by a loss such as `Abstain`.

    Examples
    --------
    >>> coverage([["a", None], ["b", "x"]])
    0.75
    """
    reject_prediction(Y_pred)
    missing = [labels.present_and_missing(column)[1] for column in open_table(Y_pred).columns]
    return average(1 - np.column_stack(missing).mean(axis=1), sample_weight)


def instance_f1(
    Y_true: Any,
    Y_pred: Any,
    *,
    zero_division: float = 1.0,
    sample_weight: Weights = None,
    space: ClassSpace | None = None,
) -> float:
    """Mean over the rows of F1 of the active pairs.

    Parameters
    ----------
    Y_true, Y_pred : labels, shape (n, m)
    zero_division : float, default 1
        F1 of a row without active pairs, true or predicted.
    sample_weight : array, shape (n,), optional
    space : ClassSpace, optional
        See `tuplet.metrics`.

    Examples
    --------
    >>> round(instance_f1([[1, 1, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0]]), 3)
    0.833
    """
    pairs = _active_pairs(*encode_both(Y_true, Y_pred, space))
    size = pairs.true.sum(axis=1) + pairs.pred.sum(axis=1)
    values = _ratio(2 * pairs.both.sum(axis=1), size, zero_division)
    return average(np.where(pairs.known.any(axis=1), values, np.nan), sample_weight)


def jaccard_score(
    Y_true: Any,
    Y_pred: Any,
    *,
    zero_division: float = 1.0,
    sample_weight: Weights = None,
    space: ClassSpace | None = None,
) -> float:
    """Mean over the rows of the Jaccard index of the active pairs; arguments as in `instance_f1`."""
    pairs = _active_pairs(*encode_both(Y_true, Y_pred, space))
    common = pairs.both.sum(axis=1)
    union = pairs.true.sum(axis=1) + pairs.pred.sum(axis=1) - common
    values = _ratio(common, union, zero_division)
    return average(np.where(pairs.known.any(axis=1), values, np.nan), sample_weight)


def micro_f1(
    Y_true: Any,
    Y_pred: Any,
    *,
    zero_division: float = 0.0,
    sample_weight: Weights = None,
    space: ClassSpace | None = None,
) -> float:
    """F1 of all active pairs of all rows together; `zero_division` if there are none."""
    pairs = _active_pairs(*encode_both(Y_true, Y_pred, space))
    weights = check_weights(sample_weight, len(pairs.true))
    hits, size = weights @ pairs.both, weights @ pairs.true + weights @ pairs.pred
    return float(_ratio(2 * hits.sum(), size.sum(), zero_division))


def macro_f1(
    Y_true: Any,
    Y_pred: Any,
    *,
    zero_division: float = 0.0,
    sample_weight: Weights = None,
    space: ClassSpace | None = None,
) -> float:
    """Mean over the variables of F1: of a binary variable's positives, or the mean over its categories.

    Parameters
    ----------
    Y_true, Y_pred : labels, shape (n, m)
    zero_division : float, default 0
        F1 of a binary variable without positives, true or predicted. Of several categories, those that
        do not occur are left out.
    sample_weight : array, shape (n,), optional
    space : ClassSpace, optional
        See `tuplet.metrics`.

    Examples
    --------
    >>> round(macro_f1([["a", 0], ["b", 1], ["c", 1]], [["a", 0], ["b", 1], ["b", 1]]), 3)
    0.778
    """
    counts = _count_pairs(*encode_both(Y_true, Y_pred, space), sample_weight)
    return _macro([_ratio(2 * c.hits, c.true + c.pred, zero_division) for c in counts])


def macro_precision(
    Y_true: Any,
    Y_pred: Any,
    *,
    zero_division: float = 0.0,
    sample_weight: Weights = None,
    space: ClassSpace | None = None,
) -> float:
    """Mean over the variables of precision, as `macro_f1`; `zero_division` for what is never predicted."""
    counts = _count_pairs(*encode_both(Y_true, Y_pred, space), sample_weight)
    return _macro([_ratio(c.hits, c.pred, zero_division) for c in counts])


def macro_recall(
    Y_true: Any,
    Y_pred: Any,
    *,
    zero_division: float = 0.0,
    sample_weight: Weights = None,
    space: ClassSpace | None = None,
) -> float:
    """Mean over the variables of recall, as `macro_f1`; `zero_division` for what is never true."""
    counts = _count_pairs(*encode_both(Y_true, Y_pred, space), sample_weight)
    return _macro([_ratio(c.hits, c.true, zero_division) for c in counts])


# -- helpers -----------------------------------------------------------------------------------------------


def _losses(loss: Loss, Y_true: Any, Y_pred: Any, space: ClassSpace | None) -> Floats:
    true, pred, shared = encode_both(Y_true, Y_pred, space)
    loss = loss.for_space(shared if space is None else space)  # without the labels that it has not seen
    try:
        return loss.value(true, pred)
    except InputError as error:  # the error has the position of a variable, the space its name
        if error.variable is None:
            raise
        name = repr(shared.names[error.variable])
        raise InputError(str(error).replace(f"variable {error.variable}", name)) from None


class _ActivePairs(NamedTuple):
    """Where a variable has an active pair, all of shape (n, m)."""

    true: npt.NDArray[np.bool_]
    pred: npt.NDArray[np.bool_]
    both: npt.NDArray[np.bool_]  # the same one
    known: npt.NDArray[np.bool_]  # whether the truth is known; without it nothing is active


class _PairCounts(NamedTuple):
    """Weights of the active pairs of one variable, one number per category that counts."""

    true: Floats
    pred: Floats
    hits: Floats


def _active_pairs(y_true: Codes, y_pred: Codes, space: ClassSpace) -> _ActivePairs:
    """Find the active pairs of true and predicted codes (n, m)."""
    known = y_true != UNKNOWN
    wide, positive = np.array(space.cards) > 2, _positive_codes(space)
    true = known & (wide | (y_true == positive))
    pred = known & (y_pred != UNKNOWN) & (wide | (y_pred == positive))
    return _ActivePairs(true, pred, true & pred & (y_true == y_pred), known)


def _positive_codes(space: ClassSpace) -> Codes:
    """Return the code of the active category (m,) of binary variables; of no meaning for the others."""
    constant_one = [len(values) == 1 and values[0] == 1 for values in space.categories]
    return np.where(constant_one, 0, 1)


def _count_pairs(
    y_true: Codes, y_pred: Codes, space: ClassSpace, sample_weight: npt.ArrayLike | None
) -> list[_PairCounts]:
    """Count the pairs of each variable of which some truth is known.

    The positives are what counts of a binary variable, of any other the categories that occur.
    """
    weights, pairs = check_weights(sample_weight, len(y_true)), _active_pairs(y_true, y_pred, space)
    positive = _positive_codes(space)
    counts = []
    for j in np.flatnonzero(weights @ pairs.known):
        true = _weigh(y_true[:, j], pairs.true[:, j], weights, space.cards[j])
        pred = _weigh(y_pred[:, j], pairs.pred[:, j], weights, space.cards[j])
        hits = _weigh(y_true[:, j], pairs.both[:, j], weights, space.cards[j])
        kept = np.flatnonzero(true + pred > 0) if space.cards[j] > 2 else positive[[j]]
        counts.append(_PairCounts(true[kept], pred[kept], hits[kept]))
    return counts


def _weigh(codes: Codes, active: npt.NDArray[np.bool_], weights: Floats, card: int) -> Floats:
    """Return the weight of each category, (max(card, 2),), over the rows that are active."""
    return np.bincount(codes[active], weights[active], max(card, 2)).astype(float)


def _macro(values: list[Floats]) -> float:
    """Mean over the variables of the mean over their categories; nan without variables."""
    return float(np.mean([categories.mean() for categories in values])) if values else float("nan")


def _ratio(part: npt.ArrayLike, whole: npt.ArrayLike, zero_division: float) -> Floats:
    """Part over whole, `zero_division` where the whole is zero."""
    part, whole = np.asarray(part, dtype=float), np.asarray(whole, dtype=float)
    return np.divide(part, whole, out=np.full(whole.shape, float(zero_division)), where=whole > 0)

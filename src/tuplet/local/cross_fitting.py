"""Predictions for rows that models were not fitted to: folds, and one model for each of them.

All folds inside of models are made here: `inner_folds` for rows with features, `random_folds` for rows that
have none. `cross_fit` fits to the rows of each fold and predicts the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.limits import row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.local.row_samples import RowSample, row_keys, running_total
from tuplet.space.classes import ClassSpace
from tuplet.space.features.inputs import Features

Positions = npt.NDArray[np.intp]
Model = TypeVar("Model")
Prediction = TypeVar("Prediction")


@final
@dataclass(frozen=True)
class Fold:
    """Positions and weights of the rows that a model is fitted to and of those that it predicts.

    A row whose weight is a number of equal rows can be on both sides, with a part of its weight on each.
    `train_weight` is None where rows have no weights.
    """

    train: Positions
    train_weight: Floats | None
    test: Positions
    test_weight: Floats


class OutOfFold(NamedTuple, Generic[Prediction]):
    """Predictions for rows (r,) by models that were not fitted to them, one for each fold.

    A row whose weight lies in several folds comes several times, each with its part of the weight. `weights`
    (r,) is None where rows have none.
    """

    rows: Positions
    weights: Floats | None
    predictions: list[Prediction]


def cross_fit(
    folds: Sequence[Fold],
    fit: Callable[[Positions, Floats | None], Model],
    predict: Callable[[Model, Positions], Prediction],
) -> OutOfFold[Prediction]:
    """Fit a model to the training rows of each fold, and let it predict the test rows.

    Parameters
    ----------
    folds : sequence of Fold
        Those of `inner_folds`, for example.
    fit : callable
        (positions, weights of these rows or None) -> fitted model.
    predict : callable
        (fitted model, positions) -> its predictions for these rows.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0, 4.0])
    >>> folds = numbered_folds(np.array([0, 0, 1, 1]))
    >>> cross_fit(folds, lambda rows, weights: y[rows].mean(), lambda mean, rows: float(mean)).predictions
    [3.5, 1.5]
    """
    predictions = [predict(fit(fold.train, fold.train_weight), fold.test) for fold in folds]
    none = np.zeros(0, dtype=np.intp)
    weighted = any(fold.train_weight is not None for fold in folds)
    return OutOfFold(
        np.concatenate([none, *(fold.test for fold in folds)]),
        np.concatenate([fold.test_weight for fold in folds]) if weighted else None,
        predictions,
    )


def inner_folds(
    X: Features, codes: Codes, sample_weight: Floats | None, cv: Any, space: ClassSpace | None = None
) -> list[Fold]:
    """Return the folds of rows, without those in which nothing can be learned or nothing is held out.

    Parameters
    ----------
    X : features, n rows
    codes : int array, shape (n, m)
    sample_weight : array, shape (n,), or None
    cv : int, splitter of scikit-learn, or iterable of (train, test) positions
        Given a number, the fold of a row follows from the row itself; see `fold_weights`.
    space : ClassSpace, optional
        Gives a splitter labels in the place of codes.
    """
    whole = np.ones(len(codes)) if sample_weight is None else sample_weight
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise InputError(f"cv must be at least 2 folds, found {cv}.")
        shares = fold_weights(X, codes, sample_weight, int(cv))
        sides = ((np.maximum(whole - share, 0.0), share) for share in shares.T)
    else:
        labels = codes if space is None else space.decode(codes)
        pairs = read_pairs(cv, np.zeros((len(codes), 1)), labels)
        sides = ((_on(train, whole), _on(test, whole)) for train, test in pairs)
    folds = [_fold(*side, sample_weight is not None) for side in sides]
    return [fold for fold in folds if len(fold.train) and len(fold.test)]


def held_out_only(folds: Sequence[Fold], sample: RowSample, sample_weight: Floats | None) -> list[Fold]:
    """Return the folds with no other test rows than those of a sample, without folds that have none of them.

    Parameters
    ----------
    folds : sequence of Fold
        Of all rows.
    sample : RowSample
    sample_weight : array, shape (n,), or None
        Weights of all rows.
    """
    shares = sample.shares(sample_weight)
    parts = []
    for fold in folds:
        _, held, place = np.intersect1d(fold.test, sample.rows, assume_unique=True, return_indices=True)
        weight = fold.test_weight[held] * shares[place]
        parts.append(replace(fold, test=fold.test[held], test_weight=weight))
    return [fold for fold in parts if len(fold.test)]


def numbered_folds(number: Codes, sample_weight: Floats | None = None) -> list[Fold]:
    """Return the folds of rows whose `number` (n,) is that of the fold in which they are held out."""
    whole = np.ones(len(number)) if sample_weight is None else sample_weight
    sides = [(number != fold, number == fold) for fold in np.unique(number)]
    return [_fold(whole * train, whole * test, sample_weight is not None) for train, test in sides]


def random_folds(n: int, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Return folds of equal size of n rows that have no features; no more folds than rows."""
    return numbered_folds(rng.permutation(n) % min(n_folds, n))


def _on(rows: Positions, weights: Floats) -> Floats:
    """Return the weights (n,) with zeros for all but some rows."""
    answer = np.zeros(len(weights))
    answer[rows] = weights[rows]
    return answer


def _fold(learned: Floats, held: Floats, weighted: bool) -> Fold:
    """Return the fold with these weights (n,) of rows on its two sides."""
    train, test = np.flatnonzero(learned > 0), np.flatnonzero(held > 0)
    return Fold(train, learned[train] if weighted else None, test, held[test])


# -- folds that are given ----------------------------------------------------------------------------------


def read_pairs(
    cv: Any, X: Any, Y: Any, groups: Any = None, *, hint: str = ""
) -> list[tuple[Positions, Positions]]:
    """Return training and test positions of the folds of a splitter, or of an iterable of such pairs.

    Every pair is checked: positions exist, no row is on both sides or twice on one, and no side is empty. The
    `hint` ends the error of a splitter that needs groups where none are given.
    """
    if hasattr(cv, "split") and not isinstance(cv, str):
        pairs: Iterable[Any] = _split(cv, X, Y, groups, hint)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise InputError(
            "cv must be a number of folds, a splitter of scikit-learn or an iterable of (train, test)"
            f" positions; found {cv!r}."
        )
    n = len(Y) if not hasattr(Y, "shape") else int(Y.shape[0])
    folds = [_check_pair(number, pair, n) for number, pair in enumerate(pairs, start=1)]
    if not folds:
        raise InputError("cv gives no folds; pass a number of them, such as 5.")
    return folds


def _split(cv: Any, X: Any, Y: Any, groups: Any, hint: str) -> list[Any]:
    given = {} if groups is None else {"groups": groups}  # other splitters may have no parameter groups
    try:
        return list(cv.split(X, Y, **given))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        hint = hint if groups is None and "group" in reason else ""
        raise InputError(f"cv: {cv!r} cannot split these rows ({reason}){hint}.") from error


def _check_pair(number: int, pair: Any, n: int) -> tuple[Positions, Positions]:
    try:
        train, test = pair
    except (TypeError, ValueError):
        raise InputError(f"cv: fold {number} is no pair of training and test positions.") from None
    train, test = _positions(number, train, n), _positions(number, test, n)
    if not len(train) or not len(test):
        side = "training" if not len(train) else "test"
        raise InputError(f"cv: fold {number} has no {side} rows.")
    both = np.intersect1d(train, test)
    if len(both):
        raise InputError(
            f"cv: fold {number} has {len(both)} of its rows in training and in test, row {both[0]} among"
            " them."
        )
    return train, test


def _positions(number: int, rows: Any, n: int) -> Positions:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
        raise InputError(f"cv: fold {number} must hold positions of rows, or a mask of all {n} rows.")
    if len(rows) and (rows.min() < 0 or rows.max() >= n):
        raise InputError(f"cv: fold {number} holds positions beyond the {n} rows.")
    if len(np.unique(rows)) < len(rows):
        raise InputError(f"cv: fold {number} names a row twice on the same side.")
    return rows.astype(np.intp)


# -- folds that follow from the rows -----------------------------------------------------------------------


def fold_weights(X: Features, codes: Codes, sample_weight: Floats | None, n_folds: int) -> Floats:
    """How much of the weight of each row lies in each fold, (n, n_folds).

    The fold of a row follows from a digest of its features and codes: it depends neither on the order of the
    rows nor on a random number. Equal rows go to one fold after the other, and a row of weight 3 counts as
    three of them; so whole weights mean what repeated rows mean. Others, such as weights that balance
    classes, are importances, not counts: then every row is in one fold, and no model that was fitted to a
    part of it predicts it. Rows of weight 0 are in no fold, but the folds of others depend on them.
    """
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    if (weights % 1).any():
        return weights[:, None] * fold_weights(X, codes, (weights > 0).astype(float), n_folds)
    _, which = np.unique(row_keys(X, codes), return_inverse=True)
    # Equal rows lie end to end on a line whose units belong to the folds in turn, from the fold of the first.
    start = running_total(which, weights)
    shares = np.empty((len(codes), n_folds))
    for rows in row_blocks(len(codes), 4 * n_folds):
        turn = (np.arange(n_folds) - which[rows, None]) % n_folds
        end = start[rows] + weights[rows]
        shares[rows] = _units(end, turn, n_folds) - _units(start[rows], turn, n_folds)
        # Rounding must not give a fold more than there is.
        np.minimum(shares[rows], weights[rows, None], out=shares[rows])
    return shares


def _units(length: Floats, turn: Codes, n_folds: int) -> Floats:
    """How much of [0, length), (n,), lies in units whose number is `turn` (n, n_folds) modulo `n_folds`."""
    cycles = np.floor(length / n_folds)
    return cycles[:, None] + np.clip((length - n_folds * cycles)[:, None] - turn, 0.0, 1.0)

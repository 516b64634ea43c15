"""Predictions for rows that models were not fitted to: folds, and one model for each of them.

`inner_folds` makes all folds inside of models, by rows or by groups of them. `cross_fit` fits to the rows of
each fold and predicts the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from tuplet.core.exceptions import InputError
from tuplet.core.limits import row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.local.row_samples import RowSample, row_keys, running_total
from tuplet.space.classes import ClassSpace
from tuplet.space.features.estimators import is_one_of
from tuplet.space.features.inputs import Features
from tuplet.space.features.labelled import LabelledClassifier

_USUAL_FOLDS = 5
"""What scikit-learn takes `cv=None` for."""

_WITHOUT_FOLDS = {"sklearn": ("ClassifierChain",)}
"""Estimators of scikit-learn that make no folds if `cv` is None."""

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
    X: Features | None,
    codes: Codes,
    sample_weight: Floats | None,
    cv: Any,
    space: ClassSpace | None = None,
    *,
    groups: Codes | None = None,
    rng: np.random.Generator | None = None,
) -> list[Fold]:
    """Return the folds of rows, without those in which nothing can be learned or nothing is held out.

    Parameters
    ----------
    X : features, n rows, or None
        Without features, and without `rng`, folds have the classes in proportion.
    codes : int array, shape (n, m), or (n,) where X is None
    sample_weight : array, shape (n,), or None
    cv : int, splitter of scikit-learn, or iterable of (train, test) positions
        Given a number, the fold of a row follows from the row itself (see `fold_weights`), from its group or
        from `rng`. There are no more folds than rows or groups.
    space : ClassSpace, optional
        Gives a splitter labels in the place of codes.
    groups : int array, shape (n,), optional
        A number divides groups, never the rows of one; a splitter gets them. A single group is divided as if
        there were none: otherwise nothing could be held out.
    rng : Generator, optional
        Draws the folds, of equal size, if `cv` is a number and there are no groups.

    Examples
    --------
    >>> X, codes = np.arange(6.0)[:, None], np.zeros((6, 1), dtype=int)
    >>> [fold.test for fold in inner_folds(X, codes, None, 3, groups=np.array([0, 0, 0, 1, 1, 2]))]
    [array([0, 1, 2]), array([3, 4]), array([5])]
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if cv < 2:
            raise InputError(f"cv must be at least 2 folds, found {cv}.")
        folds = _divide(X, codes, sample_weight, int(cv), groups, rng)
    else:
        whole = np.ones(len(codes)) if sample_weight is None else sample_weight
        pairs = _given_pairs(cv, codes, space, groups)
        folds = [
            _fold(_on(train, whole), _on(test, whole), sample_weight is not None) for train, test in pairs
        ]
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


def mean_and_error(
    values: Floats, weights: Floats, groups: npt.NDArray[Any] | None = None
) -> tuple[float, float]:
    """Return the weighted mean of values (n,) and its standard error.

    Rows of one of the `groups` (n,) are not independent: their deviations are added up before they are
    squared.

    Examples
    --------
    >>> values, weights = np.array([1.0, 1.0, 3.0, 3.0]), np.ones(4)
    >>> mean_and_error(values, weights)
    (2.0, 0.5)
    >>> mean, error = mean_and_error(values, weights, np.array([0, 0, 1, 1]))
    >>> round(error, 3)
    0.707
    """
    share = weights / weights.sum()
    mean = float(share @ values)
    deviations = share * (values - mean)
    if groups is not None:
        deviations = np.bincount(np.unique(groups, return_inverse=True)[1], deviations)
    return mean, float(np.sqrt((deviations**2).sum()))


def _on(rows: Positions, weights: Floats) -> Floats:
    """Return the weights (n,) with zeros for all but some rows."""
    answer = np.zeros(len(weights))
    answer[rows] = weights[rows]
    return answer


def _fold(learned: Floats, held: Floats, weighted: bool) -> Fold:
    """Return the fold with these weights (n,) of rows on its two sides."""
    train, test = np.flatnonzero(learned > 0), np.flatnonzero(held > 0)
    return Fold(train, learned[train] if weighted else None, test, held[test])


# -- folds that a number asks for --------------------------------------------------------------------------


def _divide(
    X: Features | None,
    codes: Codes,
    sample_weight: Floats | None,
    n_folds: int,
    groups: Codes | None,
    rng: np.random.Generator | None,
) -> list[Fold]:
    """Return folds of groups, or of rows: drawn, with classes in proportion, or by the rows themselves."""
    if groups is not None and (groups != groups[:1]).any():
        return numbered_folds(_fold_of_groups(groups, sample_weight, n_folds), sample_weight)
    if rng is not None:
        return numbered_folds(rng.permutation(len(codes)) % min(n_folds, len(codes)), sample_weight)
    if X is None:
        return numbered_folds(_stratified(codes, n_folds), sample_weight)
    whole = np.ones(len(codes)) if sample_weight is None else sample_weight
    shares = fold_weights(X, codes, sample_weight, n_folds)
    return [_fold(np.maximum(whole - part, 0.0), part, sample_weight is not None) for part in shares.T]


def _fold_of_groups(groups: Codes, sample_weight: Floats | None, n_folds: int) -> Codes:
    """Return the fold (n,) of the group of each row: the heaviest group goes first, to the lightest fold.

    Groups of equal weight come in an order that is random but fixed, because numbers of groups often follow
    a pattern, such as patients and controls in turn.
    """
    _, which = np.unique(groups, return_inverse=True)
    size = np.bincount(which, sample_weight)
    order = np.random.default_rng(0).permutation(len(size))
    fold, totals = np.empty(len(size), dtype=np.intp), [(0.0, f) for f in range(n_folds)]
    for g in order[np.argsort(-size[order], kind="stable")]:
        total, fold[g] = heappop(totals)
        heappush(totals, (total + size[g], int(fold[g])))
    return fold[which]


def _stratified(codes: Codes, n_folds: int) -> Codes:
    """Return the fold (n,) of rows of classes (n,), so that each fold has its share of every class."""
    # Random, but the same for the same rows: scores of families must not depend on luck.
    order = np.random.default_rng(0).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    number = np.empty(len(codes), dtype=np.intp)
    number[order] = np.arange(len(codes)) % n_folds
    return number


# -- folds that are given ----------------------------------------------------------------------------------

_STRATIFIED = (StratifiedKFold, StratifiedGroupKFold, StratifiedShuffleSplit, RepeatedStratifiedKFold)
"""Splitters that take one class variable only; they get the combinations of labels as its classes."""


def _given_pairs(
    cv: Any, codes: Codes, space: ClassSpace | None, groups: Codes | None
) -> list[tuple[Positions, Positions]]:
    labels: Any = codes if space is None else space.decode(codes)
    if isinstance(cv, _STRATIFIED):
        labels = _combinations(codes, cv.get_n_splits())
    return read_pairs(
        cv, np.zeros((len(codes), 1)), labels, groups, hint="; pass them as fit(..., groups=...)"
    )


def _combinations(codes: Codes, n_splits: int) -> Codes:
    """Return the number (n,) of each row's combination; those with fewer rows than splits are one class.

    If that one is too small as well, it joins the most frequent.
    """
    _, which, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    rare = count[which] < n_splits
    return np.where(rare, count.argmax() if rare.sum() < n_splits else len(count), which)


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


@contextmanager
def folds_of_groups(estimator: Any, y: Codes, groups: Codes | None) -> Iterator[None]:
    """Have the cross-validation inside of an estimator, such as a search, divide groups (n,) of rows.

    Its `cv` is replaced by folds for the time of a fit to classes y (n,), in all steps of a pipeline.
    Splitters that take no groups are left as they are.
    """
    given = {} if groups is None else dict(_own_cv(estimator))
    folds = {key: _pairs_of_groups(cv, y, groups) for key, cv in given.items()}
    try:
        if folds:
            estimator.set_params(**folds)
        yield
    finally:
        if folds:
            estimator.set_params(**given)


def _own_cv(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parameters `cv` of an estimator, or of the steps of a pipeline, that can divide groups."""
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            yield from ((f"{name}__{key}", cv) for key, cv in _own_cv(step))
    elif isinstance(estimator, LabelledClassifier):
        yield from ((f"estimator__{key}", cv) for key, cv in _own_cv(estimator.estimator))
    elif hasattr(estimator, "get_params") and not has_fit_parameter(estimator, "groups"):
        cv = estimator.get_params(deep=False).get("cv", "none")
        usual = cv is None and not is_one_of(estimator, _WITHOUT_FOLDS)
        if usual or isinstance(cv, int) or hasattr(cv, "set_split_request"):
            yield "cv", cv


def _pairs_of_groups(cv: Any, y: Codes, groups: Codes | None) -> list[tuple[Positions, Positions]]:
    folds = inner_folds(None, y, None, _USUAL_FOLDS if cv is None else cv, groups=groups)
    return [(fold.train, fold.test) for fold in folds]


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

"""Training and test rows, from any way to say how a data set is to be split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from tuplet.evaluate.stratified import Positions, StratifiedFolds, n_rows
from tuplet.exceptions import InputError
from tuplet.typing import Seed

Folds = list[tuple[Positions, Positions]]
"""Positions of the training rows and of the test rows of each fold."""


def make_folds(
    cv: Any,
    X: Any,
    Y: Any,
    *,
    train: Any = None,
    folds: Any = None,
    groups: Any = None,
    random_state: Seed = 0,
) -> Folds:
    """Positions of training and test rows, from any way to say how a data set is to be split.

    Parameters
    ----------
    cv : int, "split", "shipped", splitter, or iterable of pairs of positions
        A number of stratified folds; "split", the split that comes with the data; "shipped", the folds or the
        split that come with the data; anything with a `split(X, Y, groups)`; or the folds themselves, where
        boolean masks are fine, too.
    X, Y : features (n, d) and labels (n, m)
    train : array of bool, shape (n,), optional
        The split that comes with the data: True for training rows.
    folds : array, shape (n,), optional
        The folds that come with the data: which fold tests a row.
    groups : array, shape (n,), optional
        What belongs together: rows of a group stay on the same side of stratified folds, and splitters such
        as scikit-learn's `GroupKFold` are told.
    random_state : int, Generator or None
        For stratified folds.

    Returns
    -------
    list of (train, test)

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.zeros((4, 1)), np.array([[0, 1], [1, 0], [0, 0], [1, 1]])
    >>> make_folds("split", X, Y, train=[True, True, True, False])
    [(array([0, 1, 2]), array([3]))]
    >>> len(make_folds(2, X, Y))
    2
    """
    n = n_rows(Y)
    if n_rows(X) != n:
        raise InputError(f"make_folds: X has {n_rows(X)} rows and Y has {n}.")
    pairs = _shipped(cv, train, folds, n) if isinstance(cv, str) else _made(cv, X, Y, groups, random_state)
    checked = [_check_pair(number, pair, n) for number, pair in enumerate(pairs, start=1)]
    if not checked:
        raise InputError("make_folds: cv gives no folds.")
    return checked


def _made(cv: Any, X: Any, Y: Any, groups: Any, random_state: Seed) -> Iterable[Any]:
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= n_rows(Y):
            raise InputError(
                f"make_folds: cv must be between 2 and the number of rows, {n_rows(Y)}; found {cv}."
            )
        return StratifiedFolds(int(cv), random_state=random_state).split(X, Y, groups)
    if hasattr(cv, "split"):
        return _by_splitter(cv, X, Y, groups)
    if isinstance(cv, Iterable):
        return cv
    raise InputError(
        "make_folds: cv must be a number of folds, 'split', 'shipped', a splitter of scikit-learn or an"
        f" iterable of (train, test) positions; found {cv!r}."
    )


def _by_splitter(cv: Any, X: Any, Y: Any, groups: Any) -> list[Any]:
    given = {} if groups is None else {"groups": groups}  # splitters of others may not know of groups
    try:
        return list(cv.split(X, Y, **given))
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        ask = "; groups are given as Dataset(..., groups=...)" if groups is None and "group" in reason else ""
        raise InputError(f"make_folds: {cv!r} cannot split these rows ({reason}){ask}.") from error


def _shipped(cv: str, train: Any, folds: Any, n: int) -> Iterable[Any]:
    if cv not in ("split", "shipped"):
        raise InputError(f"make_folds: cv must be 'split' or 'shipped' if it is a word, found {cv!r}.")
    if cv == "shipped" and folds is not None:
        number = pd.Series(np.asarray(folds))
        if len(number) != n or number.isna().any():
            raise InputError(f"make_folds: the shipped folds must name a fold for each of the {n} rows.")
        values = number.to_numpy()
        return [(values != fold, values == fold) for fold in sorted(number.unique())]
    if train is None:
        raise InputError(
            f"make_folds: cv={cv!r} needs a split that comes with the data, and there is none; pass a number"
            " of folds."
        )
    mask = np.asarray(train)
    if mask.dtype != bool or mask.shape != (n,):
        raise InputError(f"make_folds: the shipped split must be a boolean for each of the {n} rows.")
    return [(mask, ~mask)]


def _check_pair(number: int, pair: Any, n: int) -> tuple[Positions, Positions]:
    try:
        train, test = pair
    except (TypeError, ValueError):
        raise InputError(f"make_folds: fold {number} is no pair of training and test positions.") from None
    train, test = _positions(number, train, n), _positions(number, test, n)
    if not len(train) or not len(test):
        side = "training" if not len(train) else "test"
        raise InputError(f"make_folds: fold {number} has no {side} rows.")
    both = np.intersect1d(train, test)
    if len(both):
        raise InputError(
            f"make_folds: fold {number} has {len(both)} of its rows in training and in test, row {both[0]}"
            " among them."
        )
    return train, test


def _positions(number: int, rows: Any, n: int) -> Positions:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
        raise InputError(f"make_folds: fold {number} must hold positions of rows, or a mask of all {n} rows.")
    if len(rows) and (rows.min() < 0 or rows.max() >= n):
        raise InputError(f"make_folds: fold {number} holds positions beyond the {n} rows.")
    if len(np.unique(rows)) < len(rows):
        raise InputError(f"make_folds: fold {number} names a row twice on the same side.")
    return rows.astype(np.intp)

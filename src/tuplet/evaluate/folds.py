"""Folds of a data set: given in any form, or stratified by the labels of all class variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes, Seed
from tuplet.joint.base import category_offsets
from tuplet.local.cross_fitting import Positions, read_pairs
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import open_table

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
    """Return the positions of training and test rows for a data set and any kind of `cv`.

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
        What belongs together: rows of a group stay on the same side of stratified folds. They are passed to
        splitters such as scikit-learn's `GroupKFold`.
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
    n = _n_rows(Y)
    if _n_rows(X) != n:
        raise InputError(f"make_folds: X has {_n_rows(X)} rows and Y has {n}.")
    given = cv
    if isinstance(cv, str):
        given = _shipped(cv, train, folds, n)
    elif isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= n:
            raise InputError(f"make_folds: cv must be between 2 and the number of rows, {n}; found {cv}.")
        given = StratifiedFolds(int(cv), random_state=random_state)
    return read_pairs(given, X, Y, groups, hint="; groups are given as Dataset(..., groups=...)")


@dataclass(frozen=True)
class StratifiedFolds:
    """Cross-validation with iterative stratification: every label as evenly spread over the folds as can be.

    A splitter of scikit-learn: it can be passed as `cv` to `cross_validate`, `GridSearchCV` and the like.

    Parameters
    ----------
    n_splits : int
        Number of folds.
    random_state : int, Generator or None
        The same number gives the same folds.

    Notes
    -----
    A label is a pair (class variable, category). The rarest of those that are left goes first: each of its
    rows joins the fold that lacks most of it, then the one with most room, then a random one. Missing labels
    are ignored. Unlike in the original, a fold takes no more rows than its share, so that the sizes
    of the folds differ by at most one row. Where groups are kept together they may differ by more.

    References
    ----------
    Sechidis, Tsoumakas, Vlahavas, On the stratification of multi-label data, ECML PKDD 2011.

    Examples
    --------
    >>> import pandas as pd
    >>> Y = pd.DataFrame({"weather": ["rain"] * 4 + ["sun"] * 6, "wind": [0, 1] * 5})
    >>> for train, test in StratifiedFolds(2, random_state=0).split(Y, Y):
    ...     print(len(test), (Y["weather"].iloc[test] == "rain").sum())
    5 2
    5 2
    """

    n_splits: int = 10
    random_state: Seed = field(default=None, kw_only=True)

    def get_n_splits(self, X: Any = None, Y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, Y: Any, groups: Any = None) -> Iterator[tuple[Positions, Positions]]:
        """Yield positions of the training rows and of the test rows of each fold; every row is tested once.

        Parameters
        ----------
        X : ignored, except for its number of rows
        Y : labels, shape (n, m) or (n,)
        groups : array, shape (n,), optional
            Rows of the same group stay on the same side; see `duplicate_groups`.
        """
        fold = self.assign(Y, groups)
        if X is not None and _n_rows(X) != len(fold):
            raise InputError(f"StratifiedFolds: X has {_n_rows(X)} rows and Y has {len(fold)}.")
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def assign(self, Y: Any, groups: Any = None) -> Positions:
        """Return the number (n,) of the fold that tests each row; see `split`."""
        space = ClassSpace.from_labels(Y)
        codes = space.encode(Y)
        item = _group_numbers(groups, len(codes))
        n_items = int(item.max()) + 1
        if not 2 <= self.n_splits <= n_items:
            units = "rows" if groups is None else "groups"
            raise InputError(
                f"StratifiedFolds: n_splits must be between 2 and the number of {units}, {n_items}; found"
                f" {self.n_splits}."
            )
        member = sparse.csr_array((np.ones(len(item), np.int64), (item, np.arange(len(item)))))
        counts = sparse.csr_array(member @ _label_matrix(codes, space.cards))
        dealer = _Dealer(counts, np.bincount(item), self.n_splits, np.random.default_rng(self.random_state))
        return dealer.deal()[item]


def duplicate_groups(X: Any) -> Positions:
    """Group numbers (n,) in which rows that are equal in every feature have the same number.

    Passed as `groups`, they keep copies of a row from being learned in one fold and tested in another.
    Missing values are equal to each other.

    Parameters
    ----------
    X : array, sparse matrix or frame, shape (n, d)

    Examples
    --------
    >>> duplicate_groups([[1, 2], [3, 4], [1, 2]])
    array([0, 1, 0])
    """
    table = open_table(X)
    number = np.zeros(table.n_rows, dtype=np.intp)
    for column in table.columns:
        values = column.to_list() if table.form.container == "polars" else column
        codes = pd.factorize(pd.Series(values), use_na_sentinel=False)[0]
        # Numbers stay below n, so the product stays in the range of integers.
        number = pd.factorize(number * (int(codes.max(initial=0)) + 1) + codes)[0].astype(np.intp)
    return number


# -- folds that are given ----------------------------------------------------------------------------------


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


def _n_rows(data: Any) -> int:
    """Return the number of rows of an array, a frame or a list."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


# -- dealing rows to folds ---------------------------------------------------------------------------------


class _Dealer:
    """Deals items (rows, or groups of them) to folds, those with the rarest label first.

    Parameters
    ----------
    counts : sparse array of int, shape (items, labels)
        How many rows with each label an item has.
    sizes : array of int, shape (items,)
        How many rows an item has.
    """

    def __init__(
        self, counts: sparse.csr_array, sizes: Positions, n_splits: int, rng: np.random.Generator
    ) -> None:
        self.counts, self.sizes, self.rng = counts, sizes, rng
        self.n = int(sizes.sum())
        self.left = np.asarray(counts.sum(axis=0), dtype=np.int64).ravel()
        self.room = np.full(n_splits, self.n // n_splits)
        self.room[: self.n % n_splits] += 1
        # What each fold still lacks of each label, times n, which makes it an integer and comparisons exact.
        self.lacking = np.outer(self.room, self.left)
        self.fold = np.full(len(sizes), UNKNOWN, dtype=np.intp)
        self.n_items_left, self.empty = len(sizes), np.ones(n_splits, dtype=bool)
        self.lots = rng.random(len(sizes))

    def deal(self) -> Positions:
        """Return the fold (items,) of each item."""
        by_label = sparse.csc_array(self.counts)
        while self.left.any():
            rarest = np.flatnonzero(self.left == self.left[self.left > 0].min())
            label = int(self.rng.choice(rarest))
            own = slice(by_label.indptr[label], by_label.indptr[label + 1])
            self._deal_out(by_label.indices[own].astype(np.intp), by_label.data[own], label)
        self._deal_out(np.arange(len(self.sizes)), self.sizes, None)  # no label is known of these
        return self.fold

    def _deal_out(self, items: Positions, weights: Positions, label: int | None) -> None:
        """Deal those of the items that are left: the heaviest first, in random order otherwise."""
        order = np.lexsort((self.rng.random(len(items)), -weights))
        for item in items[order]:
            if self.fold[item] == UNKNOWN:
                self._place(item, label)

    def _place(self, item: int, label: int | None) -> None:
        size = self.sizes[item]
        if self.n_items_left == np.count_nonzero(self.empty):
            best = np.flatnonzero(self.empty)  # no fold may stay without test rows
        else:
            best = np.flatnonzero(self.room >= size)
            if not len(best):
                best = np.flatnonzero(self.room == self.room.max())
        if label is not None:
            lacking = self.lacking[best, label]
            best = best[lacking == lacking.max()]
        room = self.room[best]
        best = best[room == room.max()]
        self._book(item, best[int(self.lots[item] * len(best))], size)

    def _book(self, item: int, fold: int, size: int) -> None:
        own = slice(self.counts.indptr[item], self.counts.indptr[item + 1])
        labels, numbers = self.counts.indices[own], self.counts.data[own]
        self.fold[item] = fold
        self.lacking[fold, labels] -= self.n * numbers
        self.left[labels] -= numbers
        self.room[fold] -= size
        self.empty[fold] = False
        self.n_items_left -= 1


def _label_matrix(codes: Codes, cards: tuple[int, ...]) -> sparse.csr_array:
    """Return which labels (n, sum of cards) each row has; missing labels are left out."""
    offsets = category_offsets(cards)
    rows, variables = np.nonzero(codes != UNKNOWN)
    columns = offsets[variables] + codes[rows, variables]
    return sparse.csr_array(
        (np.ones(len(rows), np.int64), (rows, columns)), shape=(len(codes), int(offsets[-1]))
    )


def _group_numbers(groups: Any, n: int) -> Positions:
    if groups is None:
        return np.arange(n)
    values = pd.Series(np.asarray(groups))
    if len(values) != n or values.isna().any():
        raise InputError(f"StratifiedFolds: groups must hold a group for each of the {n} rows of Y.")
    return pd.factorize(values)[0].astype(np.intp)

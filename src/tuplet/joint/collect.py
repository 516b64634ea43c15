"""Equal outcomes brought together: integer keys of outcomes, and weights added up by key or by value."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats

_LARGEST_KEY = 2**62
"""Limit of keys, so that products with a cardinality do not overflow."""


def outcome_keys(codes: Codes, cards: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """One integer (...) per outcome (..., m), equal for equal outcomes only, in lexicographic order.

    Numbers in a mixed radix. Where the product of the cardinalities does not fit in 62 bits, the keys of the
    first variables are replaced by their ranks among those that occur, and the rest goes on from there.
    """
    keys = np.zeros(codes.shape[:-1], np.int64)
    size, start = 1, 0
    while start < len(cards):
        stop = start + 1
        while stop < len(cards) and size * math.prod(cards[start : stop + 1]) <= _LARGEST_KEY:
            stop += 1
        if size * math.prod(cards[start:stop]) > _LARGEST_KEY:
            present, keys = np.unique(keys, return_inverse=True)
            keys = keys.reshape(codes.shape[:-1])
            size = len(present)
        radix = [math.prod(cards[j + 1 : stop]) for j in range(start, stop)]
        keys = keys * math.prod(cards[start:stop]) + codes[..., start:stop] @ np.array(radix, np.int64)
        size *= math.prod(cards[start:stop])
        start = stop
    return keys


def distinct_outcomes(
    codes: Codes, cards: tuple[int, ...]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first position of every distinct outcome of codes (n, m), and which of them each row is.

    They are in lexicographic order, `UNKNOWN` before all values, as those of `np.unique`, which sorts whole
    rows and takes ten times as long.

    Examples
    --------
    >>> first, number = distinct_outcomes(np.array([[1, 0], [-1, 1], [1, 0]]), (2, 2))
    >>> first, number
    (array([1, 0]), array([1, 0, 1]))
    """
    keys = outcome_keys(codes + 1, tuple(int(card) + 1 for card in cards))
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    return first, number


def positions(listed: Codes, wanted: Codes, cards: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Where outcomes (..., m) stand in a list (a, m) of distinct ones; `UNKNOWN` where they do not.

    Examples
    --------
    >>> positions(np.array([[0, 1], [1, 1]]), np.array([[1, 1], [1, 0]]), (2, 2))
    array([ 1, -1])
    """
    both = np.concatenate([listed, wanted.reshape(-1, len(cards))])  # one call, as keys may be ranks
    keys = outcome_keys(both, cards)
    order = np.argsort(keys[: len(listed)])
    ordered, wanted_keys = keys[order], keys[len(listed) :]
    place = np.minimum(np.searchsorted(ordered, wanted_keys), len(listed) - 1)
    found = np.where(ordered[place] == wanted_keys, order[place], UNKNOWN)
    return found.reshape(wanted.shape[:-1])


def distinct(keys: npt.NDArray[np.int64], log_weights: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Positions (u,) of the distinct ones of keys (a,) that all rows share, and their log-weights (n, u)."""
    order = np.argsort(keys, kind="stable")
    first = _first(keys[order])
    starts = np.flatnonzero(first)
    if len(starts) == len(keys):
        return np.arange(len(keys)), log_weights  # nothing to bring together
    return order[starts], _log_add(log_weights[:, order], starts)


def collect(keys: npt.NDArray[np.int64], log_weights: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Positions (n, u) of the distinct ones of keys (n, a) in every row, and their log-weights (n, u).

    A row with fewer than u of them is filled up with log-weights of minus infinity.
    """
    order = np.argsort(keys, axis=1, kind="stable")
    first = _first(np.take_along_axis(keys, order, axis=1))
    row, column = np.nonzero(first)
    width = int(first.sum(axis=1).max(initial=1))
    place = (row, (np.cumsum(first, axis=1) - 1)[row, column])
    positions = np.zeros((len(keys), width), np.intp)
    positions[place] = order[row, column]
    summed = np.full((len(keys), width), -np.inf)
    summed[place] = _log_add(np.take_along_axis(log_weights, order, axis=1).ravel(), np.flatnonzero(first))
    return positions, summed


def repeated(keys: npt.NDArray[np.int64], counts: npt.NDArray[np.bool_]) -> int | None:
    """Return a row of keys (n, a) in which one comes twice among those that count (n, a), if there is any."""
    if _first(np.sort(keys, axis=1)).all():
        return None
    # Only now, as it is rare, look at what counts: of equal keys, those that do come first.
    order = np.lexsort((~counts, keys), axis=1)
    twice = ~_first(np.take_along_axis(keys, order, axis=1)) & np.take_along_axis(counts, order, axis=1)
    rows = np.flatnonzero(twice.any(axis=1))
    return int(rows[0]) if len(rows) else None


def tally(
    values: npt.NDArray[np.intp], card: int, weights: Floats, group: npt.NDArray[np.intp] | None = None
) -> Floats:
    """Add up weights by group and by value in 0..card - 1, as (groups, card).

    Parameters
    ----------
    values, weights : arrays of the same shape
    group : array of that shape, optional
        Ascending numbers from 0 without gaps; the position on the first axis if None.
    """
    if group is None:
        n, group = len(values), np.arange(len(values))[:, None]
    else:
        n = int(group[-1]) + 1 if len(group) else 0
    summed = np.bincount((group * card + values).ravel(), weights.ravel(), minlength=n * card)
    return summed.reshape(n, card).astype(float, copy=False)  # of nothing at all, it counts in integers


def _log_add(log_values: Floats, starts: npt.NDArray[np.intp]) -> Floats:
    """Logs of the sums of consecutive values, (..., a) to (..., groups); a group ends where the next starts.

    Every group is scaled by its own largest value: a weight of exp(-5000) is not lost beside one of 1.
    """
    if not log_values.size:
        return np.empty((*log_values.shape[:-1], len(starts)))
    peak = np.maximum.reduceat(log_values, starts, axis=-1)
    peak[np.isneginf(peak)] = 0.0
    lengths = np.diff(np.append(starts, log_values.shape[-1]))
    terms = np.exp(log_values - np.repeat(peak, lengths, axis=-1))
    with np.errstate(divide="ignore"):
        return peak + np.log(np.add.reduceat(terms, starts, axis=-1))


def _first(ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether a key differs from the one before it on the last axis."""
    first = np.ones(ordered.shape, bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=first[..., 1:])
    return first

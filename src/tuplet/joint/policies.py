"""Policies of a walk: which prefixes are followed, and what mass each of them gets.

`Enumerate` and `MonteCarlo` are the engines of `Autoregressive`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.limits import ENUMERATION_LIMIT
from tuplet.core.typing import Floats
from tuplet.joint.frontier import Frontier


@final
@dataclass(frozen=True)
class Enumerate:
    """Follow every prefix of positive probability: exact.

    Parameters
    ----------
    limit : int
        Live prefixes of one row beyond which a query raises `IntractableError`.

    Examples
    --------
    >>> Enumerate(limit=1024)
    Enumerate(limit=1024)
    """

    limit: int = ENUMERATION_LIMIT

    def enter(self, live: Frontier) -> Frontier:
        """See `Policy.enter`."""
        return live

    def divide(self, live: Frontier, log_p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        """See `Policy.divide`: a child's share is its conditional probability."""
        return log_p, np.zeros(log_p.shape, dtype=np.intp)

    def prune(self, live: Frontier) -> Frontier:
        """See `Policy.prune`."""
        if len(live) > self.limit and (most := _most(live)) > self.limit:
            raise IntractableError(
                f"Autoregressive: one row has {most:,} possible values of the first {live.depth} variables"
                f" of the chain (limit={self.limit:,}). Raise the limit, use engine=MonteCarlo(), call"
                " top_k, or draw samples with draw(1000)."
            )
        return live


@final
@dataclass(frozen=True)
class MonteCarlo:
    """Follow `size` sampled points per row and evaluate each prefix that they share once.

    The points of a row are kept sorted by outcome, so that a prefix holds a run of c of them. Its children
    divide the unit interval by their probabilities, and one point falls into each of its c equal strata:
    large counts are divided almost in proportion. The variance of every estimate is at most that of `size`
    independent draws, because strata in proportion to their size never increase it and prefixes split
    independently of each other.

    All rows use the same points. So the answer of a row is a function of its own distribution and of the
    seed, and never of the other rows of the batch.

    Parameters
    ----------
    size : int
    seed : int

    Examples
    --------
    >>> MonteCarlo(size=500)
    MonteCarlo(size=500, seed=0)
    """

    size: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"MonteCarlo: size must be at least 1, found {self.size}.")

    def enter(self, live: Frontier) -> Frontier:
        """See `Policy.enter`: points are dealt to enumerated prefixes in proportion to their mass."""
        if live.count.any():
            return live
        weights, log_total = live.weights()
        upper = _cumulative(live, weights)
        lower = np.where(live.rank() == 0, 0.0, np.roll(upper, 1))
        size, zero = np.full(len(live), self.size), np.zeros(len(live), dtype=np.intp)
        points = self._points(live.depth, 0)
        count = _below(size, upper, zero, points) - _below(size, lower, zero, points)
        return _deal(live, log_total, count, self.size)

    def divide(self, live: Frontier, log_p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        """See `Policy.divide`."""
        before = np.cumsum(live.count) - live.count
        first = before - before[live.starts][live.number]
        upper = np.cumsum(np.exp(log_p), axis=1)
        upper /= upper[:, -1:]
        below = _below(live.count[:, None], upper, first[:, None], self._points(live.depth, 1))
        return _shares(np.diff(below, axis=1, prepend=0), live)

    def prune(self, live: Frontier) -> Frontier:
        """See `Policy.prune`."""
        return live

    def _points(self, depth: int, stage: int) -> Floats:
        """Return where in its stratum each point of a row falls, anew for every depth and stage."""
        return np.random.default_rng([self.seed, depth, stage]).random(self.size)


@dataclass(frozen=True)
class Multinomial:
    """Independent draws: the counts of a prefix's children are multinomial."""

    size: int
    rng: np.random.Generator

    def enter(self, live: Frontier) -> Frontier:
        """See `Policy.enter`: resample in proportion to the masses."""
        weights, log_total = live.weights()
        if len(log_total) == len(live):
            return replace(live, count=np.full(len(live), self.size))
        # One increasing line through all queries, their number plus the cumulative weight, finds every draw
        # at once; rounding at a query's end must not lead into the next one.
        starts = live.starts[:, None]
        ends = np.append(starts[1:], len(live))[:, None] - 1
        line = live.number + _cumulative(live, weights)
        uniform = self.rng.random((len(starts), self.size)) + np.arange(len(starts))[:, None]
        drawn = np.clip(np.searchsorted(line, uniform, side="right"), starts, ends)
        return _deal(live, log_total, np.bincount(drawn.ravel(), minlength=len(live)), self.size)

    def divide(self, live: Frontier, log_p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        """See `Policy.divide`."""
        p = np.exp(log_p)
        return _shares(self.rng.multinomial(live.count, p / p.sum(axis=1, keepdims=True)), live)

    def prune(self, live: Frontier) -> Frontier:
        """See `Policy.prune`."""
        return live


@dataclass(frozen=True)
class Beam:
    """Follow the most probable prefixes of each depth only."""

    width: int

    def enter(self, live: Frontier) -> Frontier:
        """See `Policy.enter`."""
        return self.prune(live)

    def divide(self, live: Frontier, log_p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        """See `Policy.divide`."""
        return log_p, np.zeros(log_p.shape, dtype=np.intp)

    def prune(self, live: Frontier) -> Frontier:
        """See `Policy.prune`."""
        best_first = live.take(np.lexsort([-live.log_prob, live.query]))
        return best_first.take(best_first.rank() < self.width)


@dataclass(frozen=True)
class AboveThreshold:
    """Follow the prefixes more probable than a threshold, and only the best of them if there are too many.

    Parameters
    ----------
    log_threshold : array, shape (q,)
    width : int
        Prefixes of a query that are followed at most.
    floor : array, shape (q,)
        Written: what is not followed has at most this log-probability, with everything that it leads to.
    """

    log_threshold: Floats
    width: int
    floor: Floats

    def enter(self, live: Frontier) -> Frontier:
        """See `Policy.enter`."""
        self.floor[live.query] = self.log_threshold[live.query]
        return live

    def divide(self, live: Frontier, log_p: Floats) -> tuple[Floats, npt.NDArray[np.intp]]:
        """See `Policy.divide`."""
        return log_p, np.zeros(log_p.shape, dtype=np.intp)

    def prune(self, live: Frontier) -> Frontier:
        """See `Policy.prune`."""
        live = live.take(live.log_prob > self.log_threshold[live.query])
        if len(live) <= self.width or _most(live) <= self.width:
            return live
        best = live.take(np.lexsort([-live.log_prob, live.query]))
        late = best.rank() >= self.width
        np.maximum.at(self.floor, best.query[late], best.log_prob[late])
        return best.take(~late)


def _most(live: Frontier) -> int:
    """Return the number of prefixes of the query that has most of them."""
    return int(np.diff(live.starts, append=len(live)).max(initial=0))


def _below(
    count: npt.NDArray[np.intp], upper: Floats, first: npt.NDArray[np.intp], points: Floats
) -> npt.NDArray[np.intp]:
    """Count the points below the position `upper` in [0, 1] when one falls into each of `count` strata.

    The point of stratum s lies at (s + points[first + s]) / count. Two positions in the same stratum see the
    same point, which keeps the counts monotone in `upper`.
    """
    position = count * upper
    stratum = np.floor(position).astype(np.intp)
    inside = points[np.minimum(first + stratum, len(points) - 1)] < position - stratum
    return stratum + inside


def _cumulative(live: Frontier, weights: Floats) -> Floats:
    """Return running sums of weights within each query, exactly 1 at its last prefix."""
    starts = live.starts
    running = np.cumsum(weights)
    running -= (running[starts] - weights[starts])[live.number]
    running[np.append(starts[1:], len(live)) - 1] = 1.0
    return np.minimum(running, 1.0)


def _deal(live: Frontier, log_total: Floats, count: npt.NDArray[np.intp], size: int) -> Frontier:
    """Give prefixes their points and the mass that follows from them; drop those without."""
    with np.errstate(divide="ignore"):
        log_mass = log_total[live.number] + np.log(count / size)
    return replace(live, count=count, log_mass=log_mass).take(count > 0)


def _shares(count: npt.NDArray[np.intp], live: Frontier) -> tuple[Floats, npt.NDArray[np.intp]]:
    with np.errstate(divide="ignore"):
        return np.log(count / live.count[:, None]), count

"""Thresholded normal vectors, averaged over posterior draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from tuplet.core.exceptions import InputError
from tuplet.core.limits import row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.joint.ghk_kernels import log_paths, mean_sides
from tuplet.joint.orthants import (
    FEW,
    LazyMeans,
    Points,
    Visit,
    best_free,
    draw_alike,
    draw_free,
    tabulate,
    unit_points,
)
from tuplet.joint.search import Search

_DRAWS = 4096
"""Draws from which numbers of positive labels are counted where there are too many variables for a table."""

_SIZE = 4096
"""Points that all draws have together, at least, unless `n_points` is given."""

_BLOCK = 4096
"""Points of an interval that are visited at once."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Probit(JointDistribution):
    """Binary variables: whether the components of a normal vector are positive, averaged over D draws of it.

    p(y | x_i) is the mean over the draws of the probability that z ~ N(means[d, i], correlations[d]) has the
    signs of y. What multivariate probit models return.

    Parameters
    ----------
    means : array, shape (D, n, q), or LazyMeans
        Latent means of every draw and row.
    correlations : array, shape (D, q, q)
        Of the latent vector, in every draw.
    n_points : int, optional
        Quasi-random points at which each draw is evaluated. By default the power of two that makes 4,096
        points or more of all draws.
    seed : int
        Scrambles the points.
    search : Search
        Budget of the search for the most probable outcomes where there are more than ten free variables.
    evidence : array of int, shape (rows, q), optional
        Known values, `UNKNOWN` = free: this then is the distribution given them.
    rows : array of int, optional
        Positions in `means`; all of them unless given.
    variables : tuple of int, optional
        Latent variables that this is the distribution of, in this order; all of them unless given. The others
        may have evidence.

    Notes
    -----
    Orthant probabilities come from sequential conditioning (GHK) at fixed points, the same for all rows and
    queries. Variables are visited in a fixed order, known ones first; variables that a query leaves open are
    not visited, which sums them out exactly. So the probabilities of all outcomes add up to one to the last
    digit, the probability of the first variables is the sum of what follows from them, and
    log p(y | e) = log p(y, e) - log p(e) with the same points on both sides. Answers that visit other
    variables, or the same in another order, agree within `tolerance`.

    Marginals without evidence are exact for each draw, and so is `sample`. Given evidence, `sample` draws one
    of the points in proportion to its weight, and the rest of the latent vector anew. `proven` of a ranking
    means that no outcome has a higher probability as estimated here. Beyond ten variables, numbers of
    positive labels (`count_marginals`) are counted in 4,096 draws.

    `tolerance` is 1 / (2 sqrt(N)) for N points of all draws: the standard error of a probability of one half
    were the points independent, and several times the largest error seen with these. Evidence of
    probability p leaves no fewer than N p effective points, so N then is N p for the least p of all rows.
    Beyond ten variables it covers the draws of `count_marginals`.

    References
    ----------
    .. [1] Genz, A. (1992). Numerical computation of multivariate normal probabilities. Journal of
       Computational and Graphical Statistics 1, 141-149.

    Examples
    --------
    >>> import numpy as np
    >>> joint = Probit(np.zeros((1, 1, 2)), np.array([[[1.0, 0.5], [0.5, 1.0]]]))
    >>> np.exp(joint.log_prob([1, 1])).round(3)  # 1/4 + arcsin(1/2) / (2 pi)
    array([0.333])
    >>> joint.condition([1, UNKNOWN]).marginals()[1].round(3)
    array([[0.333, 0.667]])
    """

    means: Floats | LazyMeans
    correlations: Floats
    n_points: int | None = None
    seed: int = 0
    search: Search = field(default_factory=lambda: Search(max_nodes=512))
    evidence: Codes = None  # type: ignore[assignment]  # always an array once constructed
    rows: npt.NDArray[np.intp] = None  # type: ignore[assignment]  # always an array once constructed
    variables: tuple[int, ...] = None  # type: ignore[assignment]  # always a tuple once constructed
    cards: tuple[int, ...] = field(init=False)
    _points: Points = field(init=False)

    def __post_init__(self) -> None:
        correlations = _checked_correlations(self.correlations)
        means = self.means if isinstance(self.means, LazyMeans) else np.asarray(self.means)
        _check_means(means, correlations)
        n_points = _default_points(len(correlations)) if self.n_points is None else int(self.n_points)
        q = correlations.shape[1]
        rows = np.arange(means.shape[1]) if self.rows is None else np.asarray(self.rows, dtype=np.intp)
        variables = tuple(range(q)) if self.variables is None else tuple(int(v) for v in self.variables)
        evidence = np.full((len(rows), q), UNKNOWN) if self.evidence is None else np.asarray(self.evidence)
        parts = {
            "means": means,
            "correlations": correlations,
            "n_points": n_points,
            "rows": rows,
            "variables": variables,
            "evidence": evidence.astype(np.intp, copy=False),
            "cards": (2,) * len(variables),
            "_points": Points(correlations, n_points, self.seed),
        }
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def _like(self, **changes: object) -> Probit:
        """Return a copy with parts known to be right; nothing is checked, and the points are shared."""
        parts = {name: value for name, value in self.__dict__.items() if name in self.__dataclass_fields__}
        other = object.__new__(Probit)
        for name, value in (parts | changes).items():
            object.__setattr__(other, name, value)
        return other

    def __len__(self) -> int:
        return len(self.rows)

    def _take(self, rows: npt.NDArray[np.intp]) -> Probit:
        return self._like(rows=self.rows[rows], evidence=self.evidence[rows])

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`; defined in the notes of the class."""
        if self.n_variables == 1 and not self._is_known.any():
            return 0.0
        size = self._points.size * np.exp(self._log_evidence.min(initial=0.0))
        error = 0.5 / max(size, 0.25) ** 0.5
        return float(min(1.0, max(error, 2 / _DRAWS**0.5) if self.n_variables > FEW else error))

    @property
    def has_exact_marginals(self) -> bool:
        """See `JointDistribution.has_exact_marginals`: they are, without evidence."""
        return not self._is_known.any()

    # -- rows and what is known of them -------------------------------------------------------------------

    @cached_property
    def _is_known(self) -> npt.NDArray[np.bool_]:
        return self.evidence != UNKNOWN

    def _latent_means(self, rows: npt.NDArray[np.intp]) -> Floats:
        """Return the means (D, r, q) of some rows of this distribution."""
        chosen = self.rows[rows]
        return self.means.rows(chosen) if isinstance(self.means, LazyMeans) else self.means[:, chosen]

    def _blocks(self, width: int = 0) -> Iterator[npt.NDArray[np.intp]]:
        """Cut the rows into blocks of bounded memory, `width` cells a row on top of their means."""
        cells = self.correlations.shape[1] * len(self.correlations) + width
        return (np.arange(block.start, block.stop) for block in row_blocks(len(self), cells))

    def _groups(self, rows: npt.NDArray[np.intp]) -> Iterator[_KnownPattern]:
        """Divide rows by what is known of them."""
        for pattern, chosen in _distinct_rows(self._is_known[rows]):
            known = tuple(np.flatnonzero(pattern).tolist())
            free = tuple(j for j, v in enumerate(self.variables) if not pattern[v])
            yield _KnownPattern(rows[chosen], known, free)

    def _visit(self, group: _KnownPattern) -> tuple[Visit, Floats, Codes]:
        """Return the visit of known and then free variables, scaled means (r, v, D), known codes (r, d)."""
        visit = self._points.visit((*group.known, *(self.variables[j] for j in group.free)))
        known = np.ascontiguousarray(self.evidence[group.rows][:, list(group.known)])
        return visit, visit.scale(self._latent_means(group.rows)), known

    # -- probabilities ------------------------------------------------------------------------------------

    def _log_prob(self, codes: Codes) -> Floats:
        return np.minimum(self._log_joint(codes) - self._log_evidence, 0.0)

    @cached_property
    def _log_evidence(self) -> Floats:
        """Log-probability (n,) of the evidence."""
        nothing = np.full((1, len(self), self.n_variables), UNKNOWN)
        return self._log_joint(nothing)[0] if self._is_known.any() else np.zeros(len(self))

    def _log_joint(self, codes: Codes) -> Floats:
        """Return log p(codes, evidence) as (s, n)."""
        answer = np.full(codes.shape[:2], -np.inf)
        for rows in self._blocks():
            means = self._latent_means(rows)
            for which, row, order, asked in self._queries(codes[:, rows], rows):
                answer[which, rows[row]] = self._log_paths(order, means, row, asked)
        return answer

    def _queries(
        self, codes: Codes, rows: npt.NDArray[np.intp]
    ) -> Iterator[tuple[Codes, Codes, tuple[int, ...], Codes]]:
        """Divide codes (s, r, m) of some rows by the variables that they fix.

        Yields positions (Q,) among the s codes and the r rows, the latent variables to visit, and their
        values (Q, v). Codes that contradict the evidence are left out.
        """
        merged, possible = self._merge(codes, rows)
        which, row = np.nonzero(possible)
        asked = merged[which, row]
        # Known variables come first, so that their probability is that of a prefix of all that follows.
        pattern = (asked != UNKNOWN).astype(np.int8) + self._is_known[rows[row]]
        for kind, chosen in _distinct_rows(pattern):
            order = (*np.flatnonzero(kind == 2).tolist(), *np.flatnonzero(kind == 1).tolist())
            yield which[chosen], row[chosen], order, np.ascontiguousarray(asked[chosen][:, list(order)])

    def _merge(self, codes: Codes, rows: npt.NDArray[np.intp]) -> tuple[Codes, npt.NDArray[np.bool_]]:
        """Return codes (s, r, m) of some rows with their evidence (s, r, q), and where they agree (s, r)."""
        evidence = self.evidence[rows]
        asked = np.full((*codes.shape[:2], evidence.shape[1]), UNKNOWN)
        asked[..., list(self.variables)] = codes
        agree = (asked == evidence) | (asked == UNKNOWN) | (evidence == UNKNOWN)
        return np.where(asked == UNKNOWN, evidence, asked), agree.all(axis=-1)

    def _log_paths(self, order: tuple[int, ...], means: Floats, row: Codes, asked: Codes) -> Floats:
        """Return log-probabilities (Q,) of values (Q, v) of the variables in `order`, in some rows (Q,)."""
        if not order:
            return np.zeros(len(row))
        present, position = np.unique(row, return_inverse=True)
        visit = self._points.visit(order)
        answer = np.empty((len(row), 1))
        scaled = visit.scale(means[:, present])
        log_paths(position, asked, scaled, visit.factors, visit.u, visit.log_u, answer)
        return answer[:, 0]

    def _flat_marginals(self) -> Floats:
        flat = np.empty((len(self), self.n_variables, 2))
        for rows in self._blocks():
            means = np.asarray(self._latent_means(rows)[..., list(self.variables)], dtype=float)
            high, low = np.empty((2, *means.shape[1:]))
            cells = np.ascontiguousarray(means).reshape(len(means), -1)
            mean_sides(cells, high.reshape(-1), low.reshape(-1))
            flat[rows, :, 0], flat[rows, :, 1] = low, high
        known = np.flatnonzero(self._is_known.any(axis=1))
        if len(known):
            given = self._take(known)
            for j in range(self.n_variables):
                one = np.full((1, len(known), self.n_variables), UNKNOWN)
                one[..., j] = 1
                flat[known, j, 1] = np.exp(given._log_prob(one)[0])
            flat[known, :, 0] = 1.0 - flat[known, :, 1]
        return flat.reshape(len(self), 2 * self.n_variables)

    def pairwise(self) -> dict[tuple[int, int], Floats]:
        """See `JointDistribution.pairwise`; they add up to the marginals."""
        m, n = self.n_variables, len(self)
        positive = np.stack([marginal[:, 1] for marginal in self.marginals()], axis=1)
        pairs = {}
        for i in range(m - 1):
            codes = np.full((m - i - 1, n, m), UNKNOWN)
            codes[..., i] = 1
            codes[np.arange(m - i - 1), :, np.arange(i + 1, m)] = 1
            for j, both in enumerate(np.exp(self._log_prob(codes)), start=i + 1):
                first, second = positive[:, i], positive[:, j]
                both = np.clip(both, np.maximum(first + second - 1, 0), np.minimum(first, second))
                table = [1 - first - second + both, second - both, first - both, both]
                pairs[i, j] = np.stack(table, axis=1).reshape(n, 2, 2)
        return pairs

    def _condition(self, codes: Codes) -> tuple[Probit, Floats]:
        log_prob = self._log_prob(codes[None])[0]
        merged = self._merge(codes[None], np.arange(len(self)))[0][0]
        known = np.where((log_prob > -np.inf)[:, None], merged, self.evidence)
        return self._like(evidence=known), log_prob

    def _marginal(self, variables: tuple[int, ...]) -> Probit:
        chosen = tuple(self.variables[v] for v in variables)
        return self._like(variables=chosen, cards=(2,) * len(chosen))

    def marginal_intervals(self, level: float = 0.95) -> Floats:
        """Credible intervals of P(Y_j = 1), shape (n, m, 2): quantiles of each marginal over the draws.

        Parameters
        ----------
        level : float
            Share of the draws inside; as many lie above as below.
        """
        _check_level(level)
        answer = np.empty((len(self), self.n_variables, 2))
        for rows in self._blocks():
            probability = ndtr(self._latent_means(rows)[..., list(self.variables)])
            answer[rows] = _quantiles(probability.transpose(1, 2, 0), np.ones(len(probability)), level)
        known = np.flatnonzero(self._is_known.any(axis=1))
        if len(known):
            one = np.full((self.n_variables, 1, self.n_variables), UNKNOWN)
            one[np.arange(len(one)), 0, np.arange(len(one))] = 1
            given = self[known].intervals(np.repeat(one, len(known), axis=1), level)
            answer[known] = given.transpose(1, 0, 2)
        return answer

    def intervals(self, codes: npt.ArrayLike, level: float = 0.95, n_points: int = 64) -> Floats:
        """Credible intervals of the probabilities of outcomes.

        Parameters
        ----------
        codes : array of int, shape (..., n, m) or anything that broadcasts to it
            `UNKNOWN` positions are summed out.
        level : float
            Share of the draws inside; as many lie above as below.
        n_points : int
            Quasi-random points of each draw, the same for all: each draw needs an accurate probability of its
            own here, which the few points that serve an average do not give.

        Returns
        -------
        array, shape (..., n, 2)
            Given evidence, of the conditional probability; the weight of a draw is the probability that it
            gives the evidence.

        Examples
        --------
        >>> import numpy as np
        >>> means = np.linspace(-1, 1, 101)[:, None, None]
        >>> Probit(means, np.ones((101, 1, 1))).intervals([1], level=0.5).round(2)
        array([[0.31, 0.69]])
        """
        _check_level(level)
        array = self._as_codes(codes)
        flat = array.reshape(math.prod(array.shape[:-2]), *array.shape[-2:])
        answer = np.empty((*flat.shape[:2], 2))
        for rows in self._blocks(len(flat) * len(self.correlations)):
            answer[:, rows] = self[rows]._flat_intervals(flat[:, rows], level, n_points)
        return answer.reshape(*array.shape[:-1], 2)

    def _flat_intervals(self, codes: Codes, level: float, n_points: int) -> Floats:
        """Return the intervals (s, n, 2) of codes (s, n, m)."""
        logs = self._log_draws(codes, n_points)
        log_known = np.zeros(logs.shape[1:])
        if self._is_known.any():
            nothing = np.full((1, len(self), self.n_variables), UNKNOWN)
            log_known = self._log_draws(nothing, n_points)[0]
        with np.errstate(invalid="ignore"):
            conditional = np.exp(np.minimum(logs - log_known, 0.0))
        weights = np.exp(log_known - log_known.max(axis=1, keepdims=True))
        return _quantiles(conditional, weights, level)

    def _log_draws(self, codes: Codes, n_points: int) -> Floats:
        """Return log p(codes, evidence) of every draw, (s, n, D)."""
        means = self._latent_means(np.arange(len(self)))
        answer = np.full((*codes.shape[:2], len(means)), -np.inf)
        points = unit_points(1, n_points, self.correlations.shape[1] - 1, self.seed)
        step = max(1, _BLOCK // n_points)
        for which, row, order, asked in self._queries(codes, np.arange(len(self))):
            for first in range(0, len(means), step):
                draws = slice(first, first + step)
                answer[which, row, draws] = _log_alike(
                    self.correlations[draws], means[draws], order, points, row, asked
                )
        return answer

    # -- outcomes -----------------------------------------------------------------------------------------

    def _log_table(self) -> Floats:
        answer = np.full((len(self), self.n_outcomes), -np.inf)
        places = np.arange(self.n_outcomes).reshape(self.cards)
        for rows in self._blocks(self.n_outcomes):
            for group in self._groups(rows):
                for row, table in zip(group.rows, tabulate(*self._visit(group)), strict=True):
                    answer[row, places[self._where(row)].ravel()] = np.log(table)
        return answer

    def _where(self, row: int) -> tuple[int | slice, ...]:
        """Return which part of a table over all variables agrees with what is known of a row."""
        known = self.evidence[row, list(self.variables)]
        return tuple(slice(None) if value == UNKNOWN else int(value) for value in known)

    def _count_marginals(self) -> Floats:
        if self.n_variables > FEW:
            blocks = row_blocks(max(1, len(self)), _DRAWS * self.n_variables)
            return np.concatenate([self[block]._drawn_counts() for block in blocks])
        return np.concatenate([atoms._count_marginals() for atoms in self._table_blocks()])

    def _drawn_counts(self) -> Floats:
        draws = self._draws(_DRAWS, partial(draw_alike, size=_DRAWS, seed=self.seed))
        return Atoms.from_draws(self.cards, draws)._count_marginals()

    def _top_k(self, k: int) -> Ranking:
        codes = np.full((len(self), k, self.n_variables), UNKNOWN)
        log_prob, proven = np.full((len(self), k), -np.inf), np.ones(len(self), bool)
        for rows in self._blocks(2 ** min(self.n_variables, FEW)):
            for group in self._groups(rows):
                found, probability, proof = best_free(
                    *self._visit(group), min(k, 2 ** len(group.free)), self.search.max_nodes, self.seed
                )
                place = np.ix_(group.rows, np.arange(found.shape[1]))
                codes[place], log_prob[place] = self._complete(group, found), np.log(probability)
                proven[group.rows] = proof
        return Ranking(codes, log_prob, proven)

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        return self._draws(size, partial(draw_free, size=size, rng=rng))

    def _draws(self, size: int, draw: Callable[..., Codes]) -> Codes:
        """Return outcomes (size, n, m), where `draw` gives the free variables of a group of rows."""
        draws = np.empty((len(self), size, self.n_variables), dtype=np.intp)
        for rows in self._blocks(size * self.n_variables):
            for group in self._groups(rows):
                draws[group.rows] = self._complete(group, draw(*self._visit(group)))
        return draws.transpose(1, 0, 2)

    def _complete(self, group: _KnownPattern, free: Codes) -> Codes:
        """Put the values (r, k, f) of free variables beside those that are known, (r, k, m)."""
        known = self.evidence[group.rows][:, list(self.variables)]
        codes = np.repeat(known[:, None], free.shape[1], axis=1)
        codes[..., list(group.free)] = free
        return codes


class _KnownPattern(NamedTuple):
    """Rows in which the same variables are known."""

    rows: npt.NDArray[np.intp]  # (r,)
    known: tuple[int, ...]  # latent variables with evidence
    free: tuple[int, ...]  # positions, among the variables of the distribution, of those without


def _checked_correlations(correlations: npt.ArrayLike) -> Floats:
    """Return correlation matrices (D, q, q); raise `InputError` for others."""
    array = np.asarray(correlations, dtype=float)
    if array.ndim != 3 or array.shape[1] != array.shape[2] or 0 in array.shape:
        raise InputError(f"Probit: correlations must be of shape (D, q, q), found {array.shape}.")
    unit = np.isclose(np.diagonal(array, axis1=1, axis2=2), 1.0, atol=1e-6).all()
    if not unit or not (np.abs(array) <= 1 + 1e-6).all() or not np.allclose(array, array.transpose(0, 2, 1)):
        raise InputError(
            "Probit: correlations must be symmetric matrices of numbers between -1 and 1 with a unit"
            " diagonal; divide a covariance matrix, and the means, by the standard deviations."
        )
    return array


def _check_means(means: npt.NDArray | LazyMeans, correlations: Floats) -> None:
    """Raise unless means (D, n, q) fit the correlations (D, q, q)."""
    shape = tuple(means.shape)
    if len(shape) != 3 or (shape[0], shape[2]) != correlations.shape[:2]:
        raise InputError(
            f"Probit: means of shape {shape} do not fit {len(correlations)} correlation matrices of"
            f" {correlations.shape[1]} variables; they must be of shape (D, n, q)."
        )
    if isinstance(means, np.ndarray) and not np.isfinite(means).all():
        raise InputError("Probit: means must be finite numbers.")


def _default_points(n_draws: int) -> int:
    """Return the power of two of points per draw that makes enough of all draws."""
    return 2 ** max(0, math.ceil(math.log2(_SIZE / n_draws)))


def _distinct_rows(kinds: npt.NDArray[np.generic]) -> Iterator[tuple[npt.NDArray[np.generic], Codes]]:
    """Yield the distinct rows of a matrix (r, q) of small integers, with the positions of each."""
    if not len(kinds) or (kinds == kinds[0]).all():
        if len(kinds):
            yield kinds[0], np.arange(len(kinds))
        return
    distinct, number = np.unique(kinds, axis=0, return_inverse=True)
    order = np.argsort(number, kind="stable")
    starts = np.cumsum(np.bincount(number))
    yield from zip(distinct, np.split(order, starts[:-1]), strict=True)


def _log_alike(
    correlations: Floats, means: Floats, order: tuple[int, ...], points: Floats, row: Codes, asked: Codes
) -> Floats:
    """Return the log-probabilities (Q, b) of codes (Q, v) in some rows (Q,), for b draws at equal points."""
    b, n_points = len(means), points.shape[1]
    answer = np.zeros((len(row), b))
    if order:
        visit = Visit.make(correlations, order, np.tile(points, b), n_points)
        log_paths(row, asked, visit.scale(means), visit.factors, visit.u, visit.log_u, answer)
    return answer


def _quantiles(values: Floats, weights: Floats, level: float) -> Floats:
    """Return the two ends (..., 2) of what holds the middle `level` of weighted values (..., D).

    Each end is one of the values: between values of very unequal weight there is nothing to interpolate.
    """
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    below = np.cumsum(np.take_along_axis(np.broadcast_to(weights, values.shape), order, axis=-1), axis=-1)
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        # Slightly less, so that a sum that is a rounding error short of the share still reaches it.
        place = (below < share * (1 - 1e-12) * below[..., -1:]).sum(axis=-1, keepdims=True)
        ends.append(np.take_along_axis(ordered, place, axis=-1))
    return np.concatenate(ends, axis=-1)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"Probit: the level of an interval must lie between 0 and 1, found {level}.")

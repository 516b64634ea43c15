"""Weighted averages of distributions, and the bounds that prove their modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from tuplet.core.exceptions import InputError
from tuplet.core.limits import row_blocks, rows_per_block
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.joint.collect import distinct_outcomes, positions
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.factor import Factor
from tuplet.joint.policies import AboveThreshold, Beam
from tuplet.joint.search import Search, best_first

_FEW = 64
"""Outcomes up to which all of them are evaluated rather than searched."""

_CANDIDATES = 4
"""Outcomes that each component proposes for the mode, at least."""

_MARGIN = np.log(2)
"""Chains list their outcomes down to half of the k-th probability known so far. An outcome that beats it must
exceed it in some component, so the margin is not needed for a proof. But without it an outcome that a single
chain favours keeps a bound above the answer until it is complete; with it a fifth of the nodes suffice."""

_NEARLY = np.log(0.9)
"""Log-weight from which a component is the leading one: its best outcomes are then those of the mixture."""

_BLOCK = 64
"""Rows that are searched together, at least: chains call their classifiers with many rows at a time."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Mixture(JointDistribution):
    """A sum of distributions of any form with weights that may differ from row to row.

    What mixtures of trees, ensembles of chains and stacked models return.

    Parameters
    ----------
    log_weights : array, shape (n, C)
        Unnormalised; minus infinity where a row does without a component.
    components : tuple of JointDistribution
        C distributions of the same n rows and the same variables.
    search : Search
        Budget of the search for the most probable outcomes: branch and bound from the components' best
        ones, which proves the answer where the budget suffices.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint.atoms import Atoms
    >>> low = Atoms((2, 2), np.array([[[0, 0], [0, 1]]]), np.log([[0.5, 0.5]]))
    >>> high = Atoms((2, 2), np.array([[[0, 1], [1, 1]]]), np.log([[0.5, 0.5]]))
    >>> joint = Mixture(np.log([[0.5, 0.5]]), (low, high))
    >>> joint.mode().codes
    array([[0, 1]])
    >>> joint.condition([UNKNOWN, 0]).log_weights
    array([[  0., -inf]])
    """

    log_weights: Floats
    components: tuple[JointDistribution, ...]
    search: Search = field(default_factory=Search)
    cards: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        components, log_weights = tuple(self.components), np.asarray(self.log_weights, dtype=float)
        if not components or log_weights.ndim != 2 or log_weights.shape[1] != len(components):
            raise InputError(
                f"Mixture: log_weights of shape {log_weights.shape} do not fit {len(components)} components."
            )
        for component in components:
            if component.cards != components[0].cards or len(component) != len(log_weights):
                raise InputError(
                    f"Mixture: all components must have {len(log_weights)} rows and the cardinalities"
                    f" {components[0].cards}, found {len(component)} rows and {component.cards}."
                )
        with np.errstate(divide="ignore"):
            total = logsumexp(log_weights, axis=1, keepdims=True)
        if not np.isfinite(total).all():
            raise InputError("Mixture: the weights of a row must be finite and not all zero.")
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "log_weights", log_weights - total)
        object.__setattr__(self, "cards", components[0].cards)

    def __len__(self) -> int:
        return len(self.log_weights)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        components = tuple(component._take(rows) for component in self.components)
        return type(self)(self.log_weights[rows], components, self.search)

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`: the worst of the components'."""
        return max(component.tolerance for component in self.components)

    @property
    def scores_exactly(self) -> bool:
        """See `JointDistribution.scores_exactly`."""
        return all(component.scores_exactly for component in self.components)

    @property
    def has_exact_marginals(self) -> bool:
        """See `JointDistribution.has_exact_marginals`."""
        return all(component.has_exact_marginals for component in self.components)

    # -- averages -----------------------------------------------------------------------------------------

    def _log_prob(self, codes: Codes) -> Floats:
        return _mix(self.log_weights, [component._log_prob(codes) for component in self.components])

    def _bound(self, codes: Codes) -> Floats:
        return _mix(self.log_weights, [component._bound(codes) for component in self.components])

    def _average(self, query: Callable[[JointDistribution], Floats]) -> Floats:
        """Average the components' answers (n, ...)."""
        weights = np.exp(self.log_weights)
        total: Floats | None = None
        for c, component in enumerate(self.components):
            answer = query(component)
            part = weights[:, c].reshape(-1, *[1] * (answer.ndim - 1)) * answer
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None
        return total

    def _log_probs(self, outcomes: Codes) -> Floats:
        return self._log_average(lambda component: component._log_probs(outcomes))

    def _log_table(self) -> Floats:
        return self._log_average(lambda component: component._log_table())

    def _log_average(self, query: Callable[[JointDistribution], Floats]) -> Floats:
        """Average the components' log-probabilities (n, a), one component at a time."""
        total = self.log_weights[:, :1] + query(self.components[0])
        for c, component in enumerate(self.components[1:], start=1):
            np.logaddexp(total, self.log_weights[:, c, None] + query(component), out=total)
        return total

    def _flat_marginals(self) -> Floats:
        return np.minimum(self._average(lambda component: component._flat_marginals()), 1.0)

    def _count_marginals(self) -> Floats:
        return self._average(lambda component: component._count_marginals())

    def pairwise(self) -> dict[tuple[int, int], Floats]:
        """See `JointDistribution.pairwise`."""
        weights = np.exp(self.log_weights)[..., None, None]
        tables = [component.pairwise() for component in self.components]
        return {
            pair: np.sum([weights[:, c] * table[pair] for c, table in enumerate(tables)], axis=0)
            for pair in tables[0]
        }

    def entropy(self) -> Floats:
        """See `JointDistribution.entropy`; rows with a single component have that of this component."""
        if (self._single == UNKNOWN).all():
            return super().entropy()
        answer = np.empty(len(self))
        for rows, part in self._by_components():
            answer[rows] = part.entropy()
        return answer

    # -- conditioning and draws ---------------------------------------------------------------------------

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        answers = [component._condition(codes) for component in self.components]
        log_weights = self.log_weights + np.stack([log_evidence for _, log_evidence in answers], axis=1)
        with np.errstate(divide="ignore"):
            log_evidence = np.asarray(logsumexp(log_weights, axis=1))
        # A row that no component can explain falls back to its weights, as its components do.
        log_weights = np.where(np.isneginf(log_evidence)[:, None], self.log_weights, log_weights)
        return Mixture(log_weights, tuple(joint for joint, _ in answers), self.search), log_evidence

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        components = tuple(component._marginal(variables) for component in self.components)
        return Mixture(self.log_weights, components, self.search)

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        cumulative = np.cumsum(np.exp(self.log_weights), axis=1)
        uniform = rng.random((size, len(self), 1)) * cumulative[:, -1:]
        choice = (uniform >= cumulative[:, :-1]).sum(axis=2)
        draws = np.empty((size, len(self), self.n_variables), dtype=np.intp)
        for c, component in enumerate(self.components):
            chosen = choice == c
            rank = np.cumsum(chosen, axis=0) - 1  # place among the draws of this component in its row
            some = component._sample(int(chosen.sum(axis=0).max(initial=0)), rng)
            draws[chosen] = some[rank[chosen], np.nonzero(chosen)[1]]
        return draws

    # -- the most probable outcomes -----------------------------------------------------------------------

    def _top_k(self, k: int) -> Ranking:
        if (self._single != UNKNOWN).any():
            return self._rank_single(k)
        leading = self._leading()
        ranking = None if leading is None or k > 1 else self._mode_by(leading)
        if ranking is None:
            ranking = self._rank_all(k) if leading is None else self._rank_by(leading, k)
        return ranking._replace(proven=ranking.proven & self.scores_exactly)

    def _rank_all(self, k: int) -> Ranking:
        mixture = self._flatten()
        if self.n_outcomes <= _FEW:
            ranking = mixture._in_blocks(rows_per_block(_FEW), lambda part: part.to_atoms(_FEW)._top_k(k))
        elif (n_listed := mixture._n_listed()) > 0:
            ranking = mixture._in_blocks(rows_per_block(n_listed), lambda part: part._rank_listed(k))
        else:
            chains = sum(isinstance(part, Autoregressive) for part in mixture.components)
            step = rows_per_block(chains * self.search.max_nodes) if chains else len(self)
            ranking = mixture._in_blocks(max(_BLOCK, step), lambda part: part._search(k))
        return ranking

    def _leading(self) -> int | None:
        """Return the component that has nearly all weight in every row, if there is one."""
        first = int(self.log_weights[0].argmax())
        return first if len(self.components) == 2 and (self.log_weights[:, first] > _NEARLY).all() else None

    def _mode_by(self, leading: int) -> Ranking | None:
        """Return the mode of the leading component; rows in which others may be better are ranked.

        All others have at most the probability of the second in this component, and that of the mode in the
        other. None if the component does not provide the second.
        """
        component = self.components[leading]
        found = component._mode_and_next() if isinstance(component, FactorGraph) else None
        if found is None:
            return None
        best, last = found
        own, its = self.log_weights[:, leading], self.log_weights[:, 1 - leading]
        other = self.components[1 - leading]
        log_prob = np.logaddexp(own + best.log_prob[:, 0], its + other._log_prob(best.codes[None, :, 0])[0])
        rest = np.logaddexp(own + last, its + _peak(other))
        rows = np.flatnonzero(~(log_prob >= rest))
        ranking = best._replace(log_prob=log_prob[:, None])
        if len(rows):
            part = self._take(rows)
            for whole, some in zip(ranking, part._rank_by(leading, 1), strict=True):
                whole[rows] = some
        return ranking

    def _rank_by(self, leading: int, k: int) -> Ranking:
        """Rank the best outcomes of the leading component; rows in which others may be better are searched.

        All others have at most the probability of the last of these in this component, and that of its mode
        in the other.
        """
        best, other = self.components[leading].top_k(k + 1), self.components[1 - leading]
        own, its = self.log_weights[:, leading], self.log_weights[:, 1 - leading]
        there = best.codes[:, :, 0] != UNKNOWN
        codes = np.where(there[..., None], best.codes, 0)
        log_prob = np.logaddexp(
            own[:, None] + best.log_prob, its[:, None] + other._log_prob(codes.transpose(1, 0, 2)).T
        )
        ranking = _ranked(best.codes, np.where(there, log_prob, -np.inf), k)._replace(proven=best.proven)
        rest = np.logaddexp(own + best.log_prob[:, -1], its + other.mode().log_prob)
        is_open = (ranking.log_prob[:, -1] < rest) & (
            (best.codes.shape[1] < self.n_outcomes) | ~there.all(axis=1)
        )
        rows = np.flatnonzero(is_open & best.proven)
        if len(rows) and self.scores_exactly:  # a search with estimates proves nothing
            for whole, part in zip(ranking, self._take(rows)._rank_all(k), strict=True):
                whole[rows] = part
        return ranking

    def _rank_single(self, k: int) -> Ranking:
        n, m = len(self), self.n_variables
        answer = Ranking(np.empty((n, k, m), np.intp), np.empty((n, k)), np.empty(n, bool))
        for rows, part in self._by_components():
            for whole, some in zip(answer, part._top_k(k), strict=True):
                whole[rows] = some
        return answer

    @cached_property
    def _single(self) -> Codes:
        """The only component (n,) that a row has, `UNKNOWN` where it has several."""
        several = (self.log_weights > -np.inf).sum(axis=1) > 1
        return np.where(several, UNKNOWN, self.log_weights.argmax(axis=1))

    def _by_components(self) -> Iterator[tuple[npt.NDArray[np.intp], JointDistribution]]:
        """Yield rows that have a single component with this component, and the others as a mixture."""
        for c in np.unique(self._single):
            rows = np.flatnonzero(self._single == c)
            yield rows, (self if c == UNKNOWN else self.components[c])._take(rows)

    def _flatten(self) -> Mixture:
        """Return the same distribution without mixtures among its components."""
        log_weights: list[Floats] = []
        components: list[JointDistribution] = []
        for c, component in enumerate(self.components):
            weight = self.log_weights[:, c, None]
            if isinstance(component, Mixture):
                inner = component._flatten()
                components += inner.components
                log_weights.append(weight + inner.log_weights)
            else:
                components.append(component)
                log_weights.append(weight)
        return Mixture(np.concatenate(log_weights, axis=1), tuple(components), self.search)

    def _in_blocks(self, step: int, answer: Callable[[Mixture], Ranking]) -> Ranking:
        """Return the answers for some rows at a time, concatenated."""
        blocks = [np.arange(a, min(a + step, len(self))) for a in range(0, max(1, len(self)), step)]
        parts = [answer(self._take(rows) if len(blocks) > 1 else self) for rows in blocks]
        return Ranking(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _n_listed(self) -> int:
        """Atoms that all rows share, if the other components quickly evaluate outcomes; otherwise 0."""
        lists, others = self._lists_and_others()
        quick = all(isinstance(part, FactorGraph) and not part.hidden_cards for _, part in others)
        return sum(part.codes.shape[1] for _, part in lists) if quick else 0

    def _lists_and_others(self) -> tuple[list[tuple[int, Atoms]], list[tuple[int, JointDistribution]]]:
        """Split the components, with their positions, into lists of atoms that all rows share and others."""
        parts = list(enumerate(self.components))
        lists = [(c, part) for c, part in parts if isinstance(part, Atoms) and part._shared]
        return lists, [(c, part) for c, part in parts if not (isinstance(part, Atoms) and part._shared)]

    def _rank_listed(self, k: int) -> Ranking:
        """Evaluate all listed outcomes, and the best of the other components, which bound what is not listed.

        Rows in which an outcome without a place on the lists may be better are searched.
        """
        lists, others = self._lists_and_others()
        outcomes = np.concatenate([part.codes[0] for _, part in lists])
        outcomes = outcomes[distinct_outcomes(outcomes, self.cards)[0]]
        listed = Atoms._trusted(self.cards, outcomes[None], self._log_probs(outcomes))._top_k(k)
        if not others:
            return listed
        weights = self.log_weights[:, [c for c, _ in others]]
        log_total = np.asarray(logsumexp(weights, axis=1))
        present = np.isfinite(log_total)
        rest = _mixed(np.where(present[:, None], weights, 0.0), [part for _, part in others]).top_k(k)
        bound = np.where(present, log_total + rest.log_prob[:, -1], -np.inf)
        unlisted = (positions(outcomes, rest.codes, self.cards) == UNKNOWN) & (rest.codes[..., 0] != UNKNOWN)
        log_prob = np.where(unlisted & present[:, None], log_total[:, None] + rest.log_prob, -np.inf)
        merged = _best_of(listed, Ranking(rest.codes, log_prob, rest.proven), k)
        open_rows = np.flatnonzero(~rest.proven | (merged.log_prob[:, -1] < bound))
        if len(open_rows):
            for whole, part in zip(merged, self._take(open_rows)._search(k), strict=True):
                whole[open_rows] = part
        return merged

    def _search(self, k: int) -> Ranking:
        start, log_prob, log_rest = self._proposals(k)
        ranking = _ranked(start, log_prob, k)
        open_rows = np.flatnonzero(ranking.log_prob[:, -1] < log_rest)
        if len(open_rows):
            rest = self if len(open_rows) == len(self) else self._take(open_rows)
            found = rest._search_from(k, start[open_rows], log_prob[open_rows])
            for whole, part in zip(ranking, found, strict=True):
                whole[open_rows] = part
        return ranking

    def _search_from(self, k: int, start: Codes, log_prob: Floats) -> Ranking:
        """Search from proposals (n, c, m) with log-probabilities (n, c); see `_proposals`."""
        known = -np.partition(-log_prob, k - 1, axis=1)[:, k - 1]
        outcome_bounds = [
            OutcomeBounds.above(part, known - _MARGIN, self.search.max_nodes)
            if isinstance(part, Autoregressive)
            else None
            for part in self.components
        ]

        def expand(
            rows: npt.NDArray[np.intp], codes: Codes, variables: npt.NDArray[np.intp], bounds: Floats
        ) -> Floats:
            return self._expand(outcome_bounds, rows, codes, variables)

        order = _disagreement(start, log_prob)
        return best_first(len(self), self.cards, order, expand, k, self.search, (start, log_prob))

    def _proposals(self, k: int) -> tuple[Codes, Floats, Floats]:
        """Return outcomes (n, c, m) that are best in some component, and their log-probabilities (n, c).

        What no component proposes is less probable in each of them than its last proposal. So the weighted
        sum of these, the third of the answers, (n,), bounds all other outcomes.
        """
        proposed = [_propose(component, max(k, _CANDIDATES)) for component in self.components]
        codes = np.concatenate([each for each, _ in proposed], axis=1)
        log_rest = _mix(self.log_weights, [bound[None] for _, bound in proposed])[0]
        rows = np.broadcast_to(np.arange(len(self))[:, None, None], (*codes.shape[:2], 1))
        both = np.dstack([rows, codes + 1]).reshape(-1, codes.shape[2] + 1)  # UNKNOWN becomes 0
        first, _ = distinct_outcomes(both, (len(self), *(card + 1 for card in self.cards)))
        usable = np.zeros(codes.shape[:2], bool)
        usable.ravel()[first] = True  # an outcome that several components propose counts once
        usable &= (codes != UNKNOWN).all(axis=2)
        return codes, np.where(usable, self._log_prob(codes.transpose(1, 0, 2)).T, -np.inf), log_rest

    def _expand(
        self,
        outcome_bounds: list[OutcomeBounds | None],
        rows: npt.NDArray[np.intp],
        codes: Codes,
        variables: npt.NDArray[np.intp],
    ) -> Floats:
        """Bound children by the average of the components' bounds; see `Expand`."""
        card = self.cards[variables[0]]
        children = np.repeat(codes[None], card, axis=0)
        children[:, np.arange(len(rows)), variables] = np.arange(card)[:, None]
        complete = (children[0] != UNKNOWN).all(axis=1)
        values = np.empty((card, len(rows)))
        if complete.any():
            values[:, complete] = self._take(rows[complete])._log_prob(children[:, complete])
        if not complete.all():
            values[:, ~complete] = self._bound_by(outcome_bounds, rows[~complete], children[:, ~complete])
        return values.T

    def _bound_by(
        self, outcome_bounds: list[OutcomeBounds | None], rows: npt.NDArray[np.intp], codes: Codes
    ) -> Floats:
        packed = _BitLayout.of(self.cards).pack(codes)
        bounds = [
            component._take(rows)._bound(codes) if listed is None else listed.bound(rows, *packed)
            for component, listed in zip(self.components, outcome_bounds, strict=True)
        ]
        return _mix(self.log_weights[rows], bounds)


# -- bounds on the outcomes of a chain ---------------------------------------------------------------------


@dataclass(frozen=True)
class OutcomeBounds:
    """All outcomes above some probability, and a bound on every other one.

    The product of a chain's first conditionals bounds a partial assignment only as far as it fixes the first
    variables of the chain. A mixture of chains in different orders fixes few of these at a time; but an
    outcome more probable than the best one known so far must be so in at least one of its components, and
    of those outcomes a chain has few and finds them fast.

    Parameters
    ----------
    packed : array of uint64, shape (words, n, a)
        Outcomes, best first; see `_BitLayout`.
    log_prob : array, shape (n, a)
        Minus infinity for padding.
    log_floor : array, shape (n,)
        Upper bound on the log-probability of every outcome that is not listed.
    """

    packed: npt.NDArray[np.uint64]
    log_prob: Floats
    log_floor: Floats

    @classmethod
    def above(cls, joint: Autoregressive, log_threshold: Floats, width: int) -> OutcomeBounds:
        """List the outcomes above a threshold (n,), as far as that needs no more than `width` prefixes."""
        scale = joint._log_evidence  # a chain is walked without dividing by the evidence
        policy = AboveThreshold(log_threshold + scale, width, np.full(len(joint), -np.inf))
        layout = _BitLayout.of(joint.cards)
        # Packed part by part: as codes, padded to the longest row, they would take gigabytes.
        held = [
            (part.query, part.rank(), layout.pack(part.codes)[0], part.log_mass)
            for part in joint._chain.complete(joint.evidence, policy)
        ]
        shape = (len(joint), 1 + max((int(rank.max()) for _, rank, _, _ in held), default=0))
        packed, log_prob = np.zeros((layout.n_words, *shape), np.uint64), np.full(shape, -np.inf)
        for query, rank, outcomes, log_mass in held:
            packed[:, query, rank], log_prob[query, rank] = outcomes, log_mass
        order = np.argsort(-log_prob, axis=1, kind="stable")
        log_prob = np.take_along_axis(log_prob, order, axis=1) - scale[:, None]
        packed = np.take_along_axis(packed, order[None], axis=2)
        return cls(packed, log_prob, policy.floor - scale)

    def bound(
        self, rows: npt.NDArray[np.intp], wanted: npt.NDArray[np.uint64], mask: npt.NDArray[np.uint64]
    ) -> Floats:
        """Return upper bounds (s, r) on every completion of packed codes (words, s, r) of some rows (r,)."""
        answer = np.empty(wanted.shape[1:])
        for part in row_blocks(len(rows), len(answer) * self.log_prob.shape[1]):
            answer[:, part] = self._best_match(rows[part], wanted[..., part], mask[..., part])
        return np.maximum(answer, self.log_floor[rows])

    def _best_match(
        self, rows: npt.NDArray[np.intp], wanted: npt.NDArray[np.uint64], mask: npt.NDArray[np.uint64]
    ) -> Floats:
        match = np.ones((*wanted.shape[1:], self.log_prob.shape[1]), bool)
        for listed, value, bits in zip(self.packed, wanted, mask, strict=True):
            match &= (listed[rows] & bits[..., None]) == value[..., None]
        first = match.argmax(axis=2)
        return np.where(match.any(axis=2), self.log_prob[rows, first], -np.inf)


class _BitLayout(NamedTuple):
    """Where the bits of each variable lie, so that outcomes are compared by the word and not by the code."""

    word: npt.NDArray[np.intp]  # (m,)
    shift: npt.NDArray[np.uint64]  # (m,)
    mask: npt.NDArray[np.uint64]  # (m,)

    @classmethod
    def of(cls, cards: tuple[int, ...]) -> _BitLayout:
        """Fill words of 64 bits with the variables, none of them across two."""
        word, shift, used = [], [], [0]
        bits = [max(1, (card - 1).bit_length()) for card in cards]
        for need in bits:
            if used[-1] + need > 64:
                used.append(0)
            word.append(len(used) - 1)
            shift.append(used[-1])
            used[-1] += need
        mask = [((1 << need) - 1) << at for need, at in zip(bits, shift, strict=True)]
        return cls(np.array(word), np.array(shift, dtype=np.uint64), np.array(mask, dtype=np.uint64))

    @property
    def n_words(self) -> int:
        """Number of words that an outcome takes."""
        return int(self.word[-1]) + 1

    def pack(self, codes: Codes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Return the known values of codes (..., m) and the bits that they occupy, each (words, ...)."""
        shape = (self.n_words, *codes.shape[:-1])
        packed, mask = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.uint64)
        for j, word in enumerate(self.word):
            known = codes[..., j] != UNKNOWN
            value = np.where(known, codes[..., j], 0).astype(np.uint64)
            packed[word] |= value << self.shift[j]
            mask[word] |= np.where(known, self.mask[j], np.uint64(0))
        return packed, mask


# -- helpers of the mixture --------------------------------------------------------------------------------


def _mix(log_weights: Floats, log_values: list[Floats]) -> Floats:
    """Average values (s, n) of the components, given and returned as logarithms."""
    terms = np.stack(log_values, axis=-1)
    # A bound may be infinite; a component without weight must not turn it into nan.
    present = np.broadcast_to(log_weights > -np.inf, terms.shape)
    terms = np.add(terms, log_weights, out=np.full(terms.shape, -np.inf), where=present)
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(terms, axis=-1))


def _mixed(log_weights: Floats, components: list[JointDistribution]) -> JointDistribution:
    return Mixture(log_weights, tuple(components)) if len(components) > 1 else components[0]


def _peak(joint: JointDistribution) -> Floats:
    """Return an upper bound (n,) on the log-probability of all outcomes."""
    if not isinstance(joint, FactorGraph) or joint.log_normalizer is None or joint.hidden_cards:
        return joint.mode().log_prob
    tables = [factor.log_table for factor in joint.factors if isinstance(factor, Factor)]
    if len(tables) < len(joint.factors):
        return joint.mode().log_prob
    peaks = [table.reshape(-1, table.shape[-1]).max(axis=0) for table in tables]
    return np.asarray(sum(peaks) - joint.log_normalizer)


def _best_of(first: Ranking, second: Ranking, k: int) -> Ranking:
    """Return the k best of the outcomes of two rankings that have none in common."""
    log_prob = np.concatenate([first.log_prob, second.log_prob], axis=1)
    order = np.argsort(-log_prob, axis=1, kind="stable")[:, :k]
    codes = np.concatenate([first.codes, second.codes], axis=1)
    codes = np.take_along_axis(codes, order[..., None], axis=1)
    log_prob = np.take_along_axis(log_prob, order, axis=1)
    codes[np.isneginf(log_prob)] = UNKNOWN
    return Ranking(codes, log_prob, np.ones(len(codes), bool))


def _ranked(outcomes: Codes, log_prob: Floats, k: int) -> Ranking:
    """Return the k best of some outcomes (n, c, m) with log-probabilities (n, c)."""
    none = Ranking(outcomes[:, :0], log_prob[:, :0], np.ones(len(outcomes), bool))
    return _best_of(Ranking(outcomes, log_prob, none.proven), none, k)


def _propose(joint: JointDistribution, k: int) -> tuple[Codes, Floats]:
    """Return good outcomes (n, c, m) of a component, and a bound (n,) on the log-probability of others."""
    if isinstance(joint, Autoregressive):
        return _likely_outcomes(joint, k), np.zeros(len(joint))
    if isinstance(joint, Atoms):
        k = max(k, min(joint.codes.shape[1], _FEW))
    best = joint.top_k(k)
    return best.codes, np.where(best.proven, best.log_prob[:, -1], 0.0)


def _likely_outcomes(joint: Autoregressive, k: int) -> Codes:
    """Return up to k good outcomes (n, k, m) of a chain, by its best prefixes and without proof."""
    n, m = len(joint), joint.n_variables
    found = Ranking(np.full((n, k, m), UNKNOWN), np.full((n, k), -np.inf), np.zeros(n, bool))
    for part in joint._chain.complete(joint.evidence, Beam(k)):
        place = (part.query, part.rank())
        found.codes[place], found.log_prob[place] = part.codes, part.log_prob
    joint._rescue(found)
    return found.codes


def _disagreement(proposals: Codes, log_prob: Floats) -> list[int]:
    """Order the variables by how often proposals (n, c, m) differ in them from the best of their row.

    Where components prefer different values, the sum of their bounds exceeds the bound of their sum; so these
    variables are fixed first.
    """
    best = np.take_along_axis(proposals, log_prob.argmax(axis=1)[:, None, None], axis=1)
    share = (proposals != best).mean(axis=(0, 1)) if len(proposals) else np.zeros(proposals.shape[2])
    return [int(v) for v in np.argsort(-share, kind="stable")]

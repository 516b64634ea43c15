"""Chains of conditionals, and the distributions of some of their variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Self, cast, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.limits import ENUMERATION_LIMIT, FEW_OUTCOMES, row_blocks
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.joint.chain import (
    ConditionalChain,
    DenseChain,
    Summary,
    stack,
    tally_counts,
    tally_pairs,
)
from tuplet.joint.frontier import Conditional, Frontier
from tuplet.joint.linear_chain import LinearChain, LinearConditional
from tuplet.joint.policies import Beam, Enumerate, MonteCarlo, Multinomial
from tuplet.joint.search import Search, best_first, dive_width

_RANKED, _SAFE = 256, -600.0
"""Outcomes up to which sorting tables beats the search, and log-probabilities that products keep exactly."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Autoregressive(JointDistribution):
    """p(y) as a product of p(y_j | earlier variables), in some order of the variables: chains.

    Log-probabilities of complete outcomes, draws without evidence, and the search for the mode are exact
    whatever the engine. Sums over outcomes (marginals, partial label sets, entropy) are the engine's work.

    Parameters
    ----------
    cards : tuple of int
        Cardinalities of the m variables.
    order : tuple of int
        A permutation of the variables; each depends on the ones before it.
    conditional : Conditional
        Called as `conditional(variable, rows, codes)`, once per step for all prefixes of all rows.
    n : int
        Rows of the batch that `conditional` was made for.
    evidence : array of int, shape (rows, m), optional
        Known values, `UNKNOWN` = free: this then is the distribution given them.
    engine : "auto", Enumerate or MonteCarlo
        "auto" enumerates where no row has more than 4,096 outcomes, or 65,536 if the conditional is linear
        (`LinearConditional`), and takes `MonteCarlo()` otherwise.
    search : Search
        Budget of the search for the most probable outcomes.
    rows : array of int, optional
        Positions in the batch of the conditional; all of them unless given.

    Notes
    -----
    Under `MonteCarlo` the marginal of a variable averages its conditional over the sampled prefixes, never
    the draws themselves, and the entropy averages the entropies of the conditionals. Evidence that has no
    free variable before it in the order costs no accuracy; other evidence is likelihood-weighted, exact if
    the free variables before its last position have no more than `size` combinations. Weighted evidence that
    none of the points can explain counts as impossible.

    `tolerance` is four standard errors of a probability of one half, 2 / sqrt(size), and with weighted
    evidence 4 / sqrt(n), where n is the smallest effective number of points of a row.

    Examples
    --------
    >>> import numpy as np
    >>> def conditional(variable, rows, codes):  # the second variable mostly repeats the first
    ...     if variable == 0:
    ...         return np.log(np.tile([0.4, 0.6], (len(rows), 1)))
    ...     return np.log(np.array([[0.9, 0.1], [0.2, 0.8]]))[codes[:, 0]]
    >>> joint = Autoregressive((2, 2), (0, 1), conditional, n=1)
    >>> joint.marginals()[1].round(2)
    array([[0.48, 0.52]])
    >>> joint.mode().codes
    array([[1, 1]])
    >>> joint.condition([-1, 0]).marginals()[0].round(2)
    array([[0.75, 0.25]])
    """

    cards: tuple[int, ...]
    order: tuple[int, ...]
    conditional: Conditional
    n: int
    evidence: Codes = None  # type: ignore[assignment]  # always an array once constructed
    engine: Literal["auto"] | Enumerate | MonteCarlo = "auto"
    search: Search = field(default_factory=Search)
    rows: npt.NDArray[np.intp] = None  # type: ignore[assignment]  # always an array once constructed
    _chain: ConditionalChain = field(init=False)

    def __post_init__(self) -> None:
        cards, order = tuple(int(card) for card in self.cards), tuple(int(v) for v in self.order)
        if sorted(order) != list(range(len(cards))):
            raise InputError(
                f"Autoregressive: order must name each of the {len(cards)} variables once, found {order}."
            )
        if self.engine != "auto" and not isinstance(self.engine, (Enumerate, MonteCarlo)):
            raise InputError(
                f"Autoregressive: engine must be 'auto', Enumerate() or MonteCarlo(), found {self.engine!r}."
            )
        origin = np.arange(self.n) if self.rows is None else np.asarray(self.rows, dtype=np.intp)
        object.__setattr__(self, "cards", cards)
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "rows", origin)
        evidence = self._as_codes(UNKNOWN if self.evidence is None else self.evidence)
        if evidence.ndim != 2:
            raise InputError(f"Autoregressive: evidence must be of shape (n, m), found {evidence.shape}.")
        object.__setattr__(self, "evidence", evidence)
        object.__setattr__(
            self, "_chain", ConditionalChain(cards, order, self.conditional, origin, self._choose_engine())
        )

    def _choose_engine(self) -> Enumerate | MonteCarlo:
        if self.engine != "auto":
            return self.engine
        if isinstance(self.conditional, LinearConditional) and self.n_outcomes <= ENUMERATION_LIMIT:
            return Enumerate()
        n_free = np.where(self.evidence == UNKNOWN, np.array(self.cards, dtype=float), 1.0).prod(axis=1)
        return Enumerate() if n_free.max(initial=1.0) <= FEW_OUTCOMES else MonteCarlo()

    def __len__(self) -> int:
        return len(self.rows)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        taken = replace(self, rows=self.rows[rows], evidence=self.evidence[rows])
        if "_log_evidence" in self.__dict__:
            self._pass_on(taken, self._log_evidence[rows])
        return taken

    def _pass_on(self, other: Autoregressive, log_evidence: Floats) -> None:
        """Copy the probability of the evidence, unless the other one computes it by a better engine."""
        if other._chain.engine == self._chain.engine:
            other.__dict__["_log_evidence"] = log_evidence

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`; defined in the notes of the class."""
        if isinstance(self._chain.engine, Enumerate):
            return 0.0
        if self.scores_exactly:
            return min(1.0, 2 / self._chain.engine.size**0.5)
        return min(1.0, 4 / float(self._summary.n_effective.min()) ** 0.5)

    @property
    def scores_exactly(self) -> bool:
        """See `JointDistribution.scores_exactly`."""
        return bool(self._chain.exact(self.evidence).all())

    # -- sums over outcomes -------------------------------------------------------------------------------

    def _posterior(self) -> Iterator[Frontier]:
        """Yield weighted prefixes that end at the last known value of their row."""
        return self._chain.reach(self.evidence, np.arange(len(self)))

    def _outcomes(self, depth: int) -> Iterator[Frontier]:
        """Yield weighted prefixes of at least `depth` variables, given the evidence."""
        for reached in self._posterior():
            yield from self._chain.follow(reached, depth)

    @cached_property
    def _summary(self) -> Summary:
        summary = Summary(self.cards, self.order, len(self))
        if self._dense is not None:
            for rows, table in self._dense.tables(self.evidence, np.arange(len(self))):
                summary.take_in(rows, table, self._dense.outcomes)
            return summary
        for reached in self._posterior():
            summary.reach(reached)
            self._follow(reached, summary)
        return summary

    def _follow(self, reached: Frontier, summary: Summary) -> None:
        """Take in what follows the last known values."""
        engine = self._chain.engine
        if self._linear is not None and isinstance(engine, MonteCarlo):
            dealt = engine.enter(reached)
            rows = self.rows[dealt.query[dealt.starts]]
            summary.follow(dealt, *self._linear.follow(rows, dealt, dealt.codes[:, self.order], engine))
            return
        for _ in self._chain.follow(reached, self.n_variables, observe=summary.observe):
            pass

    @cached_property
    def _linear(self) -> LinearChain | None:
        """The terms of all variables, where their logits are sums."""
        conditional = self.conditional
        return conditional.linear_chain() if isinstance(conditional, LinearConditional) else None

    @cached_property
    def _dense(self) -> DenseChain | None:
        """Tables of all outcomes, where the engine allows and the conditional is linear."""
        engine, linear = self._chain.engine, self._linear
        if linear is None or not isinstance(engine, Enumerate) or self.n_outcomes > engine.limit:
            return None
        return DenseChain(self.cards, self.order, linear, self.rows)

    def _atoms(self) -> Iterator[Atoms]:
        """Yield the tables of blocks of rows, in order, as distributions."""
        assert self._dense is not None
        for _, table in self._dense.tables(self.evidence, np.arange(len(self))):
            with np.errstate(divide="ignore"):
                yield Atoms(self.cards, self._dense.outcomes[None], np.log(table))

    @cached_property
    def _log_evidence(self) -> Floats:
        return self._log_sum(self.evidence, np.arange(len(self)))

    def _log_sum(self, known: Codes, rows: npt.NDArray[np.intp]) -> Floats:
        """Return the log-probability (q,) of known values (q, m) of some rows (q,), in ascending order."""
        if self._linear is None:
            return self._chain.log_prob(known, rows)
        direct = (self._chain.leading(known) == known).all(axis=1)  # nothing free in front: no sum at all
        answer, summed = np.empty(len(rows)), np.flatnonzero(~direct)
        answer[direct] = self._linear.log_prob(self.rows[rows[direct]], known[direct][:, self.order])
        answer[summed] = self._log_totals(known[summed], rows[summed])
        return answer

    def _log_totals(self, known: Codes, rows: npt.NDArray[np.intp]) -> Floats:
        """Return the same by sums over what is free."""
        if self._dense is None or not len(rows):
            return self._chain.log_prob(known, rows)
        answer = np.empty(len(rows))
        for block, table in self._dense.tables(known, rows):
            with np.errstate(divide="ignore"):
                answer[block] = np.log(table.sum(axis=1))
        return answer

    def _flat_marginals(self) -> Floats:
        return self._summary.marginals

    def entropy(self) -> Floats:
        """See `JointDistribution.entropy`; an estimate under `MonteCarlo`."""
        return np.maximum(0.0, self._summary.entropy)

    def pairwise(self) -> dict[tuple[int, int], Floats]:
        """See `JointDistribution.pairwise`."""
        m = self.n_variables
        if self._dense is not None and len(self):
            parts = [atoms.pairwise() for atoms in self._atoms()]
            return {pair: np.concatenate([part[pair] for part in parts]) for pair in parts[0]}
        return tally_pairs(self._outcomes(m), self.cards, range(m), len(self))

    def _count_marginals(self) -> Floats:
        m = self.n_variables
        if self._dense is not None and len(self):
            return np.concatenate([atoms._count_marginals() for atoms in self._atoms()])
        return tally_counts(self._outcomes(m), range(m), len(self))

    def _log_table(self) -> Floats:
        if self._dense is None or not len(self):
            return super()._log_table()
        return np.concatenate([atoms.log_weights for atoms in self._atoms()])

    def to_atoms(self, limit: int = ENUMERATION_LIMIT) -> Atoms:
        """See `JointDistribution.to_atoms`; `limit` counts outcomes of positive probability."""
        if self._dense is not None and self.n_outcomes <= limit:
            return super().to_atoms(limit)
        return self._enumerated(limit, self.n_variables)

    def _enumerated(self, limit: int, depth: int) -> Atoms:
        """Return all prefixes of `depth` variables, whatever the engine."""
        exact = replace(self, engine=Enumerate(limit))
        return stack(exact._outcomes(depth), self.cards, len(self))

    # -- probabilities of given codes ---------------------------------------------------------------------

    def _log_prob(self, codes: Codes) -> Floats:
        return self._score(codes, leading=False)

    def _bound(self, codes: Codes) -> Floats:
        # The known values without a free one before them: never more than m evaluations, never sampled.
        return self._score(codes, leading=True)

    def _score(self, codes: Codes, leading: bool) -> Floats:
        s, n, m = codes.shape
        answer = np.full((s, n), -np.inf)
        for block in row_blocks(n, s * m):
            rows = np.repeat(np.arange(block.start, block.stop), s)
            wanted = codes[:, block].transpose(1, 0, 2).reshape(-1, m)
            given = self.evidence[rows]
            possible = ((wanted == given) | (wanted == UNKNOWN) | (given == UNKNOWN)).all(axis=1)
            merged = np.where(wanted == UNKNOWN, given, wanted)[possible]
            if leading:
                merged = self._chain.leading(merged)
            scores = np.full(len(rows), -np.inf)
            scores[possible] = self._log_sum(merged, rows[possible])
            answer[:, block] = scores.reshape(-1, s).T
        return np.minimum(answer - self._log_evidence, 0.0)

    def _condition(self, codes: Codes) -> tuple[Autoregressive, Floats]:
        log_prob = self._log_prob(codes[None])[0]
        possible = log_prob > -np.inf
        known = np.where(possible[:, None] & (codes != UNKNOWN), codes, self.evidence)
        given = replace(self, evidence=known)
        self._pass_on(given, self._log_evidence + np.where(possible, log_prob, 0.0))
        return given, log_prob

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        first = self.order[: len(variables)]
        others = [v for v in range(self.n_variables) if v not in variables]
        if set(first) != set(variables) or (self.evidence[:, others] != UNKNOWN).any():
            return Subset(self, variables)
        return replace(
            self,
            cards=tuple(self.cards[v] for v in variables),
            order=tuple(variables.index(v) for v in first),
            conditional=_Renamed.first(self.conditional, variables, self.n_variables),
            evidence=self.evidence[:, list(variables)],
        )

    # -- outcomes -----------------------------------------------------------------------------------------

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        draws = np.empty((len(self), size, self.n_variables), dtype=np.intp)
        for reached in self._posterior() if size else ():
            for part in self._chain.follow(reached, self.n_variables, Multinomial(size, rng)):
                rows = part.query[part.starts]
                chosen = np.repeat(np.arange(len(part)), part.count).reshape(len(rows), size)
                draws[rows] = part.codes[rng.permuted(chosen, axis=1)]
        return draws.transpose(1, 0, 2)

    def _top_k(self, k: int) -> Ranking:
        if self._dense is not None and len(self) and self.n_outcomes <= _RANKED:
            parts = [atoms._top_k(k) for atoms in self._atoms()]
            log_prob = np.concatenate([part.log_prob for part in parts])
            if (log_prob > _SAFE).all():  # elsewhere products may have lost digits, or all of them
                codes = np.concatenate([part.codes for part in parts])
                return Ranking(codes, log_prob, np.ones(len(self), dtype=bool))
        found = self._best(k)
        self._rescue(found)
        log_prob = np.minimum(found.log_prob - self._log_evidence[:, None], 0.0)
        return Ranking(found.codes, log_prob, found.proven)

    def _best(self, k: int) -> Ranking:
        """Search the k most probable outcomes that agree with the evidence, with its probability in them."""
        if self._linear is None:
            return best_first(len(self), self.cards, self.order, self._expand, k, self.search, dive=k)
        known, budget = self.evidence[:, self.order], self.search.max_nodes
        found = self._linear.search(self.rows, known, k, max_nodes=budget, beam=dive_width(k))
        codes = np.empty(found.codes.shape, dtype=np.intp)
        codes[..., self.order] = found.codes
        return found._replace(codes=codes)

    def _expand(
        self, rows: npt.NDArray[np.intp], codes: Codes, variables: npt.NDArray[np.intp], bounds: Floats
    ) -> Floats:
        """Bound children by the probability of their prefix; see `Expand`."""
        values = np.empty((len(rows), self.cards[variables[0]]))
        for variable in np.unique(variables):
            at = np.flatnonzero(variables == variable)
            log_p = self.conditional(int(variable), self.rows[rows[at]], codes[at])
            known = self.evidence[rows[at], variable][:, None]
            possible = (known == UNKNOWN) | (known == np.arange(values.shape[1]))
            values[at] = np.where(possible, bounds[at, None] + log_p, -np.inf)
        return values

    def _rescue(self, found: Ranking) -> None:
        """Fill rows without any outcome: complete prefixes that are known to reach the evidence."""
        barren = np.flatnonzero(np.isneginf(found.log_prob[:, 0]))
        some = self._take(barren)
        for reached in some._posterior() if len(barren) else ():
            for part in some._chain.follow(reached, self.n_variables, Beam(found.codes.shape[1])):
                place = (barren[part.query], part.rank())
                found.codes[place], found.log_prob[place] = part.codes, part.log_prob


@final
@dataclass(frozen=True, eq=False, repr=False)
class Subset(JointDistribution):
    """Variables of a chain from which earlier ones are summed out: every query is a query to the chain.

    A view, not a list of atoms: it inherits the engine and so the `tolerance` of the chain, and the exact
    answers stay exact.

    Parameters
    ----------
    joint : Autoregressive
    variables : tuple of int
        Positions in `joint`, in the order of the variables here.

    Examples
    --------
    >>> import numpy as np
    >>> def conditional(variable, rows, codes):
    ...     if variable == 0:
    ...         return np.log(np.tile([0.4, 0.6], (len(rows), 1)))
    ...     return np.log(np.array([[0.9, 0.1], [0.2, 0.8]]))[codes[:, 0]]
    >>> Subset(Autoregressive((2, 2), (0, 1), conditional, n=1), (1,)).mode().codes
    array([[1]])
    """

    joint: Autoregressive
    variables: tuple[int, ...]
    cards: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cards", tuple(self.joint.cards[v] for v in self.variables))

    def __len__(self) -> int:
        return len(self.joint)

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        return replace(self, joint=self.joint._take(rows))

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`."""
        return self.joint.tolerance

    def _embed(self, codes: Codes) -> Codes:
        return _embed(codes, self.variables, self.joint.n_variables)

    @property
    def _depth(self) -> int:
        """Variables of the chain that matter here."""
        return 1 + max(self.joint.order.index(v) for v in self.variables)

    def _outcomes(self) -> Iterator[Frontier]:
        return self.joint._outcomes(self._depth)

    def _log_prob(self, codes: Codes) -> Floats:
        return self.joint._log_prob(self._embed(codes))

    def _bound(self, codes: Codes) -> Floats:
        return self.joint._bound(self._embed(codes))

    def _flat_marginals(self) -> Floats:
        marginals = self.joint.marginals()
        return np.concatenate([marginals[v] for v in self.variables], axis=1)

    def _top_k(self, k: int) -> Ranking:
        atoms = stack(self._outcomes(), self.joint.cards, len(self))._marginal(self.variables)
        ranking = atoms._top_k(k)
        return ranking._replace(proven=np.full(len(self), self.tolerance == 0))

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        return self.joint._sample(size, rng)[..., self.variables]

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        joint, log_evidence = self.joint._condition(self._embed(codes))
        return replace(self, joint=joint), log_evidence

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        return self.joint._marginal(tuple(self.variables[v] for v in variables))

    def pairwise(self) -> dict[tuple[int, int], Floats]:
        """See `JointDistribution.pairwise`."""
        return tally_pairs(self._outcomes(), self.joint.cards, self.variables, len(self))

    def _count_marginals(self) -> Floats:
        return tally_counts(self._outcomes(), self.variables, len(self))

    def to_atoms(self, limit: int = ENUMERATION_LIMIT) -> Atoms:
        """See `JointDistribution.to_atoms`; `limit` counts what the chain can be up to the last variable."""
        return self.joint._enumerated(limit, self._depth)._marginal(self.variables).to_atoms()


@dataclass(frozen=True)
class _Renamed:
    """The conditional of the first variables of an order, called by their new positions."""

    conditional: Conditional
    variables: tuple[int, ...]
    n_variables: int

    @classmethod
    def first(cls, conditional: Conditional, variables: tuple[int, ...], n_variables: int) -> _Renamed:
        """Rename a conditional; a linear one stays linear."""
        kind = _RenamedLinear if isinstance(conditional, LinearConditional) else cls
        return kind(conditional, variables, n_variables)

    def __call__(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """See `Conditional`."""
        return self.conditional(
            self.variables[variable], rows, _embed(codes, self.variables, self.n_variables)
        )


class _RenamedLinear(_Renamed):
    """See `_Renamed` and `LinearConditional`."""

    def linear_chain(self) -> LinearChain:
        """See `LinearConditional.linear_chain`."""
        return self._first

    @cached_property
    def _first(self) -> LinearChain:
        return cast(LinearConditional, self.conditional).linear_chain().first(len(self.variables))


def _embed(codes: Codes, variables: tuple[int, ...], n_variables: int) -> Codes:
    """Return codes (..., v) of some variables as codes of all, `UNKNOWN` for the others."""
    full = np.full((*codes.shape[:-1], n_variables), UNKNOWN, dtype=np.intp)
    full[..., variables] = codes
    return full

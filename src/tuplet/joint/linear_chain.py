"""Chains whose conditionals are softmax models of sums: compiled code answers their queries.

The logits of a variable are what x adds and what each of the earlier variables adds; both are known once x
is. Then an evaluation is a short sum, and calling a function for it would take a thousand times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, final, runtime_checkable

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import Ranking, all_outcomes, category_offsets
from tuplet.joint.chain_kernels import (
    ChainArrays,
    follow_chains,
    score_prefixes,
    search_chains,
    tabulate_chains,
)
from tuplet.joint.frontier import Frontier
from tuplet.joint.policies import MonteCarlo


class LinearTerms(NamedTuple):
    """The logits of one variable, and how its probabilities follow from them.

    p(y) = scale * softmax(logits)(y) + share(y), where logits = base + the effects of the earlier variables.
    """

    base: Floats  # (n, c) by x; a single column is the logit of the second of two classes
    effects: dict[int, Floats]  # (k_i, c) by earlier variable
    classes: Codes  # (c,), or (2,) for a single column: the value of each class
    scale: float
    share: Floats  # (k,)


@runtime_checkable
class LinearConditional(Protocol):
    """A conditional whose variables all have `LinearTerms`."""

    def linear_chain(self) -> LinearChain:
        """Return all terms, packed; it is called again and again, and packs them once."""


@final
@dataclass(frozen=True, eq=False)
class LinearChain:
    """The terms of all variables of a chain, in its order.

    Parameters
    ----------
    arrays : ChainArrays
    base : array, shape (n, logits)
        What x adds to the logits.
    """

    arrays: ChainArrays
    base: Floats

    @classmethod
    def pack(cls, cards: Sequence[int], order: Sequence[int], terms: Sequence[LinearTerms]) -> LinearChain:
        """Pack the terms of the variables, which are given by their positions.

        Examples
        --------
        >>> first = LinearTerms(np.zeros((1, 1)), {}, np.array([0, 1]), 1.0, np.zeros(2))
        >>> second = LinearTerms(np.zeros((1, 1)), {0: np.array([[0], [2]])}, *first[2:])
        >>> chain = LinearChain.pack((2, 2), (0, 1), [first, second])
        >>> np.exp(chain.log_prob(np.array([0]), np.array([[1, 1]]))).round(3)
        array([0.44])
        """
        place = {variable: t for t, variable in enumerate(order)}
        ordered, sizes = [terms[v] for v in order], [int(cards[v]) for v in order]
        columns = category_offsets([0 if card == 1 else 1 if card == 2 else card for card in sizes])
        arrays = ChainArrays(
            np.array(sizes, dtype=np.int64),
            category_offsets([each.base.shape[1] for each in ordered]),
            columns,
            category_offsets(sizes),
            category_offsets([len(each.classes) for each in ordered]),
            np.concatenate([each.classes for each in ordered]).astype(np.int64, copy=False),
            np.array([each.scale for each in ordered], dtype=float),
            np.concatenate([each.share for each in ordered]).astype(float, copy=False),
            np.vstack([_slopes(each, place, columns) for each in ordered]),
        )
        return cls(arrays, np.hstack([_base(each) for each in ordered]))

    def first(self, depth: int) -> LinearChain:
        """Return the chain of the first variables."""
        a = self.arrays
        arrays = ChainArrays(
            a.cards[:depth],
            a.logits[: depth + 1],
            a.columns[: depth + 1],
            a.values[: depth + 1],
            a.first_class[: depth + 1],
            a.classes[: a.first_class[depth]],
            a.scale[:depth],
            a.share[: a.values[depth]],
            a.slopes[: a.logits[depth], : a.columns[depth]].copy(),
        )
        return replace(self, arrays=arrays, base=self.base[:, : a.logits[depth]].copy())

    # -- queries; codes are in the order of the chain, rows are positions in the batch of x ------------------

    def log_prob(self, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Log-probabilities (q,) of the values (q, m) before the first unknown one, each in its row (q,)."""
        answer = np.empty(len(rows))
        score_prefixes(self.arrays, self.base, _packed(rows), _packed(codes), answer)
        return answer

    def tables(self, rows: npt.NDArray[np.intp]) -> Floats:
        """Probabilities (q, outcomes) of all outcomes, the last variable of the chain running fastest."""
        answer = np.empty((len(rows), int(np.prod(self.arrays.cards))))
        tabulate_chains(self.arrays, self.base, _packed(rows), *self._effects, answer)
        return answer

    @cached_property
    def _effects(self) -> tuple[Codes, Floats]:
        """What every prefix adds to the logits of the variable behind it, and where each variable starts."""
        arrays, effects = self.arrays, []
        for t in range(len(arrays.cards)):
            prefixes = self._columns(all_outcomes(arrays.cards[:t].tolist())) if t else np.zeros((1, 0))
            own = arrays.slopes[arrays.logits[t] : arrays.logits[t + 1], : arrays.columns[t]]
            effects.append((prefixes @ own.T).ravel())
        return category_offsets([len(each) for each in effects])[:-1], np.concatenate(effects)

    def _columns(self, codes: Codes) -> Floats:
        """Return the columns (q, w) of prefixes (q, t)."""
        arrays, t = self.arrays, codes.shape[1]
        columns = np.zeros((len(codes), arrays.columns[t]))
        for j in range(t):
            own = columns[:, arrays.columns[j] : arrays.columns[j + 1]]
            own[:] = codes[:, j, None] if own.shape[1] == 1 else codes[:, j, None] == np.arange(own.shape[1])
        return columns

    def search(
        self,
        rows: npt.NDArray[np.intp],
        known: Codes,
        k: int,
        *,
        max_nodes: int,
        beam: int,
    ) -> Ranking:
        """Search the k most probable outcomes that have the known values (q, m); see `best_first`."""
        codes = np.full((len(rows), k, known.shape[1]), UNKNOWN, np.int64)
        log_prob, proven = np.full((len(rows), k), -np.inf), np.zeros(len(rows), bool)
        # Of the present open nodes no more can be opened than the budget and one dive allow.
        capacity = max_nodes + beam * known.shape[1]
        search_chains(
            self.arrays,
            self.base,
            _packed(rows),
            _packed(known),
            max_nodes,
            k,
            beam,
            capacity,
            codes,
            log_prob,
            proven,
        )
        return Ranking(codes, log_prob, proven)

    def follow(
        self, rows: npt.NDArray[np.intp], dealt: Frontier, codes: Codes, policy: MonteCarlo
    ) -> tuple[Floats, Floats]:
        """Follow the points of prefixes to the end of the chain.

        Parameters
        ----------
        rows : array, shape (q,)
            The row of each query present.
        dealt : Frontier
            Prefixes with their points.
        codes : array, shape (r, m)
            Their codes, in the order of the chain.
        policy : MonteCarlo

        Returns
        -------
        marginals : array, shape (q, values of the variables behind the prefixes)
        entropy : array, shape (q,)
            Expected entropy of what follows the prefixes.
        """
        m, first = len(self.arrays.cards), self.arrays.values
        points = np.stack([policy._points(depth, 1) for depth in range(m)])
        marginals, entropy = np.zeros((len(rows), first[-1])), np.zeros(len(rows))
        follow_chains(
            self.arrays,
            self.base,
            _packed(rows),
            np.append(dealt.starts, len(dealt)),
            dealt.depth,
            _packed(codes),
            dealt.weights()[0],
            dealt.count,
            points,
            marginals,
            entropy,
        )
        return marginals[:, first[dealt.depth] :], entropy


def _base(terms: LinearTerms) -> Floats:
    """What x adds to the logits, together with what earlier variables add whose columns are zero: (n, c)."""
    first = np.array([effect[0] for effect in terms.effects.values() if len(effect) <= 2])
    return terms.base + first.sum(axis=0) if first.any() else terms.base


def _slopes(terms: LinearTerms, place: dict[int, int], columns: Codes) -> Floats:
    """What each column of the variables, in the order of the chain, adds to the logits: (c, columns)."""
    slopes = np.zeros((terms.base.shape[1], columns[-1]))
    pairs = {variable: effect for variable, effect in terms.effects.items() if len(effect) == 2}
    if pairs:  # all at once, as there may be hundreds
        both = np.array(list(pairs.values()))
        slopes[:, columns[[place[variable] for variable in pairs]]] = (both[:, 1] - both[:, 0]).T
    for variable, effect in terms.effects.items():
        if len(effect) > 2:
            first = columns[place[variable]]
            slopes[:, first : first + len(effect)] = effect.T
    return slopes


def _packed(codes: npt.NDArray[np.intp]) -> Codes:
    """Return integers as compiled code takes them."""
    return np.ascontiguousarray(codes, dtype=np.int64)

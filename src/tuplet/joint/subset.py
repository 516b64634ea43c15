"""Some variables of an `Autoregressive`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, cast, final

import numpy as np
import numpy.typing as npt

from tuplet.joint.base import ENUMERATION_LIMIT, JointDistribution, Ranking
from tuplet.joint.dense import GridConditional
from tuplet.joint.frontier import Conditional, Frontier
from tuplet.joint.reduce import count_marginals, pairwise, stack
from tuplet.typing import UNKNOWN, Codes, Floats

if TYPE_CHECKING:
    from tuplet.joint.atoms import Atoms
    from tuplet.joint.autoregressive import Autoregressive


@dataclass(frozen=True)
class Renamed:
    """The conditional of the first variables of an order, called by their new positions."""

    conditional: Conditional
    variables: tuple[int, ...]
    n_variables: int

    @classmethod
    def first(cls, conditional: Conditional, variables: tuple[int, ...], n_variables: int) -> Renamed:
        """Rename a conditional; one that evaluates grids still does."""
        kind = RenamedGrid if isinstance(conditional, GridConditional) else cls
        return kind(conditional, variables, n_variables)

    def __call__(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """See `Conditional`."""
        return self.conditional(self.variables[variable], rows, self._embed(codes))

    def _embed(self, codes: Codes) -> Codes:
        full = np.full((len(codes), self.n_variables), UNKNOWN, dtype=np.intp)
        full[:, self.variables] = codes
        return full


class RenamedGrid(Renamed):
    """See `Renamed` and `GridConditional`."""

    def grid(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """See `GridConditional.grid`."""
        inner = cast(GridConditional, self.conditional)
        return inner.grid(self.variables[variable], rows, self._embed(codes))


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
    >>> from tuplet.joint.autoregressive import Autoregressive
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
        full = np.full((*codes.shape[:-1], self.joint.n_variables), UNKNOWN, dtype=np.intp)
        full[..., self.variables] = codes
        return full

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
        return pairwise(self._outcomes(), self.joint.cards, self.variables, len(self))

    def _count_marginals(self) -> Floats:
        return count_marginals(self._outcomes(), self.variables, len(self))

    def to_atoms(self, limit: int = ENUMERATION_LIMIT) -> Atoms:
        """See `JointDistribution.to_atoms`; `limit` counts what the chain can be up to the last variable."""
        return self.joint._enumerated(limit, self._depth)._marginal(self.variables).to_atoms()

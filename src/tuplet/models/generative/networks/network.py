"""A discrete Bayesian network as a value: names, states, parents and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.local.base import configurations
from tuplet.space.containers import listing
from tuplet.structure.parents import ParentSets, find_cycle, topological_order

_ROUNDING = 1e-4
"""How far the probabilities of a row may be from one in sum; files keep a few digits only."""

_EXACT = 1e-12
"""Sums that differ from one by no more are left alone."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """Variables with named states, a directed acyclic graph, and p(variable | parents) as tables.

    Parameters
    ----------
    names : tuple of str
    states : tuple of tuples of str
        Names of the values of each variable.
    parents : ParentSets
        Positions of the parents of each variable, in increasing order.
    tables : tuple of arrays, each (*cards of the parents, card of the variable)
        Rows that differ from one in the last digits of a file are normalised.
    name : str
    properties : mapping of variable names to texts
        Further statements about a variable, which files keep.

    Examples
    --------
    >>> rain, wet = np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.0, 1.0]])
    >>> network = Network(("rain", "wet"), (("no", "yes"),) * 2, ((), (0,)), (rain, wet))
    >>> network
    Network(unknown: 2 variables, 1 edge, 3 parameters)
    >>> network.sample(3, random_state=0)
    array([[0, 0],
           [0, 0],
           [0, 1]])
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    parents: ParentSets
    tables: tuple[Floats, ...]
    name: str = "unknown"
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.names)
        if not n or {len(self.states), len(self.parents), len(self.tables)} != {n}:
            raise InputError(
                f"Network: names, states, parents and tables must be equally many, found {n},"
                f" {len(self.states)}, {len(self.parents)} and {len(self.tables)}."
            )
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise InputError(f"Network: several variables have the name {listing(twice, 5)}; rename them.")
        self._check_graph()
        tables = [self._checked(v, np.asarray(table, dtype=float)) for v, table in enumerate(self.tables)]
        object.__setattr__(self, "tables", tuple(tables))

    def _check_graph(self) -> None:
        for v, members in enumerate(self.parents):
            inside = all(0 <= p < len(self.names) for p in members)
            if not inside or list(members) != sorted(set(members)):
                raise InputError(
                    f"Network: the parents of {self.names[v]!r} must be positions of other variables in"
                    f" increasing order, found {members}."
                )
        if cycle := find_cycle(self.parents):
            path = " -> ".join(repr(self.names[v]) for v in (*cycle, cycle[0]))
            raise InputError(f"Network: the graph has a cycle, {path}; drop one of its edges.")

    def _checked(self, v: int, table: Floats) -> Floats:
        name, shape = self.names[v], tuple(len(self.states[u]) for u in (*self.parents[v], v))
        if len(set(self.states[v])) < max(1, len(self.states[v])):
            raise InputError(f"Network: {name!r} must have one or more states, each of a name of its own.")
        if table.shape != shape:
            raise InputError(
                f"Network: the table of {name!r} must have the shape {shape}, that of its parents and itself;"
                f" found {table.shape}."
            )
        total = table.sum(axis=-1, keepdims=True)
        if not (table >= 0).all() or not np.isfinite(total).all():
            raise InputError(f"Network: the table of {name!r} has an entry that is no probability.")
        wrong = np.abs(total[..., 0] - 1) > _ROUNDING
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])  # () for a variable without parents
            given = ", ".join(
                f"{self.names[p]}={self.states[p][i]}" for p, i in zip(self.parents[v], at, strict=True)
            )
            raise InputError(
                f"Network: the probabilities of {name!r}{' given ' * bool(given)}{given} sum to"
                f" {total[at].item():.6g}; they must sum to one."
            )
        # What is one already stays as it is to the last digit, so that files can be read and written again.
        return np.where(np.abs(total - 1) > _EXACT, table / total, table)

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of states of each variable."""
        return tuple(len(states) for states in self.states)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.names)

    @cached_property
    def n_parameters(self) -> int:
        """Number of free probabilities."""
        return sum(table.size - table.size // table.shape[-1] for table in self.tables)

    def position(self, name: str) -> int:
        """Return the position of a variable."""
        if name not in self.names:
            raise InputError(f"Network: there is no variable {name!r} among {listing(list(self.names), 8)}.")
        return self.names.index(name)

    def sample(self, n_samples: int, random_state: Seed = None) -> Codes:
        """Forward sampling: independent rows of codes, shape (n_samples, n_variables)."""
        if n_samples < 0:
            raise InputError(f"Network.sample: n_samples must not be negative, found {n_samples}.")
        rng = np.random.default_rng(random_state)
        codes = np.zeros((self.n_variables, n_samples), dtype=np.intp)
        for v in topological_order(self.parents):
            cumulative = self.tables[v].reshape(-1, len(self.states[v])).cumsum(axis=1)[:, :-1]
            steps = cumulative[self._configuration(v, codes)]
            np.sum(steps <= rng.random((n_samples, 1)), axis=1, out=codes[v])
        return np.ascontiguousarray(codes.T)

    def log_prob(self, codes: Codes) -> Floats:
        """Log-probabilities (n,) of complete rows of codes (n, n_variables)."""
        columns = np.asarray(codes).T
        total = np.zeros(columns.shape[1])
        with np.errstate(divide="ignore"):
            for v, table in enumerate(self.tables):
                total += np.log(
                    table.reshape(-1, table.shape[-1])[self._configuration(v, columns), columns[v]]
                )
        return total

    def _configuration(self, v: int, columns: Codes) -> npt.NDArray[np.intp]:
        """Return the number (n,) of the parents' configuration, the last parent running fastest."""
        parents = list(self.parents[v])
        return configurations(columns[parents].T, [len(self.states[p]) for p in parents])

    def __repr__(self) -> str:
        n, n_edges = self.n_variables, sum(map(len, self.parents))
        return (
            f"Network({self.name}: {n} variable{'s' * (n != 1)}, {n_edges} edge{'s' * (n_edges != 1)},"
            f" {self.n_parameters} parameters)"
        )

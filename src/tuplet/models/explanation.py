"""The Bayesian network of one row: its conditional tables, and the strengths of its edges."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, final

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError, IntractableError, TupletWarning
from tuplet.core.typing import Floats
from tuplet.joint.base import all_outcomes
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.engine import Exact
from tuplet.joint.inference.factor import Problem
from tuplet.prediction.queries import estimate_text, row_positions, warn_estimated
from tuplet.prediction.rendering import FAINT, Column, aligned, html_table
from tuplet.space.classes import ClassSpace
from tuplet.space.words import chance_text, clip, first_words, shorten
from tuplet.structure.parents import ParentSets, edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 20
"""Class variables that a repr shows before it stops."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class LocalNetwork:
    """p(y | x) of one row as a Bayesian network over the class variables.

    The graph is that of the model and the same for all rows. The tables, and so the strengths of the
    edges, belong to this row: an edge that matters in the population may be idle here.

    Parameters
    ----------
    joint : FactorGraph
        p(y | x_i) of n rows as conditional tables p(y_j | x_i, parents), one for each class variable, with
        the axes (parents..., variable).
    parents : tuple of tuples of int
        Parents of each class variable, in the order of the axes.
    space : ClassSpace
        Names and labels.
    row : int
        Position of the row.
    observed : tuple of tuples of str
        Features that are parents of each class variable, with their values in this row ("sex=male"); empty if
        there are none.

    References
    ----------
    Generalised Bayesian network classifiers; section 3.3, the individual level.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint.inference import Factor
    >>> space = ClassSpace(("weather", "umbrella"), (np.array(["dry", "wet"]), np.array(["no", "yes"])))
    >>> weather = Factor((0,), np.log([[0.7], [0.3]]))
    >>> umbrella = Factor((0, 1), np.log([[[0.9], [0.1]], [[0.2], [0.8]]]))
    >>> network = LocalNetwork(FactorGraph((2, 2), [weather, umbrella], n=1), ((), (0,)), space)
    >>> network
    LocalNetwork of row 0: 2 class variables, 1 edge
      variable  depends on (nats)  most probable  probability
      weather                      dry                  0.700
      umbrella  weather 0.24       no                   0.690
    >>> network.tables()["umbrella"].loc["wet"].round(3).to_dict()
    {'no': 0.2, 'yes': 0.8}
    >>> network.edges().round(3)
        parent     child  strength
    0  weather  umbrella     0.241
    """

    joint: FactorGraph
    parents: ParentSets
    space: ClassSpace
    row: int = 0
    observed: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        rows = row_positions(self.row, len(self.joint), "LocalNetwork")
        if len(rows) != 1:
            raise InputError(f"LocalNetwork: one row can be explained at a time, found {len(rows)}.")
        object.__setattr__(self, "row", int(rows[0]))

    # -- reading ------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, pd.DataFrame]:
        """p(variable | parents, x) of each class variable, by name.

        Returns
        -------
        dict of frames
            A line for each configuration of the parents, the last parent running fastest; a column for each
            label.
        """
        names, categories = self.space.names, self.space.categories
        answer = {}
        for j, given in enumerate(self.parents):
            index: pd.Index = pd.RangeIndex(1)
            if len(given) == 1:
                index = pd.Index(categories[given[0]], name=names[given[0]])
            elif given:
                index = pd.MultiIndex.from_product(
                    [categories[parent] for parent in given], names=[names[parent] for parent in given]
                )
            table = self._conditionals[j].reshape(-1, self.space.cards[j])
            answer[names[j]] = pd.DataFrame(table, index, pd.Index(categories[j], name=names[j]))
        return answer

    def edges(self) -> pd.DataFrame:
        """Edges of the graph: `parent`, `child` and `strength` in this row, the strongest first.

        The strength is the conditional mutual information of parent and child, given x and the other
        parents of the child, in nats: the information about the child that the value of the parent would
        add. It is zero where the child does not depend on the parent, and also where the parent is certain.
        """
        warn_estimated("edges", self.joint)
        names = self.space.names
        lines = [(names[parent], names[child], value) for (parent, child), value in self._strengths.items()]
        frame = pd.DataFrame(lines, columns=["parent", "child", "strength"])
        return frame.sort_values("strength", ascending=False, ignore_index=True, kind="stable")

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph with these strengths; boxes show the most probable labels (needs matplotlib)."""
        warn_estimated("plot", self.joint)
        labels, chances = self._labels
        notes = [f"{clip(label, 16)} {chance_text(p)}" for label, p in zip(labels, chances, strict=True)]
        title = f"p(y | x) of row {self.row}, strengths in nats"
        return delegate(
            "plot_graph",
            self.parents,
            self.space.names,
            strengths=self._strengths,
            notes=notes,
            title=title,
            ax=ax,
        )

    # -- numbers ------------------------------------------------------------------------------------------

    @cached_property
    def _one(self) -> FactorGraph:
        return self.joint[self.row]

    @cached_property
    def _conditionals(self) -> list[Floats]:
        """Tables (*cards of the parents, k) of all variables."""
        tables = {factor.scope: factor.log_table[..., 0] for factor in self._one.factors}
        return [np.exp(tables[(*given, j)]) for j, given in enumerate(self.parents)]

    @cached_property
    def _families(self) -> list[Floats]:
        """Probabilities (*cards of the parents, k) of all variables together with their parents."""
        factors, engine = self._one.factors, self._one.engine
        if not isinstance(engine, Exact):
            return [self._weighted(j) for j in range(len(self.parents))]
        # One pass over the network gives the tables of all families.
        problem = Problem(self._one.cards, tuple(factors), 1, len(self.parents))
        every = zip(factors, engine.factor_marginals(problem), strict=True)
        tables = {factor.scope: table[..., 0] for factor, table in every}
        return [tables[(*given, j)] for j, given in enumerate(self.parents)]

    def _weighted(self, j: int) -> Floats:
        """Return the table of one variable and its parents, by any engine's distribution of the parents."""
        given, table = self.parents[j], self._conditionals[j]
        if not given:
            return table
        configurations = all_outcomes(table.shape[:-1])
        weight = np.exp(self._one.marginal(given).log_prob(configurations[:, None])[:, 0])
        return (weight / weight.sum()).reshape(*table.shape[:-1], 1) * table

    @cached_property
    def _strengths(self) -> dict[tuple[int, int], float]:
        return {
            (parent, child): _information(self._families[child], self.parents[child].index(parent))
            for parent, child in edges(self.parents)
        }

    @cached_property
    def _labels(self) -> tuple[list[str], Floats]:
        """The most probable label of each variable by itself, and its probability."""
        tables = [table[0] for table in self._one.marginals()]
        codes = [int(np.argmax(table)) for table in tables]
        labels = [str(self.space.decode_column(j, np.array(code))) for j, code in enumerate(codes)]
        return labels, np.array([table.max() for table in tables])

    # -- for people ---------------------------------------------------------------------------------------

    def _columns(self) -> tuple[list[Column], list[str]]:
        """Return a line for each of the first variables, in columns, and remarks below them."""
        # A repr is no place for warnings: the remarks have their content.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TupletWarning)
            try:
                (labels, chances), strengths = self._labels, self._strengths
            except IntractableError as error:
                return [], [str(error)]
        names = shorten(self.space.names)
        reasons = []
        for child, given in enumerate(self.parents[:_SHOWN]):
            order = sorted(given, key=lambda parent: -strengths[parent, child])
            words = [f"{names[parent]} {strengths[parent, child]:.2g}" for parent in order]
            words += self.observed[child] if self.observed else ()
            reasons.append(first_words(words, ", ", 48))
        remarks = [f"... {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
        remarks += [text] if (text := estimate_text(self.joint)) else []
        texts = [chance_text(float(p)) for p in chances[:_SHOWN]]
        return [
            Column("variable", names[:_SHOWN]),
            Column("depends on (nats)", reasons),
            Column("most probable", shorten(labels[:_SHOWN]), chances[:_SHOWN]),
            Column("probability", texts),
        ], remarks

    def _headline(self) -> str:
        m, n_edges = len(self.parents), len(edges(self.parents))
        size = f"{m} class variable{'s' * (m != 1)}, {n_edges} edge{'s' * (n_edges != 1)}"
        return f"LocalNetwork of row {self.row}: {size}"

    def __repr__(self) -> str:
        columns, remarks = self._columns()
        indent = Column("", [""] * len(columns[0].texts)) if columns else Column("", [])
        lines = aligned([indent, *columns]) if columns else []
        return "\n".join([self._headline(), *lines, *remarks])

    def _repr_html_(self) -> str:
        columns, remarks = self._columns()
        table = html_table(columns) if columns else ""
        above = f"<div style='{FAINT}'>{escape(self._headline())}</div>"
        below = "".join(f"<div style='{FAINT}'>{escape(line)}</div>" for line in remarks)
        return f"<div style='font-family:system-ui,sans-serif;font-size:13px'>{above}{table}{below}</div>"


def _information(family: Floats, axis: int) -> float:
    """Return I(parent; child | other parents) in nats.

    Parameters
    ----------
    family : array, shape (*cards of the parents, k)
        Probabilities of all configurations of the parents and the child.
    axis : int
        That of the parent.
    """
    without, given = family.sum(axis=axis, keepdims=True), family.sum(axis=-1, keepdims=True)
    rest = without.sum(axis=-1, keepdims=True)
    # Where the other parents' values are impossible there is no information.
    expected = np.divide(without * given, rest, out=np.zeros_like(family), where=rest > 0)
    return max(0.0, float(rel_entr(family, expected).sum()))

"""Conversion between a generative classifier and a network that can be written to a file.

Files hold names and tables. What else a classifier needs to have of a variable is a property of it:
`tuplet role=class values=int counts=3.0,5.0` for the classes, their labels and how many training rows have
each label, `tuplet role=feature bins=1.5,2.5` for numbers that are cut at edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.models.generative.networks.network import Network
from tuplet.models.generative.networks.three_part import ThreePartGraph
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.features.discrete import Bins, Column, DiscreteColumns, Values
from tuplet.space.features.nominal import Nominal

_KINDS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text == "True",
    "int": int,
    "float": float,
    "str": str,
}


def to_network(
    space: ClassSpace,
    columns: DiscreteColumns,
    graph: ThreePartGraph,
    tables: Sequence[Floats],
    counts: Sequence[Floats] | None,
) -> Network:
    """Return a classifier as a network; the classes come first, and features have names apart from theirs."""
    names = _distinct([*space.names, *columns.names])
    properties = {}
    for j, (name, values) in enumerate(zip(names, space.categories, strict=False)):
        known = "" if counts is None else f" counts={','.join(map(repr, counts[j].tolist()))}"
        properties[name] = (f"tuplet role=class values={_kind(values.tolist())}{known}",)
    for name, column in zip(names[space.n_variables :], columns.columns, strict=True):
        properties[name] = (f"tuplet role=feature {_text(column)}",)
    states = [tuple(map(str, values.tolist())) for values in space.categories]
    return Network(
        tuple(names),
        (*states, *columns.states),
        graph.parents,
        tuple(tables),
        "tuplet",
        properties,
    )


def from_network(
    network: Network, classes: Sequence[str] | None
) -> tuple[ClassSpace, DiscreteColumns, ThreePartGraph, list[Floats], list[Floats] | None]:
    """Return labels, columns, graph, tables and counts of labels of a network, the classes first.

    Parameters
    ----------
    network : Network
    classes : sequence of str or None
        Names of the class variables; None takes those that the file marks.
    """
    if classes is None:
        classes = [name for name in network.names if _property(network, name, "role") == "class"]
    if not classes:
        raise InputError(
            "from_bif: the file does not say which variables are classes; name them, classes=[...]."
        )
    d = len(classes)
    chosen = [network.position(name) for name in classes]
    if len(set(chosen)) < d or d == network.n_variables:
        raise InputError(
            f"from_bif: classes must be some of the variables, each once; found {listing(classes)}."
        )
    order = [*chosen, *(v for v in range(network.n_variables) if v not in set(chosen))]
    place = {old: new for new, old in enumerate(order)}
    parents, tables = [], []
    for old in order:
        members = [place[p] for p in network.parents[old]]
        if place[old] < d and any(p >= d for p in members):
            raise InputError(
                f"from_bif: the class {network.names[old]!r} depends on features; classes may depend on"
                " classes only."
            )
        axes = np.argsort(members)
        parents.append(tuple(sorted(members)))
        tables.append(network.tables[old].transpose(*axes, len(members)))
    names = [network.names[old] for old in order]
    space = ClassSpace(tuple(names[:d]), tuple(np.array(_typed(network, name)) for name in names[:d]))
    features = tuple(names[d:])
    columns = tuple(_column(network, name, j) for j, name in enumerate(features))
    discrete = DiscreteColumns(features, columns, tuple(range(len(features))))
    return space, discrete, ThreePartGraph(tuple(parents), d), tables, _counts(network, names[:d])


def _distinct(names: list[str]) -> list[str]:
    """Return the names with a prime where a feature is called like a class."""
    found: list[str] = []
    for name in names:
        while name in found:
            name += "'"
        found.append(name)
    return found


# -- properties --------------------------------------------------------------------------------------------


def _kind(values: list[Any]) -> str:
    kinds = {type(value).__name__ for value in values}
    return kinds.pop() if len(kinds) == 1 and kinds <= set(_KINDS) else "str"


def _text(column: Column) -> str:
    if isinstance(column, Values):
        return f"values={_kind(list(column.nominal.categories))}"
    dates = " dates=yes" if column.dates else ""
    return f"bins={','.join(map(repr, column.edges.tolist()))}{dates}"


def _property(network: Network, name: str, key: str) -> str | None:
    for text in network.properties.get(name, ()):
        words = text.split()
        if words[:1] == ["tuplet"]:
            return dict(word.split("=", 1) for word in words[1:] if "=" in word).get(key)
    return None


def _typed(network: Network, name: str) -> list[Any]:
    read = _KINDS.get(_property(network, name, "values") or "str", str)
    try:
        return [read(state) for state in network.states[network.position(name)]]
    except ValueError:
        raise InputError(
            f"from_bif: the states of {name!r} are not of the type that the file states."
        ) from None


def _counts(network: Network, names: Sequence[str]) -> list[Floats] | None:
    """Return how many training rows have each label, (k_j,); None if the file does not state it."""
    texts = [_property(network, name, "counts") for name in names]
    try:
        counts = [np.array([float(each) for each in (text or "").split(",")]) for text in texts]
    except ValueError:
        return None
    sizes = [len(network.states[network.position(name)]) for name in names]
    return counts if [len(each) for each in counts] == sizes else None


def _column(network: Network, name: str, j: int) -> Column:
    states = network.states[network.position(name)]
    edges = _property(network, name, "bins")
    if edges is None:
        return Values(Nominal(j, tuple(_typed(network, name)), False, False), states)
    try:
        numbers = np.array([float(edge) for edge in edges.split(",") if edge])
    except ValueError:
        numbers = np.empty(len(states))
    if len(numbers) != len(states) - 1:
        raise InputError(f"from_bif: {name!r} must have one edge of its bins fewer than states.")
    return Bins(numbers, states, _property(network, name, "dates") == "yes")

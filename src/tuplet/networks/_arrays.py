"""What compiled functions take: tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.typing import Floats

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


class Data(NamedTuple):
    """Rows to be counted, as the compiled functions take them; see `CountScorer`."""

    columns: npt.NDArray[np.int32]  # (variables, n), -1 where missing
    cards: Ints  # (variables,)
    missing: Bools  # (variables,) whether a value is missing
    weights: Floats  # (n,), or empty if all are one
    bits: Words  # (values, words): the rows that have a value, for variables with few values
    starts: Ints  # (variables,) where the values of a variable start in `bits`
    x_log_x: Floats  # (n + 1,)
    alone: Floats  # (variables,) unpenalised score of each variable without parents
    kind: int
    penalty: float  # for each free parameter
    prior: float  # pseudo-rows: per cell if `spread` is 0, otherwise per table
    spread: int
    n_classes: int
    max_parents: int


class Pool(NamedTuple):
    """What is known of families; see `find`."""

    keys: Words  # (slots,) hash of each family, 0 if the slot is free
    slots: Ints  # (slots,) its number
    words: Words  # (variables,) random
    first: Ints  # (families,) where its list starts
    length: Ints  # (families,)
    value: Floats  # (families,) its score
    member: npt.NDArray[np.int32]  # (entries,) parents that improve it, best first
    used: Ints  # families and entries in use


class Rules(NamedTuple):
    """What bounds a network: classes in a component, width of the pruned graph; -1 for no bound."""

    max_component: int
    max_width: int


class Task(NamedTuple):
    """Rows, what is known of their families, and what bounds a network."""

    data: Data
    pool: Pool
    rules: Rules


class State(NamedTuple):
    """An order with its families, and what components look like before each place."""

    order: Ints  # (variables,) classes, then features
    rank: Floats  # (variables,) place of each variable
    value: Floats  # (variables,) score of its family
    labels: Ints  # (places + 1, classes) components before each place
    graphs: Bools  # (places + 1, classes, classes) pruned graphs; empty if width is free


RECORDS = {
    "Data": (Data, "s2 i1 b1 f1 w2 i1 f1 f1 i f f i i i"),
    "Pool": (Pool, "w1 i1 w1 i1 i1 f1 s1 i1"),
    "Rules": (Rules, "i i"),
    "Task": (Task, "Data Pool Rules"),
    "State": (State, "i1 f1 f1 i2 b3"),
}
"""How compiled functions see these tuples; see `tuplet.compiled`."""

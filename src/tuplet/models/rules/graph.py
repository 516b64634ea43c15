"""Beliefs about single class variables, made one distribution by rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tuplet.core.typing import Floats
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.engine import Engine
from tuplet.joint.inference.factor import AnyFactor, Factor, Problem, RuleFactor
from tuplet.joint.inference.signed import choose_engine
from tuplet.joint.search import Search

_SEARCH = Search(max_nodes=2**18)
"""Budget of the search for the most probable combination: with 30 rules, all of them are proven."""


def rule_graph(
    log_beliefs: Sequence[Floats], factors: Sequence[RuleFactor], engine: Engine | Literal["auto"] = "auto"
) -> FactorGraph:
    """Return P(l | x_i), proportional to prod_j x_ij(l_j) prod_k f_k(l).

    Parameters
    ----------
    log_beliefs : sequence of m arrays (n, k_j)
        Logarithms of the beliefs x, which need not be normalised; minus infinity excludes a category.
    factors : sequence of RuleFactor
    engine : "auto" or Engine
        How sums are made; by default the exact engine with the fewest cells, and belief propagation, which
        estimates, if none fits. The most probable outcomes are always searched exactly.

    Examples
    --------
    >>> import numpy as np
    >>> either = RuleFactor((0, 1), 0.9, q=(np.array([1.0, 0.0]), np.array([1.0, 0.0])), text="a | b")
    >>> joint = rule_graph(np.log([[[0.7, 0.3]], [[0.5, 0.5]]]), [either])
    >>> joint.marginals()[1].round(3)
    array([[0.274, 0.726]])
    >>> joint.mode().codes
    array([[0, 1]])
    """
    tables = [np.asarray(belief, dtype=float) for belief in log_beliefs]
    cards = tuple(table.shape[1] for table in tables)
    beliefs = [Factor((j,), table.T) for j, table in enumerate(tables)]
    product: tuple[AnyFactor, ...] = (*beliefs, *factors)
    if engine == "auto":
        engine = choose_engine(Problem(cards, product, 1, len(cards)))
    return FactorGraph(cards, product, len(tables[0]), engine=engine, search=_SEARCH)

"""The best network of all, by dynamic programming over sets of variables."""

from __future__ import annotations

import time

import numpy as np

from tuplet.core.exceptions import IntractableError
from tuplet.core.typing import Floats
from tuplet.structure.kernels import best_within, extend_table
from tuplet.structure.local_scores import LocalScores
from tuplet.structure.parents import ParentSets

_LOW = 12
"""Variables whose subsets are handled together: the tables of all children over them stay in the cache."""


def best_network(
    scores: LocalScores, *, max_variables: int = 24, deadline: float | None = None
) -> ParentSets | None:
    """Return a network of the highest score.

    Parameters
    ----------
    scores : LocalScores
    max_variables : int
        The table has 2**m numbers of 8 bytes, and every further variable doubles the time: 8 MB and a
        fraction of a second for 20 variables, 128 MB and some seconds for 24.
    deadline : float, optional
        Value of `time.monotonic()` at which to give up and return None.

    Raises
    ------
    IntractableError
        If there are more than `max_variables` variables.

    Notes
    -----
    The last variable of a best network over a set S has the best parents that it can have in the rest of S,
    so best(S) = max over v in S of best(S - v) + local(v, S - v). Instead of keeping local(v, .) for all
    sets, as in the reference, or searching it in the list of families, sets are cut into a high and a low
    part: for one high part, local(v, .) over all low parts is a running maximum over subsets, which costs
    the same however many families there are. Nothing else is stored: the choices are found again from the
    scores.

    References
    ----------
    Silander and Myllymäki (2006). A simple approach for finding the globally optimal Bayesian network
    structure.

    Examples
    --------
    >>> scores = LocalScores.of([{(): -3.0, (1,): -1.0}, {(): -2.0, (0,): -1.5}])
    >>> best_network(scores)
    ((1,), ())
    """
    m = scores.n_variables
    if m > max_variables:
        raise IntractableError(
            f"Exact search over {m} variables needs a table of {2**m:,} sets (max_variables={max_variables})."
            ' Use method="integer" or method="order", or raise max_variables.'
        )
    scores.feasible_order()
    best = _table(scores, deadline)
    return None if best is None else scores.network(_read_back(scores, best))


def _table(scores: LocalScores, deadline: float | None) -> Floats | None:
    """Score of the best network over every set of variables, shape (2**m,); None if time runs out."""
    m = scores.n_variables
    n_low = min(m, _LOW)
    best, within = np.empty(1 << m), np.empty((m, 1 << n_low))
    for high in range(1 << (m - n_low)):  # in Python, so that interrupts and deadlines are heard
        if deadline is not None and time.monotonic() > deadline:
            return None
        extend_table(high, n_low, best, within, scores.starts, scores.masks, scores.values)
    return best


def _read_back(scores: LocalScores, best: Floats) -> list[int]:
    """Take away last variables, from the whole set down; the same sums as in the table, hence equality."""
    families = [-1] * scores.n_variables
    rest = len(best) - 1
    while rest:
        for v in range(scores.n_variables):
            if rest >> v & 1:
                others = rest ^ (1 << v)
                f = best_within(v, np.array([[others]], dtype=np.uint64), scores.starts, scores.masks)
                if f >= 0 and best[others] + scores.values[f] == best[rest]:
                    families[v], rest = int(f), others
                    break
    return families

"""From local scores to a network, without X: numbers in, `ParentSets` out.

- `candidate_parent_sets`: which sets of parents to score, with sound pruning; gives `LocalScores`.
- `find_dag`: the best network, by the search that fits, with a bound.
- `best_network`, `solve_integer`, `search_orders`, `search_bounded`: the searches themselves.
- `best_forest`: the best network with at most one parent each.

Invariant: a network is a tuple of sorted parent tuples, a value that is never changed.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.structure.bounded import search_bounded
    from tuplet.structure.candidates import Candidates, Family, candidate_parent_sets
    from tuplet.structure.integer import has_scip, solve_integer
    from tuplet.structure.local_scores import LocalScores
    from tuplet.structure.orders import search_orders
    from tuplet.structure.parents import (
        Edge,
        EdgeRules,
        ParentSets,
        edges,
        find_cycle,
        is_acyclic,
        moral_width,
        score_of,
        topological_order,
    )
    from tuplet.structure.search import Found, Method, best_network, find_dag
    from tuplet.structure.trees import best_forest
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.structure.bounded": "search_bounded",
            "tuplet.structure.candidates": "Candidates Family candidate_parent_sets",
            "tuplet.structure.integer": "has_scip solve_integer",
            "tuplet.structure.local_scores": "LocalScores",
            "tuplet.structure.orders": "search_orders",
            "tuplet.structure.parents": (
                "Edge EdgeRules ParentSets edges find_cycle is_acyclic moral_width score_of topological_order"
            ),
            "tuplet.structure.search": "Found Method best_network find_dag",
            "tuplet.structure.trees": "best_forest",
        },
    )

__all__ = [
    "Candidates",
    "Edge",
    "EdgeRules",
    "Family",
    "Found",
    "LocalScores",
    "Method",
    "ParentSets",
    "best_forest",
    "best_network",
    "candidate_parent_sets",
    "edges",
    "find_cycle",
    "find_dag",
    "has_scip",
    "is_acyclic",
    "moral_width",
    "score_of",
    "search_bounded",
    "search_orders",
    "solve_integer",
    "topological_order",
]

"""Discrete Bayesian networks over classes and features: files, scores from counts, and structure learners.

- `Network`: names, states, graph and tables as a value; `read_bif`, `write_bif`.
- `CountScorer`: scores of families; `learn_structure`: the learners by name, which give a `ThreePartGraph`.

Invariant: classes come before features in every numbering, and no class has a feature as parent.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.models.generative.networks.bif import bif_text, read_bif, write_bif
    from tuplet.models.generative.networks.learners import (
        LearnerOptions,
        Ordered,
        Structure,
        default_criterion,
        greedy_network,
        learn_structure,
        search_network,
    )
    from tuplet.models.generative.networks.network import Network
    from tuplet.models.generative.networks.scores import CountScorer, Criterion
    from tuplet.models.generative.networks.three_part import ClassComponent, ThreePartGraph
    from tuplet.models.generative.networks.trees import (
        learn_polytree_polytree,
        learn_small_width,
        learn_tree_tree,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.models.generative.networks.bif": "bif_text read_bif write_bif",
            "tuplet.models.generative.networks.learners": (
                "LearnerOptions Ordered Structure default_criterion"
                " greedy_network learn_structure search_network"
            ),
            "tuplet.models.generative.networks.network": "Network",
            "tuplet.models.generative.networks.scores": "CountScorer Criterion",
            "tuplet.models.generative.networks.three_part": "ClassComponent ThreePartGraph",
            "tuplet.models.generative.networks.trees": (
                "learn_polytree_polytree learn_small_width learn_tree_tree"
            ),
        },
    )

__all__ = [
    "ClassComponent",
    "CountScorer",
    "Criterion",
    "LearnerOptions",
    "Network",
    "Ordered",
    "Structure",
    "ThreePartGraph",
    "bif_text",
    "default_criterion",
    "greedy_network",
    "learn_polytree_polytree",
    "learn_small_width",
    "learn_structure",
    "learn_tree_tree",
    "read_bif",
    "search_network",
    "write_bif",
]

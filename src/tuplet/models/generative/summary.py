"""A generative classifier in a few lines of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tuplet.networks import ThreePartGraph
from tuplet.space import ClassSpace
from tuplet.space.containers import listing

_SHOWN = 12
"""Components that are listed."""


def summary_text(graph: ThreePartGraph, space: ClassSpace, features: Sequence[str], score: float) -> str:
    """Return a text about a graph; names are those of the classes and features.

    Examples
    --------
    >>> import numpy as np
    >>> space = ClassSpace(("rain", "cold"), (np.array([0, 1]),) * 2)
    >>> graph = ThreePartGraph(((), (0,), (0,), (1, 2)), 2)
    >>> print(summary_text(graph, space, ["sky", "month"], float("nan")))
    2 classes, 2 features; edges: 1 class, 2 bridge, 1 feature
    width of the pruned graph 1 (of the whole graph 2), 6 cells to predict a row
    1 component; largest number of parents 2
      'rain', 'cold' | features 'sky', 'month'
    """
    counts = [
        sum(map(len, part)) for part in (graph.class_parents, graph.bridge_parents, graph.feature_parents)
    ]
    parts = sorted(graph.components, key=lambda part: -len(part.classes))
    size = _several(graph.n_classes, "class", "es"), _several(graph.n_features, "feature")
    widths = f"width of the pruned graph {graph.width} (of the whole graph {graph.full_width})"
    lines = [
        f"{', '.join(size)}; edges: {counts[0]} class, {counts[1]} bridge, {counts[2]} feature",
        f"{widths}, {graph.induced_size(space.cards):,} cells to predict a row",
        f"{_several(len(parts), 'component')}; largest number of parents {max(map(len, graph.parents))}",
    ]
    if not math.isnan(score):
        lines.append(f"score {score:,.2f}")
    for part in parts[:_SHOWN]:
        line = f"  {listing([space.names[c] for c in part.classes], 8)}"
        below = [features[f] for f in part.features]
        lines.append(f"{line} | features {listing(below, 8)}" if below else f"{line} | no features")
    if len(parts) > _SHOWN:
        lines.append(f"  and {len(parts) - _SHOWN} smaller components")
    return "\n".join(lines)


def _several(n: int, noun: str, ending: str = "s") -> str:
    return f"{n} {noun}{ending if n != 1 else ''}"

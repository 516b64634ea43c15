"""Sections that models make of what they are made of; each model puts its own together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tuplet.pages import Picture, PlainTable, Section
from tuplet.plots import LearningPath, plot_calibration, plot_path
from tuplet.report.pieces import combinations, picture
from tuplet.space import ClassSpace
from tuplet.space.words import clip
from tuplet.typing import Codes, Floats

_EDGES, _COMBINATIONS = 25, 20
"""Edges and combinations that a table lists."""

_MEMBERS = 3
"""Members of a mixture whose own sections are shown, those of the largest weights."""


def graph_section(draw: Callable[[], Any], edges: pd.DataFrame, text: str = "") -> Section:
    """Return the picture of a graph and its strongest edges.

    Parameters
    ----------
    draw : callable
        Draws the graph, returns Axes.
    edges : DataFrame
        `parent`, `child` and further columns, the strongest first.
    text : str
        Above both.
    """
    n = len(edges)
    tables = [
        named_table(edges.head(_EDGES), "Edges" if n <= _EDGES else f"The {_EDGES} strongest of {n} edges")
    ]
    return Section("Graph", text, tables if n else [], [picture(draw, "Graph of the class variables")])


def named_table(lines: pd.DataFrame, caption: str, digits: int = 3) -> PlainTable:
    """Return lines as a table whose first column names them, its texts short enough for a page."""
    shown = lines.rename(columns=lambda name: str(name).replace("_", " "))
    first = shown.columns[0]
    shown = shown.assign(**{first: [clip(str(value), 90) for value in shown[first]]})
    return PlainTable(shown.set_index(first), caption, digits)


def path_pictures(path: LearningPath | None, caption: str) -> list[Picture]:
    """Return the picture of a path of learning, if there is one that goes anywhere."""
    if path is None or len(path) < 2:
        return []
    return [picture(lambda: plot_path(path), caption)]


def strongest(frame: pd.DataFrame, column: str, n: int) -> pd.DataFrame:
    """Return the n lines of the largest absolute values in a column, the largest first."""
    sizes = np.nan_to_num(np.abs(frame[column].to_numpy(dtype=float)))
    return frame.iloc[np.argsort(-sizes, kind="stable")[:n]]


def mixture_section(
    text: str,
    lines: pd.DataFrame,
    caption: str,
    reliability: pd.DataFrame | None,
    path: LearningPath | None = None,
) -> Section:
    """Return what a mixture of models rests on: who was judged, and how reliable held-out rows found it."""
    figures = path_pictures(path, "The best model so far, by rows held out")
    if reliability is not None and len(reliability):
        held_out = "Reliability of the most probable combination of rows held out"
        figures.append(picture(lambda: plot_calibration(reliability), held_out))
    return Section("Mixture", text, [named_table(lines, caption)] if len(lines) else [], figures)


def member_sections(members: Mapping[str, Any], weights: Mapping[str, float]) -> list[Section]:
    """Return the sections of the heaviest members of a mixture, under their names."""
    names = sorted((name for name in members if weights.get(name, 0.0) > 0), key=lambda name: -weights[name])
    sections = []
    for name in names[:_MEMBERS]:
        for part in members[name]._report_sections():
            heading = f"{clip(name, 60)}: {part.heading[:1].lower()}{part.heading[1:]}"
            sections.append(Section(heading, part.text, part.tables, part.figures))
    return sections


def combination_table(space: ClassSpace, codes: Codes, values: Floats, name: str) -> PlainTable:
    """Return the combinations of codes (a, m) with the largest of some values (a,)."""
    best = np.argsort(-values, kind="stable")[:_COMBINATIONS]
    lines = pd.DataFrame(
        {
            "rank": range(1, len(best) + 1),
            "combination": combinations(space, codes[best], 90),
            name: values[best],
        }
    )
    few = len(best) == len(values)
    return named_table(lines, "Combinations" if few else f"{len(best)} of {len(values):,} combinations")

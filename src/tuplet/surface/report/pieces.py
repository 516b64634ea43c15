"""Helpers of all sections: closed figures, parts that may fail, texts of labels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import TupletError, TupletWarning
from tuplet.core.typing import UNKNOWN, Codes
from tuplet.space.classes import ClassSpace
from tuplet.space.words import clip, combination_texts, first_words, shorten
from tuplet.surface.pages.page import Picture, PlainTable, Section

T = TypeVar("T")


def picture(draw: Callable[[], Any], caption: str) -> Picture:
    """Draw something; the picture is no longer counted among pyplot's open figures."""
    from matplotlib import pyplot

    ax = draw()
    pyplot.close(ax.figure)
    return Picture(ax, caption)


def attempt(heading: str, make: Callable[[], Section | None]) -> list[Section]:
    """Return a section, or one with the reason if the model cannot answer a query that it needs.

    Warnings of estimates are suppressed: the page states them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TupletWarning)
        try:
            section = make()
        except TupletError as error:
            return [Section(heading, f"Not available for this model: {error}")]
    return [] if section is None else [section]


def in_time(
    rows: npt.NDArray[np.intp], work: Callable[[npt.NDArray[np.intp]], T], seconds: float = 8.0
) -> list[tuple[int, T]]:
    """Do work on rows, some at a time, until all are done or the time is up.

    Rows are taken in random order, so that the first of them are a sample: the page about a slow model rests
    on fewer rows.

    Returns
    -------
    list of tuples
        Number of rows and result, for each part.
    """
    order = np.random.default_rng(0).permutation(rows)
    done: list[tuple[int, T]] = []
    first, size, start = 0, 16, time.perf_counter()
    while first < len(order) and size:
        part = np.sort(order[first : first + size])
        done.append((len(part), work(part)))
        first += len(part)
        passed = time.perf_counter() - start
        size = min(2 * size, int(first * (seconds / passed - 1)) if passed < seconds else 0)
    return done


def facts(lines: Mapping[str, Any], caption: str = "") -> PlainTable:
    """Return a table of two columns: facts and their values."""
    texts = [_fact_text(value) for value in lines.values()]
    frame = pd.DataFrame({"value": texts}, index=pd.Index(lines, name="fact"))
    return PlainTable(frame, caption)


def _fact_text(value: Any) -> str:
    """Return words and numbers alike as texts, so that they are aligned alike."""
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def plural(n: int, what: str) -> str:
    """Return a number and what it counts."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def words_of(labels: Sequence[Any], width: int = 60) -> str:
    """Return labels in a line that is not too long."""
    return first_words([clip(str(label), 24) for label in labels], ", ", width)


def combinations(space: ClassSpace, codes: Codes, width: int = 64) -> list[str]:
    """Return each combination of codes (rows, m) as a text, complete or not."""
    whole = (codes != UNKNOWN).all(axis=1)
    texts = np.array([""] * len(codes), dtype=object)
    texts[whole] = combination_texts(space, codes[whole], width)
    texts[~whole] = _truth_texts(space, codes[~whole], width)
    return texts.tolist()


def _truth_texts(space: ClassSpace, codes: Codes, width: int = 64) -> list[str]:
    """Return the known labels of each row of codes (rows, m) as `name=label, ...`."""
    names = shorten(space.names)
    return [
        first_words(
            [
                f"{names[j]}={clip(str(space.categories[j][code]))}"
                for j, code in enumerate(row)
                if code != UNKNOWN
            ],
            ", ",
            width,
        )
        or "(nothing known)"
        for row in codes
    ]

"""Combinations of labels, probabilities and columns as short texts, for tables and plots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import numpy as np
import pandas as pd

from tuplet.core.typing import Codes
from tuplet.space.classes import ClassSpace

_LONGEST = 66
"""How long a text may become, to distinguish it from others or to fill a line."""

_WORD, _CONTEXT = re.compile(r"[^\W_]+"), 12
"""A word, and how long one may be to be kept although many texts begin with it."""


# -- combinations ------------------------------------------------------------------------------------------


def combination_texts(space: ClassSpace, codes: Codes, width: int = 48) -> list[str]:
    """Return each combination of codes (rows, m) as one short text.

    Where every label is a yes or no (0 and 1, False and True), the names of those that hold suffice.
    """
    glue = ", " if _holding(space) else " · "
    return [_fit(words, glue, width) or "(none)" for words in _words(space, codes)]


def contrast_texts(space: ClassSpace, codes: Codes, width: int = 48) -> tuple[list[str], list[str]]:
    """Return a text for each combination of codes (rows, m), and remarks on how to read them.

    Combinations that are too long to be written out are distinguished by the variables in which they differ.
    The remarks name these, and give the values of the others, which all combinations share.
    """
    glue = ", " if _holding(space) else " · "
    whole = [glue.join(words) or "(none)" for words in _words(space, codes)]
    differs = (codes != codes[:1]).any(axis=0)
    if max(map(len, whole), default=0) <= width or not differs.any():
        return shorten(whole, width), []
    apart, same = np.flatnonzero(differs).tolist(), np.flatnonzero(~differs).tolist()
    names = shorten(space.names, 16)
    if _holding(space):
        held = [[names[j] for j in apart if row[j] == 1] for row in codes]
        shared = [names[j] for j in same if codes[0, j] == 1]
    else:
        columns = [shorten(label_texts(space, j, codes), 14) for j in apart]
        held = [[column[i] for column in columns] for i in range(len(codes))]
        shared = [f"{names[j]}={clip(label_texts(space, j, codes[:1])[0], 14)}" for j in same]
    texts = [glue.join(words) or ("(no other)" if shared else "(none)") for words in held]
    remarks = (
        [] if _holding(space) else [f"bars show {first_words([names[j] for j in apart], glue, _LONGEST)}"]
    )
    remarks += [f"in all of them: {first_words(shared, glue, _LONGEST)}"] if shared else []
    return shorten(texts, width), remarks


def _fit(words: list[str], glue: str, width: int) -> str:
    """Return all words if they fit, otherwise shorter ones, and as many of them as fit."""
    return first_words(words if len(glue.join(words)) <= width else shorten(words), glue, width)


def _words(space: ClassSpace, codes: Codes) -> list[list[str]]:
    """Return the names that hold, or the labels, of each combination."""
    if _holding(space):
        return [[name for name, code in zip(space.names, row, strict=True) if code == 1] for row in codes]
    columns = [label_texts(space, j, codes) for j in range(space.n_variables)]
    return [[column[i] for column in columns] for i in range(len(codes))]


def _holding(space: ClassSpace) -> bool:
    return space.n_variables > 1 and is_yes_no(space)


def label_texts(space: ClassSpace, j: int, codes: Codes) -> list[str]:
    """Return the labels of variable j in codes (rows, m)."""
    return [str(label) for label in space.decode_column(j, codes[:, j])]


def is_yes_no(space: ClassSpace) -> bool:
    """Whether every label is a yes or no."""
    return all(space.yes_no(j) for j in range(space.n_variables))


# -- short texts -------------------------------------------------------------------------------------------


def first_words(words: Sequence[str], glue: str, width: int) -> str:
    """Return as many words as fit, and how many do not."""
    words = [clip(word, width) for word in words]
    kept = len(words)
    while kept > 1 and len(glue.join(words[:kept])) > width:
        kept -= 1
    return glue.join(words[:kept]) + (f" + {len(words) - kept} more" if kept < len(words) else "")


def chance_text(chance: float) -> str:
    """Return a probability with three digits, or its order of magnitude if it would round to zero."""
    return f"{chance:.3f}" if chance >= 0.001 or chance == 0 else f"{chance:.0e}"


def clip(text: str, width: int = 18) -> str:
    """Return a text on one line and no longer than this: what is left out is in the middle."""
    text = " ".join(text.split())  # a line stays a line
    if len(text) <= width:
        return text
    tail = (width - 1) // 2  # names that are much alike tend to differ at the end
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]


def shorten(texts: Sequence[str], width: int = 18) -> list[str]:
    """Return clipped texts that stay apart: without common ends, longer, or numbered where that must be."""
    every = list(dict.fromkeys(texts))
    bare = _without_common_ends(every)
    tries = [(every, width), (bare, width), *((every, longer) for longer in range(width, _LONGEST + 1, 6))]
    for candidates, longer in tries:
        short = [clip(text, longer) for text in candidates]
        if len(set(short)) == len(every):
            break
    else:
        clipped = [clip(text, width) for text in every]
        counts = [clipped[:i].count(text) for i, text in enumerate(clipped)]
        short = [f"{text} ({n + 1})" if n else text for text, n in zip(clipped, counts, strict=True)]
    look = dict(zip(every, short, strict=True))
    return [look[text] for text in texts]


def _without_common_ends(texts: Sequence[str]) -> list[str]:
    """Return the words in which texts differ and the one before; the texts themselves if one has none."""
    shared = _common_start(texts)
    ends = _common_start([text[len(shared) :][::-1] for text in texts])[::-1]
    words = list(_WORD.finditer(shared))
    start = words[-1].start() if words and len(shared) - words[-1].start() <= _CONTEXT else len(shared)
    rest = _WORD.match(ends)  # a word that is cut is no word
    end = len(ends) - (rest.end() if rest else 0)
    cores = [text[start : len(text) - end] for text in texts]
    if not all(core.strip() for core in cores):
        return list(texts)
    return [f"{'…' * (start > 0)}{core.strip()}{'…' * (end > 0)}" for core in cores]


def _common_start(texts: Sequence[str]) -> str:
    """Return what all texts begin with: what the first and the last in the alphabet do."""
    first, last = min(texts, default=""), max(texts, default="")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in same)


# -- columns -----------------------------------------------------------------------------------------------


def column_kind(column: pd.Series) -> str:
    """Return what a column holds, in a word."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordered" if dtype.ordered else "categorical"
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_numeric_dtype(dtype):
        return "numeric"
    return "dates" if pd.api.types.is_datetime64_any_dtype(dtype) else "text"


def values_text(column: pd.Series) -> str:
    """Return the range of numbers and dates, or the most frequent of other values."""
    present = column.dropna()
    if present.empty:
        return "none"
    if column_kind(column) == "numeric":
        low, middle, high = np.quantile(present.to_numpy(dtype=float), [0, 0.5, 1])
        return f"{low:.4g} to {high:.4g}, median {middle:.4g}"
    if column_kind(column) == "dates":
        first, last = (str(moment).removesuffix(" 00:00:00") for moment in (present.min(), present.max()))
        return f"{first} to {last}"
    counts = present.astype(str).value_counts()
    return first_words([clip(f"{value} ({n})", 24) for value, n in counts.head(6).items()], ", ", 70)

"""Combinations of labels and probabilities as short texts, for tables and pictures."""

from __future__ import annotations

from tuplet.space.classes import ClassSpace
from tuplet.typing import Codes

__all__ = ["chance_text", "clip", "combination_texts", "is_yes_no", "label_texts"]


def combination_texts(space: ClassSpace, codes: Codes, width: int = 48) -> list[str]:
    """Return each combination of codes (rows, m) as one short text.

    Where every label is a yes or no (0 and 1, False and True), the names of those that hold say it all.
    """
    if space.n_variables > 1 and is_yes_no(space):
        held = [[name for name, c in zip(space.names, row, strict=True) if c == 1] for row in codes]
        return [_join(names, ", ", width) or "(none)" for names in held]
    columns = [label_texts(space, j, codes) for j in range(space.n_variables)]
    return [_join(list(row), " · ", width) for row in zip(*columns, strict=True)]


def label_texts(space: ClassSpace, j: int, codes: Codes) -> list[str]:
    """Return the labels of variable j in codes (rows, m)."""
    return [str(label) for label in space.decode_column(j, codes[:, j])]


def is_yes_no(space: ClassSpace) -> bool:
    """Whether every label is a yes or no."""
    return all(c.dtype.kind in "biuf" and c.tolist() == [0, 1] for c in space.categories)


def _join(words: list[str], glue: str, width: int) -> str:
    """Return as many words as fit, and how many do not."""
    words = [clip(word, width) for word in words]
    kept = len(words)
    while kept > 1 and len(glue.join(words[:kept])) > width:
        kept -= 1
    return glue.join(words[:kept]) + (f" + {len(words) - kept} more" if kept < len(words) else "")


def chance_text(chance: float) -> str:
    """Return a probability with three digits, and one that these would call zero by its order."""
    return f"{chance:.3f}" if chance >= 0.001 or chance == 0 else f"{chance:.0e}"


def clip(text: str, width: int = 18) -> str:
    """Return a text on one line and no longer than this."""
    text = " ".join(text.split())  # a line stays a line
    return text if len(text) <= width else text[: width - 1] + "…"

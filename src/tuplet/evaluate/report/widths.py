"""Columns of text that stay straight."""

from __future__ import annotations

import unicodedata


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters two, combining ones none.

    Examples
    --------
    >>> display_width("naïve"), display_width("数据")
    (5, 4)
    """
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def align_left(text: str, width: int) -> str:
    """Return a text with spaces behind it."""
    return text + " " * (width - display_width(text))


def align_right(text: str, width: int) -> str:
    """Return a text with spaces before it."""
    return " " * (width - display_width(text)) + text

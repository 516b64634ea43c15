"""Numbers that are written as text, with a decimal point or a decimal comma."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np
import pandas as pd

from tuplet.core.typing import Floats
from tuplet.space.features.inputs import as_floats, holds_numbers

NumeralStyle: TypeAlias = Literal["point", "comma", "thousands"]
"""1234.5; 1234,5 or 1.234,5; 1,234.5."""

# A leading zero, as in 007, marks a code, which is no number.
_WHOLE = r"(0|[1-9]\d*)"
_PATTERNS: dict[NumeralStyle, re.Pattern[str]] = {
    "point": re.compile(rf"[+-]?({_WHOLE}(\.\d*)?|\.\d+)([eE][+-]?\d+)?"),
    "thousands": re.compile(rf"[+-]?({_WHOLE}|[1-9]\d{{0,2}}(,\d{{3}})+)(\.\d+)?"),
    "comma": re.compile(rf"[+-]?({_WHOLE}|[1-9]\d{{0,2}}(\.\d{{3}})+)(,\d+)?"),
}


@final
@dataclass(frozen=True)
class WrittenNumbers:
    """A column of numbers that are written as text in one style; other texts are missing values.

    Examples
    --------
    >>> WrittenNumbers("comma").read(pd.Series(["1.234,5", "0,25", "n/a"]))
    [array([1.2345e+03, 2.5000e-01,        nan])]
    """

    style: NumeralStyle

    def names(self, name: str) -> list[str]:
        """Return the name of the column."""
        return [name]

    def read(self, column: pd.Series) -> list[Floats]:
        """Return the numbers (n,)."""
        if holds_numbers(column):
            return [as_floats(column.to_frame())[:, 0]]
        codes, texts = pd.factorize(column)
        numbers = np.array([*(self._number(str(text)) for text in texts), np.nan])
        return [numbers[codes]]  # a missing value has the code -1, which picks the last entry

    def _number(self, text: str) -> float:
        text = text.strip()
        if not _PATTERNS[self.style].fullmatch(text):
            return np.nan
        if self.style == "comma":
            text = text.replace(".", "").replace(",", ".")
        return float(text.replace(",", ""))


def find_style(texts: Sequence[str], share: float = 1.0) -> NumeralStyle | None:
    """Return the style in which this share of texts are numbers, or None.

    Examples
    --------
    >>> find_style(["12", "1.5"]), find_style(["12", "1,5"]), find_style(["1,000", "12,500"])
    ('point', 'comma', 'thousands')
    >>> find_style(["007", "012"]) is None
    True
    """
    if not texts:
        return None
    for style, pattern in _PATTERNS.items():
        numbers = sum(pattern.fullmatch(text.strip()) is not None for text in texts[:100])
        if numbers < share * min(100, len(texts)) * 0.9:  # most texts are no numbers: seen at once
            continue
        if sum(pattern.fullmatch(text.strip()) is not None for text in texts) >= share * len(texts):
            return style
    return None

"""Numbers that are written as text, as spreadsheets of different countries write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NamedTuple, TypeAlias, final

import numpy as np
import pandas as pd

from tuplet.core.typing import Floats
from tuplet.space.features.inputs import as_floats, holds_numbers

DecimalMark: TypeAlias = Literal[".", ","]

_SHARES = {"%": 0.01, "‰": 0.001}
_CURRENCY = (
    r"(?:[A-Z]{1,2}\$|[$€£¥¢\u20a0-\u20cf]|EUR|USD|CHF|GBP|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF"
    r"|RON|BRL|MXN|ZAR|TRY|S?Fr\.|kr\.?|zł|Kč)"
)
_UNIT = rf"(?:[%‰]|{_CURRENCY})"
_SIGN = "[-+−–]"

_PARTS = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>{_SIGN}?)\s*(?P<before>{_UNIT}?)\s*(?P<later>{_SIGN}?)\s*"
    r"(?P<digits>\d(?:[\d.,'’ \u00a0\u2009\u202f]*[\d.,])?|[.,]\d+)(?P<power>[eE][+-]?\d+)?"
    rf"\s*(?P<after>{_UNIT}?)\s*(?P<last>[-−–]?)\s*(?P<close>\))?"
)
"""A number with a sign, a unit before or behind it, or in parentheses, which make it negative."""

_SAME = str.maketrans({"’": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " "})

_STYLES: tuple[tuple[DecimalMark, str], ...] = (
    (".", ""), (".", ","), (",", ""), (",", "."), (".", "'"), (",", "'"), (",", " "), (".", " "),
)  # fmt: skip
"""Decimal mark and what is between thousands; where several fit, the first."""

_MARKS = {".": "point", ",": "comma", "'": "apostrophe", " ": "space"}


class _Numeral(NamedTuple):
    """A number taken apart; its digits have marks yet to be understood."""

    negative: bool
    digits: str
    power: str
    unit: str


def _taken_apart(text: str) -> _Numeral | None:
    """Return the parts of a number, None for a text that is none in any style."""
    found = _PARTS.fullmatch(text.strip())
    if found is None:
        return None
    signs = [found[name] for name in ("sign", "later", "last") if found[name]]
    units = [found[name] for name in ("before", "after") if found[name]]
    in_parentheses = found["open"] is not None
    if len(signs) + in_parentheses > 1 or len(units) > 1 or in_parentheses != (found["close"] is not None):
        return None
    negative = in_parentheses or signs not in ([], ["+"])
    return _Numeral(negative, found["digits"].translate(_SAME), found["power"] or "", "".join(units))


@cache
def _pattern(decimal: DecimalMark, group: str) -> re.Pattern[str]:
    # A leading zero, as in 007, marks a code, which is no number.
    groups = rf"|[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}})+" if group else ""
    mark = re.escape(decimal)
    return re.compile(rf"(?:0|[1-9]\d*{groups})(?:{mark}\d*)?|{mark}\d+")


@final
@dataclass(frozen=True)
class WrittenNumbers:
    """A column of numbers that are written as text in one style; other texts are missing values.

    Parameters
    ----------
    decimal : {".", ","}
        The decimal mark.
    group : {"", ",", ".", "'", " "}
        What is between thousands. Numbers without it are read as well.
    unit : str
        A currency, which numbers may have, or a percent sign, which all but 0 must have: 45% is 0.45.

    Examples
    --------
    >>> WrittenNumbers(",", ".").read(pd.Series(["1.234,5", "0,25", "n/a"]))
    [array([1.2345e+03, 2.5000e-01,        nan])]
    >>> WrittenNumbers(unit="%").read(pd.Series(["45%", "7.5 %"]))
    [array([0.45 , 0.075])]
    """

    decimal: DecimalMark = "."
    group: str = ""
    unit: str = ""

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
        parts = _taken_apart(text)
        if parts is None or not self._fits(parts):
            return np.nan
        digits = parts.digits.replace(self.group, "") if self.group else parts.digits
        size = float(digits.replace(self.decimal, ".") + parts.power)
        size *= _SHARES.get(self.unit, 1.0)
        return np.nan if np.isinf(size) else -size if parts.negative else size

    def _fits(self, parts: _Numeral) -> bool:
        if not _pattern(self.decimal, self.group).fullmatch(parts.digits):
            return False
        if parts.unit == self.unit:
            return True
        return not parts.unit and (self.unit not in _SHARES or not parts.digits.strip("0.,"))

    def with_decimal(self, mark: DecimalMark) -> WrittenNumbers:
        """Return the other reading of numbers such as 1,234 and 1.234, if this is not the one wanted."""
        if mark == self.decimal:
            return self
        return replace(self, decimal=mark, group="" if self.group else self.decimal)

    def __str__(self) -> str:
        is_usual = self.decimal == "." and bool(self.group or self.unit)
        words = [] if is_usual else [f"decimal {_MARKS[self.decimal]}"]
        words += [f"{_MARKS[self.group]}s between thousands"] if self.group else []
        words += ["percent" if self.unit == "%" else self.unit] if self.unit else []
        return ", ".join(words)


class NumberStyle(NamedTuple):
    """How the numbers of a column of text are written.

    Attributes
    ----------
    reader : WrittenNumbers
    example : str
        A number of the column if all of them can be read in two ways, as 1,234; otherwise nothing.
    has_marks : bool
        Whether a number has a mark, by which the style can be recognised.
    """

    reader: WrittenNumbers
    example: str = ""
    has_marks: bool = True

    @property
    def is_certain(self) -> bool:
        """Whether the numbers show which decimal mark is used where they come from."""
        return self.has_marks and not self.example

    def with_decimal(self, mark: DecimalMark) -> NumberStyle:
        """Return the style with a decimal mark that is known from elsewhere, if this one is not certain."""
        if self.is_certain:
            return self
        reader = self.reader
        return self._replace(
            reader=reader.with_decimal(mark) if self.has_marks else replace(reader, decimal=mark)
        )

    def __str__(self) -> str:
        if not self.example:
            return str(self.reader)
        number = self.reader.read(pd.Series([self.example]))[0][0]
        return f"{self.reader}: {self.example} is read as {number:.12g}"


def find_style(texts: Sequence[str], share: float = 1.0) -> NumberStyle | None:
    """Return the style in which this share of texts are numbers, or None.

    One number that can be read in one way only decides for all. Where all can be read in two ways, since the
    only mark is followed by three digits, the mark is between thousands in amounts of money, and decimal in
    percentages. In other columns a comma is between thousands, and a point is decimal.

    Examples
    --------
    >>> styles = [find_style(each) for each in (["12", "1.5"], ["1,234", "1,5"], ["1,234", "12,500"])]
    >>> print(*styles, sep="; ")
    decimal point; decimal comma; commas between thousands: 1,234 is read as 1234
    >>> print(find_style(["€ 1.234,50", "€ 3"]))
    decimal comma, points between thousands, €
    >>> find_style(["007", "012"]) is None
    True
    """
    if not texts:
        return None
    few = [_taken_apart(text) for text in texts[:100]]
    if sum(part is not None for part in few) < share * len(few) * 0.9:  # most are no numbers: seen at once
        return None
    parts = [part for part in map(_taken_apart, texts) if part is not None]
    if len(parts) < share * len(texts):
        return None
    unit = Counter(part.unit for part in parts if part.unit).most_common(1)
    readers = [WrittenNumbers(*style, unit[0][0] if unit else "") for style in _possible(parts)]
    counts = [sum(map(each._fits, parts)) for each in readers]
    if max(counts) < share * len(texts):
        return None
    return _chosen([each for each, n in zip(readers, counts, strict=True) if n == max(counts)], parts)


def _possible(parts: Sequence[_Numeral]) -> list[tuple[DecimalMark, str]]:
    """Return the styles whose mark between thousands occurs, and the plain ones."""
    marks = {mark for part in parts for mark in part.digits if not mark.isdigit()}
    return [style for style in _STYLES if not style[1] or style[1] in marks]


def _chosen(fitting: list[WrittenNumbers], parts: Sequence[_Numeral]) -> NumberStyle:
    """Return the style of a column for which several may fit."""
    first = fitting[0]
    other = next((each for each in fitting if each == first.with_decimal(_other(first.decimal))), None)
    example = next((part.digits for part in parts if not part.digits.isdigit()), "")
    if other is None or not example:
        return NumberStyle(first, has_marks=bool(example))
    plain, grouped = (first, other) if other.group else (other, first)
    if any(len(part.digits) > 3 for part in parts if part.digits.isdigit()):
        return NumberStyle(plain)  # as 1500 beside 2,500: thousands have no mark
    if first.unit:
        return NumberStyle(plain if first.unit in _SHARES else grouped, _with_unit(example, first.unit))
    return NumberStyle(first, example)


def _other(mark: DecimalMark) -> DecimalMark:
    return "," if mark == "." else "."


def _with_unit(digits: str, unit: str) -> str:
    return digits + unit if unit in _SHARES else f"{unit} {digits}"

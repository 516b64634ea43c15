"""Dates and times as numbers: days since 1970, and the parts of a date that come round again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.features.inputs import DATES

_LENGTHS = {"timedelta64", "timedelta"}
"""What pandas calls columns of lengths of time."""

# -- days --------------------------------------------------------------------------------------------------


def days(column: pd.Series) -> Floats:
    """Return points in time as days since 1970 in UTC, and lengths of time as days; NaN where missing."""
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind not in DATES and not column.isna().all():
        raise InputError(f"X must hold dates in the column {str(column.name)!r}, as in fit.")
    if kind in _LENGTHS:
        return _in_days(pd.Series(pd.to_timedelta(column)))
    if kind == "period":
        return _in_days(_moments(pd.Series(pd.PeriodIndex(column).to_timestamp())))
    return _in_days(_moments(column))


def is_length_of_time(column: pd.Series) -> bool:
    """Return whether a column holds lengths of time, not points in time."""
    return pd.api.types.infer_dtype(column, skipna=True) in _LENGTHS


def _moments(column: pd.Series) -> pd.Series:
    """Return points in time as lengths of time since 1970 in UTC, by the second where they are far away."""
    try:
        moments = pd.to_datetime(pd.Series(column), utc=True)
    except pd.errors.OutOfBoundsDatetime:  # objects, which older pandas counts in nanoseconds
        moments = pd.Series([_second(value) for value in column], dtype="datetime64[s]").dt.tz_localize("UTC")
    return moments - pd.Timestamp(0, tz="UTC").as_unit("s")


def _second(value: Any) -> Any:
    """Return a point in time without a zone, in UTC."""
    if pd.isna(value):
        return None
    zone = getattr(value, "tzinfo", None)
    return np.datetime64(value.astimezone(UTC).replace(tzinfo=None) if zone else value, "s")


def _in_days(lengths: pd.Series) -> Floats:
    return np.asarray(lengths.dt.total_seconds(), dtype=float) / 86_400


# -- dates that are written as text ------------------------------------------------------------------------

_ISO = "ISO8601"
"""What pandas calls all formats that begin with year-month."""

_DAYS = (
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%d-%b-%Y", "%b %d, %Y",
    "%B %d, %Y",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", ", %H:%M")
_FORMATS = tuple(day + time for day in _DAYS for time in _TIMES)

_MAYBE = re.compile(r"(?=.*\d)[\w :.,/+\-]{6,35}")
_YEAR_FIRST = re.compile(r"\d{4}-\d{2}(-\d{2}.*)?")


class DateFormat(NamedTuple):
    """The one format of a column of dates that are written as text.

    Attributes
    ----------
    format : str
        For `pandas.to_datetime`.
    doubt : bool
        Whether day and month could be the other way round as well.
    """

    format: str
    doubt: bool = False


def find_format(texts: Sequence[str], in_order: pd.Series, share: float = 1.0) -> DateFormat | None:
    """Return the format in which texts are dates, or None.

    If day and month can both come first, the order in which the rows are sorted decides. If neither or both
    orders are sorted, the day comes first, which is marked as doubtful.

    Parameters
    ----------
    texts : sequence of str
        Different values of the column.
    in_order : Series
        The column itself, row by row.
    share : float
        Share of the texts that must be dates.

    Examples
    --------
    >>> texts = ["01.02.2020", "24.12.2020"]
    >>> find_format(texts, pd.Series(texts))
    DateFormat(format='%d.%m.%Y', doubt=False)
    >>> find_format(["wet", "dry"], pd.Series(["wet", "dry"])) is None
    True
    """
    if not all(_MAYBE.fullmatch(text) for text in texts[:3]):
        return None
    column = pd.Series(texts, dtype=object)
    found = [each for each in _candidates(texts[:3]) if written_days(column, each)[1] >= share * len(texts)]
    if len(found) < 2:
        return DateFormat(found[0]) if found else None
    sorted_ones = [each for each in found if _is_sorted(written_days(in_order, each)[0])]
    return DateFormat(sorted_ones[0]) if len(sorted_ones) == 1 else DateFormat(found[0], doubt=True)


def written_days(column: pd.Series, format: str) -> tuple[Floats, int]:
    """Return days (n,) since 1970, NaN for what is no date in this format, and the number of dates."""
    if pd.api.types.infer_dtype(column, skipna=True) in DATES:
        answer = days(column)
    else:
        text = column.where(column.isna(), column.astype(str).str.strip())
        answer = _in_days(_moments(pd.to_datetime(text, format=format, errors="coerce", utc=True)))
    return answer, int(np.isfinite(answer).sum())


def _candidates(texts: Iterable[str]) -> list[str]:
    """Return the formats in which any of a few texts is a date."""
    found = dict.fromkeys(_ISO for text in texts if _YEAR_FIRST.fullmatch(text.strip()))
    for text in texts:
        for each in _FORMATS:
            with suppress(ValueError):
                datetime.strptime(text.strip(), each)
                found[each] = None
    return list(found)


def _is_sorted(numbers: Floats) -> bool:
    steps = np.diff(numbers[np.isfinite(numbers)])
    return bool((steps >= 0).all() or (steps <= 0).all())


# -- parts of dates ----------------------------------------------------------------------------------------

_PERIODS = {"season": 365.2425, "weekday": 7.0, "hour": 1.0}
"""Days until a part of a date comes round again."""

_ENOUGH = 30
"""Dates below which their parts are not worth further columns."""


@final
@dataclass(frozen=True)
class DateParts:
    """A column of dates as days since 1970, with sine and cosine of the parts that vary.

    Parameters
    ----------
    parts : tuple of {"season", "weekday", "hour"}
    format : str, optional
        Format of dates that are written as text.
    """

    parts: tuple[str, ...] = ()
    format: str | None = None

    def names(self, name: str) -> list[str]:
        """Return the names of the columns."""
        return [name, *(f"{name} {part} {wave}" for part in self.parts for wave in ("sin", "cos"))]

    def read(self, column: pd.Series) -> list[Floats]:
        """Return the columns (n,) of numbers."""
        numbers = days(column) if self.format is None else written_days(column, self.format)[0]
        return [numbers, *(wave for part in self.parts for wave in waves(numbers, part))]


def varying_parts(numbers: Floats) -> tuple[str, ...]:
    """Return which parts of dates (n,), in days, vary enough to matter.

    The season if the dates span more than a year, the weekday if they span two weeks, the hour if there is
    any.

    Examples
    --------
    >>> varying_parts(np.arange(400.0)), varying_parts(np.arange(40) / 24)
    (('season', 'weekday'), ('hour',))
    """
    known = numbers[np.isfinite(numbers)]
    if len(known) < _ENOUGH:
        return ()
    span, whole = np.ptp(known), np.floor(known)
    varies = {
        "season": span > _PERIODS["season"],
        "weekday": span >= 14 and bool(np.ptp(whole % 7)),
        "hour": bool(np.ptp(known - whole)),
    }
    return tuple(part for part, found in varies.items() if found)


def waves(numbers: Floats, part: str) -> tuple[Floats, Floats]:
    """Return sine and cosine (n,) of a part of dates (n,), which are in days."""
    angle = 2 * np.pi * (np.floor(numbers) if part == "weekday" else numbers) / _PERIODS[part]
    return np.sin(angle), np.cos(angle)

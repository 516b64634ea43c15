"""Columns of a frame, read one by one: what kind each is, and why, decided from the training rows.

What is read has columns of two kinds only: numbers, and categories of few values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol, final

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError, TupletWarning, warn_outside
from tuplet.core.typing import UNKNOWN, Floats
from tuplet.space.containers import listing
from tuplet.space.features.dates import (
    DateParts,
    days,
    find_format,
    is_length_of_time,
    varying_parts,
    waves,
    written_days,
)
from tuplet.space.features.inputs import kind_of, unused
from tuplet.space.features.nominal import codes_and_values, merge_rare
from tuplet.space.features.numerals import DecimalMark, NumberStyle, WrittenNumbers, find_style
from tuplet.space.features.rates import LabelIndicators, learn_rates
from tuplet.space.features.texts import learn_terms

_NEARLY = 0.9
"""Share of numbers or dates in a column of text from which on other values count as missing."""

_DISTINCT, _FEW_ROWS = 0.95, 20
"""Share of different values from which on a column of text identifies rows, if there are more rows."""

_WORDS = 3
"""Words on average from which on texts are free text."""

_SAMPLE = 10_000
"""Different values by which numbers, dates and free text are recognised, at most."""

_FEWEST, _MOST = 20, 40
"""Values of a category that has a 0/1 column for each, at most: one for every fifty rows, within these.

Ten for few rows were too few: 12 places of recordings (birds, 645 rows) then lost .15 nats in a chain.
"""

_MOST_GIVEN = 255
"""The same where a user declared a column to be a category."""

_RARE_ROWS = 10
"""Rows below which a value is rare, or a hundredth of all rows if these are fewer."""


class ColumnReader(Protocol):
    """How a column of X is read."""

    def names(self, name: str) -> list[str]:
        """Return the names of the columns that it becomes."""

    def read(self, column: pd.Series) -> list[Any]:
        """Return the columns (n,) that it becomes: numbers, or categories."""


@final
@dataclass(frozen=True)
class KeptColumn:
    """A column that stays as it is: numbers, or categories of few values."""

    def names(self, name: str) -> list[str]:
        """Return the name of the column."""
        return [name]

    def read(self, column: pd.Series) -> list[Any]:
        """Return the column."""
        return [column]


@final
@dataclass(frozen=True)
class DroppedColumn:
    """A column that is left out."""

    def names(self, name: str) -> list[str]:
        """Return nothing."""
        return []

    def read(self, column: pd.Series) -> list[Any]:
        """Return nothing."""
        return []


@final
@dataclass(frozen=True)
class RowNumbers:
    """Integers that number the training rows and are correlated with no label.

    The numbers of new rows are mostly beyond those of all training rows, and a line through labels that do
    not depend on them would be extrapolated; so they count as missing.

    Parameters
    ----------
    low, high : int
        The first and the last of the training rows.
    """

    low: int
    high: int

    def names(self, name: str) -> list[str]:
        """Return the name of the column."""
        return [name]

    def read(self, column: pd.Series) -> list[Any]:
        """Return the numbers (n,), NaN outside of the training range."""
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return [np.where((values >= self.low) & (values <= self.high), values, np.nan)]


@dataclass(frozen=True)
class ReadColumn:
    """What a column was found to be.

    Parameters
    ----------
    kind : {"number", "date", "category", "target", "text", "drop"}
    reader : ColumnReader
    reason : str
    warning : str
        For users; mostly there is none.
    training : list of arrays, optional
        The columns of the training rows, where these are not what the reader returns.
    style : NumberStyle, optional
        Of numbers that are written as text.
    """

    kind: str
    reader: ColumnReader
    reason: str
    warning: str = ""
    training: list[Any] | None = None
    style: NumberStyle | None = None


# -- tables ------------------------------------------------------------------------------------------------

_NOTHING = "(no feature)"
"""Name of a column of zeros, where no column is of use."""


@final
@dataclass(frozen=True, eq=False)
class TableReader:
    """How all columns of a frame are read.

    Parameters
    ----------
    readers : tuple of ColumnReader
        One for each column of X.
    names : tuple of tuples of str
        Names of the columns that each column of X becomes.
    kinds, reasons : tuple of str
        What each column of X is, and why.
    """

    readers: tuple[ColumnReader, ...]
    names: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]
    reasons: tuple[str, ...]

    @classmethod
    def learn(
        cls,
        X: pd.DataFrame,
        columns: Mapping[Any, str] | None = None,
        labels: LabelIndicators | None = None,
        *,
        text_is_discrete: bool = False,
    ) -> tuple[TableReader, pd.DataFrame]:
        """Learn from the training rows; return what was learned, and the rows as they are read.

        Parameters
        ----------
        X : DataFrame, shape (n, d)
        columns : mapping of names to kinds, optional
            What users have declared.
        labels : LabelIndicators, optional
            Labels of the rows; without them no column becomes frequencies of labels.
        text_is_discrete : bool
            Whether text of few values is a category even if these are numbers or dates.
        """
        names = [str(name) for name in X.columns]
        given = _checked(columns or {}, names)
        found = _same_decimals(
            [
                read_column(column, given.get(name), labels, text_is_discrete)
                for name, (_, column) in zip(names, X.items(), strict=True)
            ]
        )
        for each in found:
            if each.warning:
                warn_outside(each.warning, TupletWarning)
        reader = cls(
            tuple(each.reader for each in found),
            _unique(names, found),
            tuple(each.kind for each in found),
            tuple(each.reason for each in found),
        )
        if not any(reader.names):
            warn_outside(
                f"No column of X is of use ({listing(names, 5)}), so predictions do not depend on X;"
                " columns={name: kind} declares what a column is.",
                TupletWarning,
            )
        return reader, reader._frame(X, [each.training for each in found])

    def read(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return rows of X, with the columns of `learn`, in numbers and categories.

        Numbers as text are read as those of the training rows, unless X has them with the other decimal mark.
        """
        learned = {j: reader for j, reader in enumerate(self.readers) if isinstance(reader, WrittenNumbers)}
        readers = {**dict(enumerate(self.readers)), **_readers_of(X, learned)}
        return replace(self, readers=tuple(readers.values()))._frame(X, [None] * len(readers))

    def _frame(self, X: pd.DataFrame, known: Sequence[list[Any] | None]) -> pd.DataFrame:
        """Return what columns of X become; `known` are those of training rows that no reader returns."""
        kept = [isinstance(reader, KeptColumn) for reader in self.readers]
        if all(kept):
            return X
        if [bool(names) for names in self.names] == kept and any(kept):
            return X.iloc[:, np.flatnonzero(kept)]
        columns = {
            name: part
            for names, reader, given, (_, column) in zip(
                self.names, self.readers, known, X.items(), strict=True
            )
            for name, part in zip(names, reader.read(column) if given is None else given, strict=True)
        }
        return pd.DataFrame(columns or {_NOTHING: np.zeros(len(X))}, index=X.index)


def written_numbers(X: pd.DataFrame, columns: Mapping[Any, str] | None = None) -> dict[str, WrittenNumbers]:
    """Return columns of a frame with numbers that are written as text; see `TableReader.learn`."""
    return {
        name: each.reader
        for name, each in _read_texts(X, columns).items()
        if isinstance(each.reader, WrittenNumbers)
    }


def number_styles(X: pd.DataFrame, columns: Mapping[Any, str] | None = None) -> dict[str, str]:
    """Return in words how the columns of `written_numbers` are written."""
    return {
        name: re.sub(r"numbers, (?:written as text|nearly all) \((.*)\)", r"\1", each.reason)
        for name, each in _read_texts(X, columns).items()
        if isinstance(each.reader, WrittenNumbers)
    }


def _read_texts(X: pd.DataFrame, columns: Mapping[Any, str] | None) -> dict[str, ReadColumn]:
    given = _checked(columns or {}, [str(name) for name in X.columns])
    texts = {str(name): column for name, column in X.items() if kind_of(column) == "nominal"}
    found = [read_column(column, given.get(name), None) for name, column in texts.items()]
    return dict(zip(texts, _same_decimals(found), strict=True))


def _checked(columns: Mapping[Any, str], names: list[str]) -> dict[str, str]:
    """Return what users declared columns to be, by name."""
    if not isinstance(columns, Mapping):
        raise InputError(f"columns must map names of columns to kinds; found {type(columns).__name__}.")
    for name, kind in columns.items():
        if str(name) not in names:
            close = get_close_matches(str(name), names, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"these are {listing(names, 5)}."
            raise InputError(f"columns names {str(name)!r}, which is no column of X; {hint}")
        if not isinstance(kind, str) or (kind not in _BY_KIND and "%" not in kind):
            raise InputError(
                f"columns declares {str(name)!r} as {kind!r}; a column can be {listing(_BY_KIND)}, or a"
                " format of dates such as '%d.%m.%Y'."
            )
    return {str(name): kind for name, kind in columns.items()}


def _same_decimals(found: list[ReadColumn]) -> list[ReadColumn]:
    """Return columns of numbers such as 1,234 and 12 with the decimal mark of the others, if these agree."""
    styles = [each.style for each in found if each.style is not None]
    marks = {style.reader.decimal for style in styles if style.is_certain}
    if len(marks) != 1 or all(style.is_certain for style in styles):
        return found
    return [_with_decimal(each, *marks) for each in found]


def _with_decimal(column: ReadColumn, mark: DecimalMark) -> ReadColumn:
    if column.style is None or column.style.is_certain:
        return column
    style = column.style.with_decimal(mark)
    return replace(_numerals(style), reason=_as_text(style) + ", as in other columns" * bool(style.example))


def _unique(names: list[str], found: list[ReadColumn]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the columns after reading, each once; columns that keep their name come first."""
    own = [each.reader.names(name) for name, each in zip(names, found, strict=True)]
    same = [name for name, some in zip(names, own, strict=True) if some and some[0] == name]
    others = iter(
        unused([new for some, name in zip(own, names, strict=True) for new in some if new != name], same)
    )
    return tuple(
        tuple(name if new == name else next(others) for new in some)
        for some, name in zip(own, names, strict=True)
    )


# -- one column --------------------------------------------------------------------------------------------

_EMPTY = "no value in the training rows"


def read_column(
    column: pd.Series, kind: str | None, labels: LabelIndicators | None, text_is_discrete: bool = False
) -> ReadColumn:
    """Return what a column is: of the kind that a user declared, or what its values suggest."""
    if kind is not None and "%" in kind:
        return _dated(column, kind, labels, "declared, with its format")
    if kind is not None:
        return _BY_KIND[kind](column, labels)
    if column.isna().all():
        return ReadColumn("drop", DroppedColumn(), _EMPTY)
    found = kind_of(column)
    if found == "number":
        return _number(column, labels)
    return _date(column, labels, "dates") if found == "date" else _nominal(column, labels, text_is_discrete)


def _number(column: pd.Series, labels: LabelIndicators | None) -> ReadColumn:
    is_extension = isinstance(column.dtype, pd.api.extensions.ExtensionDtype)
    # Comparisons with the missing value of such columns are neither true nor false.
    values = column.to_numpy(dtype=float, na_value=np.nan) if is_extension else column.to_numpy()
    if len(values) > 1 and values[0] == values[-1] and (values == values[0]).all():
        return ReadColumn("drop", DroppedColumn(), f"constant, {column.iloc[0]}")
    if pd.api.types.is_bool_dtype(column.dtype):
        return ReadColumn("number", KeptColumn(), "booleans")
    warning = _counter_warning(column)
    if warning and labels is not None and labels.correlated(column.to_numpy(dtype=float)[:, None])[0] <= 0:
        reader = RowNumbers(int(column.min()), int(column.max()))
        return ReadColumn("number", reader, "numbers of the rows, correlated with no label", warning)
    return ReadColumn("number", KeptColumn(), "numbers", warning)


def warn_of_counters(frame: pd.DataFrame) -> None:
    """Warn about columns of a frame of numbers that count its rows."""
    for j in np.flatnonzero([dtype.kind in "iu" for dtype in frame.dtypes]).tolist():
        if warning := _counter_warning(frame.iloc[:, j]):
            warn_outside(warning, TupletWarning)


def _counter_warning(column: pd.Series) -> str:
    """Return a warning if integers count the rows, otherwise nothing."""
    if len(column) <= _FEW_ROWS or column.dtype.kind not in "iu" or pd.isna(column.iloc[0]):
        return ""
    if not 0 <= column.iloc[0] <= len(column):  # seen at once in most columns
        return ""
    low, high = column.min(), column.max()
    if low not in (0, 1) or high - low != len(column) - 1 or not column.is_unique:
        return ""
    return (
        f"The column {str(column.name)!r} counts the rows from {low} to {high}; if it is no feature, drop it"
        f" or pass columns={{{str(column.name)!r}: 'drop'}}."
    )


def _date(column: pd.Series, labels: LabelIndicators | None, reason: str) -> ReadColumn:
    parts = () if is_length_of_time(column) else _parts(days(column), labels)
    return ReadColumn("date", DateParts(parts), reason)


def _parts(numbers: Floats, labels: LabelIndicators | None) -> tuple[str, ...]:
    """Return the parts of dates that vary and, if there are labels, are correlated with one of them."""
    parts = varying_parts(numbers)
    if labels is None or not parts:
        return parts
    columns = np.nan_to_num(np.column_stack([wave for part in parts for wave in waves(numbers, part)]))
    excess = labels.correlated(columns).reshape(-1, 2).max(axis=1)
    return tuple(part for part, each in zip(parts, excess.tolist(), strict=True) if each > 0)


def _dated(
    column: pd.Series, format: str, labels: LabelIndicators | None, reason: str, warning: str = ""
) -> ReadColumn:
    """Return a column of dates that are written as text."""
    numbers, n = written_days(column, format)
    if not n:
        raise InputError(
            f"The column {str(column.name)!r} is declared as dates of the format {format!r}, but has none"
            f" ({listing(column.dropna().unique()[:3])})."
        )
    return ReadColumn("date", DateParts(_parts(numbers, labels), format), reason, warning)


def _nominal(column: pd.Series, labels: LabelIndicators | None, text_is_discrete: bool) -> ReadColumn:
    """Return what a column is that is neither numbers nor dates by its type."""
    codes, values = codes_and_values(column)
    counts = np.bincount(codes[codes != UNKNOWN], minlength=len(values))
    n_values, n_known = int((counts > 0).sum()), int(counts.sum())
    declared = isinstance(column.dtype, pd.CategoricalDtype)
    if n_values == 1 and n_known == len(column) > 1 and not (declared and len(values) == 2):
        return ReadColumn("drop", DroppedColumn(), f"constant, {values[int(codes[0])]!r}")
    many = n_values > _most_values(len(column))
    text = not declared and all(isinstance(value, str) for value in values)
    if text and (many or not text_is_discrete):
        found = _written(column, values, many, labels)
        if found is not None:
            return found
    if many and text and _n_words(values[:_SAMPLE]) >= _WORDS:
        return _text(column, labels)
    if many and n_known > _FEW_ROWS and n_values >= _DISTINCT * n_known:
        return _identifier(column, n_values, n_known)
    return _category(column, labels, n_values) if many else _few(column, n_values, declared)


def _written(
    column: pd.Series, values: Sequence[str], many: bool, labels: LabelIndicators | None
) -> ReadColumn | None:
    """Return a column of text as numbers or dates, if it is that."""
    texts = values[:_SAMPLE]
    # A single number may decide how all are read, so the sample does not suffice.
    style = None if find_style(texts) is None else find_style(values)
    if style is not None:
        return _numerals(style)
    format = find_format(texts, column)
    if format is not None:
        doubt = "; day and month could also be the other way round" * format.doubt
        return _dated(column, format.format, labels, f"dates, written as {format.format}{doubt}")
    return _nearly_written(column, texts, many, labels)


def _nearly_written(
    column: pd.Series, texts: Sequence[str], many: bool, labels: LabelIndicators | None
) -> ReadColumn | None:
    """Return a column of which nearly all values are numbers or dates; if it has few values, a category."""
    style = find_style(texts, 0.5)
    if style is not None and (odd := _odd_values(column, style.reader)):
        start = f"The column {str(column.name)!r} holds numbers, but also {listing(odd, 3)}"
        if not many:
            warning = f"{start}, so it is a category; leave fields empty if values are missing."
            return replace(_few(column, len(texts), declared=False), warning=warning)
        warning = f"{start}, which count as missing; columns={{{str(column.name)!r}: 'category'}} keeps them."
        return ReadColumn("number", style.reader, f"numbers, nearly all ({style})", warning)
    format = find_format(texts, column, 0.5) if many else None
    if format is None or not (odd := _odd_values(column, DateParts((), format.format))):
        return None
    warning = (
        f"The column {str(column.name)!r} holds dates, but also {listing(odd, 3)}, which count as missing."
    )
    return _dated(column, format.format, labels, f"dates, nearly all, written as {format.format}", warning)


def _numerals(style: NumberStyle) -> ReadColumn:
    return ReadColumn("number", style.reader, _as_text(style), style=style)


def _as_text(style: NumberStyle) -> str:
    return f"numbers, written as text ({style})"


def _readers_of(X: pd.DataFrame, learned: dict[int, WrittenNumbers]) -> dict[int, WrittenNumbers]:
    """Return the readers of numbers as text, by position, for rows that may come from another country."""
    columns = {j: X.iloc[:, j] for j in learned if kind_of(X.iloc[:, j]) == "nominal"}
    if not any(_other_texts(column, learned[j]) for j, column in columns.items()):
        return learned
    found = {j: find_style(column.dropna().astype(str).unique().tolist()) for j, column in columns.items()}
    marks = {style.reader.decimal for style in found.values() if style is not None and style.is_certain}
    readers = {
        j: style.with_decimal(*marks).reader
        for j, style in found.items()
        if len(marks) == 1 and style is not None and style.reader.unit == learned[j].unit
    }
    for j, column in columns.items():
        _warn_of_style(column, learned[j], readers.get(j, learned[j]))
    return {**learned, **readers}


def _other_texts(column: pd.Series, reader: WrittenNumbers) -> list[Any]:
    """Return the texts of a column that a reader does not read."""
    return column[np.isnan(reader.read(column)[0]) & column.notna().to_numpy()].unique().tolist()


def _warn_of_style(column: pd.Series, learned: WrittenNumbers, used: WrittenNumbers) -> None:
    """Warn about rows to predict whose numbers are not written as those of the training rows."""
    odd = _other_texts(column, used)
    if not odd and np.array_equal(learned.read(column)[0], used.read(column)[0], equal_nan=True):
        return
    values = odd or column.dropna().unique().tolist()
    effect = "count as missing" if odd else f"are read with {used}"
    warn_outside(
        f"The column {str(column.name)!r} holds {listing(values[:3])}, which {effect}: its numbers were"
        f" written with {learned} in the training rows.",
        TupletWarning,
    )


def _odd_values(column: pd.Series, reader: ColumnReader) -> list[Any]:
    """Return the values that a reader does not read, if these are a tenth of the rows at most."""
    odd = np.isnan(reader.read(column)[0]) & column.notna().to_numpy()
    return column[odd].unique().tolist() if odd.sum() <= (1 - _NEARLY) * column.notna().sum() else []


def _n_words(texts: Sequence[str]) -> float:
    return float(np.mean([len(text.split()) for text in texts]))


def _identifier(column: pd.Series, n_values: int, n_known: int) -> ReadColumn:
    name = str(column.name)
    reason = f"an identifier: {n_values:,} different values in {n_known:,} rows"
    return ReadColumn(
        "drop",
        DroppedColumn(),
        reason,
        f"The column {name!r} is left out: it has {n_values:,} different values in {n_known:,} rows, so it"
        f" identifies rows and cannot help with new ones. columns={{{name!r}: 'category'}} keeps it.",
    )


# -- categories and text -----------------------------------------------------------------------------------


def _most_values(n: int) -> int:
    return int(np.clip(n // 50, _FEWEST, _MOST))


def _floor(n: int) -> float:
    return min(_RARE_ROWS, n / 100)


def _few(column: pd.Series, n_values: int, declared: bool) -> ReadColumn:
    """Return a column of few values: as it is, or with the rare values as one."""
    merged = None if declared and n_values <= 2 else merge_rare(column, _floor(len(column)), _MOST)
    if merged is None or len(merged.kept) == n_values or not merged.kept:
        return ReadColumn("category", KeptColumn(), f"{n_values:,} values")
    n_rare = n_values - len(merged.kept)
    rows = int(np.ceil(_floor(len(column))))
    return ReadColumn(
        "category", merged, f"{n_values:,} values, {n_rare:,} of them in fewer than {rows} rows"
    )


def _category(column: pd.Series, labels: LabelIndicators | None, n_values: int) -> ReadColumn:
    """Return a column of many values."""
    n, most = len(column), _most_values(len(column))
    merged = merge_rare(column, _floor(n), n)
    codes = merged.read(column)[0].codes
    rare = np.mean((codes == len(merged.kept)) | (codes == UNKNOWN) & column.notna().to_numpy())
    reason = f"{n_values:,} values in {n:,} rows"
    if len(merged.kept) <= most and rare <= 1 - _DISTINCT:
        return ReadColumn("category", merged, f"{reason}, few of them frequent")
    if labels is None:
        return ReadColumn(
            "category", merge_rare(column, _floor(n), most), f"{reason}, the most frequent ones"
        )
    return _target(column, labels, reason)


def _target(column: pd.Series, labels: LabelIndicators, reason: str, certain: bool = False) -> ReadColumn:
    found = learn_rates(column, labels, certain)
    if found is None:
        return ReadColumn("drop", DroppedColumn(), f"{reason}, without use for held-out labels")
    return ReadColumn("target", found[0], f"{reason}, of use for held-out labels", training=found[1])


def _text(column: pd.Series, labels: LabelIndicators | None, reason: str = "free text") -> ReadColumn:
    terms = learn_terms(column, labels)
    if terms is None:
        return ReadColumn("drop", DroppedColumn(), f"{reason}, no term of which goes with a label")
    return ReadColumn("text", terms, f"{reason}, {len(terms.terms):,} frequent terms")


# -- kinds that users declare ------------------------------------------------------------------------------

_GIVEN = "declared"


def _as_number(column: pd.Series, mark: DecimalMark | None = None) -> ReadColumn:
    """Return a column as numbers, which are written with this decimal mark if they can be."""
    kind = kind_of(column)
    if kind == "number":
        return ReadColumn("number", KeptColumn(), _GIVEN)
    if kind == "date":
        return ReadColumn("number", DateParts(), f"{_GIVEN}, as days")
    texts = [str(value) for value in column.dropna().unique()]
    style = find_style(texts) or find_style(texts, 0.5) or NumberStyle(WrittenNumbers(mark or "."))
    if mark is not None:
        style = style.with_decimal(mark)._replace(example="")
    reader = style.reader
    plain = column.astype(object)
    if np.isnan(reader.read(plain)[0]).all():
        raise InputError(
            f"The column {str(column.name)!r} is declared as numbers, but has none ({listing(texts[:3])})."
        )
    return ReadColumn("number", reader, f"{_GIVEN}, {style}")


def _as_date(column: pd.Series, labels: LabelIndicators | None) -> ReadColumn:
    if kind_of(column) == "date":
        return _date(column, labels, _GIVEN)
    texts = [str(value) for value in column.dropna().unique()[:_SAMPLE]]
    format = find_format(texts, column, 0.5)
    if format is None:
        raise InputError(
            f"The column {str(column.name)!r} is declared as dates, but their format is not known"
            f" ({listing(texts[:3])}); declare it by the format itself, such as '%d.%m.%Y'."
        )
    return _dated(column, format.format, labels, f"{_GIVEN}, written as {format.format}")


def _as_category(column: pd.Series, labels: LabelIndicators | None) -> ReadColumn:
    if kind_of(column) == "date":
        column = column.astype(str).where(column.notna(), None)
    merged = merge_rare(column, _floor(len(column)), _MOST_GIVEN)
    return ReadColumn("category", merged, f"{_GIVEN}, {len(merged.kept):,} frequent values")


def _as_target(column: pd.Series, labels: LabelIndicators | None) -> ReadColumn:
    if labels is None:
        raise InputError(
            f"The column {str(column.name)!r} is declared 'target', for which fit needs labels of which"
            " 10 rows or more are known."
        )
    return _target(column, labels, _GIVEN, certain=True)


_BY_KIND: dict[str, Callable[[pd.Series, LabelIndicators | None], ReadColumn]] = {
    "number": lambda column, labels: _as_number(column),
    "date": _as_date,
    "category": _as_category,
    "target": _as_target,
    "text": lambda column, labels: _text(column, labels, _GIVEN),
    "drop": lambda column, labels: ReadColumn("drop", DroppedColumn(), _GIVEN),
    "decimal point": lambda column, labels: _as_number(column, "."),
    "decimal comma": lambda column, labels: _as_number(column, ","),
}

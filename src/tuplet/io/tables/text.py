"""Tables with separators: CSV and TSV."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO, StringIO

import numpy as np
import pandas as pd

from tuplet.core.exceptions import TupletWarning, warn_outside
from tuplet.io.tables.fields import Missing, cleaned, missing_by_column
from tuplet.io.tables.source import FileContent
from tuplet.io.tables.table import FileTable
from tuplet.space.features.numerals import find_style

_SEPARATORS = "\t;|,"
"""In the order of preference if several fit: commas occur in names and numbers."""

_DECLARED = re.compile(r'"?sep=(.)"?[;,\t|]*', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"\n]*"')
_BEGINNING = 1 << 20
"""Letters among which the names of the columns and the first rows are, behind comments."""

_NUMBER = re.compile(r"\s*[-+]?[\d.,]*\d\s*%?\s*")
_GROUPED = r"[+-]?\d{1,3}(?:\.\d{3})*"


@dataclass(frozen=True)
class TextLayout:
    """How the lines of a table are made.

    Parameters
    ----------
    mark : str
        The separator.
    names : list of str
        Names of the columns, the first one empty for an index.
    n_lines : int
        Lines before that with the names.
    """

    mark: str
    names: list[str]
    n_lines: int = 0

    @property
    def columns(self) -> list[str]:
        """Names of the columns without the index."""
        return [name for name in self.names if name]


def read_csv(source: FileContent, missing: Missing | None = None) -> FileTable:
    """Read a table; the separator follows from a line `sep=;`, or from the line of names and the next."""
    return _read(source, missing)


def read_tsv(source: FileContent, missing: Missing | None = None) -> FileTable:
    """Read a table with tabs between its fields, if there are any in its first line."""
    return _read(source, missing, "\t")


def _read(source: FileContent, missing: Missing | None, preferred: str | None = None) -> FileTable:
    text = _clean(source)
    layout = find_layout(source, text, preferred)
    source, text = _without_lines(source, text, layout.n_lines)
    text = _even(source, text, layout)
    words = _texts_of_digits(source, text, layout)
    frame = _frame(source, text, layout, missing, names_first=True, words=words)
    if not len(frame):
        source.fail("there are no rows after the names of the columns.")
    return FileTable(frame, None, source.stem, guessed=True)


# -- separator and names -----------------------------------------------------------------------------------


def find_layout(source: FileContent, text: str, preferred: str | None = None) -> TextLayout:
    """Return the layout of a table, from its first lines.

    Parameters
    ----------
    source : FileContent
        The beginning of the file.
    text : str
        Its text.
    preferred : str, optional
        The separator, if the names are separated by it.
    """
    if not text or text.isspace():
        source.fail("the file is empty; expected a line with the names of the columns.")
    lines = text[:_BEGINNING].split("\n")
    declared = _DECLARED.fullmatch(lines[0].strip(" "))
    start = int(declared is not None)
    rows = [i for i in range(start, len(lines)) if lines[i].strip() and not lines[i].startswith("#")][:2]
    mark = declared[1] if declared else _separator([lines[i] for i in rows], preferred)
    start = _first_line(lines, rows, start, mark)
    if start == len(lines):
        source.fail("there are comments only; expected a line with the names of the columns.")
    return TextLayout(mark, _names(source, "\n".join(lines[start:]), mark, start + 1), start)


def _without_lines(source: FileContent, text: str, n: int) -> tuple[FileContent, str]:
    """Return a piece of a file, and its text, without its first lines."""
    return replace(source, lines_before=source.lines_before + n), text.split("\n", n)[n]


def _separator(lines: Sequence[str], preferred: str | None) -> str:
    """Return the separator of a table with these lines, the first of which has the names."""
    plain = [_QUOTED.sub("", line) for line in lines] or [""]
    if preferred is not None and preferred in plain[0]:
        return preferred
    counts = {mark: [line.count(mark) for line in plain] for mark in _SEPARATORS}
    agreeing = {mark: n[0] for mark, n in counts.items() if n[0] and len(set(n)) == 1}
    counted = agreeing or {mark: n[0] for mark, n in counts.items() if n[0]}
    return max(counted, key=lambda mark: counted[mark]) if counted else ","


def _first_line(lines: Sequence[str], rows: Sequence[int], start: int, mark: str) -> int:
    """Return the line with the names: the first without #, or one with # that names as many columns."""
    if not rows:
        return len(lines)
    below = [lines[i].split(mark) for i in rows[:2]]
    for i in range(start, rows[0]):
        names = lines[i].split(mark)
        if not re.match(r"#\S", lines[i]) or not 1 < len(names) == len(below[0]):
            continue
        if len(below) < 2 or not _are_names(*below):
            return i
    return rows[0]


def _are_names(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether a line has text above a number, which names have, and rows mostly do not."""
    pairs = zip(first, second, strict=False)
    return any(not _NUMBER.fullmatch(above) and _NUMBER.fullmatch(below) for above, below in pairs)


def _names(source: FileContent, text: str, mark: str, line: int) -> list[str]:
    """Return the names of the columns, which the first line of a text has, with its number in the file."""
    rows = csv.reader(StringIO(text), delimiter=mark, strict=True, skipinitialspace=True)
    try:
        names = [name.strip() for name in next((row for row in rows if row), [])]
    except csv.Error as error:
        source.fail(f"the names of the columns cannot be read ({error}); check the quotes.", line)
    while len(names) > 1 and not names[-1]:  # separators at the end of the lines
        names.pop()
    nameless = [position + 1 for position, name in enumerate(names) if not name and position]
    if nameless:
        source.fail(f"column {nameless[0]} has no name; the first line must name the columns.", line)
    twice = pd.Index(names).duplicated()
    if twice.any():
        source.fail(f"two columns are called {names[int(twice.argmax())]!r}; rename one.", line)
    return names


# -- rows --------------------------------------------------------------------------------------------------


def parse_rows(
    source: FileContent,
    layout: TextLayout,
    *,
    missing: Missing | None = None,
    words: Sequence[str] = (),
    is_first: bool = False,
) -> pd.DataFrame:
    """Return the rows of a piece of a table, whose layout is known.

    Parameters
    ----------
    source : FileContent
        Whole lines.
    layout : TextLayout
    missing : sequence or mapping, optional
        See `read_table`.
    words : sequence of str
        Columns that are text even where all their fields look like numbers.
    is_first : bool
        Whether the names come before the rows.
    """
    text = _clean(source)
    if is_first:
        source, text = _without_lines(source, text, layout.n_lines)
    text = _even(source, text, layout)
    return _frame(source, text, layout, missing, names_first=is_first, words=words)


def piece_layout(source: FileContent, preferred: str | None = None) -> tuple[TextLayout, list[str]]:
    """Return the layout of the first piece of a table, and columns in which 1.234 is 1234."""
    text = _clean(source)
    layout = find_layout(source, text, preferred)
    if not _may_have_groups(text, layout.mark):
        return layout, []
    return layout, _grouped(parse_rows(source, layout, words=layout.names, is_first=True), layout)


def _clean(source: FileContent) -> str:
    """Return the text, with one character at the end of each line."""
    text = source.text()
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        source.fail("a null byte; this is no text, or in an encoding that encoding= must name.", line)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _even(source: FileContent, text: str, layout: TextLayout) -> str:
    """Return the text with as many fields in each row as there are names, and no blanks around them.

    Separators at the end of lines, rows without any value at the end, and comments are left out. Rows with
    other numbers of fields are refused, which pandas would fill up or push into the index.
    """
    mark, n = layout.mark, len(layout.names)
    if n > 1:
        filled = len(text.rstrip(f"\n {mark}"))
        text = text[: end if (end := text.find("\n", filled)) >= 0 else len(text)]
    if '"' in text:
        is_even = not any(_is_odd(row, n) for _, row in _rows(source, text, mark))
    else:
        text = _without_blanks(text, mark)
        is_even = _are_even(text, mark, n) and not (text.startswith("#") or "\n#" in text)
    return text if is_even else _repaired(source, text, mark, n)


def _without_blanks(text: str, mark: str) -> str:
    """Return a text, in which nothing is in quotes, without blanks at the ends of fields."""
    blanks = "".join(blank for blank in " \u00a0\t" if blank != mark and blank in text)
    if not blanks:
        return text
    sides = (mark, "\n")  # most texts have blanks within fields only, which is seen at once
    if text[:1] in blanks or any(f"{side}{blank}" in text for side in sides for blank in blanks):
        text = re.sub(rf"(^|{re.escape(mark)})[{blanks}]+", r"\1", text, flags=re.MULTILINE)
    if text[-1:] in blanks or any(f"{blank}{side}" in text for side in sides for blank in blanks):
        text = re.sub(rf"[{blanks}]+({re.escape(mark)}|$)", r"\1", text, flags=re.MULTILINE)
    return text


def _are_even(text: str, mark: str, n: int) -> bool:
    """Return whether all rows have n fields, none of which is in quotes."""
    content = np.frombuffer(text.encode(), dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    if not len(content) or content[-1] != ord("\n"):
        ends = np.append(ends, len(content))
    starts = np.concatenate([[0], ends[:-1] + 1])
    marks = np.flatnonzero(content == ord(mark))
    fields = np.searchsorted(marks, ends) - np.searchsorted(marks, starts) + 1
    return not ((fields != n) & (ends > starts)).any()


def _rows(source: FileContent, text: str, mark: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each row with the number of its last line."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=mark, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        source.fail(f"the line cannot be taken apart ({error}); check its quotes.", reader.line_num)


def _is_odd(row: list[str], n: int) -> bool:
    return bool(row) and (len(row) != n or row[0].startswith("#"))


def _repaired(source: FileContent, text: str, mark: str, n: int) -> str:
    """Return rows of n fields each, without comments and empty fields behind the last column."""
    even, n_comments = StringIO(), 0
    writer = csv.writer(even, delimiter=mark, lineterminator="\n")
    for line, row in _rows(source, text, mark):
        has_more = any(field.strip() for field in row[1:])
        if row and row[0].startswith("#") and (len(row) != n or (n > 1 and not has_more)):
            n_comments += 1
        elif row and (len(row) < n or any(field.strip() for field in row[n:])):
            source.fail(
                f"expected {n} fields as in the first line, found {len(row)}; the file may be cut short, or a"
                " field with a separator lacks its quotes.",
                line,
            )
        else:
            writer.writerow(row[:n])
    if n_comments:
        lines = "a line that begins" if n_comments == 1 else f"{n_comments:,} lines that begin"
        warn_outside(f"{source.name!r} has {lines} with #, left out as comments.", TupletWarning)
    return even.getvalue()


def _frame(
    source: FileContent,
    text: str,
    layout: TextLayout,
    missing: Missing | None,
    *,
    names_first: bool,
    words: Sequence[str] = (),
) -> pd.DataFrame:
    names = layout.names
    without_value = missing_by_column(missing, names)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = pd.read_csv(
                BytesIO((text.strip("\n") if names_first else text.rstrip("\n")).encode()),
                sep=layout.mark,
                header=0 if names_first else None,
                names=names,
                index_col=False,
                keep_default_na=False,
                na_values=without_value,
                low_memory=False,
                skip_blank_lines=len(names) > 1,  # of a single column, an empty line is a row without value
                skipinitialspace=True,
                encoding="utf-8",
                dtype=dict.fromkeys(words, "str"),
            )
    except (ValueError, OverflowError, Warning, pd.errors.ParserError) as error:
        source.fail(f"the table cannot be read: {str(error).strip().rstrip('.')}.")
    strip = '"' in text  # other blanks have been left out already
    columns = {name: cleaned(column, without_value[str(name)], strip=strip) for name, column in frame.items()}
    frame = pd.DataFrame(columns, index=frame.index)
    return frame.set_index("").rename_axis(index=None) if names[0] == "" else frame


# -- digits that are no numbers ----------------------------------------------------------------------------


def _texts_of_digits(source: FileContent, text: str, layout: TextLayout) -> list[str]:
    """Return columns that pandas would read as other numbers: codes as 007, and 1.234 for 1234."""
    mark = re.escape(layout.mark)
    has_codes = re.search(rf'[{mark}\n"]0\d+(?:["{mark}\n]|\Z)', text)
    if not has_codes and not _may_have_groups(text, layout.mark):
        return []
    words = _frame(source, text, layout, None, names_first=True, words=layout.names)
    codes = [str(name) for name, column in words.items() if _is_code(column.dropna())]
    return [*codes, *_grouped(words, layout)]


def _may_have_groups(text: str, mark: str) -> bool:
    """Return whether a table may have points between thousands, and decimal commas."""
    if mark == "," or "," not in text or not re.search(r"\d,\d", text):
        return False
    mark = re.escape(mark)
    return re.search(rf'[{mark}\n"][-+]?\d{{1,3}}\.\d{{3}}(?:["{mark}\n]|\Z)', text) is not None


def _grouped(words: pd.DataFrame, layout: TextLayout) -> list[str]:
    """Return columns whose points are between thousands, since commas are decimal in others."""
    texts = {str(name): column.dropna() for name, column in words.items()}
    if layout.mark == "," or not any(_has_decimal_comma(column) for column in texts.values()):
        return []
    return [name for name, column in texts.items() if _is_grouped(column)]


def _is_code(column: pd.Series) -> bool:
    return bool(column.str.fullmatch(r"\d+").all() and column.str.fullmatch(r"0\d+").any())


def _is_grouped(column: pd.Series) -> bool:
    """Return whether all points of a column are between thousands, if commas are decimal."""
    return bool(column.str.fullmatch(_GROUPED).all() and column.str.contains(".", regex=False).any())


def _has_decimal_comma(column: pd.Series) -> bool:
    style = find_style(column.unique()[:1_000].tolist())
    return style is not None and style.reader.decimal == "," and not style.example

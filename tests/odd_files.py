"""The same table as spreadsheets of several countries write it, and files that are no tables.

`python tests/odd_files.py FOLDER` writes them all.
"""

import csv
import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd

N = 48
TARGETS = ["kind", "place"]
NUMBERS = ["size", "share", "price", "count", "balance"]


def truth() -> pd.DataFrame:
    """Return the table that all files hold, with numbers and dates as such."""
    rng = np.random.default_rng(7)
    size = rng.integers(11, 99, N) / 10
    count = np.where(np.arange(N) % 3, rng.integers(1_000, 60_000, N), rng.integers(10, 999, N))
    frame = pd.DataFrame(
        {
            "size": size + 0.05,  # two digits behind the mark
            "share": rng.integers(1, 99, N) / 100,
            "price": rng.integers(100, 900_000, N) / 100,
            "count": count,
            "balance": rng.integers(-300_000, 300_000, N) / 100,
            "city": rng.choice(["Zürich", "Genève", "Köln", "Austin"], N),
            "seen": pd.Timestamp("2024-01-20") + pd.to_timedelta(rng.permutation(N) * 9, unit="D"),
            "kind": np.where(size > 7, "groß", np.where(count > 1_000, "été", "plain")),
            "place": np.where(rng.random(N) < size / 10, "north", "south"),
        }
    )
    return frame.round({"size": 2, "share": 2, "price": 2, "balance": 2})


@dataclass(frozen=True)
class Locale:
    """How a spreadsheet writes numbers and dates."""

    decimal: str = "."
    group: str = ""
    price: str = "{}"
    percent: str = "{}%"
    date: str = "%Y-%m-%d"
    negative: str = "-{}"

    def number(self, value: float, digits: int = 2) -> str:
        marks = str.maketrans({",": self.group, ".": self.decimal})
        text = f"{abs(value):,.{digits}f}".translate(marks)
        return self.negative.format(text) if value < 0 else text

    def cells(self) -> pd.DataFrame:
        """Return the table as text."""
        frame = truth()
        return frame.assign(
            size=[self.number(value) for value in frame["size"]],
            share=[self.percent.format(self.number(100 * value, 0)) for value in frame["share"]],
            price=[self.price.format(self.number(value)) for value in frame["price"]],
            count=[self.number(value, 0) for value in frame["count"]],
            balance=[self.number(value) for value in frame["balance"]],
            seen=frame["seen"].dt.strftime(self.date),
        )


GERMAN = Locale(",", ".", "{} €", "{} %", "%d.%m.%Y")
FRENCH = Locale(",", "\u00a0", "{}\u00a0€", "{}\u00a0%", "%d/%m/%Y")
SWISS = Locale(".", "’", "CHF {}", "{}%", "%d.%m.%Y")
AMERICAN = Locale(".", ",", "${}", "{}%", "%m/%d/%Y", "({})")


def text_of(frame: pd.DataFrame, separator: str = ",", end: str = "\r\n") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=end)
    writer.writerow(frame.columns)
    writer.writerows(frame.fillna("").to_numpy().tolist())
    return out.getvalue()


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def workbook(frame: pd.DataFrame) -> bytes:
    """Return a workbook of Excel with numbers in cells of numbers, and the rest in cells of text."""
    rows = [list(frame.columns), *frame.to_numpy().tolist()]
    lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    packages = "http://schemas.openxmlformats.org/package/2006"
    sheets = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{packages}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/xl/workbook.xml"'
        f' ContentType="{sheets}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType='
        f'"{sheets}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r1" Type='
        f'"{links}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {space} xmlns:r="{links}"><sheets><sheet name="Tabelle1" sheetId="1"'
        ' r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r1"'
        f' Type="{links}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {space}><sheetData>{lines}</sheetData></worksheet>",
    }
    return zipped(**{name: part.encode() for name, part in parts.items()})


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'


def feather(frame: pd.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.to_feather(out)
    return out.getvalue()


def commented() -> bytes:
    lines = text_of(FRENCH.cells(), ";", "\n").splitlines()
    lines[5:5] = ["# contrôlé par Anne"]
    return "\n".join(["# Export du 3 mai, par Anne", "#", *lines, "# fin;;;;;;;;", ""]).encode()


def with_blanks() -> bytes:
    rows = text_of(truth(), end="\n").splitlines()
    return "\n".join(row.replace(",", " , ") for row in rows).encode()


def trailing() -> bytes:
    rows = text_of(GERMAN.cells(), ";", "\n").splitlines()
    return "\r\n".join([*(f"{row};;" for row in rows), ";" * 10, ";" * 10, ""]).encode("cp1252")


def with_errors() -> bytes:
    frame = GERMAN.cells()
    for name, error in {"size": "#NV", "price": "#DIV/0!", "count": "#WERT!", "city": "#N/A"}.items():
        frame.loc[3, name] = error
    return text_of(frame, ";").encode("cp1252")


def sparse_arff() -> bytes:
    frame = truth()
    names = {
        "size": "numeric", "share": "numeric", "price": "numeric", "count": "numeric", "balance": "numeric",
        "city": "string", "seen": 'date "yyyy-MM-dd"', "kind": "{plain,été,groß}", "place": "{north,south}",
    }  # fmt: skip
    frame = frame.assign(seen=frame["seen"].dt.strftime("%Y-%m-%d"))
    rows = [", ".join(f"{j} {value}" for j, value in enumerate(row)) for row in frame.to_numpy().tolist()]
    head = "".join(f"@attribute {name} {kind}\n" for name, kind in names.items())
    return "\n".join([f"@relation odd\n{head}@data", *(f"{{{row}}}" for row in rows), ""]).encode()


def label_list() -> bytes:
    return b'<labels><label name="kind"></label><label name="place"></label></labels>'


@dataclass(frozen=True)
class OddFile:
    """A file, and what is expected of it.

    Parameters
    ----------
    content : callable
        Makes it.
    options : list of str
        Options of the command line that it needs.
    warning : str
        Part of the only warning that is printed; nothing if there is none.
    changed : bool
        Whether some values are missing, so that predictions differ.
    beside : dict
        Files beside it.
    """

    content: Callable[[], bytes]
    options: list[str] = field(default_factory=list)
    warning: str = ""
    changed: bool = False
    beside: dict[str, Callable[[], bytes]] = field(default_factory=dict)


_TARGETS = ["--targets", ",".join(TARGETS)]


def _records(frame: pd.DataFrame) -> list[dict]:
    return json.loads(frame.to_json(orient="records"))


TABLES = {
    "excel_de.csv": OddFile(lambda: text_of(GERMAN.cells(), ";").encode("cp1252"), warning="read as cp1252"),
    "excel_de_given.csv": OddFile(
        lambda: text_of(GERMAN.cells(), ";").encode("cp1252"), options=["--encoding", "cp1252"]
    ),
    "excel_de_sep.csv": OddFile(lambda: b"\xef\xbb\xbfsep=;\r\n" + text_of(GERMAN.cells(), ";").encode()),
    "unicode_de.txt": OddFile(
        lambda: text_of(GERMAN.cells(), "\t").encode("utf-16"), warning="read as UTF-16"
    ),
    "trailing_de.csv": OddFile(trailing, warning="read as cp1252"),
    "errors_de.csv": OddFile(with_errors, warning="read as cp1252", changed=True),
    "packed_de.zip": OddFile(
        lambda: zipped(**{"Ordner/Tabelle.csv": text_of(GERMAN.cells(), ";").encode("cp1252")}),
        warning="read as cp1252",
    ),
    "excel_fr.csv": OddFile(lambda: text_of(FRENCH.cells(), ";").encode("cp1252"), warning="read as cp1252"),
    "latin1_fr.csv": OddFile(
        lambda: text_of(FRENCH.cells(), ";").replace("€", "EUR").encode("latin-1"),
        options=["--encoding", "latin-1"],
    ),
    "narrow_fr.csv": OddFile(lambda: text_of(FRENCH.cells(), ";").replace("\u00a0", "\u202f").encode()),
    "pipes_fr.txt": OddFile(lambda: text_of(FRENCH.cells(), "|", "\n").encode()),
    "comments_fr.csv": OddFile(commented, warning="2 lines that begin with #"),
    "excel_ch.csv": OddFile(lambda: text_of(SWISS.cells(), ";").encode("cp1252"), warning="read as cp1252"),
    "apostrophes_ch.csv": OddFile(lambda: text_of(SWISS.cells(), ";").replace("’", "'").encode()),
    "utf16be_ch.tsv": OddFile(
        lambda: text_of(SWISS.cells(), "\t").encode("utf-16-be"), warning="read as UTF-16-BE"
    ),
    "excel_us.csv": OddFile(lambda: text_of(AMERICAN.cells()).encode()),
    "quoted_us.csv": OddFile(
        lambda: AMERICAN.cells().to_csv(index=False, quoting=csv.QUOTE_ALL).replace(',"', ', "').encode()
    ),
    "trailing_us.csv": OddFile(lambda: text_of(AMERICAN.cells()).replace("\r\n", ",\r\n").encode()),
    "tabs_us.csv": OddFile(lambda: text_of(AMERICAN.cells(), "\t").encode()),
    "packed_us.csv.gz": OddFile(lambda: gzip.compress(text_of(AMERICAN.cells()).encode(), mtime=0)),
    "blanks_us.csv": OddFile(with_blanks),
    "lines_us.jsonl": OddFile(lambda: "\n".join(map(json.dumps, _records(AMERICAN.cells()))).encode()),
    "array_us.json": OddFile(lambda: json.dumps(_records(AMERICAN.cells()), indent=1).encode()),
    "table_us.feather": OddFile(lambda: feather(AMERICAN.cells())),
    "odd-sparse.arff": OddFile(sparse_arff, options=[], beside={"odd.xml": label_list}),
}
"""Tables that are read with the right types."""

WORKBOOK = OddFile(lambda: workbook(AMERICAN.cells().assign(count=truth()["count"])))

OTHERS = {
    "old.xls": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a workbook of Excel before 2007"),
    "sheet.ods": (
        lambda: zipped(mimetype=b"application/vnd.oasis.opendocument.spreadsheet", **{"content.xml": b""}),
        "a document of LibreOffice",
    ),
    "letter.docx": (lambda: zipped(**{"word/document.xml": b"<x/>"}), "a document of Word"),
    "page.csv": (lambda: b"<!DOCTYPE html>\n<html><table></table></html>", "HTML"),
    "paper.pdf": (lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF document"),
    "two.zip": (lambda: zipped(**{"a.csv": b"x\n1\n", "b.csv": b"x\n1\n"}), "several files (a.csv, b.csv)"),
    "base.csv": (lambda: b"SQLite format 3\0" + bytes(99), "a database of SQLite"),
    "noise.csv": (lambda: bytes(range(256)) * 4, "a byte that is not UTF-8"),
    "nested.jsonl": (lambda: b'{"x": {"y": 1}, "kind": "a"}\n', "'x' holds dict, not a single value"),
    "short.json": (lambda: b'[{"x": 1}, {"x"', "this is no JSON"),
}
"""Files that hold no table, with a part of the sentence that names them."""


def write(folder: Path, name: str) -> Path:
    """Write a file of `TABLES` with those beside it, or one of the others."""
    if name in OTHERS:
        (folder / name).write_bytes(OTHERS[name][0]())
        return folder / name
    odd = WORKBOOK if name.endswith(".xlsx") else TABLES[name]
    for other, content in {name: odd.content, **odd.beside}.items():
        (folder / other).write_bytes(content())
    return folder / name


if __name__ == "__main__":
    for each in [*TABLES, "table_us.xlsx", *OTHERS]:
        sys.stdout.write(f"{write(Path(sys.argv[1]), each)}\n")

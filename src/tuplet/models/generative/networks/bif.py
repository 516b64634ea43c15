"""Networks in the Bayesian interchange format: files that are plain (.bif) or compressed (.bif.gz)."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

from tuplet.core.atomic_files import write_bytes
from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.models.generative.networks.network import Network

_COMMENT = re.compile(r'"[^"]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)

_BLOCK = re.compile(r'\b(network|variable|probability)\b((?:"[^"]*"|[^{}"])*)\{')

_WORD = re.compile(r'"[^"]*"|[^\s,|"]+')

_STATES = re.compile(r"\btype\s+discrete\s*(?:\[\s*(\d+)\s*\])?\s*\{([^{}]*)\}\s*;?", re.IGNORECASE)

_BRACKETS = re.compile(r'"[^"]*"|[()]')
"""Brackets, and names in quotes, which may hold some."""

_PROPERTY = re.compile(r'\bproperty\s+((?:"[^"]*"|[^;"])*);', re.IGNORECASE)

_ENTRY = re.compile(r'\s*(?:(table|default)\b|\(((?:"[^"]*"|[^()"])*)\))([^;]*);', re.IGNORECASE)

_CLOSE = 1e-4
"""How far probabilities may be from one in sum where the order of a flat table is guessed from that."""

_PLAIN = re.compile(r'[^\s,|"(){};/]+')

_RESERVED = {"table", "default", "property", "type", "network", "variable", "probability"}


def read_bif(source: str | Path) -> Network:
    """Read a Bayesian network from a file in the Bayesian interchange format.

    All table forms are read: rows for configurations of the parents, a `default` row for those that are not
    listed, and flat tables, in which the child runs slowest and the last parent fastest. Flat tables of
    programs in which the child runs fastest are recognised by their sums.

    Parameters
    ----------
    source : str or Path
        Path of a .bif or .bif.gz file; or the text itself, if it has a brace in it.

    Returns
    -------
    Network
        Variables in the order of the file. Property statements of variables are kept.

    Examples
    --------
    >>> network = read_bif('''
    ... network weather { }
    ... variable rain { type discrete [ 2 ] { no, yes }; }
    ... variable wet { type discrete [ 2 ] { no, yes }; }
    ... probability ( rain ) { table 0.8, 0.2; }
    ... probability ( wet | rain ) { (yes) 0.1, 0.9; default 1.0, 0.0; }
    ... ''')
    >>> network.tables[1]
    array([[1. , 0. ],
           [0.1, 0.9]])
    """
    where, text = _open(source)
    return _Reader(where).read(_COMMENT.sub(_without_comment, text))


def _without_comment(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else " "


def _open(source: str | Path) -> tuple[str, str]:
    if isinstance(source, str) and "{" in source:
        return "BIF text", source
    path = Path(source).expanduser()
    if not path.is_file():
        raise InputError(f"read_bif: there is no file {str(path)!r}.")
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        return str(path), content.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"read_bif: {str(path)!r} cannot be read: {error}.") from None


def _words(text: str) -> list[str]:
    return [word.strip('"') for word in _WORD.findall(text)]


class _Reader:
    """The blocks of one file, collected."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.name = "unknown"
        self.states: dict[str, tuple[str, ...]] = {}
        self.properties: dict[str, tuple[str, ...]] = {}
        self.families: dict[str, tuple[list[str], str]] = {}  # parents and what is in the braces

    def error(self, text: str) -> InputError:
        return InputError(f"read_bif: {self.where}: {text}")

    def read(self, text: str) -> Network:
        for kind, head, body in self._blocks(text):
            if kind == "network":
                self.name = (_words(head) or ["unknown"])[0]
            elif kind == "variable":
                self._variable(head, body)
            else:
                self._family(head, body)
        if not self.states:
            raise self.error("there is no variable in it; is it a BIF file?")
        without = [name for name in self.states if name not in self.families]
        if without:
            raise self.error(f"the variable {without[0]!r} has no probability block; the file is incomplete.")
        return self._network()

    def _blocks(self, text: str) -> Iterator[tuple[str, str, str]]:
        at = 0
        while (match := _BLOCK.search(text, at)) is not None:
            depth, end = 1, match.end()
            while depth:
                brace = re.compile(r'"[^"]*"|[{}]').search(text, end)
                if brace is None:
                    raise self.error(
                        f"the block {match[1]} {match[2].strip()} is not closed; the file is incomplete."
                    )
                depth += {"{": 1, "}": -1}.get(brace[0], 0)
                end = brace.end()
            yield match[1], match[2], text[match.end() : end - 1]
            at = end

    def _variable(self, head: str, body: str) -> None:
        name = (_words(head) or [""])[0]
        match = _STATES.search(body)
        if match is None:
            raise self.error(f"the variable {name!r} has no line `type discrete [k] {{ states }};`.")
        states = tuple(_words(match[2]))
        if match[1] is not None and len(states) != int(match[1]):
            raise self.error(f"the variable {name!r} should have {match[1]} states, found {len(states)}.")
        if name in self.states:
            raise self.error(f"there are two variables of the name {name!r}.")
        self.states[name] = states
        if found := _PROPERTY.findall(body):
            self.properties[name] = tuple(text.strip().strip('"') for text in found)

    def _family(self, head: str, body: str) -> None:
        names = _words(_BRACKETS.sub(lambda found: found[0] if found[0][0] == '"' else " ", head))
        for name in names:
            if name not in self.states:
                raise self.error(f"a probability block names {name!r}, which is no variable before it.")
        if not names or len(set(names)) < len(names):
            raise self.error(f"a probability block is about ({head.strip()}): it must name each once.")
        if names[0] in self.families:
            raise self.error(f"there are two probability blocks of the variable {names[0]!r}.")
        self.families[names[0]] = names[1:], _PROPERTY.sub("", body)

    # -- tables -------------------------------------------------------------------------------------------

    def _network(self) -> Network:
        place = {name: v for v, name in enumerate(self.states)}
        parents, tables = [], []
        for name in self.states:
            given, body = self.families[name]
            members = [place[parent] for parent in given]
            order = np.argsort(members)
            parents.append(tuple(sorted(members)))
            tables.append(self._table(name, given, body).transpose(*order, len(order)))
        states = tuple(self.states.values())
        try:
            return Network(
                tuple(place), states, tuple(parents), tuple(tables), self.name, dict(self.properties)
            )
        except InputError as error:
            raise self.error(str(error)) from None

    def _table(self, name: str, parents: list[str], body: str) -> Floats:
        """Return the table with the parents in the order of the file."""
        shape = tuple(len(self.states[parent]) for parent in parents)
        card = len(self.states[name])
        table = np.full((math.prod(shape), card), np.nan)
        rows, texts, at = [], [], 0
        while (match := _ENTRY.match(body, at)) is not None:
            at = match.end()
            kind = (match[1] or "").lower()
            if kind == "table":
                return self._flat(name, self._numbers(name, match[3], shape, card), shape, card)
            if kind == "default":
                table[:] = self._numbers(name, match[3], (), card)
                continue
            rows.append(self._row(name, parents, shape, _words(match[2])))
            texts.append(match[3])
        if body[at:].strip():
            raise self.error(f"the probabilities of {name!r} cannot be read from {body[at:].strip()[:40]!r}.")
        if rows:
            # One conversion for all rows: large files have tens of thousands of them.
            numbers = self._numbers(name, ",".join(texts), (len(rows),), card)
            table[rows] = numbers.reshape(len(rows), card)
        if np.isnan(table).any():
            raise self.error(
                f"the probabilities of {name!r} are given for {len(set(rows))} of {len(table)} configurations"
                " of its parents; add the others or a default."
            )
        return table.reshape(*shape, card)

    def _row(self, name: str, parents: list[str], shape: tuple[int, ...], values: list[str]) -> int:
        if len(values) != len(parents):
            raise self.error(
                f"a row of {name!r} is for ({', '.join(values)}), but there are {len(parents)} parents."
            )
        row = 0
        for parent, value, card in zip(parents, values, shape, strict=True):
            if value not in self.states[parent]:
                raise self.error(f"a row of {name!r} is for {parent}={value}, a state that {parent!r} lacks.")
            row = row * card + self.states[parent].index(value)
        return row

    def _numbers(self, name: str, text: str, shape: tuple[int, ...], card: int) -> Floats:
        try:
            numbers = np.array(text.replace(",", " ").split(), dtype=float)
        except ValueError:
            raise self.error(f"the probabilities of {name!r} have an entry that is no number.") from None
        if len(numbers) != math.prod(shape) * card:
            raise self.error(
                f"{name!r} needs {math.prod(shape) * card} probabilities where {len(numbers)} are given."
            )
        return numbers

    def _flat(self, name: str, numbers: Floats, shape: tuple[int, ...], card: int) -> Floats:
        table = np.moveaxis(numbers.reshape(card, *shape), 0, -1)
        other = numbers.reshape(*shape, card)
        if _adds_up(other) and not _adds_up(table):
            return other
        return table


def _adds_up(table: Floats) -> bool:
    return bool((np.abs(table.sum(axis=-1) - 1) < _CLOSE).all())


def write_bif(network: Network, path: str | Path) -> None:
    """Write a network to a file; it is compressed if its name ends in .gz.

    Numbers are written with all their digits, so that reading gives the same tables.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from tuplet.models.generative.networks import read_bif
    >>> network = Network(("rain",), (("no", "yes"),), ((),), (np.array([0.8, 0.2]),))
    >>> with TemporaryDirectory() as folder:
    ...     write_bif(network, Path(folder) / "rain.bif.gz")
    ...     read_bif(Path(folder) / "rain.bif.gz").tables
    (array([0.8, 0.2]),)
    """
    content = bif_text(network).encode("utf-8")
    write_bytes(path, lambda file: file.write(content), "write_bif")


def bif_text(network: Network) -> str:
    """Return a network as text in the Bayesian interchange format."""
    lines = [f"network {_word(network.name)} {{", "}"]
    for name, states in zip(network.names, network.states, strict=True):
        lines += [
            f"variable {_word(name)} {{",
            f"  type discrete [ {len(states)} ] {{ {_list(states)} }};",
            *(f'  property "{_quotable(text)}";' for text in network.properties.get(name, ())),
            "}",
        ]
    for v in range(network.n_variables):
        lines += _family(network, v)
    return "\n".join(lines) + "\n"


def _family(network: Network, v: int) -> Iterator[str]:
    name, parents, table = network.names[v], network.parents[v], network.tables[v]
    if not parents:
        yield f"probability ( {_word(name)} ) {{"
        yield f"  table {_numbers(table)};"
    else:
        yield f"probability ( {_word(name)} | {_list(network.names[p] for p in parents)} ) {{"
        rows = table.reshape(-1, table.shape[-1])
        for values, row in zip(product(*(network.states[p] for p in parents)), rows, strict=True):
            yield f"  ({_list(values)}) {_numbers(row)};"
    yield "}"


def _numbers(row: Floats) -> str:
    return ", ".join(map(repr, row.tolist()))


def _list(words: Iterable[str]) -> str:
    return ", ".join(map(_word, words))


def _word(text: str) -> str:
    """Return a name as it is, or in quotes where it would otherwise be read as something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return f'"{_quotable(text)}"'


def _quotable(text: str) -> str:
    if '"' in text or not text:
        raise InputError(
            f"write_bif: the name {text!r} cannot be written; it must have letters and no quotes."
        )
    return text

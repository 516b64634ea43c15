"""Writing networks in the Bayesian interchange format."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from tuplet.exceptions import InputError
from tuplet.networks.network import Network
from tuplet.typing import Floats

_PLAIN = re.compile(r'[^\s,|"(){};/]+')
_RESERVED = {"table", "default", "property", "type", "network", "variable", "probability"}


def write_bif(network: Network, path: str | Path) -> None:
    """Write a network to a file; it is compressed if its name ends in .gz.

    Numbers are written with all their digits, so that reading gives the same tables.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from tuplet.networks import read_bif
    >>> network = Network(("rain",), (("no", "yes"),), ((),), (np.array([0.8, 0.2]),))
    >>> with TemporaryDirectory() as folder:
    ...     write_bif(network, Path(folder) / "rain.bif.gz")
    ...     read_bif(Path(folder) / "rain.bif.gz").tables
    (array([0.8, 0.2]),)
    """
    target = Path(path).expanduser()
    content = bif_text(network).encode("utf-8")
    if target.suffix == ".gz":
        content = gzip.compress(content, mtime=0)  # the same network gives the same file
    target.write_bytes(content)


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

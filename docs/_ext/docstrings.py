"""Docstrings as they are written here, plain text with names in backticks, made safe for reStructuredText.

Signs that mean something to reStructuredText but not to the author (|R|, trailing underscores, single stars)
are escaped, Markdown tables become tables, and names in backticks become links wherever they are public.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyXRefRole

NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")
LITERAL = re.compile(r"(``.+?``|`[^`]+`_{0,2})")
PARAMETER = re.compile(r"^\s*\*{1,2}\w+(\s*:.*)?$")


def name_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()
) -> Any:
    """Link a public name; everything else in backticks is code."""
    if NAME.fullmatch(text):
        return PyXRefRole()("py:obj", rawtext, text, lineno, inliner, options or {}, content)
    return [nodes.literal(rawtext, text)], []


def clean(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with nothing in them that reStructuredText would misread."""
    answer: list[str] = []
    rest = list(lines)
    while rest:
        line = rest.pop(0)
        if line.lstrip().startswith((">>>", "...", "..")):
            answer.append(line)
        elif line.strip() == "```":
            block = []
            while rest and (inside := rest.pop(0)).strip() != "```":
                block.append(f"    {inside}")
            answer += ["::", "", *block, ""]
        elif line.lstrip().startswith("|") and line.rstrip().endswith("|"):
            table = [line]
            while rest and rest[0].lstrip().startswith("|"):
                table.append(rest.pop(0))
            answer += as_list_table(table)
        else:
            answer.append(escape(line))
    return answer


def escape(line: str) -> str:
    """Escape bars, stars and trailing underscores outside of code."""
    if PARAMETER.match(line):
        return line
    parts = LITERAL.split(line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<!\\)([|*])", r"\\\1", parts[i])
        parts[i] = re.sub(r"(?<=[A-Za-z0-9])_(?![A-Za-z0-9_])", r"\\_", parts[i])
    for i in range(1, len(parts), 2):
        if parts[i + 1][:1].isalnum():  # `Name`s
            parts[i] += "\\ "
    return "".join(parts)


def as_list_table(table: list[str]) -> list[str]:
    """Return a Markdown table as a `list-table`."""
    indent = " " * (len(table[0]) - len(table[0].lstrip()))
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in table]
    lines = [".. list-table::"] + (["   :header-rows: 1"] if any(rows[0]) else []) + [""]
    for row in [rows[0], *rows[2:]]:
        lines += [f"   {'* -' if j == 0 else '  -'} {escape(cell)}".rstrip() for j, cell in enumerate(row)]
    return ["", *(indent + line if line else "" for line in lines), ""]


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Clean a docstring before napoleon reads it."""
    lines[:] = clean(lines)


def skip(app: Sphinx, what: str, name: str, obj: Any, would_skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to every class."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Join in."""
    app.add_role("name", name_role)
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}

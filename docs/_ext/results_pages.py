"""The measured results of `benchmarks/results` as pages, whatever is in them.

Headings begin at the first level; links to pictures beside them work, links to anywhere else in the project
become text, so that a new result never breaks the documentation. Pages that include a result which has not
been measured yet get a sentence in its place.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from api_pages import write
from sphinx.application import Sphinx

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)\s]+)\)")
ROLE = re.compile(r"(\{\w+\}`)")
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
EXPECTED = {
    "auto": "Measurements of the automatic model",
    "scaling": "What each model costs as the data grow",
}
"""Results that a page of the documentation includes, and their titles until they are there."""

INDEX = """# Measurements

Each page is the output of a script in `benchmarks/`, with its command and versions. Nothing in them is edited
by hand.

{}

```{{toctree}}
:hidden:

{}
```
"""
"""List with full titles, and the same for the margin, where only a word has room."""


def as_page(text: str, folder: Path) -> str:
    """Return a result as a page: its highest heading is the first level, and its links lead somewhere."""
    outside = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    depth = min((len(m[1]) for part in outside[::2] for m in HEADING.finditer(part)), default=1) - 1
    for i in range(0, len(outside), 2):
        outside[i] = HEADING.sub(lambda m: f"{m[1][depth:]} ", outside[i])
        outside[i] = ROLE.sub(r"\\\1", outside[i])
        outside[i] = LINK.sub(lambda m: _link(m, folder), outside[i])
    return "".join(outside)


def _link(match: re.Match[str], folder: Path) -> str:
    mark, text, target = match.groups()
    name = Path(target).name
    if (folder / name).is_file():
        return f"{mark}[{text}](/results/{name})"  # from wherever it is included
    return text


def make_pages(app: Sphinx) -> None:
    """Write the pages below `results/`, with an index."""
    source = Path(app.srcdir).parent / "benchmarks" / "results"
    folder = Path(app.srcdir) / "results"
    folder.mkdir(exist_ok=True)
    names = sorted(path.stem for path in source.glob("*.md"))
    for path in folder.glob("*.md"):
        if path.stem not in {*names, *EXPECTED, "index"}:
            path.unlink()
    for path in source.glob("*.png"):
        shutil.copyfile(path, folder / path.name)
    for name in names:
        write(folder / f"{name}.md", as_page((source / f"{name}.md").read_text("utf-8"), source))
    for name in EXPECTED.keys() - set(names):
        write(folder / f"{name}.md", f"# {EXPECTED[name]}\n\nThey have not been made yet.\n")
    every = sorted({*names, *EXPECTED})
    listed = "\n".join(f"- [](./{name}.md)" for name in every)
    entries = "\n".join(f"{name.replace('_', ' ').capitalize()} <{name}>" for name in every)
    write(folder / "index.md", INDEX.format(listed, entries))


def setup(app: Sphinx) -> dict[str, bool]:
    """Join in."""
    app.connect("builder-inited", make_pages)
    return {"parallel_read_safe": True}

"""The pages of the documentation: their examples run, and nothing public is left out."""

import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
MADE = {"_build", "api", "gallery", "results"}
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if not MADE & set(page.relative_to(DOCS).parts) and BLOCK.search(page.read_text("utf-8"))
]


def examples_of(text: str) -> str:
    """Return a page with everything but its examples blanked, so that lines keep their numbers."""
    kept, end = [], 0
    for block in BLOCK.finditer(text):
        kept += ["\n" * text.count("\n", end, block.start(1)), block[1]]
        end = block.end(1)
    return "".join(kept)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = examples_of(page.read_text("utf-8"))
    test = doctest.DocTestParser().get_doctest(source, {"__name__": "page"}, page.name, str(page), 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not runner.run(test, out=said.append).failed, "".join(said)


def test_every_part_of_the_guide_has_examples():
    without = [
        page.stem
        for folder in ("guide", "extend")
        for page in (DOCS / folder).glob("*.md")
        if page not in PAGES and page.stem != "index"
    ]
    assert not without


def test_every_public_name_has_a_page(monkeypatch):
    pytest.importorskip("sphinx", reason="the documentation is built with Sphinx: make docs")
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    pages = importlib.import_module("api_pages")
    for package in pages.packages():
        listed = pages.package_page(package)
        for each in pages.public_names(package):
            assert f"<{each.full}>`" in listed or f".. py:data:: {each.full}" in listed
            assert each.summary, f"{each.full} has no docstring"
            assert each.home in pages.packages()

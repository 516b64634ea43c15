"""One page for every public package and one for every public class and function, made from `__all__`."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from docstrings import escape
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.pycode import ModuleAnalyzer

LIST_PARTS = (nodes.list_item, nodes.field_body)
"""What a parameter stands in: one of several, or the only one."""


@dataclass(frozen=True)
class Public:
    """A public name: where it is documented, and what it is."""

    name: str
    home: str
    obj: Any

    @property
    def full(self) -> str:
        """Name with the package that documents it."""
        return f"{self.home}.{self.name}"

    @property
    def kind(self) -> str:
        """What autodoc calls it: class, exception, function or data."""
        if inspect.isclass(self.obj):
            return "exception" if issubclass(self.obj, BaseException) else "class"
        return "function" if inspect.isroutine(self.obj) else "data"

    @property
    def text(self) -> str:
        """Documentation of a piece of data, which stands below its assignment."""
        return "\n".join(attribute_docs(self.home).get(self.name, []))

    @property
    def summary(self) -> str:
        """First line of the documentation."""
        text = self.text if self.kind == "data" else inspect.getdoc(self.obj) or ""
        return escape(text.strip().split("\n\n")[0].replace("\n", " "))


@cache
def packages() -> tuple[str, ...]:
    """Public modules, as the page "What is public" lists them; `tuplet` first."""
    page = Path(__file__).parents[1] / "public.md"
    listed = re.findall(r"^\| `(tuplet[._a-z]*)` \|", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return ("tuplet", *sorted(name for name in listed if name != "tuplet"))


@cache
def public_names(package: str) -> tuple[Public, ...]:
    """Everything that a package exports but modules, each with the package that documents it."""
    module = importlib.import_module(package)
    pairs = [(name, getattr(module, name)) for name in module.__all__]
    return tuple(
        Public(name, home(name, obj, package), obj) for name, obj in pairs if not inspect.ismodule(obj)
    )


def home(name: str, obj: Any, package: str) -> str:
    """Return the public package that defines what a package exports under a name."""
    inside = getattr(obj, "__module__", None) or ""
    exporting = [
        other
        for other in packages()
        if name in (module := importlib.import_module(other)).__all__ and getattr(module, name) is obj
    ]
    best = [other for other in exporting if (inside + ".").startswith(other + ".") and other != "tuplet"]
    return max(best, key=len, default=next((o for o in exporting if o != "tuplet"), package))


@cache
def attribute_docs(package: str) -> dict[str, list[str]]:
    """Documentation of the data of a package, by name."""
    docs: dict[str, list[str]] = {}
    for name in sorted(sys.modules):
        if (name + ".").startswith(package + "."):
            found = ModuleAnalyzer.for_module(name).find_attr_docs()
            docs |= {attribute: lines for (scope, attribute), lines in found.items() if not scope}
    return docs


@cache
def homes() -> dict[str, str]:
    """From every public name, alone and behind `tuplet.`, to the name that has a page."""
    answer = {}
    for package in reversed(packages()):
        for each in public_names(package):
            answer[each.name] = answer[f"{package}.{each.name}"] = each.full
    return answer


def title(text: str) -> list[str]:
    """Return a heading."""
    return [text, "=" * len(text), ""]


def table(names: list[Public]) -> list[str]:
    """Return a table of names with links and first sentences."""
    lines = [".. list-table::", "   :class: api-table", "   :widths: 35 65", ""]
    for each in names:
        lines += [f"   * - :py:obj:`{each.name} <{each.full}>`", f"     - {each.summary}"]
    return [*lines, ""]


def package_page(package: str) -> str:
    """Return the page of a package: its docstring, its names, its data."""
    names = public_names(package)
    lines = [*title(package), f".. automodule:: {package}", "   :no-members:", ""]
    groups = {"Classes": ("class", "exception"), "Functions": ("function",)}
    for heading, kinds in groups.items():
        if chosen := [each for each in names if each.kind in kinds]:
            lines += [f".. rubric:: {heading}", "", *table(chosen)]
    if data := [each for each in names if each.kind == "data"]:
        lines += [".. rubric:: Data", ""]
        for each in data:
            if each.home == package:
                lines += [
                    f".. py:data:: {each.full}",
                    "",
                    *(f"   {escape(s)}" for s in each.text.split("\n")),
                    "",
                ]
            else:
                lines += [f"- :py:obj:`{each.name} <{each.full}>`", ""]
    return "\n".join(lines)


def object_page(each: Public) -> str:
    """Return the page of a class or function.

    It is in no table of contents: with hundreds of entries, making that for each page would take longer than
    everything else. Its package is named above it instead.
    """
    lines = [
        ":orphan:",
        "",
        *title(each.name),
        f":doc:`{each.home}`",
        "",
        f".. auto{each.kind}:: {each.full}",
        "",
    ]
    if each.kind == "class" and (hidden := hidden_bases(each.obj)):
        lines[-1:] = [f"   :inherited-members: {', '.join(others(each.obj, hidden))}", ""]
    base = importlib.import_module("tuplet.models").JointClassifier
    if each.kind == "class" and issubclass(each.obj, base) and each.obj is not base:
        shared = ("fit", "predict_joint", "predict", "predict_proba", "score", "save", "report")
        links = ", ".join(f":py:meth:`{name} <tuplet.models.JointClassifier.{name}>`" for name in shared)
        lines += [".. rubric:: Methods of every model", "", links, ""]
    return "\n".join(lines)


def hidden_bases(cls: type) -> list[type]:
    """Return the base classes that have no page, so that their methods belong on that of the class."""
    return [
        base
        for base in cls.__mro__[1:]
        if base.__module__.startswith("tuplet.") and base.__name__ not in homes()
    ]


def others(cls: type, hidden: list[type]) -> list[str]:
    """Return the names of the base classes whose methods are told elsewhere."""
    return [base.__name__ for base in cls.__mro__[1:] if base not in hidden]


def write(path: Path, text: str) -> None:
    """Write a page unless it is there already: untouched pages are not built again."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def make_pages(app: Sphinx) -> None:
    """Write all pages below `api/`, and remove those of names that are gone."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    pages = {}
    for package in packages():
        if not (importlib.import_module(package).__doc__ or "").strip():
            raise SphinxError(f"The package {package} has no docstring.")
        pages[package] = package_page(package)
        for each in public_names(package):
            if not each.summary:
                raise SphinxError(f"{each.full} has no docstring.")
            if each.home == package and each.kind != "data":
                pages[each.full] = object_page(each)
    for path in folder.glob("tuplet*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        write(folder / f"{name}.rst", text)
    write(folder / "index.rst", index_page())


def index_page() -> str:
    """Return the list of all packages."""
    lines = [*title("API reference")]
    lines += [
        "Everything that is public, package by package. Names in ``tuplet`` itself are those that most",
        "programs need.",
        "",
    ]
    lines += [".. list-table::", "   :class: api-table", "   :widths: 35 65", ""]
    for package in packages():
        module: ModuleType = importlib.import_module(package)
        first = escape((inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " "))
        lines += [f"   * - :doc:`{package} <{package}>`", f"     - {first}"]
    return "\n".join([*lines, "", ".. toctree::", "   :hidden:", "", *(f"   {p}" for p in packages()), ""])


def public_bases(app: Sphinx, name: str, obj: Any, options: Any, bases: list[type]) -> None:
    """Show the base classes that have pages, in the place of those that have none."""
    hidden = hidden_bases(obj)
    shown = [base for base in bases if base not in hidden]
    first = [base for base in obj.__mro__[1:] if base.__name__ in homes()][:1]
    bases[:] = shown or first or [object]


def resolve(app: Sphinx, env: Any, node: Any, contnode: Any) -> Any:
    """Find public names that are written without their package, and re-exported ones."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"].removesuffix("()")
    for split in (target, target.rpartition(".")[0]):
        if split in homes():
            full = homes()[split] + target[len(split) :]
            domain = env.get_domain("py")
            if full in domain.objects:
                return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", full, node, contnode)
    return None


def plain_types(app: Sphinx, doctree: Any) -> None:
    """Let types of parameters, which are sentences here, link public names and nothing else."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py" and node.hasattr("refspecific"):
            if node["reftarget"] in homes():
                del node["refspecific"]
            else:
                node.replace_self(node.children)


def link_types(app: Sphinx, doctree: Any) -> None:
    """Link the public classes in types of parameters and of what is returned, which are in italics."""
    for node in list(doctree.findall(nodes.emphasis)):
        parts = re.split(r"\b([A-Z]\w+)\b", node.astext())
        if not homes().keys() & set(parts[1::2]) or not isinstance(node.parent.parent, LIST_PARTS):
            continue
        words = [nodes.emphasis("", part) for part in parts]
        for i in range(1, len(parts), 2):
            if parts[i] in homes():
                words[i] = addnodes.pending_xref(
                    "", words[i], refdomain="py", reftype="obj", reftarget=parts[i], refdoc=app.env.docname
                )
        node.replace_self([word for word, part in zip(words, parts, strict=True) if part])


def setup(app: Sphinx) -> dict[str, bool]:
    """Join in."""
    app.connect("builder-inited", make_pages)
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", plain_types)
    app.connect("doctree-read", link_types)
    app.connect("autodoc-process-bases", public_bases)
    return {"parallel_read_safe": True}

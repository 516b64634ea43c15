"""Public names and signatures as text; `python tests/public.py` writes the snapshot that a test compares."""

import importlib
import inspect
import re
from functools import cached_property
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "public.md"
SNAPSHOT = Path(__file__).parent / "public.txt"


def addresses():
    """The public modules that the page lists."""
    return re.findall(r"^\| `(tuplet[._a-z]*)` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def describe():
    """Return a line for every public name, and for every method of the public classes."""
    lines = []
    for address in addresses():
        module = importlib.import_module(address)
        for name in sorted(module.__all__):
            lines += _lines(f"{address}.{name}", getattr(module, name))
    return lines


def _lines(path, thing):
    if inspect.ismodule(thing):
        return []
    if not inspect.isclass(thing):
        return [f"{path}{_signature(thing)}" if inspect.isroutine(thing) else path]
    own = f"{path}{_signature(thing)}"
    if issubclass(thing, Exception):
        return [own]
    return [own, *(f"{path}.{name}{text}" for name, text in sorted(_methods(thing)))]


def _methods(kind):
    """Yield the public methods and properties that Tuplet defines, with the signatures of the methods."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        if isinstance(found, property):
            function, text = found.fget, ""
        elif isinstance(found, cached_property):
            function, text = found.func, ""
        elif inspect.isroutine(found):
            function, text = inspect.unwrap(getattr(kind, name)), _signature(getattr(kind, name))
        else:
            continue
        if not name.startswith("_") and getattr(function, "__module__", "").startswith("tuplet"):
            yield name, text


def _signature(thing):
    """Parameters with their defaults; annotations are left to type checkers."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r"<(?:function|class) '?([\w.]+)[^>]*>", r"\1", text)


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(describe()) + "\n", encoding="utf-8")

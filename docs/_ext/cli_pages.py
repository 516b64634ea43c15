"""The commands of `tuplet` with their options, as tables, from the program itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from api_pages import write
from sphinx.application import Sphinx

from tuplet.surface.cli.app import app as program

MARKUP = re.compile(r"\[/?(?:bold|dim|italic)\]")


def commands(group: Any, name: str = "tuplet") -> Iterator[tuple[str, Any]]:
    """Return all commands by their full names, those of groups too."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def section(name: str, command: Any) -> str:
    """Return a command: its usage, what it does, and a table of its options."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    words = [f"<{each.name}>" if each.required else f"[{each.name}]" for each in arguments]
    lines = [
        f"### {name}",
        "",
        plain(command.help),
        "",
        "```console",
        f"$ {' '.join([name, *words])}",
        "```",
        "",
    ]
    if options:
        lines += ["| option | meaning | default |", "|---|---|---|"]
        lines += [
            f"| {', '.join(f'`{word}`' for word in each.opts)} | {plain(each.help)} | {default(each)} |"
            for each in options
        ]
    return "\n".join([*lines, ""])


def plain(text: str | None) -> str:
    """Return a text of the program for a page: no markup, no signs that Markdown would take for its own."""
    return re.sub(r"([|*_])", r"\\\1", MARKUP.sub("", text or "").replace("\n", " ").strip())


def default(option: Any) -> str:
    """Return what an option is unless told, if that says anything."""
    return "" if option.default is None or option.default is False else f"`{option.default}`"


def make_page(app: Sphinx) -> None:
    """Write the text that the page on the command line includes."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    found = commands(typer.main.get_command(program))
    write(folder / "_commands.md", "\n".join(section(name, command) for name, command in found))


def setup(app: Sphinx) -> dict[str, bool]:
    """Join in."""
    app.connect("builder-inited", make_page)
    return {"parallel_read_safe": True}

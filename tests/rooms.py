"""The rooms of the package in import order, as the contract of import-linter lists them."""

import tomllib
from pathlib import Path

_SETTINGS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
_LAYERS = _SETTINGS["tool"]["importlinter"]["contracts"][0]["layers"]

ROOMS = [layer.removeprefix("tuplet.") for layer in reversed(_LAYERS)]

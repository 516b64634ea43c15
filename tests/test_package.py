"""What pyproject.toml promises about the package."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_oldest_versions_that_are_tested_are_the_floors():
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    names = everything.removeprefix("tuplet[").removesuffix("]").split(",")
    floors = PROJECT["dependencies"] + [floor for name in names for floor in extras[name]]
    floors.remove("tuplet[save]")  # of `cli`, in `all` by itself, too
    assert len(floors) > 10
    assert sorted(floors) == [pin.replace("==", ">=") for pin in pinned]

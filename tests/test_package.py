"""What pyproject.toml promises about the package."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]


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


def test_the_citation_is_of_this_version():
    (version,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert version == PROJECT["version"]


def test_everything_that_the_sdist_includes_exists():
    included = SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name.removeprefix("/")).exists()] == []


def test_the_workflow_runs_every_python_that_is_promised():
    prefix = "Programming Language :: Python :: 3."
    promised = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if line.startswith(prefix)]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"python: \[(.*)\]", workflow)
    assert promised == listed.replace('"', "").split(", ")
    assert PROJECT["requires-python"] == f">={promised[0]}"

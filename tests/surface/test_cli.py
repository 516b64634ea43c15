"""The command line as a person meets it."""

import builtins
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import tuplet
from tuplet.surface.cli import main
from tuplet.surface.cli.app import app

runner = CliRunner()


def test_demo_shows_every_part():
    result = runner.invoke(app, ["demo", "--folds", "3"])
    assert result.exit_code == 0, result.output
    for part in ("344 penguins", "1. Models", "2. The five most", "3. Penguin", "4. One joint, four losses"):
        assert part in result.output
    assert max(map(len, result.output.splitlines())) <= 100


def test_demo_is_reproducible():
    """Everything but the times is the same twice."""
    first, second = (runner.invoke(app, ["demo", "--folds", "2", "--seed", "3"]).output for _ in range(2))
    timeless = re.compile(r"\d+\.\d │$", re.MULTILINE)
    assert timeless.sub("", first) == timeless.sub("", second)


def test_chains_beat_independent_models_on_the_penguins():
    """What the demo is there to show; the margin is far beyond the noise of the folds."""
    output = runner.invoke(app, ["demo"]).output
    scores = {
        row[0].strip(): float(row[3])
        for row in (line.strip("│\n ").split("│") for line in output.splitlines())
        if len(row) == 5 and re.fullmatch(r"\s*-\d+\.\d+\s*", row[3])
    }
    assert scores["Chain"] > scores["Independent"] + 0.05
    assert scores["Independent"] > scores["Prior (most frequent combinations)"] + 0.5


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.output.strip() == f"tuplet {tuplet.__version__}"


def test_unknown_command_is_an_error():
    result = runner.invoke(app, ["predicct"])
    assert result.exit_code == 2
    assert "predicct" in result.output


def test_without_its_packages_the_command_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "tuplet.surface.cli.app", raising=False)
    real = builtins.__import__

    def without_typer(name, *args, **kwargs):
        if name == "typer":
            raise ModuleNotFoundError("No module named 'typer'", name="typer")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_typer)
    with pytest.raises(SystemExit, match=r"pip install 'tuplet\[cli\]'"):
        main()


def test_the_core_does_not_import_optional_packages():
    # scikit-learn itself imports some of them where they are installed, so leave those out.
    code = (
        "import sys, narwhals, pandas, sklearn.model_selection, sklearn.pipeline; before = set(sys.modules); "
        "import tuplet; new = set(sys.modules) - before; "
        "print(sorted({'matplotlib', 'typer', 'rich', 'polars', 'pyagrum', 'hypothesis'} & new))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"

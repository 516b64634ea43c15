"""Build the sdist and from it the wheel, install the wheel into an empty environment, and use it there.

`make test-wheel` runs this. The environment has the requirements of the wheel and of its extra `cli` and
nothing else; `build` and mypy come from the environment that runs this script.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYTHON = Path(sys.executable)
USER = HERE / "typed_user.py"
MODULES = ("tuplet", "tuplet.evaluate", "tuplet.joint", "tuplet.losses", "tuplet.metrics")

LIST_NAMES = """
import importlib, json, sys
from importlib.util import find_spec
import tuplet
assert tuplet.__file__.startswith(sys.prefix), tuplet.__file__
names = {}
for module in sys.argv[1:]:
    public = [name for name in importlib.import_module(module).__all__ if not find_spec(f"{module}.{name}")]
    names |= {f"{module}.{name}": isinstance(getattr(sys.modules[module], name), type) for name in public}
print(json.dumps(names))
"""
"""Prints the public names of modules, and for each whether it is a class."""


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints; without the variables that lead to another environment."""
    print("+", *(Path(part).name if isinstance(part, Path) else part.split("\n")[0] for part in command))
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "MYPYPATH")}
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{command[0]} ended with {done.returncode}")
    return done.stdout


def build(folder: Path) -> Path:
    """Return the wheel that is built from the sdist."""
    run(PYTHON, "-m", "build", "--outdir", folder, ROOT, cwd=folder)  # the wheel from the sdist
    (wheel,) = folder.glob("tuplet-*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """Return the folder of the programs of a new environment with a wheel and its extra `cli`."""
    run(PYTHON, "-m", "venv", folder, cwd=folder.parent)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    run(*pip, "--constraint", ROOT / "constraints.txt", f"{wheel}[cli]", cwd=folder)
    return programs


def use(programs: Path, folder: Path) -> None:
    """Run the user's script and the command line."""
    run(programs / "python", "-W", "error", USER, cwd=folder)
    assert (folder / "model.tuplet").stat().st_size > 0
    tuplet = programs / "tuplet"
    assert re.fullmatch(r"tuplet \d+\.\d+\S*\n", run(tuplet, "--version", cwd=folder))
    assert "predict" in run(tuplet, "--help", cwd=folder)
    assert "ChainClassifier" in run(tuplet, "info", "model.tuplet", cwd=folder)
    assert "Hamming loss" in run(tuplet, "demo", cwd=folder)


WITHOUT_HOME = """
import sys, warnings
warnings.simplefilter("error")
import tuplet
X, Y = tuplet.load_penguins(return_X_y=True)
for model in (tuplet.ChainClassifier(), tuplet.TreeClassifier(), tuplet.GenerativeBayesNetClassifier()):
    model.fit(X, Y).predict(X)
    tuplet.save_model(model, sys.argv[1])
    assert tuplet.load_model(sys.argv[1]).predict(X).equals(model.predict(X))
assert "numba" not in sys.modules, "the kernels are not compiled"
"""
"""Fits models whose kernels are compiled, and saves them to a given path."""


def use_without_home(programs: Path, folder: Path) -> None:
    """Use the package as a user without a home who may write to one folder only."""
    python = programs / "python"
    if not (shutil.which("cc") or shutil.which("gcc")):
        print("no C compiler: kernels are left to numba")
        return
    own: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    if not hasattr(os, "geteuid") or os.geteuid() or _call([python, "-c", ""], own):
        print("user 65534 cannot run this Python; the present user is used instead")
        own = {}
    folder.parent.chmod(0o755)
    folder.chmod(0o777)
    target = folder / "without_home.tuplet"
    if _call([python, "-c", WITHOUT_HOME, target], own | {"cwd": folder, "env": {"HOME": "/nonexistent"}}):
        sys.exit("a user without a home cannot use the package")


def _call(command: list[str | Path], options: dict[str, Any]) -> int:
    try:
        return subprocess.run(command, check=False, **options).returncode
    except OSError:
        return 1


def check_types(programs: Path, folder: Path) -> None:
    """Check the user's script strictly, and that type checkers see a type for every public name."""
    mypy = [PYTHON, "-m", "mypy", "--strict", "--python-executable", programs / "python"]
    mypy += ["--config-file", "", "--cache-dir", folder / "mypy"]
    run(*mypy, USER, cwd=folder)
    names = json.loads(run(programs / "python", "-c", LIST_NAMES, *MODULES, cwd=folder))
    script = folder / "names.py"
    lines = [f"import {module}" for module in MODULES] + [f"reveal_type({name})" for name in names]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    revealed = re.findall(r'note: Revealed type is "(.*)"', run(*mypy, script, cwd=folder))
    wrong = []
    for (name, is_class), seen in zip(names.items(), revealed, strict=True):
        # What calling a class returns; of a named tuple, mypy shows the parts first.
        made = rf"(-> |fallback=)tuplet\.[\w.]+\.{name.rpartition('.')[2]}\b"
        if seen == "Any" or (is_class and not re.search(made, seen)):
            wrong.append(f"{name}: {seen}")
    if wrong:
        sys.exit("mypy does not see the types of these public names:\n" + "\n".join(wrong))
    print(f"mypy sees the types of {len(names)} public names, {sum(names.values())} of them classes")


def main() -> None:
    """Build, install, use, check."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "dist").mkdir()
        (folder / "work").mkdir()
        wheel = build(folder / "dist")
        programs = install(wheel, folder / "environment")
        use(programs, folder / "work")
        use_without_home(programs, folder / "work")
        check_types(programs, folder / "work")
        print(f"{wheel.name} works")


if __name__ == "__main__":
    main()

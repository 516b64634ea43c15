"""Run benchmarks and keep benchmarks/README.md: every figure on it comes from here, none is typed.

    python benchmarks/run.py                 the quick ones (bench_*.py), then the page
    python benchmarks/run.py peers chains    these, then the page
    python benchmarks/run.py --page          only the page, from the results on disk
    python benchmarks/run.py scaling --finished      other options are given to the scripts

What a benchmark prints is its section, in Markdown; it is kept in benchmarks/results/ with the command, the
versions and the machine that made it. A benchmark that fails leaves its old section as it was.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PACKAGES = ("tuplet", "numpy", "scipy", "scikit-learn", "numba", "pyagrum")

CHAPTERS = {
    "Speed, as ratios to named rivals": None,  # the quick ones
    "What each model costs as the data grow": ("scaling",),
    "Default settings on foreign tables": ("tables", "penalties"),
    "Beside what users would pick instead": ("auto", "peers", "eight"),
    "Groups of similar rows": ("groups",),
    "Files larger than memory": ("streaming",),
    "Columns of any kind": ("encoders",),
    "Ordered class variables": ("ordered",),
    "Generalised Bayesian network classifiers (paper 000)": ("bayesnet", "network_cost"),
    "Multidimensional Bayesian network classifiers (paper 001)": ("mbc",),
    "Multivariate probit with regression trees (paper 002)": ("probit",),
    "Conditional trees and their mixtures (paper 003)": ("trees", "many_labels"),
    "Probabilistic rule stacking (paper 004)": ("rule_inference", "rules"),
}
"""Which benchmark stands in which chapter of the page."""

HEADER = """# Benchmarks

Put together by `benchmarks/run.py` from `benchmarks/results/`; do not edit by hand. Times are CPU seconds
unless a column says otherwise. Each section names the command that made it, the versions and the machine.
"""


def quick() -> list[str]:
    """Return the names of the benchmarks that take a minute or two."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def script_of(name: str) -> Path:
    """Return the script behind a name."""
    for path in (HERE / f"bench_{name}.py", HERE / f"{name}.py"):
        if path.exists():
            return path
    sys.exit(f"There is no benchmark {name!r}; there are {', '.join(quick())} and the studies beside them.")


def run(name: str, options: list[str]) -> None:
    """Run one benchmark and keep what it prints."""
    script = script_of(name)
    print(f"== {name}", flush=True)
    # Standard error stays on the terminal: progress lines belong there.
    result = subprocess.run(
        [sys.executable, str(script), *options], stdout=subprocess.PIPE, text=True, check=False
    )
    print(result.stdout, flush=True)
    if result.returncode:
        sys.exit(f"{name} failed; its section is left as it was.")
    about = script.read_text().split('"""')[1].split("\n\n    ")[0].strip()
    title, _, rest = about.partition("\n")
    command = " ".join(["python benchmarks/run.py", name, *options])
    made = f"`{command}` · {machine()}"
    # The quick ones print for the terminal, the studies in Markdown.
    body = f"```\n{result.stdout.rstrip()}\n```" if name in quick() else result.stdout.strip()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"### {title.rstrip('.')}\n{rest}\n\n{body}\n\n<sub>{made}</sub>\n")


def machine() -> str:
    """Return versions, cores and kind of machine."""
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, {packages}; {os.cpu_count()} cores, {platform.machine()}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def write_page() -> None:
    """Put the page together from the sections on disk; a chapter without any is left out."""
    page = [HEADER]
    for chapter, names in CHAPTERS.items():
        paths = [RESULTS / f"{name}.md" for name in names or quick()]
        sections = [path.read_text() for path in paths if path.exists()]
        if sections:
            page.append(f"\n## {chapter}\n\n" + "\n".join(sections))
    (HERE / "README.md").write_text("".join(page))


def main() -> None:
    """Run what was asked for, then write the page."""
    asked = [word for word in sys.argv[1:] if not word.startswith("--")]
    options = [word for word in sys.argv[1:] if word.startswith("--") and word != "--page"]
    for name in asked or ([] if "--page" in sys.argv else quick()):
        run(name, options)
        write_page()
    write_page()


if __name__ == "__main__":
    main()

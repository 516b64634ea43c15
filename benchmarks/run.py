"""Run every benchmark, print what it prints, and write it all to benchmarks/README.md.

python benchmarks/run.py
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = ("tuplet", "numpy", "scipy", "scikit-learn", "pyagrum")

HEADER = """# Benchmarks

Written by `make bench`; do not edit by hand. Times are CPU seconds with one thread; every figure that counts
is a ratio to a named rival in the same run.

"""


def run(script: Path) -> str:
    """Run one benchmark and return its section of the page."""
    print(f"== {script.name}", flush=True)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    print(result.stdout + result.stderr, flush=True)
    if result.returncode:
        sys.exit(f"{script.name} failed; the page is left as it was.")
    about = script.read_text().split('"""')[1].split("\n\n    ")[0].strip()
    return f"## {script.stem.removeprefix('bench_')}\n\n{about}\n\n```\n{result.stdout.rstrip()}\n```\n"


def main() -> None:
    """Run all and write the page at the end, so that a failure leaves the old one."""
    sections = [run(script) for script in sorted(HERE.glob("bench_*.py"))]
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = (
        f"Python {platform.python_version()}, {packages}; {os.cpu_count()} cores, {platform.machine()}.\n\n"
    )
    (HERE / "README.md").write_text(HEADER + machine + "\n".join(sections))


if __name__ == "__main__":
    main()

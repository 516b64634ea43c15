"""Cold start: imports against scikit-learn's, the first fit of every model, and two jobs against one.

CPU seconds of a new process with an empty numba cache, the least of two or three runs. A first fit imports
the model, fits it to the Palmer penguins and predicts them (0/1 labels where a model takes no others; one
second of time for "auto"). Two jobs against one: wall clock, ten random chains, worker processes already
started. Run it on a quiet machine.

    TUPLET_DATA=folder/of/sets python benchmarks/bench_start.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

import tuplet
from benchmark_sets import load_benchmark
from tuplet.surface.cli.catalogue import MODELS

FIRST_FIT = """
import warnings
warnings.simplefilter("ignore")
from tuplet.surface.cli.catalogue import make_model
from tuplet import load_penguins
X, Y = load_penguins(return_X_y=True)
if {binary}:
    Y = (Y == Y.mode().iloc[0]).astype(int)
make_model({name!r}, time_budget=1.0).fit(X, Y).predict(X)
"""
BINARY = ("neighbors", "probit", "probit-forest")


def seconds(*command: str, repeats: int = 3) -> float:
    """CPU seconds of a command with a numba cache of its own."""
    times = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            before = _used()
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            times.append(_used() - before)
    return min(times)


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def python(code: str, repeats: int = 3) -> float:
    """CPU seconds of a program."""
    return seconds(sys.executable, "-c", code, repeats=repeats)


def wall(X: object, Y: object, n_jobs: int, repeats: int) -> float:
    """Seconds of wall clock of ten chains."""
    times = []
    for _ in range(repeats):
        model = tuplet.ChainClassifier(n_chains=10, order="random", random_state=0, n_jobs=n_jobs)
        start = time.perf_counter()
        model.fit(X, Y)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the tables."""
    theirs = python("import sklearn.multioutput")
    print(f"{'':44s} {'CPU s':>6s}  of sklearn.multioutput")
    rows = {
        "import sklearn.multioutput": theirs,
        "import tuplet": python("import tuplet"),
        "from tuplet import ChainClassifier": python("from tuplet import ChainClassifier"),
        "tuplet --help": seconds(sys.executable, "-m", "tuplet", "--help"),
    }
    for name in MODELS:
        code = FIRST_FIT.format(name=name, binary=name in BINARY)
        rows[f"first fit and prediction: {name}"] = python(code, repeats=2)
    for name, value in rows.items():
        print(f"{name:44s} {value:6.2f} {value / theirs:8.2f}x")
    print()
    print(f"{'ten chains, wall clock':44s} {'1 job':>6s} {'2 jobs':>7s}  ratio")
    data = {"penguins": tuplet.load_penguins(return_X_y=True)}
    if "TUPLET_DATA" in os.environ:
        yeast = load_benchmark("yeast")
        data["yeast"] = (yeast.X, yeast.Y)
    for name, (X, Y) in reversed(data.items()):  # the larger one first, which starts the workers
        wall(X, Y, 2, 1)
        one, two = (wall(X, Y, n_jobs, 5) for n_jobs in (1, 2))
        print(f"{name:44s} {one:6.2f} {two:7.2f} {two / one:6.2f}")


if __name__ == "__main__":
    main()

"""What each model costs as the data grow: rows, labels, features and categories, beside scikit-learn.

Generated data: correlated normal features, labels from thresholds of a linear function with correlated noise.
Default settings, one thread; times are CPU seconds, or microseconds a row for predictions. Every cell is a
process of its own, after a first small fit. Memory is the peak of the fit above what the process had before,
as a multiple of the size of X and Y. The exponent is the slope of the log of the fit time against the log of
the size, from the second size on. Columns after it belong to the largest size that was fitted. A cell that
ends at the time limit (150 CPU seconds for rows, 60 for the rest) or is refused has the reason; larger sizes
of the same model are then left out. So are numbers of rows at which the fit would be over the limit if it
grew further as it did between the last two sizes. Finished cells are kept in benchmarks/cache/scaling, so
that an interrupted run continues.

    python benchmarks/run.py scaling
    python benchmarks/run.py scaling --finished     the tables of the cells that are in the cache
    python benchmarks/scaling.py rows       measures the cells of an axis, for several processes side by side
"""

from __future__ import annotations

import os

from cells import MODELS, THREADS, peak, reason_of, tuplet_class, work_within_limits

os.environ.update(dict.fromkeys(THREADS, "1"))  # before the first import of numpy

import json
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CACHE = Path(__file__).parent / "cache" / "scaling"

N_ASKED = 200
"""Rows that are predicted; a tenth of them if one takes more than 20 ms."""

BASE = {"rows": 5_000, "features": 20, "labels": 6, "categories": 2}


class Axis(NamedTuple):
    """What grows: other sizes than those of `BASE`, the sizes to try, and the CPU seconds of a cell."""

    others: dict[str, int]
    sizes: tuple[int, ...]
    seconds: int = 60
    extrapolates: bool = False


AXES = {
    "rows": Axis({}, (1_000, 10_000, 100_000, 1_000_000), seconds=150, extrapolates=True),
    "labels": Axis({"features": 30}, (10, 40, 160)),
    "features": Axis({"rows": 2_000}, (20, 2_000)),
    "categories": Axis({"labels": 4}, (2, 20)),
}


def logistic() -> Any:
    """Return what our default estimator is: standardised logistic regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression())


def multi_output() -> Any:
    """Return the rival of independent models."""
    from sklearn.multioutput import MultiOutputClassifier

    return MultiOutputClassifier(logistic())


def classifier_chain() -> Any:
    """Return the rival of chains."""
    from sklearn.multioutput import ClassifierChain

    return ClassifierChain(logistic())


class Combinations:
    """The rival of powersets: one classifier of label combinations."""

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Combinations:
        """Number the combinations and fit."""
        self.combinations, number = np.unique(Y, axis=0, return_inverse=True)
        self.model = logistic().fit(X, number.ravel())
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable combinations."""
        return self.combinations[self.model.predict(X)]


def extra_trees() -> Any:
    """Return the rival of shared forests, with the same settings."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(n_estimators=100, bootstrap=True, max_features=0.5, min_samples_leaf=2)


RIVALS: dict[str, Callable[[], Any]] = {
    "sklearn MultiOutputClassifier": multi_output,
    "sklearn ClassifierChain": classifier_chain,
    "sklearn combinations": Combinations,
    "sklearn ExtraTreesClassifier": extra_trees,
}
OURS = {name: make for name, make in MODELS.items() if name != "prior of single labels"}
ALL = OURS | {"mixture of chains": tuplet_class("MixtureClassifier")} | RIVALS


# -- one cell, in a process of its own ---------------------------------------------------------------------


def data(rows: int, features: int, labels: int, categories: int, seed: int = 0) -> tuple[Any, Any]:
    """Return X (rows, features) and Y (rows, labels); the function from one to the other does not change.

    Common factors cause most of the variance of the features, and most of what the features leave open in the
    labels: with independent ones, searches for structures and modes end sooner than with real data. Rows are
    made in blocks: nothing but the data adds to the peak of memory.
    """
    truth, rng = np.random.default_rng(0), np.random.default_rng(1 + seed)
    weights = truth.normal(size=(min(features, 20), labels)) * 0.7
    causes, noise = loadings(truth, features), loadings(truth, labels)
    cuts = np.quantile(truth.normal(size=1000) * 6, np.arange(1, categories) / categories)
    X, Y = np.empty((rows, features)), np.empty((rows, labels), dtype=np.int64)
    for start in range(0, rows, 1_000):
        part = slice(start, min(start + 1_000, rows))
        X[part] = correlated(rng, causes, part.stop - start)
        score = X[part, : len(weights)] @ weights + 6 * correlated(rng, noise, part.stop - start)
        Y[part] = np.searchsorted(cuts, score)
    return X, Y


def loadings(truth: np.random.Generator, columns: int) -> np.ndarray:
    """Return what factors add to columns: a quarter as many, 2 to 8, cause three quarters of the variance."""
    answer = truth.normal(size=(int(np.clip(columns // 4, 2, 8)), columns))
    return answer * np.sqrt(0.75) / np.linalg.norm(answer, axis=0)


def correlated(rng: np.random.Generator, causes: np.ndarray, rows: int) -> np.ndarray:
    """Return rows of normal columns with common factors."""
    return rng.normal(size=(rows, len(causes))) @ causes + 0.5 * rng.normal(size=(rows, causes.shape[1]))


def seconds_of(work: Callable[[], Any], longest: float) -> float:
    """Return the CPU seconds of the first call, or the mean of later ones if it does not take the longest."""
    if (first := seconds_of_calls(work, 1)) > longest:
        return first
    return seconds_of_calls(work, n_calls := int(np.ceil(0.1 / max(first, 1e-4)))) / n_calls


def seconds_of_calls(work: Callable[[], Any], n_calls: int) -> float:
    """Return the CPU seconds of some calls."""
    start = time.process_time()
    for _ in range(n_calls):
        work()
    return time.process_time() - start


def measure(name: str, size: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Fit once and ask; yield what it took so far."""
    X, Y = data(**size)
    X_new, Y_new = data(**{**size, "rows": N_ASKED}, seed=1)
    warm_up(name)  # again: a copied process reads the pages of its code anew, which counts as memory
    model, before = ALL[name](), resident()
    answer = {"fit": seconds_of(lambda: model.fit(X, Y), longest=0.2)}
    answer["memory"] = max(0.0, peak() - before) / (X.nbytes + Y.nbytes)
    yield answer
    answer["one row, ms"] = 1e3 * seconds_of(lambda: model.predict(X_new[:1]), longest=1)
    yield answer
    if answer["one row, ms"] > 20:
        X_new, Y_new = X_new[::10], Y_new[::10]
    queries = {"predict": lambda: model.predict(X_new)}
    if hasattr(model, "predict_joint"):
        queries["log_prob"] = lambda: model.predict_joint(X_new).distribution.log_prob(Y_new)
        queries["mode"] = lambda: model.predict_joint(X_new).distribution.mode()
    for figure, query in queries.items():
        answer[figure] = 1e6 * seconds_of(query, longest=1) / len(X_new)
        yield answer


def resident() -> float:
    """Return the memory of this process now, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- all cells ---------------------------------------------------------------------------------------------


def cell(name: str, axis: str, value: int) -> dict[str, Any]:
    """Return the figures of a cell, measured now unless they are in the cache."""
    path = cached(name, axis, value)
    if not path.exists():
        size = {**BASE, **AXES[axis].others, axis: value}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(forked(name, size, AXES[axis].seconds)))
        print(path.stem, path.read_text(), file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def cached(name: str, axis: str, value: int) -> Path:
    """Return where the figures of a cell are kept."""
    return CACHE / f"{name}-{axis}-{value}.json".replace(" ", "_")


def forked(name: str, size: dict[str, int], seconds: int) -> dict[str, Any]:
    """Measure in a copy of this process, which has imported everything and can be ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        process = multiprocessing.get_context("fork").Process(
            target=work_within_limits, args=(measure(name, size), path, seconds)
        )
        process.start()
        process.join()
        answer = json.loads(path.read_text()) if path.exists() else {}
    return {**answer, **reason_of(process.exitcode, seconds)}


def series(name: str, axis: str, finished: bool = False) -> dict[int, dict[str, Any]]:
    """Return the cells of a model along an axis, or those in the cache, up to one that gave no figures."""
    cells: dict[int, dict[str, Any]] = {}
    if not finished and not all(cached(name, axis, value).exists() for value in AXES[axis].sizes):
        warm_up(name)
    for value in AXES[axis].sizes:
        if finished and not cached(name, axis, value).exists():
            break
        if AXES[axis].extrapolates and expected(cells, value) > AXES[axis].seconds:
            cells[value] = {"reason": f"over {AXES[axis].seconds} CPU s, extrapolated"}
        else:
            cells[value] = cell(name, axis, value)
        if "reason" in cells[value]:
            break
    return cells


def warm_up(name: str) -> None:
    """Fit a few rows: imports and compiled code are no part of the figures."""
    warnings.simplefilter("ignore")
    X, Y = data(**{**BASE, "rows": 200, "labels": 2})
    ALL[name]().fit(X, Y).predict(X)


def expected(cells: dict[int, dict[str, Any]], value: int) -> float:
    """Return the seconds of a fit that grows further as it did between the last two sizes, or zero."""
    if len(cells) < 2:
        return 0.0
    sizes, seconds = list(cells)[-2:], [each["fit"] for each in list(cells.values())[-2:]]
    slope = np.log(seconds[1] / seconds[0]) / np.log(sizes[1] / sizes[0])
    return float(seconds[1] * (value / sizes[1]) ** slope)


def line(name: str, axis: str, cells: dict[int, dict[str, Any]]) -> dict[str, str]:
    """Return a line of the table of an axis."""
    done = {value: c for value, c in cells.items() if "fit" in c}
    row = {"model": name}
    for value in AXES[axis].sizes:
        row[f"{value:,}"] = shown(done[value]["fit"]) if value in done else "-"
    row["exponent"] = exponent(list(done), [each["fit"] for each in done.values()])
    last = done[max(done)] if done else {}
    for figure in ("memory", "one row, ms", "predict", "log_prob", "mode"):
        row[figure] = shown(last[figure]) if figure in last else "-"
    row["ends with"] = next((c["reason"].split(". ")[0][:90] for c in cells.values() if "reason" in c), "")
    return row


def shown(number: float) -> str:
    """Return a number with two digits or more."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"


def exponent(sizes: list[int], seconds: list[float]) -> str:
    """Return the slope of log seconds against log size, without the first of three or more sizes."""
    first = 1 if len(sizes) > 2 else 0
    if len(sizes) - first < 2:
        return "-"
    return f"{np.polyfit(np.log(sizes[first:]), np.log(np.maximum(seconds[first:], 1e-3)), 1)[0]:.2f}"


def main(finished: bool) -> None:
    """Print a table for each axis."""
    for axis, about in AXES.items():
        fixed = {name: size for name, size in {**BASE, **about.others}.items() if name != axis}
        print(f"\n**Growing {axis}**; {', '.join(f'{size:,} {name}' for name, size in fixed.items())}\n")
        cells = {name: series(name, axis, finished) for name in ALL}
        lines = [line(name, axis, each) for name, each in cells.items() if each]
        if not lines:
            print("Not measured yet.")
            continue
        print("|", " | ".join(lines[0]), "|\n|", " | ".join("---" for _ in lines[0]), "|")
        for row in lines:
            print("|", " | ".join(row.values()), "|")
        missing = [name for name, each in cells.items() if not each]
        if missing:
            print(f"\nNot measured yet: {', '.join(missing)}.")


if __name__ == "__main__":
    if sys.argv[1:] in ([], ["--finished"]):
        main(finished=bool(sys.argv[1:]))
    else:
        for model in ALL:
            series(model, sys.argv[1])

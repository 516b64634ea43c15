"""What each model costs as the data grow: rows, labels, features and categories, beside scikit-learn.

Generated data: correlated normal features, labels from thresholds of a linear function with correlated noise.
Every cell is a new process with one thread. Times are CPU seconds, or microseconds a row for predictions;
memory is the peak above that of the process before the fit, as a multiple of the size of X and Y. The
exponent is the slope of the log of the fit time against the log of the size, from the second size on. Columns
after it belong to the largest size that was fitted. A cell that ends at the time limit or is refused has the
reason; larger sizes of the same model are then left out. Finished cells are kept in benchmarks/cache/scaling,
so that an interrupted run continues.

    python benchmarks/run.py scaling
    python benchmarks/scaling.py rows       measures the cells of an axis, for several processes side by side
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cells import MODELS, measured, peak, work_within_limits

CACHE = Path(__file__).parent / "cache" / "scaling"

N_ASKED = 500
"""Rows that are predicted."""

BASE = {"rows": 5_000, "features": 20, "labels": 6, "categories": 2}
AXES: dict[str, tuple[dict[str, int], tuple[int, ...]]] = {
    "rows": ({}, (1_000, 10_000, 100_000, 1_000_000)),
    "labels": ({"features": 30}, (6, 20, 40, 160)),
    "features": ({"rows": 2_000}, (20, 200, 2_000)),
    "categories": ({"labels": 4}, (2, 5, 20)),
}
"""What grows: other sizes than those of `BASE`, and the sizes to try."""


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
ALL = MODELS | RIVALS


# -- one cell, in a process of its own ---------------------------------------------------------------------


def data(rows: int, features: int, labels: int, categories: int, seed: int = 0) -> tuple[Any, Any]:
    """Return X (rows, features) and Y (rows, labels); the function from one to the other does not change.

    Common factors cause most of the variance of the features, and most of what the features leave open in the
    labels: with independent ones, searches for structures and modes end sooner than with real data.
    """
    truth, rng = np.random.default_rng(0), np.random.default_rng(1 + seed)
    weights = truth.normal(size=(min(features, 20), labels)) * 0.7
    X = correlated(truth, rng, rows, features)
    score = X[:, : len(weights)] @ weights + 6 * correlated(truth, rng, rows, labels)
    cuts = np.quantile(truth.normal(size=1000) * 6, np.arange(1, categories) / categories)
    return X, np.searchsorted(cuts, score).astype(np.int64)


def correlated(truth: np.random.Generator, rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Return normal columns; a quarter as many factors, 2 to 8, cause three quarters of their variance."""
    n_factors = int(np.clip(columns // 4, 2, 8))
    loadings = truth.normal(size=(n_factors, columns))
    loadings *= np.sqrt(0.75) / np.linalg.norm(loadings, axis=0)
    return rng.normal(size=(rows, n_factors)) @ loadings + 0.5 * rng.normal(size=(rows, columns))


def seconds_of(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call: the mean of as many as take a third of a second together."""
    start, n_calls = time.process_time(), 0
    while (
        total := time.process_time() - start
    ) < 1 / 3 or not n_calls:  # the clock may tick in steps of 4 ms
        work()
        n_calls += 1
    return total / n_calls


def measure(name: str, size: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Fit once and ask; yield what it took so far."""
    X, Y = data(**size)
    X_new, Y_new = data(**{**size, "rows": N_ASKED}, seed=1)
    model = ALL[name]()
    small = data(**{**size, "rows": 200, "labels": 2}, seed=2)
    ALL[name]().fit(*small).predict(small[0])  # imports and compiled code are no part of the figures
    before = peak()
    answer = {"fit": seconds_of(lambda: model.fit(X, Y))}
    answer["memory"] = max(0.0, peak() - before) / (X.nbytes + Y.nbytes)
    yield answer
    answer["one row, ms"] = 1e3 * seconds_of(lambda: model.predict(X_new[:1]))
    yield answer
    queries = {"predict": lambda: model.predict(X_new)}
    if hasattr(model, "predict_joint"):
        queries["marginals"] = lambda: model.predict_joint(X_new).distribution.marginals()
        queries["log_prob"] = lambda: model.predict_joint(X_new).distribution.log_prob(Y_new)
        queries["mode"] = lambda: model.predict_joint(X_new).distribution.mode()
    for figure, query in queries.items():
        answer[figure] = 1e6 * seconds_of(query) / len(X_new)
        yield answer


# -- all cells ---------------------------------------------------------------------------------------------


def cell(name: str, axis: str, value: int) -> dict[str, Any]:
    """Return the figures of a cell, measured now unless they are in the cache."""
    size = {**BASE, **AXES[axis][0], axis: value}
    return measured(__file__, [name, json.dumps(size)], CACHE / f"{name}-{axis}-{value}.json")


def series(name: str, axis: str) -> dict[int, dict[str, Any]]:
    """Return the cells of a model along an axis, up to the first that gave no figures."""
    cells: dict[int, dict[str, Any]] = {}
    for value in AXES[axis][1]:
        cells[value] = cell(name, axis, value)
        if "reason" in cells[value]:
            break
    return cells


def line(name: str, axis: str) -> dict[str, str]:
    """Return a line of the table of an axis."""
    cells = series(name, axis)
    done = {value: c for value, c in cells.items() if "fit" in c}
    row = {"model": name}
    for value in AXES[axis][1]:
        row[f"{value:,}"] = f"{done[value]['fit']:.2g}" if value in done else "-"
    row["exponent"] = exponent(list(done), [each["fit"] for each in done.values()])
    last = done[max(done)] if done else {}
    for figure in ("memory", "one row, ms", "predict", "marginals", "log_prob", "mode"):
        row[figure] = f"{last[figure]:.2g}" if figure in last else "-"
    row["ends with"] = next((c["reason"].split(". ")[0][:90] for c in cells.values() if "reason" in c), "")
    return row


def exponent(sizes: list[int], seconds: list[float]) -> str:
    """Return the slope of log seconds against log size, without the first of three or more sizes."""
    first = 1 if len(sizes) > 2 else 0
    if len(sizes) - first < 2:
        return "-"
    return f"{np.polyfit(np.log(sizes[first:]), np.log(np.maximum(seconds[first:], 1e-3)), 1)[0]:.2f}"


def main() -> None:
    """Print a table for each axis."""
    for axis, (others, _) in AXES.items():
        fixed = {name: size for name, size in {**BASE, **others}.items() if name != axis}
        print(f"\n**Growing {axis}**; {', '.join(f'{size:,} {name}' for name, size in fixed.items())}\n")
        lines = [line(name, axis) for name in ALL]
        print("|", " | ".join(lines[0]), "|\n|", " | ".join("---" for _ in lines[0]), "|")
        for each in lines:
            print("|", " | ".join(each.values()), "|")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        work_within_limits(measure(sys.argv[1], json.loads(sys.argv[2])), Path(sys.argv[3]))
    elif len(sys.argv) == 2:
        for each in ALL:
            series(each, sys.argv[1])
    else:
        main()

"""Batched logistic regression against one scikit-learn call per parent configuration: CPU time, one thread.

Rf1, the first of ten folds (shuffled with seed 0), features standardised. Parent sets of up to three class
variables are drawn for random children; every configuration with two classes or more is one fit. Both solve
the same problems (C = 1) to the same gradient: scikit-learn runs with its default tolerance, the largest
entry of the gradient where it stopped is measured, and Tuplet has to come below that for each configuration.
The rows of a configuration are gathered for scikit-learn beforehand; Tuplet's time includes sorting and
gathering.

    TUPLET_DATA=folder/of/sets python benchmarks/bench_logistic.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from timing import cpu
from tuplet.local.many_logistic import LogisticBatch

N_SETS, REPEATS = 32, 3
GROUPS = {"n > 1000": (1000, 10**9), "100 < n <= 1000": (100, 1000), "n <= 100": (0, 100)}

FIRST_FIT = """
import time
import numpy, pandas, sklearn.linear_model, tuplet
start = time.process_time()
from tuplet.local.many_logistic import fit_many
fit_many(numpy.eye(4), numpy.array([0, 1, 1, 2]), n_classes=3)
print(time.process_time() - start)
"""


@dataclass(frozen=True)
class Task:
    """Configurations of one size among those of one child and one set of parents."""

    y: np.ndarray
    blocks: np.ndarray
    n_blocks: int
    parts: list[tuple[np.ndarray, np.ndarray]]
    """Rows and labels of each block."""


def load_rf1(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised features and class codes of the training rows of fold 0."""
    described = json.loads((folder / "manifest.json").read_text())["sets"]
    targets = next(entry for entry in described if entry["name"] == "Rf1")["target_names"]
    frame = pd.read_parquet(folder / "Rf1.parquet")
    X = frame[[name for name in frame if name not in targets and not name.startswith("__")]].to_numpy(float)
    Y = np.column_stack([pd.factorize(frame[name], sort=True)[0] for name in targets])
    train = next(iter(KFold(10, shuffle=True, random_state=0).split(X)))[0]
    return StandardScaler().fit_transform(X[train]), Y[train]


def draw_sets(m: int) -> list[tuple[int, tuple[int, ...]]]:
    """Draw pairs of a child and its parents."""
    every = [
        (child, parents)
        for child in range(m)
        for size in range(4)
        for parents in itertools.combinations([v for v in range(m) if v != child], size)
    ]
    chosen = np.random.default_rng(0).choice(len(every), N_SETS, replace=False)
    return [every[i] for i in chosen]


def make_task(
    X: np.ndarray, Y: np.ndarray, child: int, parents: tuple[int, ...], sizes: tuple[int, int]
) -> Task:
    """Keep the configurations of one size, as blocks without gaps; the rows of all others are left out."""
    configuration = np.unique(Y[:, parents], axis=0, return_inverse=True)[1].reshape(-1)
    if not parents:
        configuration = np.zeros(len(Y), dtype=int)
    blocks, parts = np.full(len(Y), -1), []
    for g in range(configuration.max() + 1):
        rows = np.flatnonzero(configuration == g)
        if sizes[0] < len(rows) <= sizes[1] and len(np.unique(Y[rows, child])) > 1:
            blocks[rows] = len(parts)
            parts.append((X[rows], Y[rows, child]))
    return Task(Y[:, child].copy(), blocks, len(parts), parts)


def gradient_norm(X: np.ndarray, y: np.ndarray, model: LogisticRegression) -> float:
    """Largest entry of the gradient of the objective over n, where scikit-learn stopped."""
    residual = model.predict_proba(X) - (y[:, None] == model.classes_)
    residual = residual[:, -len(model.coef_) :]
    of_coef = residual.T @ X + model.coef_
    return float(max(np.abs(of_coef).max(), np.abs(residual.sum(axis=0)).max()) / len(X))


def log_likelihood(X: np.ndarray, y: np.ndarray, model: LogisticRegression) -> float:
    """Training log-likelihood."""
    proba = model.predict_proba(X)[np.arange(len(X)), np.searchsorted(model.classes_, y)]
    return float(np.log(proba).sum())


def rival_fits(task: Task) -> list[LogisticRegression]:
    """One call for each configuration."""
    return [LogisticRegression(C=1.0, max_iter=10_000).fit(X, y) for X, y in task.parts]


def compare(batch: LogisticBatch, tasks: list[Task]) -> tuple[float, ...]:
    """Return scikit-learn's seconds, ours, iterations and median norms of both, difference in likelihood."""
    totals, norms, gaps = np.zeros(4), [[], []], []
    for task in tasks:
        rivals = rival_fits(task)
        reached = np.array([gradient_norm(X, y, r) for (X, y), r in zip(task.parts, rivals, strict=True)])
        setting = {"n_classes": int(task.y.max()) + 1, "n_blocks": task.n_blocks, "tol": reached}
        ours = batch.fit(task.y, task.blocks, **setting)
        assert ours.converged.all()
        totals += [
            cpu(lambda task=task: rival_fits(task), REPEATS),
            cpu(lambda task=task, s=setting: batch.fit(task.y, task.blocks, **s), REPEATS),
            sum(int(r.n_iter_[0]) for r in rivals),
            ours.n_iter.sum(),
        ]
        norms[0] += list(reached)
        norms[1] += list(ours.gradient_norm)
        found = np.array([log_likelihood(X, y, r) for (X, y), r in zip(task.parts, rivals, strict=True)])
        gaps += list((ours.train_log_likelihood - found) / [len(y) for _, y in task.parts])
    return (*totals, *(float(np.median(values)) for values in norms), float(np.abs(gaps).max()))


def first_fit(cache: str) -> float:
    """CPU seconds of import and first fit in a new process."""
    run = [sys.executable, "-c", FIRST_FIT]
    return float(subprocess.check_output(run, env={**os.environ, "NUMBA_CACHE_DIR": cache}, text=True))


def wall(batch: LogisticBatch, tasks: list[Task], n_jobs: int) -> float:
    """Wall seconds of all fits."""
    start = time.perf_counter()
    for task in tasks:
        batch.fit(task.y, task.blocks, n_classes=int(task.y.max()) + 1, n_jobs=n_jobs)
    return time.perf_counter() - start


def main() -> None:
    """Print the tables."""
    if "TUPLET_DATA" not in os.environ:
        sys.exit("bench_logistic: set TUPLET_DATA to the folder with Rf1.parquet and manifest.json.")
    X, Y = load_rf1(Path(os.environ["TUPLET_DATA"]))
    batch, sets = LogisticBatch(X), draw_sets(Y.shape[1])
    print(f"Rf1, {len(X)} rows, {X.shape[1]} features, {N_SETS} parent sets; CPU ms per fit, one thread")
    print(f"preparing the features, once: {1e3 * cpu(lambda: LogisticBatch(X)):.1f} ms")
    columns = ["fits", "sklearn", "Tuplet", "ratio", "iterations", "", "gradient", "", "nll per row"]
    print(f"{'':16s}" + "".join(f"{name:>12s}" for name in columns))
    for name, sizes in GROUPS.items():
        tasks = [task for child, parents in sets if (task := make_task(X, Y, child, parents, sizes)).n_blocks]
        n = sum(task.n_blocks for task in tasks)
        theirs, ours, their_steps, our_steps, *rest = compare(batch, tasks)
        figures = [f"{n}", f"{1e3 * theirs / n:.2f}", f"{1e3 * ours / n:.3f}", f"{theirs / ours:.1f}x"]
        figures += [f"{their_steps / n:.0f}", f"{our_steps / n:.0f}", *(f"{value:.1e}" for value in rest)]
        print(f"{name:16s}" + "".join(f"{figure:>12s}" for figure in figures), flush=True)
    with tempfile.TemporaryDirectory() as cache:
        print(
            f"first fit in a new process, CPU s: cold {first_fit(cache):.1f}, cached {first_fit(cache):.2f}"
        )
    whole = [make_task(X, Y, child, parents, (0, 10**9)) for child, parents in sets]
    walls = [min(wall(batch, whole, n_jobs) for _ in range(3)) for n_jobs in (1, 2)]
    print(f"all configurations with tol=1e-4, wall s: one thread {walls[0]:.2f}, two threads {walls[1]:.2f}")


if __name__ == "__main__":
    main()

"""The folds of the rule benchmark and the beliefs of its base classifiers, made once and kept on disk.

    TUPLET_DATA=<folder> python benchmarks/rules_beliefs.py [names of sets]

A random forest for every label, as in the paper: trees whose nodes are split down to ten rows. Beliefs about
training rows are out of bag, those about validation and test rows come from the whole forest; a pseudo-row of
the training marginal keeps all of them away from zero (see `SmoothedClassifier`).
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold

from benchmark_sets import load_benchmark
from tuplet.space.features.encoding import FeatureEncoder
from tuplet.space.features.inputs import as_floats

CACHE = Path(__file__).parent / "cache" / "rules"
SETS = {"emotions": 10, "yeast": 10, "birds": 10, "medical": 5, "enron": 5, "mediamill_reduced": 5}
"""Sets and their number of folds; with ten folds a tenth validates, with five a fifth."""

N_TREES, FEWER_TREES = 200, {"mediamill_reduced": 60}
"""Trees of a forest; fewer for the set with 101 labels."""


@dataclass(frozen=True)
class Part:
    """Some rows: beliefs that every label is 1 (n, m), and the labels (n, m) themselves."""

    beliefs: np.ndarray
    labels: np.ndarray

    def __add__(self, other: Part) -> Part:
        return Part(np.vstack([self.beliefs, other.beliefs]), np.vstack([self.labels, other.labels]))


@dataclass(frozen=True)
class Fold:
    """Training, validation and test rows of one fold, with the names of the labels."""

    names: tuple[str, ...]
    train: Part
    validation: Part
    test: Part


def folds(name: str) -> list[Fold]:
    """Return the folds of a set, from disk where they have been made."""
    return [fold(name, i) for i in range(SETS[name])]


def fold(name: str, number: int) -> Fold:
    """Return one fold of a set."""
    path = CACHE / f"{name}_{number}.npz"
    if not path.exists():
        _make(name, number, path)
    with np.load(path, allow_pickle=False) as kept:
        parts = [
            Part(kept[f"{part}_beliefs"].astype(float), kept[f"{part}_labels"].astype(int))
            for part in ("train", "validation", "test")
        ]
        return Fold(tuple(map(str, kept["names"])), *parts)


def rows_of(n: int, n_folds: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the training, validation and test rows of a fold: the fold after the test fold validates."""
    tests = [test for _, test in KFold(n_folds, shuffle=True, random_state=0).split(np.zeros(n))]
    validation = tests[(number + 1) % n_folds]
    train = np.setdiff1d(np.arange(n), np.concatenate([tests[number], validation]))
    return train, validation, tests[number]


def _make(name: str, number: int, path: Path) -> None:
    data = load_benchmark(name)
    Y = data.Y.to_numpy().astype(int)
    rows = rows_of(len(Y), SETS[name], number)
    encoder = FeatureEncoder().learn(data.X.iloc[rows[0]])
    X = np.asarray(encoder.apply(data.X), dtype=np.float32) if not _plain(data.X) else as_floats(data.X)
    n_trees = FEWER_TREES.get(name, N_TREES)
    columns = [_beliefs(X, Y[:, j], rows, n_trees, 1000 * number + j) for j in range(Y.shape[1])]
    kept = {"names": np.array([str(c) for c in data.Y.columns])}
    for part, (which, key) in enumerate(zip(rows, ("train", "validation", "test"), strict=True)):
        kept[f"{key}_beliefs"] = np.stack([column[part] for column in columns], axis=1)
        kept[f"{key}_labels"] = Y[which].astype(np.int8)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **kept)


def _plain(X) -> bool:
    return all(dtype.kind in "fiub" for dtype in X.dtypes)


def _beliefs(
    X: np.ndarray, y: np.ndarray, rows: tuple[np.ndarray, ...], n_trees: int, seed: int
) -> list[np.ndarray]:
    """Return smoothed beliefs that a label is 1: out of bag for the first part, of all trees for others."""
    train, *others = rows
    n, count = len(train), int(y[train].sum())
    prior = (count + 1) / (n + 2)
    if count in (0, n):
        raw = [np.full(len(part), count / n) for part in rows]
    else:
        forest = RandomForestClassifier(n_trees, min_samples_split=10, oob_score=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
            forest.fit(X[train], y[train])
        out_of_bag = np.nan_to_num(forest.oob_decision_function_[:, 1], nan=prior)
        raw = [out_of_bag, *(forest.predict_proba(X[part])[:, 1] for part in others)]
    return [(n * part + prior) / (n + 1) for part in raw]


def main() -> None:
    """Make what is missing."""
    for name in sys.argv[1:] or SETS:
        for number in range(SETS[name]):
            start = time.process_time()
            fold(name, number)
            print(f"{name} {number}: {time.process_time() - start:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()

"""BOOMER on the beliefs of the rule benchmark; needs an environment of its own, apart from Tuplet's.

    python -m venv boomer_env
    boomer_env/bin/pip install mlrl-boomer
    boomer_env/bin/python benchmarks/rules_boomer.py [names of sets]

Reads what `rules_beliefs.py` made and writes predicted labels beside it, which `rules.py` picks up. As in the
paper, three settings are chosen by the joint accuracy of the validation rows: shrinkage, L2 penalty, and the
number of rules. The loss is the joint (non-decomposable) cross-entropy. Rules have heads for all labels where
there are at most 20, and for single labels beyond: a head for 53 labels takes minutes for 300 rules.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from mlrl.boosting import BoomerClassifier

CACHE = Path(__file__).parent / "cache" / "rules"
SETS = {"emotions": 10, "yeast": 10, "birds": 10, "medical": 5, "enron": 5, "mediamill_reduced": 5}
GRID = [(shrinkage, penalty) for shrinkage in (0.1, 0.3) for penalty in (0.25, 4.0)]
SIZES = (100, 300)
MANY = 20
KEPT: list[BoomerClassifier] = []  # version 0.12.3 may crash when a model is freed


def predict(fold: dict[str, np.ndarray], shrinkage: float, penalty: float, size: int) -> list[np.ndarray]:
    """Return the labels of validation and test rows."""
    labels = fold["train_labels"].astype(np.uint8)
    model = BoomerClassifier(
        random_state=1,
        loss="logistic-non-decomposable",
        head_type="complete" if labels.shape[1] <= MANY else "single",
        max_rules=size,
        shrinkage=shrinkage,
        l2_regularization_weight=penalty,
    )
    KEPT.append(model)
    model.fit(fold["train_beliefs"].astype(np.float32), labels)
    parts = (fold["validation_beliefs"], fold["test_beliefs"])
    return [np.asarray(model.predict(part.astype(np.float32))) for part in parts]


def run(name: str, number: int) -> None:
    """Make the predictions of one fold, unless they are there."""
    target = CACHE / f"boomer_{name}_{number}.npz"
    source = CACHE / f"{name}_{number}.npz"
    if target.exists() or not source.exists():
        return
    start = time.process_time()
    with np.load(source, allow_pickle=False) as kept:
        fold = dict(kept)
    best, answer, chosen = -1.0, None, ""
    for shrinkage, penalty in GRID:
        for size in SIZES:
            validation, test = predict(fold, shrinkage, penalty, size)
            score = (validation == fold["validation_labels"]).all(axis=1).mean()
            if score > best:
                best, answer, chosen = score, test, f"{size} rules, shrinkage {shrinkage}, L2 {penalty}"
    np.savez_compressed(target, labels=answer, chosen=np.array(chosen))
    print(f"{name} {number}: {chosen}, {time.process_time() - start:.0f} CPU s", flush=True)


def main() -> None:
    """Make what is missing."""
    for name in sys.argv[1:] or SETS:
        for number in range(SETS[name]):
            run(name, number)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

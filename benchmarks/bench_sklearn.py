"""The same work as scikit-learn: time of fits and predictions as ratios, ours / theirs.

Generated data of `scaling.py`: 20 features, 6 binary labels. CPU time of one thread, medians of alternating
calls, one each where a pair takes longer than 1.5 seconds. Lines with "same" have scikit-learn's standardised
logistic regression (C = 1) as the classifier on both sides. Lines with "default" have our default estimator,
which chooses C on held-out rows, against that classifier: the fit is more work. Forests have the same
settings. Predictions of chains are greedy, as scikit-learn's are. "Subset" is `predict(loss="subset")`
against our own `predict`.

    python benchmarks/bench_sklearn.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from scaling import Combinations, classifier_chain, data, extra_trees, logistic, multi_output
from tuplet import ChainClassifier, IndependentClassifier, PowersetClassifier, SharedForestClassifier

SIZES = (1_000, 10_000)
PREDICTED = 100_000


def greedy_chain(estimator: Any = None) -> Any:
    """Return a chain that predicts as scikit-learn's do."""
    return ChainClassifier(estimator, inference="greedy")


def forest() -> Any:
    """Return scikit-learn's forest with the settings of ours."""
    return extra_trees().set_params(random_state=0)


PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "independent, same / MultiOutputClassifier": (
        lambda: IndependentClassifier(logistic()),
        multi_output,
    ),
    "independent, default": (IndependentClassifier, multi_output),
    "greedy chain, same / ClassifierChain": (
        lambda: greedy_chain(logistic()),
        classifier_chain,
    ),
    "greedy chain, default": (greedy_chain, classifier_chain),
    "powerset, same / one of combinations": (
        lambda: PowersetClassifier(logistic()),
        Combinations,
    ),
    "powerset, default": (PowersetClassifier, Combinations),
    "shared forest / ExtraTreesClassifier": (lambda: SharedForestClassifier(random_state=0), forest),
}


def medians(*works: Callable[[], Any], seconds: float = 1.5) -> list[float]:
    """Return the median CPU seconds of each of some calls, which take turns for at least so many seconds."""
    taken: list[list[float]] = [[] for _ in works]
    start = time.process_time()
    while not taken[0] or (time.process_time() - start < seconds and len(taken[0]) < 500):
        for work, times in zip(works, taken, strict=True):
            before = time.process_time()
            work()
            times.append(time.process_time() - before)
    return [float(np.median(times)) for times in taken]


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> str:
    """Return the ratio of two calls, with their times in milliseconds."""
    own, other = medians(ours, theirs)
    shown = [f"{1e3 * each:,.0f}" if each > 0.1 else f"{1e3 * each:.3g}" for each in (own, other)]
    return f"{own / other:.2f} ({shown[0]} / {shown[1]} ms)"


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    rows, _ = data(PREDICTED, 20, 6, 2, seed=1)
    heads = ("fit", f"predict {PREDICTED:,} rows", "predict one row", "subset")
    print(f"{'':42s} {'rows':>8s} " + " ".join(f"{head:>28s}" for head in heads))
    for name, (make, make_other) in PAIRS.items():
        for n in SIZES:
            X, Y = data(n, 20, 6, 2)
            ours, theirs = make().fit(X[:200], Y[:200]), make_other()
            cells = [
                ratio(lambda: ours.fit(X, Y), lambda: theirs.fit(X, Y)),  # noqa: B023
                ratio(lambda: ours.predict(rows), lambda: theirs.predict(rows)),  # noqa: B023
                ratio(lambda: ours.predict(rows[:1]), lambda: theirs.predict(rows[:1])),  # noqa: B023
                ratio(lambda: ours.predict(rows, loss="subset"), lambda: ours.predict(rows)),  # noqa: B023
            ]
            print(f"{name:42s} {n:8,d} " + " ".join(f"{cell:>28s}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

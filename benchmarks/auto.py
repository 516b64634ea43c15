"""The model to start with, as it comes: one call, a time budget, no look at the test rows.

Five sets with ten minutes each on two cores: emotions, scene and yeast with their standard split, Rf1 and
Adult with the first of three shuffled folds (seed 0). The target values are shown for comparison, those
of the best peers, and the held-out log-likelihood that the model itself expected. Then all sets with a minute
each, beside a forest and ten averaged chains of scikit-learn, fitted to the same rows (standard split, or the
first of three shuffled folds); chains on the sets of rcv1 would take hours and are left out there. Then all
three folds of Rf1 and Adult, ten minutes each, beside a forest; then less time, down to a second. Last, what
the mixtures are made of.

The candidates and the rules of the race were meant to be chosen by held-out rows of the training parts. But
test figures were printed with every round, and there were many: ten minutes in four versions of the race, a
minute on all or some sets in five. What was changed between them was read off leaderboards and clocks (time
spent on models without weight; nothing but a logistic chain where there are a hundred labels, whence shared
forests; candidates dropped by a fold of 26 rows; clocks overrun), not fitted to test figures; they were seen,
though, so the tables flatter a little. The versions differ: of the ten minutes, the first folds of Rf1 and
Adult are from before the dropped got another chance and before unknown lengths were cut off earlier, all
others from after; a minute of medical, enron, mediamill and rcv1 is from after shared forests let go of the
counts in their nodes, that of the other sets from before. Without that last change a final fit was cut off on
rcv1subset5, leaving -10.826 and .066 there: log-likelihood won on 21 and exact match on 17 of 22 sets.

Every fit is kept in benchmarks/cache/auto; delete it to measure anew.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py auto
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from benchmark_sets import benchmark_names, load_benchmark
from tuplet import AutoJointClassifier
from tuplet.evaluate import default_peers
from tuplet.io import Dataset, load_penguins
from tuplet.metrics import exact_match
from tuplet.surface.comparisons import markdown_table

CACHE = Path(__file__).parent / "cache" / "auto"
FIVE = ("emotions", "scene", "yeast", "Rf1", "Adult")
WANTED = {
    "joint log-likelihood": (-2.18, -0.85, -3.64, -0.37, -2.52),
    "exact match": (0.37, 0.725, 0.27, 0.88, 0.34),
}
PEERS = {
    "joint log-likelihood": (-2.45, -1.39, -4.24, -0.39, -2.68),
    "exact match": (0.342, 0.667, 0.221, 0.878, 0.327),
}
"""The best peers, as measured when the project began."""

RIVALS = ("RandomForest", "10 averaged chains")
LONG, SHORT = 600.0, 60.0
FOLDED = ("Rf1", "Adult")
"""Those of the five that have no standard split: three shuffled folds."""

BUDGETED, BUDGETS = ("emotions", "yeast", "Adult"), (1.0, 5.0, 20.0, 60.0)


def n_folds(name: str) -> int:
    """Return how many splits of one of the five sets there are."""
    return 3 if name in FOLDED else 1


def split_of(data: Dataset, fold: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard split, or one of three shuffled folds."""
    if data.train is not None:
        return np.flatnonzero(data.train), np.flatnonzero(~data.train)
    return list(KFold(3, shuffle=True, random_state=0).split(data.X))[fold]


def model_of(name: str, budget: float) -> Any:
    """Return what is fitted under a name."""
    if name == "auto":
        return AutoJointClassifier(budget, random_state=0, n_jobs=2, progress=True)
    return default_peers(optional=False)[name]


def file_of(dataset: str, name: str, budget: float, fold: int = 0) -> Path:
    """Return where a run is kept."""
    which = f"-fold{fold}" if fold else ""
    return CACHE / f"{dataset}-{name.replace(' ', '-')}-{budget:g}{which}.json"


def wanted(dataset: str, budget: float, fold: int = 0, name: str = "auto") -> bool:
    """Whether to show a run: all of them, or with `--cached` those that are known already."""
    return "--cached" not in sys.argv or file_of(dataset, name, budget, fold).exists()


def measure(dataset: str, name: str, budget: float, fold: int = 0) -> dict[str, Any]:
    """Fit a model to training rows and predict the test rows, or read the result of an earlier run."""
    file = file_of(dataset, name, budget, fold)
    if file.exists():
        return json.loads(file.read_text())
    data = load_penguins() if dataset == "penguins" else load_benchmark(dataset)
    train, test = split_of(data, fold)
    start = time.monotonic()
    model = model_of(name, budget).fit(data.X.iloc[train], data.Y.iloc[train])
    fitted = time.monotonic()
    joint = model.predict_joint(data.X.iloc[test])
    truth = data.Y.iloc[test]
    decided = (
        model.predict(data.X.iloc[test], loss="subset")
        if name == "auto"
        else model.predict(data.X.iloc[test])
    )
    answer = {
        "joint log-likelihood": float(np.mean(joint.log_prob(truth))),
        "exact match": float(exact_match(truth, decided)),
        "fit seconds": fitted - start,
        "predict seconds": time.monotonic() - fitted,
    }
    if name == "auto":
        answer |= {
            "expected": model.log_likelihood_,
            "summary": model.summary_,
            "weights": model.weights_,
            "power": model.tempering_.power,
            "board": model.leaderboard_.to_dict("list"),
        }
    CACHE.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(answer, indent=1))
    print(
        f"{dataset} {name}: {answer['joint log-likelihood']:.4f} {answer['exact match']:.4f}", file=sys.stderr
    )
    return answer


def five() -> None:
    """Print ten minutes on each of five sets beside the target values."""
    runs = {name: measure(name, "auto", LONG) for name in FIVE}
    for score, wanted in WANTED.items():
        ours = pd.Series({name: run[score] for name, run in runs.items()})
        table = pd.DataFrame({"auto": ours, "asked for": wanted, "best peer": PEERS[score]}, index=FIVE)
        short = table.index[table["auto"] < table["asked for"]]
        print(f"**{score}**, ten minutes each\n")
        print(markdown_table(table, best="none", digits=3) + "\n")
        print(f"Short of what was asked for: {', '.join(short)}.\n" if len(short) else "All as asked for.\n")
    facts = pd.DataFrame(runs).T[["expected", "fit seconds", "predict seconds", "power"]].astype(float)
    print(
        "**as the model saw it**: held-out log-likelihood of the training rows, wall-clock seconds, power\n"
    )
    print(markdown_table(facts, best="none", digits=2) + "\n")


def everything() -> None:
    """Print a minute on every set beside a forest and ten averaged chains."""
    lines: dict[str, dict[str, float]] = {}
    won = dict.fromkeys(WANTED, 0)
    names = [name for name in ("penguins", *benchmark_names()) if wanted(name, SHORT)]
    for name in names:
        rivals = [each for each in RIVALS if not (name.startswith("rcv1") and "chains" in each)]
        rivals = [each for each in rivals if wanted(name, SHORT, name=each)]
        runs = {model: measure(name, model, SHORT) for model in ("auto", *rivals)}
        lines[name] = {
            f"{model}: {short}": runs[model][score] if model in runs else np.nan
            for short, score in (("LL", "joint log-likelihood"), ("EM", "exact match"))
            for model in ("auto", *RIVALS)
        }
        for score in won:
            won[score] += all(runs["auto"][score] >= runs[rival][score] for rival in rivals)
    print("**all sets**, a minute each: joint log-likelihood (LL) and exact match (EM)\n")
    print(markdown_table(pd.DataFrame(lines).T, best="none", digits=3) + "\n")
    print(
        ", ".join(f"{score} at least both rivals on {n} of {len(names)} sets" for score, n in won.items())
        + ".\n"
    )


def folds() -> None:
    """Print three folds of the sets without a standard split, beside a forest."""
    lines = {}
    for name in (name for name in FOLDED if wanted(name, LONG, n_folds(name) - 1)):
        ours = [measure(name, "auto", LONG, k) for k in range(n_folds(name))]
        forest = [measure(name, RIVALS[0], SHORT, k) for k in range(n_folds(name))]
        for score, best in PEERS.items():
            each = [run[score] for run in ours]
            lines[f"{name}, {score}"] = {
                **{f"auto, fold {k + 1}": value for k, value in enumerate(each)},
                "auto": np.mean(each),
                "RandomForest": np.mean([run[score] for run in forest]),
                "best peer at first": best[FIVE.index(name)],
            }
    print("**three folds**, ten minutes each\n")
    print(markdown_table(pd.DataFrame(lines).T, best="none", digits=3) + "\n")


def budgets() -> None:
    """Print what comes of less time, and whether the clock was kept."""
    lines = []
    for name in BUDGETED:
        for budget in (budget for budget in BUDGETS if wanted(name, budget)):
            run = measure(name, "auto", budget)
            lines.append(
                {
                    "data set": name,
                    "budget": f"{budget:g} s",
                    "taken": f"{run['fit seconds']:.1f} s",
                    "joint log-likelihood": f"{run['joint log-likelihood']:.3f}",
                    "exact match": f"{run['exact match']:.3f}",
                    "what there was time for": run["summary"],
                }
            )
    if not lines:
        return
    print("**less time**: wall-clock seconds of `fit`, and what the model says of itself\n")
    print("| " + " | ".join(lines[0]) + " |\n|" + "---|" * len(lines[0]))
    print("\n".join("| " + " | ".join(line.values()) + " |" for line in lines) + "\n")


def members() -> None:
    """Print what the mixtures of the five sets are made of."""
    weights = {name: measure(name, "auto", LONG)["weights"] for name in FIVE}
    table = pd.DataFrame(weights).fillna(0.0)
    table = table.loc[table.max(axis=1).sort_values(ascending=False).index]
    print("**weights in the mixtures**, ten minutes each\n")
    print(markdown_table(table, best="none", digits=2) + "\n")


def main() -> None:
    """Print the tables; a name on the command line measures the five or all sets only."""
    parts = {"five": five, "all": everything, "folds": folds, "budgets": budgets, "members": members}
    for name in [word for word in sys.argv[1:] if word != "--cached"] or parts:
        parts[name]()


if __name__ == "__main__":
    main()

"""`tuplet evaluate` and `tuplet compare`: how good models are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier

from tuplet.cli.pieces import label_frame
from tuplet.cli.tables import Columns
from tuplet.cli.terminal import out, remark, say, show
from tuplet.datasets import Dataset
from tuplet.evaluate import compare, default_peers
from tuplet.evaluate.work import CachedPrediction
from tuplet.exceptions import InputError
from tuplet.metrics import exact_match, get_scorer
from tuplet.models import IndependentClassifier
from tuplet.prediction import JointPrediction
from tuplet.space import ClassSpace
from tuplet.space.containers import listing

_SCORES = {
    "exact_match": "rows with every label right (subset decision)",
    "hamming_score": "labels that are right",
    "macro_f1": "F1 of the labels, averaged",
    "joint_log_likelihood": "log-probability of a row's labels together",
    "marginal_log_likelihood": "log-probability of a label",
    "top_3_accuracy": "rows whose labels are among the 3 likeliest",
}


def scores_of(answer: CachedPrediction, X: Any, Y: pd.DataFrame) -> dict[str, float]:
    """Return the scores of a prediction for rows whose labels are known."""
    return {name: float(get_scorer(name)(answer, X, Y)) for name in _SCORES}


def evaluate_model(model: Any, path: str, format: str | None, as_json: bool) -> None:
    """Print scores beside those of a model that knows the frequencies of the labels, and no more."""
    columns = Columns(model)
    frame = columns.whole(path, format)
    X, Y = columns.features_of(frame, path), columns.labels_of(frame, path)
    _warn_of_new_labels(model.space_, Y)
    answer = CachedPrediction(model, X)
    ours, each = scores_of(answer, X, Y), _by_variable(answer.prediction, Y)
    if as_json:
        said = {"rows": len(Y), "scores": ours, "accuracy": each}
        sys.stdout.write(json.dumps(said, indent=2) + "\n")
        return
    # Of the labels one by one: with many variables, frequencies of combinations would know the rows by heart.
    frequencies = IndependentClassifier(DummyClassifier(strategy="prior")).fit(X, Y)
    floor = scores_of(CachedPrediction(frequencies, X), X, Y)
    console = out()
    rows = [(name, about, f"{ours[name]:.3f}", f"{floor[name]:.3f}") for name, about in _SCORES.items()]
    where = "standard input" if path == "-" else path
    show(f"{where}: {len(Y):,} rows", ["score", "meaning", "model", "baseline"], rows, left=2)
    accuracies = [(name, f"{value:.3f}") for name, value in sorted(each.items(), key=lambda pair: pair[1])]
    console.print()
    show("Each class variable by itself, hardest first", ["variable", "accuracy"], accuracies)


def _warn_of_new_labels(space: ClassSpace, Y: pd.DataFrame) -> None:
    """Say which labels the model has never seen; whatever it answers, it is wrong."""
    for name, values in zip(space.names, space.categories, strict=True):
        new = set(Y[name].dropna().tolist()) - set(values.tolist())
        if new:
            remark(
                f"{name!r} has labels that the model does not know, {listing(sorted(new, key=str), 5)}; where"
                " they are true, it is wrong."
            )


def _by_variable(prediction: JointPrediction, Y: pd.DataFrame) -> dict[str, float]:
    decided = label_frame(prediction.space, prediction._decide("hamming", "evaluate"))
    known = {name: Y[name].notna().to_numpy() for name in Y}
    return {
        str(name): float(
            exact_match(
                Y.loc[known[name], [name]].reset_index(drop=True),
                decided.loc[known[name], [name]].reset_index(drop=True),
            )
        )
        for name in Y
        if known[name].any()
    }


def compare_models(
    models: dict[str, Any],
    data: Dataset,
    *,
    folds: int,
    peers: bool,
    n_jobs: int,
    cache: Path | None,
    time_limit: float | None,
    page: str | None,
    seed: int,
) -> None:
    """Cross-validate models on one table, and print and keep what came of it."""
    if peers:
        models = {**models, **default_peers(optional=False)}
    scores = ["exact_match", "hamming_score", "joint_log_likelihood", "marginal_log_likelihood"]
    result = compare(
        models,
        {data.name: data},
        cv=folds,
        scores=scores,
        n_jobs=n_jobs,
        cache=cache,
        time_limit=time_limit,
        random_state=seed,
    )
    interrupted = any(result.problems()["reason"] == "interrupted")
    if page is not None and not interrupted:  # half of the fits must not take the place of a whole page
        result.to_html(page)  # before anything is printed: whoever reads that may have gone
    means = pd.DataFrame({name: result.table(name).iloc[0] for name in scores})
    spread = {name: result.spread(name).iloc[0] for name in scores}
    means = means.sort_values("joint_log_likelihood", ascending=False)
    rows = [
        (model, *(_with_spread(means.loc[model, name], spread[name][model]) for name in scores))
        for model in means.index
    ]
    show(f"{data.name}: {folds} folds", ["model", *scores], rows)
    for problem in result.problems().itertuples():
        say(f"{problem.model}: {getattr(problem, 'reason', problem)}")
    if interrupted:
        raise KeyboardInterrupt
    if page is not None:
        say(f"Tables, tests and pictures: {page}")
    if means.isna().all(axis=None):
        raise InputError("no model could be compared; see the reasons above.")


def _with_spread(mean: float, std: float) -> str:
    if np.isnan(mean):
        return "-"
    return f"{mean:.3f}" + ("" if np.isnan(std) else f" ± {std:.3f}")

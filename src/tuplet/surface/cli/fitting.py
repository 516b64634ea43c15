"""`tuplet fit`, `tuplet evaluate` and `tuplet compare`: learn models and score them."""

from __future__ import annotations

import json
import sys
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import TimeSeriesSplit

from tuplet.core.exceptions import InputError
from tuplet.evaluate.compare import compare
from tuplet.evaluate.peers.catalogue import default_peers
from tuplet.evaluate.work import CachedPrediction
from tuplet.io.dataset import Dataset
from tuplet.io.saved_models.files import require_skops, save_model
from tuplet.metrics.decisions import exact_match
from tuplet.metrics.scorers import get_scorer
from tuplet.models.prior import training_frequencies
from tuplet.prediction.joint import JointPrediction
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.features.reading import number_styles
from tuplet.space.words import first_words
from tuplet.surface.cli.predicting import label_frame
from tuplet.surface.cli.tables import FileOptions, ModelColumns
from tuplet.surface.cli.terminal import print_hint, print_table, print_text, print_warning, result_console

_MEMBERS = 8
_COLUMNS = 40

_SCORES = {
    "exact_match": "rows with all labels correct (subset decision)",
    "hamming_score": "correct labels",
    "macro_f1": "F1 of the labels, averaged",
    "joint_log_likelihood": "joint log-probability of the labels of a row",
    "marginal_log_likelihood": "log-probability of a label",
    "top_3_accuracy": "rows whose labels are among the 3 most probable",
}

_ORDERED = {"neg_ranked_probability_score": "minus the error of cumulative probabilities"}
"""Scores that are added where class variables are ordered."""


def fit_file(data: Dataset, model: Any, target: str) -> None:
    """Fit a model, save it and print a summary."""
    n, d = data.X.shape
    names = first_words([str(name) for name in data.Y], ", ", 60)
    print_text(f"{data.name}: {n:,} rows, {d:,} feature{'s' * (d != 1)}, class variables {names}")
    require_skops()  # before the fit, which may take long
    _show_written_numbers(data.X, getattr(model, "columns", None))
    model.fit(data.X, data.Y, groups=data.groups)
    save_model(model, target)
    _describe(model)
    size = Path(target).expanduser().stat().st_size
    print_text(f"Saved {type(model).__name__} to {target} ({_size_text(size)}).")
    print_hint(f"Next: tuplet predict {target} NEW.csv --top-k 3 --out predictions.csv")


def _show_written_numbers(X: pd.DataFrame, columns: Any) -> None:
    """Print which columns of text are read as numbers, and how."""
    found = list(number_styles(X, columns).items())
    if found:
        title = "Text that is read as numbers (--column NAME=category keeps it)"
        print_table(title, ["column", "written with"], found[:_COLUMNS], left=2)
        if len(found) > _COLUMNS:
            print_text(f"... {len(found) - _COLUMNS:,} more")


def split_by_time(model: Any, name: str, groups: str | None) -> None:
    """Have a model hold out rows that come after those it is fitted to."""
    _require_one_of(groups)
    cv = model.get_params(deep=False).get("cv")
    if cv is None:
        raise InputError(
            f"--time: the model {name!r} has no parameter cv; use --model auto, or judge models by"
            " tuplet compare --time."
        )
    model.set_params(cv=TimeSeriesSplit(cv if isinstance(cv, int) else 5))


def _require_one_of(groups: Any) -> None:
    if groups is not None:
        raise InputError("--time and --groups cannot be used together; choose how rows are held out.")


def _describe(model: Any) -> None:
    if hasattr(model, "leaderboard_"):
        board = model.leaderboard_
        used = board[board["weight"] > 0].sort_values("weight", ascending=False).head(_MEMBERS)
        rows = [
            (name, f"{weight:.3f}", f"{score:.3f}")
            for name, weight, score in zip(used["model"], used["weight"], used["log_likelihood"], strict=True)
        ]
        print_text(model.summary_)
        if len(rows) > 1:
            print_table("", ["model", "weight", "held-out log-likelihood"], rows)
    likelihood = getattr(model, "log_likelihood_", None)
    if isinstance(likelihood, float) and not isnan(likelihood):
        error = getattr(model, "log_likelihood_error_", 0.0)
        print_text(f"Held-out joint log-likelihood: {likelihood:.3f} per row (standard error {error:.3f}).")
    rules = getattr(model, "rules_", None)
    if rules:
        print_text(f"{len(rules)} rule{'s' * (len(rules) != 1)}:\n{rules.to_text()}")


def _size_text(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB" if n_bytes >= 999_500 else f"{n_bytes / 1e3:,.0f} kB"


# -- scores ------------------------------------------------------------------------------------------------


def _scores_of(answer: CachedPrediction, X: Any, Y: pd.DataFrame) -> dict[str, float]:
    """Return the scores of a prediction on labelled rows."""
    names = _SCORES | _ORDERED if any(answer.prediction.space.ordered) else _SCORES
    return {name: float(get_scorer(name)(answer, X, Y)) for name in names}


def evaluate_model(model: Any, path: str, options: FileOptions, as_json: bool) -> None:
    """Print scores, with those of the label frequencies of the training rows as a baseline."""
    columns = ModelColumns(model)
    frame = columns.whole(path, options)
    X, Y = columns.features_of(frame, path), columns.labels_of(frame, path)
    _warn_of_new_labels(model.space_, Y)
    answer = CachedPrediction(model, X)
    ours, each = _scores_of(answer, X, Y), _by_variable(answer.prediction, Y)
    if as_json:
        answers = {"rows": len(Y), "scores": ours, "accuracy": each}
        sys.stdout.write(json.dumps(answers, indent=2) + "\n")
        return
    frequencies = training_frequencies(model)
    floor = {} if frequencies is None else _scores_of(CachedPrediction(frequencies, X), X, Y)
    console = result_console()
    about = _SCORES | _ORDERED
    beside = {name: f"{floor[name]:.3f}" if name in floor else "unknown" for name in ours}
    rows = [(name, about[name], f"{ours[name]:.3f}", beside[name]) for name in ours]
    where = "standard input" if path == "-" else path
    print_table(f"{where}: {len(Y):,} rows", ["score", "meaning", "model", "baseline"], rows, left=2)
    accuracies = [(name, f"{value:.3f}") for name, value in sorted(each.items(), key=lambda pair: pair[1])]
    console.print()
    print_table("Single class variables, lowest accuracy first", ["variable", "accuracy"], accuracies)


def _warn_of_new_labels(space: ClassSpace, Y: pd.DataFrame) -> None:
    """Warn about labels that do not occur in the training data: rows with them are always wrong."""
    for name, values in zip(space.names, space.categories, strict=True):
        new = set(Y[name].dropna().tolist()) - set(values.tolist())
        if new:
            print_warning(
                f"{name!r} has labels that are unknown to the model, {listing(sorted(new, key=str), 5)}; rows"
                " with them count as wrong."
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
    by_time: bool,
    peers: bool,
    n_jobs: int,
    cache: Path | None,
    time_limit: float | None,
    page: str | None,
    seed: int,
) -> None:
    """Cross-validate models on one table, print the scores and write the page.

    With `by_time`, the rows are in the order of time, and each fold is tested on rows after its own.
    """
    if by_time:
        _require_one_of(data.groups)
    if peers:
        models = {**models, **default_peers(optional=False)}
    scores = ["exact_match", "hamming_score", "joint_log_likelihood", "marginal_log_likelihood"]
    result = compare(
        models,
        {data.name: data},
        cv=TimeSeriesSplit(folds) if by_time else folds,
        scores=scores,
        n_jobs=n_jobs,
        cache=cache,
        time_limit=time_limit,
        random_state=seed,
    )
    interrupted = any(result.problems()["reason"] == "interrupted")
    if page is not None and not interrupted:  # an incomplete page must not replace a complete one
        result.to_html(page)  # before anything is printed, since standard output may be closed
    means = pd.DataFrame({name: result.table(name).iloc[0] for name in scores})
    spread = {name: result.spread(name).iloc[0] for name in scores}
    means = means.sort_values("joint_log_likelihood", ascending=False)
    rows = [
        (model, *(_with_spread(means.loc[model, name], spread[name][model]) for name in scores))
        for model in means.index
    ]
    print_table(f"{data.name}: {folds} folds", ["model", *scores], rows)
    for problem in result.problems().itertuples():
        print_text(f"{problem.model}: {getattr(problem, 'reason', problem)}")
    if interrupted:
        raise KeyboardInterrupt
    if page is not None:
        print_text(f"Tables, tests and plots written to {page}.")
    if means.isna().all(axis=None):
        raise InputError("no model could be compared; see the reasons above.")


def _with_spread(mean: float, std: float) -> str:
    if np.isnan(mean):
        return "-"
    return f"{mean:.3f}" + ("" if np.isnan(std) else f" ± {std:.3f}")

"""The main job on a small real data set: compare models, look at joints, add knowledge, decide."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.model_selection import KFold

from tuplet.datasets import load_penguins
from tuplet.losses import Abstain, CostMatrix, Hamming, Loss
from tuplet.metrics import exact_match, hamming_loss, joint_log_loss
from tuplet.models import (
    ChainClassifier,
    IndependentClassifier,
    JointClassifier,
    PowersetClassifier,
    PriorClassifier,
)
from tuplet.prediction import JointPrediction


def run_demo(console: Console, n_folds: int, seed: int) -> None:
    """Print the five parts of the demonstration."""
    X, Y = load_penguins(return_X_y=True)
    _introduce(console, X, Y)
    best = _compare(console, X, Y, n_folds, seed)
    train, test = next(KFold(n_folds, shuffle=True, random_state=seed).split(X))
    prediction = best.fit(X.iloc[train], Y.iloc[train]).predict_joint(X.iloc[test])
    rows = _interesting(prediction)
    _show_combinations(console, prediction, Y.iloc[test], rows)
    _show_knowledge(console, prediction, rows[0])
    _show_decisions(console, prediction, Y.iloc[test])


def _models(seed: int) -> dict[str, JointClassifier]:
    return {
        "Prior (most frequent combinations)": PriorClassifier(),
        "Independent": IndependentClassifier(),
        "Powerset": PowersetClassifier(),
        "Chain": ChainClassifier(),
        "Ensemble of 6 chains": ChainClassifier(n_chains=6, random_state=seed),
    }


# -- 1. data ------------------------------------------------------------------------------------------------


def _introduce(console: Console, X: pd.DataFrame, Y: pd.DataFrame) -> None:
    console.rule("[bold]Palmer penguins[/bold]", align="left")
    console.print(
        f"{len(X)} penguins. From {_listing(X.columns)} we predict {_listing(Y.columns)}"
        " [bold]together[/bold]."
    )
    missing = int(X.isna().any(axis=1).sum()), int(Y.isna().any(axis=1).sum())
    console.print(
        f"{missing[0]} rows lack measurements and {missing[1]} lack a label; all of them are used.\n"
    )


def _listing(names: pd.Index) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


# -- 2. comparison ------------------------------------------------------------------------------------------


@dataclass
class _Scores:
    exact: float
    hamming: float
    log_likelihood: float
    seconds: float


def _compare(console: Console, X: pd.DataFrame, Y: pd.DataFrame, n_folds: int, seed: int) -> JointClassifier:
    """Cross-validate the models, print the table, return the one with the best log-likelihood."""
    table = Table(
        title=f"1. Models, {n_folds}-fold cross-validation", title_justify="left", title_style="bold"
    )
    for heading in ("model", "exact match", "Hamming loss", "joint log-likelihood", "CPU s"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    models = _models(seed)
    steps = track(models.items(), "comparing models", console=console, transient=True)
    scores = {name: _cross_validate(model, X, Y, n_folds, seed) for name, model in steps}
    best = max(scores, key=lambda name: scores[name].log_likelihood)
    for name, row in scores.items():
        style = "bold" if name == best else None
        cells = f"{row.exact:.3f}", f"{row.hamming:.3f}", f"{row.log_likelihood:.3f}", f"{row.seconds:.1f}"
        table.add_row(name, *cells, style=style)
    console.print(table)
    console.print(
        "Log-likelihood: mean log p(all labels of a row), higher is better. It rewards knowing how labels go"
        f" together.\nBelow: [bold]{best}[/bold], fitted without the first fold.\n"
    )
    return models[best]


def _cross_validate(
    model: JointClassifier, X: pd.DataFrame, Y: pd.DataFrame, n_folds: int, seed: int
) -> _Scores:
    start = time.process_time()
    folds = list(_folds(model, X, Y, n_folds, seed))
    seconds = time.process_time() - start
    means = np.mean(folds, axis=0)
    return _Scores(float(means[0]), float(means[1]), float(means[2]), seconds)


def _folds(
    model: JointClassifier, X: pd.DataFrame, Y: pd.DataFrame, n_folds: int, seed: int
) -> Iterator[tuple[float, float, float]]:
    for train, test in KFold(n_folds, shuffle=True, random_state=seed).split(X):
        prediction = model.fit(X.iloc[train], Y.iloc[train]).predict_joint(X.iloc[test])
        truth = Y.iloc[test]
        yield (
            exact_match(truth, prediction.decide("subset")),
            hamming_loss(truth, prediction.decide("hamming")),
            -joint_log_loss(truth, prediction),
        )


# -- 3. joints ----------------------------------------------------------------------------------------------


def _interesting(prediction: JointPrediction, n: int = 3) -> list[int]:
    """Rows of which the model is neither sure nor clueless, so that there is something to see."""
    order = np.argsort(-prediction.entropy(), kind="stable")
    return [int(row) for row in order[len(order) // 20 :: max(1, len(order) // 4)][:n]]


def _show_combinations(
    console: Console, prediction: JointPrediction, truth: pd.DataFrame, rows: list[int]
) -> None:
    table = Table(
        title="2. The five most probable label combinations of three penguins",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("penguin", justify="right")
    for name in prediction.space.names:
        table.add_column(name)
    table.add_column("probability", justify="right")
    table.add_column("")
    for row in rows:
        real = truth.iloc[row]
        for rank, line in enumerate(prediction[row].top_k(5).itertuples(index=False)):
            labels = [getattr(line, name) for name in prediction.space.names]
            right = all(pd.isna(a) or a == b for a, b in zip(real, labels, strict=True))
            table.add_row(
                str(line.row) if rank == 0 else "",
                *labels,
                *_bar(line.probability, right),
                style="green" if right else None,
            )
        table.add_section()
    console.print(table)
    console.print(
        "[green]✓[/green] is what the penguin really was; a label that nobody wrote down fits anything.\n"
    )


def _bar(probability: float, right: bool) -> tuple[str, str]:
    return f"{probability:.3f}", "█" * round(24 * probability) + " ✓" * right


# -- 4. knowledge -------------------------------------------------------------------------------------------


def _show_knowledge(console: Console, prediction: JointPrediction, row: int) -> None:
    one = prediction[row]
    name, labels = _unsure_variable(one)
    columns = [("nothing", one)] + [(f"{name} = {label}", one.given({name: label})) for label in labels]
    table = Table(
        title=f"3. Penguin {one.index[0]}: what changes when {name} becomes known",  # type: ignore[index]
        title_justify="left",
        title_style="bold",
    )
    table.add_column("probability of")
    for heading, _ in columns:
        table.add_column(f"known: {heading}", justify="right")
    for variable in one.space.names:
        tables = [known.marginals()[variable].iloc[0] for _, known in columns]
        for label in tables[0].index:
            table.add_row(f"{variable} = {label}", *(f"{values[label]:.3f}" for values in tables))
        table.add_section()
    console.print(table)
    console.print("One label tells about the others: that is what multiplying marginals loses.\n")


def _unsure_variable(one: JointPrediction) -> tuple[str, list[object]]:
    """Return the variable whose label is least certain, with its two most probable labels."""
    marginals = {name: table.iloc[0].sort_values(ascending=False) for name, table in one.marginals().items()}
    name = min(marginals, key=lambda key: float(marginals[key].iloc[0]))
    return name, list(marginals[name].index[:2])


# -- 5. decisions -------------------------------------------------------------------------------------------


def _losses(prediction: JointPrediction) -> dict[str, str | Loss]:
    careful = [np.ones((k, k)) - np.eye(k) for k in prediction.space.cards]
    gentoo = list(prediction.space.categories[0]).index("Gentoo")
    careful[0][gentoo] *= 20  # a Gentoo that is taken for something else costs twenty times as much
    return {
        "hamming: each label by itself": "hamming",
        "subset: all labels at once": "subset",
        "missing a Gentoo costs 20": CostMatrix(careful),
        "may abstain for a cost of 0.2": Abstain(Hamming(), 0.2),
    }


def _show_decisions(console: Console, prediction: JointPrediction, truth: pd.DataFrame) -> None:
    answers = {name: prediction.decide(loss).fillna("?") for name, loss in _losses(prediction).items()}
    table = Table(
        title="4. One joint, four losses, different answers", title_justify="left", title_style="bold"
    )
    for heading in ("penguin", "loss", *prediction.space.names):
        table.add_column(heading, justify="right" if heading == "penguin" else "left")
    for row in _disagreements(list(answers.values())):
        for place, (name, frame) in enumerate(answers.items()):
            table.add_row(str(frame.index[row]) if place == 0 else "", name, *frame.iloc[row])
        table.add_row("", "really", *truth.iloc[row].fillna("?"), style="green")
        table.add_section()
    console.print(table)
    console.print("? is an abstention, or a label that nobody wrote down.")


def _disagreements(answers: list[pd.DataFrame]) -> list[int]:
    """For every loss but the first, the first row in which it decides differently from the first."""
    rows: list[int] = []
    for frame in answers[1:]:
        different = np.flatnonzero((frame.to_numpy() != answers[0].to_numpy()).any(axis=1))
        rows += [int(row) for row in different if row not in rows][:1]
    return rows

"""`tuplet demo`: compare models on a small real data set, then query, condition and decide."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import KFold

from tuplet.evaluate.compare import compare
from tuplet.io.loading import load_penguins
from tuplet.losses.abstain import Abstain
from tuplet.losses.base import Loss
from tuplet.losses.costs import CostMatrix
from tuplet.losses.decomposable import Hamming
from tuplet.models.base import JointClassifier
from tuplet.models.chain import ChainClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.models.powerset import PowersetClassifier
from tuplet.models.prior import PriorClassifier
from tuplet.prediction.joint import JointPrediction

_SCORES = ("exact_match", "hamming_score", "joint_log_likelihood")


def run_demo(console: Console, n_folds: int, seed: int) -> None:
    """Print the five parts of the demonstration."""
    X, Y = load_penguins(return_X_y=True)
    _introduce(console, X, Y)
    folds = KFold(n_folds, shuffle=True, random_state=seed)
    best = _compare(console, X, Y, folds)
    train, test = next(folds.split(X))
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


def _table(title: str, headings: Sequence[str], right: Sequence[str]) -> Table:
    """Return an empty table; columns with these headings are aligned to the right."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    return table


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


def _compare(console: Console, X: pd.DataFrame, Y: pd.DataFrame, folds: KFold) -> JointClassifier:
    """Cross-validate the models, print the table, return the one with the best log-likelihood."""
    models = _models(folds.random_state)
    result = compare(models, {"penguins": (X, Y)}, cv=folds, scores=_SCORES, calibration=False, isolate=False)
    exact, hamming, likelihood = (result.table(score).loc["penguins"] for score in _SCORES)
    seconds = result.runs.groupby("model")[["fit_cpu_seconds", "predict_cpu_seconds"]].sum().sum(axis=1)
    best = str(likelihood.idxmax())
    title = f"1. Models, {folds.n_splits}-fold cross-validation"
    numbers = ("exact match", "Hamming loss", "joint log-likelihood", "CPU s")
    table = _table(title, ["model", *numbers], numbers)
    for name in models:
        cells = f"{exact[name]:.3f}", f"{1 - hamming[name]:.3f}", f"{likelihood[name]:.3f}"
        table.add_row(name, *cells, f"{seconds[name]:.1f}", style="bold" if name == best else None)
    console.print(table)
    console.print(
        "Log-likelihood: mean log p(all labels of a row), higher is better. It rewards a good model of the"
        f" dependences between labels.\nBelow: [bold]{best}[/bold], fitted without the first fold.\n"
    )
    return models[best]


# -- 3. joints ----------------------------------------------------------------------------------------------


def _interesting(prediction: JointPrediction, n: int = 3) -> list[int]:
    """Return rows of different uncertainty, without the most uncertain ones."""
    order = np.argsort(-prediction.entropy(), kind="stable")
    return [int(row) for row in order[len(order) // 20 :: max(1, len(order) // 4)][:n]]


def _show_combinations(
    console: Console, prediction: JointPrediction, truth: pd.DataFrame, rows: list[int]
) -> None:
    title = "2. The five most probable label combinations of three penguins"
    headings = ["penguin", *prediction.space.names, "probability", ""]
    table = _table(title, headings, ("penguin", "probability"))
    for row in rows:
        real = truth.iloc[row]
        for rank, line in enumerate(prediction[row].top_k(5).itertuples(index=False)):
            labels = [getattr(line, name) for name in prediction.space.names]
            correct = all(pd.isna(a) or a == b for a, b in zip(real, labels, strict=True))
            table.add_row(
                str(line.row) if rank == 0 else "",
                *labels,
                *_bar(line.probability, correct),
                style="green" if correct else None,
            )
        table.add_section()
    console.print(table)
    console.print("[green]✓[/green] marks the true combination; a label that was not recorded matches any.\n")


def _bar(probability: float, correct: bool) -> tuple[str, str]:
    return f"{probability:.3f}", "█" * round(24 * probability) + " ✓" * correct


# -- 4. knowledge -------------------------------------------------------------------------------------------


def _show_knowledge(console: Console, prediction: JointPrediction, row: int) -> None:
    one = prediction[row]
    name, labels = _unsure_variable(one)
    columns = [("nothing", one)] + [(f"{name} = {label}", one.given({name: label})) for label in labels]
    title = f"3. Penguin {one.index[0]}: what changes when {name} becomes known"  # type: ignore[index]
    headings = [f"known: {heading}" for heading, _ in columns]
    table = _table(title, ["probability of", *headings], headings)
    for variable in one.space.names:
        tables = [known.marginals()[variable].iloc[0] for _, known in columns]
        for label in tables[0].index:
            table.add_row(f"{variable} = {label}", *(f"{values[label]:.3f}" for values in tables))
        table.add_section()
    console.print(table)
    console.print(
        "A known label changes the probabilities of the others, unlike in a product of marginals.\n"
    )


def _unsure_variable(one: JointPrediction) -> tuple[str, list[object]]:
    """Return the variable whose label is least certain, with its two most probable labels."""
    marginals = {name: table.iloc[0].sort_values(ascending=False) for name, table in one.marginals().items()}
    name = min(marginals, key=lambda key: float(marginals[key].iloc[0]))
    return name, list(marginals[name].index[:2])


# -- 5. decisions -------------------------------------------------------------------------------------------


def _losses(prediction: JointPrediction) -> dict[str, str | Loss]:
    careful = [np.ones((k, k)) - np.eye(k) for k in prediction.space.cards]
    gentoo = list(prediction.space.categories[0]).index("Gentoo")
    careful[0][gentoo] *= 20  # mistaking a Gentoo for another species costs twenty times as much
    return {
        "hamming: each label separately": "hamming",
        "subset: all labels together": "subset",
        "missing a Gentoo costs 20": CostMatrix(careful),
        "may abstain for a cost of 0.2": Abstain(Hamming(), 0.2),
    }


def _show_decisions(console: Console, prediction: JointPrediction, truth: pd.DataFrame) -> None:
    answers = {name: prediction.decide(loss).fillna("?") for name, loss in _losses(prediction).items()}
    headings = ["penguin", "loss", *prediction.space.names]
    table = _table("4. One joint, four losses, different answers", headings, ("penguin",))
    for row in _disagreements(list(answers.values())):
        for place, (name, frame) in enumerate(answers.items()):
            table.add_row(str(frame.index[row]) if place == 0 else "", name, *frame.iloc[row])
        table.add_row("", "true labels", *truth.iloc[row].fillna("?"), style="green")
        table.add_section()
    console.print(table)
    console.print("? is an abstention, or a label that was not recorded.")


def _disagreements(answers: list[pd.DataFrame]) -> list[int]:
    """Return, for every loss but the first, the first row in which its decision differs."""
    rows: list[int] = []
    for frame in answers[1:]:
        different = np.flatnonzero((frame.to_numpy() != answers[0].to_numpy()).any(axis=1))
        rows += [int(row) for row in different if row not in rows][:1]
    return rows

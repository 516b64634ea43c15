"""Classes and features in one Bayesian network: bounded learning beside the methods it was compared with.

The paper's Tables 1 to 4 by our own run, with its recipe: rows sampled from three published networks, a third
of the variables drawn as class variables, and as features the union of the best of each class by information
gain, chosen on the training rows alone. The paper has one draw of class variables and five folds; here are
four draws of ANDES and three of MUNIN1 with five folds, and two of DIABETES with the first three of five
folds, all of 5,000 rows, which keeps the study below twenty minutes of one core. Rows are independent,
so folds are plain.

CB-OBS has at most 15 classes in a component, as in the paper, and is shown without that bound, too; orders
are searched by insertions. The others: trees and polytrees over classes and over features, greedy parents by
the K2 metric (pure filter), and a class tree with bridges up to width 5 (small-tw). tau is the min-fill width
of the whole moral graph, tau_p of the graph of classes that is left when all features are known, size the
cells of the tables that eliminating it makes. A model that needs a table of more than 2^17 cells for one row
is not asked for predictions here, which would take minutes a fold (the library's own limit is 2^22). The
paper decides by the most probable combination (MPE); mean accuracy is better served by the most probable
label of each class, which is what the tests look at. Fits include the filter.

    TUPLET_DATA=folder/of/networks python benchmarks/run.py mbc
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from tuplet import GenerativeBayesNetClassifier, InformationGainFilter, PriorClassifier
from tuplet.evaluate import Comparison, compare
from tuplet.evaluate.statistics import all_pairs, friedman_aligned, versus_control, wilcoxon
from tuplet.io import sample_mdc_problem
from tuplet.joint.inference import Exact
from tuplet.metrics import SCORERS, DecisionScorer, hamming_score
from tuplet.models.generative.networks import CountScorer
from tuplet.surface.comparisons import markdown_table

HERE = Path(__file__).parent
ROWS, FOLDS = 5000, 5


class Source(NamedTuple):
    """A network, how problems are drawn from it, and its entries in the paper's Table 1."""

    n_draws: int
    n_folds: int
    per_class: int
    published: str


SOURCES = {
    "andes": Source(4, 5, 2, "74, 82"),
    "munin1": Source(3, 5, 7, "62, 86"),
    "diabetes": Source(2, 3, 8, "138, 284"),
}
BOUNDED, FREE, SMALL, PRIOR = "CB-OBS", "CB-OBS no bound", "small-tw", "majority"
LEARNERS = {
    BOUNDED: {},
    FREE: {"max_component": None},
    "tree-tree": {"structure": "tree-tree"},
    "polytree-polytree": {"structure": "polytree-polytree"},
    "pure filter": {"structure": "pure-filter"},
    SMALL: {"structure": "small-tw"},
}
PUBLISHED = {
    "andes": {
        BOUNDED: "7.8 / 5.2 / 679 / .778",
        "tree-tree": "18.4 / 7.8 / 3710 / .779",
        "polytree-polytree": "21.8 / 8.2 / 5221 / .777",
        "pure filter": "25.2 / 9.2 / 8756 / .776",
        SMALL: "5.0 / 5.0 / 1382 / .764",
    },
    "munin1": {
        BOUNDED: "5.8 / 3.6 / 391 / .757",
        "tree-tree": "14.2 / 7.6 / 2604 / .758",
        "polytree-polytree": "19.8 / 9.0 / 6071 / .756",
        "pure filter": "21.2 / 8.6 / 5861 / .756",
        SMALL: "5.0 / 5.0 / 1012 / .750",
    },
    "diabetes": {
        BOUNDED: "72.2 / 5.4 / 2200 / .934",
        "tree-tree": "66.6 / 37.4 / 5e12 / —",
        "polytree-polytree": "100.6 / 54.4 / 3e18 / —",
        "pure filter": "93.0 / 55.8 / 1e18 / —",
        SMALL: "5.0 / 5.0 / 2802 / .931",
    },
}
"""The paper's Tables 2 to 4: tau / tau_p / size / mean accuracy."""


# -- the study ---------------------------------------------------------------------------------------------


class Measured(BaseEstimator):
    """A model whose graph can be measured also where it is too wide to predict with.

    Parameters
    ----------
    model : GenerativeBayesNetClassifier
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, Y: Any) -> Measured:
        """Fit the model."""
        self.model_ = clone(self.model).fit(X, Y)
        return self

    def predict_joint(self, X: Any) -> Any:
        """Return the model's joint, which computes nothing before it is queried."""
        return self.model_.predict_joint(X)

    def predict(self, X: Any, *, loss: Any = "hamming") -> Any:
        """Return the model's decision."""
        return self.model_.predict(X, loss=loss)

    def n_floored(self, Y: Any, prediction: Any) -> float:
        """Return nan: no likelihoods are looked at here, and those of wide graphs cannot be had."""
        return math.nan


def full_width(model: Any, X: Any, Y: Any) -> float:
    """Return tau, the width of the whole graph."""
    return model.model_.graph_.full_width


def pruned_width(model: Any, X: Any, Y: Any) -> float:
    """Return tau_p, the width of what prediction works on."""
    return model.model_.width_


def induced_size(model: Any, X: Any, Y: Any) -> float:
    """Return the cells of all tables of a prediction."""
    return model.model_.induced_size_


def n_features(model: Any, X: Any, Y: Any) -> float:
    """Return how many features the filter has kept."""
    return model.model_.n_features_in_


SETTINGS = {
    "scores": {
        "accuracy": SCORERS["hamming_score"],
        "accuracy_mpe": DecisionScorer(hamming_score, "subset"),
        "tau": full_width,
        "tau_p": pruned_width,
        "size": induced_size,
        "features": n_features,
    },
    "calibration": False,
    "n_jobs": 1,
    "cache": HERE / "cache" / "mbc",
    "time_limit": 900,
    "progress": True,
}


def models(per_class: int) -> dict[str, Any]:
    """Return the learners behind the filter, and the majority baseline."""
    engine = Exact(max_table=2**17)
    learners = {
        name: make_pipeline(
            InformationGainFilter(per_class),
            Measured(GenerativeBayesNetClassifier(**setting, engine=engine)),
        )
        for name, setting in LEARNERS.items()
    }
    return learners | {PRIOR: PriorClassifier("marginals")}


def network_file(name: str) -> Path:
    """Return where a network lies."""
    return Path(os.environ["TUPLET_DATA"]) / f"{name}.bif.gz"


def study(name: str) -> Comparison:
    """Run all draws of a network, or what is left of them."""
    source, parts = SOURCES[name], []
    for draw in range(source.n_draws):
        X, Y = sample_mdc_problem(network_file(name), ROWS, random_state=draw)
        folds = list(KFold(FOLDS).split(X))[: source.n_folds]
        sets = {f"{name} {draw + 1}": (X, Y)}
        parts.append(compare(models(source.per_class), sets, cv=folds, **SETTINGS))
    runs = pd.concat([part.runs for part in parts], ignore_index=True)
    return Comparison(runs, tuple(SETTINGS["scores"]), models=[*LEARNERS, PRIOR])


# -- the tables --------------------------------------------------------------------------------------------


def print_table(heads: list[str], lines: list[list[str]]) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def show_problems(results: dict[str, Comparison]) -> None:
    """Print Table 1: what was drawn."""
    print("**Table 1: the problems** (means of the draws)\n")
    lines = []
    for name, result in results.items():
        source = SOURCES[name]
        first = sample_mdc_problem(network_file(name), 1, random_state=0)[1]
        features = result.table("features")[BOUNDED].mean()
        majority = result.table("accuracy")[PRIOR]
        lines.append([name.upper(), str(first.shape[1]), f"{features:.1f}", source.published,
                      f"{majority.mean():.3f} ({majority.min():.3f} to {majority.max():.3f})",
                      f"{source.n_draws} x {source.n_folds}"])  # fmt: skip
    heads = ["network", "classes", "features", "paper: classes, features", "majority accuracy"]
    print_table([*heads, "draws x folds"], lines)


def show_methods(number: int, name: str, result: Comparison) -> None:
    """Print one of Tables 2 to 4: means over draws, ± the mean standard deviation over folds."""
    print(f"**Table {number}: {name.upper()}** (means of the draws ± standard deviation over folds)\n")
    majority = result.table("accuracy")[PRIOR].mean()
    lines = []
    for model in LEARNERS:
        cells = [cell(result, score, model, digits)
                 for score, digits in (("tau", 1), ("tau_p", 1), ("size", 0), ("accuracy_mpe", 3),
                                       ("accuracy", 3))]  # fmt: skip
        seconds = result.table("fit_cpu_seconds")[model].mean()
        published = PUBLISHED[name].get(model, "")
        lines.append([model, *cells, f"{majority:.3f}", f"{seconds:.1f}", published])
    heads = ["method", "tau", "tau_p", "size", "accuracy, MPE", "accuracy, labels", "majority", "fit, CPU s"]
    print_table([*heads, "paper: tau / tau_p / size / accuracy"], lines)
    show_gaps(result)
    if SOURCES[name].n_draws > 1:
        table = result.table("accuracy")
        print(f"Accuracy of the most probable labels, draw by draw:\n\n{markdown_table(table, digits=4)}\n")


def cell(result: Comparison, score: str, model: str, digits: int) -> str:
    """Return mean and spread of a score, or a dash where a draw lacks it."""
    mean, spread = result.table(score)[model], result.spread(score)[model]
    if mean.isna().any():
        return "—"
    form = ".1e" if mean.mean() > 1e6 else f",.{digits}f"
    return f"{mean.mean():{form}} ± {spread.mean():{form}}"


def show_gaps(result: Comparison) -> None:
    """Print which models have no accuracy, and why."""
    runs = result.runs[result.runs["accuracy"].isna()]
    for model, lines in runs.groupby("model", sort=False):
        n_runs = int((result.runs["model"] == model).sum())
        bad = lines[lines["status"] != "ok"]
        reasons = "; ".join(sorted(set(bad["status"] + ": " + bad["reason"])))
        sizes = lines["size"].dropna()
        wide = f"tables of more than 2^17 cells for a row, {sizes.min():.1e} to {sizes.max():.1e} in all"
        print(f"{model} has no accuracy in {len(lines)} of {n_runs} fits: {reasons or wide}.\n")


# -- the tests ---------------------------------------------------------------------------------------------


def fold_scores(result: Comparison, score: str = "accuracy") -> pd.DataFrame:
    """Return a row for each fold of each draw, without baseline and without methods that lack any."""
    table = pd.concat(result.folds(score).values(), ignore_index=True)[list(LEARNERS)]
    return table.dropna(axis="columns")


def show_tests(results: dict[str, Comparison]) -> None:
    """Print the paper's tests, on folds as it has them, and on draws, which are independent."""
    means = pd.concat([result.table("accuracy")[list(LEARNERS)] for result in results.values()])
    tables = {f"{name.upper()}, folds": fold_scores(result) for name, result in results.items()}
    tables["all, draws"] = means.dropna(axis="columns")
    print("**Tests of accuracy.** With folds as rows, as in the paper, p values are too small, since folds")
    print("of a draw share training rows; the last has one row for each draw of class variables, the mean of")
    print("its folds. Methods without accuracy are left out.\n")
    for name, table in tables.items():
        print(f"- {name}: {friedman_aligned(table)!r}.")
        print(f"- {name}: {versus_control(table, SMALL, ranks='aligned')!r}.")
        print(f"- {name}: {wilcoxon(table, BOUNDED, SMALL)!r}.")
    print(f"- all, draws: {wilcoxon(means, FREE, BOUNDED)!r}.")
    show_pairs(tables)
    print("In the paper, tree-tree and small-tw differ on ANDES and MUNIN1, CB-OBS and small-tw on ANDES")
    print("(both procedures) and on DIABETES (Wilcoxon).\n")


def show_pairs(tables: dict[str, pd.DataFrame]) -> None:
    """Print p values of all pairs of methods, and which is better where they differ."""
    print("\nAligned ranks of all pairs, p values by Nemenyi / by Holm; < or > where both are below .05:\n")
    found = {
        name: [all_pairs(table, method=method) for method in ("nemenyi", "holm")]
        for name, table in tables.items()
    }
    lines = []
    for a, b in itertools.combinations(LEARNERS, 2):
        lines.append([f"{a} : {b}", *(pair_text(tests, a, b) for tests in found.values())])
    print_table(["pair", *tables], lines)


def pair_text(tests: list[Any], a: str, b: str) -> str:
    """Return the p values of a pair, and which of the two is better if all of them are small."""
    if any(name not in tests[0].ranks.index for name in (a, b)):
        return "—"
    p_values = [test.p_values.loc[a, b] for test in tests]
    sign = (" >" if tests[0].advantage.loc[a, b] > 0 else " <") if max(p_values) < 0.05 else ""
    return " / ".join(f"{p:.3f}" if p >= 0.001 else f"{p:.0e}" for p in p_values) + sign


# -- beside pyAgrum ----------------------------------------------------------------------------------------


def race(works: dict[str, Callable[[], Any]], rounds: int = 2) -> dict[str, tuple[Any, float]]:
    """Return what each work gives, and the CPU seconds of its fastest run; turn by turn, as loads change."""
    found: dict[str, tuple[Any, float]] = {}
    for _ in range(rounds):
        for name, work in works.items():
            begin = time.process_time()
            answer = work()
            seconds = time.process_time() - begin
            found[name] = answer, min(seconds, found.get(name, (None, math.inf))[1])
    return found


class Rival:
    """pyAgrum on the same codes: classes v0, v1, ... and features behind them."""

    def __init__(self, rows: np.ndarray, cards: tuple[int, ...], n_classes: int) -> None:
        self.rows, self.cards, self.n_classes = rows, cards, n_classes
        self.names = [f"v{v}" for v in range(len(cards))]

    def variables(self) -> Any:
        """Return a network without arcs."""
        import pyagrum as gum

        bn = gum.BayesNet()
        for name, card in zip(self.names, self.cards, strict=True):
            bn.add(gum.RangeVariable(name, name, 0, card - 1))
        return bn

    def learner(self) -> Any:
        """Return greedy hill climbing, classes before features. It remembers scores: for one use."""
        import pyagrum as gum

        frame = pd.DataFrame(self.rows, columns=self.names).astype(str)
        learner = gum.BNLearner(frame, self.variables())
        learner.useScoreBIC()
        learner.useGreedyHillClimbing()
        learner.setNumberOfThreads(1)
        learner.setSliceOrder([self.names[: self.n_classes], self.names[self.n_classes :]])
        return learner

    def parents(self, dag: Any) -> tuple[tuple[int, ...], ...]:
        """Return the parents of each variable in a graph that a learner has found."""
        learner = self.learner()
        nodes = [learner.idFromName(name) for name in self.names]
        return tuple(tuple(sorted(nodes.index(p) for p in dag.parents(node))) for node in nodes)

    def network(self, parents: Any, tables: Any) -> Any:
        """Return a network with given tables, each (*cards of the parents, card)."""
        bn = self.variables()
        for v, members in enumerate(parents):
            for p in members:
                bn.addArc(self.names[p], self.names[v])
        for v, members in enumerate(parents):
            for states in itertools.product(*(range(self.cards[p]) for p in members)):
                place = {self.names[p]: state for p, state in zip(members, states, strict=True)}
                bn.cpt(self.names[v])[place] = tables[v][states].tolist()
        return bn

    def marginals(self, bn: Any, codes: np.ndarray) -> list[np.ndarray]:
        """Return marginals of the classes given features, row by row."""
        import pyagrum as gum

        engine = gum.LazyPropagation(bn)
        features = self.names[self.n_classes :]
        engine.setEvidence(dict(zip(features, codes[0].tolist(), strict=True)))
        found = []
        for row in codes.tolist():
            for name, state in zip(features, row, strict=True):
                engine.chgEvidence(name, state)  # faster than setting it anew
            engine.makeInference()
            found.append([engine.posterior(name).toarray() for name in self.names[: self.n_classes]])
        return [np.array(rows) for rows in zip(*found, strict=True)]


OURS = {
    "CB-OBS k = 15": {},
    FREE: {"max_component": None},
    "CB-OBS no bound on parents either": {"max_component": None, "max_parents": None},
}


def beside_pyagrum(draw: int, n_rows: int = 100) -> Iterator[list[str]]:
    """Yield a line for each learner on the first fold of a draw of ANDES."""
    X, Y = sample_mdc_problem(network_file("andes"), ROWS, random_state=draw)
    train, test = next(KFold(FOLDS).split(X))
    keep = InformationGainFilter(SOURCES["andes"].per_class).fit(X.iloc[train], Y.iloc[train])
    X, Y, X_test = keep.transform(X.iloc[train]), Y.iloc[train], keep.transform(X.iloc[test])
    works = {
        name: partial(GenerativeBayesNetClassifier(**setting, random_state=0).fit, X, Y)
        for name, setting in OURS.items()
    }
    first = works[FREE]()
    cards = (*first.space_.cards, *first.columns_.cards)
    rows = np.hstack([first.space_.encode(Y), first.columns_.codes(X)])
    rival, scorer = Rival(rows, cards, Y.shape[1]), CountScorer(rows, cards, Y.shape[1])
    waiting = [rival.learner() for _ in range(2)]
    found = race(works | {"pyAgrum": lambda: waiting.pop().learnDAG()})
    dag, theirs = found.pop("pyAgrum")
    goal = scorer.total(rival.parents(dag))
    yield [str(draw + 1), "pyAgrum", f"{goal:,.1f}", "", f"{theirs:.2f}", *[""] * 4]
    codes = first.columns_.codes(X_test.iloc[:n_rows])
    for name, (model, seconds) in found.items():
        bic = scorer.total(model.graph_.parents)
        network = rival.network(model.graph_.parents, model.tables_)
        asked = race({
            "ours": lambda model=model: model.predict_joint(X_test).distribution.marginals(),
            "pyAgrum": lambda network=network: rival.marginals(network, codes),
        })  # fmt: skip
        (mine, quick), (other, slow) = asked["ours"], asked["pyAgrum"]
        apart = max(float(np.abs(a[:n_rows] - b).max()) for a, b in zip(mine, other, strict=True))
        quick, slow = quick / len(X_test), slow / n_rows
        yield [str(draw + 1), name, f"{bic:,.1f}", f"{100 * (bic - goal) / abs(goal):+.3f} %",
               f"{seconds:.2f}", f"{seconds / theirs:.2f}", f"{quick * 1e3:.4f}",
               f"{slow / quick:.0f}x", f"{apart:.0e}"]  # fmt: skip


def show_pyagrum(draws: int = 3) -> None:
    """Print learning and prediction beside pyAgrum, if it is there."""
    print("**ANDES beside pyAgrum's greedy hill climbing.** Classes before features, BIC, one thread, the")
    print("same 4,000 training rows behind the filter; CPU seconds of the faster of two runs, turn by turn.")
    print("Prediction: marginals of 1,000 rows at once, against pyAgrum's LazyPropagation with the same")
    print("graph and tables, row by row.\n")
    try:
        import pyagrum  # noqa: F401
    except ImportError:
        print("pyAgrum is not installed.\n")
        return
    rng = np.random.default_rng(0)
    small = rng.integers(2, size=(2, 40, 3))
    for bound in (None, 2):  # compile before clocks start
        model = GenerativeBayesNetClassifier(max_component=bound, random_state=0)
        model.fit(*small).predict(small[0])
    heads = ["draw", "learner", "BIC", "to pyAgrum", "fit, CPU s", "of pyAgrum's", "marginals, ms a row"]
    lines = [line for draw in range(draws) for line in beside_pyagrum(draw)]
    print_table([*heads, "faster than pyAgrum", "largest difference of marginals"], lines)


def main() -> None:
    """Print the tables."""
    results = {name: study(name) for name in SOURCES}
    show_problems(results)
    for number, (name, result) in enumerate(results.items(), start=2):
        show_methods(number, name, result)
    show_tests(results)
    show_pyagrum()


if __name__ == "__main__":
    main()

"""What models report of held-out rows, and what they reach on new groups, with and without `groups`.

Ten generated tables of 50 groups of 20 similar rows, as repeated measurements of 50 patients are: four
features and three class variables, of 2, 3 and 2 labels, that depend on the group more than on the row. Each
model is fitted with and without `groups`, and predicts 400 new groups. "reported" is the held-out joint
log-likelihood per row that the fitted model gives (`log_likelihood_`, ten folds), "standard error" what it
gives as its standard error (`log_likelihood_error_`), "new groups" the joint log-likelihood on these: means
over the tables. "difference" is that of the two figures in standard errors, "within one" the number of tables
in which it is at most one, which is two of three for a figure that errs by chance alone. Held-out rows are
predicted by models of 45 groups, new ones by a model of 50: reported figures are a little low.

    python benchmarks/groups.py
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier

import tuplet as tp

N_GROUPS, SIZE, N_FEATURES, N_DRAWS = 50, 20, 4, 10
CARDS = (2, 3, 2)


class Table(NamedTuple):
    """Rows and their groups."""

    X: pd.DataFrame
    Y: pd.DataFrame
    groups: Any


def draw(world: int, part: int, n_groups: int) -> Table:
    """Draw groups of similar rows; the labels follow the same law for the same `world`."""
    law, rng = np.random.default_rng([world, 0]), np.random.default_rng([world, part])
    slopes = [0.8 * law.normal(size=(N_FEATURES, card)) for card in CARDS]
    center, groups = rng.normal(size=(n_groups, N_FEATURES)), np.repeat(np.arange(n_groups), SIZE)
    X = center[groups] + 0.2 * rng.normal(size=(len(groups), N_FEATURES))
    columns: dict[str, Any] = {}
    shift = np.zeros((n_groups, 1))
    for j, (slope, card) in enumerate(zip(slopes, CARDS, strict=True)):
        # What a group has of its own does not follow from the features, and is passed on to the next label.
        own = shift * np.linspace(-1, 1, card) + 1.5 * rng.normal(size=(n_groups, card))
        noise = 0.7 * rng.gumbel(size=(len(groups), card))
        columns[f"y{j}"] = ((center @ slope + own)[groups] + noise).argmax(axis=1)
        shift = own[:, -1:]
    names = [f"x{i}" for i in range(N_FEATURES)]
    return Table(pd.DataFrame(X, columns=names), pd.DataFrame(columns), groups)


def models() -> dict[str, Any]:
    """Return what is compared: each model alone, with figures of held-out rows beside it, and mixtures."""
    trees = ExtraTreesClassifier(30, bootstrap=True, max_features=0.5, min_samples_leaf=2)
    members = {
        "chain": tp.ChainClassifier(),
        "tree": tp.TreeClassifier(),
        "Bayesian network": tp.BayesNetClassifier(random_state=0),
        "neighbours": tp.NeighborClassifier(),
        "rules": tp.RuleStackingClassifier(random_state=0, progress=False),
        "shared forest": tp.SharedForestClassifier(trees, random_state=0),
    }
    alone = {name: _stacked({name: model}) for name, model in members.items()}
    quick = {name: members[name] for name in ("chain", "tree", "neighbours")}
    return alone | {"mixture of chain, tree and neighbours": _stacked(quick)}


def _stacked(members: dict[str, Any]) -> Any:
    return tp.JointStackingClassifier(members, cv=10, temperature=False, progress=False)


class Outcome(NamedTuple):
    """Held-out figure of a model, its standard error as the model gives it, and the figure on new groups."""

    reported: float
    reached: float
    error: float

    @property
    def errors(self) -> float:
        """Difference in standard errors."""
        return (self.reported - self.reached) / self.error


def trial(model: Any, train: Table, new: Table, *, with_groups: bool) -> Outcome:
    """Fit a model, and compare what it reports with new groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train.X, train.Y, groups=train.groups if with_groups else None)
        reached = float(model.predict_joint(new.X).log_prob(new.Y).mean())
    return Outcome(model.log_likelihood_, reached, model.log_likelihood_error_)


def line(name: str, with_groups: bool, outcomes: list[Outcome]) -> str:
    """Return a line of the table."""
    says, reaches, error = np.mean(outcomes, axis=0)
    away = np.mean([each.errors for each in outcomes])
    within = sum(abs(each.errors) <= 1 for each in outcomes)
    passed = "yes" if with_groups else "no"
    figures = f"{says:.2f} | {error:.2f} | {reaches:.2f} | {away:+.1f} | {within} of {len(outcomes)}"
    return f"| {name} | {passed} | {figures} |"


def main() -> None:
    """Print the table, or the lines of some models only."""
    chosen = sys.argv[1:] or models()
    pairs = [(draw(world, 1, N_GROUPS), draw(world, 2, 400)) for world in range(N_DRAWS)]
    print("<!-- table -->\n")  # the guide includes what follows
    print("| model | `groups` | reported | standard error | new groups | difference | within one |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name in chosen:
        for with_groups in (True, False):
            outcomes = [trial(models()[name], *pair, with_groups=with_groups) for pair in pairs]
            print(line(name, with_groups, outcomes), flush=True)


if __name__ == "__main__":
    main()

"""The methods of the rule benchmark: each turns the beliefs of a fold into predictions of its test rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier

from rules_beliefs import Fold, Part
from tuplet.models.compared.weighted_stacking import stacking_weights
from tuplet.models.rules import RuleStackingClassifier
from tuplet.models.rules.calibration import learn_calibrator
from tuplet.models.rules.learning.evidence import Evidence

LEAST = 1e-3
"""Scores of NN and MLWSE are cut so far inside of 0 and 1; beliefs of forests are smoothed already."""


@dataclass(frozen=True)
class Outcome:
    """The predictions of a method for the n test rows.

    Parameters
    ----------
    right : bool array, shape (n,)
        Whether all labels of its most probable combination are right.
    joint, labelwise : arrays, shape (n,)
        Log-probability of all labels together, and the sum of those of the single labels; NaN without.
    hamming : array, shape (n,)
        Share of wrong labels.
    note : str
    """

    right: np.ndarray
    joint: np.ndarray
    labelwise: np.ndarray
    hamming: np.ndarray
    note: str = ""


class Column:
    """A fitted classifier that reads the probability of label 1 from its only column of X."""

    classes_ = (0, 1)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return probabilities (n, 2)."""
        yes = np.asarray(X, dtype=float)[:, 0]
        return np.column_stack([1 - yes, yes])


def independent(beliefs: np.ndarray, labels: np.ndarray, note: str = "") -> Outcome:
    """Judge probabilities (n, m) of independent labels."""
    own = np.where(labels == 1, np.log(beliefs), np.log1p(-beliefs)).sum(axis=1)
    wrong = (beliefs > 0.5) != labels
    return Outcome(~wrong.any(axis=1), own, own, wrong.mean(axis=1), note)


def base(fold: Fold) -> Outcome:
    """Return the predictions of the forests (BR)."""
    return independent(fold.test.beliefs, fold.test.labels)


def base_platt(fold: Fold) -> Outcome:
    """Return the predictions of the forests after Platt scaling."""
    return independent(platt_scaled(fold)[1].beliefs, fold.test.labels)


def platt_scaled(fold: Fold) -> tuple[Part, Part]:
    """Return the rows that are not for the test, and those that are, after Platt scaling."""
    known, test = fold.train + fold.validation, fold.test
    tables = []
    for j in range(len(fold.names)):
        two = [np.column_stack([1 - part.beliefs[:, j], part.beliefs[:, j]]) for part in (known, test)]
        calibrator = learn_calibrator("platt", two[0], known.labels[:, j])
        tables.append([calibrator.apply(each)[:, 1] for each in two])
    parts = [np.stack(columns, axis=1) for columns in zip(*tables, strict=True)]
    return Part(parts[0], known.labels), Part(parts[1], test.labels)


def rules(fold: Fold, calibration: str = "identity", learner: str = "greedy") -> Outcome:
    """Return rules over the forests' beliefs, as many as help, and no more than that."""
    known = fold.train + fold.validation
    model = RuleStackingClassifier(
        {name: (Column(), [j]) for j, name in enumerate(fold.names)},
        prefit=True,
        calibration=calibration,
        learner=learner,
        random_state=0,
        progress=False,
    )
    frame = pd.DataFrame(known.labels, columns=list(fold.names))
    model.fit(known.beliefs, frame)
    joint = model.predict_joint(fold.test.beliefs).distribution
    labels = fold.test.labels
    marginals = np.stack([table[:, 1] for table in joint.marginals()], axis=1)
    alone = independent(np.clip(marginals, 1e-12, 1 - 1e-12), labels)
    mode = joint.mode()
    unproven = int((~mode.proven).sum())
    return Outcome(
        (mode.codes == labels).all(axis=1),
        joint.log_prob(labels),
        alone.labelwise,
        alone.hamming,
        f"{len(model.rules_)} rules" + (f", {unproven} modes unproven" if unproven else ""),
    )


def rules_platt(fold: Fold) -> Outcome:
    """Return rules over the forests' beliefs after Platt scaling."""
    return rules(fold, calibration="platt")


def rules_paper(fold: Fold) -> Outcome:
    """Return rules that were learned as the paper learns them."""
    return rules(fold, learner="paper")


def network(fold: Fold) -> Outcome:
    """Return the paper's network: two hidden layers of twice the labels, stopped by the validation rows."""
    m = len(fold.names)
    model = MLPClassifier((2 * m, 2 * m), random_state=0, learning_rate_init=0.003)
    best, answer, waited = -np.inf, fold.test.beliefs, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(400):
            model.partial_fit(fold.train.beliefs, fold.train.labels, classes=np.arange(m))
            score = independent(_cut(model.predict_proba(fold.validation.beliefs)), fold.validation.labels)
            waited += 1
            if score.joint.mean() > best:
                best, answer, waited = score.joint.mean(), model.predict_proba(fold.test.beliefs), 0
            if waited == 20:
                break
    return independent(_cut(answer), fold.test.labels)


def weighted(fold: Fold) -> Outcome:
    """Return MLWSE with the weights of its two terms that suit the validation rows best."""
    best, answer = np.inf, fold.test.beliefs
    for correlation in (1e-4, 1e-2, 1.0):
        for sparsity in (1e-3, 1e-1, 1.0):
            W = stacking_weights(
                fold.train.beliefs, fold.train.labels, correlation=correlation, sparsity=sparsity
            )
            error = np.mean((fold.validation.beliefs @ W - fold.validation.labels) ** 2)
            if error < best:
                best, answer = error, fold.test.beliefs @ W
    return independent(_cut(answer), fold.test.labels)


def evidence(part: Part) -> Evidence:
    """Return rows as what rules are learned from."""
    tables = tuple(np.log(np.column_stack([1 - belief, belief])) for belief in part.beliefs.T)
    return Evidence(tables, part.labels.astype(np.intp), np.ones(len(part.labels)))


def _cut(scores: np.ndarray) -> np.ndarray:
    return np.clip(scores, LEAST, 1 - LEAST)


METHODS: dict[str, Callable[[Fold], Outcome]] = {
    "BR": base,
    "NN": network,
    "MLWSE": weighted,
    "rules": rules,
    "BR, Platt": base_platt,
    "rules, Platt": rules_platt,
    "rules, paper's learner": rules_paper,
}

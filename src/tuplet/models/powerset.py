"""Every combination of labels as one class."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from tuplet.core.exceptions import InputError, IntractableError, TupletWarning, warn_outside
from tuplet.core.limits import largest_array
from tuplet.core.parameters import Number, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution
from tuplet.local.ordered_variables import needs_order
from tuplet.local.stacked import StackedModel
from tuplet.local.temperature import with_probabilities
from tuplet.models.base import JointClassifier
from tuplet.models.prior import (
    least_mass,
    log_marginals,
    seen_combinations,
    unseen_mass,
    with_unseen,
)
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.estimators import name_of
from tuplet.space.features.inputs import Features, n_rows
from tuplet.space.features.labelled import fitted_to_labels, labels_named

_LEFT_OUT = 0.2
"""Share of rows that may lack a label before a fit warns."""


@final
class PowersetClassifier(JointClassifier):
    """One multi-class problem whose classes are the combinations of labels in the training rows.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier with `predict_proba`; `default_estimator()`, imputed and standardised
        logistic regression, if None.
    smoothing : "good-turing" or float
        Probability that is taken from the classifier and spread over all combinations, unseen ones too, by
        the training frequencies of the single labels. "good-turing" estimates the probability of an unseen
        combination by the share of rows whose combination is theirs alone, at least 1 / (N + 1) and at most
        1/2. 0 leaves unseen combinations impossible.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.

    Attributes
    ----------
    combinations_ : array of int, shape (a, m)
        Codes of the combinations.
    unseen_mass_ : float
        The probability that is spread.

    Notes
    -----
    p(y | x) = (1 - e) p_combinations(y | x) + e prod_j p_train(y_j). Rows with a missing label teach only
    p_train; `fit` warns if these are more than a fifth of all rows.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> y = [["dry", "hat"], ["dry", "hat"], ["wet", "umbrella"], ["wet", "umbrella"]]
    >>> model = PowersetClassifier(GaussianNB()).fit(X, y)
    >>> model.predict_joint([[0.0]]).prob([["dry", "umbrella"]]).round(3)  # never seen
    array([0.05])
    """

    _parameters = declare("columns estimator", smoothing=("good-turing", Number(at_least=0, below=1)))

    def __init__(
        self, estimator: Any = None, *, smoothing: Any = "good-turing", columns: ColumnChoices = None
    ) -> None:
        self.estimator = estimator
        self.smoothing = smoothing
        self.columns = columns

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        if needs_order(self.estimator) and codes.shape[1] > 1:
            raise InputError(
                "PowersetClassifier: combinations of labels have no order, which OrdinalClassifier needs; use"
                " ChainClassifier, or another estimator."
            )
        seen = seen_combinations(codes, sample_weight)
        _require_few(len(codes), len(seen.codes))
        _warn_left_out(int((seen.member != UNKNOWN).sum()), len(codes))
        self.combinations_ = seen.codes
        if self.smoothing == "good-turing":
            estimate = unseen_mass(seen, self.space_.cards, self._groups)
            self.unseen_mass_ = max(estimate, least_mass(self.label_counts_))
        else:
            self.unseen_mass_ = float(self.smoothing)
        self.log_marginals_ = log_marginals(self.label_counts_)
        each = zip(self.log_marginals_, self.combinations_.T, strict=True)
        self._product = np.exp(np.sum([log_p[labels] for log_p, labels in each], axis=0))
        self.model_ = StackedModel(self._of_combinations(seen.codes)).fit(
            X,
            np.zeros((len(codes), 0), dtype=np.intp),
            seen.member,
            parent_cards=(),
            child_card=len(seen.codes),
            sample_weight=sample_weight,
            groups=self._groups,
        )

    def _of_combinations(self, combinations: Codes) -> Any:
        """Return the estimator for combinations (r, m), unless its parameters are about single labels."""
        estimator = with_probabilities(self.estimator)
        if len(self.space_.names) == 1:
            return fitted_to_labels(estimator, self.space_.categories[0][combinations[:, 0]])
        labels = {label for each in self.space_.categories for label in each.tolist()}
        named = labels_named(self.estimator, labels)
        if named:
            raise InputError(
                f"PowersetClassifier fits {name_of(self.estimator)} to combinations of labels, but its"
                f" parameter {named} is about single ones; pass sample_weight instead, or use"
                " ChainClassifier."
            )
        return estimator

    def _predict_joint(self, X: Features) -> JointDistribution:
        cards, combinations, n = self.space_.cards, self.combinations_, n_rows(X)
        if len(combinations) < math.prod(cards):
            atoms = Atoms.from_blocks(cards, combinations, n, self.model_.proba_blocks(X))
            return with_unseen(atoms, self.unseen_mass_, self.log_marginals_)
        # A list of all combinations needs no mixture.
        blocks = self.model_.proba_blocks(X, self.unseen_mass_ * self._product)
        return Atoms.from_blocks(cards, combinations, n, blocks)


def _require_few(n: int, n_combinations: int) -> None:
    """Refuse combinations whose probabilities, in all training rows, are too many to hold."""
    if n * n_combinations > largest_array():
        raise IntractableError(
            f"PowersetClassifier: {n:,} rows have {n_combinations:,} combinations of labels, too many classes"
            f" for one classifier (limit {largest_array():,} probabilities of all rows). Use ChainClassifier"
            " or TreeClassifier, or raise the limit with sklearn.set_config(working_memory=...)."
        )


def _warn_left_out(n_used: int, n: int) -> None:
    if n - n_used > _LEFT_OUT * n:
        warn_outside(
            f"PowersetClassifier: the classifier learned from {n_used} of {n} rows, because the others lack a"
            " label; IndependentClassifier and ChainClassifier use these rows too.",
            TupletWarning,
        )

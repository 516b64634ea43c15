"""Frequencies of labels and of their combinations, without x: the baseline of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, final

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.exceptions import InputError
from tuplet.core.parameters import declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution
from tuplet.joint.collect import distinct_outcomes
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.factor import Factor
from tuplet.joint.mixture import Mixture
from tuplet.local.smoothing import smoothed_frequencies
from tuplet.losses.base import Loss
from tuplet.models.base import JointClassifier
from tuplet.models.validation import row_index
from tuplet.prediction.joint import JointPrediction
from tuplet.space.features.inputs import Features, n_rows


@final
class PriorClassifier(JointClassifier):
    """Predict the training frequencies, whatever x is.

    Parameters
    ----------
    strategy : {"joint", "marginals"}
        "joint": the frequencies of the combinations of labels, with the probability of unseen ones spread
        as in `PowersetClassifier`. Rows with a missing label count towards the frequencies of single labels
        only. "marginals": the product of the frequencies of single labels, one row added to each label. With
        one class variable both are the same.

    Examples
    --------
    >>> y = [["wet", "umbrella"], ["wet", "umbrella"], ["dry", "hat"], ["dry", "umbrella"]]
    >>> model = PriorClassifier().fit([[0], [1], [2], [3]], y)
    >>> model.predict([[9]], loss="subset")
    array([['wet', 'umbrella']], dtype='<U8')
    """

    _parameters = declare(strategy=("joint", "marginals"))

    def __init__(self, strategy: Literal["joint", "marginals"] = "joint") -> None:
        self.strategy = strategy

    _feature_form = "raw"
    _judged_by_few_rows = False

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return []  # nothing looks at X, so anything goes

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        self.log_marginals_ = log_marginals(self.label_counts_)
        if self._by_combination:
            seen = seen_combinations(codes, sample_weight)
            self.combinations_, self.log_weights_ = seen.codes, np.log(seen.weights)
            self.unseen_mass_ = unseen_mass(seen, self.space_.cards, self._groups)

    @property
    def _by_combination(self) -> bool:
        return self.strategy == "joint" and self.space_.n_variables > 1

    def _predict_joint(self, X: Features) -> JointDistribution:
        return self._joint(n_rows(X))

    def _joint(self, n: int) -> JointDistribution:
        if not self._by_combination:
            return independent(self.log_marginals_, n)
        log_weights = np.broadcast_to(self.log_weights_, (n, len(self.log_weights_)))
        atoms = Atoms(self.space_.cards, self.combinations_[None], log_weights)
        return with_unseen(atoms, self.unseen_mass_, self.log_marginals_)

    def predict(self, X: Any, *, loss: str | Loss = "hamming") -> Any:
        """See `JointClassifier.predict`; one row is decided for all."""
        check_is_fitted(self)
        n = n_rows(self._validate(X, []))
        codes = JointPrediction(self._joint(1), self.space_)._decide(loss, "predict")
        return self.space_.decode(np.repeat(codes, n, axis=0), row_index(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


def training_frequencies(model: Any) -> PriorClassifier | None:
    """Return the frequencies of the labels that a fitted model was trained with, as a model of its own.

    The baseline that scores of the model are compared with; None if the labels are not known, as of a
    network from a file of another program.
    """
    model = getattr(model, "estimator_", model)  # of a `DecisionClassifier`
    if getattr(model, "label_counts_", None) is None:
        return None
    prior = PriorClassifier("marginals")
    for name in ("n_features_in_", "feature_names_in_", "mixed_features_", "text_features_"):
        if hasattr(model, name):
            setattr(prior, name, getattr(model, name))
    prior.space_, prior.classes_, prior.encoder_ = model.space_, model.classes_, None
    prior.label_counts_ = model.label_counts_
    prior.log_marginals_ = log_marginals(model.label_counts_)
    return prior


# -- combinations of labels --------------------------------------------------------------------------------


class Combinations(NamedTuple):
    """The combinations of labels in some training rows."""

    codes: Codes  # (a, m), distinct
    weights: Floats  # (a,) total weight of the rows of each
    member: Codes  # (n,) that of each row; UNKNOWN where a label is missing


def seen_combinations(codes: Codes, sample_weight: Floats | None) -> Combinations:
    """Return the combinations of the rows of codes (n, m) that are complete."""
    complete = (codes != UNKNOWN).all(axis=1)
    if not complete.any():
        raise InputError(
            "Learning combinations of labels needs at least one row in which no label is missing; use"
            " IndependentClassifier or ChainClassifier."
        )
    known = codes if complete.all() else codes[complete]
    first, inverse = distinct_outcomes(known, tuple(known.max(axis=0) + 1))
    member = np.full(len(codes), UNKNOWN)
    member[complete] = inverse
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    return Combinations(known[first], np.bincount(member[complete], weights[complete]).astype(float), member)


def unseen_mass(combinations: Combinations, cards: tuple[int, ...], groups: Codes | None = None) -> float:
    """Return the probability that a new row shows a combination that none of the training rows shows.

    Good and Turing's estimate: the share of the rows whose combination is theirs alone, or alone that of
    their group. It is kept between 1 / (N + 1), with N rows or groups, because none is no proof, and 1/2,
    because the classifier should not be drowned out where every combination is unique. If every possible
    combination was seen it is 0.

    References
    ----------
    I. J. Good, The population frequencies of species and the estimation of population parameters,
    Biometrika 40, 1953.
    """
    outcomes = 1
    for card in cards:
        outcomes *= card
    if len(combinations.codes) == outcomes:
        return 0.0
    total, alone, n = combinations.weights.sum(), combinations.weights <= 1, combinations.weights.sum()
    if groups is not None:
        known = combinations.member != UNKNOWN
        pairs = np.unique(np.column_stack([combinations.member[known], groups[known]]), axis=0)
        alone, n = np.bincount(pairs[:, 0]) == 1, len(np.unique(groups))
    return float(np.clip(combinations.weights[alone].sum() / total, 1 / (n + 1), 0.5))


def log_marginals(counts: Sequence[Floats]) -> list[Floats]:
    """Return the log-frequencies (k_j,) of the labels of each variable, one row added to every label."""
    return [np.log(smoothed_frequencies(each)) for each in counts]


def independent(marginals: list[Floats], n: int) -> FactorGraph:
    """Return n rows of independent variables with these log-probabilities (k_j,)."""
    factors = [Factor((j,), row[:, None]) for j, row in enumerate(marginals)]
    return FactorGraph(tuple(map(len, marginals)), factors, n, log_normalizer=0.0)


def with_unseen(joint: JointDistribution, mass: float, marginals: list[Floats]) -> JointDistribution:
    """Return (1 - mass) * joint + mass * the product of these log-marginals (k_j,)."""
    if mass == 0:
        return joint
    n = len(joint)
    log_weights = np.broadcast_to(np.log([1 - mass, mass]), (n, 2))
    return Mixture(log_weights, (joint, independent(marginals, n)))


def bounded_joint(joint: JointDistribution, counts: Sequence[Floats]) -> JointDistribution:
    """Return a distribution with the pseudo-row of labels with these counts (k_j,).

    See `tuplet.local.smoothing`; for models without tables p(y_j | x, parents) that could have one each. With
    N rows, every marginal is then at least f_j(y_j) / (N + 1), and every outcome prod_j f_j(y_j) / (N + 1).
    """
    return with_unseen(joint, least_mass(counts), log_marginals(counts))


def least_mass(counts: Sequence[Floats]) -> float:
    """Return 1 / (N + 1), where N is the weight of the rows in which a variable has a label, at most."""
    return 1.0 / (1.0 + max(float(each.sum()) for each in counts))

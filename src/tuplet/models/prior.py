"""The baseline of comparisons: frequencies of the labels, without x."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.parameters import declare
from tuplet.core.typing import Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution
from tuplet.losses.base import Loss
from tuplet.models.base import JointClassifier
from tuplet.models.combinations import independent, log_marginals, seen_combinations, unseen_mass, with_unseen
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

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return []  # nothing looks at X, so anything goes

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        self.log_marginals_ = log_marginals(codes, self.space_.cards, sample_weight)
        if self._by_combination:
            seen = seen_combinations(codes, sample_weight)
            self.combinations_, self.log_weights_ = seen.codes, np.log(seen.weights)
            self.unseen_mass_ = unseen_mass(seen, self.space_.cards)

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

"""One classifier for each class variable."""

from __future__ import annotations

from typing import Any, final

from tuplet.core.parameters import declare
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.stacked import Link, fit_links, log_proba_alone
from tuplet.models.base import JointClassifier
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features


@final
class IndependentClassifier(JointClassifier):
    """One classifier for each class variable, each without the others: binary relevance.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba`; `default_estimator()`, imputed and standardised
        logistic regression, if None. In a mapping, variables that are not named get the default.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    n_jobs : int, optional
        Fits that run side by side, by joblib.

    Attributes
    ----------
    models_ : list of StackedModel
        One for each variable.
    estimators_ : list of classifiers
        The fitted classifier of each variable; None where all rows had one label.

    Notes
    -----
    p(y | x) is the product of the p(y_j | x). A row teaches the variables whose labels it has.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> y = [["dry", "hat"], ["dry", "hat"], ["wet", "umbrella"], ["wet", "hat"]]
    >>> IndependentClassifier(GaussianNB()).fit(X, y).predict([[0.05], [1.0]])
    array([['dry', 'hat'],
           ['wet', 'umbrella']], dtype='<U8')
    """

    _parameters = declare("columns estimator n_jobs")

    def __init__(
        self, estimator: Any = None, *, columns: ColumnChoices = None, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.columns = columns
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        links = [Link(j, ()) for j in range(self.space_.n_variables)]
        self.models_ = fit_links(
            links,
            X,
            codes,
            sample_weight,
            space=self.space_,
            estimators=self._estimators(self.space_.names),
            n_jobs=self.n_jobs,
            groups=self._groups,
        )

    def _predict_joint(self, X: Features) -> JointDistribution:
        return FactorGraph.independent(log_proba_alone(self.models_, X))

    @property
    def estimators_(self) -> list[Any]:
        """Fitted classifier of each variable."""
        return [model.classifier_.estimator for model in self.models_]

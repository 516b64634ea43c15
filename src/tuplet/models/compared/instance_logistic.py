"""Logistic regression on the labels of the nearest training rows."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np

from tuplet.core.parameters import declare
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.onehot import OneHot
from tuplet.local.row_samples import sample_rows
from tuplet.local.stacked import Link, fit_links, log_proba_alone
from tuplet.models.base import JointClassifier
from tuplet.models.neighborhoods import Neighborhoods, Positions
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, n_rows, put_beside, take_rows


@final
class InstanceLogisticClassifier(JointClassifier):
    """A classifier for each variable whose inputs are the shares of all labels among the neighbours: IBLR-ML.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba` that takes numbers; `default_estimator()`,
        standardised logistic regression, if None.
    n_neighbors : int
        Size k of a neighbourhood; all other rows where there are fewer.
    use_features : bool
        Whether the features themselves are used beside the shares: IBLR-ML+.
    standardize : "auto" or bool
        Whether columns are scaled to unit variance before distances are taken; see `NeighborClassifier`.
    n_learned : int or None
        Training rows that the classifiers are fitted to, drawn at random where there are more, because the
        neighbourhood of each has to be found among all rows; None takes all.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    n_jobs : int, optional
        Fits, and workers of the search for neighbours, that run side by side.

    Attributes
    ----------
    neighborhoods_ : Neighborhoods
    models_ : list of StackedModel
        One for each variable.

    Notes
    -----
    p(y | x) is the product of the p(y_j | shares around x). A variable depends on the neighbours' labels of
    all variables, but not on the other labels of its own row. The neighbourhood of a training row does not
    contain the row, nor others of its group. Binary variables give one share, others one for each label; a
    neighbour without a label counts by the training frequencies.

    References
    ----------
    W. Cheng, E. Hüllermeier, Combining instance-based learning and logistic regression for multilabel
    classification, Machine Learning 76, 2009.

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]]
    >>> y = [["dry", "hat"]] * 4 + [["wet", "umbrella"]] * 3 + [["wet", "hat"]]
    >>> InstanceLogisticClassifier(n_neighbors=2).fit(X, y).predict([[0.05], [1.05]])
    array([['dry', 'hat'],
           ['wet', 'umbrella']], dtype='<U8')
    """

    _parameters = declare(
        "columns estimator n_neighbors n_learned n_jobs", use_features=bool, standardize=("auto", bool)
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_neighbors: int = 10,
        use_features: bool = False,
        standardize: bool | Literal["auto"] = "auto",
        n_learned: int | None = 16_384,
        columns: ColumnChoices = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.use_features = use_features
        self.standardize = standardize
        self.n_learned = n_learned
        self.columns = columns
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        self.columns_ = OneHot.fit(codes, self.space_.cards, weights).columns(codes)
        near = Neighborhoods.fit(
            X,
            self.n_neighbors,
            sample_weight,
            standardize=self.standardize,
            labels=self.columns_,
            n_jobs=self.n_jobs,
            groups=self._groups,
        )
        self.neighborhoods_ = near
        links = [Link(j, ()) for j in range(self.space_.n_variables)]
        rows, taken = sample_rows(X, codes, sample_weight, self.n_learned)
        inputs = self._inputs(take_rows(X, rows), self._counts(rows))
        self.models_ = fit_links(
            links,
            inputs,
            codes[rows],
            taken,
            space=self.space_,
            estimators=self._estimators(self.space_.names),
            n_jobs=self.n_jobs,
            groups=None if self._groups is None else self._groups[rows],
        )

    def _counts(self, rows: Positions) -> Floats:
        """Return how many neighbours of training rows (r,) have each label, as new rows would find it.

        The correction is rounded: a fraction that depends on the label of the row would reveal it. It is not
        zero where k is more than about half of the rows.
        """
        near = self.neighborhoods_
        lacking = near.lacking(self.columns_, rows, self._groups)
        return near.sums_among_training(self.columns_, rows, self._groups) + np.floor(lacking + 0.5)

    def _inputs(self, X: Features, counts: Floats) -> Features:
        """Return what the classifiers see, from counts (n, w) of the neighbours' labels."""
        shares = counts / self.neighborhoods_.k
        if self.use_features:
            return put_beside(X, shares, [f"near{i}" for i in range(shares.shape[1])])
        # Estimators need at least one column, also where no variable has a second label.
        return shares if shares.shape[1] else np.zeros((n_rows(X), 1))

    def _predict_joint(self, X: Features) -> JointDistribution:
        inputs = self._inputs(X, self.neighborhoods_.sums_around(X, self.columns_))
        return FactorGraph.independent(log_proba_alone(self.models_, inputs))

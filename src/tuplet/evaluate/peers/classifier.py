"""Any multi-output classifier as a model of Tuplet: what its users get, made comparable."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from tuplet.core.exceptions import InputError
from tuplet.core.parallel import one_blas_thread
from tuplet.core.parameters import Having, Number, Whole, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.local.cross_fitting import folds_of_groups
from tuplet.local.multi_output import as_dense, read_outputs
from tuplet.metrics.encoding import encode_truth
from tuplet.models.base import JointClassifier
from tuplet.models.validation import row_index
from tuplet.prediction.joint import JointPrediction
from tuplet.space.features.estimators import name_of, unwrap, weight_arguments
from tuplet.space.features.inputs import Features, n_rows, take_rows


@final
class PeerClassifier(JointClassifier):
    """Any scikit-learn-style classifier of several outputs, with the joint that its users multiply by hand.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba`, for Y of shape (n, m): `MultiOutputClassifier(...)`, `ClassifierChain(...)`,
        `RandomForestClassifier()`, those of scikit-multilearn, CatBoost, XGBoost. Cloned, then fitted.
    multiclass : "same", classifier or None
        What takes the place of `estimator` where a class variable has more than two labels: the estimator
        itself, another one, or none, and then fitting is an error.
    floor : float, default 1e-4
        Least probability of a label. Many peers give probability zero to labels that then occur; a single one
        of these makes the likelihood of a test set zero.
    random_state : int, optional
        Seed of the global generators of Python and numpy during `fit`, for peers that draw from these. They
        are put back afterwards.

    Attributes
    ----------
    estimator_ : classifier or None
        The fitted peer; None if all class variables are constant.
    seen_ : list of arrays
        The codes of each class variable that the peer was shown.
    n_complete_ : int
        Number of training rows without missing labels.

    Notes
    -----
    *Training.* Peers take no missing labels: a row that lacks one is left out. They are shown integer codes
    from 0 without gaps. A class variable with a single label in training is withheld, because logistic
    regression and others refuse it, and answered with that label.

    *Joint.* The product of the probabilities that the peer gives to single labels. For independent models
    that is their joint. Those of a chain are probabilities given the chain's own answers; those of others are
    marginals, whose product is not the joint that the peer may hold inside but the one that its users form.

    *Floor.* A label whose probability is below the floor has exactly the floor; the other labels of that
    variable shrink in proportion, so that the distribution stays one. The floor belongs to the single label,
    and so it is applied here, before labels are multiplied: from the joint alone a row with one impossible
    label and good others cannot be distinguished from one in which all are impossible. As a product keeps its
    factors as marginals, `n_floored` finds the lifted labels again in the prediction, and nothing has to be
    remembered.

    *Decisions.* `predict` is the peer's own answer whatever the loss, since this is what its users get. Some
    do not answer with the most probable labels: label powersets choose the most probable combination.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X = [[0.0], [0.1], [1.0], [1.1]]
    >>> y = [["dry", "hat"], ["dry", "hat"], ["wet", "umbrella"], ["wet", "hat"]]
    >>> peer = PeerClassifier(KNeighborsClassifier(2)).fit(X, y)
    >>> prediction = peer.predict_joint([[0.0], [1.0]])
    >>> prediction.log_prob([["dry", "hat"], ["dry", "hat"]]).round(4)
    array([-2.0000e-04, -9.9035e+00])
    >>> peer.n_floored([["dry", "hat"], ["dry", "hat"]], prediction)
    1
    """

    _judged_by_few_rows = False  # peers stay as they are

    _parameters = declare(
        "estimator",
        multiclass=("same", None, Having("a classifier", "fit")),
        floor=Number(at_least=0, below=1),
        random_state=(Whole(at_least=0), None),
    )

    def __init__(
        self,
        estimator: Any,
        *,
        multiclass: Any = "same",
        floor: float = 1e-4,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.multiclass = multiclass
        self.floor = floor
        self.random_state = random_state

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return [self.estimator, self.multiclass] if hasattr(self.multiclass, "fit") else [self.estimator]

    @property
    def _note(self) -> str:
        return f"product of the labels' probabilities, each at least {self.floor:g}"

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        self._check_floor()
        chosen = self._choose()
        complete = (codes != UNKNOWN).all(axis=1)
        if not complete.any():
            raise InputError(
                f"{name_of(chosen)} learns from rows with all labels, but every row of y lacks one; use a"
                " model that takes missing labels."
            )
        if not complete.all():
            X, codes = take_rows(X, complete), codes[complete]
            sample_weight = None if sample_weight is None else sample_weight[complete]
        groups = None if self._groups is None else self._groups[complete]
        self.n_complete_ = len(codes)
        self.seen_ = [np.unique(column) for column in codes.T]
        columns = [np.searchsorted(self.seen_[j], codes[:, j]) for j in self._varying()]
        self.estimator_ = (
            self._fit_peer(chosen, X, np.column_stack(columns), sample_weight, groups) if columns else None
        )

    def _fit_peer(
        self, chosen: Any, X: Features, Y: Codes, sample_weight: Floats | None, groups: Codes | None
    ) -> Any:
        peer = clone(chosen)
        last = peer.steps[-1][1] if isinstance(peer, Pipeline) else peer
        if sample_weight is not None and not has_fit_parameter(last, "sample_weight"):
            raise InputError(f"{name_of(peer)} takes no sample_weight; fit without weights.")
        weights = weight_arguments(peer, sample_weight)
        with (
            _global_seed(self.random_state),
            folds_of_groups(peer, Y, groups),
            warnings.catch_warnings(),
        ):
            # A single column stays a matrix, because some peers take nothing else; the others warn.
            warnings.simplefilter("ignore", DataConversionWarning)
            peer.fit(X, Y, **weights)
        return peer

    def _choose(self) -> Any:
        """Return the classifier for the class variables at hand."""
        many = [j for j, card in enumerate(self.space_.cards) if card > 2]
        if not many or (isinstance(self.multiclass, str) and self.multiclass == "same"):
            return self.estimator
        if self.multiclass is None:
            name, card = self.space_.names[many[0]], self.space_.cards[many[0]]
            raise InputError(
                f"{name_of(self.estimator)} takes binary class variables only, but {name!r} has {card}"
                " labels; leave the peer out."
            )
        return self.multiclass

    def _check_floor(self) -> None:
        if self.floor >= 1 / max(self.space_.cards):
            raise InputError(
                f"PeerClassifier: floor must be less than 1 / {max(self.space_.cards)}, the largest number of"
                f" labels; found {self.floor!r}."
            )

    def _varying(self) -> list[int]:
        """Return the class variables that the peer is shown: those that are not constant."""
        return [j for j, seen in enumerate(self.seen_) if len(seen) > 1]

    # -- predicting ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        tables = [np.zeros((n_rows(X), card)) for card in self.space_.cards]
        for table, seen in zip(tables, self.seen_, strict=True):
            table[:, seen[0]] = 1.0  # of those that the peer is shown, it is replaced below
        shown = self._varying()
        if shown:
            for j, output in zip(shown, read_outputs(self.estimator_, X, len(shown)), strict=True):
                self._check_labels(j, output.table.shape[1])
                tables[j][:, self.seen_[j]] = output.table
        with np.errstate(divide="ignore"):  # a floor of zero
            return FactorGraph.independent([np.log(apply_floor(table, self.floor)) for table in tables])

    def _check_labels(self, j: int, n_columns: int) -> None:
        if n_columns != len(self.seen_[j]):
            raise InputError(
                f"{name_of(self.estimator_)}.predict_proba gives probabilities of {n_columns} labels of"
                f" {self.space_.names[j]!r}, which has {len(self.seen_[j])} in the training rows; use a"
                " classifier that gives one for each of them."
            )

    # Without `loss`, unlike other models: scorers and comparisons then take the answer as it is.
    def predict(self, X: Any) -> Any:  # type: ignore[override]
        """Return the peer's own answer, in the container and of the types of the training labels.

        What the product of its probabilities would decide for a loss is `predict_joint(X).decide(loss)`.

        Parameters
        ----------
        X : array, sparse matrix or frame, shape (n, d)
        """
        check_is_fitted(self)
        features = self._encode(self._validate(X, self._estimators(self.space_.names)))
        codes = np.tile([seen[0] for seen in self.seen_], (n_rows(features), 1))
        shown = self._varying()
        if shown:
            with one_blas_thread():
                answers = _own_answers(self.estimator_, features)
            for column, j in enumerate(shown):
                codes[:, j] = self.seen_[j][answers[:, column]]
        return self.space_.decode(codes, row_index(X))

    def n_floored(self, Y_true: Any, prediction: JointPrediction) -> int:
        """Count the rows in which a true label had less than the floor, or does not occur in training.

        Parameters
        ----------
        Y_true : labels, shape (n, m)
            Missing ones are left out.
        prediction : JointPrediction
            Of this model for the same rows.
        """
        truth = encode_truth(Y_true, prediction)
        lifted, rows = truth.unseen.copy(), np.arange(len(prediction))
        for j, table in enumerate(prediction.distribution.marginals()):
            there = truth.codes[:, j] != UNKNOWN
            # Logarithms and back: a lifted label may have lost its last digits.
            lifted[:, j] |= there & (table[rows, truth.codes[:, j]] <= self.floor * (1 + 1e-9))
        return int(lifted.any(axis=1).sum())


def apply_floor(table: Floats, floor: float) -> Floats:
    """Raise probabilities (n, k) that are below the floor to the floor; the others of the row shrink for it.

    Rows still sum to one. What shrinks below the floor by this, having been just above it, is raised too.
    """
    low = table < floor
    while True:
        left = 1 - floor * low.sum(axis=1, keepdims=True)
        others = np.where(low, 0.0, table)
        lifted = np.where(low, floor, others * (left / others.sum(axis=1, keepdims=True)))
        lower = lifted < floor
        if not lower.any():
            return lifted
        low |= lower


def _own_answers(peer: Any, X: Features) -> Codes:
    """Return the peer's own answers (n, m), as codes."""
    last, inputs = unwrap(peer, X)
    if isinstance(last, MultiOutputClassifier):
        # One by one, because CatBoost answers in (n, 1) for more than two labels, (n,) for two, and
        # MultiOutputClassifier cannot stack these.
        columns = [np.ravel(estimator.predict(inputs)) for estimator in last.estimators_]
        return np.column_stack(columns).astype(np.intp)
    return as_dense(last.predict(inputs)).reshape(n_rows(X), -1).astype(np.intp)


@contextmanager
def _global_seed(seed: int | None) -> Iterator[None]:
    """Seed the global generators of Python and NumPy, and restore them afterwards."""
    if seed is None:
        yield
        return
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  the one that peers draw from
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002

"""The contract of a model: X and labels in, a joint distribution out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from narwhals import dependencies
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.exceptions import InputError
from tuplet.core.parallel import one_blas_thread
from tuplet.core.parameters import Parameters, check_parameters
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.local.cross_fitting import Positions
from tuplet.local.ordered_variables import suited_to_order
from tuplet.local.smoothing import label_counts
from tuplet.local.temperature import with_probabilities
from tuplet.losses.base import Loss
from tuplet.metrics.decisions import exact_match
from tuplet.models.few_rows import are_few, frequency_share, with_frequencies
from tuplet.models.files_and_pages import SavedAndReported
from tuplet.models.validation import (
    row_index,
    validate_features,
    validate_groups,
    validate_weights,
    warn_many_integers,
    warn_of_thresholds,
)
from tuplet.prediction.joint import JointPrediction
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing, open_table, require_same_order
from tuplet.space.features.encoding import (
    ColumnChoices,
    FeatureEncoder,
    TransformerEncoder,
    encoder_for,
)
from tuplet.space.features.estimators import accepts, chooses_columns, require_probabilities
from tuplet.space.features.inputs import Features, as_pandas, n_rows, take_rows
from tuplet.space.features.labelled import fitted_to_labels


class JointClassifier(SavedAndReported, ClassifierMixin, BaseEstimator, ABC):
    """A model of several class variables together: a scikit-learn classifier with `predict_joint`.

    A new model writes `__init__` (which only stores), `_fit` and `_predict_joint`; validation, labels,
    decisions and scikit-learn's conventions come from here. `_fit` never sees labels, only codes.

    Attributes
    ----------
    space_ : ClassSpace
        Names and labels of the class variables.
    classes_ : list of arrays, or an array if y was 1-D
        Labels of each variable.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a frame.
    n_samples_fit_ : int
        Number of rows that it learned from.
    label_counts_ : list of arrays, shape (k_j,)
        Total training weight of each label of every variable: frequencies that predictions are compared
        with, and that bound them.
    frequency_share_ : float
        Share of the training frequencies of the labels that is mixed into predictions. It is not zero only if
        there were fewer than 16 rows and no `estimator` was given; each row was then left out to find it.
    mixed_features_ : bool
        Whether X was a frame with columns that are no numbers, or one for a `ColumnTransformer`.
    text_features_ : list of str
        Columns of X whose values were text; what reads a file for this model must not take them for numbers.
    encoder_ : FeatureEncoder or None
        What turned the columns of X into numbers, learned from the training rows; `encoder_.summary()` shows
        what each column became and why. None where the estimators take X as it is: numbers, if they take
        missing ones too, or a frame; and where models inside of this one have an encoder each.

    Notes
    -----
    An `estimator` that treats the columns of a frame by itself gets the frame: a pipeline that begins with a
    `ColumnTransformer`, a `FunctionTransformer`, a transformer of text or categories, or any transformer of
    another library or of your own. Where a model appends columns of other class variables to X, these steps
    get X alone, and the columns stand beside what they return.

    An estimator that gives scores but no probabilities, such as `LinearSVC`, is used as `TemperatureScaled`
    makes it. Thresholds inside of an estimator have no effect: decisions are made from the joint
    distribution, `predict(X, loss=...)`.

    In scikit-learn's `cross_validate` and `GridSearchCV` pass a splitter, `cv=KFold(5)`, if labels are
    missing or of several types: given a number, scikit-learn tries to sort the labels of all variables.
    """

    # -- what a model writes ------------------------------------------------------------------------------

    _parameters: ClassVar[Parameters] = {}
    """Which values the parameters of `__init__` take; `fit` raises `InputError` for others."""

    _feature_form: ClassVar[Literal["numbers", "columns", "raw"]] = "numbers"
    """What `_fit` gets of a frame: numbers where its estimators need them; columns of numbers, with gaps, and
    categories; or the frame as it is."""

    _text_is_discrete: ClassVar[bool] = False
    """Whether text of few values is a category even if these are numbers."""

    _drops_unweighted: ClassVar[bool] = True
    """Whether `_fit` does without rows of weight zero; not where users name rows by their positions."""

    _keeps_frames: ClassVar[bool] = False
    """Whether `_fit` gets a frame wherever one came in: models inside of a model need its names."""

    _takes_unlabelled: ClassVar[bool] = False
    """Whether `_fit` takes class variables of which no label is known."""

    _judged_by_few_rows: ClassVar[bool] = True
    """Whether `fit` to a few rows finds `frequency_share_`; not where even a few rows take long."""

    frequency_share_: float = 0.0

    _groups: Codes | None = None
    """Groups (n,) of the rows that `_fit` gets, while it runs. A model that holds rows out, or fits others
    that may, passes them on: rows of one group are held out together."""

    @abstractmethod
    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        """Learn from features and codes (n, m), `UNKNOWN` where a label is missing; weights are positive."""

    @abstractmethod
    def _predict_joint(self, X: Features) -> JointDistribution:
        """Return the joint distribution of the rows of X."""

    @property
    def _goes_on(self) -> bool:
        """Whether `fit` would continue the last fit, which is then kept if it fails."""
        return False

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        """Return the classifiers that get to see X, None for the default; `names` are the class variables."""
        estimator, space = getattr(self, "estimator", None), getattr(self, "space_", None)
        chosen = list(map(with_probabilities, _by_variable(estimator, names)))
        if space is None or space.names != names:  # `fit` has only begun, and checks X
            return chosen
        suited = suited_to_order(chosen, space, chosen_by_name=isinstance(estimator, Mapping))
        return list(map(fitted_to_labels, suited, space.categories))

    @property
    def _note(self) -> str:
        """A remark on how to read the probabilities, shown with every prediction; mostly there is none."""
        return ""

    # -- fitting ------------------------------------------------------------------------------------------

    @final
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the joint distribution of the class variables given the features.

        Parameters
        ----------
        X : array, sparse matrix or frame, shape (n, d)
            Frames of pandas or polars, with columns of any kind. Columns that are no numbers become numbers,
            and missing numbers the median of their column, where an estimator needs it: see `encoder_`.
        y : array, frame, sparse 0/1 matrix or lists, shape (n, m) or (n,)
            Labels of any type; missing ones are allowed (None, NaN, null). A column of booleans, or of zeros
            and ones, has both labels even if only one of them occurs. Rows belong together by position; a
            pandas index that holds the rows of X in another order is an error.
        sample_weight : array, shape (n,), optional
            How many rows each row counts for; a row of weight zero is left out.
        groups : array, shape (n,), optional
            Which rows belong together, such as the measurements of one patient. Wherever rows are held out
            inside of the model, to choose penalties or weights or to calibrate, all rows of a group are: so
            the model is judged as it will be on new groups. Predictions do not need them.

        Returns
        -------
        self
        """
        check_parameters(self)
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        require_same_order("fit: X and y", row_index(X), row_index(y))
        require_same_order("fit: X and sample_weight", row_index(X), row_index(sample_weight))
        require_same_order("fit: X and groups", row_index(X), row_index(groups))
        with self._kept_on_failure():
            names = open_table(y).names()
            X = self._validate(X, self._checked_estimators(names), reset=True)
            space = ClassSpace.from_labels(y)
            codes = space.encode(y)
            warn_many_integers(space, len(codes), type(self).__name__)
            self._require_labels(space, codes)
            if n_rows(X) != len(codes):
                raise InputError(
                    f"X has {n_rows(X)} rows, but y has {len(codes)}; they must be the same rows."
                )
            weights = validate_weights(sample_weight, len(codes))
            groups = validate_groups(self, groups, weights, len(codes))
            self._fit_validated(X, space, codes, weights, groups)
            self.frequency_share_ = self._share_of_frequencies(X, codes, weights, groups)
            return self

    def _share_of_frequencies(
        self, X: Features, codes: Codes, weights: Floats | None, groups: Codes | None
    ) -> float:
        """Return `frequency_share_`; models inside of other models, or with chosen estimators, have none."""
        if not self._judged_by_few_rows or self._goes_on or not are_few(codes, weights):
            return 0.0
        if any(estimator is not None for estimator in self._estimators()):
            return 0.0

        def fit(rows: Positions, some: Floats | None) -> JointClassifier:
            together = None if groups is None else groups[rows]
            return clone(self)._fit_codes(take_rows(X, rows), self.space_, codes[rows], some, together)

        return frequency_share(fit, X, codes, weights, groups)

    def _require_labels(self, space: ClassSpace, codes: Codes) -> None:
        unlabelled = np.flatnonzero((codes == UNKNOWN).all(axis=0))
        if len(unlabelled) and not self._takes_unlabelled:
            raise InputError(
                f"All labels of {space.names[unlabelled[0]]!r} are missing; drop this class variable."
            )

    @contextmanager
    def _kept_on_failure(self) -> Iterator[None]:
        """Restore a model that continues its last fit if the new one fails."""
        before = vars(self).copy() if self._goes_on else None
        try:
            yield
        except BaseException:
            if before is not None:
                self.__dict__.clear()
                self.__dict__.update(before)
            raise

    def _checked_estimators(self, names: tuple[str, ...]) -> list[Any]:
        estimators = self._estimators(names)
        for estimator in estimators:
            if estimator is not None:
                require_probabilities(estimator)
        warn_of_thresholds(estimators, type(self).__name__)
        return estimators

    def _fit_validated(
        self, X: Features, space: ClassSpace, codes: Codes, weights: Floats | None, groups: Codes | None
    ) -> Self:
        """Learn from features in the form that `_validate` returns."""
        if weights is not None and not weights.all() and self._drops_unweighted:
            used = weights > 0
            X, codes, weights = take_rows(X, used), codes[used], weights[used]
            groups = None if groups is None else groups[used]
        X = self._learn_encoder(X, space, codes, weights, groups)
        self.space_ = space
        self.n_samples_fit_ = len(codes)
        self.label_counts_ = [
            label_counts(column, card, weights) for column, card in zip(codes.T, space.cards, strict=True)
        ]
        self.classes_ = space.categories[0] if space.single else list(space.categories)
        self._groups = groups
        try:
            with one_blas_thread():
                self._fit(X, codes, weights)
        except BaseException:
            del self.space_  # what makes a model count as fitted
            raise
        finally:
            del self._groups
        return self

    def _fit_codes(
        self,
        X: Any,
        space: ClassSpace,
        codes: Codes,
        weights: Floats | None,
        groups: Codes | None = None,
    ) -> Self:
        """Learn what `fit` learns, as a part of another model: from codes of labels that are known to it."""
        check_parameters(self)
        X = self._validate(X, self._checked_estimators(space.names), reset=True)
        return self._fit_validated(X, space, codes, weights, groups)

    def _validate(self, X: Any, estimators: list[Any], *, reset: bool = False) -> Features:
        """Return X in the form that these estimators take; its columns are learned (`reset`) or checked."""
        features = validate_features(
            self,
            X,
            reset=reset,
            fussy=next((e for e in estimators if e is not None and not accepts(e, "allow_nan")), None),
            sparse=all(e is None or accepts(e, "sparse") for e in estimators),
            frames=self._columns_given is not None or any(chooses_columns(e) for e in estimators),
        )
        return as_pandas(X) if self._keeps_frames and dependencies.is_into_dataframe(X) else features

    @property
    def _columns_given(self) -> ColumnChoices:
        """The parameter `columns`, which models without features do not have."""
        return getattr(self, "columns", None)

    def _learn_encoder(
        self, X: Features, space: ClassSpace, codes: Codes, weights: Floats | None, groups: Codes | None
    ) -> Features:
        """Set `encoder_`, and return the training rows in the form that `_fit` takes."""
        self.encoder_: FeatureEncoder | TransformerEncoder | None = None
        given = self._columns_given
        if self._feature_form == "raw" and given is None:
            return X
        estimators = [] if self._feature_form == "raw" else self._estimators(space.names)
        self.encoder_ = encoder_for(X, estimators, given, text_is_discrete=self._text_is_discrete)
        if self.encoder_ is None:
            return X
        return self.encoder_.learn_and_apply(
            X, space, codes, weights, groups, read_only=self._feature_form != "numbers"
        )

    def _encode(self, X: Features) -> Features:
        """Return rows to be predicted in the form that `_predict_joint` takes."""
        if self.encoder_ is None:
            return X
        return self.encoder_.apply(X) if self._feature_form == "numbers" else self.encoder_.read(X)

    # -- predicting ---------------------------------------------------------------------------------------

    @final
    def predict_joint(self, X: Any) -> JointPrediction:
        """Joint distribution of the class variables of every row.

        Parameters
        ----------
        X : array, sparse matrix or frame, shape (n, d)
            With the columns of `fit`.
        """
        check_is_fitted(self, "space_")
        return JointPrediction(self._joint_of(X), self.space_, row_index(X), self._note)

    def _joint_of(self, X: Any) -> JointDistribution:
        """Joint distribution of rows X as they come to `predict_joint`."""
        features = self._validate(X, self._estimators())
        with one_blas_thread():
            joint = self._predict_joint(self._encode(features))
        if self.frequency_share_ == 0.0:
            return joint
        return with_frequencies(joint, self.frequency_share_, self.label_counts_)

    def predict(self, X: Any, *, loss: str | Loss = "hamming") -> Any:
        """Labels with the least expected loss, in the container and of the types of the training labels.

        Parameters
        ----------
        X : array, sparse matrix or frame, shape (n, d)
        loss : str or Loss
            "hamming" gives each variable its most probable label, "subset" the most probable combination,
            "f1" and others their own best answer.

        Warns
        -----
        ApproximationWarning
            If the decision rests on estimates, as the marginals of long chains are.
        """
        prediction = self.predict_joint(X)
        return self.space_.decode(prediction._decide(loss, "predict"), prediction.index)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the labels of each variable: a list of arrays (n, k_j), or one if y was 1-D.

        Warns with an `ApproximationWarning` if they are estimates.
        """
        # Those of the joint are remembered and read-only; these are the caller's own.
        marginals = [table.copy() for table in self.predict_joint(X)._marginals("predict_proba")]
        return marginals[0] if self.space_.single else marginals

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        proba = self.predict_proba(X)
        return np.log(proba) if self.space_.single else [np.log(table) for table in proba]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows in which every label is right, as scikit-learn scores several outputs.

        Labels that are missing in `y` are not counted; one that was not there in training is never right.
        """
        answer = self.predict(X)
        return exact_match(y, answer, sample_weight=sample_weight, space=self.space_)

    # -- conventions --------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        estimators = [e for e in self._estimators() if hasattr(e, "fit")]
        tags.input_tags.sparse = all(accepts(e, "sparse") for e in estimators)
        tags.input_tags.allow_nan = self._feature_form == "numbers" or all(
            accepts(e, "allow_nan") for e in estimators
        )
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def _by_variable(estimator: Any, names: tuple[str, ...] | None) -> list[Any]:
    """Return one estimator for each class variable, None for the default.

    Parameters
    ----------
    estimator : classifier, mapping of names to classifiers, or None
        A name may also be the key of a column (0, 1, ...).
    names : tuple of str, or None
        The class variables; where they are not known yet the classifiers alone are returned.
    """
    if not isinstance(estimator, Mapping):
        return [estimator] * (1 if names is None else len(names))
    if names is None:
        return list(estimator.values())
    by_name = {str(name): each for name, each in estimator.items()}
    strange = [name for name in by_name if name not in names]
    if strange:
        raise InputError(
            f"The mapping of estimators names {strange[0]!r}, which is no class variable; these are"
            f" {listing(names)}."
        )
    return [by_name.get(name) for name in names]

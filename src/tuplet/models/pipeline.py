"""Steps before a model, with everything that the model has: `predict_joint`, `save`, `report`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, final

from narwhals.dependencies import is_into_dataframe
from sklearn import config_context
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from tuplet.core.exceptions import InputError
from tuplet.models.files_and_pages import SavedAndReported
from tuplet.models.validation import row_index, text_columns
from tuplet.prediction.joint import JointPrediction
from tuplet.space.classes import ClassSpace
from tuplet.space.features.estimators import group_arguments, name_of, unwrap, weight_arguments


@final
class JointPipeline(SavedAndReported, Pipeline):
    """A scikit-learn pipeline that ends in a model of several class variables and keeps what a model has.

    `make_joint_pipeline` makes one without names for the steps. Parameters, steps, searches and
    cross-validation are those of `Pipeline`.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers, and at the end a model with `predict_joint`.
    transform_input, memory, verbose
        See `sklearn.pipeline.Pipeline`.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from tuplet import ChainClassifier, load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> model = make_joint_pipeline(PCA(2), ChainClassifier()).fit(X.iloc[:, :4].fillna(0), y)
    >>> model.predict_joint(X.iloc[:1, :4]).mode()["species"].tolist()
    ['Adelie']
    """

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, **params: Any
    ) -> Self:
        """Fit all steps one after the other.

        Parameters
        ----------
        X, y
            See `JointClassifier.fit`.
        sample_weight : array, shape (n,), optional
            For every step that takes weights.
        groups : array, shape (n,), optional
            For every step that takes groups.
        **params
            See `sklearn.pipeline.Pipeline.fit`.
        """
        _require_model(self)
        # As in other models: what reads a file for this one must not take text for numbers.
        self.mixed_features_ = is_into_dataframe(X)
        self.text_features_ = text_columns(X)
        given = weight_arguments(self, sample_weight) | group_arguments(self, groups)
        if not given:
            return super().fit(X, y, **params)
        with config_context(enable_metadata_routing=False):  # the arguments name their steps already
            return super().fit(X, y, **given, **params)

    def predict_joint(self, X: Any) -> JointPrediction:
        """Joint distribution of the class variables of every row. See `JointClassifier.predict_joint`."""
        check_is_fitted(self)
        return joint_of(self, X)

    def predict(self, X: Any, **params: Any) -> Any:
        """Labels with the least expected loss, named as the rows of X. See `JointClassifier.predict`."""
        answer, index = super().predict(X, **params), row_index(X)
        return answer if index is None or not hasattr(answer, "set_axis") else answer.set_axis(index)

    @property
    def space_(self) -> ClassSpace:
        """Names and labels of the class variables."""
        space: ClassSpace = self[-1].space_
        return space

    @property
    def label_counts_(self) -> Any:
        """Total training weight of each label of every variable."""
        return self[-1].label_counts_

    @property
    def n_samples_fit_(self) -> int:
        """Number of rows that it learned from."""
        return int(self[-1].n_samples_fit_)


def make_joint_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> JointPipeline:
    """Return transformers and a model as one model, as scikit-learn's `make_pipeline` does.

    Parameters
    ----------
    *steps : transformers and a model
    memory, verbose
        See `sklearn.pipeline.make_pipeline`.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from tuplet import ChainClassifier
    >>> [name for name, _ in make_joint_pipeline(StandardScaler(), ChainClassifier()).steps]
    ['standardscaler', 'chainclassifier']
    """
    return as_joint_pipeline(make_pipeline(*steps, memory=memory, verbose=verbose))


def as_joint_pipeline(pipeline: Pipeline) -> JointPipeline:
    """Return a pipeline, fitted or not, with the same steps and with what a model has."""
    options = {name: value for name, value in pipeline.get_params(deep=False).items() if name != "steps"}
    joint = JointPipeline(pipeline.steps, **options)
    _require_model(joint)
    return joint


def joint_of(fitted: Any, X: Any) -> JointPrediction:
    """Return the joint distribution that a fitted model gives, inside of whatever it was fitted.

    Parameters
    ----------
    fitted : JointClassifier, pipeline, search over parameters or frozen estimator
        Pipelines end in a model with `predict_joint`; so does the best estimator of a search.
    X : features
        As `fitted` takes them.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from tuplet import ChainClassifier
    >>> X, y = [[0], [1], [2], [3]] * 5, [[0, 1], [0, 1], [1, 0], [1, 1]] * 5
    >>> search = GridSearchCV(ChainClassifier(), {"order": [[0, 1], [1, 0]]}, cv=KFold(2)).fit(X, y)
    >>> joint_of(search, [[3]]).mode()
    array([[1, 1]])
    """
    model, inputs = unwrap(fitted, X)
    if not hasattr(model, "predict_joint"):
        raise InputError(
            f"joint_of: {name_of(model)} gives no joint distribution; fit a model of tuplet instead, such as"
            " ChainClassifier()."
        )
    return replace(model.predict_joint(inputs), index=row_index(X))


def _require_model(pipeline: Pipeline) -> None:
    if not pipeline.steps or not hasattr(pipeline.steps[-1][1], "predict_joint"):
        found = repr(pipeline.steps[-1][1]) if pipeline.steps else "no steps"
        raise InputError(
            f"The last step of a JointPipeline must be a model with predict_joint, found {found}."
        )

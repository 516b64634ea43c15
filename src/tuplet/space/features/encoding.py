"""Columns of any kind as numbers, for estimators that take nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.containers import listing
from tuplet.space.features.estimators import accepts, category_limit, name_of, takes_frames
from tuplet.space.features.inputs import (
    Features,
    as_floats,
    as_pandas,
    kind_of,
    number_columns,
    require_finite,
    require_size,
    unused,
)
from tuplet.space.features.nominal import Nominal, days


def encoder_for(X: Features, estimators: Sequence[Any]) -> FeatureEncoder | None:
    """Return an encoder, yet to be fitted, that makes X fit for these estimators; None if it is as it is.

    Parameters
    ----------
    X : float array, CSR matrix, or frame
    estimators : sequence of classifiers
        None is the default classifier.
    """
    requires_complete = any(e is not None and not accepts(e, "allow_nan") for e in estimators)
    if not isinstance(X, pd.DataFrame):
        # Also where nothing is missing yet: a row to be predicted may lack what no training row lacks.
        return FeatureEncoder() if requires_complete and not sparse.issparse(X) else None
    alone = [e for e in estimators if e is not None and takes_frames(e)]
    if len(alone) == len(estimators):
        return None
    if alone:
        raise InputError(
            f"X has columns that are no numbers; the pipeline of {name_of(alone[0])} treats them by itself,"
            " but the estimators of other class variables cannot. Begin each of those with a transformer:"
            " make_pipeline(FeatureEncoder(), ...), from tuplet.space.features.encoding."
        )
    limit = min(0 if e is None else category_limit(e) for e in estimators)
    return FeatureEncoder(impute=requires_complete, keep_categories=limit)


@final
class FeatureEncoder(TransformerMixin, BaseEstimator):
    """Numbers, booleans, text, categories and dates as columns of numbers.

    | column | becomes |
    |---|---|
    | numbers and booleans | numbers; the median of the training rows where missing |
    | dates and lengths of time | days (since 1970), then as numbers |
    | two values, none missing in training | one 0/1 column, for the second value |
    | any other | one 0/1 column for each value; all are zero where it is missing or new |

    Values come in the order that a pandas Categorical or a polars Enum declares, ordered or not, otherwise
    sorted. Declared values that no training row shows get no column.

    Parameters
    ----------
    impute : bool
        Whether missing numbers are filled in; otherwise they stay NaN.
    keep_categories : int
        A column with so many values at most, for which not a single 0/1 column will do, stays one column: a
        pandas Categorical of codes, behind the others. For estimators that support it.
        `transform` then returns a frame.

    Attributes
    ----------
    medians_ : array, shape (q,)
        What missing numbers become, for each column of numbers and then of dates; 0 where a column has no
        value. None if `impute` is False.
    categories_ : dict
        From the names of columns that are no numbers to their values.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a frame.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1.0, None, 3.0], "sex": ["f", "m", "m"], "place": ["a", "b", "c"]})
    >>> encoder = FeatureEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'sex=m', 'place=a', 'place=b', 'place=c']
    >>> encoder.transform(pd.DataFrame({"size": [None], "sex": ["m"], "place": ["elsewhere"]}))
    array([[2., 1., 0., 0., 0.]])
    """

    def __init__(self, *, impute: bool = True, keep_categories: int = 0) -> None:
        self.impute = impute
        self.keep_categories = keep_categories

    # -- scikit-learn's interface -------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians and values from an array, or a frame of pandas or polars."""
        return self.learn(validated_columns(self, X, reset=True))

    def transform(self, X: Any) -> Any:
        """Columns of numbers: an array (n, w), or a frame if categories are kept."""
        check_is_fitted(self)
        return self.apply(validated_columns(self, X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns of the answer, such as "size" and "place=coast"."""
        check_is_fitted(self)
        names = self._names
        if input_features is not None:
            given = [str(name) for name in input_features]
            if len(given) != len(names) or (hasattr(self, "feature_names_in_") and given != names):
                raise InputError("input_features is not equal to feature_names_in_, the columns of fit.")
            names = given
        behind = [names[each.source] for each in self._kept]
        return np.array([*self._number_names(names), *behind], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    # -- the same for X that is known to be in order -------------------------------------------------------

    def learn(self, X: Features) -> Self:
        """See `fit`; X is a float array or a pandas frame."""
        self.n_features_in_ = X.shape[1]
        self._names = [f"x{j}" for j in range(X.shape[1])]
        columns: list[pd.Series] = []
        if isinstance(X, pd.DataFrame):
            self._names = [str(name) for name in X.columns]
            if all(isinstance(name, str) for name in X.columns):
                self.feature_names_in_ = np.array(self._names, dtype=object)
            columns = [column for _, column in X.items()]
        self._place(columns)
        require_size("X with a column for each value of its text", len(X), self._width)
        self.medians_ = _medians(self._numbers(X)) if self.impute else None
        return self

    def _place(self, columns: list[pd.Series]) -> None:
        """Find out what each column of X is, none for an array, and where in the answer it goes."""
        kinds = np.array([kind_of(column) for column in columns] or ["number"] * self.n_features_in_)
        self._numeric, self._dates = np.flatnonzero(kinds == "number"), np.flatnonzero(kinds == "date")
        nominal = [
            Nominal.learn(j, columns[j], self.keep_categories)
            for j in np.flatnonzero(kinds == "nominal").tolist()
        ]
        widths = np.ones(self.n_features_in_, dtype=np.intp)
        for each in nominal:
            widths[each.source] = each.width
        starts = np.cumsum(widths) - widths
        self._width = int(widths.sum())
        self._targets = starts[np.concatenate([self._numeric, self._dates])]
        self._one_hot = [each.at(int(starts[each.source])) for each in nominal if not each.kept]
        self._kept = [each for each in nominal if each.kept]
        self.categories_ = {self._names[each.source]: each.categories for each in nominal}
        if not self._width and not self._kept:
            raise InputError(f"All values of X are missing, in the column {listing(self._names, 5)}.")

    def apply(self, X: Features) -> Features:
        """See `transform`; X is a float array or a pandas frame, with the columns of `fit`."""
        numbers = self._numbers(X)
        if self.medians_ is not None:
            numbers = _fill(numbers, self.medians_)
        if len(self._numeric) == self.n_features_in_:
            return numbers
        answer = np.zeros((len(numbers), self._width))
        answer[:, self._targets] = numbers
        columns = [column for _, column in X.items()]
        for each in self._one_hot:
            each.write(each.codes(columns[each.source]), answer)
        return self._with_categories(answer, columns) if self._kept else answer

    def _numbers(self, X: Features) -> Floats:
        """Return the columns (n, q) that are numbers, then those that are dates."""
        if not isinstance(X, pd.DataFrame):
            if self.categories_ or len(self._dates):
                raise InputError(f"X must be a frame with the {self.n_features_in_} columns of fit.")
            return np.asarray(X)
        part = X.iloc[:, self._numeric]
        strange = part.columns[~number_columns(part)]
        if len(strange):
            raise InputError(f"X must hold numbers in the column {listing(strange, 5)}, as in fit.")
        return np.column_stack(
            [as_floats(part), *(days(column) for _, column in X.iloc[:, self._dates].items())]
        )

    def _with_categories(self, numbers: Floats, columns: list[pd.Series]) -> pd.DataFrame:
        frame = pd.DataFrame(numbers, columns=self._number_names(self._names))
        kept = {
            self._names[each.source]: pd.Categorical.from_codes(
                each.codes(columns[each.source]), categories=pd.RangeIndex(len(each.categories))
            )
            for each in self._kept
        }
        return pd.concat([frame, pd.DataFrame(kept)], axis=1)

    def _number_names(self, names: list[str]) -> list[str]:
        labels = [label for each in self._one_hot for label in each.labels(names[each.source])]
        plain = [names[j] for j in (*self._numeric, *self._dates)]
        answer = np.empty(self._width, dtype=object)
        answer[self._targets] = plain
        rest = np.setdiff1d(np.arange(self._width), self._targets)
        answer[rest] = unused(labels, [*plain, *(names[each.source] for each in self._kept)])
        return list(answer)


def validated_columns(transformer: BaseEstimator, X: Any, *, reset: bool) -> Features:
    """Return X of a transformer's `fit` (`reset`) or `transform` as a float array or a pandas frame.

    Columns of a frame may be of any kind. `n_features_in_` and `feature_names_in_` are set or checked.
    """
    X = as_pandas(X)
    if not isinstance(X, pd.DataFrame):
        return validate_data(transformer, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
    validate_data(transformer, X, skip_check_array=True, reset=reset)
    require_finite(X)
    return X


def _medians(numbers: Floats) -> Floats:
    """Return the medians (q,) of what is there in each column, 0 where nothing is."""
    gaps = np.isnan(numbers)
    if not gaps.any():
        return np.median(numbers, axis=0)
    medians, some = np.zeros(numbers.shape[1]), ~gaps.all(axis=0)
    medians[some] = np.nanmedian(numbers[:, some], axis=0)
    return medians


def _fill(numbers: Floats, values: Floats) -> Floats:
    """Return numbers (n, q) with values (q,) in the place of NaN, itself if there is none."""
    gaps = np.isnan(numbers)
    return np.where(gaps, values, numbers) if gaps.any() else numbers

"""Columns of any kind as numbers, for estimators that take nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tuplet.core.exceptions import InputError
from tuplet.core.parameters import Whole, check_parameters, declare
from tuplet.core.typing import Codes, Floats
from tuplet.space.classes import ClassSpace
from tuplet.space.features.estimators import accepts, category_limit, name_of, takes_frames
from tuplet.space.features.inputs import Features, as_floats, as_pandas, require_finite
from tuplet.space.features.matrix import NumberMatrix
from tuplet.space.features.rates import LabelIndicators
from tuplet.space.features.reading import TableReader

ColumnChoices: TypeAlias = Any
"""Names of columns with their kinds, a transformer that takes the place of `FeatureEncoder`, or None."""


def encoder_for(
    X: Features, estimators: Sequence[Any], columns: ColumnChoices = None, *, text_is_discrete: bool = False
) -> FeatureEncoder | TransformerEncoder | None:
    """Return an encoder, yet to be fitted, that makes X fit for these estimators; None if it is as it is.

    Parameters
    ----------
    X : float array, CSR matrix, or frame
    estimators : sequence of classifiers
        None is the default classifier.
    columns : mapping of names to kinds, transformer, or None
        What users have declared.
    text_is_discrete : bool
        See `TableReader.learn`.
    """
    matrix = matrix_for(X, estimators)
    if columns is None:
        if matrix is None:
            return None
        return FeatureEncoder._of(matrix, {}, text_is_discrete)
    alone = [e for e in estimators if e is not None and takes_frames(e)]
    if alone:
        raise InputError(
            f"columns has no effect, because the pipeline of {name_of(alone[0])} treats the columns of X by"
            " itself; leave out either."
        )
    if isinstance(columns, FeatureEncoder):
        columns = columns.columns or {}
    matrix = matrix or NumberMatrix(impute=False)
    if not isinstance(columns, Mapping):
        return TransformerEncoder(clone(columns), matrix)
    if not isinstance(X, pd.DataFrame):
        raise InputError("columns names columns of a frame, but X has no names; pass pandas.DataFrame(X).")
    return FeatureEncoder._of(matrix, columns, text_is_discrete)


def matrix_for(X: Features, estimators: Sequence[Any]) -> NumberMatrix | None:
    """Return how numbers and categories become the numbers that these estimators take; None if X does."""
    requires_complete = any(e is not None and not accepts(e, "allow_nan") for e in estimators)
    if not isinstance(X, pd.DataFrame):
        # Also where nothing is missing yet: a row to be predicted may lack what no training row lacks.
        return NumberMatrix(impute=True) if requires_complete and not sparse.issparse(X) else None
    alone = [e for e in estimators if e is not None and takes_frames(e)]
    if alone and len(alone) == len(estimators):
        return None
    if alone:
        raise InputError(
            f"The pipeline of {name_of(alone[0])} treats the columns of X by itself, but the estimators of"
            " other class variables cannot. Begin each of those with a transformer:"
            " make_pipeline(FeatureEncoder(), ...)."
        )
    limit = min((0 if e is None else category_limit(e) for e in estimators), default=0)
    return NumberMatrix(impute=requires_complete, keep_categories=limit)


@final
class FeatureEncoder(TransformerMixin, BaseEstimator):
    """Numbers, booleans, dates, text and categories as columns of numbers.

    What a column is, its kind, is decided from the training rows; `summary` shows it, with the reason.

    | kind | columns | become |
    |---|---|---|
    | number | numbers, booleans, numbers as text in one style | numbers; the training median where missing |
    | date | dates, dates as text of one format | days; waves of season, weekday, hour if they vary |
    | category | few values | a 0/1 column for each, one for both of two; rare values share one |
    | target | many values | log-odds of labels given the value |
    | text | three words or more on average | TF-IDF weights of terms |
    | drop | see below | nothing |

    Left out are constant and empty columns; text that differs in 95 % of the rows, with a warning; and
    columns of many values that do not help to predict held-out labels. Of a text, up to 100 terms are used
    that are correlated with a label. Integers that count the rows are kept, with a warning; if
    they are correlated with no label, numbers of new rows beyond those of the training rows are missing.

    Numbers as text may have a decimal comma, marks between thousands, a currency, or a percent sign (45% is
    0.45). One number that can be read in one way only decides for its column; if there is none, other columns
    of text decide if they agree. Otherwise 1,234 is 1234 and 1.234 is 1.234, but € 1.234 is 1234, and 1,234%
    is 0.01234. New rows are read as the training rows were. If all their numbers have the other decimal mark,
    they are read with that; other texts are missing. Both with a warning.

    Missing and new values of a category have zeros in all its columns, and new ones count as rare if there
    are rare ones. Categories come in the order that a pandas Categorical or a polars Enum declares,
    otherwise sorted. An array of numbers is left as it is, except for missing values.

    Parameters
    ----------
    columns : mapping of str to str, optional
        Kinds of columns that are not what their values suggest: {"ward": "drop", "code": "category"}. A date
        can also be declared by its format, {"seen": "%m/%d/%Y"}, numbers as text by "decimal comma" or
        "decimal point".
    impute : bool
        Whether missing numbers are filled in; otherwise they stay NaN.
    keep_categories : int
        A category with so many values at most, for which not a single 0/1 column will do, stays one column: a
        pandas Categorical of codes, behind the others. For estimators that support it.
        `transform` then returns a frame.

    Attributes
    ----------
    reader_ : TableReader or None
        How each column is read; None if X was an array.
    medians_ : array, shape (q,)
        What missing numbers become, for each column of numbers; 0 where a column has no value. None if
        `impute` is False.
    categories_ : dict
        From the names of categories to their values.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X was a frame.

    Notes
    -----
    A column of kind "target" is encoded out of fold: `fit_transform` gives each training row log-odds from
    the other four fifths of the rows. So `fit_transform` and `fit` followed by `transform` differ there. It
    needs labels `y`; without them the most frequent values have 0/1 columns, and the most frequent terms of a
    text are used.

    Examples
    --------
    >>> frame = pd.DataFrame({"size": [1.0, None, 3.0], "sex": ["f", "m", "m"], "place": ["a", "b", "c"]})
    >>> encoder = FeatureEncoder().fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'sex=m', 'place=a', 'place=b', 'place=c']
    >>> encoder.transform(pd.DataFrame({"size": [None], "sex": ["m"], "place": ["elsewhere"]}))
    array([[2., 1., 0., 0., 0.]])
    >>> encoder.summary()[["column", "kind", "n_columns", "reason"]]
      column      kind  n_columns    reason
    0   size    number          1   numbers
    1    sex  category          1  2 values
    2  place  category          3  3 values
    """

    _parameters = declare("columns", impute=bool, keep_categories=Whole(at_least=0))

    def __init__(
        self,
        columns: Mapping[Any, str] | None = None,
        *,
        impute: bool = True,
        keep_categories: int = 0,
    ) -> None:
        self.columns = columns
        self.impute = impute
        self.keep_categories = keep_categories

    @classmethod
    def _of(cls, matrix: NumberMatrix, columns: Mapping[Any, str], text_is_discrete: bool) -> Self:
        encoder = cls(columns or None, impute=matrix.impute, keep_categories=matrix.keep_categories)
        encoder._text_is_discrete = text_is_discrete
        return encoder

    _text_is_discrete: bool = False

    # -- scikit-learn's interface -------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from an array, or a frame of pandas or polars, and from labels if there are any."""
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn from X and labels, and return the columns of numbers; see the notes."""
        columns = self._fit(X, y)
        return self.matrix_.apply(columns)

    def _fit(self, X: Any, y: Any) -> Features:
        check_parameters(self)
        return self._learn(validated_columns(self, X, reset=True), _indicators(y))

    def transform(self, X: Any) -> Any:
        """Columns of numbers: an array (n, w), or a frame if categories are kept."""
        check_is_fitted(self)
        return self.apply(validated_columns(self, X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the columns of the answer, such as "size" and "place=coast"."""
        check_is_fitted(self)
        names = self.matrix_.names
        if input_features is not None:
            given = [str(name) for name in input_features]
            if len(given) != len(self._names) or (
                hasattr(self, "feature_names_in_") and given != self._names
            ):
                raise InputError("input_features is not equal to feature_names_in_, the columns of fit.")
            names = names if self.reader_ is not None else given
        return np.array(self.matrix_.names_out(names), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    # -- what was learned ---------------------------------------------------------------------------------

    def summary(self) -> pd.DataFrame:
        """What each column of X became, and why.

        Returns
        -------
        DataFrame
            `column`, its `kind`, `n_columns` of numbers that it became, what these are (`became`), and the
            `reason` for the kind.
        """
        check_is_fitted(self)
        widths = dict(zip(self.matrix_.names, self.matrix_.widths(), strict=True))
        if self.reader_ is None:
            rows = [(name, "number", 1, name, "an array of numbers") for name in self._names]
        else:
            rows = [
                (name, kind, sum(widths[each] for each in new), self._became(new), reason)
                for name, kind, new, reason in zip(
                    self._names, self.reader_.kinds, self.reader_.names, self.reader_.reasons, strict=True
                )
            ]
        return pd.DataFrame(rows, columns=["column", "kind", "n_columns", "became", "reason"])

    def _became(self, names: Sequence[str]) -> str:
        """Return the names of columns of numbers in a few words."""
        values = [value for name in names for value in self.categories_.get(name, ())]
        if values:
            return "0/1: " + _some([str(value) for value in values])
        return _some(names) or "-"

    # -- the same for X that is known to be in order -------------------------------------------------------

    def learn(self, X: Features) -> Self:
        """See `fit`; X is a float array or a pandas frame."""
        self._learn(X, None)
        return self

    def learn_and_apply(
        self,
        X: Features,
        space: ClassSpace,
        codes: Codes,
        weights: Floats | None,
        groups: Codes | None = None,
        *,
        read_only: bool = False,
    ) -> Features:
        """Learn from X and codes (n, m) of labels, and return the training rows.

        They are numbers, or with `read_only` columns of numbers and categories, as `read` returns them.
        """
        labels = LabelIndicators.of(space, codes, weights, groups) if isinstance(X, pd.DataFrame) else None
        columns = self._learn(X, labels)
        return columns if read_only else self.matrix_.apply(columns)

    def _learn(self, X: Features, labels: LabelIndicators | None) -> Features:
        """Learn, and return the training rows as they are read."""
        self.n_features_in_ = X.shape[1]
        self._names = [f"x{j}" for j in range(X.shape[1])]
        self.reader_ = None
        if isinstance(X, pd.DataFrame):
            self._names = [str(name) for name in X.columns]
            if all(isinstance(name, str) for name in X.columns):
                self.feature_names_in_ = np.array(self._names, dtype=object)
            self.reader_, X = TableReader.learn(
                X, self.columns, labels, text_is_discrete=self._text_is_discrete
            )
        self.matrix_ = NumberMatrix(impute=self.impute, keep_categories=self.keep_categories).learn(X)
        self.medians_ = self.matrix_.medians
        self.categories_ = {self.matrix_.names[each.source]: each.categories for each in self.matrix_.nominal}
        return X

    def read(self, X: Features) -> Features:
        """Return X with columns of numbers and categories only."""
        if self.reader_ is None:
            return X
        if not isinstance(X, pd.DataFrame):
            raise InputError(f"X must be a frame with the {self.n_features_in_} columns of fit.")
        return self.reader_.read(X)

    def apply(self, X: Features) -> Features:
        """See `transform`; X is a float array or a pandas frame, with the columns of `fit`."""
        return self.matrix_.apply(self.read(X))


@final
class TransformerEncoder:
    """A transformer of the user in the place of `FeatureEncoder`.

    Parameters
    ----------
    transformer : transformer
        Takes X and returns numbers, in an array, a frame or a sparse matrix.
    matrix : NumberMatrix
        What is done with missing values.
    """

    def __init__(self, transformer: Any, matrix: NumberMatrix) -> None:
        self.transformer, self.matrix_ = transformer, matrix

    def learn(self, X: Features) -> Self:
        """Fit the transformer to X."""
        self._learn(X)
        return self

    def learn_and_apply(
        self,
        X: Features,
        space: ClassSpace,
        codes: Codes,
        weights: Floats | None,
        groups: Codes | None = None,
        *,
        read_only: bool = False,
    ) -> Features:
        """Fit the transformer to X alone, and return the training rows; see `FeatureEncoder`."""
        numbers = self._learn(X)
        return numbers if read_only or sparse.issparse(numbers) else self.matrix_.apply(numbers)

    def _learn(self, X: Features) -> Features:
        numbers = _as_numbers(self.transformer.fit_transform(X))
        if not sparse.issparse(numbers):
            self.matrix_.learn(numbers)
        return numbers

    def read(self, X: Features) -> Features:
        """Return what the transformer makes of X."""
        return _as_numbers(self.transformer.transform(X))

    def apply(self, X: Features) -> Features:
        """Return X in numbers."""
        numbers = self.read(X)
        return numbers if sparse.issparse(numbers) else self.matrix_.apply(numbers)

    def get_feature_names_out(self) -> npt.NDArray[np.object_]:
        """Names of the columns that the transformer returns."""
        return np.asarray(self.transformer.get_feature_names_out(), dtype=object)


def _as_numbers(X: Any) -> Features:
    """Return what a transformer returned as a float array, or as a CSR matrix."""
    if sparse.issparse(X):
        table: Any = X
        return table.tocsr().astype(float)
    X = as_pandas(X)
    return as_floats(X) if isinstance(X, pd.DataFrame) else np.asarray(X, dtype=float)


def _some(names: Sequence[str], most: int = 4) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _indicators(y: Any) -> LabelIndicators | None:
    if y is None:
        return None
    space = ClassSpace.from_labels(y)
    return LabelIndicators.of(space, space.encode(y))


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

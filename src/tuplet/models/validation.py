"""What users pass as X and sample_weight, checked and brought into the forms that models work with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import narwhals.dependencies as kinds
import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from tuplet.exceptions import InputError
from tuplet.local.estimators import name_of
from tuplet.local.inputs import Features
from tuplet.space.labels import show
from tuplet.typing import Floats

__all__ = ["as_pandas", "row_index", "validate_features", "validate_weights"]

_NUMBERS = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}
"""What pandas calls columns of objects that are all numbers."""


class _NotNumbersError(InputError, TypeError):
    """Features that are no numbers at all; a TypeError too, as scikit-learn has it."""


def validate_features(model: Any, X: Any, *, reset: bool, picky: Any, sparse: bool, mixed: bool) -> Features:
    """Return X as a float array, a CSR matrix, or a pandas frame where its columns are not all numbers.

    Parameters
    ----------
    model : estimator
        Learns `n_features_in_`, `feature_names_in_` and `mixed_features_` if `reset`, is asked for them
        otherwise.
    X : array, sparse matrix, or frame of pandas, polars or anything that narwhals reads
    picky : estimator or None
        The one that does not take missing values; None if all of them do.
    sparse, mixed : bool
        Whether the model takes sparse input, and frames with columns that are no numbers.
    """
    _check_container(X)
    frame = as_pandas(X)
    try:
        if isinstance(frame, pd.DataFrame):
            return _frame(model, frame, reset, picky, mixed)
        if not reset and model.mixed_features_:
            raise InputError(
                f"X must be a frame with the {model.n_features_in_} columns of fit, found {type(X).__name__}."
            )
        return _as_numbers(model, frame, reset, picky, sparse)
    except InputError:
        raise
    except ValueError as error:  # scikit-learn's messages are clear; only their type is not ours
        raise InputError(str(error)) from None


def _check_container(X: Any) -> None:
    if X is None:
        raise InputError("X is None; pass an array, a sparse matrix or a frame with one row for each of y.")
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if isinstance(first, Mapping) and not issparse(X):  # one kind of sparse matrix is a dict, too
        raise InputError("X holds dicts; pass pandas.DataFrame(X).")


def _frame(model: Any, frame: pd.DataFrame, reset: bool, picky: Any, mixed: bool) -> Features:
    if not frame.shape[1]:
        raise InputError(f"X has no columns (shape {frame.shape}); at least one feature is needed.")
    _check_names(frame)
    validate_data(model, frame, skip_check_array=True, reset=reset)  # against the names of fit
    text = [str(name) for name, column in frame.items() if not _is_number(column)]
    keep = bool(text) if reset else model.mixed_features_
    if text and not (mixed if reset else keep):
        raise InputError(_what_to_do(model, text, reset))
    if not keep:
        return _as_numbers(model, frame, reset, picky, sparse=False)
    _check_values(frame)
    if reset:
        model.mixed_features_ = True
    return frame


def _check_names(frame: pd.DataFrame) -> None:
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"X has several columns of the same name: {_list(twice)}; rename or drop them.")
    if len({isinstance(name, str) for name in frame.columns}) > 1:
        raise InputError("X has columns whose names are strings and others; rename them all to strings.")


def _check_values(frame: pd.DataFrame) -> None:
    if not len(frame):
        raise InputError("X has no rows.")
    infinite = [name for name, column in frame.items() if _is_number(column) and _has_infinity(column)]
    if infinite:
        raise InputError(f"X contains infinity, in the column {_list(infinite)}; replace it by a number.")


def _as_numbers(model: Any, X: Any, reset: bool, picky: Any, sparse: bool) -> Features:
    finite = "allow-nan" if picky is None else True
    accepted = "csr" if sparse else False
    if issparse(X) and not sparse:
        raise InputError("X is a sparse matrix, which the estimator does not take; pass X.toarray().")
    try:
        array = validate_data(
            model, X, reset=reset, accept_sparse=accepted, ensure_all_finite=finite, dtype=np.float64
        )
    except (TypeError, ValueError) as error:
        if "contains NaN" in str(error) and picky is not None:
            raise InputError(_missing(X, name_of(picky))) from None
        if isinstance(error, ValueError) and "could not convert" not in str(error):
            raise
        kind = InputError if isinstance(error, ValueError) else _NotNumbersError
        raise kind(
            f"X must hold numbers ({error}); encode the others, or pass a frame and an estimator that treats"
            " its columns."
        ) from None
    if reset:
        model.mixed_features_ = False
    return array


def _missing(X: Any, estimator: str) -> str:
    """Return whom a missing value in X disturbs, where it is and what to do."""
    where = ""
    if not issparse(X):
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        first = int(frame.isna().any(axis=0).to_numpy().argmax())
        where = f" in column {show(frame.columns[first])}"
    return (
        f"{estimator} does not take missing values (NaN{where} of X); put a SimpleImputer before it:"
        f" make_pipeline(SimpleImputer(), {estimator}(...))."
    )


def _what_to_do(model: Any, text: list[str], reset: bool) -> str:
    found = f"{type(model).__name__}: X must hold numbers, but the column {_list(text)} does not"
    if len(text) > 1:
        found = f"{type(model).__name__}: X must hold numbers, but the columns {_list(text)} do not"
    if not reset:
        return f"{found}, unlike in fit."
    return (
        f"{found}. Encode or drop what is no number, or pass an estimator that can treat it:"
        " Pipeline([('columns', ColumnTransformer([...])), ('classifier', ...)])."
    )


def as_pandas(X: Any) -> Any:
    """Return frames of other libraries as pandas frames; anything else as it is."""
    if kinds.is_polars_lazyframe(X):
        raise InputError("X is a lazy frame; collect() it first.")
    if isinstance(X, pd.DataFrame) or not kinds.is_into_dataframe(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    return pd.DataFrame({name: _pandas_column(frame[name]) for name in frame.columns})


def _pandas_column(column: nw.Series[Any]) -> Any:
    # By hand, because the libraries' own conversions need pyarrow.
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return column.cast(nw.Float64).to_numpy()
    if isinstance(column.dtype, nw.Categorical | nw.Enum):
        return pd.Categorical(column.to_list(), categories=column.cat.get_categories().to_list())
    return pd.Series(column.to_list())


def row_index(X: Any) -> pd.Index | None:
    """Return the names of the rows of X (or of labels or weights), which only pandas has."""
    return X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None


def validate_weights(sample_weight: Any, n: int) -> Floats | None:
    """Return weights (n,) as floats: finite, not negative, not all zero."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise InputError("sample_weight must hold one number per row of X.") from None
    if weights.shape != (n,):
        raise InputError(f"sample_weight must be of shape ({n},), as X has {n} rows; found {weights.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("sample_weight must hold finite numbers that are not negative.")
    if not weights.any():
        raise InputError("sample_weight holds nothing but zeros; at least one weight must not be zero.")
    return weights


def _is_number(column: pd.Series) -> bool:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS


def _has_infinity(column: pd.Series) -> bool:
    return bool(np.isinf(pd.to_numeric(column).to_numpy(dtype=float, na_value=np.nan)).any())


def _list(names: Any) -> str:
    shown = [repr(str(name)) for name in list(names)[:5]]
    return ", ".join(shown) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

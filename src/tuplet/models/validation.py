"""What users pass as X, sample_weight and groups, checked and in the forms that models work with."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from tuplet.core.exceptions import InputError, TupletWarning, warn_outside
from tuplet.core.typing import Codes, Floats
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.features.estimators import is_one_of, last_step, name_of
from tuplet.space.features.inputs import Features, as_floats, as_pandas, number_columns, require_finite
from tuplet.space.features.labelled import without_labels
from tuplet.space.features.reading import warn_of_counters

_MANY_INTEGERS = 50
"""Whole numbers among the labels of one variable beyond which they may be quantities."""


_THRESHOLDS = {"sklearn": ("FixedThresholdClassifier", "TunedThresholdClassifierCV")}


class _NotNumbersError(InputError, TypeError):
    """Features that are no numbers at all; a TypeError too, as scikit-learn has it."""


def validate_features(model: Any, X: Any, *, reset: bool, fussy: Any, sparse: bool, frames: bool) -> Features:
    """Return X as a float array, a CSR matrix, or a pandas frame where its columns are not all numbers.

    Parameters
    ----------
    model : estimator
        Learns `n_features_in_`, `feature_names_in_`, `mixed_features_` and `text_features_` if `reset`, is
        asked for them otherwise.
    X : array, sparse matrix, or frame of pandas, polars or anything that narwhals reads
        NaN in an array or a frame is a missing value.
    fussy : estimator or None
        One that does not take missing values, which are not filled in among sparse ones; None if all do.
    sparse : bool
        Whether the model takes sparse input.
    frames : bool
        Whether a frame stays a frame even if all its columns are numbers.
    """
    _check_container(X)
    frame = as_pandas(X)
    try:
        if isinstance(frame, pd.DataFrame):
            return _frame(model, frame, reset, frames)
        if not reset and model.mixed_features_:
            raise InputError(
                f"X must be a frame with the {model.n_features_in_} columns of fit, found {type(X).__name__}."
            )
        return _as_numbers(model, frame, reset, fussy, sparse)
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


def _frame(model: Any, frame: pd.DataFrame, reset: bool, frames: bool) -> Features:
    if not frame.shape[1]:
        raise InputError(f"X has no columns (shape {frame.shape}); at least one feature is needed.")
    _check_names(frame)
    validate_data(model, frame, skip_check_array=True, reset=reset)  # against the names of fit
    text = frame.columns[~number_columns(frame)].tolist()
    keep = bool(text or frames) if reset else model.mixed_features_
    if reset:
        model.text_features_ = text_columns(frame)
    if text and not keep:
        raise InputError(
            f"{type(model).__name__}: X must hold numbers, but the column{'s' if len(text) > 1 else ''}"
            f" {listing(text, 5)} {'do' if len(text) > 1 else 'does'} not, unlike in fit."
        )
    if not keep:
        if reset:
            warn_of_counters(frame)
        return _as_numbers(model, _plain(frame), reset, None, sparse=False)
    require_finite(frame)
    if reset:
        model.mixed_features_ = True
    return frame


def text_columns(X: Any) -> list[str]:
    """Return the columns of a frame whose values are text; none of anything else."""
    frame = as_pandas(X)
    if not isinstance(frame, pd.DataFrame):
        return []
    return [name for name in frame.columns[~number_columns(frame)] if _is_text(frame[name])]


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of numbers without columns of objects or of pandas' own types, which have other gaps."""
    if all(isinstance(dtype, np.dtype) and dtype.kind != "O" for dtype in frame.dtypes):
        return frame
    return pd.DataFrame(as_floats(frame), index=frame.index, columns=frame.columns)


def _check_names(frame: pd.DataFrame) -> None:
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise InputError(f"X has several columns of the same name: {listing(twice, 5)}; rename or drop them.")
    if len({isinstance(name, str) for name in frame.columns}) > 1:
        raise InputError("X has columns whose names are strings and others; rename them all to strings.")


def _as_numbers(model: Any, X: Any, reset: bool, fussy: Any, sparse: bool) -> Features:
    if not reset and _is_sound(model, X):
        return X
    if issparse(X) and not sparse:
        raise InputError("X is a sparse matrix, which the estimator does not take; pass X.toarray().")
    accepted = "csr" if sparse else False
    try:
        array = validate_data(
            model, X, reset=reset, accept_sparse=accepted, ensure_all_finite="allow-nan", dtype=np.float64
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError) and "could not convert" not in str(error):
            raise
        kind = InputError if isinstance(error, ValueError) else _NotNumbersError
        raise kind(
            f"X must hold numbers ({error}); columns of other kinds may come in a frame, pandas.DataFrame(X)."
        ) from None
    if fussy is not None and issparse(X) and np.isnan(array.data).any():
        raise InputError(
            f"{name_of(fussy)} does not take missing values (NaN of X), and in a sparse matrix they are not"
            f" filled in; pass X.toarray() or make_pipeline(SimpleImputer(), {name_of(fussy)}(...))."
        )
    if reset:
        model.mixed_features_ = False
        model.text_features_ = []
    return array


def _is_sound(model: Any, X: Any) -> bool:
    """Return whether rows to be predicted are an array of finite numbers that needs no further check.

    For a single row, scikit-learn's checks take as long as all the rest.
    """
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.flags.c_contiguous
    if not plain or not len(X) or X.shape[1] != model.n_features_in_ or hasattr(model, "feature_names_in_"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


def _is_text(column: pd.Series) -> bool:
    values = column.dtype.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    return pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty")


def row_index(X: Any) -> pd.Index | None:
    """Return the names of the rows of X (or of labels or weights), which only pandas has."""
    return X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None


def warn_many_integers(space: ClassSpace, n: int, model: str) -> None:
    """Warn of class variables whose labels are so many whole numbers that they rather are quantities.

    Parameters
    ----------
    space : ClassSpace
    n : int
        Number of training rows.
    model : str
        For the message.
    """
    for name, values in zip(space.names, space.categories, strict=True):
        if values.dtype.kind in "iu" and len(values) > max(_MANY_INTEGERS, n / 10):
            warn_outside(
                f"{model}: the class variable {name!r} has {len(values):,} different whole numbers in {n:,}"
                " rows; each is a label of its own. If it is a quantity, cut it into a few intervals, for"
                " example with pandas.qcut, or use a regression.",
                TupletWarning,
            )


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


def validate_groups(model: Any, groups: Any, weights: Floats | None, n: int) -> Codes | None:
    """Return the groups (n,) of rows as numbers from 0, in the order of their names; None if there is one.

    Warns if a model is to make more folds than there are groups among the rows that have weight.
    """
    if groups is None:
        return None
    codes = _group_numbers(groups, n)
    n_groups = len(np.unique(codes if weights is None else codes[weights > 0]))
    if n_groups < 2:
        _warn("groups holds a single group, so rows are held out as if there were no groups.")
        return None
    n_folds = getattr(model, "cv", getattr(model, "n_folds", 2))
    if isinstance(n_folds, int) and n_folds > n_groups:
        _warn(f"{n_folds} folds are to be made of {n_groups} groups; each group is held out once.")
    return codes


def _group_numbers(groups: Any, n: int) -> Codes:
    values = np.asarray(groups)
    if values.shape != (n,):
        raise InputError(f"groups must be of shape ({n},), as X has {n} rows; found {values.shape}.")
    column = pd.Series(values)
    missing = int(column.isna().sum())
    if missing:
        raise InputError(
            f"groups has {missing} missing value{'s' * (missing > 1)}; give each of these rows a group, such"
            " as one of its own."
        )
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:  # names of several types have no order
        return pd.factorize(column.map(repr), sort=True)[0]


def _warn(text: str) -> None:
    warnings.warn(text, TupletWarning, stacklevel=4)


def warn_of_thresholds(estimators: Iterable[Any], model: str) -> None:
    """Warn of estimators whose own decisions, by a threshold, are not asked for."""
    names = [name_of(each) for each in estimators if is_one_of(last_step(without_labels(each)), _THRESHOLDS)]
    if names:
        warn_outside(
            f"{model}: the threshold of {names[0]} has no effect, because its probabilities alone are used."
            " For decisions other than the most probable labels use predict(X, loss=...), such as"
            " loss=tuplet.losses.CostMatrix(...).",
            TupletWarning,
        )

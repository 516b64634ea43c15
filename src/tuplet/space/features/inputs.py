"""The features X inside of the library: a dense array, a sparse matrix or a pandas frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import narwhals as nw
import narwhals.dependencies as kinds
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.limits import largest_array
from tuplet.core.typing import Floats
from tuplet.space.containers import collected, listing

Features: TypeAlias = Any
"""A numeric array (n, d), a CSR matrix (n, d), or a pandas frame where an estimator treats its columns."""

_NUMBERS = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}
"""What pandas calls columns of objects that are all numbers."""

DATES = {"datetime64", "datetime", "date", "period", "timedelta64", "timedelta"}
"""What pandas calls columns of points in time, and of lengths of it."""


def n_rows(X: Features) -> int:
    """Return the number of rows of X."""
    return int(X.shape[0])


def take_rows(X: Features, rows: npt.NDArray[Any]) -> Features:
    """Return some rows of X by position or mask, in the same container."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def require_size(what: str, n: int, width: int) -> None:
    """Raise `IntractableError` if a dense (n, width) array would be too large."""
    limit = largest_array()
    if n * width > limit:
        raise IntractableError(
            f"{what} needs an array of {n:,} x {width:,} cells (limit {limit:,}); merge rare categories, work"
            " on fewer rows at a time, or raise the limit with sklearn.set_config(working_memory=...)."
        )


def put_beside(X: Features, columns: Floats, names: Sequence[str]) -> Features:
    """Append numeric columns (n, c) on the right of X; a frame gets them under `names`, made unique."""
    if columns.shape[1] == 0:
        return X
    if isinstance(X, pd.DataFrame):
        extra = pd.DataFrame(columns, index=X.index, columns=unused(names, X.columns))
        return pd.concat([X, extra], axis=1)
    if sparse.issparse(X):
        both: list[Any] = [X, sparse.csr_array(columns)]
        return sparse.hstack(both, format="csr")
    return np.concatenate([X, columns], axis=1)


def unused(names: Iterable[str], taken: Iterable[Any]) -> list[str]:
    """Return the names, each with as many primes as keep it apart from the others and those taken."""
    present, unique = set(taken), []
    for name in names:
        while name in present:
            name += "'"
        present.add(name)
        unique.append(name)
    return unique


# -- frames ------------------------------------------------------------------------------------------------


def as_pandas(X: Any) -> Any:
    """Return frames of other libraries as pandas frames; anything else as it is."""
    if isinstance(X, (np.ndarray, pd.DataFrame)):
        return X
    X = collected(X)
    if kinds.is_polars_lazyframe(X):
        raise InputError("X is a lazy frame; collect() it first.")
    if not kinds.is_into_dataframe(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    return pd.DataFrame({column.name: _pandas_column(column) for column in frame.iter_columns()})


def _pandas_column(column: nw.Series[Any]) -> Any:
    # By hand, because the libraries' own conversions need pyarrow.
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return column.cast(nw.Float64).to_numpy()
    if isinstance(column.dtype, nw.Enum):
        return pd.Categorical(column.to_list(), categories=list(column.dtype.categories))
    if isinstance(column.dtype, nw.Categorical):
        return pd.Categorical(column.to_list())
    return pd.Series(column.to_list(), dtype=_polars_type(column))


def _polars_type(column: nw.Series[Any]) -> Any:
    """Return the type of a column without values, from which it cannot be inferred; None otherwise."""
    if column.null_count() < len(column):
        return None
    if column.dtype == nw.String:
        return "string"
    if column.dtype in (nw.Date, nw.Datetime):
        return "datetime64[us]"
    return "timedelta64[us]" if column.dtype == nw.Duration else None


def holds_numbers(column: pd.Series) -> bool:
    """Return whether a column holds numbers or booleans and nothing else; missing values do not count."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return True
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS


def kind_of(column: pd.Series) -> Literal["number", "date", "nominal"]:
    """Return what a column holds; booleans are numbers."""
    if holds_numbers(column):
        return "number"
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "nominal"
    return "date" if pd.api.types.infer_dtype(column, skipna=True) in DATES else "nominal"


def number_columns(frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return for each column (d,) whether it `holds_numbers`, without a look at most of them."""
    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    for j, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O" and not isinstance(dtype, pd.CategoricalDtype):
            numeric[j] = holds_numbers(frame.iloc[:, j])
    return np.array(numeric, dtype=bool)


def as_floats(frame: pd.DataFrame) -> Floats:
    """Return a frame whose columns are all numbers as an array, NaN where a value is missing."""
    odd = [j for j, dtype in enumerate(frame.dtypes) if dtype.kind == "O"]
    frame = frame.copy(deep=False) if odd else frame
    for j in odd:
        frame.isetitem(j, _object_floats(frame.iloc[:, j]))
    return frame.to_numpy(dtype=float, na_value=np.nan)


def _object_floats(column: pd.Series) -> Floats:
    """Return numbers of any kind, such as decimals, as floats."""
    values = column.to_numpy(dtype=object)
    missing = pd.isna(values)
    answer = np.full(len(values), np.nan)
    answer[~missing] = values[~missing].astype(float)
    return answer


def as_matrix(X: Features, what: str) -> Features:
    """Return X as an array or a sparse matrix; a frame that estimators treat by themselves must be numbers.

    Parameters
    ----------
    X : features
    what : str
        What needs numbers, for an error text: "Distances".
    """
    if not isinstance(X, pd.DataFrame):
        return X
    if not number_columns(X).all():
        raise InputError(
            f"{what} need numbers, but an estimator that treats the columns of a frame by itself left X as it"
            " is; pass one that takes numbers, or encode X before."
        )
    return as_floats(X)


def require_finite(frame: pd.DataFrame) -> None:
    """Raise `InputError` where a frame has no rows, or infinity in a column of numbers."""
    if not len(frame):
        raise InputError("X has no rows.")
    numbers = frame.iloc[:, np.flatnonzero(number_columns(frame))]
    infinite = numbers.columns[np.flatnonzero(np.isinf(as_floats(numbers)).any(axis=0))]
    if len(infinite):
        raise InputError(
            f"X contains infinity, in the column {listing(infinite, 5)}; replace it by a number."
        )

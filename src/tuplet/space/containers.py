"""Arrays, frames and sparse matrices of labels: taken apart into columns, put together, rows matched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import narwhals.dependencies as kinds
import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Codes
from tuplet.space import labels

Container = Literal["array", "pandas", "polars", "sparse array", "sparse matrix"]


class Form(NamedTuple):
    """The container and types of given labels, so that others can be returned in the same form."""

    container: Container
    single: bool  # the labels came 1-D
    keys: tuple[Any, ...] | None  # the columns' own names; None if they have none
    dtypes: tuple[Any, ...]  # as in the container


class Table(NamedTuple):
    """Labels of any container as columns."""

    form: Form
    columns: list[Any]  # numpy arrays, or Series of pandas or polars
    n_rows: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what came in."""
        return (self.n_rows,) if self.form.single else (self.n_rows, len(self.columns))

    def names(self) -> tuple[str, ...]:
        """Names of the columns as strings, made up where they have none."""
        keys = self.form.keys
        if keys is None or (self.form.single and not isinstance(keys[0], str)):
            return ("y",) if self.form.single else tuple(f"y{j}" for j in range(len(self.columns)))
        names = tuple(str(key) for key in keys)
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InputError(f"Y has several columns of the same name: {listing(twice)}; rename them.")
        return names


# -- taking apart ------------------------------------------------------------------------------------------


def open_table(Y: Any) -> Table:
    """Return the columns of labels in any container."""
    Y = collected(Y)
    if sparse.issparse(Y):
        return _open_sparse(Y)
    if isinstance(Y, pd.DataFrame):
        return _table("pandas", False, tuple(Y.columns), [Y.iloc[:, j] for j in range(Y.shape[1])], len(Y))
    if isinstance(Y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        series = Y if isinstance(Y, pd.Series) else pd.Series(Y)
        return _table("pandas", True, None if series.name is None else (series.name,), [series], len(series))
    if kinds.is_polars_dataframe(Y):
        return _table("polars", False, tuple(Y.columns), list(Y.get_columns()), len(Y))
    if kinds.is_polars_series(Y):
        return _table("polars", True, (Y.name,) if Y.name else None, [Y], len(Y))
    if kinds.is_polars_lazyframe(Y):
        raise InputError("Y is a lazy frame; collect() it first.")
    array = _as_array(Y)
    columns = [array] if array.ndim == 1 else list(array.T)
    return _table("array", array.ndim == 1, None, columns, len(array))


def collected(table: Any) -> Any:
    """Return tables of pyarrow, Dask and DuckDB as pandas frames; anything else as it is."""
    if kinds.is_pyarrow_table(table):
        return table.to_pandas(types_mapper=_arrow_dtype)
    makes = "compute" if kinds.is_dask_dataframe(table) else "df" if kinds.is_duckdb_relation(table) else ""
    return getattr(table, makes)() if makes else table


def _arrow_dtype(kind: Any) -> Any:
    """Return the type of a column that pandas would change where values are missing; None for categories."""
    return None if str(kind).startswith("dictionary") else pd.ArrowDtype(kind)


def _table(
    container: Container, single: bool, keys: tuple[Any, ...] | None, columns: list[Any], n_rows: int
) -> Table:
    return Table(Form(container, single, keys, tuple(column.dtype for column in columns)), columns, n_rows)


def _open_sparse(Y: Any) -> Table:
    if Y.ndim != 2:
        raise InputError(f"A sparse Y must have two dimensions, found {Y.ndim}.")
    container: Container = "sparse array" if isinstance(Y, sparse.sparray) else "sparse matrix"
    return _table(container, False, None, list(Y.toarray().T), Y.shape[0])


def _as_array(Y: Any) -> np.ndarray:
    """Return arrays and lists as an array of one or two dimensions that has not turned labels into text."""
    try:
        array = Y if isinstance(Y, np.ma.MaskedArray) else np.asarray(Y)
        if array.dtype.kind in "US" and not hasattr(Y, "dtype"):
            # numpy writes ["a", nan] and ["a", 1] as text throughout; the labels themselves are wanted.
            objects = np.asarray(Y, dtype=object)
            if pd.api.types.infer_dtype(objects.ravel(), skipna=False) not in ("string", "bytes"):
                array = objects
    except ValueError:
        raise InputError("Y must be a table: its rows have different numbers of labels.") from None
    if array.ndim not in (1, 2):
        raise InputError(f"Y must have one or two dimensions, found {array.ndim}.")
    if array.dtype.names:
        raise InputError("Y is a structured array; pass a frame instead, pandas.DataFrame(Y).")
    return array


# -- putting together --------------------------------------------------------------------------------------


def build(
    form: Form,
    names: tuple[str, ...],
    categories: tuple[np.ndarray, ...],
    codes: Codes,
    index: pd.Index | None,
) -> Any:
    """Return the labels of codes (n, m) in the container that `form` describes."""
    if form.container in ("sparse array", "sparse matrix"):
        return _build_sparse(form, categories, codes)
    builders: dict[str, Callable[..., list[Any]]] = {
        "array": _arrays,
        "pandas": _pandas_series,
        "polars": _polars_series,
    }
    columns = builders[form.container](form, names, categories, codes, index)
    if form.single:
        return columns[0]
    if form.container == "array":
        return np.column_stack(columns)
    if form.container == "pandas":
        frame = pd.DataFrame(dict(enumerate(columns)), index=index)
        return frame.set_axis(pd.Index(list(form.keys or names)), axis=1)
    import polars as pl

    return pl.DataFrame(columns)


def _build_sparse(form: Form, categories: tuple[np.ndarray, ...], codes: Codes) -> Any:
    if (codes == UNKNOWN).any():
        return np.where(codes == UNKNOWN, np.nan, codes)
    make = sparse.csr_array if form.container == "sparse array" else sparse.csr_matrix
    return make(codes.astype(categories[0].dtype))


def _arrays(form: Form, names: Any, categories: Any, codes: Codes, index: Any) -> list[np.ndarray]:
    return [labels.decode(codes[:, j], categories[j]) for j in range(len(names))]


def _pandas_series(
    form: Form, names: Any, categories: Any, codes: Codes, index: pd.Index | None
) -> list[pd.Series]:
    keys = form.keys if form.keys is not None else (None,) if form.single else names
    return [
        _pandas_column(codes[:, j], categories[j], form.dtypes[j], index).rename(keys[j])
        for j in range(len(names))
    ]


def _pandas_column(codes: Codes, categories: np.ndarray, dtype: Any, index: pd.Index | None) -> pd.Series:
    if isinstance(dtype, np.dtype) and dtype.kind in "iub" and (codes == UNKNOWN).any():
        # pandas has a nullable type for each of these, so integers need not become floats.
        name = "boolean" if dtype.kind == "b" else pd.Series([], dtype=dtype).convert_dtypes().dtype
        dtype = pd.api.types.pandas_dtype(name)
    if isinstance(dtype, np.dtype):
        # pandas has its own idea of text and of units of time.
        dtype = None if dtype.kind in "USTmM" else dtype
        return pd.Series(labels.decode(codes, categories), index=index, dtype=dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=index)
    every = pd.Series(categories, dtype=dtype).array
    return pd.Series(every.take(codes, allow_fill=True), index=index)


def _polars_series(form: Form, names: Any, categories: Any, codes: Codes, index: Any) -> list[Any]:
    import polars as pl

    if form.single and form.keys is None:
        names = ("",)
    # The null at the end is what the code -1 gathers.
    return [
        pl.Series(name, [*labels_.tolist(), None], dtype=dtype).gather(codes[:, j])
        for j, (name, labels_, dtype) in enumerate(zip(names, categories, form.dtypes, strict=True))
    ]


def listing(names: Any, limit: int = 8) -> str:
    """Return names for a message, at most `limit` of them."""
    shown = [repr(str(name)) for name in list(names)[:limit]]
    return ", ".join(shown) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def require_same_order(query: str, ours: pd.Index | None, theirs: pd.Index | None) -> None:
    """Refuse two tables that hold the same rows in another order.

    Rows go by position, and unrelated indexes are ignored. But two indexes of the same unique labels in
    another order are almost surely a mistake, which would otherwise go unnoticed.

    Parameters
    ----------
    query : str
        The two tables, as the subject of the message: "fit: X and Y".
    ours, theirs : pandas Index or None
        None if a table has no index; then nothing is compared.

    Raises
    ------
    InputError

    Examples
    --------
    >>> import pandas as pd
    >>> require_same_order("fit: X and Y", pd.Index([4, 7]), pd.Index([7, 4]))
    Traceback (most recent call last):
    ...
    tuplet.core.exceptions.InputError: fit: X and Y hold the same rows in another order; align them with \
.loc, or pass .to_numpy() to go by position.
    """
    if ours is None or theirs is None or len(ours) != len(theirs) or ours.nlevels != theirs.nlevels:
        return
    if ours.equals(theirs) or not ours.is_unique or not theirs.is_unique:
        return
    if ours.isin(theirs).all():
        raise InputError(
            f"{query} hold the same rows in another order; align them with .loc, or pass .to_numpy() to go"
            " by position."
        )

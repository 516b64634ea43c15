"""p values of several tests, adjusted so that the whole family keeps its level."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.typing import Floats


def holm(p_values: Any) -> Any:
    """Holm's step-down adjustment: the i-th smallest of m p values times m - i + 1, never decreasing.

    Parameters
    ----------
    p_values : list, array, Series, shape (m,); or symmetric array or DataFrame, shape (k, k)
        Of a symmetric matrix, the pairs above the diagonal are the family, and the diagonal stays as it is.
        Missing values (nan) stay missing and do not count.

    Returns
    -------
    adjusted
        In the container that came in; a list gives an array.

    References
    ----------
    Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p_values, dtype=np.float64)
    if ((values < 0) | (values > 1)).any():
        raise InputError("holm: p values must be between 0 and 1.")
    if values.ndim == 1:
        adjusted = _step_down(values)
    elif values.ndim == 2 and values.shape[0] == values.shape[1] and _symmetric(values):
        upper = np.triu_indices(len(values), 1)
        adjusted = spread(_step_down(values[upper]), len(values))
        np.fill_diagonal(adjusted, values.diagonal())
    else:
        raise InputError(
            f"holm: p values must be a vector or a symmetric matrix, found shape {values.shape}; flatten them"
            " if all of them are one family."
        )
    if isinstance(p_values, pd.Series):
        return pd.Series(adjusted, index=p_values.index, name=p_values.name)
    if isinstance(p_values, pd.DataFrame):
        return pd.DataFrame(adjusted, index=p_values.index, columns=p_values.columns)
    return adjusted


def bonferroni(p_values: npt.ArrayLike, n_tests: int) -> Floats:
    """Return p values times the number of tests, at most one."""
    return np.minimum(1.0, n_tests * np.asarray(p_values, dtype=np.float64))


def spread(upper: Floats, k: int) -> Floats:
    """Symmetric matrix (k, k) of the values above its diagonal, with ones on the diagonal."""
    matrix = np.ones((k, k))
    rows, columns = np.triu_indices(k, 1)
    matrix[rows, columns] = matrix[columns, rows] = upper
    return matrix


def _step_down(p_values: Floats) -> Floats:
    order = np.argsort(p_values, kind="stable")  # nan comes last
    order = order[: np.count_nonzero(~np.isnan(p_values))]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(p_values.shape, np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


def _symmetric(values: Floats) -> bool:
    return bool(np.allclose(values, values.T, rtol=1e-9, atol=0, equal_nan=True))

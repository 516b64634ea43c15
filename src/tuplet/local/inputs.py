"""The features X as they travel through the library: a dense array, a sparse matrix or a pandas frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from tuplet.typing import Floats

__all__ = ["Features", "n_rows", "put_beside", "take_rows"]

Features: TypeAlias = Any
"""A numeric array (n, d), a CSR matrix (n, d), or a pandas frame where columns are not all numbers."""


def n_rows(X: Features) -> int:
    """Return the number of rows of X."""
    return int(X.shape[0])


def take_rows(X: Features, rows: npt.NDArray[Any]) -> Features:
    """Return some rows of X by position or mask, in the same container."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def put_beside(X: Features, columns: Floats, names: Sequence[str]) -> Features:
    """Append numeric columns (n, c) on the right of X; a frame gets them under `names`, made unique."""
    if columns.shape[1] == 0:
        return X
    if isinstance(X, pd.DataFrame):
        extra = pd.DataFrame(columns, index=X.index, columns=_unused(names, X.columns))
        return pd.concat([X, extra], axis=1)
    if sparse.issparse(X):
        both: list[Any] = [X, sparse.csr_array(columns)]
        return sparse.hstack(both, format="csr")
    return np.concatenate([X, columns], axis=1)


def _unused(names: Sequence[str], taken: pd.Index) -> list[str]:
    """Return the names, each with as many primes as keep it apart from the columns that are there."""
    present, unique = set(taken), []
    for name in names:
        while name in present:
            name += "'"
        present.add(name)
        unique.append(name)
    return unique

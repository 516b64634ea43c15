"""What a data set is."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features and class variables of the same rows, and where they come from.

    Parameters
    ----------
    name : str
        Short name.
    X : pandas DataFrame, shape (n, d)
        Features.
    Y : pandas DataFrame, shape (n, m)
        Class variables; a missing value is a label that nobody knows.
    description : str
        Origin, licence, meaning of the columns.
    """

    name: str
    X: pd.DataFrame
    Y: pd.DataFrame
    description: str

    @property
    def frame(self) -> pd.DataFrame:
        """Class variables and features side by side."""
        return pd.concat([self.Y, self.X], axis=1)

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Dataset({self.name}: {n} rows, {d} features, class variables {', '.join(self.Y.columns)})"

"""`Dataset`: features, labels, and what else a data set comes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError

_SHOWN = 8
"""Class variables that a repr shows before it stops."""

Split: TypeAlias = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]


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
        Class variables; a missing value is an unknown label.
    description : str
        Origin, licence, meaning of the columns.
    train : array of bool, shape (n,), optional
        The training rows of the split that the data come with.
    folds : array of int, shape (n,), optional
        The fold, from 0, in which each row is a test row, where the data come with folds.
    groups : array, shape (n,), optional
        What belongs together, such as the patient of each row: `compare` keeps the rows of a group on the
        same side of every split that it makes, and passes groups to the `fit` of models that take them.

    Examples
    --------
    >>> X, Y = pd.DataFrame({"x": [0.1, 0.2, 0.3]}), pd.DataFrame({"late": [0, 1, 1]})
    >>> data = Dataset("trains", X, Y, "Made up.", train=np.array([True, True, False]))
    >>> data
    Dataset(trains: 3 rows, 1 feature, class variables late)
    >>> X_train, Y_train, X_test, Y_test = data.split()
    >>> Y_test["late"].tolist()
    [1]
    """

    name: str
    X: pd.DataFrame
    Y: pd.DataFrame
    description: str = ""
    train: npt.NDArray[np.bool_] | None = None
    folds: npt.NDArray[np.intp] | None = None
    groups: npt.ArrayLike | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Class variables and features side by side."""
        return pd.concat([self.Y, self.X], axis=1)

    def split(self, fold: int | None = None) -> Split:
        """Return X_train, Y_train, X_test, Y_test of the split that the data come with.

        Parameters
        ----------
        fold : int, optional
            Where the data come with folds: the one whose rows are the test rows.
        """
        train = self._training_rows(fold)
        return self.X[train], self.Y[train], self.X[~train], self.Y[~train]

    def _training_rows(self, fold: int | None) -> npt.NDArray[np.bool_]:
        if fold is None and self.train is not None:
            return self.train
        if self.folds is None:
            found = "no split and no folds" if self.train is None else "a split, but no folds"
            ask = "make one with train_test_split" if self.train is None else "call split() without a fold"
            raise InputError(f"split: {self.name!r} comes with {found}; {ask}.")
        n_folds = int(self.folds.max()) + 1
        if fold is None or fold not in range(n_folds):
            raise InputError(
                f"split: {self.name!r} comes with {n_folds} folds; say which holds the test rows, from"
                f" split(fold=0) to split(fold={n_folds - 1}); found fold={fold!r}."
            )
        return self.folds != fold

    def __repr__(self) -> str:
        (n, d), m = self.X.shape, self.Y.shape[1]
        names = ", ".join(map(str, self.Y.columns[:_SHOWN])) + (
            f" and {m - _SHOWN} more" if m > _SHOWN else ""
        )
        features = f"{d} feature{'s' if d != 1 else ''}"
        return f"Dataset({self.name}: {n} rows, {features}, class variables {names})"

"""The rows of X as batches for a network: numbers, images in flat columns, or images yet to be read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.local.deep.backend import Dataset, torch
from tuplet.space.features.inputs import Features

Read: TypeAlias = Callable[[Any], npt.ArrayLike]
"""From a value of the first column of X, such as a path, to an image (channels, height, width)."""

Batch: TypeAlias = tuple[dict[str, Any], Any]
"""Tensors of b rows: "x", and "parents" (b, p) and "weight" (b,) where there are any; codes (b,)."""


@final
class Rows(Dataset):
    """Rows of X with their codes and weights, handed out a batch at a time.

    Without `image_shape` and `read` a row is all its columns. With either, columns beside the image are the
    one-hot parents that a local model has put there.

    Parameters
    ----------
    X : array or frame, shape (n, d)
    y : int array, shape (n,), optional
    weight : array, shape (n,), optional
    image_shape : sequence of int, optional
        (channels, height, width) of the image in the first columns.
    read : callable, optional
        What turns a value of the first column into an image.
    """

    def __init__(
        self,
        X: Features,
        y: npt.NDArray[Any] | None = None,
        weight: npt.NDArray[Any] | None = None,
        *,
        image_shape: Sequence[int] | None = None,
        read: Read | None = None,
    ) -> None:
        self.read = read
        self.X, parents = _divide(X, image_shape, read)
        self.y = np.zeros(len(self.X), dtype=np.int64) if y is None else np.asarray(y, dtype=np.int64)
        columns = {"parents": parents if parents.shape[1] else None, "weight": weight}
        self.beside = {k: np.asarray(v, dtype=np.float32) for k, v in columns.items() if v is not None}

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_parents(self) -> int:
        """Number of columns beside the image."""
        return self.beside["parents"].shape[1] if "parents" in self.beside else 0

    def __getitems__(self, rows: Sequence[int]) -> Batch:
        # torch asks this of a data set that has it: one piece of indexing for a batch, not one for each row.
        x = self.X[rows]
        if self.read is not None:
            x = np.stack([np.asarray(self.read(value), dtype=np.float32) for value in x])
        parts = {"x": x} | {key: column[rows] for key, column in self.beside.items()}
        return {key: torch.from_numpy(part) for key, part in parts.items()}, torch.from_numpy(self.y[rows])

    def __getitem__(self, row: int) -> Batch:
        inputs, code = self.__getitems__([row])
        return {key: part[0] for key, part in inputs.items()}, code[0]


def as_it_is(batch: Batch) -> Batch:
    """Return a batch; what torch calls to put rows together has nothing left to do."""
    return batch


def _divide(
    X: Features, image_shape: Sequence[int] | None, read: Read | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return what the network's first argument is made of, and the columns beside it (n, p)."""
    if read is not None:
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        return frame.iloc[:, 0].to_numpy(), frame.iloc[:, 1:].to_numpy(dtype=np.float32)
    table = np.asarray(X, dtype=np.float32)
    if table.ndim != 2:
        raise InputError(
            f"X must be of shape (n, d), found {table.shape}; images go in as X.reshape(len(X), -1), with"
            " image_shape=(channels, height, width)."
        )
    if image_shape is None:
        return table, table[:, :0]
    size = math.prod(image_shape)
    if table.shape[1] < size:
        raise InputError(
            f"X has {table.shape[1]} columns, too few for images of shape {tuple(image_shape)}, which take"
            f" {size}."
        )
    return table[:, :size].reshape(-1, *image_shape), table[:, size:]

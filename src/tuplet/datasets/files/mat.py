"""MATLAB files of the multi-dimensional collection, and matrices of other collections."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.datasets.files.mat5 import MatError, read_variables
from tuplet.datasets.files.source import Source
from tuplet.datasets.files.table import Table
from tuplet.typing import Floats

_DATA, _TARGET = ("data", "X"), ("target", "targets", "Y")
_HDF = b"\x89HDF\r\n\x1a\n"
_KINDS = {"d_wo_o": False, "b": False, "d_w_o": True}
"""Lists of discrete features in `data_type`, and whether their values are ordered."""


def read_mat(source: Source) -> Table:
    """Read `data` (a matrix, or a struct with orig and norm) and `target`; features x1, ..., classes y1, ...

    `orig` is preferred: it has the discrete features as they are, and `data_type` says which these are.
    """
    variables = _load(source)
    data, target = _variable(source, variables, _DATA), _variable(source, variables, _TARGET)
    X, is_original = _features(source, data)
    X, Y = _oriented(source, X, _matrix(source, target, "target"))
    frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])])
    if is_original:
        _declare(source, frame, variables.get("data_type"))
    labels = pd.DataFrame(_labels(Y), columns=[f"y{j + 1}" for j in range(Y.shape[1])])
    folds = _folds(variables.get("idx_folds"), len(X))
    said = variables.get("data_name")
    name = said if isinstance(said, str) and said else source.stem
    return Table(pd.concat([frame, labels], axis=1), tuple(labels.columns), name, folds=folds)


def _load(source: Source) -> dict[str, Any]:
    if source.content.startswith((b"MATLAB 7.3", _HDF)) or _HDF in source.content[:1024]:
        source.fail("this is a MATLAB 7.3 file (HDF5); save it again in MATLAB with save(..., '-v7').")
    try:
        return read_variables(source.content)
    except MatError as error:
        source.fail(f"the MATLAB file is damaged or cut short ({error}); copy it again.")


def _variable(source: Source, variables: dict[str, Any], names: tuple[str, ...]) -> Any:
    found = next((variables[name] for name in names if name in variables), None)
    if found is None:
        source.fail(f"there is no variable {names[0]!r}; the file must have 'data' and 'target'.")
    return found


def _field(struct: Any, name: str) -> Any:
    """Return a field of a struct, also of one alone in a cell; None if there is none."""
    if isinstance(struct, list) and len(struct) == 1:
        struct = struct[0]
    return struct.get(name) if isinstance(struct, dict) else None


def _matrix(source: Source, value: Any, name: str) -> Floats:
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        found = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        source.fail(f"{name!r} must be a matrix of numbers, found {found}.")
    return value.astype(float)


def _features(source: Source, data: Any) -> tuple[Floats, bool]:
    original, normed = _field(data, "orig"), _field(data, "norm")
    for value, name in ((original, "data.orig"), (normed, "data.norm")):
        if isinstance(value, np.ndarray) and value.size:
            return _matrix(source, value, name), name == "data.orig"
    return _matrix(source, data, "data"), False


def _oriented(source: Source, X: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Return both with one row for each case; the collections differ in what they call a row."""
    for features, labels in ((X, Y), (X, Y.T), (X.T, Y), (X.T, Y.T)):
        if len(features) == len(labels) and min(*features.shape, *labels.shape) > 0:
            return features, labels
    raise source.error(f"'data' of shape {X.shape} and 'target' of shape {Y.shape} have no length in common.")


def _declare(source: Source, frame: pd.DataFrame, kinds: Any) -> None:
    """Make the discrete features Categoricals of numbers."""
    for kind, ordered in _KINDS.items():
        positions = _field(kinds, kind)
        for position in _numbers(positions):
            if not 1 <= position <= frame.shape[1]:
                source.fail(f"data_type.{kind} names feature {position}, of {frame.shape[1]}; copy it again.")
            name = f"x{position}"
            frame[name] = pd.Categorical(_shortest(frame[name].to_numpy()), ordered=ordered)


def _numbers(value: Any) -> list[int]:
    """Return positions, from 1 as in MATLAB; nothing where there are none."""
    if not isinstance(value, np.ndarray):
        return []
    return [int(number) for number in value.ravel() if np.isfinite(number)]


def _labels(Y: Floats) -> npt.NDArray[Any]:
    """Return whole numbers as such, and -1 and 1 throughout as 0 and 1."""
    if np.isin(Y, (-1, 1)).all():
        return (Y > 0).astype(np.int8)
    return _shortest(Y)


def _shortest(values: Floats) -> npt.NDArray[Any]:
    whole = np.isfinite(values).all() and (values == np.floor(values)).all() and (abs(values) < 2**53).all()
    return values.astype(np.int64) if whole else values


def _folds(cells: Any, n: int) -> npt.NDArray[np.intp] | None:
    """Return the fold in which each row is a test row; None if there is not one for every row."""
    if not isinstance(cells, list):
        return None
    folds = np.full(n, -1, dtype=np.intp)
    for fold, cell in enumerate(cells):
        rows = np.array(_numbers(_field(cell, "test")), dtype=np.intp) - 1
        if ((rows < 0) | (rows >= n)).any() or (folds[rows] >= 0).any():
            return None
        folds[rows] = fold
    return None if (folds < 0).any() else folds

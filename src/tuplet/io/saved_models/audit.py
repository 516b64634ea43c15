"""Check of the types that a file names, before anything is made of it.

skops stores a model as a tree of nodes. Each node names a type and the loader that makes it. skops itself
refuses types that are not trusted; but a trusted type may come with any loader, and some of them call it with
arguments of the file's choice. So the pairs of loader and type are checked here:

| loader | may name |
|---|---|
| containers, arrays, numbers, text | the builtin types and those of numpy |
| objects (attributes are set, no constructor runs) | scikit-learn's estimators, registered classes |
| named tuples | registered named tuples |
| constructor calls | `Recipe`, dates, decimals, ranges, frozen sets |
| functions | numpy's and scipy's universal functions |
| methods, partial functions, operators, anything else | nothing |

Registered are the types of tuplet that `registry` lists; a file has their names, not their modules.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from sklearn._loss._loss import CyLossFunction  # its __module__ is "_loss" in scikit-learn 1.8

from tuplet.core.exceptions import ModelFileError
from tuplet.io.saved_models.registry import SCHEMA, is_ours, path_of, schema_nodes

_VALUES = frozenset(
    {
        *("builtins.frozenset", "builtins.range", "decimal.Decimal", "datetime.date"),
        *("datetime.datetime", "datetime.time", "datetime.timedelta", "datetime.timezone"),
    }
)
"""Foreign types that may be made by calling them."""

_KERNELS = (
    "ConstantKernel",
    "DotProduct",
    "Matern",
    "Product",
    "RationalQuadratic",
    "RBF",
    "Sum",
    "WhiteKernel",
)

_SPLITTERS = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "LeavePGroupsOut",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)

_PRIVATE = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.utils._bunch.Bunch",
        *(f"sklearn.gaussian_process.kernels.{kernel}" for kernel in _KERNELS),
        *(f"sklearn.model_selection._split.{splitter}" for splitter in _SPLITTERS),
    }
)
"""Parts of scikit-learn's estimators that are not estimators but hold data."""

_KEYS = re.compile(r"builtins\.(str|int)")

_ALLOWED = {
    "JsonNode": r"builtins\.str",
    "DictNode": r"builtins\.dict|collections\.OrderedDict|sklearn\.utils\._bunch\.Bunch",
    "ListNode": r"builtins\.list",
    "SetNode": r"builtins\.set",
    "TupleNode": r"builtins\.tuple",
    "BytesNode": r"builtins\.bytes",
    "SliceNode": r"builtins\.slice",
    "NdArrayNode": r"numpy\.\w+",
    "MaskedArrayNode": r"numpy\.ma(\.core)?\.MaskedArray",
    "DTypeNode": r"numpy\.dtype",
    "RandomStateNode": r"numpy\.random\.mtrand\.RandomState",
    "RandomGeneratorNode": r"numpy\.random\._generator\.Generator",
    "TypeNode": r"builtins\.(str|int|float|bool|object)|numpy\.\w+",
    "FunctionNode": r"numpy\.\w+|scipy\.special\.\w+(\.\w+)?",
    "LossNode": rf"{re.escape(CyLossFunction.__module__)}\.Cy\w+|sklearn\.linear_model\._sgd_fast\.\w+",
    "ObjectNode": r"sklearn\.[\w.]+",
}
"""Loaders and the types that they may name; for the last ones the lists of skops apply as well."""

_PATTERNS = {loader: re.compile(pattern) for loader, pattern in _ALLOWED.items()}

_NUMPY = frozenset({"numpy.dtype", "numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray", "builtins.object"})
"""Types that skops does not trust by itself."""


class _Node(NamedTuple):
    loader: str
    name: str
    role: str  # "key" for types of the keys of a dict and lists of them: these are called


def approve(data: bytes, trusted: Collection[str] = ()) -> list[str]:
    """Check the model part of a file and return the types that skops may make, with their modules.

    Parameters
    ----------
    data : bytes
        What skops wrote, with the names of `registry`.
    trusted : collection of str
        Further types that the user allows, with any loader; not types of tuplet.

    Raises
    ------
    ModelFileError
        If the file names anything else, or would unpack to more than its size.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _check_sizes(archive, len(data))
        schema = json.loads(archive.read(SCHEMA))
        if not isinstance(schema, dict) or schema.get("protocol") != 2:
            raise ModelFileError("The model uses a protocol of skops that this version cannot read.")
        approved = {*_VALUES, *_PRIVATE, *_NUMPY, *trusted}
        known: dict[Any, _Node] = {}
        owners: dict[str, Any] = {}
        for state, role in schema_nodes(schema):
            node = _node(state, role)
            if is_ours(node.name):
                approved.add(".".join(path_of(node.loader, node.name)))
            elif node.role == "key" or node.name not in trusted:
                _check_node(node)
            if node.loader == "TypeNode":
                node = node._replace(role="")  # int and str are also values of parameters
            if known.setdefault(state.get("__id__"), node) != node:
                raise ModelFileError(f"The file has one identifier for {node.name!r} and for another object.")
            if "file" in state:
                _check_member(archive, state, owners)
    return sorted(approved)


def _check_node(node: _Node) -> None:
    """Refuse a foreign type that a file may not name, or not with this loader."""
    if node.role == "key" and node.loader == "TypeNode" and not _KEYS.fullmatch(node.name):
        raise ModelFileError(f"The file has a dict whose keys would be made by {node.name!r}.")
    pattern = _PATTERNS.get(node.loader)
    if pattern is not None and pattern.fullmatch(node.name):
        return
    if node.loader == "ConstructorFromReduceNode" and node.name in _VALUES:
        return
    raise ModelFileError(
        f"The file holds {_what(node)} {node.name!r}, which is not a part of tuplet, scikit-learn or numpy"
        " that files may name. If you know who wrote the file and trust that code, pass"
        f" trusted=[{node.name!r}]."
    )


def _what(node: _Node) -> str:
    if node.loader == "FunctionNode":
        return "the function"
    return "the type" if node.loader == "TypeNode" else "an object of type"


def _node(state: dict[str, Any], role: str) -> _Node:
    module, name = state.get("__module__"), state.get("__class__")
    if not isinstance(module, str) or not isinstance(name, str):
        raise ModelFileError("The file has a part without a type.")
    if role == "key" and state["__loader__"] not in ("ListNode", "TypeNode"):
        raise ModelFileError("The file has a dict whose keys have no simple type.")
    return _Node(state["__loader__"], f"{module}.{name}", role)


# -- sizes -------------------------------------------------------------------------------------------------


def _check_sizes(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Check that parts are stored uncompressed and once, so that nothing unpacks to more than was read."""
    parts = archive.infolist()
    names = {part.filename for part in parts}
    packed = any(part.compress_type != zipfile.ZIP_STORED for part in parts)
    if packed or len(names) < len(parts) or sum(part.file_size for part in parts) > n_bytes:
        raise ModelFileError("The file would unpack to more than its size; it was forged or is damaged.")


def _check_member(archive: zipfile.ZipFile, state: dict[str, Any], owners: dict[str, Any]) -> None:
    """Check that each array is read for one object only and has the size that its header states."""
    name = state["file"]
    if not isinstance(name, str) or owners.setdefault(name, state.get("__id__")) != state.get("__id__"):
        raise ModelFileError("The file uses the same array for several objects.")
    if state["__loader__"] != "NdArrayNode":
        return
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read[version](member)
        left = archive.getinfo(name).file_size - member.tell()
    n_bytes = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=0) < 0 or n_bytes != left:
        raise ModelFileError("The file holds an array whose size or type differs from its header.")

"""What a file may name, checked before anything is made of it.

skops stores a model as a tree of nodes. Each node names a type and the loader that makes it. skops itself
refuses types that are not trusted; but a trusted type may come with any loader, and some of them call it with
arguments of the file's choice. So the pairs of loader and type are checked here:

| loader | may name |
|---|---|
| containers, arrays, numbers, text | the builtin types and those of numpy |
| objects (attributes are set, no constructor runs) | scikit-learn's estimators, data holders of tuplet |
| constructor calls | `Recipe`, dates, decimals, ranges, frozen sets |
| functions | numpy's and scipy's universal functions |
| methods, partial functions, operators, anything else | nothing |

A data holder is a class that is really defined in the module that the file names, in a room of tuplet that
holds models and what they are made of, and that brings no code which making an instance would run.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Collection, Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn._loss._loss import CyLossFunction  # its __module__ is "_loss" before scikit-learn 1.8

from tuplet.exceptions import ModelFileError

_ROOMS = frozenset(
    "inference joint kernels local losses models networks probit rules space structure".split()  # noqa: SIM905
)
"""Parts of tuplet whose classes appear in fitted models."""

_RECIPE = "tuplet.persistence.recipes.Recipe"

_VALUES = frozenset(
    {
        *(_RECIPE, "builtins.frozenset", "builtins.range", "decimal.Decimal", "datetime.date"),
        *("datetime.datetime", "datetime.time", "datetime.timedelta", "datetime.timezone"),
    }
)
"""What may be made by calling it."""

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

_PRIVATE = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.utils._bunch.Bunch",
        # Scorers of scikit-learn before 1.8 hold these.
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
        *(f"sklearn.gaussian_process.kernels.{kernel}" for kernel in _KERNELS),
    }
)
"""Parts of scikit-learn's estimators that are no estimators themselves; holders of data."""

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
"""Loaders and the types that they may name; for the last ones skops has lists of its own, which hold too."""

_PATTERNS = {loader: re.compile(pattern) for loader, pattern in _ALLOWED.items()}

_NUMPY = frozenset({"numpy.dtype", "numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray", "builtins.object"})
"""What else skops has to be told."""


class _Node(NamedTuple):
    loader: str
    name: str
    role: str  # "key" for types of the keys of a dict and lists of them: these are called


def approve(data: bytes, trusted: Collection[str] = ()) -> list[str]:
    """Check the model part of a file and return the types that skops may make.

    Parameters
    ----------
    data : bytes
        What skops wrote.
    trusted : collection of str
        Further types that the user allows, with any loader.

    Raises
    ------
    ModelFileError
        If the file names anything else, or is larger inside than outside.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _check_sizes(archive, len(data))
        schema = json.loads(archive.read("schema.json"))
        if not isinstance(schema, dict) or schema.get("protocol") != 2:
            raise ModelFileError("The model was stored in a way that this version of tuplet cannot read.")
        approved = {*_VALUES, *_PRIVATE, *_NUMPY, *trusted}
        known: dict[Any, _Node] = {}
        owners: dict[str, Any] = {}
        for state, role in _states(schema):
            node = _node(state, role)
            if node.role == "key" or node.name not in trusted:
                approved |= _check_node(node)
            if node.loader == "TypeNode":
                node = node._replace(role="")  # int and str are also values of parameters
            if known.setdefault(state.get("__id__"), node) != node:
                raise ModelFileError(f"The file gives {node.name!r} for something else.")
            if "file" in state:
                _check_member(archive, state, owners)
    return sorted(approved)


def _check_node(node: _Node) -> set[str]:
    """Return the types that a node adds to those that are approved, or refuse it."""
    if node.role == "key" and node.loader == "TypeNode" and not _KEYS.fullmatch(node.name):
        raise ModelFileError(f"The file has a dict whose keys would be made by {node.name!r}.")
    pattern = _PATTERNS.get(node.loader)
    if pattern is not None and pattern.fullmatch(node.name):
        return set()
    if node.loader == "ConstructorFromReduceNode" and node.name in _VALUES:
        return set()
    if node.loader in ("ObjectNode", "TupleNode") and _is_data_holder(node.name, node.loader):
        return {node.name}
    if node.name.startswith("tuplet."):
        raise ModelFileError(
            f"The file holds an object of type {node.name!r}, which this version of tuplet does not have, or"
            " not in models; read_header tells which version wrote the file."
        )
    raise ModelFileError(
        f"The file holds {_what(node)} {node.name!r}, which is no part of tuplet, scikit-learn or numpy that"
        f" files may name. If you know who wrote it and trust that code, pass trusted=[{node.name!r}]."
    )


def _what(node: _Node) -> str:
    if node.loader == "FunctionNode":
        return "the function"
    return "the type" if node.loader == "TypeNode" else "an object of type"


# -- nodes -------------------------------------------------------------------------------------------------


def _states(schema: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Every node of a schema, wherever it stands, and its role."""
    waiting: list[tuple[Any, str]] = [(schema, "")]
    while waiting:
        part, role = waiting.pop()
        if isinstance(part, list):
            waiting.extend((each, role) for each in part)
        elif isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                yield part, role
            for name, each in part.items():
                waiting.append((each, "key" if name == "key_types" and _is_dict(part) else role))


def _is_dict(state: dict[str, Any]) -> bool:
    return state.get("__loader__") == "DictNode"


def _node(state: dict[str, Any], role: str) -> _Node:
    module, name = state.get("__module__"), state.get("__class__")
    if not isinstance(module, str) or not isinstance(name, str):
        raise ModelFileError("The file has a part without a type.")
    if role == "key" and state["__loader__"] not in ("ListNode", "TypeNode"):
        raise ModelFileError("The file has a dict whose keys have no simple type.")
    return _Node(state["__loader__"], f"{module}.{name}", role)


@lru_cache
def _is_data_holder(full_name: str, loader: str) -> bool:
    """Whether a name is that of a class of tuplet of which instances can be made without running its code."""
    module, _, name = full_name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "tuplet" or len(parts) < 3 or parts[1] not in _ROOMS or not name.isidentifier():
        return False
    try:
        found = getattr(import_module(module), name, None)
    except ImportError:
        return False
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, name):
        return False
    if loader == "TupleNode":
        return issubclass(found, tuple) and hasattr(found, "_fields")
    restore, make = getattr(found, "__setstate__", None), getattr(found, "__new__", None)
    return (
        make is object.__new__
        and not hasattr(found, "__del__")
        and (restore is None or restore.__module__ in ("sklearn.base", "dataclasses"))
    )


# -- sizes -------------------------------------------------------------------------------------------------


def _check_sizes(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Parts lie in the archive as they are, side by side: nothing unpacks to more than was read."""
    parts = archive.infolist()
    names = {part.filename for part in parts}
    packed = any(part.compress_type != zipfile.ZIP_STORED for part in parts)
    if packed or len(names) < len(parts) or sum(part.file_size for part in parts) > n_bytes:
        raise ModelFileError("The file would unpack to more than it holds; it was made up or is damaged.")


def _check_member(archive: zipfile.ZipFile, state: dict[str, Any], owners: dict[str, Any]) -> None:
    """Each array is read once, and is as large as it says."""
    name = state["file"]
    if not isinstance(name, str) or owners.setdefault(name, state.get("__id__")) != state.get("__id__"):
        raise ModelFileError("The file reads the same array for several objects.")
    if state["__loader__"] != "NdArrayNode":
        return
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read[version](member)
        left = archive.getinfo(name).file_size - member.tell()
    n_bytes = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=0) < 0 or n_bytes != left:
        raise ModelFileError("The file holds an array that is not what it says it is.")

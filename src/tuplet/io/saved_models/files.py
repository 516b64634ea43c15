"""A model as one file: a zip archive of a header and the model, written as a whole and read defensively.

The header is JSON that describes the model for people and programs that do not load it.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.pipeline import Pipeline

from tuplet.core.atomic_files import open_atomic
from tuplet.core.exceptions import MissingDependencyError, ModelFileError, TupletError, TupletWarning
from tuplet.io.saved_models.audit import approve
from tuplet.io.saved_models.recipes import check_whole, rewrite
from tuplet.io.saved_models.registry import with_names, with_paths
from tuplet.models.pipeline import as_joint_pipeline
from tuplet.space.classes import ClassSpace

FORMAT = 3
"""Version of the file format, raised whenever an older version of tuplet would misread a newer file."""

_HEADER, _MODEL = "header.json", "model.skops"

_HEADER_LIMIT = 64 * 2**20
"""Bytes of a header; names and labels of any sensible model take far less."""

_GROWTH = 50
"""Limit of the unpacked size relative to the file; models that compress better are stored uncompressed."""

_WIDTH = 300
"""Characters of a parameter; nested models may have a long text."""

_PACKAGES = ("tuplet", "scikit-learn", "numpy", "scipy", "pandas", "skops")


@dataclass(frozen=True)
class Variable:
    """A class variable.

    Parameters
    ----------
    name : str
    labels : tuple
        In the order of their codes; labels that JSON cannot represent (dates, intervals) as text.
    type : str
        Type of the labels in training, such as "category", "int64" or "boolean".
    """

    name: str
    labels: tuple[Any, ...]
    type: str


@dataclass(frozen=True)
class ModelHeader:
    """Description of a saved model.

    Parameters
    ----------
    model : str
        Class of the model.
    saved : str
        Date and time in UTC.
    versions : dict
        Versions of the packages that wrote the file.
    variables : tuple of Variable
        The class space.
    container : str
        Container of the labels in training and in predictions: "array", "pandas", "polars", ...
    n_features : int or None
    features : tuple of str or None
        Names of the columns of X, if they had names.
    n_rows : int or None
        Number of training rows, if the model recorded it.
    log_likelihood : float or None
        Mean log-likelihood of held-out rows, if the model measured it.
    parameters : dict
        Parameters of the model, as text.
    """

    model: str
    saved: str
    versions: dict[str, str]
    variables: tuple[Variable, ...]
    container: str
    n_features: int | None
    features: tuple[str, ...] | None
    n_rows: int | None
    log_likelihood: float | None
    parameters: dict[str, str]

    @classmethod
    def of(cls, model: Any) -> Self:
        """Describe a fitted model."""
        names = getattr(model, "feature_names_in_", None)
        likelihood = getattr(model, "log_likelihood_", None)
        return cls(
            model=type(model).__name__,
            saved=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=_versions(),
            variables=_variables_of(model.space_),
            container=model.space_._form.container,
            n_features=_optional(int, getattr(model, "n_features_in_", None)),
            features=None if names is None else tuple(map(str, names)),
            n_rows=_optional(int, getattr(model, "n_samples_fit_", None)),
            log_likelihood=None if np.ndim(likelihood or 0) else _optional(float, likelihood),
            parameters={name: _text(value) for name, value in model.get_params(deep=False).items()},
        )

    @classmethod
    def from_json(cls, header: dict[str, Any]) -> Self:
        """Read the header from JSON, which is not trusted."""
        fields = {name: header.get(name) for name in cls.__dataclass_fields__}
        try:
            fields["variables"] = tuple(
                Variable(str(each["name"]), tuple(each["labels"]), str(each["type"]))
                for each in header["variables"]
            )
            fields["features"] = _optional(lambda names: tuple(map(str, names)), fields["features"])
            fields["versions"] = {str(k): str(v) for k, v in header["versions"].items()}
            fields["parameters"] = {str(k): str(v) for k, v in header["parameters"].items()}
            for name in ("model", "saved", "container"):
                fields[name] = str(header[name])
        except (KeyError, TypeError, AttributeError):
            raise ModelFileError("The header is incomplete: it was edited or is damaged.") from None
        return cls(**fields)  # type: ignore[arg-type]


def save_model(model: Any, path: str | Path, *, trusted: Sequence[str | type] = ()) -> None:
    """Write a fitted model to one file that is safe to load from an untrusted source.

    Parameters
    ----------
    model : JointClassifier, DecisionClassifier or pipeline
        Fitted. Estimators inside of it may be any of scikit-learn's. A pipeline that ends in a model comes
        back as a `JointPipeline`, and of a search its best estimator does.
    path : str or Path
        Conventionally ends in ".tuplet". An existing file is replaced, and only when the new one is complete.
    trusted : sequence of str or type
        Further types and functions that the model may hold, such as an estimator of your own. They must be
        installed where the file is loaded, and passed to `load_model` as well.

    Raises
    ------
    ModelFileError
        If a part of the model cannot be stored as data; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tuplet.models import ChainClassifier
    >>> model = ChainClassifier(GaussianNB()).fit([[0], [1], [2], [3]], [[0, 1], [0, 1], [1, 0], [1, 1]])
    >>> path = Path(tempfile.mkdtemp()) / "model.tuplet"
    >>> save_model(model, path)
    >>> load_model(path).predict([[3]])
    array([[1, 1]])
    """
    model = getattr(model, "best_estimator_", model)
    if type(model) is Pipeline and hasattr(model.steps[-1][1], "predict_joint"):
        model = as_joint_pipeline(model)
    if not hasattr(model, "predict_joint"):
        raise ModelFileError(f"Only models of tuplet can be saved, found {type(model).__name__}.")
    if not hasattr(model, "space_"):
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet; call fit before saving it.")
    require_skops()
    names = _names(trusted)
    try:
        data = _dump(model, names)
    except Exception:  # from pickle, skops or tuplet, about the first part that fails
        raise ModelFileError(_explain(model, names)) from None
    _write(Path(path).expanduser(), asdict(ModelHeader.of(model)), data)


def load_model(path: str | Path, *, trusted: Sequence[str | type] = ()) -> Any:
    """Load a model from a file. Nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str or type
        Further types and functions that the file may name, such as "mypackage.MyClassifier". Their code runs,
        so name only those you trust.

    Returns
    -------
    JointClassifier, DecisionClassifier or JointPipeline
        Its predictions equal those of the saved model.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another format, or names something that is not trusted.

    Warns
    -----
    TupletWarning
        If the file was written with another version of scikit-learn.
    """
    path = Path(path).expanduser()
    raw = _read_header(path)
    header = ModelHeader.from_json(raw)
    data = _read_model(path, raw)
    names = _names(trusted)
    io = require_skops()
    _warn_about_versions(header)
    with _refusing_damage(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        approved = approve(data, names)
        data = with_paths(data)
        _require_approved(data, approved)
        model = io.loads(data, trusted=approved)
        check_whole(model)
        _compare(path, header, model)
    return model


def read_header(path: str | Path) -> ModelHeader:
    """Return the description of a saved model without loading it.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    ModelFileError
        If the file is damaged or of another format.

    Examples
    --------
    >>> import tempfile
    >>> from tuplet.models import PriorClassifier
    >>> path = Path(tempfile.mkdtemp()) / "model.tuplet"
    >>> save_model(PriorClassifier().fit([[0], [1]], [["a", "x"], ["b", "y"]]), path)
    >>> header = read_header(path)
    >>> header.model, header.variables[1].name, header.variables[1].labels
    ('PriorClassifier', 'y1', ('x', 'y'))
    """
    return ModelHeader.from_json(_read_header(Path(path).expanduser()))


# -- saving ------------------------------------------------------------------------------------------------


def _dump(part: Any, trusted: list[str]) -> bytes:
    """Return a part of a model as bytes, and refuse what `load_model` would refuse."""
    with warnings.catch_warnings():
        # numpy before 2.3.3 leaves empty metadata on dates that pickle copied, and warns about it.
        warnings.filterwarnings("ignore", "metadata on a dtype is not saved", UserWarning)
        data: bytes = require_skops().dumps(rewrite(part))
    named = with_names(data)
    _require_approved(data, approve(named, trusted))
    return named


def _require_approved(data: bytes, approved: list[str]) -> None:
    """Refuse a model part, with module paths, that holds types which skops does not trust by itself."""
    for name in require_skops().get_untrusted_types(data=data):
        if name not in approved:
            raise ModelFileError(
                f"The file holds {name!r}, which can do more than hold data. If you trust its author,"
                f" pass trusted=[{name!r}]."
            )


def _explain(model: Any, trusted: list[str]) -> str:
    """Return a sentence that names the smallest part of a model that cannot be saved."""
    path, part, passed = "", model, {id(model)}
    while (found := _culprit(part, trusted)) is not None and id(found[1]) not in passed:
        step, part = found
        path += step
        passed.add(id(part))
    where = f"its part {path.lstrip('.')!r}" if path else "it"
    return (
        f"This {type(model).__name__} cannot be saved: {where} is {_describe(part)}. A file holds data, not"
        f" code: replace it{_way_out(part, trusted)}."
    )


def _way_out(part: Any, trusted: list[str]) -> str:
    """Return the advice to trust the type of a part, if that is enough to save it."""
    name = _name(part if hasattr(part, "__qualname__") else type(part))
    try:
        _dump(part, [*trusted, name])
    except Exception:
        return ""
    return f", or allow it with trusted=[{name!r}] here and where the file is loaded"


def _culprit(part: Any, trusted: list[str]) -> tuple[str, Any] | None:
    for step, child in _children(part):
        try:
            _dump(child, trusted)
        except Exception:
            return step, child
    return None


def _children(part: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(part, dict):
        yield from ((f"[{key!r}]", value) for key, value in part.items())
    elif isinstance(part, list | tuple):
        yield from ((f"[{i}]", value) for i, value in enumerate(part))
    elif isinstance(part, np.ndarray) and part.dtype == object:
        yield from ((f"[{i}]", value) for i, value in enumerate(part.ravel()))
    elif hasattr(part, "__dict__") and not hasattr(part, "__qualname__"):
        yield from ((f".{name}", value) for name, value in vars(part).items())


def _describe(part: Any) -> str:
    if isinstance(part, type):
        return f"the class {_name(part)}"
    if callable(part) and hasattr(part, "__qualname__"):
        return f"the function {_name(part)}"
    return f"an object of type {_name(type(part))}"


def _name(named: Any) -> str:
    return f"{getattr(named, '__module__', 'builtins')}.{named.__qualname__}"


# -- loading -----------------------------------------------------------------------------------------------


def _warn_about_versions(header: ModelHeader) -> None:
    from sklearn import __version__ as here

    there = header.versions.get("scikit-learn", here)
    if there.split(".")[:2] != here.split(".")[:2]:
        warnings.warn(
            f"This model was saved with scikit-learn {there} and is loaded with {here}; its estimators may"
            " predict differently or fail. Fit the model again if possible.",
            TupletWarning,
            stacklevel=3,
        )


def _compare(path: Path, header: ModelHeader, model: Any) -> None:
    """Check that the object is a model, and the one that the header describes."""
    if not hasattr(model, "predict_joint") or not hasattr(model, "space_"):
        _damaged(path, "it does not hold a model")
    if type(model).__name__ != header.model or _variables_of(model.space_) != header.variables:
        _damaged(path, "its header describes another model")


def _names(trusted: Sequence[str | type]) -> list[str]:
    if isinstance(trusted, str):
        trusted = [trusted]
    return [each if isinstance(each, str) else _name(each) for each in trusted]


def require_skops() -> Any:
    """Return `skops.io`, which writes and reads models."""
    try:
        import skops.io
    except ImportError:
        raise MissingDependencyError(
            "Saving and loading models needs skops; run `pip install tuplet[save]`."
        ) from None
    return skops.io


# -- header -----------------------------------------------------------------------------------------------


def _variables_of(space: ClassSpace) -> tuple[Variable, ...]:
    """Return the class variables of a space."""
    return tuple(
        Variable(name, tuple(_plain(label) for label in labels.tolist()), str(dtype))
        for name, labels, dtype in zip(space.names, space.categories, space._form.dtypes, strict=True)
    )


def _plain(label: Any) -> Any:
    return label if label is None or isinstance(label, str | int | float) else str(label)


def _optional(convert: Any, value: Any) -> Any:
    return None if value is None else convert(value)


def _text(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else repr(value)).split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # pragma: no cover - a source tree that was never installed
            continue
    return found


# -- archive -----------------------------------------------------------------------------------------------


def _write(path: Path, header: dict[str, Any], model: bytes) -> None:
    header = {"format": FORMAT, **header, "sha256": hashlib.sha256(model).hexdigest()}
    text = json.dumps(header, indent=1, ensure_ascii=False).encode()
    try:
        with open_atomic(path) as file:
            _pack(file, text, model, zipfile.ZIP_DEFLATED)
            if len(text) + len(model) > _GROWTH * file.tell():
                file.truncate(file.seek(0))
                _pack(file, text, model, zipfile.ZIP_STORED)
    except OSError as error:
        raise ModelFileError(f"The model cannot be written to {str(path)!r}: {error.strerror}.") from None


def _pack(file: Any, header: bytes, model: bytes, compression: int) -> None:
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr(_HEADER, header)
        archive.writestr(_MODEL, model)
    file.seek(0, os.SEEK_END)


def _read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file as JSON, after a check of the format version."""
    with _opened(path) as archive:
        header = json.loads(_read(archive, path, _HEADER, limit=_HEADER_LIMIT))
        if not isinstance(header, dict) or type(header.get("format")) is not int:
            _damaged(path, "its header has no format version")
        if header["format"] != FORMAT:
            raise ModelFileError(_other_format(path, header))
        return header


def _other_format(path: Path, header: dict[str, Any]) -> str:
    versions = header.get("versions")
    writer = versions.get("tuplet") if isinstance(versions, dict) else None
    which = "a newer" if header["format"] > FORMAT else "that"
    return (
        f"{str(path)!r} has format {header['format']}, written by tuplet {writer or 'of an unknown version'};"
        f" this version reads format {FORMAT} only. Load the file with {which} version of tuplet, or fit and"
        " save the model again."
    )


def _read_model(path: Path, header: dict[str, Any]) -> bytes:
    """Return the bytes of the model, after a check against the checksum in the header."""
    with _opened(path) as archive:
        model = _read(archive, path, _MODEL, limit=_GROWTH * path.stat().st_size)
        if hashlib.sha256(model).hexdigest() != header.get("sha256"):
            _damaged(path, "the model in it is not the one that its header describes")
        return model


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    if not path.is_file():
        raise ModelFileError(f"There is no file {str(path)!r}.")
    with _refusing_damage(path), zipfile.ZipFile(path) as archive:
        yield archive


def _read(archive: zipfile.ZipFile, path: Path, name: str, *, limit: int) -> bytes:
    """Return one part of an archive, never more bytes than `limit`."""
    parts = [part for part in archive.infolist() if part.filename == name]
    if len(parts) != 1:
        _damaged(path, f"it has no part {name!r}" if not parts else f"it has several parts {name!r}")
    if parts[0].file_size > limit:
        _damaged(path, f"its part {name!r} would unpack to {parts[0].file_size:,} bytes")
    return archive.read(parts[0])


@contextmanager
def _refusing_damage(path: Path) -> Iterator[None]:
    """Turn errors of libraries about a damaged file into a `ModelFileError`."""
    try:
        yield
    except TupletError:
        raise
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # zipfile, zlib, json, numpy and skops raise errors of many types
        reason = str(error).strip().splitlines() or [type(error).__name__]
        _damaged(path, f"reading it failed with {reason[0].rstrip('.')!r}")


def _damaged(path: Path, reason: str) -> NoReturn:
    """Raise the error for a file that is not a model, or a damaged one."""
    raise ModelFileError(
        f"{str(path)!r} is not a model of tuplet, or it is damaged: {reason}. Save the model again, or use"
        " another copy."
    ) from None

"""The file of a model: a zip archive of a header and the model, written as a whole and read defensively.

The header is JSON that describes the model for people and programs that do not load it.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from tuplet.core.atomic_files import open_atomic
from tuplet.core.exceptions import ModelFileError, TupletError
from tuplet.space.classes import ClassSpace

FORMAT = 2
"""Version of the file format, raised whenever an older version of tuplet would misread a newer file."""

_HEADER, _MODEL = "header.json", "model.skops"

_HEADER_LIMIT = 64 * 2**20
"""Bytes of a header; names and labels of any sensible model take far less."""

_GROWTH = 50
"""Limit of the unpacked size relative to the file; models that compress better are stored uncompressed."""

_WIDTH = 300
"""Characters of a parameter; nested models may have a long text."""

_PACKAGES = ("tuplet", "scikit-learn", "numpy", "scipy", "pandas", "skops")


# -- header ------------------------------------------------------------------------------------------------


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
            variables=variables_of(model.space_),
            container=model.space_._form.container,
            n_features=_optional(int, getattr(model, "n_features_in_", None)),
            features=None if names is None else tuple(map(str, names)),
            n_rows=_optional(int, getattr(model, "n_samples_fit_", None)),
            log_likelihood=None if np.ndim(likelihood or 0) else _optional(float, likelihood),
            parameters={name: _text(value) for name, value in model.get_params(deep=False).items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the header as JSON."""
        return asdict(self)

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


def variables_of(space: ClassSpace) -> tuple[Variable, ...]:
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


# -- writing -----------------------------------------------------------------------------------------------


def write(path: Path, header: dict[str, Any], model: bytes) -> None:
    """Write a file that appears under its name once it is complete."""
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


# -- reading -----------------------------------------------------------------------------------------------


def read_raw_header(path: Path) -> dict[str, Any]:
    """Return the header of a file as JSON, after a check of the format version."""
    with _opened(path) as archive:
        header = json.loads(_read(archive, path, _HEADER, limit=_HEADER_LIMIT))
        if not isinstance(header, dict) or type(header.get("format")) is not int:
            damaged(path, "its header has no format version")
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


def read_model_part(path: Path, header: dict[str, Any]) -> bytes:
    """Return the bytes of the model, after a check against the checksum in the header."""
    with _opened(path) as archive:
        model = _read(archive, path, _MODEL, limit=_GROWTH * path.stat().st_size)
        if hashlib.sha256(model).hexdigest() != header.get("sha256"):
            damaged(path, "the model in it is not the one that its header describes")
        return model


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    if not path.is_file():
        raise ModelFileError(f"There is no file {str(path)!r}.")
    with refusing_damage(path), zipfile.ZipFile(path) as archive:
        yield archive


def _read(archive: zipfile.ZipFile, path: Path, name: str, *, limit: int) -> bytes:
    """Return one part of an archive, never more bytes than `limit`."""
    parts = [part for part in archive.infolist() if part.filename == name]
    if len(parts) != 1:
        damaged(path, f"it has no part {name!r}" if not parts else f"it has several parts {name!r}")
    if parts[0].file_size > limit:
        damaged(path, f"its part {name!r} would unpack to {parts[0].file_size:,} bytes")
    return archive.read(parts[0])


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Turn errors of libraries about a damaged file into a `ModelFileError`."""
    try:
        yield
    except TupletError:
        raise
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # zipfile, zlib, json, numpy and skops raise errors of many types
        reason = str(error).strip().splitlines() or [type(error).__name__]
        damaged(path, f"reading it failed with {reason[0].rstrip('.')!r}")


def damaged(path: Path, reason: str) -> NoReturn:
    """Raise the error for a file that is not a model, or a damaged one."""
    raise ModelFileError(
        f"{str(path)!r} is not a model of tuplet, or it is damaged: {reason}. Save the model again, or use"
        " another copy."
    ) from None

"""What a file says about its model, for people and programs that do not want to load it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

import numpy as np

from tuplet.exceptions import ModelFileError
from tuplet.space import ClassSpace

_WIDTH = 300
"""Characters of a parameter; a model within a model within a model may have a long name."""

_PACKAGES = ("tuplet", "scikit-learn", "numpy", "scipy", "pandas", "skops")


@dataclass(frozen=True)
class Variable:
    """A class variable.

    Parameters
    ----------
    name : str
    labels : tuple
        In the order of their codes; what JSON does not know (dates, intervals) is text.
    type : str
        What the labels were in training, such as "category", "int64" or "boolean".
    """

    name: str
    labels: tuple[Any, ...]
    type: str


@dataclass(frozen=True)
class ModelHeader:
    """What a file says about its model.

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
        What labels came as, and come back as: "array", "pandas", "polars", ...
    n_features : int or None
    features : tuple of str or None
        Names of the columns of X, if they had names.
    n_rows : int or None
        Rows that the model learned from, if it knows.
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
        """Read the header from JSON, which anyone may have written."""
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
            raise ModelFileError("The header of the file is incomplete: edited or damaged.") from None
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

"""`save_model` and `load_model`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError

from tuplet.core.exceptions import MissingDependencyError, ModelFileError, TupletWarning
from tuplet.io.saved_models import archive
from tuplet.io.saved_models.archive import ModelHeader, variables_of
from tuplet.io.saved_models.audit import approve
from tuplet.io.saved_models.compiled import check_whole
from tuplet.io.saved_models.recipes import rewrite
from tuplet.io.saved_models.registry import with_names, with_paths


def save_model(model: Any, path: str | Path, *, trusted: Sequence[str | type] = ()) -> None:
    """Write a fitted model to one file that is safe to load from an untrusted source.

    Parameters
    ----------
    model : JointClassifier or DecisionClassifier
        Fitted. Estimators inside of it may be any of scikit-learn's.
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
    >>> from tuplet.models import ChainClassifier
    >>> model = ChainClassifier().fit([[0], [1], [2], [3]], [[0, 1], [0, 1], [1, 0], [1, 1]])
    >>> path = Path(tempfile.mkdtemp()) / "model.tuplet"
    >>> save_model(model, path)
    >>> load_model(path).predict([[3]])
    array([[1, 1]])
    """
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
    archive.write(Path(path).expanduser(), ModelHeader.of(model).to_json(), data)


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
    JointClassifier or DecisionClassifier
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
    raw = archive.read_raw_header(path)
    header = ModelHeader.from_json(raw)
    data = archive.read_model_part(path, raw)
    names = _names(trusted)
    io = require_skops()
    _warn_about_versions(header)
    with archive.refusing_damage(path), warnings.catch_warnings():
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
    return ModelHeader.from_json(archive.read_raw_header(Path(path).expanduser()))


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
        archive.damaged(path, "it does not hold a model")
    if type(model).__name__ != header.model or variables_of(model.space_) != header.variables:
        archive.damaged(path, "its header describes another model")


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

"""What queries of a prediction share: arguments, checked, and the warning that answers are estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import narwhals.dependencies as kinds
import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.exceptions import (
    ApproximationWarning,
    InputError,
    LabelError,
    NoSuchRowError,
    warn_outside,
)
from tuplet.core.typing import UNKNOWN, Codes
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution
from tuplet.losses.base import Loss
from tuplet.losses.registry import get_loss
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing, open_table, require_same_order
from tuplet.space.labels import seen_codes, show

_REMEDY = "; ChainClassifier(engine=MonteCarlo(size=...)) narrows it, Enumerate(limit=...) is exact"


def check_count(query: str, name: str, value: Any, least: int) -> int:
    """Return a whole number that is at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{query}: {name} must be a whole number of at least {least}, found {value!r}.")
    return int(value)


def row_positions(rows: Any, n: int, query: str = "prediction[...]") -> npt.NDArray[np.intp]:
    """Return the positions (r,) of rows given by a position, a slice, positions or a mask."""
    chosen = rows if isinstance(rows, slice) else np.asarray(rows)
    if isinstance(chosen, np.ndarray):
        if not chosen.size:
            chosen = chosen.astype(np.intp)  # numpy calls an empty list floats
        if chosen.dtype.kind not in "iub" or chosen.ndim > 1:
            raise NoSuchRowError(
                f"{query}: a row goes by its position, from 0 to {n - 1}, not by its name; found {rows!r}."
            )
    try:
        return np.atleast_1d(np.arange(n)[chosen])
    except IndexError:
        raise NoSuchRowError(
            f"{query}: there are {n} rows, at the positions 0 to {n - 1}; found {rows!r}."
        ) from None


def read_loss(loss: str | Loss, space: ClassSpace) -> Loss:
    """Return the loss of a space; one of positive labels is an error if it is unclear which are positive."""
    chosen = get_loss(loss).for_space(space)
    if not getattr(chosen, "binary", False) or max(space.cards) > 2:
        return chosen  # the loss itself refuses more than two labels
    unclear = [j for j in range(space.n_variables) if not space.knows_positive(j)]
    if unclear:
        j = unclear[0]
        labels = " and ".join(show(label) for label in space.categories[j])
        raise InputError(
            f"{chosen.name} needs to know which label is positive, but {space.names[j]!r} has {labels}; code"
            " them as 0/1 or booleans, or declare a Categorical with the positive label last."
        )
    return chosen


# -- known labels ------------------------------------------------------------------------------------------


def encode_known(
    space: ClassSpace, known: Any, n_rows: int, query: str, index: pd.Index | None = None
) -> Codes:
    """Return known labels as codes (n, m), `UNKNOWN` for every label that is not known.

    Parameters
    ----------
    space : ClassSpace
        Names and labels.
    known : mapping, frame, or anything that `ClassSpace.encode` takes
        A mapping or a frame may leave variables out. In a mapping, a value is one label for all rows or one
        label per row; missing labels are unknown.
    n_rows : int
        Number of rows n.
    query : str
        Name of the query, for messages.
    index : pandas Index, optional
        Names of the rows. Labels go by position; those with the same names in another order are an error.
    """
    columns = _named_columns(space, known, query)
    _check_order(known, "Y", query, index)
    if columns is None:
        codes = space.encode(known)
        _check_length(len(codes), "Y", n_rows, query)
        return codes
    codes = np.full((n_rows, space.n_variables), UNKNOWN, dtype=np.intp)
    for name, values in columns.items():
        _check_order(values, repr(name), query, index)
        column = space.codes_of(name, values)
        if column.ndim:
            _check_length(len(column), repr(name), n_rows, query)
        codes[:, space.position(name)] = column
    return codes


def encode_seen(
    space: ClassSpace, known: Any, n_rows: int, query: str, index: pd.Index | None = None
) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return what `encode_known` returns, and the rows (n,) with labels that are not in the space.

    Such labels are `UNKNOWN`. A single label for all rows must be in the space.
    """
    try:
        return encode_known(space, known, n_rows, query, index), np.zeros(n_rows, dtype=bool)
    except LabelError:
        columns = _named_columns(space, known, query)
        if columns is None:
            columns = dict(zip(space.names, space._match(open_table(known)), strict=True))
        elif not all(map(pd.api.types.is_list_like, columns.values())):
            raise
    codes = np.full((n_rows, space.n_variables), UNKNOWN, dtype=np.intp)
    unseen = np.zeros(n_rows, dtype=bool)
    for name, values in columns.items():
        j, column = space.position(name), open_table(values).columns[0]
        _check_length(len(column), repr(name), n_rows, query)
        codes[:, j], strange = seen_codes(column, space.categories[j])
        unseen |= strange
    return codes, unseen


def known_text(space: ClassSpace, codes: Codes) -> str:
    """Return the known labels of one row of codes (m,) as `name=label, ...`."""
    return ", ".join(
        f"{name}={show(space.categories[j][code])}"
        for j, (name, code) in enumerate(zip(space.names, codes, strict=True))
        if code != UNKNOWN
    )


def _check_order(labels: Any, what: str, query: str, index: pd.Index | None) -> None:
    if isinstance(labels, (pd.DataFrame, pd.Series)):
        require_same_order(f"{query}: the prediction and {what}", index, labels.index)


def _named_columns(space: ClassSpace, known: Any, query: str) -> Mapping[Any, Any] | None:
    """Return labels of some variables by name; None if labels of all variables were given."""
    if isinstance(known, Mapping):
        return known
    if not isinstance(known, pd.DataFrame) and not kinds.is_polars_dataframe(known):
        return None
    names = [str(name) for name in known.columns]
    overlap = set(space.names) & set(names)
    if not overlap and space.named:
        raise InputError(
            f"{query}: none of the columns {listing(names)} is a class variable; these are"
            f" {listing(space.names)}."
        )
    if not overlap or len(overlap) == space.n_variables:
        return None
    return {str(name): known[name] for name in known.columns}


def _check_length(found: int, what: str, n_rows: int, query: str) -> None:
    if found != n_rows:
        raise InputError(f"{query}: {what} has {found} labels for the {n_rows} rows of the prediction.")


# -- estimates ---------------------------------------------------------------------------------------------


def is_estimated(joint: JointDistribution) -> bool:
    """Whether sums over outcomes are estimates; computes the tolerance only where it is needed."""
    return not joint.scores_exactly or joint.tolerance > 0


def estimate_text(joint: JointDistribution, what: str = "probabilities", *, measure: bool = True) -> str:
    """Return how far the probabilities of a distribution can be trusted, in words; empty if they are exact.

    Parameters
    ----------
    joint : JointDistribution
    what : str
        What is an estimate, a plural.
    measure : bool
        Whether to state the error even if finding it takes as long as finding all marginals: given evidence,
        that is what it takes.
    """
    if not is_estimated(joint):
        return ""
    if not measure and not joint.scores_exactly:
        return f"{what} are estimates, with the error that `tolerance` states"
    if np.isinf(joint.tolerance):
        return f"{what} are approximations without a guarantee"
    return f"{what} are estimated within {joint.tolerance:.2g}"


def warn_estimated(
    query: str, joint: JointDistribution, *, measure: bool = True, marginals: bool = False
) -> None:
    """Warn, once per call, that a query was answered by estimates; do nothing if it was not.

    With `marginals`, the query is about marginals of single variables only.
    """
    if marginals and joint.has_exact_marginals:
        return
    text = estimate_text(joint, measure=measure)
    if not text:
        return
    if "within" in text:
        text += " (four standard errors)"
    chain = any(isinstance(part, Autoregressive) for part in parts(joint))
    warn_outside(f"{query}: {text}{_REMEDY if chain else ''}.", ApproximationWarning)


def parts(joint: JointDistribution) -> Iterator[JointDistribution]:
    """Yield a distribution and those that it is made of."""
    yield joint
    inner = getattr(joint, "components", None) or [getattr(joint, "joint", None)]
    for part in inner:
        if isinstance(part, JointDistribution):
            yield from parts(part)

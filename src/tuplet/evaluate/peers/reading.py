"""What peers return, read into one form: a table of probabilities for each class variable, and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from tuplet.evaluate.peers.chains import chain_probabilities
from tuplet.exceptions import InputError
from tuplet.local.estimators import name_of
from tuplet.local.inputs import Features, n_rows
from tuplet.metrics.scorers import unwrap
from tuplet.space.containers import listing
from tuplet.typing import Codes, Floats


def read_probabilities(peer: Any, X: Features, names: Sequence[str], n_labels: Sequence[int]) -> list[Floats]:
    """Probabilities (n, n_labels[j]) of the labels of each variable, rows that sum to one.

    Parameters
    ----------
    peer : classifier
        Fitted to codes that run from 0 without gaps. It may return a list of tables, or a matrix (n, m),
        dense or sparse, of the probabilities of code 1.
    X : features of n rows
    names : sequence of str
        The m variables that the peer was fitted to, for messages.
    n_labels : sequence of int
        How many labels of each of them the peer was fitted to, at least 2.
    """
    last, inputs = unwrap(peer, X)
    if isinstance(last, ClassifierChain) and max(n_labels) > 2:
        given: Any = chain_probabilities(last, inputs)
    else:
        given = last.predict_proba(inputs)
    tables = _as_tables(given, n_labels)
    if [table.shape for table in tables] != [(n_rows(X), count) for count in n_labels]:
        raise InputError(
            f"{name_of(peer)}.predict_proba gave {_shapes(given)}, which cannot be read as the probabilities"
            f" of {listing(names)} with {', '.join(map(str, n_labels))} labels; use a classifier that gives a"
            " table for each variable."
        )
    if not all(_are_probabilities(table) for table in tables):
        raise InputError(
            f"{name_of(peer)}.predict_proba gave rows that are no probabilities; choose another classifier or"
            " look at the scale of the features."
        )
    tables = [np.maximum(table, 0) for table in tables]
    return [table / table.sum(axis=1, keepdims=True) for table in tables]


def read_answers(peer: Any, X: Features) -> Codes:
    """Return the peer's own answers (n, m), as codes."""
    last, inputs = unwrap(peer, X)
    if isinstance(last, MultiOutputClassifier):
        # One by one, because CatBoost answers in (n, 1) for more than two labels, (n,) for two, and
        # MultiOutputClassifier cannot stack these.
        columns = [np.ravel(estimator.predict(inputs)) for estimator in last.estimators_]
        return np.column_stack(columns).astype(np.intp)
    return _dense(last.predict(inputs)).reshape(n_rows(X), -1).astype(np.intp)


def lift(table: Floats, floor: float) -> Floats:
    """Raise probabilities (n, k) that are below the floor to the floor; the others of the row shrink for it.

    Rows still sum to one. What shrinks below the floor by this, having been just above it, is raised too.
    """
    low = table < floor
    while True:
        left = 1 - floor * low.sum(axis=1, keepdims=True)
        others = np.where(low, 0.0, table)
        lifted = np.where(low, floor, others * (left / others.sum(axis=1, keepdims=True)))
        lower = lifted < floor
        if not lower.any():
            return lifted
        low |= lower


def _as_tables(given: Any, n_labels: Sequence[int]) -> list[Floats]:
    """Return probabilities in any of the usual forms as tables (n, c_j); what fits none stays one table."""
    if isinstance(given, (list, tuple)):
        return [np.asarray(table, dtype=float) for table in given]
    matrix = _dense(given).astype(float)
    if matrix.ndim == 2 and matrix.shape[1] == len(n_labels) and max(n_labels) == 2:
        return [np.column_stack([1 - column, column]) for column in matrix.T]
    return [matrix]


def _are_probabilities(table: Floats) -> bool:
    """Whether rows can be normalised; sums over combinations leave the interval by rounding, not by more."""
    return bool((table >= -1e-6).all() and (np.abs(table.sum(axis=1) - 1) < 1e-3).all())


def _dense(values: Any) -> npt.NDArray[Any]:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _shapes(given: Any) -> str:
    if isinstance(given, (list, tuple)):
        return "tables of the shapes " + ", ".join(str(np.shape(table)) for table in given)
    return f"an array of shape {given.shape}"

"""Probabilities of multi-output classifiers, whatever form their `predict_proba` returns.

| form | returned by |
|---|---|
| a list of m tables (n, c_j) | forests, trees, neighbours, `MultiOutputClassifier` |
| a matrix (n, m), dense or sparse: the probability of the second label of each output | chains, networks |
| one table (n, c) | any classifier of a single output |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.space.features.estimators import is_one_of, name_of, unwrap
from tuplet.space.features.inputs import Features, n_rows, put_beside

if TYPE_CHECKING:
    from sklearn.multioutput import ClassifierChain

_CHAIN = {"sklearn": ("ClassifierChain",)}


class Output(NamedTuple):
    """Probabilities (n, c) of the c labels of one output, and these labels; None if they are not listed."""

    table: Floats
    labels: Any


def read_outputs(classifier: Any, X: Features, n_outputs: int) -> list[Output]:
    """Return the outputs of a fitted classifier for n rows; rows of the tables add up to one.

    Parameters
    ----------
    classifier : classifier
        With `predict_proba`; pipelines and fitted searches are looked into.
    X : features of n rows
    n_outputs : int
        Number of outputs that the classifier was fitted to.
    """
    last, inputs = unwrap(classifier, X)
    labels = output_labels(last, n_outputs)
    if is_one_of(last, _CHAIN) and any(len(each) > 2 for each in last.classes_):
        given: Any = chain_probabilities(last, inputs)
    else:
        given = last.predict_proba(inputs)
    outputs = _as_outputs(given, labels)
    shapes = [output.table.shape for output in outputs]
    if len(outputs) != n_outputs or any(len(shape) != 2 or shape[0] != n_rows(X) for shape in shapes):
        raise InputError(
            f"{name_of(classifier)}.predict_proba returned {_shapes(given)}, which cannot be read as the"
            f" probabilities of {n_outputs} class variables; use a classifier that returns a table for each"
            " variable."
        )
    return [Output(_normalised(output.table, classifier), output.labels) for output in outputs]


def output_labels(classifier: Any, n_outputs: int) -> list[Any]:
    """Return the labels of each output of a fitted classifier, None where it does not list them."""
    while hasattr(classifier, "best_estimator_") or isinstance(classifier, Pipeline):
        classifier = classifier[-1] if isinstance(classifier, Pipeline) else classifier.best_estimator_
    classes: Any = getattr(classifier, "classes_", None)
    if is_one_of(classifier, _CHAIN):
        # They are listed in the order of the chain.
        classes = [classes[place] for place in np.argsort(classifier.order_)]
    several = isinstance(classes, list) and all(isinstance(each, np.ndarray) for each in classes)
    if several and len(classes) == n_outputs:
        return classes
    return [classes] if n_outputs == 1 and not several else [None] * n_outputs


def chain_probabilities(chain: ClassifierChain, X: Any) -> list[Floats]:
    """Probabilities (n, c_j) that a fitted chain gives to the labels of each variable, along its own answers.

    `ClassifierChain.predict_proba` has one column per variable, the probability of the second label, and so
    fails for variables with more than two. This follows the chain as it does: each link gets x and the
    answers (`predict`) of the links before it.

    The tables are therefore p(y_j | x, the chain's own greedy answers before j). Their product is the
    chain's joint probability for the greedy answer alone; for other combinations it is not, and it is no
    product of marginals either. It is what a user gets who multiplies the chain's probabilities.

    Parameters
    ----------
    chain : ClassifierChain
        Fitted, with the default `chain_method`.
    X : array or sparse matrix, shape (n, d)

    Returns
    -------
    list of arrays, shape (n, c_j)
        In the order of the columns of Y.
    """
    X = check_array(X, accept_sparse="csr", ensure_all_finite=False)
    answers = np.empty((n_rows(X), 0))
    tables = {}
    for variable, link in zip(chain.order_, chain.estimators_, strict=True):
        inputs = put_beside(X, answers, ())
        tables[variable] = np.asarray(link.predict_proba(inputs), dtype=float)
        answers = np.column_stack([answers, link.predict(inputs)])
    return [tables[variable] for variable in range(len(tables))]


def as_dense(values: Any) -> npt.NDArray[Any]:
    """Return an array, dense or sparse, as a dense one."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _as_outputs(given: Any, labels: list[Any]) -> list[Output]:
    """Return probabilities in any of the usual forms as outputs; what fits none is one of them."""
    if isinstance(given, (list, tuple)):
        tables = [np.asarray(table, dtype=float) for table in given]
        return [Output(*pair) for pair in zip(tables, _of_length(labels, len(tables)), strict=True)]
    matrix = as_dense(given).astype(float)
    constant = len(labels) == 1 and labels[0] is not None and len(labels[0]) == 1
    if matrix.ndim == 2 and matrix.shape[1] == len(labels) and not constant:
        return [
            Output(np.column_stack([1 - column, column]), [0, 1] if known is None else known)
            for column, known in zip(matrix.T, labels, strict=True)
        ]
    return [Output(matrix, labels[0])]


def _of_length(labels: list[Any], n: int) -> list[Any]:
    return labels if len(labels) == n else [None] * n


def _normalised(table: Floats, classifier: Any) -> Floats:
    """Return probabilities that add up to one; rounding may have left the interval, but not by more."""
    if not ((table >= -1e-6).all() and (np.abs(table.sum(axis=1) - 1) < 1e-3).all()):
        raise InputError(
            f"{name_of(classifier)}.predict_proba returned rows that are not probabilities; choose another"
            " classifier or look at the scale of the features."
        )
    table = np.maximum(table, 0)
    return table / table.sum(axis=1, keepdims=True)


def _shapes(given: Any) -> str:
    if isinstance(given, (list, tuple)):
        return "tables of the shapes " + ", ".join(str(np.shape(table)) for table in given)
    return f"an array of shape {given.shape}"

"""Expected losses by enumeration: the risk of given answers, and the best of many candidates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuplet.core.limits import row_blocks
from tuplet.core.typing import Codes, Floats
from tuplet.joint.atoms import Atoms
from tuplet.joint.base import JointDistribution

TIE = 1e-12
"""Risks closer than this are the same risk: the order of a sum must not decide."""


_FEW = 16
"""Columns up to which they are compared one by one."""


def first_lowest(risks: Floats) -> npt.NDArray[np.intp]:
    """Position (n,) of the lowest of the risks (n, c), the first one of equals."""
    if risks.shape[1] > _FEW:
        return (risks <= risks.min(axis=1, keepdims=True) + TIE).argmax(axis=1)
    if risks.shape[1] == 2:
        return (risks[:, 0] > risks[:, 1] + TIE).astype(np.intp)
    # Column by column: numpy takes five times as long for short rows.
    limit = np.minimum.reduce(list(risks.T)) + TIE
    last = risks.shape[1] - 1
    answer = np.full(len(risks), last, dtype=np.intp)
    for column in range(last - 1, -1, -1):
        np.copyto(answer, column, where=risks[:, column] <= limit)
    return answer


def expected_value(value: Callable[[Codes, Codes], Floats], joint: Atoms, y_pred: npt.ArrayLike) -> Floats:
    """Expectation (..., n) of the loss of answers (..., n, m) over the atoms of a joint distribution."""
    pred = joint._as_codes(y_pred)
    n, a = joint.log_weights.shape
    answers = pred.reshape(math.prod(pred.shape[:-2]), n, joint.n_variables)
    risks = np.empty(answers.shape[:-1])
    for rows in row_blocks(max(1, n), len(answers) * a * joint.n_variables):
        truth = joint.codes if len(joint.codes) == 1 else joint.codes[rows]
        losses = value(truth, answers[:, rows, None])
        risks[:, rows] = (losses * np.exp(joint.log_weights[rows])).sum(axis=-1)
    return risks.reshape(pred.shape[:-1])


def support(joint: Atoms) -> tuple[Codes, Any]:
    """Distinct outcomes (u, m) of the whole batch in lexicographic order, and their weights (n, u).

    The weights are a sparse matrix if every row has atoms of its own, since then most of them are zero.
    """
    n, a = joint.log_weights.shape
    weights = np.exp(joint.log_weights)
    if len(joint.codes) == 1:
        order = np.lexsort(joint.codes[0].T[::-1])
        return joint.codes[0][order], weights[:, order]
    outcomes, column = np.unique(joint.codes.reshape(n * a, -1), axis=0, return_inverse=True)
    row = np.repeat(np.arange(n), a)
    return outcomes, sparse.csr_array((weights.ravel(), (row, column.ravel())), shape=(n, len(outcomes)))


def best_of(
    pairwise: Callable[[Codes, Codes], Floats],
    joint: Atoms,
    candidates: Codes,
    allowed: npt.NDArray[np.bool_] | None = None,
) -> Codes:
    """Candidate of least expected loss in every row, the first one of equals.

    Parameters
    ----------
    pairwise : callable
        Loss (u, c) of every pair of truths (u, m) and answers (c, m).
    joint : Atoms
    candidates : array of int, shape (c, m)
    allowed : array of bool, shape (n, c), optional
        Candidates that each row may take.

    Returns
    -------
    array of int, shape (n, m)
    """
    outcomes, weights = support(joint)
    lowest, chosen = np.full(len(joint), np.inf), np.zeros(len(joint), dtype=np.intp)
    for block in row_blocks(len(candidates), max(len(outcomes), len(joint)) * joint.n_variables):
        risks = weights @ pairwise(outcomes, candidates[block])
        if allowed is not None:
            risks = np.where(allowed[:, block], risks, np.inf)
        first = first_lowest(risks)
        low = risks[np.arange(len(joint)), first]
        better = low < lowest - TIE
        lowest[better], chosen[better] = low[better], block.start + first[better]
    return candidates[chosen]


def own_atoms(pairwise: Callable[[Codes, Codes], Floats], joint: JointDistribution) -> Codes:
    """Atom of least expected loss in every row, among the row's own atoms of positive probability.

    Other rows' atoms are no candidates: what is decided for a row must not depend on the batch it is in.
    """
    atoms = joint.to_atoms()
    if len(atoms.codes) == 1:
        candidates, weights = support(atoms)
        return best_of(pairwise, atoms, candidates, weights > 0)
    return np.concatenate([_best_of_row(pairwise, row) for row in atoms])


def _best_of_row(pairwise: Callable[[Codes, Codes], Floats], row: Atoms) -> Codes:
    codes = row.codes[0][~np.isneginf(row.log_weights[0])]
    return best_of(pairwise, row, codes[np.lexsort(codes.T[::-1])])

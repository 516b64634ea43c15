"""Which models do not differ: the groups that a diagram of critical differences joins by bars."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.exceptions import InputError


def groups_from_difference(ranks: pd.Series, critical_difference: float) -> list[list[str]]:
    """Return the largest groups of models whose average ranks differ by less than the critical difference.

    Parameters
    ----------
    ranks : Series
        Average rank of each model.
    critical_difference : float
        Ranks that differ by this much or more differ significantly.

    Returns
    -------
    list of lists of names
        Of at least two models, from the best rank to the worst.

    Examples
    --------
    >>> ranks = pd.Series({"chain": 1.4, "powerset": 2.1, "independent": 3.2, "prior": 3.3})
    >>> groups_from_difference(ranks, 1.2)
    [['chain', 'powerset'], ['powerset', 'independent', 'prior']]
    """
    ordered = ranks.sort_values(kind="stable")
    values, names = ordered.to_numpy(dtype=float), list(ordered.index)
    ends = [int(np.count_nonzero(values - value < critical_difference)) for value in values]
    return [
        names[start:end]
        for start, end in enumerate(ends)
        if end - start > 1 and (start == 0 or end > ends[start - 1])
    ]


def groups_from_p_values(
    p: pd.DataFrame, alpha: float = 0.05, *, ranks: pd.Series | None = None
) -> list[list[str]]:
    """Return the largest groups of models no two of which differ significantly.

    Where p values grow as ranks come closer (Nemenyi, Conover), each group is a run of neighbours in the
    order of ranks. Other tests can leave gaps: the first and the third model do not differ, but the second
    differs from both. Such a group is returned as it is, and `plot_critical_differences` marks its members by
    dots, because a diagram that knows only runs would show a difference that was not found.

    Parameters
    ----------
    p : DataFrame, models x models
        Symmetric; the diagonal does not count.
    alpha : float
        Two models differ if their p value is below.
    ranks : Series, optional
        Average rank of each model, for the order of the models; by default that of `p`.

    Returns
    -------
    list of lists of names
        Maximal cliques of at least two models, each in the order of ranks.

    Examples
    --------
    >>> names = ["chain", "powerset", "prior"]
    >>> p = pd.DataFrame([[1, 0.3, 0.01], [0.3, 1, 0.08], [0.01, 0.08, 1]], index=names, columns=names)
    >>> groups_from_p_values(p)
    [['chain', 'powerset'], ['powerset', 'prior']]
    """
    names = list(p.index if ranks is None else ranks.sort_values(kind="stable").index)
    alike = _p_matrix(p, names) >= alpha
    np.fill_diagonal(alike, False)
    neighbours = [set(np.flatnonzero(row).tolist()) for row in alike]
    cliques = sorted(sorted(clique) for clique in _cliques(set(), set(range(len(names))), set(), neighbours))
    return [[names[i] for i in clique] for clique in cliques if len(clique) > 1]


def _p_matrix(p: pd.DataFrame, names: list[str]) -> npt.NDArray[np.float64]:
    """Return the p values in this order of models, checked."""
    for found in (p.index, p.columns):
        if not found.is_unique or set(found) != set(names):
            raise InputError(
                "groups_from_p_values: rows and columns of `p`, and `ranks`, must name the same models once; "
                f"found {list(found)} beside {list(names)}."
            )
    matrix = p.reindex(index=names, columns=names).to_numpy(dtype=float, copy=True)
    np.fill_diagonal(matrix, 1.0)
    # NaN is unequal to itself, so a p value that is missing is found here too.
    wrong = np.argwhere(~np.isclose(matrix, matrix.T, rtol=1e-6, atol=0))
    if len(wrong):
        i, j = wrong[0]
        raise InputError(
            f"groups_from_p_values: `p` must be symmetric and complete; for '{names[i]}' and '{names[j]}' it "
            f"has {matrix[i, j]:g} and {matrix[j, i]:g}."
        )
    return matrix


def _cliques(
    chosen: set[int], possible: set[int], done: set[int], neighbours: list[set[int]]
) -> Iterator[set[int]]:
    """Yield the maximal cliques that extend `chosen` (Bron and Kerbosch, 1973, with a pivot)."""
    if not possible and not done:
        yield chosen
        return
    pivot = max(possible | done, key=lambda i: len(neighbours[i] & possible))
    for i in possible - neighbours[pivot]:
        yield from _cliques(chosen | {i}, possible & neighbours[i], done & neighbours[i], neighbours)
        possible, done = possible - {i}, done | {i}

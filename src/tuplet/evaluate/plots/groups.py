"""Which models do not differ: the groups that a diagram of critical differences joins by bars."""

from __future__ import annotations

import numpy as np
import pandas as pd


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

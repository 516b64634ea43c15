"""Rows of two tables belong together by position; their indexes tell when they cannot."""

from __future__ import annotations

import pandas as pd

from tuplet.core.exceptions import InputError


def require_same_order(query: str, ours: pd.Index | None, theirs: pd.Index | None) -> None:
    """Refuse two tables that hold the same rows in another order.

    Everything goes by position, and indexes that have nothing to do with each other are nobody's business.
    But two indexes of the same unique labels in another order are almost surely a mistake, and a silent one.

    Parameters
    ----------
    query : str
        What is held against each other, as the subject of the message: "fit: X and Y".
    ours, theirs : pandas Index or None
        None if a table has no index; then nothing is compared.

    Raises
    ------
    InputError

    Examples
    --------
    >>> import pandas as pd
    >>> require_same_order("fit: X and Y", pd.Index([4, 7]), pd.Index([7, 4]))
    Traceback (most recent call last):
    ...
    tuplet.core.exceptions.InputError: fit: X and Y hold the same rows in another order; align them with \
.loc, or pass .to_numpy() to go by position.
    """
    if ours is None or theirs is None or len(ours) != len(theirs) or ours.nlevels != theirs.nlevels:
        return
    if ours.equals(theirs) or not ours.is_unique or not theirs.is_unique:
        return
    if ours.isin(theirs).all():
        raise InputError(
            f"{query} hold the same rows in another order; align them with .loc, or pass .to_numpy() to go"
            " by position."
        )

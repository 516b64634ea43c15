"""Whether what a metric compares belongs together: kinds of arguments, rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.prediction.joint import JointPrediction
from tuplet.space.rows import require_same_order


def reject_prediction(Y: Any) -> None:
    """Refuse a joint prediction where labels are wanted, before anything looks into it row by row."""
    if isinstance(Y, JointPrediction):
        raise InputError(
            "This metric compares labels with labels, found a JointPrediction; pass model.predict(X) or"
            " prediction.decide(loss)."
        )


def require_same_rows(what: str, left: Any, right: Any) -> None:
    """Refuse two tables of pandas, or a table and a prediction, with the same rows in another order."""
    require_same_order(what, _index(left), _index(right))


def _index(rows: Any) -> pd.Index | None:
    return rows.index if isinstance(rows, pd.DataFrame | pd.Series | JointPrediction) else None

"""Beliefs of base classifiers about rows that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuplet.local.inputs import Features, take_rows
from tuplet.models.cross_fitting import fold_weights
from tuplet.models.rules.sources import Source
from tuplet.space import ClassSpace
from tuplet.typing import Codes, Floats


class HeldOut(NamedTuple):
    """Rows (r,), probabilities (r, k_j) of class variables by name, and weights (r,) or None.

    A row whose weight lies in several folds comes several times, each with its part of the weight.
    """

    rows: npt.NDArray[np.intp]
    beliefs: dict[str, Floats]
    weights: Floats | None


def held_out_beliefs(
    sources: Sequence[Source],
    space: ClassSpace,
    X: Features,
    codes: Codes,
    sample_weight: Floats | None,
    n_folds: int,
) -> HeldOut:
    """Return what sources say of every row when fitted to the other folds; fitted ones are simply asked."""
    if all(source.prefit for source in sources):
        return HeldOut(np.arange(len(codes)), _ask(sources, X, space), sample_weight)
    whole = np.ones(len(codes)) if sample_weight is None else sample_weight
    rows, weights, parts = [], [], []
    for share in fold_weights(X, codes, sample_weight, n_folds).T:
        held, rest = np.flatnonzero(share > 0), whole - share
        used = np.flatnonzero(rest > 0)
        if not len(held) or not len(used):
            continue
        some: Any = None if sample_weight is None else rest[used]
        fitted = [source.fitted(take_rows(X, used), space, codes[used], some) for source in sources]
        parts.append(_ask(fitted, take_rows(X, held), space))
        rows.append(held)
        weights.append(share[held])
    if not parts:
        return HeldOut(np.zeros(0, dtype=np.intp), {}, None)
    merged = {name: np.vstack([part[name] for part in parts]) for name in parts[0]}
    every = None if sample_weight is None else np.concatenate(weights)
    return HeldOut(np.concatenate(rows), merged, every)


def _ask(sources: Sequence[Source], X: Features, space: ClassSpace) -> dict[str, Floats]:
    answers = [source.beliefs(X, space) for source in sources]
    return {name: table for answer in answers for name, table in answer.items()}

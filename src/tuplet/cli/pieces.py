"""Predictions of some rows, as the columns and records that are written to files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tuplet.prediction import JointPrediction
from tuplet.space import ClassSpace
from tuplet.typing import UNKNOWN, Codes, Floats


@dataclass(frozen=True)
class Piece:
    """What is said of some rows.

    Parameters
    ----------
    kept : DataFrame
        Columns of the input that come along.
    labels : DataFrame
        The decision; a variable that it abstains from is missing.
    chances : DataFrame
        `P(name)`, the probability of each label by itself; or `P(name=label)` for all labels.
    combinations : list of (DataFrame, array (n,))
        The most probable combinations, best first, with their probabilities; where there are fewer, labels
        are missing and the probability is 0.
    """

    kept: pd.DataFrame
    labels: pd.DataFrame
    chances: pd.DataFrame
    combinations: list[tuple[pd.DataFrame, Floats]]

    def flat(self) -> pd.DataFrame:
        """One line per row: what is kept, labels, their probabilities, then the combinations with theirs."""
        parts = [self.kept, self.labels, self.chances]
        for rank, (labels, chance) in enumerate(self.combinations, 1):
            parts.append(labels.add_prefix(f"top{rank}."))
            parts.append(pd.DataFrame({f"top{rank}.probability": chance}, index=labels.index))
        return pd.concat(parts, axis=1)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one object per row: the same, with an object for each part."""
        kept, labels, chances = _rows(self.kept), _rows(self.labels), _rows(self.chances)
        combinations = [(_rows(frame), chance.tolist()) for frame, chance in self.combinations]
        for i in range(len(labels)):
            record = {**kept[i], "labels": labels[i], "probabilities": chances[i]}
            if combinations:
                record["combinations"] = [
                    {"labels": frame[i], "probability": chance[i]}
                    for frame, chance in combinations
                    if chance[i] > 0
                ]
            yield record


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    columns = [[_plain(value) for value in values.tolist()] for _, values in frame.items()]
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it; what is missing is null."""
    if value is pd.NA or value is pd.NaT or (isinstance(value, float) and not np.isfinite(value)):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def label_frame(space: ClassSpace, codes: Codes, index: pd.Index | None = None) -> pd.DataFrame:
    """Return labels of codes (n, m) as a frame of pandas, also of a model that learned from polars."""
    frame = space.decode_frame(codes, index)
    return frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame.to_dict(as_series=False), index)


def make_piece(
    prediction: JointPrediction, kept: pd.DataFrame, *, loss: Any, top_k: int, all_labels: bool
) -> Piece:
    """Decide for some rows, and say how probable that is.

    Parameters
    ----------
    prediction : JointPrediction
    kept : DataFrame
    loss : str or Loss
    top_k : int
        Combinations to list; may be 0.
    all_labels : bool
        Whether to give the probabilities of all labels, not only of those decided for.
    """
    space, index = prediction.space, kept.index
    codes = prediction._decide(loss, "predict")
    marginals = prediction._marginals("predict")
    if all_labels:
        chances = {
            f"P({name}={label})": marginals[j][:, c]
            for j, name in enumerate(space.names)
            for c, label in enumerate(space.categories[j].tolist())
        }
    else:
        rows = np.arange(len(codes))
        chances = {
            f"P({name})": np.where(codes[:, j] == UNKNOWN, np.nan, marginals[j][rows, codes[:, j]])
            for j, name in enumerate(space.names)
        }
    combinations = []
    if top_k:
        ranking = prediction.distribution.top_k(top_k)
        for rank in range(ranking.codes.shape[1]):
            chance = np.exp(ranking.log_prob[:, rank])
            combinations.append((label_frame(space, ranking.codes[:, rank], index), chance))
    return Piece(kept, label_frame(space, codes, index), pd.DataFrame(chances, index=index), combinations)

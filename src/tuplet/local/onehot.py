"""Codes of the parents as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats


@dataclass(frozen=True)
class OneHot:
    """One-hot columns for codes (n, p): none for a constant, one for a binary parent, k_i for any other.

    An unknown code puts the training frequencies into its columns, the neutral value: it then adds to a
    linear model what the average row adds.

    Parameters
    ----------
    frequencies : tuple of arrays (k_i,)
        Training frequencies of the values of each parent.
    """

    frequencies: tuple[Floats, ...]

    @classmethod
    def fit(cls, codes: Codes, cards: Sequence[int], weights: Floats) -> OneHot:
        """Learn the frequencies from codes (n, p) with weights (n,); those of nothing are equal."""
        frequencies = []
        for code, card in zip(codes.T, cards, strict=True):
            known = code != UNKNOWN
            counts = np.bincount(code[known], weights[known], minlength=card)
            frequencies.append(counts / counts.sum() if counts.sum() > 0 else np.full(card, 1 / card))
        return cls(tuple(frequencies))

    @property
    def widths(self) -> list[int]:
        """Number of columns of each parent."""
        return [one_hot_width(len(values)) for values in self.frequencies]

    @property
    def starts(self) -> npt.NDArray[np.intp]:
        """First column of each parent; the last entry is the number of all columns."""
        return np.concatenate([[0], np.cumsum(self.widths)]).astype(np.intp)

    def columns(self, codes: Codes) -> Floats:
        """Return the columns (n, w) of codes (n, p)."""
        answer = np.zeros((len(codes), self.starts[-1]))
        for code, frequencies, start in zip(codes.T, self.frequencies, self.starts[:-1], strict=True):
            known = code != UNKNOWN
            if len(frequencies) == 2:
                answer[:, start] = np.where(known, code, frequencies[1])
            elif len(frequencies) > 2:
                answer[np.flatnonzero(known), start + code[known]] = 1.0
                answer[~known, start : start + len(frequencies)] = frequencies
        return answer

    def names(self, labels: Sequence[Sequence[str]] | None) -> list[str]:
        """Return the names of the columns, from one label per value of each parent."""
        if labels is None:
            labels = [[f"parent{i}={v}" for v in range(len(f))] for i, f in enumerate(self.frequencies)]
        return [
            name for values in labels for name in list(values)[len(values) - one_hot_width(len(values)) :]
        ]

    def effects(self, slopes: Floats) -> list[Floats]:
        """Return what each value of each parent adds to linear predictors: a list of (k_i, c).

        Parameters
        ----------
        slopes : array, shape (w, c)
            What one unit of each column adds.
        """
        blocks = np.split(slopes, self.starts[1:-1])
        return [
            np.vstack([np.zeros((len(values) - len(block), slopes.shape[1])), block])
            for values, block in zip(self.frequencies, blocks, strict=True)
        ]


def one_hot_width(card: int) -> int:
    """Return the number of columns of a variable with this cardinality."""
    return card if card > 2 else card - 1

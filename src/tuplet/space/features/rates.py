"""What labels reveal about columns with many values: how often each label occurs with each value.

Everything is made of sums over rows, of weights by value and label, so that it could be learned in chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from scipy.special import logit
from scipy.stats import norm

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.space.classes import ClassSpace
from tuplet.space.features.nominal import codes_and_values

_MOST_LABELS = 32
"""Labels that columns are compared with, at most: those that vary most."""

_FEWEST_ROWS = 10
"""Rows that a label must have, and must lack, to say anything about columns."""

_FOLDS = 5

_PRIOR_ROWS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""Rows with the overall frequency that are added to those of each value; held-out rows choose."""

_CHANCE = 0.01
"""Probability that a column that has nothing to do with the labels passes a test, over all labels."""

_MOST_VALUES = 10_000
"""Values of a column that are remembered, at most: the most frequent ones."""


@final
@dataclass(frozen=True, eq=False)
class LabelIndicators:
    """Labels of the training rows as columns of zeros and ones.

    Parameters
    ----------
    names : tuple of str
        Such as "weather=wet".
    values : array, shape (n, L)
        NaN where the label is missing.
    weights : array, shape (n,)
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    """

    names: tuple[str, ...]
    values: Floats
    weights: Floats
    groups: Codes | None = None

    @classmethod
    def of(
        cls, space: ClassSpace, codes: Codes, weights: Floats | None = None, groups: Codes | None = None
    ) -> LabelIndicators | None:
        """Return the labels that vary most; None if all of them are too rare or too frequent.

        Examples
        --------
        >>> space = ClassSpace(("weather",), (np.array(["dry", "wet"]),))
        >>> LabelIndicators.of(space, np.arange(30)[:, None] % 2).names
        ('weather=wet',)
        """
        rows = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
        found: list[tuple[float, str, Floats]] = []
        for j, (name, labels) in enumerate(zip(space.names, space.categories, strict=True)):
            known = codes[:, j] != UNKNOWN
            counts = np.bincount(codes[known, j], minlength=len(labels))
            for k in range(1 if len(labels) == 2 else 0, len(labels)):
                few = min(counts[k], counts.sum() - counts[k])
                if few >= _FEWEST_ROWS:
                    column = np.where(known, codes[:, j] == k, np.nan)
                    found.append((float(few), f"{name}={labels[k]}", column))
        chosen = sorted(found, key=lambda each: -each[0])[:_MOST_LABELS]
        if not chosen:
            return None
        names, columns = tuple(name for _, name, _ in chosen), [column for _, _, column in chosen]
        return cls(names, np.column_stack(columns), rows, groups)

    @property
    def folds(self) -> Codes:
        """Folds (n,) of the rows, the same for all columns."""
        unit = np.arange(len(self.weights)) if self.groups is None else self.groups
        _, unit = np.unique(unit, return_inverse=True)
        return (np.random.default_rng(0).permutation(unit.max() + 1) % _FOLDS)[unit]

    def correlated(self, columns: Any) -> Floats:
        """Return by how much columns (n, t), dense or sparse, are correlated with a label beyond chance.

        Standard errors above those that chance exceeds rarely, for the label that a column is most correlated
        with, shape (t,); positive where there is a correlation.
        """
        strength, squares = np.zeros(columns.shape[1]), columns * columns
        for y in self.values.T:
            w = np.where(np.isnan(y), 0.0, self.weights)
            w /= w.sum()
            centred = np.nan_to_num(y) - w @ np.nan_to_num(y)
            variance = (squares.T @ w - (columns.T @ w) ** 2) * (w @ centred**2)
            found = np.abs(columns.T @ (w * centred)) / np.sqrt(np.maximum(variance, 1e-12) * (w @ w))
            np.maximum(strength, found, out=strength)
        return strength - self.needed_deviation(2 * len(strength))

    def needed_deviation(self, n_tests: int) -> float:
        """Return the standard errors that chance exceeds in one of this many tests, by all labels, rarely."""
        return float(norm.isf(_CHANCE / (n_tests * len(self.names))))


@final
@dataclass(frozen=True, eq=False)
class LabelRates:
    """A column of many values as log-odds of labels given the value, relative to their overall log-odds.

    Parameters
    ----------
    values : tuple
        Those that occur in two rows at least; any other has the overall log-odds, 0.
    table : array, shape (values, L)
    missing : array, shape (L,)
        The log-odds of rows without a value.
    labels : tuple of str
    """

    values: tuple[Any, ...]
    table: Floats
    missing: Floats
    labels: tuple[str, ...]

    def names(self, name: str) -> list[str]:
        """Return the names of the columns."""
        return [f"{name}: {label}" for label in self.labels]

    def read(self, column: pd.Series) -> list[Floats]:
        """Return the columns (n,) of log-odds."""
        codes, values = codes_and_values(column)
        position = {value: row for row, value in enumerate(self.values)}
        rows = np.array([*(position.get(value, len(position)) for value in values), -1], dtype=np.intp)
        table = np.vstack([self.table, np.zeros(len(self.labels)), self.missing])
        return list(table[rows[codes]].T)


def learn_rates(
    column: pd.Series, labels: LabelIndicators, certain: bool = False
) -> tuple[LabelRates, list[Floats]] | None:
    """Learn how often labels occur with the values of a column, for the labels that this helps to predict.

    Returns the rates and the columns of the training rows, each of which comes from the other four fifths of
    the rows. None if the values help to predict no label in these held-out rows.

    Parameters
    ----------
    column : Series, shape (n,)
    labels : LabelIndicators
    certain : bool
        Whether all labels are used, without a test.
    """
    codes, values = codes_and_values(column)
    codes = np.where(codes == UNKNOWN, len(values), codes).astype(np.intp)  # missing is the last value
    fold = labels.folds
    found = [_label_rates(codes, len(values) + 1, y, labels.weights, fold) for y in labels.values.T]
    need = labels.needed_deviation(1)
    used = [i for i, each in enumerate(found) if certain or each.deviation > need]
    if not used:
        return None
    counts = np.bincount(codes, minlength=len(values) + 1)[:-1]
    kept = np.flatnonzero(counts > 1)
    kept = kept[np.argsort(-counts[kept], kind="stable")[:_MOST_VALUES]]
    table = np.column_stack([found[i].table for i in used])
    rates = LabelRates(
        tuple(values[v] for v in kept), table[kept], table[-1], tuple(labels.names[i] for i in used)
    )
    return rates, [found[i].held_out for i in used]


@dataclass(frozen=True, eq=False)
class _Rates:
    """Log-odds of one label by value (V,), of training rows by the other folds (n,), and their gain."""

    table: Floats
    held_out: Floats
    deviation: float


def _label_rates(codes: Codes, n_values: int, y: Floats, weights: Floats, fold: Codes) -> _Rates:
    known = ~np.isnan(y)
    weight, y = np.where(known, weights, 0.0), np.where(known, y, 0.0)
    cells = fold * n_values + codes
    rows = np.bincount(cells, weight, _FOLDS * n_values).reshape(_FOLDS, n_values)
    hits = np.bincount(cells, weight * y, _FOLDS * n_values).reshape(_FOLDS, n_values)
    rest, rest_hits = rows.sum(axis=0) - rows, hits.sum(axis=0) - hits
    base = (rest_hits.sum(axis=1) + 0.5) / (rest.sum(axis=1) + 1)
    best, chosen = -np.inf, (np.zeros(len(y)), 0.0, _PRIOR_ROWS[-1])
    for prior in _PRIOR_ROWS:
        rate = ((rest_hits + prior * base[:, None]) / (rest + prior))[fold, codes]
        plain = base[fold]
        gain = np.where(y == 1, np.log(rate / plain), np.log1p(-rate) - np.log1p(-plain))
        mean = np.average(gain, weights=weight)
        if mean > best:
            best, chosen = mean, (logit(rate) - logit(plain), _deviation(gain, weight, mean), prior)
    overall = (hits.sum() + 0.5) / (rows.sum() + 1)
    rate = (hits.sum(axis=0) + chosen[2] * overall) / (rows.sum(axis=0) + chosen[2])
    return _Rates(logit(rate) - logit(overall), *chosen[:2])


def _deviation(gain: Floats, weight: Floats, mean: float) -> float:
    """Return a mean in standard errors."""
    spread = np.average((gain - mean) ** 2, weights=weight)
    n = weight.sum() ** 2 / (weight**2).sum()
    return float(mean / np.sqrt(spread / n)) if spread > 0 else 0.0

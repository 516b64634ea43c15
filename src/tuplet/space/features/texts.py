"""Free text as a bounded number of columns: TF-IDF weights of terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.typing import Codes, Floats
from tuplet.space.features.rates import LabelIndicators

_MOST_TERMS = 1000
"""Terms that are counted at most: the most frequent ones."""

_MOST_COLUMNS = 100
"""Terms of one column of text that become columns, at most."""

_SAMPLE = 20_000
"""Rows from which the terms are learned, at most."""


@final
@dataclass(frozen=True, eq=False)
class TermWeights:
    """A column of free text as TF-IDF weights of some of its terms.

    The weight of a term is (1 + log of its count) times its inverse document frequency; those of a row have
    Euclidean norm 1 over all terms that are counted.

    Parameters
    ----------
    terms : tuple of str
        All that are counted.
    inverse : array, shape (terms,)
        Inverse document frequencies.
    chosen : array of int
        The terms that become columns.
    """

    terms: tuple[str, ...]
    inverse: Floats
    chosen: Codes

    def names(self, name: str) -> list[str]:
        """Return the names of the columns."""
        return [f"{name}: {self.terms[t]}" for t in self.chosen]

    def read(self, column: pd.Series) -> list[Floats]:
        """Return the columns (n,) of weights."""
        return list(self.weigh(column)[:, self.chosen].toarray().T)

    def weigh(self, column: pd.Series) -> Any:
        """Return the weights (n, terms) as a sparse matrix."""
        counts = _counter(vocabulary=list(self.terms)).transform(_texts(column)).astype(float)
        counts.data = 1 + np.log(counts.data)
        weights = counts.multiply(self.inverse).tocsr()
        norms = np.sqrt(weights.multiply(weights).sum(axis=1)).A1
        return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1.0)) @ weights)


def learn_terms(column: pd.Series, labels: LabelIndicators | None) -> TermWeights | None:
    """Learn the terms of a column of text; None if no term is of use.

    With labels, terms become columns whose weights are correlated with a label by more than chance, the most
    correlated ones. Without, the most frequent ones, one for every 50 rows.
    """
    n = len(column)
    floor = max(2, min(10, n // 200))
    sample = column.iloc[np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp)]
    counter = _counter(min_df=floor, max_features=_MOST_TERMS, binary=True)
    try:
        counts = counter.fit_transform(_texts(sample))
    except ValueError:  # no term is frequent enough
        return None
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    inverse = np.log((1 + len(sample)) / (1 + frequency)) + 1
    every = TermWeights(tuple(counter.get_feature_names_out().tolist()), inverse, np.zeros(0, dtype=np.intp))
    if labels is None:
        chosen = np.argsort(-frequency, kind="stable")[: min(_MOST_COLUMNS, max(1, n // 50))]
    else:
        excess = labels.correlated(every.weigh(column))
        order = np.argsort(-excess, kind="stable")[:_MOST_COLUMNS]
        chosen = order[excess[order] > 0]
    return TermWeights(every.terms, inverse, np.sort(chosen).astype(np.intp)) if len(chosen) else None


def _texts(column: pd.Series) -> list[str]:
    return ["" if missing else str(text) for text, missing in zip(column, column.isna(), strict=True)]


def _counter(**settings: Any) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    return CountVectorizer(token_pattern=r"(?u)\b\w+\b", **settings)

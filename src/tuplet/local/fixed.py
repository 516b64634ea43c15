"""A local model some of whose parents are observed: discrete features, which every row brings along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from tuplet.joint.base import all_outcomes
from tuplet.local.base import LocalModel
from tuplet.local.inputs import Features, n_rows, require_size, take_rows
from tuplet.typing import UNKNOWN, Codes, Floats


@final
@dataclass(frozen=True)
class ObservedModel:
    """p(y_j | x, y_parents) in which the last parents of a model are features of x.

    Parameters
    ----------
    model : LocalModel
        With class parents first and features behind them.
    fallback : LocalModel or None
        The same with the class parents alone, for rows in which a feature is `UNKNOWN`; None where there is
        no feature.
    n_parents : int
        Number of class parents.

    Examples
    --------
    >>> from tuplet.local.split import SplitModel
    >>> X, codes = np.zeros((6, 0)), np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 0], [1, 0]])
    >>> child, given = np.array([0, 1, 1, 1, 0, 0]), {"child_card": 2}
    >>> model = SplitModel(strength=1).fit(X, codes, child, parent_cards=(2, 2), **given)
    >>> fallback = SplitModel(strength=1).fit(X, codes[:, :1], child, parent_cards=(2,), **given)
    >>> table = ObservedModel(model, fallback, 1).log_table(X[:2], np.array([[1], [UNKNOWN]]))
    >>> np.exp(table).round(3).tolist()
    [[[0.25, 0.375], [0.75, 0.625]], [[0.25, 0.625], [0.75, 0.375]]]
    """

    model: LocalModel
    fallback: LocalModel | None
    n_parents: int

    def log_table(self, X: Features, features: Codes) -> Floats:
        """Log-probabilities for every value of the class parents, shape (*parent_cards, k, n).

        Parameters
        ----------
        X : features, n rows
        features : int array, shape (n, f)
            Codes of the features that are parents.
        """
        if self.fallback is None:
            return self.model.log_table(X)
        known = (features != UNKNOWN).all(axis=1)
        if known.all():
            return self._known(X, features)
        answer = np.empty((*self._cards, self.model.child_card_, n_rows(X)))
        if known.any():
            answer[..., known] = self._known(take_rows(X, known), features[known])
        answer[..., ~known] = self.fallback.log_table(take_rows(X, ~known))
        return answer

    @property
    def _cards(self) -> tuple[int, ...]:
        return self.model.parent_cards_[: self.n_parents]

    def _known(self, X: Features, features: Codes) -> Floats:
        outcomes = all_outcomes(self._cards) if self._cards else np.zeros((1, 0), dtype=np.intp)
        n, q, k = n_rows(X), len(outcomes), self.model.child_card_
        require_size(f"A table over {q:,} values of the parents", n * q, k)
        rows = np.tile(np.arange(n), q)
        flat = self.model.bind(X)(rows, np.hstack([np.repeat(outcomes, n, axis=0), features[rows]]))
        return np.ascontiguousarray(np.moveaxis(flat.reshape(*self._cards, n, k), -2, -1))

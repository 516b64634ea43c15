"""Gradients of many rules at once over all combinations of a few labels, listed once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuplet.joint.base import all_outcomes
from tuplet.rules.learning_data import Evidence
from tuplet.rules.learning_terms import AnyTerm, cells_of
from tuplet.typing import UNKNOWN, Codes, Floats


class DensePasses:
    """Log-likelihood of batches as a function of the inhibitions of rules over scopes of one length.

    Rules do not depend on the row: their product is one vector over the combinations, and a batch needs one
    softmax. That is all there is to a step of the paper's learner.

    Parameters
    ----------
    evidence : Evidence
        Without given rules.
    scopes : array, shape (K, J)
        Variables of the rules.
    p : float
        Probability of all rules.
    fixed : sequence of terms
        Rules that stay as they are.
    """

    def __init__(self, evidence: Evidence, scopes: Codes, p: float, fixed: Sequence[AnyTerm] = ()) -> None:
        self.evidence, self.p = evidence, p
        self.outcomes = all_outcomes(evidence.cards)
        cards = np.asarray(evidence.cards)
        # Inhibitions lie side by side: of rule 0 those of its first label, of its second label, ...
        starts = np.cumsum([0, *cards[scopes].reshape(-1)])
        self.n_parameters = int(starts[-1])
        first = starts[:-1].reshape(scopes.shape)
        self.index = first[:, None, :] + self.outcomes[:, scopes].transpose(1, 0, 2)  # (K, combinations, J)
        self.log_beliefs = np.hstack(evidence.log_beliefs)
        columns = [self.outcomes[:, j] == c for j, card in enumerate(cards) for c in range(card)]
        self.one_hot = np.stack(columns).astype(float)
        self.own = np.ravel_multi_index(tuple(evidence.complete.T), evidence.cards)
        self.partial = (evidence.codes == UNKNOWN).any(axis=1)
        self.fixed = np.zeros(len(self.outcomes))
        for term in fixed:
            self.fixed += term.log_table().reshape(-1)[cells_of(term.scope, evidence.cards, self.outcomes)]

    def gradient(self, q: Floats, rows: npt.NDArray[np.intp]) -> tuple[float, Floats]:
        """Return the weighted sum of log P(known labels | beliefs, rules) of some rows, and d / d q (P,)."""
        breach = q[self.index].prod(axis=2)
        factor = self.p - (2 * self.p - 1) * breach
        log_weight = self.log_beliefs[rows] @ self.one_hot + (self.fixed + np.log(factor).sum(axis=0))
        weights = self.evidence.weights[rows]
        posterior, log_z = _softmax(log_weight)
        truth, log_known = self._truth(log_weight, rows)
        surplus = weights @ (truth - posterior)
        by_log_q = -(2 * self.p - 1) * surplus * breach / factor
        spread = np.repeat(by_log_q.reshape(-1), self.index.shape[2])
        slope = np.bincount(self.index.reshape(-1), spread, minlength=self.n_parameters) / q
        return float(weights @ (log_known - log_z)), slope

    def _truth(self, log_weight: Floats, rows: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the posterior (r, combinations) given the known labels, and the log of their weight (r,)."""
        truth, places, own = np.zeros_like(log_weight), np.arange(len(rows)), self.own[rows]
        truth[places, own] = 1.0
        log_known = log_weight[places, own]
        for i in np.flatnonzero(self.partial[rows]):
            code = self.evidence.codes[rows[i]]
            agrees = ((self.outcomes == code) | (code == UNKNOWN)).all(axis=1)
            posterior, total = _softmax(np.where(agrees, log_weight[i], -np.inf)[None])
            truth[i], log_known[i] = posterior[0], total[0]
        return truth, log_known


def _softmax(log_weight: Floats) -> tuple[Floats, Floats]:
    top = log_weight.max(axis=1, keepdims=True)
    weight = np.exp(log_weight - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, (np.log(total) + top)[:, 0]

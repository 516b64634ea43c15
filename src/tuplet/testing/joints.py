"""One check for every form of joint distribution: all queries against enumeration."""

from __future__ import annotations

import numpy as np

from tuplet.exceptions import ImpossibleEvidenceError
from tuplet.joint import Atoms, JointDistribution
from tuplet.joint.base import all_outcomes
from tuplet.testing.oracle import enumerate_joint
from tuplet.typing import UNKNOWN, Codes, Floats

__all__ = ["check_joint"]


def check_joint(joint: JointDistribution, *, atol: float = 1e-9, random_state: int = 0) -> None:
    """Compare every query of a small joint distribution with enumeration.

    Exact forms must agree to `atol`; a form that states a `tolerance` must keep to that. A form that states
    none (infinity) is only checked for shapes, ranges and consistency.

    Parameters
    ----------
    joint : JointDistribution
        With at most some thousand outcomes: everything is enumerated.
    atol : float
        Absolute tolerance of probabilities.
    random_state : int
        Chooses the partial outcomes that are asked for.

    Raises
    ------
    AssertionError
        That says which query differs and by how much.
    """
    truth = _Truth(joint, enumerate_joint(joint), atol + joint.tolerance, np.random.default_rng(random_state))
    truth.check_shapes()
    truth.check_log_prob()
    truth.check_marginals()
    truth.check_ranking()
    truth.check_condition()
    truth.check_marginal()
    truth.check_summaries()
    truth.check_sample()
    truth.check_rows()


class _Truth:
    """The enumerated distribution beside the one that is checked."""

    def __init__(
        self, joint: JointDistribution, probabilities: Floats, atol: float, rng: np.random.Generator
    ) -> None:
        self.joint = joint
        self.probabilities = probabilities  # (n, L)
        self.outcomes = all_outcomes(joint.cards)  # (L, m)
        self.atol = atol
        self.rng = rng

    def _equal(self, query: str, found: Floats, expected: Floats) -> None:
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape, f"{query}: shape {found.shape}, expected {expected.shape}"
        assert not np.isnan(found).any(), f"{query}: nan"
        error = np.abs(found - expected).max(initial=0.0)
        assert error <= self.atol, f"{query}: off by {error:.3g} (allowed {self.atol:.3g})"

    def _partial(self) -> Codes:
        """Outcomes that the rows may well have, with some positions unknown."""
        n, m = len(self.joint), self.joint.n_variables
        chosen = np.stack([self.outcomes[self.rng.choice(len(p), p=p)] for p in self.probabilities])
        return np.where(self.rng.random((n, m)) < 0.5, UNKNOWN, chosen)

    def _agree(self, codes: Codes) -> np.ndarray:
        """Which outcomes agree with codes (n, m): (n, L)."""
        return ((self.outcomes == codes[:, None]) | (codes[:, None] == UNKNOWN)).all(axis=2)

    def check_shapes(self) -> None:
        assert self.joint.n_outcomes == len(self.outcomes)
        assert isinstance(self.joint.cards, tuple), "cards must be a tuple"
        assert self.joint.tolerance >= 0.0

    def check_log_prob(self) -> None:
        found = np.exp(self.joint.log_prob(self.outcomes[:, None]))
        self._equal("log_prob of all outcomes", found.T, self.probabilities)
        for _ in range(3):
            partial = self._partial()
            expected = (self.probabilities * self._agree(partial)).sum(axis=1)
            self._equal("log_prob of a partial outcome", np.exp(self.joint.log_prob(partial)), expected)

    def check_marginals(self) -> None:
        for j, marginal in enumerate(self.joint.marginals()):
            expected = np.stack(
                [
                    self.probabilities[:, self.outcomes[:, j] == v].sum(axis=1)
                    for v in range(self.joint.cards[j])
                ],
                axis=1,
            )
            self._equal(f"marginal of variable {j}", marginal, expected)

    def check_ranking(self) -> None:
        best = -np.sort(-self.probabilities, axis=1)
        mode = self.joint.mode()
        self._check_values("mode", mode.codes[:, None], mode.log_prob[:, None])
        if mode.proven.any():
            self._equal("probability of the mode", np.exp(mode.log_prob)[mode.proven], best[mode.proven, 0])
        k = min(len(self.outcomes), 6)
        ranking = self.joint.top_k(k)
        self._check_values("top_k", ranking.codes, ranking.log_prob)
        assert (np.diff(np.exp(ranking.log_prob), axis=1) <= self.atol).all(), "top_k: not in order"
        proven = ranking.proven
        if proven.any():
            self._equal("probabilities of top_k", np.exp(ranking.log_prob)[proven], best[proven, :k])

    def _check_values(self, query: str, codes: Codes, log_prob: Floats) -> None:
        """Reported outcomes are distinct and have the probabilities that are reported with them."""
        for i, (row, values) in enumerate(zip(codes, log_prob, strict=True)):
            real = row[~np.isneginf(values)]
            assert (row[np.isneginf(values)] == UNKNOWN).all(), (
                f"{query}: impossible outcomes must be UNKNOWN"
            )
            assert len(np.unique(real, axis=0)) == len(real), f"{query}: repeated outcomes"
            position = [int(np.flatnonzero((self.outcomes == outcome).all(axis=1))[0]) for outcome in real]
            self._equal(
                f"{query} values", np.exp(values[~np.isneginf(values)]), self.probabilities[i, position]
            )

    def check_condition(self) -> None:
        partial = self._partial()
        kept = self.probabilities * self._agree(partial)
        expected = kept / kept.sum(axis=1, keepdims=True)
        given = self.joint.condition(partial)
        found = np.exp(given.log_prob(self.outcomes[:, None])).T
        self._equal("log_prob after condition", found, expected)
        column = [expected[:, self.outcomes[:, 0] == v].sum(axis=1) for v in range(self.joint.cards[0])]
        self._equal("marginals after condition", given.marginals()[0], np.stack(column, axis=1))
        mode = given.mode()
        if mode.proven.all():
            self._equal("mode after condition", np.exp(mode.log_prob), expected.max(axis=1))
        self._check_impossible()

    def _check_impossible(self) -> None:
        impossible = np.flatnonzero((self.probabilities == 0.0).any(axis=1))
        if not len(impossible) or self.joint.tolerance:
            return
        codes = np.full((len(self.joint), self.joint.n_variables), UNKNOWN)
        codes[impossible[0]] = self.outcomes[np.flatnonzero(self.probabilities[impossible[0]] == 0.0)[0]]
        try:
            self.joint.condition(codes)
        except ImpossibleEvidenceError:
            return
        raise AssertionError("condition: impossible evidence must raise ImpossibleEvidenceError")

    def check_marginal(self) -> None:
        m = self.joint.n_variables
        chosen = list(self.rng.permutation(m)[: max(1, m // 2)])
        smaller = self.joint.marginal(chosen)
        assert smaller.cards == tuple(self.joint.cards[v] for v in chosen), "marginal: wrong cards"
        wanted = all_outcomes(smaller.cards)
        groups = (self.outcomes[:, None, chosen] == wanted).all(axis=2)  # (L, wanted)
        self._equal(
            "log_prob of a marginal", np.exp(smaller.log_prob(wanted[:, None])).T, self.probabilities @ groups
        )
        mode = smaller.mode()
        if mode.proven.all():
            self._equal(
                "mode of a marginal", np.exp(mode.log_prob), (self.probabilities @ groups).max(axis=1)
            )

    def check_summaries(self) -> None:
        for (i, j), pair in self.joint.pairwise().items():
            cells = [
                [
                    self.probabilities[:, (self.outcomes[:, [i, j]] == (a, b)).all(axis=1)].sum(axis=1)
                    for b in range(self.joint.cards[j])
                ]
                for a in range(self.joint.cards[i])
            ]
            self._equal(f"pairwise {i}, {j}", pair, np.array(cells).transpose(2, 0, 1))
        if not self.joint.tolerance:
            logs = np.log(np.where(self.probabilities > 0, self.probabilities, 1.0))
            self._equal("entropy", self.joint.entropy(), -(self.probabilities * logs).sum(axis=1))
        if max(self.joint.cards) <= 2:
            table = Atoms(self.joint.cards, self.outcomes[None], _log(self.probabilities))
            self._equal("count_marginals", self.joint.count_marginals(), table.count_marginals())

    def check_sample(self) -> None:
        size = 2000
        draws = self.joint.sample(size, 0)
        assert draws.shape == (size, len(self.joint), self.joint.n_variables), "sample: wrong shape"
        assert (draws == self.joint.sample(size, 0)).all(), "sample: one seed, two answers"
        for j, card in enumerate(self.joint.cards):
            assert ((draws[..., j] >= 0) & (draws[..., j] < card)).all(), "sample: codes out of range"
        matches = (draws[:, :, None] == self.outcomes).all(axis=3)  # (size, n, L)
        assert (self.probabilities[matches.any(axis=0)] > 0).all(), "sample: an impossible outcome was drawn"
        # Five standard errors, so that thousands of comparisons do not fail by chance.
        slack = 5 * np.sqrt(self.probabilities * (1 - self.probabilities) / size) + 5 / size + self.atol
        assert (np.abs(matches.mean(axis=0) - self.probabilities) <= slack).all(), "sample: wrong frequencies"

    def check_rows(self) -> None:
        n = len(self.joint)
        rows = self.rng.permutation(n)[: max(1, n - 1)]
        part = self.joint[rows]
        assert len(part) == len(rows)
        found = np.exp(part.log_prob(self.outcomes[:, None])).T
        self._equal("log_prob of some rows", found, self.probabilities[rows])
        assert len(self.joint[0]) == 1, "one row must be a batch again"


def _log(probabilities: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)

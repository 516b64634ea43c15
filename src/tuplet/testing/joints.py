"""One check for every form of joint distribution: all queries against enumeration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import ImpossibleEvidenceError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.testing.oracle import enumerate_log_joint, log_total

_LOG_RTOL = 1e-7
"""Allowed error of a log-probability of an exact form, relative to one plus its size."""

_SIZE = 2000
"""Draws of each row."""

_SIGMAS = 5
"""Standard errors that are allowed, so that thousands of comparisons do not fail by chance."""

_SPREAD = 0.05
"""Variance of a 0/1 variable below which its draws are too similar for a test of dependence."""


def check_joint(joint: JointDistribution, *, atol: float = 1e-9, random_state: int = 0) -> None:
    """Compare every query of a small joint distribution with enumeration.

    Exact forms must agree to `atol`, and in their log-probabilities to a small relative error, however
    improbable an outcome is; minus infinity is for the impossible alone. A form that states a `tolerance`
    must keep to that. A form that states none (infinity) is only checked for shapes, ranges and consistency.

    Parameters
    ----------
    joint : JointDistribution
        With at most some thousand outcomes: everything is enumerated.
    atol : float
        Absolute tolerance of probabilities.
    random_state : int
        Chooses the partial outcomes of the queries.

    Raises
    ------
    AssertionError
        If a query differs; the message has its name and the error.
    """
    truth = _Truth(joint, enumerate_log_joint(joint), atol + joint.tolerance, random_state)
    truth.check_shapes()
    truth.check_log_prob()
    truth.check_bound()
    truth.check_marginals()
    truth.check_ranking()
    truth.check_condition()
    truth.check_marginal()
    truth.check_summaries()
    _check_draws(joint, truth.probabilities, truth.logs > -np.inf, truth.atol)
    truth.check_rows()


class _Truth:
    """The enumerated distribution beside the one that is checked."""

    def __init__(self, joint: JointDistribution, logs: Floats, atol: float, random_state: int) -> None:
        self.joint = joint
        self.logs = logs  # (n, L)
        self.probabilities = np.exp(np.minimum(logs, 0.0))
        self.outcomes = all_outcomes(joint.cards)  # (L, m)
        self.atol = atol
        self.rng = np.random.default_rng(random_state)

    def _equal(self, query: str, found: Floats, expected: Floats) -> None:
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape, f"{query}: shape {found.shape}, expected {expected.shape}"
        assert not np.isnan(found).any(), f"{query}: nan"
        error = np.abs(found - expected).max(initial=0.0)
        assert error <= self.atol, f"{query}: off by {error:.3g} (allowed {self.atol:.3g})"

    def _equal_logs(self, query: str, found: Floats, expected: Floats) -> None:
        """Compare probabilities that are given as logarithms, and the logarithms too if they are exact."""
        self._equal(query, np.exp(found), np.exp(expected))
        if self.joint.tolerance:
            return
        possible = expected > -np.inf
        assert (found[~possible] == -np.inf).all(), f"{query}: an impossible outcome has a probability"
        assert (found[possible] > -np.inf).all(), f"{query}: a possible outcome has probability zero"
        error = np.abs(found[possible] - expected[possible]) / (1 + np.abs(expected[possible]))
        worst = error.max(initial=0.0)
        assert worst <= _LOG_RTOL, f"{query}: the logarithm is off by {worst:.3g} of its size"

    def _partial(self, *, likely: bool = True) -> Codes:
        """Outcomes (n, m) that the rows may well have, or just may have, with some positions unknown."""
        n, m = len(self.joint), self.joint.n_variables
        weights = self.probabilities if likely else self.logs > -np.inf
        chosen = [self.outcomes[self.rng.choice(len(w), p=w / w.sum())] for w in weights]
        return np.where(self.rng.random((n, m)) < 0.5, UNKNOWN, np.stack(chosen))

    def _agreeing(self, codes: Codes) -> Floats:
        """Log-probabilities (n, L) of the outcomes that agree with codes (n, m); of others minus infinity."""
        return np.where(_agree(self.outcomes, codes), self.logs, -np.inf)

    def _group(self, variables: list[int]) -> tuple[Codes, Floats]:
        """Outcomes (G, v) of some variables and their log-probabilities (n, G)."""
        values = all_outcomes([self.joint.cards[v] for v in variables])
        codes = np.full((len(values), self.joint.n_variables), UNKNOWN)
        codes[:, variables] = values
        inside = _agree(self.outcomes, codes)
        return values, log_total(np.where(inside, self.logs[:, None], -np.inf))

    def check_shapes(self) -> None:
        assert self.joint.n_outcomes == len(self.outcomes)
        assert isinstance(self.joint.cards, tuple), "cards must be a tuple"
        assert self.joint.tolerance >= 0.0

    def check_log_prob(self) -> None:
        found = self.joint.log_prob(self.outcomes[:, None]).T
        self._equal_logs("log_prob of all outcomes", found, self.logs)
        for likely in (True, True, False):
            partial = self._partial(likely=likely)
            found, expected = self.joint.log_prob(partial), log_total(self._agreeing(partial))
            self._equal_logs("log_prob of a partial outcome", found, expected)

    def check_bound(self) -> None:
        """No completion of a partial outcome may exceed its bound: the search of a mixture relies on it."""
        nothing = np.full((len(self.joint), self.joint.n_variables), UNKNOWN)
        partial = np.stack([nothing, *(self._partial(likely=likely) for likely in (True, True, False))])
        bound = self.joint._bound(partial)
        best = np.stack([self._agreeing(codes).max(axis=1) for codes in partial])
        assert bound.shape == best.shape, f"_bound: shape {bound.shape}, expected {best.shape}"
        assert not np.isnan(bound).any(), "_bound: nan"
        if self.joint.tolerance:
            excess = np.exp(best) - np.exp(np.minimum(bound, 0.0)) - self.atol
        else:
            excess = np.where(bound >= best, 0.0, best - bound) - 1e-9 * (1 + np.abs(best))
        assert (excess <= 0).all(), "_bound: a completion is more probable than the bound"

    def check_marginals(self) -> None:
        for j, marginal in enumerate(self.joint.marginals()):
            self._equal(f"marginal of variable {j}", marginal, np.exp(self._group([j])[1]))

    def check_ranking(self) -> None:
        best = -np.sort(-self.logs, axis=1)
        mode = self.joint.mode()
        self._check_values("mode", mode.codes[:, None], mode.log_prob[:, None])
        proven = mode.proven
        self._equal_logs("log-probability of the mode", mode.log_prob[proven], best[proven, 0])
        k = min(len(self.outcomes), 6)
        ranking = self.joint.top_k(k)
        self._check_values("top_k", ranking.codes, ranking.log_prob)
        assert (np.diff(np.exp(ranking.log_prob), axis=1) <= self.atol).all(), "top_k: not in order"
        proven = ranking.proven
        self._equal_logs("log-probabilities of top_k", ranking.log_prob[proven], best[proven, :k])

    def _check_values(self, query: str, codes: Codes, log_prob: Floats) -> None:
        """Reported outcomes are distinct and have the probabilities that are reported with them."""
        for row, found, logs in zip(codes, log_prob, self.logs, strict=True):
            real = found > -np.inf
            assert (row[~real] == UNKNOWN).all(), f"{query}: impossible outcomes must be UNKNOWN"
            position = np.ravel_multi_index(tuple(row[real].T), self.joint.cards)
            assert len(np.unique(position)) == len(position), f"{query}: repeated outcomes"
            self._equal_logs(f"{query} values", found[real], logs[position])

    def check_condition(self) -> None:
        for likely in (True, False):
            partial = self._partial(likely=likely)
            kept = self._agreeing(partial)
            evidence = log_total(kept)
            if self.joint.tolerance and not likely:
                continue  # an estimate may take the improbable for impossible
            self._check_given(self.joint.condition(partial), kept - evidence[:, None])
        self._check_impossible()

    def _check_given(self, given: JointDistribution, expected: Floats) -> None:
        found = given.log_prob(self.outcomes[:, None]).T
        self._equal_logs("log_prob after condition", found, expected)
        first = [self.outcomes[:, 0] == v for v in range(self.joint.cards[0])]
        column = [np.exp(expected[:, chosen]).sum(axis=1) for chosen in first]
        self._equal("marginals after condition", given.marginals()[0], np.stack(column, axis=1))
        mode = given.mode()
        best = expected.max(axis=1)
        self._equal_logs("mode after condition", mode.log_prob[mode.proven], best[mode.proven])

    def _check_impossible(self) -> None:
        rows, outcomes = np.nonzero(np.isneginf(self.logs))
        if not len(rows) or self.joint.tolerance:
            return
        codes = np.full((len(self.joint), self.joint.n_variables), UNKNOWN)
        codes[rows[0]] = self.outcomes[outcomes[0]]
        try:
            self.joint.condition(codes)
        except ImpossibleEvidenceError:
            return
        raise AssertionError("condition: impossible evidence must raise ImpossibleEvidenceError")

    def check_marginal(self) -> None:
        m = self.joint.n_variables
        chosen = [int(v) for v in self.rng.permutation(m)[: max(1, m // 2)]]
        smaller = self.joint.marginal(chosen)
        assert smaller.cards == tuple(self.joint.cards[v] for v in chosen), "marginal: wrong cards"
        wanted, expected = self._group(chosen)
        self._equal_logs("log_prob of a marginal", smaller.log_prob(wanted[:, None]).T, expected)
        mode = smaller.mode()
        best = expected.max(axis=1)
        self._equal_logs("mode of a marginal", mode.log_prob[mode.proven], best[mode.proven])

    def check_summaries(self) -> None:
        for (i, j), pair in self.joint.pairwise().items():
            shape = (len(self.joint), self.joint.cards[i], self.joint.cards[j])
            self._equal(f"pairwise {i}, {j}", pair, np.exp(self._group([i, j])[1]).reshape(shape))
        if not self.joint.tolerance:
            finite = np.where(np.isneginf(self.logs), 0.0, self.logs)
            self._equal("entropy", self.joint.entropy(), -(self.probabilities * finite).sum(axis=1))
        if max(self.joint.cards) <= 2:
            positive = self.outcomes == 1
            cells = positive[..., None] & (
                positive.sum(axis=1)[:, None, None] == np.arange(len(positive.T) + 1)
            )
            expected = np.tensordot(self.probabilities, cells.astype(float), axes=1)
            self._equal("count_marginals", self.joint.count_marginals(), expected)

    def check_rows(self) -> None:
        n = len(self.joint)
        rows = self.rng.permutation(n)[: max(1, n - 1)]
        part = self.joint[rows]
        assert len(part) == len(rows)
        self._equal_logs("log_prob of some rows", part.log_prob(self.outcomes[:, None]).T, self.logs[rows])
        assert len(self.joint[0]) == 1, "one row must be a batch again"


def _agree(outcomes: Codes, codes: Codes) -> npt.NDArray[np.bool_]:
    """Which outcomes (L, m) agree with codes (c, m), as (c, L)."""
    return ((outcomes == codes[:, None]) | (codes[:, None] == UNKNOWN)).all(axis=2)


# -- draws -------------------------------------------------------------------------------------------------


def _check_draws(
    joint: JointDistribution, probabilities: Floats, possible: npt.NDArray[np.bool_], atol: float
) -> None:
    """Compare draws with the probabilities (n, L) of all outcomes, and with each other.

    Draws of a row must not depend on the draws before them, nor the draws of two rows on each other: two
    copies of one row that share random numbers would give the same draws.

    Raises
    ------
    AssertionError
        If the draws are wrong; the message describes it.
    """
    draws = joint.sample(_SIZE, 0)
    assert draws.shape == (_SIZE, len(joint), joint.n_variables), "sample: wrong shape"
    assert (draws == joint.sample(_SIZE, 0)).all(), "sample: one seed, two answers"
    assert ((draws >= 0) & (draws < np.array(joint.cards))).all(), "sample: codes out of range"
    drawn = _positions(draws, joint.cards)
    assert np.take_along_axis(possible.T, drawn, axis=0).all(), "sample: an impossible outcome was drawn"
    frequencies = [np.bincount(column, minlength=probabilities.shape[1]) / _SIZE for column in drawn.T]
    error = np.sqrt(probabilities * (1 - probabilities) / _SIZE)
    slack = _SIGMAS * (error + 1 / _SIZE) + atol
    assert (np.abs(np.array(frequencies) - probabilities) <= slack).all(), "sample: wrong frequencies"
    _check_independence(joint, drawn, probabilities)


def _check_independence(joint: JointDistribution, drawn: Codes, probabilities: Floats) -> None:
    for column, p in zip(drawn.T, probabilities, strict=True):
        likely = _likely(p)[column]
        _uncorrelated("a draw and the one before it", likely[1:], likely[:-1])
    row = int(np.argmax([_likely(p)[column].var() for column, p in zip(drawn.T, probabilities, strict=True)]))
    twins = _positions(joint[[row, row]].sample(_SIZE, 1), joint.cards)
    likely = _likely(probabilities[row])[twins]
    _uncorrelated("the draws of two rows", likely[:, 0], likely[:, 1])
    _uncorrelated("the draws of two rows", likely[1:, 0], likely[:-1, 1])


def _positions(draws: Codes, cards: tuple[int, ...]) -> Codes:
    """Positions (size, n) of draws (size, n, m) among all outcomes."""
    return np.ravel_multi_index(tuple(np.moveaxis(draws, -1, 0)), cards)


def _likely(probabilities: Floats) -> npt.NDArray[np.bool_]:
    """Which outcomes (L,) are the most probable ones that make up about half of the probability."""
    order = np.argsort(-probabilities, kind="stable")
    before = np.cumsum(probabilities[order]) - probabilities[order]
    likely = np.empty(len(order), bool)
    likely[order] = before < 0.5
    return likely


def _uncorrelated(what: str, left: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_]) -> None:
    spread = np.sqrt(left.var() * right.var())
    if spread < _SPREAD:
        return
    covariance = abs((left & right).mean() - left.mean() * right.mean())
    slack = _SIGMAS * (spread / np.sqrt(len(left)) + 1 / len(left))
    assert covariance <= slack, f"sample: {what} depend on each other"

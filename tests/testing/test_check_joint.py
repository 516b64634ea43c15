"""`check_joint` finds what is wrong: forms with one fault each do not pass."""

from dataclasses import dataclass

import numpy as np
import pytest

from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms, FactorGraph, JointDistribution
from tuplet.joint.base import Ranking, all_outcomes
from tuplet.joint.inference import Factor
from tuplet.testing import check_joint, enumerate_log_joint


@dataclass(frozen=True, eq=False, repr=False)
class Wrapper(JointDistribution):
    """Passes every query on; a fault is a subclass that overrides one."""

    inner: JointDistribution

    @property
    def cards(self):
        return self.inner.cards

    def __len__(self):
        return len(self.inner)

    def _take(self, rows):
        return type(self)(self.inner._take(rows))

    def _log_prob(self, codes):
        return self.inner._log_prob(codes)

    def _bound(self, codes):
        return self.inner._bound(codes)

    def _flat_marginals(self):
        return self.inner._flat_marginals()

    def _top_k(self, k):
        return self.inner._top_k(k)

    def _sample(self, size, rng):
        return self.inner._sample(size, rng)

    def _condition(self, codes):
        return self.inner._condition(codes)

    def _marginal(self, variables):
        return self.inner._marginal(variables)


@enumerate_log_joint.register
def _(joint: Wrapper):
    return enumerate_log_joint(joint.inner)


class RoundsTinyLogs(Wrapper):
    def _log_prob(self, codes):
        found = self.inner._log_prob(codes)
        return np.where(found < -30, found + 0.1, found)


class LosesTinyOutcomes(Wrapper):
    def _log_prob(self, codes):
        found = self.inner._log_prob(codes)
        return np.where(found < -500, -np.inf, found)


class FloorsTheImpossible(Wrapper):
    def _log_prob(self, codes):
        return np.maximum(self.inner._log_prob(codes), np.log(1e-300))


class LosesTinyInRanking(Wrapper):
    def _top_k(self, k):
        codes, log_prob, proven = self.inner._top_k(k)
        lost = log_prob < -30
        return Ranking(np.where(lost[..., None], UNKNOWN, codes), np.where(lost, -np.inf, log_prob), proven)


class BoundsTooLow(Wrapper):
    def _bound(self, codes):
        free = (codes == UNKNOWN).sum(axis=-1)
        return self.inner._bound(codes) - 0.01 * free


class BoundsByTheMean(Wrapper):
    def _bound(self, codes):
        free = np.where(codes == UNKNOWN, np.array(self.cards), 1).prod(axis=-1)
        return self.inner._log_prob(codes) - np.log(free)


class SharesRandomNumbers(Wrapper):
    def _sample(self, size, rng):
        seed = int(rng.integers(2**31))
        return np.concatenate([self.inner._take(np.array([i]))._sample(size, np.random.default_rng(seed))
                               for i in range(len(self))], axis=1)  # fmt: skip


class RepeatsDraws(Wrapper):
    def _sample(self, size, rng):
        return np.repeat(self.inner._sample(size // 2, rng), 2, axis=0)


class SortsDraws(Wrapper):
    def _sample(self, size, rng):
        draws = self.inner._sample(size, rng)
        for i in range(len(self)):
            draws[:, i] = draws[np.lexsort(draws[:, i].T), i]
        return draws


FAULTS = {
    RoundsTinyLogs: "logarithm is off",
    LosesTinyOutcomes: "possible outcome has probability zero",
    FloorsTheImpossible: "impossible outcome has a probability",
    LosesTinyInRanking: "possible outcome has probability zero",
    BoundsTooLow: "_bound",
    BoundsByTheMean: "_bound",
    SharesRandomNumbers: "draws of two rows depend",
    RepeatsDraws: "the one before it depend",
    SortsDraws: "the one before it depend",
}


def wide_range() -> Atoms:
    """Possible, very improbable and impossible outcomes; two rows alike."""
    log_weights = np.array([[-0.5, -1.0, -40.0, -900.0, -np.inf, -1.2]] * 2 + [[0, 0, -1, -2, -50, -3.0]])
    return Atoms((2, 3), all_outcomes((2, 3))[None], log_weights)


def test_a_form_without_fault_passes():
    check_joint(Wrapper(wide_range()))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_form_with_a_fault_does_not_pass(fault):
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_joint(fault(wide_range()))


def test_improbable_is_not_impossible():
    table = np.array([[0.0], [-3000.0], [-np.inf]])
    assert enumerate_log_joint(FactorGraph((3,), [Factor((0,), table)], n=1)).tolist() == [
        [0.0, -3000.0, -np.inf]
    ]

"""Tables of all outcomes, for comparisons by enumeration."""

import numpy as np

from tuplet.core.typing import UNKNOWN
from tuplet.joint.base import all_outcomes


def agree(cards, codes):
    """Which outcomes agree with codes (n, m): (n, L)."""
    codes = np.asarray(codes)
    return ((all_outcomes(cards) == codes[:, None]) | (codes[:, None] == UNKNOWN)).all(axis=2)


def restrict(truth, cards, codes):
    kept = truth * agree(cards, codes)
    return kept / kept.sum(axis=1, keepdims=True)


def possible_codes(truth, cards, rng, share=0.5):
    """Outcomes that the rows may have, with unknown positions."""
    outcomes = all_outcomes(cards)
    chosen = np.stack([outcomes[rng.choice(len(p), p=p / p.sum())] for p in truth])
    return np.where(rng.random(chosen.shape) < share, UNKNOWN, chosen)


def project(truth, cards, variables):
    """Probabilities (n, L') of some variables."""
    wanted = all_outcomes([cards[v] for v in variables])
    return truth @ (all_outcomes(cards)[:, None, list(variables)] == wanted).all(axis=2)


def assert_ranking(joint, truth, k=4):
    """The k best, proven, distinct and with their probabilities."""
    cards, outcomes = joint.cards, all_outcomes(joint.cards)
    ranking = joint.top_k(k)
    k = min(k, len(outcomes))
    assert ranking.codes.shape == (len(truth), k, len(cards))
    assert ranking.proven.all()
    np.testing.assert_allclose(np.exp(ranking.log_prob), -np.sort(-truth, axis=1)[:, :k], atol=1e-9)
    for codes, log_prob, p in zip(ranking.codes, ranking.log_prob, truth, strict=True):
        real = log_prob > -np.inf
        assert (codes[~real] == UNKNOWN).all()
        assert len(np.unique(codes[real], axis=0)) == real.sum()
        position = [int(np.flatnonzero((outcomes == code).all(axis=1))[0]) for code in codes[real]]
        np.testing.assert_allclose(np.exp(log_prob[real]), p[position], atol=1e-9)

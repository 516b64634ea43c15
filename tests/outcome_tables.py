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

"""Random rules and beliefs of the simulation study of paper 004."""

import numpy as np

from tuplet.joint.inference import RuleFactor


def study(n_labels, n_rules, n, seed):
    """A model of the paper's simulation study (section 4.1) and n rows of beliefs: beliefs and rules."""
    rng = np.random.default_rng(seed)
    cards = tuple(int(card) for card in rng.integers(2, 5, n_labels))
    literals = [(j, c) for j, card in enumerate(cards) for c in range(card)]
    factors = []
    for _ in range(n_rules):
        q = {}
        for i in rng.choice(len(literals), rng.integers(2, 6), replace=False):
            j, c = literals[i]
            q.setdefault(j, np.ones(cards[j]))[c] = 1 - np.sqrt(rng.random())
        factors.append(RuleFactor(tuple(sorted(q)), 1.0, q=tuple(q[j] for j in sorted(q))))
    return [np.log(rng.dirichlet(np.ones(card), n)) for card in cards], tuple(factors)

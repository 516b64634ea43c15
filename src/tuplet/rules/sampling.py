"""Draws from a distribution that gives marginals, one class variable after the other."""

from __future__ import annotations

import numpy as np

from tuplet.joint import JointDistribution
from tuplet.typing import UNKNOWN, Codes


def sample_in_turn(joint: JointDistribution, size: int, rng: np.random.Generator) -> Codes:
    """Draw (size, n, m): each variable given those before; equal prefixes share one pass."""
    n, m = len(joint), joint.n_variables
    rows = np.tile(np.arange(n), size)
    codes = np.full((size * n, m), UNKNOWN)
    for j in range(m):
        prefixes, number = np.unique(np.column_stack([rows, codes[:, :j]]), axis=0, return_inverse=True)
        known = np.full((len(prefixes), m), UNKNOWN)
        known[:, :j] = prefixes[:, 1:]
        given, _ = joint[prefixes[:, 0]]._condition(known)
        cumulative = np.cumsum(given.marginals()[j], axis=1)[number.ravel()]
        threshold = rng.random(len(codes)) * cumulative[:, -1]
        codes[:, j] = (cumulative[:, :-1] <= threshold[:, None]).sum(axis=1)
    return codes.reshape(size, n, m)

"""Leaving out rules: what each of them does to many rows.

The effect of a rule is what would be missing without it: the log-odds of a label with all rules, less the
log-odds with all but this one. Effects of single rules need not add up to the whole change, since rules that
say the same share it and rules may need each other.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.rules.joint import RuleJoint
from tuplet.space import ClassSpace
from tuplet.typing import UNKNOWN, Codes, Floats

_NEUTRAL = 0.5
"""The probability with which a rule says nothing; it keeps the structure, so that no plan is made anew."""


class Effects(NamedTuple):
    """What each of K rules did to n rows; categories of all variables stand side by side."""

    log_odds: Floats  # (n, K, sum of cards) of each category, with the rule less without it
    log_z_without: Floats  # (n, K) log of the sum of all weights with the rule at p = 1/2
    broken: Floats  # (n, K) probability that the rule is broken
    broken_without: Floats  # (n, K) the same if the rule were left out
    moved: Floats  # (n, K) largest change of a probability


def rule_effects(joint: RuleJoint) -> Effects:
    """Leave out one rule after the other.

    Parameters
    ----------
    joint : RuleJoint
        n rows and K rules.

    Returns
    -------
    Effects
    """
    n, factors = len(joint), list(joint.factors)
    whole = _flat(joint)
    offsets = joint.offsets
    odds = log_odds(whole, offsets)
    shape = (n, len(factors))
    effects = Effects(np.zeros((*shape, whole.shape[1])), *(np.zeros(shape) for _ in range(4)))
    for k, factor in enumerate(factors):
        rest = [*factors[:k], replace(factor, p=_NEUTRAL), *factors[k + 1 :]]
        without = replace(joint, factors=rest, log_z=None)
        flat = _flat(without)
        effects.log_odds[:, k] = odds_change(odds, log_odds(flat, offsets))
        effects.log_z_without[:, k] = without.log_normalizer
        effects.moved[:, k] = np.abs(whole - flat).max(axis=1)
        effects.broken[:, k], effects.broken_without[:, k] = _broken(joint, without, k)
    return effects


def _flat(joint: RuleJoint) -> Floats:
    return np.concatenate(joint.marginals(), axis=1)


def log_odds(flat: Floats, offsets: Any) -> Floats:
    """Log-odds (n, C) of probabilities of categories that stand side by side; infinite where certain."""
    sums = np.add.reduceat(flat, offsets[:-1], axis=1)
    # What the other categories have, added up: 1 - p has no digits where p is almost 1.
    others = np.repeat(sums, np.diff(offsets), axis=1) - flat
    for start, stop in pairwise(offsets):
        for c in range(start, stop):
            near_one = flat[:, c] > 0.5
            rest = np.delete(flat[:, start:stop], c - start, axis=1).sum(axis=1)
            others[:, c] = np.where(near_one, rest, others[:, c])
    with np.errstate(divide="ignore"):
        return np.log(flat) - np.log(np.maximum(others, 0.0))


def odds_change(after: Floats, before: Floats) -> Floats:
    """Change of log-odds; 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        change = after - before
    return np.where(after == before, 0.0, change)


def _broken(joint: RuleJoint, without: RuleJoint, k: int) -> tuple[Floats, Floats]:
    """Probability (n,) that rule k is broken, with it and without it.

    Z is linear in p: with E the expectation over the other rules' distribution times its sum, Z(p) =
    p E[1] + (1 - 2p) E[Q] and Z(1/2) = E[1] / 2, so two sums give E[Q].
    """
    factor = joint.factors[k]
    p, log_z = factor.p, joint.log_normalizer
    if p == _NEUTRAL:
        p, other = 1.0, replace(joint, method="auto", log_z=None)
        changed = [*joint.factors[:k], replace(factor, p=1.0), *joint.factors[k + 1 :]]
        other = replace(other, factors=changed)
        log_z = other._log_partition(other.log_beliefs)
    ratio = np.exp(log_z - without.log_normalizer) / 2.0  # Z(p) / E[1]
    share = np.clip((ratio - p) / (1.0 - 2.0 * p), 0.0, 1.0)  # E[Q] / E[1]
    weight = factor.p * (1.0 - share) + (1.0 - factor.p) * share
    after = (1.0 - factor.p) * share / np.where(weight > 0, weight, 1.0)
    return (1.0 - after, 1.0 - share) if factor.flipped else (after, share)


def contributions(joint: RuleJoint, space: ClassSpace, codes: Codes | None = None) -> Any:
    """Frame of the rules, sorted by what they contribute to n rows, the most first.

    Parameters
    ----------
    joint : RuleJoint
    space : ClassSpace
    codes : array of int, shape (n, m), optional
        True labels; `UNKNOWN` where missing.

    Returns
    -------
    frame with the columns `rule`, `p`, `moved` (mean over rows of the largest change of a probability),
        `broken`, `broken_without` (mean probabilities that it is broken, with and without the rule) and,
        with codes, `gain` (mean log-likelihood that would be lost without it), by which it is sorted
    """
    if codes is not None and len(codes) != len(joint):
        raise InputError(f"contributions: there are {len(joint)} rows, but labels of {len(codes)}.")
    effects = rule_effects(joint)
    columns = {
        "rule": [factor.text for factor in joint.factors],
        "p": np.array([factor.own_p for factor in joint.factors]),
        "moved": effects.moved.mean(axis=0),
        "broken": effects.broken.mean(axis=0),
        "broken_without": effects.broken_without.mean(axis=0),
    }
    key = columns["moved"]
    if codes is not None:
        columns["gain"] = key = _gains(joint, codes)
    order = np.argsort(-key, kind="stable")
    return make_frame(space, {name: [values[i] for i in order] for name, values in columns.items()})


def _gains(joint: RuleJoint, codes: Codes) -> Floats:
    """Mean log-likelihood (K,) of known labels with all rules, less that without each of them."""
    seen = (codes != UNKNOWN).any(axis=1)
    joint, codes = joint[seen], codes[seen]
    if not len(codes):
        return np.zeros(len(joint.factors))
    whole = joint.log_prob(codes)
    gains = []
    for k, factor in enumerate(joint.factors):
        rest = [*joint.factors[:k], replace(factor, p=_NEUTRAL), *joint.factors[k + 1 :]]
        without = replace(joint, factors=rest, log_z=None).log_prob(codes)
        # A row that another rule forbids says nothing of this one: both are minus infinity.
        gains.append(float(odds_change(whole, without).mean()))
    return np.array(gains)


def make_frame(space: ClassSpace, columns: dict[str, Any]) -> Any:
    """Return columns as a frame of the library that the labels came in."""
    if not space.is_polars:
        return pd.DataFrame(columns)
    import polars as pl

    return pl.DataFrame(columns)

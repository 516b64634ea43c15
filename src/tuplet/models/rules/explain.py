"""What rules did: to the labels of one row, as tables and sentences, and to many rows.

The effect of a rule is the change when it is left out: the log-odds of a label with all rules, less the
log-odds with all but this one. _Effects of single rules need not add up to the whole change: rules with the
same content share it, and a rule may have an effect only together with others.
"""

from __future__ import annotations

import html
import operator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError, NoSuchRowError
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.factor import RuleFactor
from tuplet.models.rules.language.formula import Formula
from tuplet.models.rules.language.names import Names
from tuplet.space.classes import ClassSpace

_NEUTRAL = 0.5
"""The probability with which a rule has no effect; it keeps the structure, so that no plan is made anew."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Which rules moved which labels of one row, and by how much.

    Parameters
    ----------
    space : ClassSpace
    rules : tuple of str
        What the K rules are called.
    p : array (K,)
        Their probabilities.
    beliefs, probabilities : arrays (sum of cards,)
        Of all categories side by side, before and after the rules.
    shifts : array (K, sum of cards)
        Log-odds that each rule added to each category.
    total : array (sum of cards,)
        Log-odds that all rules together added.
    broken, broken_without : arrays (K,)
        Probability that each rule is broken, and what it would be without the rule.

    Examples
    --------
    >>> from tuplet.models.rules import Rule, compile_rules, rule_graph
    >>> space = ClassSpace(("sky", "rain"), (["clear", "cloudy"], [0, 1]))
    >>> factors = compile_rules([Rule("rain -> cloudy", 0.9)], space)
    >>> beliefs = [np.log([[0.6, 0.4]]), np.log([[0.2, 0.8]])]
    >>> print(explain(rule_graph(beliefs, factors), space))
    cloudy: 0.400 -> 0.698 (log-odds +1.24)
      +1.24  rain -> cloudy
    rain: 0.800 -> 0.651 (log-odds -0.76)
      -0.76  rain -> cloudy
    """

    space: ClassSpace
    rules: tuple[str, ...]
    p: Floats
    beliefs: Floats
    probabilities: Floats
    shifts: Floats
    total: Floats
    broken: Floats
    broken_without: Floats

    @property
    def _places(self) -> list[tuple[int, int]]:
        return [(j, c) for j, card in enumerate(self.space.cards) for c in range(card)]

    def leaves(self) -> list[Formula]:
        """Statement of every category, such as `sky == clear`, or just `clear` where that is enough."""
        names = Names(self.space)
        return [names.leaf(j, c) for j, c in self._places]

    def effects(self) -> Any:
        """Frame of the rules' effects, the largest first: rule, p, variable, category, log_odds."""
        k, c = np.nonzero(np.abs(self.shifts) > 1e-9)
        order = np.argsort(-np.abs(self.shifts[k, c]), kind="stable")
        k, c = k[order], c[order]
        columns = {
            "rule": [self.rules[i] for i in k],
            "p": self.p[k],
            **self._named(c),
            "log_odds": self.shifts[k, c],
        }
        return _make_frame(self.space, columns)

    def labels(self) -> Any:
        """Frame of the categories: variable, category, belief, probability, log_odds added by all rules."""
        columns = self._named(np.arange(len(self.total)))
        columns |= {"belief": self.beliefs, "probability": self.probabilities, "log_odds": self.total}
        return _make_frame(self.space, columns)

    def rule_frame(self) -> Any:
        """Frame of the rules: rule, p, broken and broken_without (probabilities), log_odds (largest)."""
        largest = np.abs(self.shifts).max(axis=1, initial=0.0)
        columns = {"rule": list(self.rules), "p": self.p, "broken": self.broken}
        columns |= {"broken_without": self.broken_without, "log_odds": largest}
        return _make_frame(self.space, columns)

    def _named(self, cells: Any) -> dict[str, Any]:
        places = [self._places[int(c)] for c in cells]
        return {
            "variable": [self.space.names[j] for j, _ in places],
            "category": [str(self.space.categories[j][c]) for j, c in places],
        }

    def lines(self, n_labels: int = 6, n_rules: int = 3) -> list[str]:
        """Sentences: the labels that moved most, one per yes/no variable, and the rules that moved them."""
        leaves, lines = self.leaves(), []
        shown: set[Any] = set()
        for c in np.argsort(-np.abs(self.total), kind="stable"):
            j, code = self._places[int(c)]
            twin = self.space.cards[j] == 2
            if abs(self.total[c]) <= 1e-9 or (twin and (j in shown or code == 0)) or len(shown) >= n_labels:
                continue
            shown.add(j if twin else (j, code))
            lines.append(
                f"{leaves[c]}: {self.beliefs[c]:.3f} -> {self.probabilities[c]:.3f}"
                f" (log-odds {self.total[c]:+.2f})"
            )
            largest = np.argsort(-np.abs(self.shifts[:, c]), kind="stable")[:n_rules]
            moving = [k for k in largest if abs(self.shifts[k, c]) > 5e-3]
            lines += [f"  {self.shifts[k, c]:+.2f}  {self.rules[k]}" for k in moving]
        return lines or ["The rules change nothing in this row."]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Explanation of {len(self.rules)} rules and {len(self.space.names)} class variables\n{self}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(joint: FactorGraph, space: ClassSpace) -> Explanation:
    """Explain one row.

    Parameters
    ----------
    joint : FactorGraph
        From `rule_graph`, of a single row.
    space : ClassSpace

    Returns
    -------
    Explanation
    """
    if len(joint) != 1:
        raise InputError(f"explain: one row can be explained at a time, found {len(joint)}.")
    effects = rule_effects(joint)
    offsets = joint.offsets
    beliefs = _beliefs(joint)
    after = np.concatenate(joint.marginals(), axis=1)
    total = _odds_change(log_odds(after, offsets), log_odds(beliefs, offsets))
    return Explanation(
        space,
        tuple(rule.text for rule in _rules(joint)),
        np.array([rule.own_p for rule in _rules(joint)]),
        beliefs[0],
        after[0],
        effects.log_odds[0],
        total[0],
        effects.broken[0],
        effects.broken_without[0],
    )


def explain_row(joint: FactorGraph, space: ClassSpace, row: Any) -> Explanation:
    """Explain one of several rows, by its position; negative ones count from the end."""
    try:
        place = operator.index(row)
    except TypeError:
        raise InputError(f"explain: the row must be an integer, a position, found {row!r}.") from None
    if not -len(joint) <= place < len(joint):
        raise NoSuchRowError(f"explain: there is no row {place}; there are {len(joint)}.")
    return explain(joint[place], space)


def _rules(joint: FactorGraph) -> list[RuleFactor]:
    return [factor for factor in joint.factors if isinstance(factor, RuleFactor)]


def _beliefs(joint: FactorGraph) -> Floats:
    """Probabilities (n, sum of cards) of the categories without any rule."""
    others = [factor for factor in joint.factors if not isinstance(factor, RuleFactor)]
    return _flat(replace(joint, factors=others, log_normalizer=None))


def _with_p(joint: FactorGraph, rule: RuleFactor, p: float) -> FactorGraph:
    """Return the joint distribution with another probability of one of its rules."""
    factors = [replace(rule, p=p) if factor is rule else factor for factor in joint.factors]
    return replace(joint, factors=factors, log_normalizer=None)


# -- leaving out rules --------------------------------------------------------------------------------------


class _Effects(NamedTuple):
    """What each of K rules did to n rows; categories of all variables stand side by side."""

    log_odds: Floats  # (n, K, sum of cards) of each category, with the rule less without it
    log_z_without: Floats  # (n, K) log of the sum of all weights with the rule at p = 1/2
    broken: Floats  # (n, K) probability that the rule is broken
    broken_without: Floats  # (n, K) the same if the rule were left out
    moved: Floats  # (n, K) largest change of a probability


def rule_effects(joint: FactorGraph) -> _Effects:
    """Leave out one rule after the other.

    Parameters
    ----------
    joint : FactorGraph
        From `rule_graph`: n rows and K rules.

    Returns
    -------
    _Effects
    """
    rules = _rules(joint)
    whole = _flat(joint)
    offsets = joint.offsets
    odds = log_odds(whole, offsets)
    shape = (len(joint), len(rules))
    effects = _Effects(np.zeros((*shape, whole.shape[1])), *(np.zeros(shape) for _ in range(4)))
    for k, rule in enumerate(rules):
        without = _with_p(joint, rule, _NEUTRAL)
        flat = _flat(without)
        effects.log_odds[:, k] = _odds_change(odds, log_odds(flat, offsets))
        effects.log_z_without[:, k] = without._log_normalizer
        effects.moved[:, k] = np.abs(whole - flat).max(axis=1)
        effects.broken[:, k], effects.broken_without[:, k] = _broken(joint, without, rule)
    return effects


def _flat(joint: FactorGraph) -> Floats:
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


def _odds_change(after: Floats, before: Floats) -> Floats:
    """Change of log-odds; 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        change = after - before
    return np.where(after == before, 0.0, change)


def _broken(joint: FactorGraph, without: FactorGraph, rule: RuleFactor) -> tuple[Floats, Floats]:
    """Probability (n,) that a rule is broken, with it and without it.

    Z is linear in p: with E the expectation over the other rules' distribution times its sum, Z(p) =
    p E[1] + (1 - 2p) E[Q] and Z(1/2) = E[1] / 2, so two sums give E[Q].
    """
    p, log_z = rule.p, joint._log_normalizer
    if p == _NEUTRAL:
        p, certain = 1.0, _with_p(joint, rule, 1.0)
        log_z = joint.engine.log_partition(certain._problem)
    ratio = np.exp(log_z - without._log_normalizer) / 2.0  # Z(p) / E[1]
    share = np.clip((ratio - p) / (1.0 - 2.0 * p), 0.0, 1.0)  # E[Q] / E[1]
    weight = rule.p * (1.0 - share) + (1.0 - rule.p) * share
    after = (1.0 - rule.p) * share / np.where(weight > 0, weight, 1.0)
    return (1.0 - after, 1.0 - share) if rule.flipped else (after, share)


def contributions(joint: FactorGraph, space: ClassSpace, codes: Codes | None = None) -> Any:
    """Frame of the rules, sorted by what they contribute to n rows, the most first.

    Parameters
    ----------
    joint : FactorGraph
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
        "rule": [rule.text for rule in _rules(joint)],
        "p": np.array([rule.own_p for rule in _rules(joint)]),
        "moved": effects.moved.mean(axis=0),
        "broken": effects.broken.mean(axis=0),
        "broken_without": effects.broken_without.mean(axis=0),
    }
    key = columns["moved"]
    if codes is not None:
        columns["gain"] = key = _gains(joint, codes)
    order = np.argsort(-key, kind="stable")
    return _make_frame(space, {name: [values[i] for i in order] for name, values in columns.items()})


def _gains(joint: FactorGraph, codes: Codes) -> Floats:
    """Mean log-likelihood (K,) of known labels with all rules, less that without each of them."""
    seen = (codes != UNKNOWN).any(axis=1)
    joint, codes = joint[seen], codes[seen]
    if not len(codes):
        return np.zeros(len(_rules(joint)))
    whole = joint.log_prob(codes)
    # A row that another rule forbids has no gain from this one: both are minus infinity.
    without = [_with_p(joint, rule, _NEUTRAL).log_prob(codes) for rule in _rules(joint)]
    return np.array([float(_odds_change(whole, other).mean()) for other in without])


def _make_frame(space: ClassSpace, columns: dict[str, Any]) -> Any:
    """Return columns as a frame of the library that the labels came in."""
    if not space.is_polars:
        return pd.DataFrame(columns)
    import polars as pl

    return pl.DataFrame(columns)

"""What rules did to one row, as tables and sentences."""

from __future__ import annotations

import html
import operator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from tuplet.exceptions import InputError, NoSuchRowError
from tuplet.rules.effects import log_odds, make_frame, odds_change, rule_effects
from tuplet.rules.formula import Formula
from tuplet.rules.joint import RuleJoint
from tuplet.rules.names import Names
from tuplet.space import ClassSpace
from tuplet.typing import Floats


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
    >>> from tuplet.rules import Rule, compile_rules
    >>> space = ClassSpace(("sky", "rain"), (["clear", "cloudy"], [0, 1]))
    >>> factors = compile_rules([Rule("rain -> cloudy", 0.9)], space)
    >>> beliefs = [np.log([[0.6, 0.4]]), np.log([[0.2, 0.8]])]
    >>> print(explain(RuleJoint(space.cards, beliefs, factors), space))
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
        return make_frame(self.space, columns)

    def labels(self) -> Any:
        """Frame of the categories: variable, category, belief, probability, log_odds added by all rules."""
        columns = self._named(np.arange(len(self.total)))
        columns |= {"belief": self.beliefs, "probability": self.probabilities, "log_odds": self.total}
        return make_frame(self.space, columns)

    def rule_frame(self) -> Any:
        """Frame of the rules: rule, p, broken and broken_without (probabilities), log_odds (largest)."""
        largest = np.abs(self.shifts).max(axis=1, initial=0.0)
        columns = {"rule": list(self.rules), "p": self.p, "broken": self.broken}
        columns |= {"broken_without": self.broken_without, "log_odds": largest}
        return make_frame(self.space, columns)

    def _named(self, cells: Any) -> dict[str, Any]:
        places = [self._places[int(c)] for c in cells]
        return {
            "variable": [self.space.names[j] for j, _ in places],
            "category": [str(self.space.categories[j][c]) for j, c in places],
        }

    def lines(self, n_labels: int = 6, n_rules: int = 3) -> list[str]:
        """Sentences: the labels that moved most, one per yes/no variable, and the rules that moved them."""
        leaves, lines = self.leaves(), []
        said: set[Any] = set()
        for c in np.argsort(-np.abs(self.total), kind="stable"):
            j, code = self._places[int(c)]
            twin = self.space.cards[j] == 2
            if abs(self.total[c]) <= 1e-9 or (twin and (j in said or code == 0)) or len(said) >= n_labels:
                continue
            said.add(j if twin else (j, code))
            lines.append(
                f"{leaves[c]}: {self.beliefs[c]:.3f} -> {self.probabilities[c]:.3f}"
                f" (log-odds {self.total[c]:+.2f})"
            )
            largest = np.argsort(-np.abs(self.shifts[:, c]), kind="stable")[:n_rules]
            shown = [k for k in largest if abs(self.shifts[k, c]) > 5e-3]
            lines += [f"  {self.shifts[k, c]:+.2f}  {self.rules[k]}" for k in shown]
        return lines or ["The rules change nothing in this row."]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Explanation of {len(self.rules)} rules and {len(self.space.names)} class variables\n{self}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(joint: RuleJoint, space: ClassSpace) -> Explanation:
    """Explain one row.

    Parameters
    ----------
    joint : RuleJoint
        Of a single row.
    space : ClassSpace

    Returns
    -------
    Explanation
    """
    if len(joint) != 1:
        raise InputError(f"explain: one row can be explained at a time, found {len(joint)}.")
    effects = rule_effects(joint)
    offsets = joint.offsets
    beliefs = np.concatenate([_normalised(belief) for belief in joint.log_beliefs], axis=1)
    after = np.concatenate(joint.marginals(), axis=1)
    total = odds_change(log_odds(after, offsets), log_odds(beliefs, offsets))
    return Explanation(
        space,
        tuple(factor.text for factor in joint.factors),
        np.array([factor.own_p for factor in joint.factors]),
        beliefs[0],
        after[0],
        effects.log_odds[0],
        total[0],
        effects.broken[0],
        effects.broken_without[0],
    )


def explain_row(joint: RuleJoint, space: ClassSpace, row: Any) -> Explanation:
    """Explain one of several rows, by its position; negative ones count from the end."""
    try:
        place = operator.index(row)
    except TypeError:
        raise InputError(f"explain: the row must be an integer, a position, found {row!r}.") from None
    if not -len(joint) <= place < len(joint):
        raise NoSuchRowError(f"explain: there is no row {place}; there are {len(joint)}.")
    return explain(joint[place], space)


def _normalised(log_belief: Floats) -> Floats:
    belief = np.exp(log_belief - log_belief.max(axis=1, keepdims=True))
    return belief / belief.sum(axis=1, keepdims=True)

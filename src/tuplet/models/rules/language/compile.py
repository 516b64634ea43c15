"""From rules, which use names, to factors over numbered class variables."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.joint.inference.factor import RuleFactor
from tuplet.models.rules.language.formula import And, Formula, Implies, Is, Leaf, Not, Or, Truth
from tuplet.models.rules.language.names import Names
from tuplet.models.rules.language.parser import parse
from tuplet.models.rules.language.rule import NoisyOr, Rule
from tuplet.space.classes import ClassSpace

_LARGEST_TABLE = 2**20
"""Cells of the truth table of a formula."""

_FAINT = 0.05
"""Strength below which the text of a noisy-or passes over a category."""

_SHOWN = 8
"""Categories that the text of a noisy-or names."""

Clause = dict[int, Truth]
"""Of each variable the values (k,) any one of which makes a disjunction true."""


def compile_rules(rules: Iterable[str | Rule | NoisyOr], space: ClassSpace) -> tuple[RuleFactor, ...]:
    """Return the factors of rules over the variables of a class space.

    Parameters
    ----------
    rules : iterable of str, Rule or NoisyOr
        Plain text is a rule with p = 1.
    space : ClassSpace

    Returns
    -------
    tuple of RuleFactor

    Examples
    --------
    >>> space = ClassSpace(("sky", "rain"), (["clear", "cloudy"], [0, 1]))
    >>> (factor,) = compile_rules([Rule("rain -> cloudy", 0.9)], space)
    >>> factor.table()
    array([[0.9, 0.1],
           [0.9, 0.9]])
    """
    names = Names(space)
    factors = []
    for rule in rules:
        if isinstance(rule, NoisyOr):
            factors.append(_noisy_or(rule, names))
        else:
            if isinstance(rule, str):
                parse(rule, str(names))  # an error then lists the names
                rule = Rule(rule)
            factors.append(_formula(rule, names))
    return tuple(factors)


def _noisy_or(rule: NoisyOr, names: Names) -> RuleFactor:
    inhibitions: dict[int, np.ndarray] = {}
    for variable, given in rule.inhibitions.items():
        for category, inhibition in given.items():
            j, hit = names.literal(Is(variable, category), rule.text)
            inhibitions.setdefault(j, np.ones(len(hit)))[hit] = inhibition
    scope = tuple(sorted(inhibitions))
    q = tuple(inhibitions[j] for j in scope)
    # A rule that is rather broken than not is read as the pattern that breaks it.
    flipped = rule.p < 0.5
    text = rule.name or (_pattern if flipped else _alternatives)(scope, q, names)
    return RuleFactor(scope, rule.p, q=q, text=text, flipped=flipped)


def _alternatives(scope: tuple[int, ...], q: tuple[Floats, ...], names: Names) -> str:
    """Say what satisfies a noisy-or, with strengths, the strongest first: "cloudy (0.9) or rain (0.5)"."""
    items = [
        (inhibition, str(names.leaf(j, c)))
        for j, values in zip(scope, q, strict=True)
        for c, inhibition in enumerate(values)
        if inhibition < 1
    ]
    items.sort(key=lambda item: item[0])
    strong = [item for item in items if item[0] <= 1.0 - _FAINT] or items
    terms = [f"{leaf} ({round(1.0 - value, 2):.2g})" for value, leaf in strong[:_SHOWN]]
    more = len(items) - len(terms)
    text = " or ".join(terms) or "nothing (no category has a strength)"
    return f"{text} or {more} weaker" if more else text


def _pattern(scope: tuple[int, ...], q: tuple[Floats, ...], names: Names) -> str:
    """Say what breaks a noisy-or, with how much if not wholly: "rain & (clear | cloudy (0.3))"."""
    parts = []
    for j, values in zip(scope, q, strict=True):
        matches = [(value, str(names.leaf(j, c))) for c, value in enumerate(values) if value >= _FAINT]
        if len(matches) == len(values) and min(values) >= 0.995:
            continue
        terms = [
            leaf if value >= 0.995 else f"{leaf} ({value:.2g})"
            for value, leaf in sorted(matches, key=lambda item: -item[0])
        ]
        parts.append(terms[0] if len(terms) == 1 else f"({' | '.join(terms)})")
    return " & ".join(parts) or "anything"


def _formula(rule: Rule, names: Names) -> RuleFactor:
    literals = {leaf: names.literal(leaf, rule.text) for leaf in rule.formula.leaves()}
    clause = _clause(rule.formula, True, literals)
    if clause is not None:
        return _product(rule, clause)
    scope = tuple(sorted({j for j, _ in literals.values()}))
    cards = tuple(names.space.cards[j] for j in scope)
    if math.prod(cards) <= _LARGEST_TABLE:
        holds = _truth(rule.formula, scope, literals)
        violated = np.broadcast_to(~holds, cards).astype(float)
        return RuleFactor(scope, rule.p, violated=violated, text=rule.title)
    clause = _clause(rule.formula, False, literals)
    if clause is not None:
        return _product(rule, clause, flipped=True)
    raise InputError(
        f"Rule: the truth table of {rule.title!r} over its {len(scope)} class variables would have"
        f" {math.prod(cards):,} cells (largest is {_LARGEST_TABLE:,}). Split it into several rules."
    )


def _truth(formula: Formula, scope: tuple[int, ...], literals: dict[Leaf, tuple[int, Truth]]) -> Truth:
    """Return where a formula is true, as a table that broadcasts over the cards of the scope."""

    def of_leaf(leaf: Leaf) -> Truth:
        j, hit = literals[leaf]
        return hit.reshape([len(hit) if v == j else 1 for v in scope])

    return formula.truth(of_leaf)


def _product(rule: Rule, clause: Clause, *, flipped: bool = False) -> RuleFactor:
    """Return the factor of a disjunction: broken (or, flipped, satisfied) where none of its parts is true."""
    scope = tuple(sorted(clause))
    q = tuple(np.where(clause[j], 0.0, 1.0) for j in scope)
    p = 1.0 - rule.p if flipped else rule.p
    return RuleFactor(scope, p, q=q, text=rule.title, flipped=flipped)


def _clause(formula: Formula, sign: bool, literals: dict[Leaf, tuple[int, Truth]]) -> Clause | None:
    """Return a formula (or, if not `sign`, its negation) as one disjunction over variables, or None.

    Values of one variable that make it true unite: "n -> c | l" holds for c and for l.
    """
    variables = {literals[leaf][0] for leaf in formula.leaves()}
    if len(variables) == 1:
        hit = _truth(formula, tuple(variables), literals)
        return {variables.pop(): hit if sign else ~hit}
    if isinstance(formula, Not):
        return _clause(formula.parts[0], not sign, literals)
    if isinstance(formula, Implies) and sign:
        parts = [_clause(formula.parts[0], False, literals), _clause(formula.parts[1], True, literals)]
    elif isinstance(formula, Or if sign else And):
        assert isinstance(formula, Or | And)
        parts = [_clause(part, sign, literals) for part in formula.parts]
    else:
        return None
    united: Clause = {}
    for part in parts:
        if part is None:
            return None
        for j, hit in part.items():
            united[j] = united[j] | hit if j in united else hit
    return united

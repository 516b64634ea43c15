"""Queries about products of factors, independent of models and losses.

- `Factor`, `RuleFactor`, `Problem`: what is given.
- `make_plan`: everything that depends on the structure alone, made once and cached.
- `Exact`, `SignedElimination`, `BeliefPropagation`: the engines that answer; `choose_engine` selects one.

Invariant: the batch axis is last in every table, so one instruction stream serves all rows.
"""

from tuplet.joint.inference.belief import BeliefPropagation
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.joint.inference.factor import (
    Factor,
    Problem,
    RuleFactor,
    absorb,
    evidence_factors,
    require_possible,
)
from tuplet.joint.inference.plan import Plan, make_plan
from tuplet.joint.inference.signed import SignedElimination, choose_engine

__all__ = [
    "BeliefPropagation",
    "Engine",
    "Exact",
    "Factor",
    "Plan",
    "Problem",
    "RuleFactor",
    "SignedElimination",
    "absorb",
    "choose_engine",
    "evidence_factors",
    "make_plan",
    "require_possible",
]

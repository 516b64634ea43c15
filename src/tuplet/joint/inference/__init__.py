"""Queries about products of factors, independent of models and losses.

- `Factor`, `Problem`: what is given; `noisy_or` makes factors of a rule.
- `make_plan`: everything that depends on the structure alone, made once and cached.
- `Exact`, `BeliefPropagation`: the engines that answer.

Invariant: the batch axis is last in every table, so one instruction stream serves all rows.
"""

from tuplet.joint.inference.belief import BeliefPropagation
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.joint.inference.factor import (
    Factor,
    Problem,
    absorb,
    evidence_factors,
    noisy_or,
    require_possible,
)
from tuplet.joint.inference.plan import Plan, make_plan

__all__ = [
    "BeliefPropagation",
    "Engine",
    "Exact",
    "Factor",
    "Plan",
    "Problem",
    "absorb",
    "evidence_factors",
    "make_plan",
    "noisy_or",
    "require_possible",
]

"""Multivariate probit: samplers, draws and their diagnostics.

- `init` and `step`: the Gibbs sampler, on an explicit `State`.
- `Draws`: what chains have kept.
- `correlation_table`, `inclusion_table`, `combination_table`, `trace_table`: tables of the draws.
"""

from tuplet.models.probit.sampling.draws import Draws
from tuplet.models.probit.sampling.sampler import State, init, step
from tuplet.models.probit.sampling.summary import (
    combination_table,
    correlation_table,
    inclusion_table,
    trace_table,
)

__all__ = [
    "Draws",
    "State",
    "combination_table",
    "correlation_table",
    "inclusion_table",
    "init",
    "step",
    "trace_table",
]

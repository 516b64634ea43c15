"""How many of the binary variables are 1, jointly with each of them, for a distribution with a plan.

E[w^|Y|] and E[w^|Y| 1(Y_j = 1)] are sum-product passes in which the value 1 of every variable is tilted by w.
At the roots of unity the tilts have modulus one, so no number grows, and a discrete Fourier transform
over the roots gives P(|Y| = s) and P(Y_j = 1, |Y| = s). The passes run on the conditionals of a finished
forward pass, which are probabilities: nothing under- or overflows whatever the range of the factors.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import Floats
from tuplet.joint.inference.eliminate import Forward, conditional
from tuplet.joint.inference.plan import Plan, Step

Complex = npt.NDArray[np.complex128]


def count_marginals(plan: Plan, forward: Forward, n_visible: int, n: int) -> Floats:
    """P(Y_j = 1, |Y| = s) of the first `n_visible` variables, shape (n, n_visible, n_visible + 1)."""
    size = n_visible + 1
    roots = np.exp(2j * np.pi * np.arange(size // 2 + 1) / size)  # the others are their conjugates
    spectrum = np.empty((len(roots), n_visible, n), dtype=complex)
    conditionals = [conditional(forward, i) for i in range(len(plan.steps))]
    for position, root in enumerate(roots):
        spectrum[position] = _tilted_marginals(plan, conditionals, n_visible, root)
    # sum over s of P(., |Y| = s) root^s is the conjugate of numpy's forward transform.
    counts = np.fft.irfft(np.conj(spectrum), n=size, axis=0)
    return np.clip(counts.transpose(2, 1, 0), 0.0, 1.0)


def _tilted_marginals(plan: Plan, conditionals: list[Floats], n_visible: int, root: complex) -> Complex:
    """E[root^|Y| 1(Y_j = 1)] for every visible j, (n_visible, b)."""
    inner = []  # per step: conditional times tilt, over the clique
    messages: list[Complex] = []  # per step: expectation of the tilts at and below it, given the separator
    for i, step in enumerate(plan.steps):
        table = _tilt(conditionals[i], step, n_visible, root)
        inner.append(table)
        for child in step.children:
            table = table * _expand(messages[child], plan.steps[child], step, plan)
        messages.append(table.sum(axis=0))
    return _backward(plan, inner, messages, n_visible)


def _tilt(table: Floats, step: Step, n_visible: int, root: complex) -> Complex:
    if step.variable >= n_visible or table.shape[0] < 2:
        return table.astype(complex)
    weights = np.array([1.0, root]).reshape(2, *([1] * (table.ndim - 1)))
    return table * weights


def _backward(plan: Plan, inner: list[Complex], messages: list[Complex], n_visible: int) -> Complex:
    # Per step: weight of all that is not at or below it, over the separator. For the last step of a connected
    # part of the graph that is the product of the other parts.
    roots = [i for i, step in enumerate(plan.steps) if step.parent < 0]
    outside = dict(zip(roots, _all_but_one([messages[i] for i in roots]), strict=True))
    rows: list[Complex] = [np.zeros(1, dtype=complex)] * n_visible
    for i in reversed(range(len(plan.steps))):
        step = plan.steps[i]
        table = inner[i] * outside.pop(i)
        arriving = [_expand(messages[child], plan.steps[child], step, plan) for child in step.children]
        for child, rest in zip(step.children, _all_but_one(arriving), strict=True):
            drop = plan.steps[child].parent_drop
            product = table * rest
            outside[child] = product.sum(axis=drop) if drop else product
        if step.variable < n_visible and len(table) == 2:
            whole = math.prod(arriving, start=table)
            rows[step.variable] = whole[1].reshape(-1, whole.shape[-1]).sum(axis=0)
    return np.stack(np.broadcast_arrays(*rows))


def _all_but_one(factors: list[Complex]) -> list[Complex | complex]:
    """Return for every factor the product of the others, without dividing (a factor may be zero)."""
    before: list[Complex | complex] = [1.0 + 0j]
    after: list[Complex | complex] = [1.0 + 0j]
    for factor in factors[:-1]:
        before.append(before[-1] * factor)
    for factor in factors[:0:-1]:
        after.append(after[-1] * factor)
    return [left * right for left, right in zip(before, reversed(after), strict=True)] if factors else []


def _expand(message: Complex, child: Step, step: Step, plan: Plan) -> Complex:
    shape = tuple(plan.cards[v] if v in child.separator else 1 for v in step.scope)
    return message.reshape(*shape, message.shape[-1])

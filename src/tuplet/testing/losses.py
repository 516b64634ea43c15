"""One check for every loss: value, risk and decision belong together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution, all_outcomes
from tuplet.losses.base import Loss
from tuplet.testing.oracle import enumerate_joint


def check_loss(loss: Loss, joint: JointDistribution, *, atol: float = 1e-9, missing: bool = True) -> None:
    """Compare a loss with enumeration on one small joint distribution.

    No answer may have a lower risk than the decision, the risk must be the expectation of the value, and
    the value must be non-negative, zero for the truth, and blind to what is missing.

    Parameters
    ----------
    loss : Loss
        With candidates="atoms" only possible outcomes compete with the decision.
    joint : JointDistribution
        With at most some hundred outcomes: every answer meets every truth.
    atol : float
        Absolute tolerance of risks, on top of the tolerance that `joint` states.
    missing : bool
        Whether to check that unknown positions of the truth are left out; a function wrapped in
        `CallableLoss` need not be able to.

    Raises
    ------
    AssertionError
        If something does not fit; the message describes it.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> from tuplet.losses import FBeta
    >>> check_loss(FBeta(), Atoms((2, 2), np.array([[[0, 1], [1, 1]]]), np.log([[0.3, 0.7]])))
    """
    truths = all_outcomes(joint.cards)
    answers = _answers(loss, joint.cards)
    values = loss.value(truths[:, None], answers)
    probabilities = enumerate_joint(joint)
    risks = probabilities @ values  # (n, answers)
    _check_value(loss, truths, values)
    if missing:
        _check_missing(loss, truths)
    _check_risk(loss, joint, answers, risks, atol + joint.tolerance)
    if getattr(loss, "candidates", "all") == "atoms":
        risks = np.where(probabilities > 0, risks, np.inf)
    _check_decision(loss, joint, answers, risks, atol + joint.tolerance)


def _answers(loss: Loss, cards: tuple[int, ...]) -> Codes:
    """Return every answer that the loss may decide for, the full outcomes first."""
    if loss.abstains == "positions":
        every = all_outcomes([card + 1 for card in cards])
        every = np.where(every == np.array(cards), UNKNOWN, every)
        return every[np.argsort((every == UNKNOWN).any(axis=1), kind="stable")]
    if loss.abstains == "rows":
        return np.vstack([all_outcomes(cards), np.full(len(cards), UNKNOWN)])
    return all_outcomes(cards)


def _check_value(loss: Loss, truths: Codes, values: Floats) -> None:
    assert values.shape[0] == len(truths), f"{loss.name}: value must broadcast over leading axes"
    assert np.isfinite(values).all(), f"{loss.name}: a value is not finite"
    assert (values >= 0).all(), f"{loss.name}: a value is negative"
    right = loss.value(truths, truths)
    assert np.abs(right).max() <= 1e-12, f"{loss.name}: the truth itself has a loss of {right.max():.3g}"


def _check_missing(loss: Loss, truths: Codes) -> None:
    nothing = np.full_like(truths, UNKNOWN)
    assert np.isnan(loss.value(nothing, truths)).all(), f"{loss.name}: a row of unknown truth must be nan"
    if truths.shape[1] == 1:
        return
    for j in range(truths.shape[1]):
        gap = truths.copy()
        gap[:, j] = UNKNOWN
        elsewhere = truths.copy()
        elsewhere[:, j] = 0
        left, right = loss.value(gap[:, None], truths), loss.value(gap[:, None], elsewhere)
        same = np.array_equal(left, right, equal_nan=True)
        assert same, f"{loss.name}: the answer counts although the truth of variable {j} is missing"


def _check_risk(loss: Loss, joint: JointDistribution, answers: Codes, risks: Floats, atol: float) -> None:
    n, m = len(joint), joint.n_variables
    several = loss.risk(joint, np.broadcast_to(answers[:, None], (len(answers), n, m)))
    _equal(f"{loss.name}: risk of several answers", several, risks.T, atol)
    one = np.broadcast_to(answers[-1], (n, m))
    _equal(f"{loss.name}: risk of one answer", loss.risk(joint, one), risks[:, -1], atol)


def _equal(what: str, found: Floats, expected: Floats, atol: float) -> None:
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    error = np.abs(found - expected).max(initial=0.0)
    assert error <= atol, f"{what}: off by {error:.3g} (allowed {atol:.3g})"


def _check_decision(loss: Loss, joint: JointDistribution, answers: Codes, risks: Floats, atol: float) -> None:
    decision = loss.decide(joint)
    assert decision.shape == (len(joint), joint.n_variables), (
        f"{loss.name}: decision of shape {decision.shape}"
    )
    same: npt.NDArray[np.bool_] = (decision[:, None] == answers).all(axis=2)  # (n, answers)
    assert same.any(axis=1).all(), f"{loss.name}: the decision is none of the possible answers"
    excess = risks[np.arange(len(joint)), same.argmax(axis=1)] - risks.min(axis=1)
    worst = int(excess.argmax())
    assert excess[worst] <= atol, (
        f"{loss.name}: the decision {decision[worst]} of row {worst} costs {excess[worst]:.3g} more than"
        f" {answers[risks[worst].argmin()]}"
    )

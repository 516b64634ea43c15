"""How good probabilities are: true labels against a `JointPrediction`.

A true label that the prediction has never seen has probability zero; the log-losses charge it with their
floor. What is missing among the true labels is summed out or left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN, Floats
from tuplet.joint.base import warn_unproven
from tuplet.metrics.encoding import Reduce, average, encode_truth
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.reliability import found_within
from tuplet.prediction.truth import Truth

LOG_FLOOR = float(np.log(1e-4))
"""Least log-probability that one label is charged with."""

Weights = npt.ArrayLike | None


def joint_log_loss(
    Y_true: Any,
    prediction: JointPrediction,
    *,
    reduce: Reduce = "mean",
    floor: float = LOG_FLOOR,
    sample_weight: Weights = None,
) -> float:
    """Minus the log-probability of all labels of a row together, in nats.

    Parameters
    ----------
    Y_true : labels, shape (n, m)
        Of a row with missing labels the probability of the others counts.
    prediction : JointPrediction
    reduce : {"mean", "median"}
        What becomes of the n rows.
    floor : float, default log(1e-4)
        Least log-probability per known label: a label that the prediction has never seen is charged with it,
        beside the probability of the other labels, and a row of m labels with m * floor at worst. Pass
        -inf for the plain log-loss, which one impossible row makes infinite. `n_floored` counts these rows.
    sample_weight : array, shape (n,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> from tuplet.space import ClassSpace
    >>> joint = Atoms((2, 2), np.array([[[0, 0], [1, 1]]]), np.log([[0.8, 0.2]] * 2))
    >>> Y = np.array([[0, 0], [0, 1]])
    >>> prediction = JointPrediction(joint, ClassSpace.from_labels(np.array([[0, 0], [1, 1]])))
    >>> round(joint_log_loss(Y, prediction), 3), n_floored(Y, prediction)
    (9.322, 1)
    """
    truth = encode_truth(Y_true, prediction)
    log_prob = np.maximum(_joint_log_prob(truth, prediction, floor), _least(truth, floor))
    return average(-log_prob, sample_weight, reduce)


def n_floored(Y_true: Any, prediction: JointPrediction, *, floor: float = LOG_FLOOR) -> int:
    """Count the rows to which the floor of `joint_log_loss` was applied, to a label or to all of them.

    With `floor=-inf` these are the rows that the prediction holds impossible.
    """
    truth = encode_truth(Y_true, prediction)
    floored = _joint_log_prob(truth, prediction, floor) <= _least(truth, floor)
    return int((floored | truth.unseen.any(axis=1)).sum())


def marginal_log_loss(
    Y_true: Any,
    prediction: JointPrediction,
    *,
    reduce: Reduce = "mean",
    floor: float = LOG_FLOOR,
    sample_weight: Weights = None,
) -> float:
    """Minus the log-probability of each label by itself, averaged over the known labels of a row.

    Times m, this is the joint log-loss of a distribution with the same marginals and no dependence.
    Arguments as in `joint_log_loss`; here `floor` holds for every label.
    """
    truth = encode_truth(Y_true, prediction)
    with np.errstate(divide="ignore"):
        log_prob = np.maximum(np.log(_label_probabilities(truth, prediction)), floor)
    return average(-_mean_of_known(log_prob, truth), sample_weight, reduce)


def brier_score(Y_true: Any, prediction: JointPrediction, *, sample_weight: Weights = None) -> float:
    """Half the squared distance between marginal probabilities and truth, averaged over labels and rows.

    Between 0 and 1; of a binary variable it is the square of the probability that went astray.
    """
    truth = encode_truth(Y_true, prediction)
    squares = np.column_stack([(p**2).sum(axis=1) for p in prediction.distribution.marginals()])
    # |p - e_y|^2 = |p|^2 - 2 p_y + 1
    scores = (squares - 2 * _label_probabilities(truth, prediction) + 1) / 2
    return average(_mean_of_known(scores, truth), sample_weight)


def ranked_probability_score(
    Y_true: Any, prediction: JointPrediction, *, sample_weight: Weights = None
) -> float:
    """Squared distance between cumulative marginal probabilities and truth, averaged over labels and rows.

    For the categories 0 .. k - 1 of an ordered variable it is the sum over j < k - 1 of
    (P(Y <= j) - 1[y <= j])^2: probability counts more the further it is from the truth. A certain answer has
    its number of steps from the truth, as in the loss "absolute". Variables that are not ordered have their
    `brier_score`, which is the same for two categories. A label that training has not seen has the score of
    the category that is worst.

    Raises
    ------
    InputError
        If no class variable is ordered.

    References
    ----------
    E. S. Epstein, A scoring system for probability forecasts of ranked categories, Journal of Applied
    Meteorology 8, 1969; without its factor 1 / (k - 1).

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint import Atoms
    >>> from tuplet.space import ClassSpace
    >>> space = ClassSpace(("stage",), (np.array(["I", "II", "III"]),), ordered=(True,))
    >>> joint = Atoms((3,), np.array([[[0], [1], [2]]]), np.log([[0.5, 0.3, 0.2]]))
    >>> prediction = JointPrediction(joint, space)
    >>> [round(ranked_probability_score([stage], prediction), 2) for stage in ("I", "II", "III")]
    [0.29, 0.29, 0.89]
    """
    space, truth = prediction.space, encode_truth(Y_true, prediction)
    if not any(space.ordered) and max(space.cards) > 2:
        raise InputError(
            "ranked_probability_score: no class variable is ordered; declare the order of the labels before"
            " fit, with tuplet.declare_order(Y, {name: [lowest, ..., highest]}), or use brier_score."
        )
    tables = zip(prediction.distribution.marginals(), space.ordered, strict=True)
    scores = [_ranked_scores(p) if is_in else _brier_scores(p) for p, is_in in tables]
    own = [table[np.arange(len(table)), truth.codes[:, j]] for j, table in enumerate(scores)]
    worst = np.column_stack([table.max(axis=1) for table in scores])
    return average(_mean_of_known(np.where(truth.unseen, worst, np.column_stack(own)), truth), sample_weight)


def _ranked_scores(p: Floats) -> Floats:
    """Ranked probability score (n, k) of probabilities (n, k) for each category as the truth."""
    up_to = np.cumsum(p, axis=1)[:, :-1]
    nothing = np.zeros((len(p), 1))
    below = np.cumsum(up_to**2, axis=1)
    above = np.cumsum(((1.0 - up_to) ** 2)[:, ::-1], axis=1)[:, ::-1]
    return np.hstack([nothing, below]) + np.hstack([above, nothing])


def _brier_scores(p: Floats) -> Floats:
    """Brier score (n, k) of probabilities (n, k) for each category as the truth."""
    return np.asarray((1.0 + (p**2).sum(axis=1, keepdims=True)) / 2 - p)


def top_k_accuracy(
    Y_true: Any, prediction: JointPrediction, k: int, *, sample_weight: Weights = None
) -> float:
    """Share of rows whose labels are among the k most probable combinations.

    Where labels are missing, the others must agree with one of these combinations.
    """
    truth = encode_truth(Y_true, prediction)
    best = prediction.distribution.top_k(k)
    warn_unproven("top_k_accuracy", best.proven)
    found = found_within(best, truth).any(axis=1).astype(float)
    return average(np.where(truth.known.any(axis=1), found, np.nan), sample_weight)


# -- what they share ---------------------------------------------------------------------------------------


def _joint_log_prob(truth: Truth, prediction: JointPrediction, floor: float) -> Floats:
    """Return the log-probability (n,) of the known labels, `floor` for each unseen one; nan if none are."""
    unseen = np.where(truth.unseen, floor, 0.0).sum(axis=1)
    log_prob = prediction.distribution.log_prob(truth.codes) + unseen
    return np.where(truth.known.any(axis=1), log_prob, np.nan)


def _least(truth: Truth, floor: float) -> Floats:
    if not floor < 0:
        raise InputError(f"floor must be a negative log-probability, found {floor}.")
    return np.maximum(1, truth.known.sum(axis=1)) * floor


def _label_probabilities(truth: Truth, prediction: JointPrediction) -> Floats:
    """Return the marginal probability (n, m) of each true label; 0 where unseen, 1 where missing."""
    rows = np.arange(len(prediction))
    marginals = prediction.distribution.marginals()
    chosen = np.column_stack([p[rows, truth.codes[:, j]] for j, p in enumerate(marginals)])
    return np.where(truth.unseen, 0.0, np.where(truth.codes == UNKNOWN, 1.0, chosen))


def _mean_of_known(values: Floats, truth: Truth) -> Floats:
    """Return the mean (n,) of values (n, m) where the truth is known, nan where it never is."""
    n_known = truth.known.sum(axis=1)
    total = np.where(truth.known, values, 0.0).sum(axis=1)
    return np.divide(total, n_known, out=np.full(len(values), np.nan), where=n_known > 0)

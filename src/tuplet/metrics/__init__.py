"""Metrics of decisions and of probabilities, and scorers for model selection.

`f(Y_true, Y_pred)` takes labels in any container; `f(Y_true, prediction)` takes a `JointPrediction`. All work
for any number of categories and take `sample_weight`. True labels that are missing are left out (or summed
out, where joint probabilities are concerned). A prediction that is missing, because the decision abstained,
is never right; `answered_accuracy` leaves it out, and `coverage` counts how much there is of the others.

A true label that training has not seen (a rare one, absent from a fold) is no error. No decision is ever
right about it, and in probabilities it is charged the floor of the log-losses (`LOG_FLOOR`), or what
probability zero costs in the others. Labels of another type altogether, "1" where 1 is predicted, are an
error, and so are pandas tables that hold the same rows in another order; otherwise rows go by position.

Measures of sets (F1, Jaccard, precision, recall) look at a row as the set of its active pairs (variable,
category): a binary variable contributes its second category only, a variable with more categories always the
one it has. A variable with a single category contributes it if it is 1 or True. So binary label matrices give
the numbers of scikit-learn, and nothing else changes with more categories.

`space` lists the categories; by default they are those that occur in the labels. Pass the model's
(`model.space_`) where a test set may lack some: three categories of which only two occur would be taken for a
binary variable. The scorers do.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.metrics.calibration import expected_calibration_error, marginal_calibration, mode_calibration
    from tuplet.metrics.decisions import (
        answered_accuracy,
        coverage,
        exact_match,
        hamming_loss,
        hamming_score,
        instance_f1,
        jaccard_score,
        macro_f1,
        macro_precision,
        macro_recall,
        mean_loss,
        micro_f1,
    )
    from tuplet.metrics.probabilities import (
        LOG_FLOOR,
        brier_score,
        joint_log_loss,
        marginal_log_loss,
        n_floored,
        ranked_probability_score,
        top_k_accuracy,
    )
    from tuplet.metrics.scorers import (
        SCORERS,
        DecisionScorer,
        ProbabilityScorer,
        get_scorer,
        loss_scorer,
        top_k_scorer,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.metrics.calibration": "expected_calibration_error marginal_calibration mode_calibration",
            "tuplet.metrics.decisions": (
                "answered_accuracy coverage exact_match hamming_loss hamming_score instance_f1 jaccard_score "
                "macro_f1 macro_precision macro_recall mean_loss micro_f1"
            ),
            "tuplet.metrics.probabilities": (
                "LOG_FLOOR brier_score joint_log_loss marginal_log_loss n_floored "
                "ranked_probability_score top_k_accuracy"
            ),
            "tuplet.metrics.scorers": (
                "SCORERS DecisionScorer ProbabilityScorer get_scorer loss_scorer top_k_scorer"
            ),
        },
    )

__all__ = [
    "LOG_FLOOR",
    "SCORERS",
    "DecisionScorer",
    "ProbabilityScorer",
    "answered_accuracy",
    "brier_score",
    "coverage",
    "exact_match",
    "expected_calibration_error",
    "get_scorer",
    "hamming_loss",
    "hamming_score",
    "instance_f1",
    "jaccard_score",
    "joint_log_loss",
    "loss_scorer",
    "macro_f1",
    "macro_precision",
    "macro_recall",
    "marginal_calibration",
    "marginal_log_loss",
    "mean_loss",
    "micro_f1",
    "mode_calibration",
    "n_floored",
    "ranked_probability_score",
    "top_k_accuracy",
    "top_k_scorer",
]

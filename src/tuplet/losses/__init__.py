"""Losses: what a wrong answer costs, and the answer that costs least.

A loss sees codes and joint distributions only. `value` is what the metrics report, `decide` what `predict`
answers, `risk` what the answer is expected to cost; all three live in one object, so they cannot drift apart.
Weights and costs that belong to names and labels come in through `Hamming.from_labels` and
`CostMatrix.from_labels`.
"""

from tuplet.losses.abstain import Abstain
from tuplet.losses.base import Loss
from tuplet.losses.costs import CostMatrix
from tuplet.losses.decomposable import DecomposableLoss, Hamming
from tuplet.losses.fmeasure import FBeta
from tuplet.losses.general import CallableLoss, CandidateLoss, Jaccard
from tuplet.losses.ordinal import Absolute, Quantile
from tuplet.losses.registry import LOSSES, get_loss
from tuplet.losses.subset import SubsetZeroOne

__all__ = [
    "LOSSES",
    "Absolute",
    "Abstain",
    "CallableLoss",
    "CandidateLoss",
    "CostMatrix",
    "DecomposableLoss",
    "FBeta",
    "Hamming",
    "Jaccard",
    "Loss",
    "Quantile",
    "SubsetZeroOne",
    "get_loss",
]

"""The user's view of a joint distribution: names, labels, frames, text and HTML."""

from tuplet.prediction.joint import JointPrediction

__all__ = ["JointPrediction"]

"""Mixtures across families: given models stacked, or found, judged and stacked within a time."""

from tuplet.models.stacking.auto import AutoJointClassifier
from tuplet.models.stacking.classifier import JointStackingClassifier

__all__ = ["AutoJointClassifier", "JointStackingClassifier"]

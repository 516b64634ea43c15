"""Conditional trees over the class variables, averages of random ones, and learnt mixtures."""

from tuplet.models.trees.ensemble import TreeEnsembleClassifier
from tuplet.models.trees.mixture import TreeMixtureClassifier
from tuplet.models.trees.tree import TreeClassifier

__all__ = ["TreeClassifier", "TreeEnsembleClassifier", "TreeMixtureClassifier"]

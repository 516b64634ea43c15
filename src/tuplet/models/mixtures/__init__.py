"""Mixtures of joint models: how they grow, and expectation maximisation for any components."""

from tuplet.models.mixtures.mixture import MixtureClassifier

__all__ = ["MixtureClassifier"]

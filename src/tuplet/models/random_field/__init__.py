"""Conditional random fields over the class variables.

- `classifier`: `RandomFieldClassifier`: settings, choice of the edges, fit, prediction.
- `field`: the layout of the scores, the factors that they make, and weights linear in x.
- `likelihood`: the likelihoods that are maximised, with their gradients.
"""

from tuplet.models.random_field.classifier import RandomFieldClassifier

__all__ = ["RandomFieldClassifier"]

"""Bayesian networks over the class variables, with any classifier as local model.

- `classifier`: `BayesNetClassifier`.
- `mixed_families`: scores of sets of parents with discrete features as inputs, parents, or both.
- `learning`: scores of sets of parents, or of a short list, then the graph, within a time budget.
- `network`: views of the features, the fitted models, which become factors once x is known, and the graph.
"""

from tuplet.models.bayesnet.classifier import BayesNetClassifier

__all__ = ["BayesNetClassifier"]

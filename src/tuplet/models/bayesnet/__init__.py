"""Bayesian networks over the class variables, with any classifier as local model.

- `classifier`: `BayesNetClassifier`.
- `features`: the features, as inputs of classifiers and as codes of parents, and scores with them as parents.
- `learning`: scores of sets of parents, or of a short list, then the graph, within a time budget.
- `network`: the fitted models, which become factors once x is known, and the graph as a table and a plot.
"""

from tuplet.models.bayesnet.classifier import BayesNetClassifier

__all__ = ["BayesNetClassifier"]

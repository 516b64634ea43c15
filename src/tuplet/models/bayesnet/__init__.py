"""Bayesian networks over the class variables, with any classifier as local model.

- `classifier`: `BayesNetClassifier`.
- `views`: the features, as inputs of classifiers and as codes of parents.
- `learning`: scores of sets of parents, then the graph, within a time budget.
- `network`: the fitted models, which become factors once x is known, and the graph as a table and a plot.
"""

from tuplet.models.bayesnet.classifier import BayesNetClassifier

__all__ = ["BayesNetClassifier"]

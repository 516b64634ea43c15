"""Bayesian networks over the class variables, with any classifier as local model.

- `classifier`: `BayesNetClassifier`.
- `shift_families`: scores of sets of parents that shift logistic regressions, the default.
- `mixed_families`: those of other classifiers, with discrete features as inputs, parents, or both.
- `screening`: which sets are scored where there are many class variables.
- `learning`: scores of sets of parents, or of a short list, then the graph, within a time budget.
- `network`: views of the features, the fitted models, which become factors once x is known, and the graph.
"""

from tuplet.models.bayesnet.classifier import BayesNetClassifier

__all__ = ["BayesNetClassifier"]

"""Generative Bayesian network classifiers: p(classes, features) as one discrete Bayesian network.

- `GenerativeBayesNetClassifier`: the model; `InformationGainFilter`: features for it.
- `tables`: conditional tables from counts, and the tables over classes that observed features leave.
- `files`: the model as a `Network`, and back.
"""

from tuplet.models.generative.classifier import GenerativeBayesNetClassifier
from tuplet.models.generative.selection import InformationGainFilter

__all__ = ["GenerativeBayesNetClassifier", "InformationGainFilter"]

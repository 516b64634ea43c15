"""Multivariate probit models: normal vectors whose signs are the labels."""

from tuplet.models.probit.forest import ProbitForestClassifier
from tuplet.models.probit.linear import ProbitClassifier

__all__ = ["ProbitClassifier", "ProbitForestClassifier"]

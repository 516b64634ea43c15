"""Held-out scores along the steps in which a model was learned."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from tuplet.core.exceptions import InputError
from tuplet.models.mixtures.mixture import MixtureClassifier
from tuplet.models.rules.stacking import RuleStackingClassifier
from tuplet.models.stacking.auto import AutoJointClassifier
from tuplet.models.trees.mixture import TreeMixtureClassifier
from tuplet.surface.plots.path import LearningPath, plot_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_learning_path(model: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw the path of learning of a fitted model; see `tuplet.surface.plots.plot_path`."""
    path = learning_path(model)
    if path is None:
        raise InputError(f"plot_path: {type(model).__name__} has no path of learning to draw.")
    return plot_path(path, title=title, ax=ax)


@singledispatch
def learning_path(model: Any) -> LearningPath | None:
    """Return the held-out scores of the steps of learning; None if the model was learned in one step."""
    return None


@learning_path.register
def _(model: MixtureClassifier) -> LearningPath | None:
    return _growth(model, "components")


@learning_path.register
def _(model: TreeMixtureClassifier) -> LearningPath | None:
    return _growth(model, "trees")


def _growth(model: MixtureClassifier | TreeMixtureClassifier, components: str) -> LearningPath | None:
    scores = model.validation_path_
    if not scores:
        return None
    return LearningPath(
        np.arange(1, len(scores) + 1),
        scores,
        f"number of {components}",
        "held-out log-likelihood per row",
        chosen=len(model.components_),
    )


@learning_path.register
def _(model: RuleStackingClassifier) -> LearningPath | None:
    learned = model.learned_
    if not learned.sizes:
        return None
    return LearningPath(
        (0, *learned.sizes),
        (0.0, *learned.held_out),
        "number of rules",
        "held-out gain in log-likelihood per row",
        errors=(0.0, *learned.held_out_error),
        chosen=len(learned.terms),
    )


@learning_path.register
def _(model: AutoJointClassifier) -> LearningPath | None:
    if not len(model.race_):
        return None
    return LearningPath(
        model.race_["seconds"],
        model.race_["log_likelihood"],
        "seconds since the start",
        "held-out log-likelihood per row",
        level=model.log_likelihood_,
        level_name="the mixture",
        names=tuple(model.race_["model"]),
    )

"""What the settings of a model say about the trees to be learnt, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from tuplet.exceptions import InputError
from tuplet.local.inputs import Features
from tuplet.models.trees.anything import AnyTrees, Trees
from tuplet.models.trees.logistic import LogisticTrees, Settings
from tuplet.structure import ParentSets
from tuplet.typing import Codes, Floats


def make_trees(
    model: Any,
    X: Features,
    codes: Codes,
    sample_weight: Floats | None,
    rng: np.random.Generator,
    learnt: Floats | None = None,
    like: Trees | None = None,
) -> Trees:
    """Return what learns trees from these rows.

    Parameters
    ----------
    model : TreeClassifier, or a model with its settings
    X, codes, sample_weight
        As `_fit` gets them.
    rng : Generator
    learnt : array, shape (n,), optional
        Shares of the rows to learn from; see `LogisticTrees`.
    like : Trees, optional
        What has made choices before, which are kept.
    """
    _check(model)
    cards, n_folds = model.space_.cards, int(model.n_folds)
    if isinstance(like, AnyTrees):
        return like
    if model.estimator is None:
        # One C for all that has no parent, unless that is for held-out rows to say.
        strengths = (model.C, model.C, model.C_shift) if like is None else like.strengths
        screening = getattr(model, "screening", None)
        settings = Settings(model.parametrisation, *strengths, n_folds, screening, model.n_jobs)
        return LogisticTrees(X, codes, cards, sample_weight, settings, learnt)
    estimators = model._estimators(model.space_.names)
    seed = int(rng.integers(2**31 - 1))
    return AnyTrees(X, codes, cards, estimators, model.parametrisation, n_folds, seed, model.n_jobs)


def _check(model: Any) -> None:
    name, n_folds = type(model).__name__, model.n_folds
    if model.parametrisation not in ("split", "inputs"):
        raise InputError(
            f"{name}: parametrisation must be 'split' or 'inputs', found {model.parametrisation!r}."
        )
    if not isinstance(n_folds, (int, np.integer)) or n_folds < 2:
        raise InputError(f"{name}: n_folds must be an integer of at least 2, found {n_folds!r}.")
    for setting in ("C", "C_shift"):
        value = getattr(model, setting)
        if value != "auto" and not _is_positive(value):
            raise InputError(f"{name}: {setting} must be 'auto' or a number > 0, found {value!r}.")
    screening = getattr(model, "screening", None)
    if screening not in ("auto", None) and not _is_positive(screening):
        raise InputError(f"{name}: screening must be 'auto', None or a number > 0, found {screening!r}.")


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and bool(0 < value < np.inf)


def random_tree(m: int, rng: np.random.Generator) -> ParentSets:
    """Draw a tree: in a random order of the variables, each gets one of those before it as its parent."""
    order = rng.permutation(m).tolist()
    parents: list[tuple[int, ...]] = [()] * m
    for place, child in enumerate(order[1:], 1):
        parents[child] = (order[int(rng.integers(place))],)
    return tuple(parents)

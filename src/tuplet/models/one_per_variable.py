"""Estimators by class variable, and local models p(y_j | x, y_parents) that are fitted side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tuplet.core.exceptions import InputError
from tuplet.core.parallel import run_many
from tuplet.core.typing import Codes, Floats
from tuplet.local.stacked import StackedModel
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.features.estimators import seeded
from tuplet.space.features.inputs import Features


class Link(NamedTuple):
    """A class variable and those that it depends on, by position."""

    child: int
    parents: tuple[int, ...]


def estimators_by_variable(estimator: Any, names: tuple[str, ...] | None) -> list[Any]:
    """Return one estimator for each class variable, None for the default.

    Parameters
    ----------
    estimator : classifier, mapping of names to classifiers, or None
        A name may also be the key of a column (0, 1, ...).
    names : tuple of str, or None
        The class variables; where they are not known yet the classifiers alone are returned.
    """
    if not isinstance(estimator, Mapping):
        return [estimator] * (1 if names is None else len(names))
    if names is None:
        return list(estimator.values())
    by_name = {str(name): each for name, each in estimator.items()}
    strange = [name for name in by_name if name not in names]
    if strange:
        raise InputError(
            f"The mapping of estimators names {strange[0]!r}, which is no class variable; these are"
            f" {listing(names)}."
        )
    return [by_name.get(name) for name in names]


class _Model(Protocol):
    space_: ClassSpace
    n_jobs: int | None

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]: ...


def fit_local_models(
    model: _Model,
    links: Sequence[Link],
    X: Features,
    codes: Codes,
    sample_weight: Floats | None,
    seeds: Sequence[int] | None = None,
) -> list[StackedModel]:
    """Return a fitted local model for each link, fitted side by side by `model.n_jobs` workers.

    With `seeds`, one for each link, estimators whose `random_state` was left open get theirs from it.
    """
    space = model.space_
    estimators = [model._estimators(space.names)[link.child] for link in links]
    if seeds is not None:
        estimators = [seeded(estimator, seed) for estimator, seed in zip(estimators, seeds, strict=True)]
    tasks = [
        (estimator, link, space, X, codes, sample_weight)
        for estimator, link in zip(estimators, links, strict=True)
    ]
    return run_many(_fit_link, tasks, model.n_jobs)


def _fit_link(
    estimator: Any, link: Link, space: ClassSpace, X: Features, codes: Codes, sample_weight: Floats | None
) -> StackedModel:
    labels = [[f"{space.names[p]}={label}" for label in space.categories[p]] for p in link.parents]
    try:
        return StackedModel(estimator, parent_labels=labels).fit(
            X,
            codes[:, list(link.parents)],
            codes[:, link.child],
            parent_cards=[space.cards[p] for p in link.parents],
            child_card=space.cards[link.child],
            sample_weight=sample_weight,
        )
    except Exception as error:
        error.add_note(f"This happened while fitting the classifier of {space.names[link.child]!r}.")
        raise

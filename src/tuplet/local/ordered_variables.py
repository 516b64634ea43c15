"""Which class variables an estimator for ordered classes is used for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuplet.core.exceptions import InputError
from tuplet.space.classes import ClassSpace
from tuplet.space.features.estimators import is_one_of, last_step

_ORDINAL = {"tuplet.local": ("OrdinalClassifier",)}


def needs_order(estimator: Any) -> bool:
    """Return whether an estimator is for ordered classes only."""
    return is_one_of(last_step(estimator), _ORDINAL)


def suited_to_order(estimators: Sequence[Any], space: ClassSpace, *, chosen_by_name: bool) -> list[Any]:
    """Return an estimator for each class variable, None for the default in the place of unsuited ones.

    Estimators for ordered classes serve ordered variables with more than two categories.

    Parameters
    ----------
    estimators : sequence of classifiers or None
        One for each variable.
    space : ClassSpace
    chosen_by_name : bool
        Whether each was chosen for its variable; then one for an unordered variable is an error. So is one
        for all variables, if none of them is ordered.
    """
    ordinal = [needs_order(each) for each in estimators]
    wide = [card > 2 for card in space.cards]
    unsuited = [j for j, needs in enumerate(ordinal) if needs and wide[j] and not space.ordered[j]]
    if unsuited and (chosen_by_name or not any(space.ordered)):
        raise InputError(
            f"OrdinalClassifier needs ordered labels, but those of {space.names[unsuited[0]]!r} are not."
            " Declare the order before fit, with tuplet.declare_order(Y, {name: [lowest, ..., highest]})."
        )
    return [
        None if needs and not (wide[j] and space.ordered[j]) else each
        for j, (each, needs) in enumerate(zip(estimators, ordinal, strict=True))
    ]

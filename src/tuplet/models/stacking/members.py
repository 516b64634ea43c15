"""The models that are stacked, under names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tuplet.exceptions import InputError
from tuplet.models.base import JointClassifier


def named_models(models: Any) -> dict[str, JointClassifier]:
    """Return models by name, from a mapping, from (name, model) pairs, or from models alone."""
    pairs = list(_pairs(models))
    if not pairs:
        raise InputError("models is empty; pass at least one model, such as ChainClassifier().")
    for name, model in pairs:
        if not isinstance(model, JointClassifier):
            raise InputError(
                f"models must be models of Tuplet, but {name!r} is {model!r}; wrap a scikit-learn classifier"
                " in one, such as ChainClassifier(...)."
            )
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise InputError(f"models: the name {twice[0]!r} comes more than once; give each model its own.")
    return dict(pairs)


def _pairs(models: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(models, Mapping):
        yield from ((str(name), model) for name, model in models.items())
        return
    if isinstance(models, (str, JointClassifier)) or not hasattr(models, "__iter__"):
        raise InputError(f"models must be a list or a mapping of models, found {models!r}.")
    entries = list(models)
    alone = [entry for entry in entries if not isinstance(entry, tuple)]
    count, seen = Counter(_called(entry) for entry in alone), Counter[str]()
    for entry in entries:
        if isinstance(entry, tuple) and len(entry) == 2:
            yield str(entry[0]), entry[1]
            continue
        name = _called(entry)
        seen[name] += 1
        yield (f"{name}-{seen[name]}" if count[name] > 1 else name), entry


def _called(model: Any) -> str:
    return type(model).__name__.removesuffix("Classifier").lower()

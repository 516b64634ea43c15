"""Models and classifiers by the names that the command line knows them by."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tuplet
from tuplet.exceptions import InputError

if TYPE_CHECKING:
    from tuplet.rules import RuleSet


@dataclass(frozen=True)
class Choice:
    """A model or classifier by its address, with settings, and a few words about it.

    It is imported when it is made, so that listing the names costs nothing.
    """

    address: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        """Return an unfitted instance."""
        module, _, name = self.address.rpartition(".")
        return getattr(import_module(module), name)(**self.settings)


MODELS: dict[str, Choice] = {
    "auto": Choice("tuplet.AutoJointClassifier", "the best mixture of all the others within a time"),
    "independent": Choice("tuplet.IndependentClassifier", "one classifier per variable"),
    "powerset": Choice("tuplet.PowersetClassifier", "one classifier of whole combinations"),
    "chain": Choice("tuplet.ChainClassifier", "each variable given those before it"),
    "chains": Choice(
        "tuplet.ChainClassifier", "ten chains in random orders", {"n_chains": 10, "order": "random"}
    ),
    "bayesnet": Choice("tuplet.BayesNetClassifier", "provably best graph of the variables"),
    "tree": Choice("tuplet.TreeClassifier", "best tree of the variables"),
    "tree-mixture": Choice("tuplet.TreeMixtureClassifier", "mixture of trees"),
    "generative": Choice("tuplet.GenerativeBayesNetClassifier", "classes and features in one network"),
    "random-field": Choice("tuplet.RandomFieldClassifier", "pairwise conditional random field"),
    "neighbors": Choice("tuplet.NeighborClassifier", "nearest neighbours (MLKNN), 0/1 labels"),
    "shared-forest": Choice("tuplet.SharedForestClassifier", "one forest for all variables; quick with many"),
    "probit": Choice("tuplet.ProbitClassifier", "multivariate probit with intervals, two labels each"),
    "probit-forest": Choice("tuplet.ProbitForestClassifier", "the same with Bayesian trees"),
    "rules": Choice("tuplet.RuleStackingClassifier", "rules, of experts or learned, over classifiers"),
    "prior": Choice("tuplet.PriorClassifier", "frequencies of the combinations, whatever the features"),
}
"""One more line is one more name; classes of `tuplet.models` also go by their own."""

ESTIMATORS: dict[str, Choice] = {
    "logistic": Choice("tuplet.default_estimator", "logistic regression, imputed and standardised"),
    "forest": Choice(
        "sklearn.ensemble.RandomForestClassifier", "random forest of 200 trees", {"n_estimators": 200}
    ),
    "extra-trees": Choice(
        "sklearn.ensemble.ExtraTreesClassifier",
        "200 extremely random trees",
        {"n_estimators": 200, "bootstrap": True, "max_features": 0.5},
    ),
    "boosting": Choice(
        "sklearn.ensemble.HistGradientBoostingClassifier",
        "boosted trees",
        {"learning_rate": 0.05, "max_leaf_nodes": 15},
    ),
    "naive-bayes": Choice("tuplet.MixedNaiveBayes", "naive Bayes for numbers and categories"),
    "neighbors": Choice(
        "sklearn.neighbors.KNeighborsClassifier", "15 nearest neighbours", {"n_neighbors": 15}
    ),
}


def make_model(
    name: str,
    *,
    estimator: str | None = None,
    settings: Sequence[str] = (),
    rules: Path | None = None,
    option: str = "--model",
    **common: Any,
) -> Any:
    """Return an unfitted model.

    Parameters
    ----------
    name : str
        Of `MODELS`, or of a class of `tuplet.models`.
    estimator : str, optional
        Of `ESTIMATORS`.
    settings : sequence of str
        "parameter=value" each; values are Python literals, anything else is text.
    rules : Path, optional
        A file of rules, text or JSON.
    option : str
        What the user gave the name with.
    **common
        Parameters that are set where the model has them: a seed, a time budget.
    """
    from tuplet.local.estimators import seeded

    model = _named(name, option)
    known = model.get_params(deep=False)
    model.set_params(**{key: value for key, value in common.items() if key in known and value is not None})
    if estimator is not None:
        if "estimator" not in known and "estimators" not in known:
            raise InputError(f"--estimator: the model {name!r} has no classifier inside; leave it out.")
        inside = _choice(estimator, ESTIMATORS, "--estimator").make()
        seed = common.get("random_state")
        inside = inside if seed is None or "random_state" in known else seeded(inside, seed)
        model.set_params(**{"estimator" if "estimator" in known else "estimators": inside})
    if rules is not None:
        if "rules" not in known:
            raise InputError(f"--rules: the model {name!r} takes no rules; use --model rules or auto.")
        model.set_params(rules=list(read_rule_file(rules)))
    for setting in settings:
        model.set_params(**_setting(setting, model, name))
    return model


def _named(name: str, option: str) -> Any:
    kind = getattr(tuplet, name, None)
    if name not in MODELS and isinstance(kind, type) and issubclass(kind, tuplet.JointClassifier):
        return kind()
    return _choice(name, MODELS, option).make()


def _choice(name: str, entries: dict[str, Choice], option: str) -> Choice:
    if name in entries:
        return entries[name]
    close = get_close_matches(name, entries, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise InputError(f"{option}: expected one of {', '.join(entries)}, found {name!r}{hint}")


def _setting(text: str, model: Any, name: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    key = key.strip().replace("-", "_")
    known = model.get_params()
    if not equals or key not in known:
        raise InputError(
            f"--set: expected parameter=value with a parameter of {type(model).__name__}"
            f" ({', '.join(model.get_params(deep=False))}), found {text!r}."
        )
    try:
        return {key: ast.literal_eval(value.strip())}
    except (ValueError, SyntaxError):
        return {key: value.strip()}


def read_rule_file(path: Path) -> RuleSet:
    """Read rules from a file, JSON or one rule a line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise InputError(f"--rules: {str(path)!r} cannot be read: {reason}.") from None
    rules = tuplet.RuleSet
    return rules.from_json(text) if text.lstrip().startswith("{") else rules.from_text(text)


def split_names(text: str | None) -> list[str]:
    r"""Return the names of a list with commas; a comma that belongs to a name has a backslash before it."""
    if not text:
        return []
    parts = text.replace("\\,", "\0").split(",")
    return [name for part in parts if (name := part.replace("\0", ",").strip())]

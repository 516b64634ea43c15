"""Names of models and classifiers on the command line."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tuplet
from tuplet.core.exceptions import InputError

if TYPE_CHECKING:
    from tuplet.models.rules.language.ruleset import RuleSet


@dataclass(frozen=True)
class Choice:
    """A model or classifier: import path, description and settings.

    It is imported when an instance is made, so that listing the names is cheap.
    """

    address: str
    about: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Any:
        """Return an unfitted instance."""
        module, _, name = self.address.rpartition(".")
        return getattr(import_module(module), name)(**self.settings)


MODELS: dict[str, Choice] = {
    "auto": Choice("tuplet.AutoJointClassifier", "best mixture of all models within a time budget"),
    "independent": Choice("tuplet.IndependentClassifier", "one classifier per variable"),
    "powerset": Choice("tuplet.PowersetClassifier", "one classifier of label combinations"),
    "chain": Choice("tuplet.ChainClassifier", "classifier chain: each variable given those before it"),
    "chains": Choice(
        "tuplet.ChainClassifier",
        "ensemble of ten chains in random orders",
        {"n_chains": 10, "order": "random"},
    ),
    "bayesnet": Choice("tuplet.BayesNetClassifier", "Bayesian network with a provably optimal graph"),
    "tree": Choice("tuplet.TreeClassifier", "optimal tree of the variables"),
    "tree-mixture": Choice("tuplet.TreeMixtureClassifier", "mixture of trees"),
    "generative": Choice(
        "tuplet.GenerativeBayesNetClassifier", "generative Bayesian network of classes and features"
    ),
    "random-field": Choice("tuplet.RandomFieldClassifier", "pairwise conditional random field"),
    "neighbors": Choice("tuplet.NeighborClassifier", "nearest neighbours (MLKNN)"),
    "shared-forest": Choice(
        "tuplet.SharedForestClassifier", "one forest for all variables; fast with many variables"
    ),
    "probit": Choice("tuplet.ProbitClassifier", "Bayesian multivariate probit, binary labels"),
    "probit-forest": Choice(
        "tuplet.ProbitForestClassifier", "multivariate probit with Bayesian trees, binary labels"
    ),
    "rules": Choice("tuplet.RuleStackingClassifier", "expert rules or learned rules over classifiers"),
    "prior": Choice("tuplet.PriorClassifier", "frequencies of the combinations, ignoring the features"),
}
"""Short names; classes of `tuplet.models` can also be given by their own names."""

ESTIMATORS: dict[str, Choice] = {
    "logistic": Choice(
        "tuplet.default_estimator",
        "logistic regression; held-out rows choose the penalty",
    ),
    "forest": Choice(
        "sklearn.ensemble.RandomForestClassifier", "random forest of 200 trees", {"n_estimators": 200}
    ),
    "extra-trees": Choice(
        "sklearn.ensemble.ExtraTreesClassifier",
        "200 extremely randomised trees",
        {"n_estimators": 200, "bootstrap": True, "max_features": 0.5},
    ),
    "boosting": Choice(
        "sklearn.ensemble.HistGradientBoostingClassifier",
        "gradient boosted trees",
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
        Command-line option, for error messages.
    **common
        Parameters that are set where the model has them: a seed, a time budget.
    """
    from tuplet.space.features.estimators import seeded

    model = _named(name, option)
    known = model.get_params(deep=False)
    model.set_params(**{key: value for key, value in common.items() if key in known and value is not None})
    if estimator is not None:
        if "estimator" not in known and "estimators" not in known:
            raise InputError(f"--estimator: the model {name!r} has no base classifier; remove the option.")
        inside = _choice(estimator, ESTIMATORS, "--estimator").make()
        seed = common.get("random_state")
        inside = inside if seed is None or "random_state" in known else seeded(inside, seed)
        model.set_params(**{"estimator" if "estimator" in known else "estimators": inside})
    if rules is not None:
        if "rules" not in known:
            raise InputError(f"--rules: the model {name!r} takes no rules; use --model rules or auto.")
        model.set_params(rules=list(_read_rule_file(rules)))
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


def _read_rule_file(path: Path) -> RuleSet:
    """Read rules from a file: JSON or one rule per line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise InputError(f"--rules: {str(path)!r} cannot be read: {reason}.") from None
    rules = tuplet.RuleSet
    return rules.from_json(text) if text.lstrip().startswith("{") else rules.from_text(text)


def column_kinds(given: Sequence[str] | None) -> dict[str, str] | None:
    """Return kinds of columns of "name=kind" texts."""
    kinds = {}
    for text in given or ():
        name, equals, kind = (part.strip() for part in text.rpartition("="))
        if not equals or not name or not kind:
            raise InputError(f"--column: expected name=kind, such as code=category; found {text!r}.")
        kinds[name] = kind
    return kinds or None


def split_names(text: str | None) -> list[str]:
    r"""Split a list of names at commas; a comma inside of a name is escaped by a backslash."""
    if not text:
        return []
    parts = text.replace("\\,", "\0").split(",")
    return [name for part in parts if (name := part.replace("\0", ",").strip())]

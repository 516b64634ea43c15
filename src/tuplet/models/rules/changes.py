"""Adding and removing rules, classifiers and class variables of a fitted model; the rest stays fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tuplet.exceptions import InputError
from tuplet.models.rules.beliefs import read_priors
from tuplet.models.rules.sources import BeliefSource, fitted_source
from tuplet.models.rules.variables import widened
from tuplet.rules import NoisyOr, Rule, RuleSet, compile_rules
from tuplet.rules.calibration import Calibrator
from tuplet.rules.ruleset import read_rules
from tuplet.space import ClassSpace
from tuplet.typing import Floats


class ChangeableRules:
    """What a fitted `RuleStackingClassifier` lets change; all methods return the model itself."""

    space_: ClassSpace
    n_features_in_: int
    classes_: Any
    rules_: RuleSet
    sources_: list[BeliefSource]
    calibrators_: dict[str, Calibrator]
    priors_: dict[str, Floats]

    def add_rules(self, *rules: str | Rule | NoisyOr) -> Self:
        """Add rules; they may name class variables that `add_variable` brought in."""
        check_is_fitted(self, "space_")
        added = read_rules(rules, self.space_).settled("add_rules", "fit")
        compile_rules(added, self.space_)  # names that nobody knows are an error now, not in every prediction
        self.rules_ = self.rules_ + added
        return self

    def remove_rules(self, *which: int | str | Rule | NoisyOr) -> Self:
        """Remove rules, given by their position in `rules_`, their name, their text, or themselves."""
        check_is_fitted(self, "space_")
        self.rules_ = self.rules_.without(which, self.space_)
        return self

    def add_classifier(
        self, name: str, estimator: Any, columns: Any = None, calibrator: Calibrator | None = None
    ) -> Self:
        """Let a fitted classifier tell the beliefs about a class variable, in the place of the present one.

        Parameters
        ----------
        name : str
            The class variable.
        estimator : classifier
            Fitted elsewhere, to labels of this class variable.
        columns : list, name, position or slice of positions, optional
            Columns of X that it sees; all of them if None.
        calibrator : Calibrator, optional
            From `tuplet.rules.calibration.learn_calibrator`.
        """
        check_is_fitted(self, "space_")
        name = self.space_.names[self.space_.position(name)]
        source = fitted_source((name,), estimator, columns)
        source.check_labels(self.space_)
        source.check_columns(getattr(self, "feature_names_in_", None), self.n_features_in_)
        self.remove_classifier(name)
        self.sources_ = [*self.sources_, source]
        if calibrator is not None:
            self.calibrators_ = {**self.calibrators_, name: calibrator}
        return self

    def remove_classifier(self, name: str) -> Self:
        """Forget the classifier of a class variable; its beliefs are then the prior in `priors_`."""
        check_is_fitted(self, "space_")
        name = self.space_.names[self.space_.position(name)]
        self.sources_ = [kept for source in self.sources_ if (kept := source.without(name)) is not None]
        self.calibrators_ = {key: each for key, each in self.calibrators_.items() if key != name}
        return self

    def add_variable(self, name: str, categories: Sequence[Any] = (0, 1), prior: Any = None) -> Self:
        """Add a class variable that rules, and a classifier of its own, may then speak of.

        Answers come as pandas frames from then on.

        Parameters
        ----------
        name : str
        categories : sequence of labels
        prior : probabilities, optional
            What is believed without a classifier; uniform unless told.
        """
        check_is_fitted(self, "space_")
        space = widened(self.space_, name, categories, "add_variable")
        card = space.cards[-1]
        if card < 2:
            raise InputError(f"add_variable: {name!r} needs at least two categories, found {categories!r}.")
        compile_rules(self.rules_, space)  # a new name may make a rule ambiguous
        start = np.full(card, 1.0 / card) if prior is None else prior
        self.priors_ = self.priors_ | read_priors(space, {space.names[-1]: start})
        return self._with_space(space)

    def remove_variable(self, name: str) -> Self:
        """Remove a class variable, its classifier, and the rules that name it."""
        check_is_fitted(self, "space_")
        space = self.space_
        gone = space.position(name)
        if space.n_variables == 1:
            raise InputError(f"remove_variable: {name!r} is the only class variable.")
        self.remove_classifier(name)
        kept = [j for j in range(space.n_variables) if j != gone]
        self.rules_ = self.rules_.silent_on(gone, space)
        self.priors_ = {key: prior for key, prior in self.priors_.items() if key != space.names[gone]}
        return self._with_space(space.select([space.names[j] for j in kept]))

    def _with_space(self, space: ClassSpace) -> Self:
        self.space_ = space
        self.classes_ = list(space.categories)
        return self

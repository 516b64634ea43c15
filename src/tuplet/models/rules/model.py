"""Rules over given beliefs: of sensors, or of models that were fitted elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.core.progress import Show
from tuplet.core.typing import Floats, Seed
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.engine import Engine
from tuplet.models.rules.changes import ChangeableRules, KnowledgeBase
from tuplet.models.rules.expert_rules import compile_expert_rules, learn_beside
from tuplet.models.rules.explain import Explanation, contributions, explain_row
from tuplet.models.rules.graph import rule_graph
from tuplet.models.rules.language.compile import compile_rules
from tuplet.models.rules.language.rule import NoisyOr, Rule
from tuplet.models.rules.language.ruleset import RuleSet, read_rules
from tuplet.models.rules.learning.learner import Learned
from tuplet.models.rules.reading import read_beliefs, read_class_space, read_priors
from tuplet.models.validation import row_index, validate_groups, validate_weights
from tuplet.prediction.joint import JointPrediction
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import require_same_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
class RuleModel(ChangeableRules):
    """Class variables, beliefs about each of them, and rules that connect them.

    P(l | x) is proportional to the product of the beliefs x_j(l_j) and of p for every rule that l satisfies,
    1 - p for every rule that it breaks. Rules come from experts, from another model, or from rows whose
    beliefs and labels are known (`learn`).

    Parameters
    ----------
    variables : mapping of names to lists of categories, or ClassSpace
        An empty list, or None, means a yes/no variable with the categories 0 and 1.
    rules : iterable of str, Rule or NoisyOr, or RuleSet
        Text is `formula` or `p: formula`; see `Rule` and `RuleSet`.
    priors : mapping of names to probabilities, optional
        For class variables without beliefs; uniform where none is given.
    engine : "auto" or Engine
        How sums over all outcomes are made. "auto" takes the exact engine with the fewest cells, `Exact` or
        `SignedElimination`, and `BeliefPropagation`, which estimates, where none of them fits. The most
        probable combinations are searched exactly with every engine.

    Attributes
    ----------
    space : ClassSpace
        The class variables.
    rules : RuleSet
        The rules; printed, they are sentences.
    factors : tuple of RuleFactor
        The rules over numbered class variables.
    learned : Learned or None
        What `learn` found; `learned.summary` is one sentence.

    References
    ----------
    .. [1] Kirchhof, Schmid, Reining, ten Hompel and Pauly (2021). pRSL: Interpretable multi-label stacking by
       learning probabilistic rules. UAI.

    Examples
    --------
    >>> model = RuleModel(
    ...     {"camera": ["walking", "normal", "overhead"], "shoes": ["gait", "standing"]},
    ...     rules=["walking <-> gait", Rule("standing -> !normal", 0.7)],
    ... )
    >>> joint = model.predict_joint({"camera": [[0.1, 0.4, 0.5]], "shoes": {"gait": 0.05, "standing": 0.95}})
    >>> joint.mode()
         camera     shoes
    0  overhead  standing
    >>> joint.marginals()["camera"].round(3)
    camera  walking  normal  overhead
    0         0.008   0.253     0.739
    """

    def __init__(
        self,
        variables: Mapping[str, Sequence[Any] | None] | ClassSpace,
        rules: Iterable[str | Rule | NoisyOr] = (),
        *,
        priors: Mapping[str, Any] | None = None,
        engine: Engine | Literal["auto"] = "auto",
    ) -> None:
        self.space = variables if isinstance(variables, ClassSpace) else read_class_space(variables)
        self.rules: RuleSet = read_rules(rules, self.space)
        self.factors = compile_rules(self.rules, self.space)
        if engine != "auto" and not isinstance(engine, Engine):
            raise InputError(
                "RuleModel: engine must be 'auto' or an engine of tuplet.joint.inference: Exact(),"
                f" SignedElimination() or BeliefPropagation(); found {engine!r}."
            )
        self.engine = engine
        self.learned: Learned | None = None
        uniform = {
            name: np.full(card, 1.0 / card)
            for name, card in zip(self.space.names, self.space.cards, strict=True)
        }
        self.priors: dict[str, Floats] = uniform | read_priors(self.space, {} if priors is None else priors)

    def joint(self, beliefs: Mapping[str, Any]) -> FactorGraph:
        """Return the joint distribution in codes; see `predict_joint`."""
        return self._joint(beliefs)[0]

    def _joint(self, beliefs: Mapping[str, Any]) -> tuple[FactorGraph, Any]:
        self.rules.settled("RuleModel", "learn(beliefs, Y)")
        log_beliefs, index = read_beliefs(self.space, beliefs, self.priors)
        return rule_graph(log_beliefs, self.factors, self.engine), index

    def predict_joint(self, beliefs: Mapping[str, Any]) -> JointPrediction:
        """Combine beliefs by the rules.

        Parameters
        ----------
        beliefs : mapping of names of class variables to tables
            A table is an array (n, k) in the order of the categories, a pandas or polars frame with the
            categories as columns, or for a single row an array (k,), a mapping of categories to
            probabilities or, for yes/no variables, the probability of yes. One row serves all rows. Class
            variables that are left out, and rows of NaN, get their prior.

        Returns
        -------
        JointPrediction
            Where sums are estimated, its `distribution.converged` marks the rows that can be relied on.
        """
        joint, index = self._joint(beliefs)
        return JointPrediction(joint, self.space, index)

    def predict(self, beliefs: Mapping[str, Any], loss: Any = "subset") -> Any:
        """Return the labels that are best for a loss; by default the most probable combination."""
        return self.predict_joint(beliefs).decide(loss)

    def learn(
        self,
        beliefs: Mapping[str, Any],
        Y: Any,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        n_rules: int | Literal["auto"] = "auto",
        max_rules: int = 60,
        max_scope: int = 6,
        random_state: Seed = None,
        progress: Show = "auto",
    ) -> RuleModel:
        """Return the model with rules that are learned from rows whose labels are known, beside its own.

        Probabilities of its own rules that are to be learned (`Rule(..., "learn")`) are learned, too.

        Parameters
        ----------
        beliefs : mapping of names of class variables to tables
            As in `predict_joint`. They must come from sensors or classifiers that have not seen these labels;
            otherwise the learned rules trust the beliefs too much.
        Y : labels, shape (n, m)
            Missing ones are allowed.
        sample_weight, groups : array, shape (n,), optional
            As in `JointClassifier.fit`.
        n_rules, max_rules, max_scope, random_state, progress
            As in `RuleStackingClassifier`.
        """
        log_beliefs, index = read_beliefs(self.space, beliefs, self.priors)
        require_same_order("learn: beliefs and Y", index, row_index(Y))
        codes = self.space.encode(Y)
        if len(log_beliefs[0]) != len(codes):
            raise InputError(
                f"learn: there are beliefs about {len(log_beliefs[0])} rows and labels of {len(codes)}."
            )
        weights = validate_weights(sample_weight, len(codes))
        rules, learned = learn_beside(
            compile_expert_rules(self.rules, self.space),
            self.space,
            log_beliefs,
            codes,
            weights,
            groups=validate_groups(self, groups, weights, len(codes)),
            n_rules=n_rules,
            max_rules=max_rules,
            max_scope=max_scope,
            rng=np.random.default_rng(random_state),
            progress=progress,
        )
        model = self._with_knowledge(self._knowledge._replace(rules=rules))
        model.learned = learned
        return model

    # -- reading ------------------------------------------------------------------------------------------

    def explain(self, beliefs: Mapping[str, Any], row: int = 0) -> Explanation:
        """Return which rules moved which labels of a row, and by how many log-odds."""
        return explain_row(self.joint(beliefs), self.space, row)

    def plot_explanation(
        self, beliefs: Mapping[str, Any], row: int = 0, *, title: str = "", ax: Axes | None = None
    ) -> Axes:
        """Draw the explanation of a row; see `plot_rule_effects`."""
        return delegate("plot_rule_effects", self.explain(beliefs, row), title=title, ax=ax)

    def contributions(self, beliefs: Mapping[str, Any], Y: Any = None) -> Any:
        """Return the rules sorted by what they contribute to these rows, or to the likelihood of labels Y."""
        codes = None if Y is None else self.space.encode(Y)
        return contributions(self.joint(beliefs), self.space, codes)

    # -- changing -----------------------------------------------------------------------------------------

    @property
    def _knowledge(self) -> KnowledgeBase:
        return KnowledgeBase(self.space, self.rules, self.priors)

    def _with_knowledge(self, knowledge: KnowledgeBase) -> RuleModel:
        return RuleModel(knowledge.space, knowledge.rules, priors=knowledge.priors, engine=self.engine)

    def __repr__(self) -> str:
        return f"RuleModel({len(self.rules)} rules over {', '.join(self.space.names)})\n{self.rules}"

    def _repr_html_(self) -> str:
        return self.rules._repr_html_()

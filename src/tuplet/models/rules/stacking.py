"""Rules stacked on base classifiers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, final, get_args

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError, IntractableError
from tuplet.core.parameters import Whole, declare
from tuplet.core.progress import Show
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.mixture import Mixture
from tuplet.local.smoothing import has_bound, smoothed_frequencies
from tuplet.models.base import JointClassifier
from tuplet.models.prior import independent, least_mass, log_marginals
from tuplet.models.rules.calibration import CalibrationKind, Calibrator, learn_calibrator
from tuplet.models.rules.changes import ChangeableRules, KnowledgeBase
from tuplet.models.rules.expert_rules import ExpertRules, compile_expert_rules, learn_beside
from tuplet.models.rules.explain import Explanation, contributions, explain_row
from tuplet.models.rules.graph import rule_graph
from tuplet.models.rules.language.compile import compile_rules
from tuplet.models.rules.language.rule import NoisyOr, Rule
from tuplet.models.rules.language.ruleset import read_rules
from tuplet.models.rules.learning.learner import Learner
from tuplet.models.rules.reading import read_priors
from tuplet.models.rules.sources import HeldOutBeliefs, fitted_source, held_out_beliefs, make_sources
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, n_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
class RuleStackingClassifier(ChangeableRules, JointClassifier):
    """Rules over the beliefs of any classifiers: expert rules, learned rules, or both.

    P(y | x) is proportional to the product of the base classifiers' beliefs and of p (1 - Q) + (1 - p) Q for
    every rule, where Q is how much y breaks the rule. Rules are learned from beliefs of classifiers that
    have not seen the rows. The number of rules is the one that is best on held-out rows; it is zero where no
    rule helps, and predictions then have a note.

    Parameters
    ----------
    estimators : classifier, JointClassifier, or mapping of names to classifiers, optional
        A classifier is fitted once for each class variable (`default_estimator()` if None); of a model of
        Tuplet the marginals are taken. In a mapping, a value is a classifier or (classifier, columns of X
        that it sees); "default" is the default classifier. Class variables that it does not name have no
        classifier and get a prior.
    rules : iterable of str, Rule or NoisyOr
        Rules of experts. Those with p="learn" get the p that fits the data.
    n_rules : int or "auto"
        Rules to be learned, fewer where no further one adds anything; 0 learns none.
    calibration : "identity", "platt", "isotonic", "temperature" or "dirichlet"
        How beliefs are mapped before rules are applied, learned from the same held-out beliefs. Trees and
        neighbours are calibrated in any case, as everywhere in Tuplet, unless they are `prefit`.
    prefit : bool
        Whether `estimators` are fitted already. The rows given to `fit` must be new to them, or rules
        will trust them too much.
    multi_output : bool
        Whether `estimators` is one scikit-learn classifier that predicts all class variables at once.
    priors : mapping of names to probabilities, optional
        For class variables without classifier; the training frequencies if not given. A class variable
        without any label (a Categorical that is missing in all rows) has no classifier: only rules
        change its prior.
    learner : "greedy" or "paper"
        See `learn_rules`.
    max_rules : int
        Where "auto" stops at the latest; with more than 53 of the m class variables, at 3,200 / m rules. A
        number as `n_rules` has no such limit.
    max_scope : int
        Most class variables in a learned rule.
    n_folds : int
        Folds from which beliefs about training rows come.
    n_learned : int or None
        Training rows that rules and calibration are learned from, drawn at random where there are more; None
        takes all. Classifiers are always fitted to all rows.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    random_state : int, Generator or None
        For the search for rules.
    n_jobs : int, optional
        Fits of classifiers that run side by side, by joblib.
    progress : bool or "auto"
        Whether to show how far the search is; "auto" does so in a terminal. An interrupt from the keyboard
        ends the search and keeps the best rules so far.

    Attributes
    ----------
    rules_ : RuleSet
        Rules of experts, then the learned ones, those that contribute most first.
    learned_ : Learned
        What was learned and how the number of rules was found; `learned_.summary` is one sentence.
    contributions_ : DataFrame
        The learned rules with the mean log-likelihood of a training row that is lost without each of them;
        for all rules and any rows see the method `contributions`.
    sources_ : list of BeliefSource
        The fitted base classifiers.
    calibrators_ : dict of str to Calibrator
    priors_ : dict of str to array (k_j,)

    References
    ----------
    .. [1] Kirchhof, Schmid, Reining, ten Hompel and Pauly (2021). pRSL: Interpretable multi-label stacking by
       learning probabilistic rules. UAI.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> rain = X[:, 0] + rng.normal(size=300) > 0
    >>> y = pd.DataFrame({"rain": rain, "wet": rain & (rng.random(300) < 0.9)})
    >>> model = RuleStackingClassifier(random_state=0).fit(X, y)
    >>> bool(model.learned_.held_out.max() > 0.1)
    True
    >>> model = RuleStackingClassifier(rules=["wet -> rain"], n_rules=0).fit(X, y)
    >>> [str(rule) for rule in model.rules_]
    ['wet -> rain  (p = 1)']
    """

    _parameters = declare(
        "columns rules n_folds n_learned random_state n_jobs progress",
        estimators=object,
        n_rules=("auto", Whole(at_least=0)),
        calibration=get_args(CalibrationKind),
        prefit=bool,
        multi_output=bool,
        priors=(Mapping, None),
        learner=get_args(Learner),
        max_rules=Whole(at_least=0),
        max_scope=Whole(at_least=2),
    )

    _feature_form = "raw"  # each classifier has its own view of the columns
    _keeps_frames = True
    _takes_unlabelled = True  # rules may determine them
    _judged_by_few_rows = False  # what rules exclude stays impossible

    def __init__(
        self,
        estimators: Any = None,
        rules: Iterable[str | Rule | NoisyOr] = (),
        n_rules: int | Literal["auto"] = "auto",
        calibration: CalibrationKind = "identity",
        *,
        prefit: bool = False,
        multi_output: bool = False,
        priors: Mapping[str, Any] | None = None,
        learner: Learner = "greedy",
        max_rules: int = 60,
        max_scope: int = 6,
        n_folds: int = 5,
        n_learned: int | None = 32_768,
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        progress: Show = "auto",
    ) -> None:
        self.estimators = estimators
        self.rules = rules
        self.n_rules = n_rules
        self.calibration = calibration
        self.prefit = prefit
        self.multi_output = multi_output
        self.priors = priors
        self.learner = learner
        self.max_rules = max_rules
        self.max_scope = max_scope
        self.n_folds = n_folds
        self.n_learned = n_learned
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        given = self.estimators.values() if isinstance(self.estimators, Mapping) else [self.estimators]
        alone = [each[0] if isinstance(each, tuple) else each for each in given]
        return [each for each in alone if hasattr(each, "fit") and not isinstance(each, JointClassifier)]

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        if self.multi_output and (self.estimators is None or isinstance(self.estimators, Mapping)):
            raise InputError(
                "RuleStackingClassifier: multi_output=True needs one classifier of all class variables in"
                f" estimators; found {self.estimators!r}."
            )
        space = self.space_
        experts = compile_expert_rules(read_rules(self.rules, space), space)
        labelled = (codes != UNKNOWN).any(axis=0)
        sources = make_sources(
            self.estimators,
            [name for name, known in zip(space.names, labelled, strict=True) if known],
            prefit=self.prefit,
            multi_output=self.multi_output,
            n_jobs=self.n_jobs,
        )
        self._learn_priors()
        learns = self.n_rules != 0 and space.n_variables > 1
        if learns or experts.places or self.calibration != "identity":
            held = held_out_beliefs(
                sources, space, X, codes, sample_weight, self.n_folds, self.n_learned, self._groups
            )
        else:
            held = HeldOutBeliefs(np.zeros(0, dtype=np.intp), {}, None)
        self.calibrators_ = {
            name: learn_calibrator(
                self.calibration, table, codes[held.rows, space.position(name)], held.weights
            )
            for name, table in held.beliefs.items()
        }
        self._learn_rules(held, codes, experts)
        self.sources_ = [source.fitted(X, space, codes, sample_weight, self._groups) for source in sources]

    def _learn_priors(self) -> None:
        frequencies = [smoothed_frequencies(counts) for counts in self.label_counts_]
        self.priors_: dict[str, Floats] = dict(zip(self.space_.names, frequencies, strict=True))
        self.priors_ |= read_priors(self.space_, {} if self.priors is None else self.priors)

    def _learn_rules(self, held: HeldOutBeliefs, codes: Codes, experts: ExpertRules) -> None:
        self.rules_, self.learned_ = learn_beside(
            experts,
            self.space_,
            self._calibrated(held.beliefs, len(held.rows)),
            codes[held.rows],
            held.weights,
            groups=None if self._groups is None else self._groups[held.rows],
            n_rules=self.n_rules,
            max_rules=self.max_rules,
            max_scope=self.max_scope,
            learner=self.learner,
            rng=np.random.default_rng(self.random_state),
            progress=self.progress,
        )
        learned = self.rules_[len(experts.rules) :]
        self.contributions_ = pd.DataFrame(
            {"rule": [rule.title for rule in learned], "log_likelihood": self.learned_.contributions}
        )

    # -- predicting ---------------------------------------------------------------------------------------

    def _calibrated(self, beliefs: Mapping[str, Floats], n: int) -> list[Floats]:
        """Return the log-beliefs (n, k_j) of all class variables, priors where there is no classifier."""
        tables = []
        for name in self.space_.names:
            table = beliefs.get(name)
            if table is None:
                table = np.tile(self.priors_[name], (n, 1))
            elif name in self.calibrators_:
                table = self.calibrators_[name].apply(table)
            with np.errstate(divide="ignore"):
                tables.append(np.log(table))
        return tables

    def _predict_joint(self, X: Features) -> JointDistribution:
        beliefs: dict[str, Floats] = {}
        for source in self.sources_:
            beliefs |= source.beliefs(X, self.space_)
        factors = compile_rules(self.rules_, self.space_)
        graph = rule_graph(self._calibrated(beliefs, n_rows(X)), factors)
        # What a rule excludes stays excluded, and beliefs that come from elsewhere stay as they are.
        exempt = any(factor.p in (0, 1) for factor in factors) or any(each.prefit for each in self.sources_)
        return graph if exempt else _bounded(graph, self.label_counts_)

    @property
    def _note(self) -> str:
        searched = self.n_rules == "auto" and self.space_.n_variables > 1
        return self.learned_.summary if searched and not self.learned_.terms else ""

    def explain(self, X: Any, row: int = 0) -> Explanation:
        """Return which rules moved which labels of a row of X, and by how many log-odds."""
        return explain_row(self._rule_joint(X), self.space_, row)

    def plot_explanation(self, X: Any, row: int = 0, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the explanation of a row; see `plot_rule_effects`."""
        return delegate("plot_rule_effects", self.explain(X, row), title=title, ax=ax)

    def plot_path(self, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw what rules add to the log-likelihood of rows held out, for every number of rules tried."""
        check_is_fitted(self, "space_")
        if not self.learned_.sizes:
            raise InputError("plot_path: the number of rules was given, so there is no path to draw.")
        return delegate("plot_learning_path", self, title=title, ax=ax)

    def contributions(self, X: Any, Y: Any = None) -> Any:
        """Return all rules sorted by what they contribute to rows X, or to the likelihood of labels Y."""
        joint = self._rule_joint(X)
        return contributions(joint, self.space_, None if Y is None else self.space_.encode(Y))

    def _rule_joint(self, X: Any) -> FactorGraph:
        check_is_fitted(self, "space_")
        joint = self._joint_of(X)
        graph = joint.components[0] if isinstance(joint, Mixture) else joint
        assert isinstance(graph, FactorGraph)
        return graph

    # -- changing -----------------------------------------------------------------------------------------

    @property
    def _knowledge(self) -> KnowledgeBase:
        check_is_fitted(self, "space_")
        return KnowledgeBase(self.space_, self.rules_, self.priors_)

    def _with_knowledge(self, knowledge: KnowledgeBase) -> RuleStackingClassifier:
        space = knowledge.space
        rules = knowledge.rules.settled("add_rules", "fit")
        compile_rules(rules, space)  # an unknown name is an error here, not in every prediction
        model = self
        for name in self.space_.names:
            model = model if name in space.names else model.remove_classifier(name)
        model = copy(model)
        model.space_, model.rules_, model.priors_ = space, rules, knowledge.priors
        counts = dict(zip(self.space_.names, self.label_counts_, strict=True))
        pairs = zip(space.names, space.cards, strict=True)
        model.label_counts_ = [counts[name] if name in counts else np.zeros(card) for name, card in pairs]
        model.classes_ = space.categories[0] if space.single else list(space.categories)
        return model

    def add_classifier(
        self, name: str, estimator: Any, columns: Any = None, calibrator: Calibrator | None = None
    ) -> RuleStackingClassifier:
        """Return a copy in which a fitted classifier gives the beliefs about a class variable.

        It takes the place of the present one.

        Parameters
        ----------
        name : str
            The class variable.
        estimator : classifier
            Fitted elsewhere, to labels of this class variable.
        columns : list, name, position or slice of positions, optional
            Its columns of X; all of them if None.
        calibrator : Calibrator, optional
            From `tuplet.models.rules.calibration.learn_calibrator`.
        """
        check_is_fitted(self, "space_")
        name = self.space_.names[self.space_.position(name)]
        source = fitted_source((name,), estimator, columns)
        source.check_labels(self.space_)
        source.check_columns(getattr(self, "feature_names_in_", None), self.n_features_in_)
        model = self.remove_classifier(name)
        model.sources_ = [*model.sources_, source]
        if calibrator is not None:
            model.calibrators_ = {**model.calibrators_, name: calibrator}
        return model

    def remove_classifier(self, name: str) -> RuleStackingClassifier:
        """Return a copy without the classifier of a class variable, whose beliefs are then its prior."""
        check_is_fitted(self, "space_")
        name = self.space_.names[self.space_.position(name)]
        model = copy(self)
        model.sources_ = [kept for source in self.sources_ if (kept := source.without(name)) is not None]
        model.calibrators_ = {key: each for key, each in self.calibrators_.items() if key != name}
        return model


def _bounded(graph: FactorGraph, counts: Sequence[Floats]) -> JointDistribution:
    """Return a graph of rules with the pseudo-row of labels with these counts (k_j,), in rows that need it.

    Beliefs have pseudo-rows, but rules may multiply small beliefs. Where a marginal is less than
    f_j(y_j) / (N + 1), the joint distribution gets another one; in all other rows it is what the rules say.
    A graph whose sums do not fit into memory remains as it is.
    """
    least = least_mass(counts)
    try:
        marginals = graph.marginals()
    except IntractableError:
        return graph
    enough = np.ones(len(graph), dtype=bool)
    for table, each in zip(marginals, counts, strict=True):
        enough &= has_bound(table, least * smoothed_frequencies(each), each)
    if enough.all():
        return graph
    weights = np.where(enough[:, None], [1.0, 0.0], [1.0 - least, least])
    with np.errstate(divide="ignore"):
        return Mixture(np.log(weights), (graph, independent(log_marginals(counts), len(graph))))

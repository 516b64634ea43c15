"""Sections about the parts of a model: graphs, rules, weights, chains, members of a mixture.

`report_sections` dispatches on the type of the model. A model outside of the package registers a function of
its own: `report_sections.register(MyClassifier, my_sections)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial, singledispatch
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Floats
from tuplet.models.bayesnet.classifier import BayesNetClassifier
from tuplet.models.chain import ChainClassifier
from tuplet.models.decision import DecisionClassifier
from tuplet.models.generative.classifier import GenerativeBayesNetClassifier
from tuplet.models.mixtures.mixture import MixtureClassifier
from tuplet.models.pipeline import JointPipeline
from tuplet.models.prior import PriorClassifier
from tuplet.models.probit.forest import ProbitForestClassifier
from tuplet.models.probit.linear import ProbitClassifier
from tuplet.models.random_field.classifier import RandomFieldClassifier
from tuplet.models.rules.stacking import RuleStackingClassifier
from tuplet.models.stacking.auto import AutoJointClassifier
from tuplet.models.stacking.classifier import JointStackingClassifier
from tuplet.models.trees.ensemble import TreeEnsembleClassifier
from tuplet.models.trees.mixture import TreeMixtureClassifier
from tuplet.models.trees.tree import TreeClassifier
from tuplet.space.classes import ClassSpace
from tuplet.space.words import clip, shorten
from tuplet.structure.parents import edges
from tuplet.surface.pages.page import Picture, PlainTable, Section
from tuplet.surface.plots.calibration import plot_calibration
from tuplet.surface.plots.graph import plot_class_feature_graph, plot_graph
from tuplet.surface.plots.path import LearningPath, plot_path
from tuplet.surface.report.pieces import combinations, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EDGES, _FIELD_EDGES, _CHAINS, _COMBINATIONS, _PAIRS = 25, 30, 20, 20, 25
"""Lines that a table lists: edges, edges of a random field, chains, combinations, correlations."""

_TREES, _FEATURES, _MEMBERS = 3, 16, 3
"""Trees and features that are drawn, and members of a mixture with sections of their own."""

_SLIGHT = 0.001
"""Weight below which a component is left out."""

_SETTING = 90
"""Letters of a setting that are shown."""


@singledispatch
def report_sections(model: Any) -> list[Section]:
    """Return the sections about the parts of a fitted model; none for types without a registered function.

    Examples
    --------
    >>> model = ChainClassifier().fit([[0], [1], [2], [3]], [[0, 1], [0, 1], [1, 0], [1, 1]])
    >>> [section.heading for section in report_sections(model)]
    ['Chains']
    """
    return []


def settings_table(model: Any) -> PlainTable:
    """Return all parameters, with their defaults where these were changed."""
    defaults = {name: each.default for name, each in signature(type(model).__init__).parameters.items()}
    lines = []
    for name, value in model.get_params(deep=False).items():
        text, usual = _setting_text(value), _setting_text(defaults.get(name))
        lines.append((name, text, usual if text != usual and name in defaults else ""))
    frame = pd.DataFrame(lines, columns=["parameter", "value", "changed from"]).set_index("parameter")
    return PlainTable(frame, "Settings")


def _setting_text(value: Any) -> str:
    if value is signature(_setting_text).empty:
        return "(none)"
    return clip(repr(value), _SETTING)


# -- graphs ------------------------------------------------------------------------------------------------


@report_sections.register
def _(model: BayesNetClassifier) -> list[Section]:
    proof = "No graph has a better score." if model.proven_ else _gap_text(model.gap_)
    text = f"{proof} Strengths are what the score of the child loses without that parent, over all rows."
    return [_graph_section(model.plot, model.edges(), text)]


@report_sections.register
def _(model: TreeClassifier) -> list[Section]:
    text = "" if model.gains_ is None else "Strengths are gains in held-out log-likelihood, over all rows."
    return [_graph_section(model.plot, model.edges(), text)]


@report_sections.register
def _(model: TreeEnsembleClassifier) -> list[Section]:
    names = model.space_.names
    counts = Counter(edge for tree in model.parents_ for edge in edges(tree)).most_common(_EDGES)
    lines = pd.DataFrame(
        [(names[parent], names[child], n) for (parent, child), n in counts],
        columns=["parent", "child", "trees"],
    )
    return [Section("Trees", tables=[_named_table(lines, "Most frequent edges")])] if len(lines) else []


@report_sections.register
def _(model: GenerativeBayesNetClassifier) -> list[Section]:
    n_classes, names = model.space_.n_variables, (*model.space_.names, *model.columns_.names)
    below = [n_classes + f for f, above in enumerate(model.bridge_parents_) if above]
    drawn = f"{_FEATURES} of {len(below)}" if len(below) > _FEATURES else "all"
    shown = [*range(n_classes), *below[:_FEATURES]]
    figure = picture(
        lambda: plot_class_feature_graph(model.graph_.parents, names, n_classes, shown=shown),
        f"Classes, and below them features that depend on one ({drawn})",
    )
    return [Section("Graph", "\n\n".join(model.summary().split("\n")), figures=[figure])]


@report_sections.register
def _(model: RandomFieldClassifier) -> list[Section]:
    space, lines = model.space_, []
    for (i, j), table in zip(model.edges_, model.pair_weights_, strict=True):
        pull = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        a, b = np.unravel_index(int(pull.argmax()), pull.shape)
        both = f"{space.names[i]}={space.categories[i][a]}, {space.names[j]}={space.categories[j][b]}"
        lines.append((space.names[i], space.names[j], pull.max(), both))
    frame = pd.DataFrame(lines, columns=["variable", "and", "pull", "drawn together"])
    shown = _strongest(frame, "pull", _FIELD_EDGES)
    many = f", the strongest {_FIELD_EDGES} of {len(frame)}" if len(frame) > _FIELD_EDGES else ""
    text = "The pull is how many nats a pair of labels gains over what its single labels would have."
    return [Section("Edges", text, [_named_table(shown, f"Edges{many}")])] if lines else []


def _graph_section(draw: Callable[[], Any], lines: pd.DataFrame, text: str) -> Section:
    """Return the picture of a graph and its edges (`parent`, `child`, ...), the strongest first."""
    n = len(lines)
    caption = "Edges" if n <= _EDGES else f"The {_EDGES} strongest of {n} edges"
    tables = [_named_table(lines.head(_EDGES), caption)] if n else []
    return Section("Graph", text, tables, [picture(draw, "Graph of the class variables")])


def _gap_text(gap: float) -> str:
    if not np.isfinite(gap):
        return "Whether other graphs have a better score is not known."
    return f"Other graphs have a score that is better by {gap:.3g} nats at most."


# -- chains, combinations, correlations, rules -------------------------------------------------------------


@report_sections.register
def _(model: ChainClassifier) -> list[Section]:
    names = shorten(model.space_.names)
    orders = [" → ".join(names[v] for v in order) for order in model.orders_[:_CHAINS]]
    lines = pd.DataFrame({"chain": range(1, len(orders) + 1), "order": orders})
    caption = "Orders of the chains"
    if len(orders) < len(model.orders_):
        caption = f"Orders of the first {_CHAINS} of {len(model.orders_)} chains"
    return [Section("Chains", tables=[_named_table(lines, caption)])] if len(names) > 1 else []


@report_sections.register
def _(model: PriorClassifier) -> list[Section]:
    if model.strategy != "joint" or model.space_.n_variables == 1:
        return []
    weights = np.exp(model.log_weights_ - model.log_weights_.max())
    shares = weights / weights.sum()
    table = _combination_table(model.space_, model.combinations_, shares, "share of training rows")
    text = (
        "Combinations that training rows do not show have a probability of"
        f" {model.unseen_mass_:.3g} together."
    )
    return [Section("Combinations", text, [table])]


def _combination_table(space: ClassSpace, codes: Codes, values: Floats, name: str) -> PlainTable:
    """Return the combinations of codes (a, m) with the largest of some values (a,)."""
    best = np.argsort(-values, kind="stable")[:_COMBINATIONS]
    lines = pd.DataFrame(
        {
            "rank": range(1, len(best) + 1),
            "combination": combinations(space, codes[best], 90),
            name: values[best],
        }
    )
    few = len(best) == len(values)
    return _named_table(lines, "Combinations" if few else f"{len(best)} of {len(values):,} combinations")


@report_sections.register
def _(model: ProbitClassifier | ProbitForestClassifier) -> list[Section]:
    if model.space_.n_variables < 2:
        return []
    i, j = np.triu_indices(model.space_.n_variables, k=1)
    values = model.draws_.correlations.reshape(-1, *model.correlation_.shape)[:, i, j]
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    names = np.array(model.space_.names, dtype=object)
    columns = {"variable": names[i], "and": names[j], "mean": model.correlation_[i, j]}
    table = pd.DataFrame({**columns, "from": low, "to": high})
    caption = "Correlations of the latent variables: means and 95 % credible intervals"
    many = f", the strongest {_PAIRS}" if len(table) > _PAIRS else ""
    shown = _named_table(_strongest(table, "mean", _PAIRS), caption + many)
    figure = picture(lambda: model.plot_correlations(arrange=True), "Correlations given x")
    return [Section("Correlations", tables=[shown], figures=[figure])]


@report_sections.register
def _(model: RuleStackingClassifier) -> list[Section]:
    gains = dict(zip(model.contributions_["rule"], model.contributions_["log_likelihood"], strict=True))
    lines = pd.DataFrame(
        {
            "rule": range(1, len(model.rules_) + 1),
            "sentence": [str(rule) for rule in model.rules_],
            "gain per row": [gains.get(rule.title, np.nan) for rule in model.rules_],
        }
    )
    text = (
        f"{model.learned_.summary}\n\nThe gain is the mean log-likelihood of a training row that is lost"
        " without a learned rule."
    )
    tables = [_named_table(lines, "Rules", digits=4)] if len(lines) else []
    return [Section("Rules", text, tables, _path_pictures(model, "How many rules it took"))]


# -- mixtures and wrappers ---------------------------------------------------------------------------------


@report_sections.register
def _(model: MixtureClassifier) -> list[Section]:
    return [_weights_section(model, "components")]


@report_sections.register
def _(model: TreeMixtureClassifier) -> list[Section]:
    heaviest = np.argsort(-model.weights_, kind="stable")[:_TREES]
    draw = partial(plot_graph, names=model.space_.names)
    figures = [
        picture(partial(draw, model.parents_[k]), f"Tree of weight {model.weights_[k]:.2f}") for k in heaviest
    ]
    return [_weights_section(model, "trees"), Section("Trees", figures=figures)]


def _weights_section(model: MixtureClassifier | TreeMixtureClassifier, components: str) -> Section:
    shown = model.weights_ >= _SLIGHT
    lines = pd.DataFrame({"number": 1 + np.flatnonzero(shown), "weight": model.weights_[shown]})
    rest = f"; {(~shown).sum()} below {_SLIGHT} are left out" if not shown.all() else ""
    table = _named_table(lines, f"Weights of the {components}{rest}")
    return Section("Mixture", tables=[table], figures=_path_pictures(model, f"How many {components} it took"))


@report_sections.register
def _(model: JointStackingClassifier) -> list[Section]:
    lines = pd.DataFrame(
        {
            "model": list(model.weights_),
            "held-out log-likelihood per row": [model.log_likelihoods_.get(name) for name in model.weights_],
            "weight": list(model.weights_.values()),
        }
    ).sort_values("weight", ascending=False, kind="stable")
    text = f"Held-out joint log-likelihood of the mixture: {model.log_likelihood_:.4f} per row."
    figures = _held_out_pictures(model.reliability_)
    tables = [_named_table(lines, "Models")] if len(lines) else []
    return [Section("Mixture", text, tables, figures), *_member_sections(model.models_, model.weights_)]


@report_sections.register
def _(model: AutoJointClassifier) -> list[Section]:
    text = model.summary_
    if np.isfinite(model.log_likelihood_):
        text += f"\n\nHeld-out joint log-likelihood of the mixture: {model.log_likelihood_:.4f} per row."
    parts = ", ".join(f"{name} ({weight:.2f})" for name, weight in model.weights_.items())
    text += f"\n\nThe models of the mixture and their weights: {parts}."
    lines = model.leaderboard_.rename(columns={"fit_seconds": "fit (s)", "predict_seconds": "predict (s)"})
    figures = _path_pictures(model, "The best model so far, by rows held out")
    figures += _held_out_pictures(model.reliability_)
    tables = [_named_table(lines, "Models that were tried")] if len(lines) else []
    return [Section("Mixture", text, tables, figures), *_member_sections(model.models_, model.weights_)]


def _held_out_pictures(reliability: pd.DataFrame | None) -> list[Picture]:
    """Return the reliability diagram of held-out rows, if there are bins to draw."""
    if reliability is None or not len(reliability):
        return []
    caption = "Reliability of the most probable combination of rows held out"
    return [picture(lambda: plot_calibration(reliability), caption)]


def _member_sections(members: Mapping[str, Any], weights: Mapping[str, float]) -> list[Section]:
    """Return the sections of the heaviest members of a mixture, under their names."""
    names = sorted((name for name in members if weights.get(name, 0.0) > 0), key=lambda name: -weights[name])
    sections = []
    for name in names[:_MEMBERS]:
        for part in report_sections(members[name]):
            heading = f"{clip(name, 60)}: {part.heading[:1].lower()}{part.heading[1:]}"
            sections.append(Section(heading, part.text, part.tables, part.figures))
    return sections


@report_sections.register
def _(model: DecisionClassifier) -> list[Section]:
    return _inside(model.estimator_)


@report_sections.register
def _(model: JointPipeline) -> list[Section]:
    return _inside(model[-1])


def _inside(inner: Any) -> list[Section]:
    about = Section(f"Inside: {type(inner).__name__}", tables=[settings_table(inner)])
    return [about, *report_sections(inner)]


# -- tables and pictures of several models -----------------------------------------------------------------


def _named_table(lines: pd.DataFrame, caption: str, digits: int = 3) -> PlainTable:
    """Return lines as a table whose first column names them, its texts short enough for a page."""
    shown = lines.rename(columns=lambda name: str(name).replace("_", " "))
    first = shown.columns[0]
    shown = shown.assign(**{first: [clip(str(value), 90) for value in shown[first]]})
    return PlainTable(shown.set_index(first), caption, digits)


def _strongest(frame: pd.DataFrame, column: str, n: int) -> pd.DataFrame:
    """Return the n lines of the largest absolute values in a column, the largest first."""
    sizes = np.nan_to_num(np.abs(frame[column].to_numpy(dtype=float)))
    return frame.iloc[np.argsort(-sizes, kind="stable")[:n]]


def _path_pictures(model: Any, caption: str) -> list[Picture]:
    """Return the picture of the model's path of learning, if there is one of two steps or more."""
    path = _learning_path(model)
    if path is None or len(path) < 2:
        return []
    return [picture(lambda: plot_path(path), caption)]


# -- held-out scores along the steps of learning -----------------------------------------------------------


def plot_learning_path(model: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw the path of learning of a fitted model; see `tuplet.surface.plots.plot_path`."""
    path = _learning_path(model)
    if path is None:
        raise InputError(f"plot_path: {type(model).__name__} has no path of learning to draw.")
    return plot_path(path, title=title, ax=ax)


@singledispatch
def _learning_path(model: Any) -> LearningPath | None:
    """Return the held-out scores of the steps of learning; None if the model was learned in one step."""
    return None


@_learning_path.register
def _(model: MixtureClassifier) -> LearningPath | None:
    return _growth(model, "components")


@_learning_path.register
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


@_learning_path.register
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


@_learning_path.register
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

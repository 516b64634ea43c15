"""What is tried on a table that nothing is known about: families of models times local models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, final

import numpy as np
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tuplet.local.logistic import default_estimator
from tuplet.models.bayesnet.classifier import BayesNetClassifier
from tuplet.models.chain import ChainClassifier
from tuplet.models.generative.classifier import GenerativeBayesNetClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.models.neighbors import NeighborClassifier
from tuplet.models.powerset import PowersetClassifier
from tuplet.models.prior import PriorClassifier
from tuplet.models.probit.forest import ProbitForestClassifier
from tuplet.models.rules.stacking import RuleStackingClassifier
from tuplet.models.shared_forest import SharedForestClassifier
from tuplet.models.stacking.held_out import Rows
from tuplet.models.trees.mixture import TreeMixtureClassifier
from tuplet.models.trees.tree import TreeClassifier
from tuplet.space.features.estimators import seeded
from tuplet.space.features.scaling import LimitedScaler

_MANY_COLUMNS = 2000
"""Features beyond which discretised networks and mixtures of trees are not tried."""

_MANY_COMBINATIONS = 400
"""Distinct combinations of labels beyond which forests of combinations need too much memory."""

_MANY_LATENT = 20_000
"""Rows times labels beyond which a sampler takes many minutes."""

_FOREST_CELLS = 500_000
"""Rows times combinations for which a forest with leaves of one row takes a gigabyte or two."""

_MANY_ROWS_PER_COLUMN = 20
"""Rows for each feature beyond which a logistic regression needs little regularisation."""

_MANY_CELLS = 100_000_000
"""Rows times features times labels beyond which a shared tree looks at few features for a split."""

_QUICK_CELLS = 4_000_000
"""Rows times features times labels that a logistic chain learns from in well under a second."""

_QUICK_TIMES = 5.0
"""How many times as many it may be if there is time."""


@final
@dataclass(frozen=True)
class Candidate:
    """A model under a name.

    Attributes
    ----------
    richer : tuple of (name, model)
        Others of its kind that are tried if it does well.
    light : bool
        Whether a fit takes a moment only.
    """

    name: str
    model: Any
    richer: tuple[tuple[str, Any], ...] = ()
    light: bool = False

    def seeded(self, rng: np.random.Generator) -> Candidate:
        """Return the candidate with seeds for all that is random in it."""
        richer = tuple((name, seeded(model, int(rng.integers(2**31 - 1)))) for name, model in self.richer)
        return Candidate(self.name, seeded(self.model, int(rng.integers(2**31 - 1))), richer, self.light)


def quick_model(rows: Rows, seconds: float) -> tuple[Any, Rows]:
    """Return a model for which there is always time, and as many of the rows as so many seconds allow."""
    every = -(-rows.n_cells // int(_QUICK_CELLS * min(max(1.0, seconds / 2), _QUICK_TIMES)))
    used = np.flatnonzero(np.ones(len(rows)) if rows.weights is None else rows.weights)
    some = used[::every]
    strength = 1.0 if len(rows) > _MANY_ROWS_PER_COLUMN * rows.X.shape[1] else 0.1
    return ChainClassifier(_logistic(rows, strength)), rows.take(
        some, None if rows.weights is None else rows.weights[some]
    )


def is_light(model: Any, rows: Rows) -> bool:
    """Whether a fit is certain to be short, so that it runs in the calling process.

    A process can be stopped, but may take seconds to start on a loaded machine. Models with the default local
    model are light on small tables; the cost of other classifiers is unknown.
    """
    if rows.n_cells > _QUICK_CELLS:
        return False
    if isinstance(model, NeighborClassifier):
        return len(rows) ** 2 * rows.n_inputs <= _QUICK_CELLS
    if isinstance(model, PowersetClassifier):
        return model.estimator is None and len(rows) * rows.n_inputs * rows.n_combinations <= _QUICK_CELLS
    if isinstance(model, ChainClassifier):
        return model.estimator is None and model.n_chains == 1
    if isinstance(model, IndependentClassifier):
        return model.estimator is None
    return isinstance(model, PriorClassifier)


def default_candidates(rows: Rows, rules: Sequence[Any] = ()) -> list[Candidate]:
    """What is worth a try for these rows, the cheap ones first; with rules of experts, if there are any."""
    return [
        *_shared(rows),  # first: with many class variables there may be time for nothing else
        *_linear(rows),
        *rule_candidates(rows, rules),
        *_kernels(rows),
        *_forests(rows),
        *_networks(rows),
        *_probit(rows),
    ]


# -- local models ------------------------------------------------------------------------------------------


def _logistic(rows: Rows, C: float) -> Any:
    return default_estimator(sparse.issparse(rows.X)).set_params(ridgelogistic__C=C)


def _kernel(rows: Rows, C: float, scale: float) -> Any:
    """A kernel machine with probabilities of its own: logistic regression on landmarks of a Gaussian kernel.

    With as many landmarks as rows it is kernel logistic regression: the functions of a support vector
    classifier, fitted by likelihood. Support vector machines would need their scores calibrated on held-out
    rows, which combinations of labels that occur once do not have.
    """
    return make_pipeline(
        SimpleImputer(keep_empty_features=True),
        LimitedScaler(with_mean=not sparse.issparse(rows.X)),
        Nystroem(gamma=scale / rows.X.shape[1], n_components=min(600, max(2, len(rows) // 2))),
        LogisticRegression(C=C, max_iter=1000),
    )


def _extra_trees() -> Any:
    """Extra-trees that look at half of the columns: at few, they would hardly see the labels before."""
    return ExtraTreesClassifier(200, bootstrap=True, max_features=0.5)


def _boosting() -> Any:
    return HistGradientBoostingClassifier(learning_rate=0.05, max_leaf_nodes=15, min_samples_leaf=10)


# -- families ----------------------------------------------------------------------------------------------


def _chains(estimator: Any, n_chains: int = 1) -> Any:
    return ChainClassifier(estimator, n_chains=n_chains, order="random")


def _linear(rows: Rows) -> Iterator[Candidate]:
    light = rows.n_cells <= _QUICK_CELLS
    more = ("10 chains of weaker logistic", _chains(_logistic(rows, 0.3), 10))
    yield Candidate("independent logistic", IndependentClassifier(_logistic(rows, 0.1)), light=light)
    yield Candidate(
        "powerset of logistic",
        PowersetClassifier(_logistic(rows, 0.1)),
        (("powerset of weaker logistic", PowersetClassifier(_logistic(rows, 1.0))),),
        light=light and len(rows) * rows.n_inputs * rows.n_combinations <= _QUICK_CELLS,
    )
    yield Candidate("chain of logistic", _chains(_logistic(rows, 0.05)), light=light)
    yield Candidate("chain of weaker logistic", _chains(_logistic(rows, 1.0)), light=light)
    yield Candidate("tree of logistic", TreeClassifier())
    yield Candidate("5 chains of logistic", _chains(_logistic(rows, 0.05), 5), (more,))


def _shared(rows: Rows) -> Iterator[Candidate]:
    """Yield forests for all class variables together: what there is time for where they are many."""
    features: Any = 0.5 if rows.n_cells <= _MANY_CELLS else "sqrt"

    def trees(n: int, leaf: int) -> Any:
        return ExtraTreesClassifier(n, bootstrap=True, max_features=features, min_samples_leaf=leaf)

    forest = RandomForestClassifier(200, max_features=0.3, min_samples_leaf=3)
    yield Candidate(
        "shared extra-trees",
        SharedForestClassifier(trees(100, 2)),
        (
            ("more shared extra-trees", SharedForestClassifier(trees(400, 2))),
            ("shared forest", SharedForestClassifier(forest)),
        ),
    )
    yield Candidate(
        "deep shared extra-trees",
        SharedForestClassifier(trees(100, 1)),
        (("more deep shared extra-trees", SharedForestClassifier(trees(400, 1))),),
    )


def _kernels(rows: Rows) -> Iterator[Candidate]:
    yield Candidate(
        "powerset of kernels",
        PowersetClassifier(_kernel(rows, 10.0, 1.0)),
        (
            ("powerset of wide kernels", PowersetClassifier(_kernel(rows, 30.0, 0.3))),
            ("powerset of narrow kernels", PowersetClassifier(_kernel(rows, 10.0, 2.0))),
        ),
    )
    yield Candidate(
        "chain of kernels",
        _chains(_kernel(rows, 10.0, 0.5)),
        (("4 chains of kernels", _chains(_kernel(rows, 10.0, 0.5), 4)),),
    )


def _forests(rows: Rows) -> Iterator[Candidate]:
    combinations = rows.n_combinations
    if combinations <= _MANY_COMBINATIONS:
        # Every node of such a tree holds a number for every combination.
        leaf = 1 + int(len(rows) * combinations // _FOREST_CELLS)
        more = PowersetClassifier(ExtraTreesClassifier(400, max_features=0.3, min_samples_leaf=2 * leaf))
        yield Candidate(
            "powerset of extra-trees",
            PowersetClassifier(ExtraTreesClassifier(200, min_samples_leaf=leaf)),
            (("powerset of more extra-trees", more),),
        )
        forest = RandomForestClassifier(200, min_samples_leaf=leaf)
        yield Candidate("powerset of forests", PowersetClassifier(forest))
    yield Candidate(
        "chain of extra-trees",
        _chains(_extra_trees()),
        (
            ("4 chains of extra-trees", _chains(_extra_trees(), 4)),
            # Forests take three times as long and seldom say anything else.
            ("chain of forests", _chains(RandomForestClassifier(200, max_features=0.3))),
            ("12 chains of extra-trees", _chains(_extra_trees(), 12)),
        ),
    )
    # Without bags trees remember every row: better where rows have near twins.
    whole = ExtraTreesClassifier(200, max_features=0.5)
    yield Candidate("independent extra-trees", IndependentClassifier(whole))
    yield Candidate(
        "chain of unbagged extra-trees",
        _chains(whole),
        (("4 chains of unbagged extra-trees", _chains(whole, 4)),),
    )
    yield Candidate(
        "chain of boosting", _chains(_boosting()), (("4 chains of boosting", _chains(_boosting(), 4)),)
    )


def rule_candidates(rows: Rows, rules: Sequence[Any]) -> Iterator[Candidate]:
    """Yield models that obey rules of experts; none if there are none."""
    if not rules:
        return
    for name, base in (("logistic", _logistic(rows, 0.1)), ("extra-trees", _extra_trees())):
        yield Candidate(f"rules over {name}", RuleStackingClassifier(base, list(rules), progress=False))


def _probit(rows: Rows) -> Iterator[Candidate]:
    """Yield sums of Bayesian trees: labels of two kinds, few rows, and the package that grows them."""
    binary = set(rows.space.cards) == {2}
    if binary and len(rows) * len(rows.space.cards) <= _MANY_LATENT and find_spec("stochtree") is not None:
        yield Candidate("probit of trees", ProbitForestClassifier(n_chains=2, progress=False))


def _networks(rows: Rows) -> Iterator[Candidate]:
    yield Candidate("Bayesian network", BayesNetClassifier(_logistic(rows, 0.1)))
    yield Candidate("neighbours", NeighborClassifier())
    if rows.X.shape[1] <= _MANY_COLUMNS:
        yield Candidate("mixture of trees", TreeMixtureClassifier())
        if not sparse.issparse(rows.X):
            yield Candidate("generative network", GenerativeBayesNetClassifier())

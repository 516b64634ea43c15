"""Mixtures of any models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone

from tuplet.core.parameters import Having, Whole, declare
from tuplet.core.progress import Show
from tuplet.core.typing import Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.local.logistic import default_estimator
from tuplet.local.prepared import with_chosen_penalty
from tuplet.models.chain import ChainClassifier
from tuplet.models.independent import IndependentClassifier
from tuplet.models.mixtures.base import GrownMixture, MakeSource, MapInference, Sizes, TrainingRows
from tuplet.space.classes import ClassSpace
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.estimators import seeded
from tuplet.space.features.inputs import Features


@final
class MixtureClassifier(GrownMixture):
    """A mixture of any models: p(y | x) = sum_k lambda_k p_k(y | x).

    Components come one at a time, each learnt from the rows that the mixture so far explains badly: row n
    weighs 1 - p(y_n | x_n). After each, EM fits all parameters. The mixture stops growing when two more
    components did not help to explain rows held out; then the parameters of the best one are fitted to all
    rows. With chains it is what the paper on trees proposes as MCC, with Bayesian networks a mixture of
    networks; `TreeMixtureClassifier` is the one for trees.

    Parameters
    ----------
    component : JointClassifier, optional
        What to mix: any model whose fit takes weights, by default `ChainClassifier(order="random")`. Each
        component gets a seed of its own.
    n_components : int or "auto"
        Number of components; "auto" stops by validation on a quarter of the rows.
    max_components : int
        Limit for "auto".
    tol : float
        Relative change of the penalised log-likelihood at which EM ends.
    max_iter : int
        Limit of iterations of EM.
    map_inference : {"exact", "annealing"}
        How the most probable combination is found: by branch and bound, with a proof or the statement that
        there is none, or by 150 random flips as in the paper, without one.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`. None leaves it to each model inside.
    random_state : int, Generator or None
        For the seeds of components, and annealing.
    progress : bool or "auto"
        A line on standard error; "auto" shows it in terminals.

    Attributes
    ----------
    components_ : tuple of ModelComponent
        Their attribute `model` is the fitted model.
    weights_ : array, shape (K,)
        Weights lambda_k of the components.
    responsibilities_ : array, shape (n, K)
        Probability of each component given x and y of the training rows, without those of weight zero.
    log_likelihood_path_ : tuple of float
        Penalised log-likelihood at the start of the last EM and after each of its iterations; never falls.
    growth_paths_ : tuple of tuples of float
        The same for every size that was tried on the way.
    validation_path_ : tuple of float
        Mean log-likelihood of the rows held out for every size that was tried; empty if the number is given.
    n_iter_ : int
        Iterations of the last EM.
    converged_ : bool
        Whether the last EM ended by its tolerance.

    Notes
    -----
    EM weighs the rows by the responsibilities as they are. A component whose new fit explains its rows worse
    keeps the old one; so the log-likelihood never falls, whatever the components.

    With more than 32,768 rows the mixture grows on a sample of about that size; its components and weights
    are then fitted to all rows.

    An interrupt (Ctrl-C) ends the growth with a warning; the components so far are kept. One that comes while
    a component ends its own work early, as `BayesNetClassifier` does, ends that alone.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet import ChainClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> rain = X[:, 0] + rng.normal(size=100) > 0
    >>> y = np.column_stack([rain, rain ^ (rng.random(100) < 0.1)])
    >>> model = MixtureClassifier(ChainClassifier(order="random"), n_components=2, random_state=0).fit(X, y)
    >>> model.weights_.shape, model.responsibilities_.shape
    ((2,), (100, 2))
    """

    _parameters = GrownMixture._parameters | declare(
        component=(Having("a model of Tuplet, such as ChainClassifier(...)", "_fit_codes"), None),
        n_components=("auto", Whole(at_least=1)),
        max_components=Whole(at_least=1),
    )

    _feature_form = "raw"  # components do, each in its own way

    _keeps_frames = True

    def __init__(
        self,
        component: Any = None,
        *,
        n_components: int | Literal["auto"] = "auto",
        max_components: int = 20,
        tol: float = 1e-4,
        max_iter: int = 50,
        map_inference: MapInference = "exact",
        columns: ColumnChoices = None,
        random_state: Seed = None,
        progress: Show = "auto",
    ) -> None:
        self.component = component
        self.n_components = n_components
        self.max_components = max_components
        self.tol = tol
        self.max_iter = max_iter
        self.map_inference = map_inference
        self.columns = columns
        self.random_state = random_state
        self.progress = progress

    @property
    def _sizes(self) -> Sizes:
        return Sizes(self.n_components, self.max_components)

    def _model(self) -> Any:
        return ChainClassifier(order="random") if self.component is None else self.component

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return list(self._model()._estimators(names))

    def _source(self, rng: np.random.Generator) -> MakeSource:
        def make(rows: TrainingRows, learnt: Floats | None) -> ModelSource:
            return ModelSource(_with_one_penalty(self._model(), rows, self.space_), rows, self.space_, rng)

        return make


def _with_one_penalty(model: Any, rows: TrainingRows, space: ClassSpace) -> Any:
    """Return a model whose default estimators have the C that suits all rows.

    A choice in every step would take most of the time. It would also depend on shares of rows that, unlike
    weights which count, cannot be divided among folds. Models that encode a frame themselves still choose.
    """
    X, codes, weight, groups = rows
    is_usual = isinstance(model, (ChainClassifier, IndependentClassifier)) and model.estimator is None
    if not is_usual or isinstance(X, pd.DataFrame):
        return model
    usual = default_estimator(sparse=sparse.issparse(X))
    estimator = with_chosen_penalty(usual, X, codes, space.cards, weight, groups)
    return clone(model).set_params(estimator=estimator)


@final
@dataclass(frozen=True)
class ModelComponent:
    """A fitted model as a component; see `Component`."""

    structure: Any
    model: Any
    own: Floats | None

    @property
    def penalty(self) -> float:
        """See `Component.penalty`: that of any model is unknown."""
        return 0.0

    @property
    def log_likelihood(self) -> Floats:
        """Log-probability (n,) of the labels of each training row."""
        assert self.own is not None
        return self.own

    def without_rows(self) -> ModelComponent:
        """Return what prediction needs."""
        return replace(self, own=None)

    def joint(self, X: Features) -> JointDistribution:
        """Joint distribution of rows X."""
        joint: JointDistribution = self.model._joint_of(X)
        return joint


@final
class ModelSource:
    """Any `JointClassifier` with different seeds; see `ComponentSource`. A structure is an unfitted model.

    What a model draws by its `random_state`, such as the order of a chain, is its structure: it stays the
    same whenever the same seed is fitted again. What it learns, it learns anew.

    Parameters
    ----------
    model : JointClassifier
        Unfitted.
    rows : TrainingRows
    space : ClassSpace
    rng : Generator
    """

    def __init__(self, model: Any, rows: TrainingRows, space: ClassSpace, rng: np.random.Generator) -> None:
        self.model, self.rows, self.space, self.rng = model, rows, space, rng

    def propose(self, weight: Floats, seen: Sequence[Any]) -> Any:
        """See `ComponentSource.propose`: models of which nothing is random differ by the weights alone."""
        model = clone(self.model)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=None)
        return seeded(model, int(self.rng.integers(2**31 - 1)))

    def fit(self, structure: Any, weight: Floats, start: ModelComponent | None = None) -> ModelComponent:
        """See `ComponentSource.fit`: a fit that is no better than the start is dropped."""
        X, codes, _, groups = self.rows
        model = clone(structure)._fit_codes(X, self.space, codes, weight, groups)
        own = model._joint_of(X).log_prob(codes)
        if start is not None and weight @ own < weight @ start.log_likelihood:
            return start
        return ModelComponent(structure, model, own)

"""The base class of mixtures that grow: one component at a time, with EM; modes exactly or by annealing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, final, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.core.limits import row_blocks
from tuplet.core.parameters import Number, declare
from tuplet.core.progress import Show
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.joint.base import JointDistribution, Ranking
from tuplet.joint.mixture import Mixture
from tuplet.local.cross_fitting import inner_folds
from tuplet.local.row_samples import SAMPLE_SIZE, sample_rows
from tuplet.models.base import JointClassifier
from tuplet.models.mixtures.em import EMSettings, MixtureState
from tuplet.models.mixtures.growth import ComponentSource, Growth, grow, refit_all
from tuplet.models.prior import bounded_joint
from tuplet.space.features.inputs import Features, n_rows, take_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_FOLDS = 4
"""Folds of the rows, of which one is held out to decide when growth stops; smaller ones give noisy scores."""

_LABEL_REFITS = 16_000
"""Fits of the model of one class variable after which "auto" adds no component: with 160 class variables 100
fits of components, which give about three. Twenty components of ten variables stay below it."""

_CELLS = 16
"""Cells of the tables of one class variable and row, for the size of blocks."""


class TrainingRows(NamedTuple):
    """Rows that components are fitted to; `weights` (n,) and `groups` (n,) are None where rows have none."""

    X: Features
    codes: Codes
    weights: Floats | None
    groups: Codes | None

    @property
    def whole(self) -> Floats:
        """The weights (n,) of the rows."""
        return np.ones(len(self.codes)) if self.weights is None else self.weights

    def sample(self, size: int) -> TrainingRows:
        """Return a sample of about so many rows; itself if there are no more."""
        if len(self.codes) <= size:
            return self
        rows, weights = sample_rows(self.X, self.codes, self.weights, size)
        groups = None if self.groups is None else self.groups[rows]
        return TrainingRows(take_rows(self.X, rows), self.codes[rows], weights, groups)

    def held_out(self) -> Floats:
        """Weights (n,) of the rows that validate; all zero where there are too few rows for that."""
        held = np.zeros(len(self.codes))
        for fold in inner_folds(self.X, self.codes, self.weights, _N_FOLDS, groups=self.groups)[:1]:
            held[fold.test] = fold.test_weight
        return held

    def shares(self, state: MixtureState) -> Floats:
        """Responsibilities (n, K) of the components of a mixture that was fitted to other rows."""
        n, m = self.codes.shape
        terms = np.empty((n, len(state.components)))
        for rows in row_blocks(n, _CELLS * m):
            X = take_rows(self.X, np.arange(n)[rows])
            for k, component in enumerate(state.components):
                terms[rows, k] = component.joint(X).log_prob(self.codes[rows])
        return softmax(terms + state.log_weights, axis=1)


MakeSource = Callable[[TrainingRows, Floats | None], ComponentSource]
"""(rows, shares (n,) of them to learn from or None for all) -> where components come from."""

MapInference = Literal["exact", "annealing"]

_HOTTEST, _COLDEST = 1.0, 0.05
"""Temperatures of the annealing, in nats: it cools down geometrically from one to the other."""


class Sizes(NamedTuple):
    """How many components are wanted."""

    wanted: int | Literal["auto"]
    limit: int  # for "auto"


class GrownMixture(JointClassifier):
    """A mixture that grows; subclasses define the source of the components and their number.

    Attributes, parameters and notes are those of `MixtureClassifier`.
    """

    _parameters = declare(
        "columns max_iter random_state progress", tol=Number(at_least=0), map_inference=get_args(MapInference)
    )

    tol: float
    max_iter: int
    map_inference: MapInference
    random_state: Seed
    progress: Show

    @property
    @abstractmethod
    def _sizes(self) -> Sizes:
        """How many components are wanted."""

    @abstractmethod
    def _source(self, rng: np.random.Generator) -> MakeSource:
        """Return what makes sources of components."""

    def _joints(self, X: Features) -> Sequence[JointDistribution]:
        """Joint distributions of rows X under each component."""
        return [component.joint(X) for component in self.components_]

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        rng = np.random.default_rng(self.random_state)
        self._seed = int(rng.integers(2**31 - 1))
        rows = TrainingRows(X, codes, sample_weight, self._groups)
        sample = rows.sample(SAMPLE_SIZE)
        limit = _LABEL_REFITS / self.space_.n_variables if self._sizes.wanted == "auto" else np.inf
        source, em = self._source(rng), EMSettings(self.tol, self.max_iter, limit)
        growth = self._grow(sample, source, em)
        state, info = growth.state, growth.infos[-1]
        self.responsibilities_ = state.responsibilities() if sample is rows else rows.shares(state)
        if sample is not rows or self._sizes.wanted == "auto":
            state, info = refit_all(
                lambda: source(rows, None), growth, self.responsibilities_, rows.whole, em
            )
        if state is not growth.state:
            self.responsibilities_ = state.responsibilities()
        self._keep(growth, state)
        self.log_likelihood_path_, self.n_iter_, self.converged_ = info

    def _grow(self, rows: TrainingRows, source: MakeSource, em: EMSettings) -> Growth:
        wanted, limit = self._sizes
        if wanted != "auto":
            return grow(source(rows, None), rows.whole, None, wanted, em, self.progress)
        held = rows.held_out()
        n, judge = (limit, held) if held.any() else (1, None)
        learnt = 1 - held / rows.whole
        return grow(source(rows, learnt), rows.whole - held, judge, n, em, self.progress)

    def _keep(self, growth: Growth, state: MixtureState) -> None:
        self.weights_ = np.exp(state.log_weights)
        self.components_: tuple[Any, ...] = tuple(each.without_rows() for each in state.components)
        self.growth_paths_ = tuple(info.path for info in growth.infos)
        self.validation_path_ = growth.validation

    # -- prediction ---------------------------------------------------------------------------------------

    @property
    def _is_bounded(self) -> bool:
        """Whether the components have the pseudo-row of all training rows, not of those that are theirs."""
        return False

    def _predict_joint(self, X: Features) -> JointDistribution:
        joint = mixture_of(self._joints(X), self.weights_, n_rows(X))
        if len(self.components_) > 1 and not self._is_bounded:
            joint = bounded_joint(joint, self.label_counts_)
        if isinstance(joint, Mixture) and self.map_inference == "annealing":
            return Annealed(joint, seed=self._seed)
        return joint

    # -- reading the model --------------------------------------------------------------------------------

    def plot_path(self, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the log-likelihood of rows held out for every number of components that was tried."""
        check_is_fitted(self, "space_")
        if not self.validation_path_:
            raise InputError("plot_path: the number of components was given, so there is no path to draw.")
        return delegate("plot_learning_path", self, title=title, ax=ax)


def mixture_of(joints: Sequence[JointDistribution], weights: Floats, n: int) -> JointDistribution:
    """Mix distributions of n rows with the same weights (K,) for all; a single one is itself."""
    if len(joints) == 1:
        return joints[0]
    return Mixture(np.repeat(np.log(weights)[None], n, axis=0), tuple(joints))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Annealed(JointDistribution):
    """A mixture whose mode is looked for by single flips from the best mode of a component, without proof.

    Everything else, also rankings of more than one outcome, is answered by the mixture itself.

    Parameters
    ----------
    mixture : Mixture
    n_flips : int
        Proposals for each row: a random variable gets another random value.
    seed : int
    """

    mixture: Mixture
    n_flips: int = 150
    seed: int = 0

    @property
    def cards(self) -> tuple[int, ...]:  # type: ignore[override]
        """Cardinalities of the class variables."""
        return self.mixture.cards

    def __len__(self) -> int:
        return len(self.mixture)

    @property
    def tolerance(self) -> float:
        """See `JointDistribution.tolerance`."""
        return self.mixture.tolerance

    @property
    def scores_exactly(self) -> bool:
        """See `JointDistribution.scores_exactly`."""
        return self.mixture.scores_exactly

    def _take(self, rows: npt.NDArray[np.intp]) -> Self:
        return type(self)(self.mixture._take(rows), self.n_flips, self.seed)

    def _log_prob(self, codes: Codes) -> Floats:
        return self.mixture._log_prob(codes)

    def _bound(self, codes: Codes) -> Floats:
        return self.mixture._bound(codes)

    def _flat_marginals(self) -> Floats:
        return self.mixture._flat_marginals()

    def _sample(self, size: int, rng: np.random.Generator) -> Codes:
        return self.mixture._sample(size, rng)

    def _condition(self, codes: Codes) -> tuple[JointDistribution, Floats]:
        return self.mixture._condition(codes)

    def _marginal(self, variables: tuple[int, ...]) -> JointDistribution:
        return self.mixture._marginal(variables)

    def _log_table(self) -> Floats:
        return self.mixture._log_table()

    def _count_marginals(self) -> Floats:
        return self.mixture._count_marginals()

    def _top_k(self, k: int) -> Ranking:
        if k > 1:
            return self.mixture._top_k(k)
        codes, log_prob = self._anneal()
        return Ranking(codes[:, None], log_prob[:, None], np.zeros(len(self), dtype=bool))

    def _anneal(self) -> tuple[Codes, Floats]:
        """Return the best outcome (n, m) met by the chain of each row, and its log-probability (n,)."""
        rng, rows = np.random.default_rng(self.seed), np.arange(len(self))
        modes = np.stack([component.mode().codes for component in self.mixture.components])
        scores = self._log_prob(modes)
        first = scores.argmax(axis=0)
        best, best_score = modes[first, rows], scores[first, rows]
        now, score = best.copy(), best_score.copy()
        free = np.flatnonzero(np.array(self.cards) > 1)
        cards = np.array(self.cards)
        for temperature in np.geomspace(_HOTTEST, _COLDEST, self.n_flips) if len(free) else ():
            flipped, variable = now.copy(), rng.choice(free, len(now))
            step = rng.integers(1, cards[variable])
            flipped[rows, variable] = (now[rows, variable] + step) % cards[variable]
            trial = self._log_prob(flipped[None])[0]
            with np.errstate(over="ignore", invalid="ignore"):
                accepted = rng.random(len(now)) < np.exp((trial - score) / temperature)
            now[accepted], score[accepted] = flipped[accepted], trial[accepted]
            better = score > best_score
            best[better], best_score[better] = now[better], score[better]
        return best, best_score

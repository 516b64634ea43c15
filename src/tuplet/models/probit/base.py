"""The base class of multivariate probit models: chains in, a `Probit` joint out, tables of draws."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import ndtri
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import (
    ConvergenceWarning,
    InputError,
    IntractableError,
    TupletWarning,
    warn_outside,
)
from tuplet.core.limits import HELD_CELLS
from tuplet.core.parameters import Number, Whole, declare
from tuplet.core.progress import Show
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.joint.probit import Probit
from tuplet.local.logistic import fit_scaler
from tuplet.local.smoothing import smoothed_frequencies
from tuplet.models.base import JointClassifier
from tuplet.models.prior import least_mass
from tuplet.models.probit.sampling.chains import ChainDraws, ChainPlan, Run, run_chains
from tuplet.models.probit.sampling.correlation import Correlation, Prior, correlation_step
from tuplet.models.probit.sampling.draws import Draws, MeansAt
from tuplet.models.probit.sampling.means import MeanSettings
from tuplet.models.probit.sampling.sampler import label_signs
from tuplet.models.probit.sampling.summary import combination_table, convergence_of, correlation_table
from tuplet.space.classes import ClassSpace
from tuplet.space.features.inputs import Features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST = 10
"""Draws of a chain that an interrupted fit keeps."""

_FREE = {"n_draws", "random_state", "n_jobs", "progress", "warm_start"}
"""Settings that may change when chains are continued."""

_MOST_ROWS = 10_000_000
"""Rows that weights may amount to."""

_MOST_LABELS = 60
"""Class variables up to which every correlation is drawn."""

_LARGEST = 1e100
"""Size of a feature; squares of larger ones, which variances are made of, may overflow."""


class ProbitModel(JointClassifier):
    """Binary labels: whether the components of a normal vector are positive.

    A subclass defines `_mean_settings`; its `_predictors` may transform the features.
    """

    _judged_by_few_rows = False  # its draws are of the posterior, and take long

    _parameters = declare(
        "columns n_chains random_state n_jobs progress",
        n_burn=Whole(at_least=0),
        n_draws=Whole(at_least=1),
        thin=Whole(at_least=1),
        correlation=get_args(Correlation),
        prior=get_args(Prior),
        eta=Number(above=0),
        n_factors=Whole(at_least=1),
        warm_start=bool,
    )

    n_burn: int
    n_draws: int
    thin: int
    n_chains: int
    correlation: Correlation
    prior: Prior
    eta: float
    n_factors: int
    random_state: Seed
    n_jobs: int | None
    progress: Show
    warm_start: bool
    draws_: Draws
    correlation_: Floats

    @abstractmethod
    def _mean_settings(self) -> MeanSettings:
        """Return the settings of the mean functions."""

    def _learn_predictors(self, X: Floats) -> None:
        """Learn from all rows what `_predictors` needs."""

    def _predictors(self, X: Floats) -> Floats:
        return X

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        name = type(self).__name__
        _require_binary(self.space_, name)
        _require_few(self.space_.n_variables, self.correlation, name)
        X = _dense(X)
        rows = _rows_by_weight(X, codes, sample_weight, name)
        X, codes = X[rows], codes[rows]
        digest = _digest_of(X, codes)
        if self._goes_on:
            self._require_unchanged(digest)
            self._continue(self._plan(X, codes), digest)
        else:
            self.__dict__.pop("ends_", None)  # a fit that fails from here on cannot be continued
            self._learn_predictors(X)
            plan = self._plan(X, codes, reset=True)
            _warn_of_odd_labels(codes, self.space_, name)
            self._begin(plan, digest)
        self.correlation_ = self.draws_.flat_correlations().mean(axis=0)
        self._judge()

    @property
    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "ends_")

    def _plan(self, X: Floats, codes: Codes, *, reset: bool = False) -> ChainPlan:
        rule = correlation_step(self.correlation, prior=self.prior, eta=self.eta, n_factors=self.n_factors)
        return ChainPlan.make(
            self._scaled(X, reset=reset),
            label_signs(codes),
            self._mean_settings(),
            rule,
            int(self.n_burn),
            int(self.n_draws),
            int(self.thin),
        )

    def _scaled(self, X: Floats, *, reset: bool = False) -> Floats:
        """Return the predictors of rows X on the scale of the training rows, which `reset` learns."""
        made = self._predictors(X)
        if reset:
            self.scaler_ = fit_scaler(_require_moderate(made, type(self).__name__))
        return np.ascontiguousarray(self.scaler_.transform(made))

    def _begin(self, plan: ChainPlan, digest: str) -> None:
        rng = np.random.default_rng(self.random_state)
        self.seed_ = int(rng.integers(2**31))
        chains = self._usable(self._run(plan, rng.spawn(self.n_chains), [None] * self.n_chains), 0)
        self.draws_ = Draws.collect(chains, plan.offsets)
        self._remember(chains, digest)

    def _require_unchanged(self, digest: str) -> None:
        """Raise `InputError` unless the chains can be continued with these rows and settings."""
        name = type(self).__name__
        if digest != self.digest_:
            raise InputError(
                f"{name}: warm_start continues the chains of the rows that they began with,"
                " but X, y or sample_weight have changed; set warm_start=False."
            )
        for setting, value in self._chain_settings().items():
            if value != self.settings_[setting]:
                raise InputError(
                    f"{name}: warm_start continues the chains as they began, but {setting} has changed from"
                    f" {self.settings_[setting]!r} to {value!r}; set it back, or set warm_start=False."
                )
        before = self.draws_.correlations.shape[1]
        if self.n_draws < before:
            raise InputError(
                f"{name}: n_draws={self.n_draws} is less than the {before} draws that there"
                " are; with warm_start they can only become more."
            )

    def _chain_settings(self) -> dict[str, Any]:
        """Return the settings that chains rest on; a transformer as text, as its own settings may change."""
        settings = {name: v for name, v in self.get_params(deep=False).items() if name not in _FREE}
        return {name: repr(v) if hasattr(v, "get_params") else v for name, v in settings.items()}

    def _continue(self, plan: ChainPlan, digest: str) -> None:
        """Draw what is missing to `n_draws`, from where the chains ended."""
        before = self.draws_.correlations.shape[1]
        if plan.n_draws == before:
            return
        ends: list[Any] = self.ends_
        plan = replace(plan, n_burn=0, n_draws=plan.n_draws - before)
        chains = self._usable(self._run(plan, [end.rng for end in ends], ends), before, len(ends))
        self.draws_ = self.draws_.extended(Draws.collect(chains, self.draws_.offsets))
        self._remember(chains, digest)

    def _run(self, plan: ChainPlan, rngs: list[Any], ends: list[Any]) -> Run:
        return run_chains(plan, rngs, ends, n_jobs=self.n_jobs, show=self.progress)

    def _usable(self, run: Run, before: int, least: int = 1) -> list[ChainDraws]:
        """Return the chains that have draws; after an interrupt, those that are not far behind the others.

        If fewer than `least` are left, nothing has happened but the interrupt.
        """
        if not run.interrupted:
            return run.chains
        longest = max(map(len, run.chains), default=0)
        # Processes may have had two chains to step in turn where others had one.
        chains = [chain for chain in run.chains if len(chain) >= max(_FEWEST, longest / 3)]
        if len(chains) < least:
            raise KeyboardInterrupt
        n = before + min(map(len, chains))
        warn_outside(
            f"{type(self).__name__}: interrupted; the model rests on {n} of {self.n_draws} draws of"
            f" {len(chains)} of {self.n_chains} chains. Set warm_start=True and fit again to go on.",
            TupletWarning,
        )
        return chains

    def _remember(self, chains: list[ChainDraws], digest: str) -> None:
        self.acceptance_ = float(np.mean([chain.accepted for chain in chains]))
        self.ends_ = [chain.end for chain in chains]
        self.digest_ = digest
        self.settings_ = self._chain_settings()

    def _judge(self) -> None:
        self.convergence_ = convergence_of(self.draws_)
        if self.convergence_ is not None and self.convergence_.poor:
            warn_outside(
                f"{type(self).__name__}: the chains have not converged (largest R-hat"
                f" {self.convergence_.r_hat:.2f}, least effective sample size"
                f" {self.convergence_.effective_size:.0f}); raise n_burn and n_draws.",
                ConvergenceWarning,
            )

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        scaled = self._scaled(_dense(X))
        means = MeansAt(self.draws_, scaled, *self._mean_limits())
        held: Any = means if np.prod(means.shape) > HELD_CELLS else means.rows(np.arange(len(scaled)))
        return Probit(held, self.draws_.flat_correlations(), seed=self.seed_)

    def _mean_limits(self) -> tuple[Floats, Floats]:
        """Return the latent means (q,) at which a label has its least probability, and its largest.

        A draw is a normal vector, which cannot be mixed with frequencies. But a label has the bound of
        `tuplet.local.smoothing` in every draw if its mean is limited.
        """
        least = least_mass(self.label_counts_) * np.stack(list(map(smoothed_frequencies, self.label_counts_)))
        return ndtri(least[:, 1]), -ndtri(least[:, 0])

    # -- tables and plots ---------------------------------------------------------------------------------

    def correlation_table(self, level: float = 0.95) -> pd.DataFrame:
        """Correlations of all pairs of class variables, with credible intervals, R-hat and effective sizes.

        Parameters
        ----------
        level : float
            Share of the draws inside an interval.
        """
        check_is_fitted(self, "space_")
        return correlation_table(self.draws_.correlations, self.space_.names, level)

    def combination_table(self, x: Any, k: int = 5, level: float = 0.95) -> pd.DataFrame:
        """Most probable combinations of one row and its marginals, with credible intervals.

        Parameters
        ----------
        x : array or frame, shape (1, d)
        k : int
            Number of combinations.
        level : float
            Share of the draws inside an interval.
        """
        joint: Any = self.predict_joint(x).distribution
        return combination_table(joint, self.space_.names, k, level)

    def plot_correlations(self, *, arrange: bool = False, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the posterior mean of the correlation matrix; see `tuplet.surface.plots.plot_correlations`."""
        check_is_fitted(self, "space_")
        return delegate(
            "plot_correlations", self.correlation_, self.space_.names, arrange=arrange, title=title, ax=ax
        )

    def plot_trace(self, first: str, second: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the correlation of two class variables, named, along the chains."""
        check_is_fitted(self, "space_")
        names = list(self.space_.names)
        for name in (first, second):
            if name not in names:
                raise InputError(f"plot_trace: there is no class variable {name!r}; there are {names}.")
        traces = self.draws_.correlations[:, :, names.index(first), names.index(second)]
        return delegate("plot_trace", traces, f"{first}, {second}", title=title, ax=ax)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _dense(X: Features) -> Floats:
    """Return X as an array."""
    return (
        np.asarray(X.toarray())
        if isinstance(X, sparse.csr_array | sparse.csr_matrix)
        else np.asarray(X, dtype=float)
    )


def _require_binary(space: ClassSpace, model: str) -> None:
    """Raise `InputError` unless every class variable has two labels."""
    for name, card in zip(space.names, space.cards, strict=True):
        if card != 2:
            remedy = (
                "use ChainClassifier or PowersetClassifier, or give each of its labels a 0/1 column"
                if card > 2
                else "leave it out, or pass it as 0/1, so that both labels are known"
            )
            raise InputError(
                f"{model}: Only binary classification is supported. The class variable {name!r} has {card}"
                f" class{'es' if card > 1 else ''}; {remedy}."
            )


def _require_few(m: int, correlation: Correlation, model: str) -> None:
    """Raise `IntractableError` if there are too many correlations to draw each of them."""
    if m > _MOST_LABELS and correlation in ("hmc", "metropolis"):
        raise IntractableError(
            f"{model}: {m} class variables have {m * (m - 1) // 2:,} correlations, of which"
            f" correlation={correlation!r} draws every one; beyond {_MOST_LABELS} class variables chains"
            " take hours and do not converge. Use TreeClassifier, ChainClassifier or SharedForestClassifier;"
            " or correlation='identity', or 'factors' with longer chains."
        )


def _require_moderate(X: Floats, model: str) -> Floats:
    """Return X, or raise `InputError` if it holds numbers too large to be scaled; NaN may stay."""
    beyond = X[np.abs(X) > _LARGEST]
    if len(beyond):
        raise InputError(
            f"{model}: the features hold {beyond[0]:g}, which is too large to compute with (limit"
            f" {_LARGEST:g}); clip or rescale them, or mark the value as missing (NaN)."
        )
    return X


def _rows_by_weight(X: Floats, codes: Codes, sample_weight: Floats | None, model: str) -> Codes:
    """Return positions of rows, sorted by what they hold, so that their order does not matter, and repeated.

    Raises
    ------
    InputError
        If weights are not whole numbers: a row has latent variables, which cannot be divided.
    """
    order = np.lexsort(np.concatenate([codes, X], axis=1).T)
    if sample_weight is None:
        return order
    counts = np.rint(sample_weight).astype(np.intp)
    if not np.array_equal(counts, sample_weight):
        raise InputError(
            f"{model} repeats rows by their sample_weight, which must be whole numbers, but"
            f" {sample_weight[counts != sample_weight][0]:g} is not; round the weights, or resample the rows."
        )
    if counts.sum() > _MOST_ROWS:
        raise InputError(
            f"{model} repeats rows by their sample_weight, which amounts to {counts.sum():,} rows (at most"
            f" {_MOST_ROWS:,}); divide the weights and round them."
        )
    return np.repeat(order, counts[order])


def _warn_of_odd_labels(codes: Codes, space: ClassSpace, model: str) -> None:
    """Warn of class variables of which the rows show one label only, and of such that are the same."""
    names = space.names
    for name, column in zip(names, codes.T, strict=True):
        seen = np.unique(column[column != UNKNOWN])
        if len(seen) < 2:
            found = "one label only" if len(seen) else "no label"
            warn_outside(
                f"{model}: the training rows show {found} of the class variable {name!r}; its probabilities"
                " and correlations rest on the prior. Leave it out unless that is meant.",
                TupletWarning,
            )
    twins = [f"{names[i]!r} and {names[j]!r}" for i, j in _twins(codes)]
    if twins:
        more = f" (and {len(twins) - 1} other pairs)" if len(twins) > 1 else ""
        warn_outside(
            f"{model}: the class variables {twins[0]}{more} agree (or disagree) in all training rows; their"
            " correlation approaches its limit and mixes slowly. Leave one of them out.",
            TupletWarning,
        )


def _twins(codes: Codes) -> list[tuple[int, int]]:
    """Return pairs of varying columns that always agree, or never do, where both are known."""
    high, low = (codes == 1).astype(float), (codes == 0).astype(float)
    both, neither, first, second = high.T @ high, low.T @ low, high.T @ low, low.T @ high
    alike = (first + second == 0) & (both > 0) & (neither > 0)
    opposed = (both + neither == 0) & (first > 0) & (second > 0)
    return [(int(j), int(i)) for i, j in zip(*np.nonzero(np.tril(alike | opposed, -1)), strict=True)]


def _digest_of(*arrays: Any) -> str:
    """Return a digest of what arrays hold."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return total.hexdigest()

"""What the multivariate probit models have in common: chains in, a `Probit` joint out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils import Tags

from tuplet.exceptions import ConvergenceWarning, InputError, TupletWarning
from tuplet.joint import JointDistribution, Probit
from tuplet.local.inputs import Features
from tuplet.models.probit.report import ProbitReport
from tuplet.models.probit.rows import (
    dense,
    digest_of,
    require_binary,
    require_moderate,
    rows_by_weight,
    warn_of_odd_labels,
)
from tuplet.models.scaling import fit_scaler
from tuplet.prediction.estimates import warn_outside
from tuplet.probit.chain import ChainDraws, Plan
from tuplet.probit.chains import Run, run_chains
from tuplet.probit.convergence import convergence_of
from tuplet.probit.correlation import Correlation, Prior, correlation_step
from tuplet.probit.draws import Draws, MeansAt
from tuplet.probit.means import MeanSettings
from tuplet.probit.sampler import label_signs, offsets_of
from tuplet.progress import Show
from tuplet.typing import Codes, Floats, Seed

_FEWEST = 10
"""Draws of a chain that an interrupted fit keeps."""

_HELD = 2**26
"""Means of a prediction that are held in memory; more are computed when they are asked for."""


_FREE = {"n_draws", "random_state", "n_jobs", "progress", "warm_start"}
"""Settings that may change when chains go on."""


class ProbitModel(ProbitReport):
    """Binary labels that say whether the components of a normal vector are positive.

    A model writes `_mean_settings`; `_predictors` may turn features into something else.
    """

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

    @abstractmethod
    def _mean_settings(self) -> MeanSettings:
        """Check the settings of the mean functions and return them."""

    def _learn_predictors(self, X: Floats) -> None:
        """Learn from all rows what `_predictors` needs."""

    def _predictors(self, X: Floats) -> Floats:
        return X

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        self._check_settings()
        name = type(self).__name__
        require_binary(self.space_, name)
        X = dense(X)
        rows = rows_by_weight(X, codes, sample_weight, name)
        X, codes = X[rows], codes[rows]
        digest = digest_of(X, codes)
        if self._goes_on:
            self._require_unchanged(digest)
            self._continue(self._plan(X, codes), digest)
        else:
            self.__dict__.pop("ends_", None)  # a fit that fails from here on is none to go on from
            self._learn_predictors(X)
            plan = self._plan(X, codes, reset=True)
            warn_of_odd_labels(codes, self.space_, name)
            self._begin(plan, digest)
        self.correlation_ = self.draws_.flat_correlations().mean(axis=0)
        self._judge()

    @property
    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "ends_")

    def _plan(self, X: Floats, codes: Codes, *, reset: bool = False) -> Plan:
        rule = correlation_step(self.correlation, prior=self.prior, eta=self.eta, n_factors=self.n_factors)
        return Plan(
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
        made = require_moderate(self._predictors(X), type(self).__name__)
        if reset:
            self.scaler_ = fit_scaler(made)
        return np.ascontiguousarray(self.scaler_.transform(made))

    def _begin(self, plan: Plan, digest: str) -> None:
        rng = np.random.default_rng(self.random_state)
        self.seed_ = int(rng.integers(2**31))
        chains = self._usable(self._run(plan, rng.spawn(self.n_chains), [None] * self.n_chains), 0)
        self.draws_ = Draws.collect(chains, offsets_of(plan.signs))
        self._remember(chains, digest)

    def _require_unchanged(self, digest: str) -> None:
        """Raise `InputError` unless the chains can go on with these rows and settings."""
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

    def _continue(self, plan: Plan, digest: str) -> None:
        """Draw what is missing to `n_draws`, from where the chains ended."""
        before = self.draws_.correlations.shape[1]
        if plan.n_draws == before:
            return
        ends: list[Any] = self.ends_
        plan = Plan(plan.X, plan.signs, plan.means, plan.rule, 0, plan.n_draws - before, plan.thin)
        chains = self._usable(self._run(plan, [end.rng for end in ends], ends), before, len(ends))
        self.draws_ = self.draws_.extended(Draws.collect(chains, self.draws_.offsets))
        self._remember(chains, digest)

    def _run(self, plan: Plan, rngs: list[Any], ends: list[Any]) -> Run:
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

    def _check_settings(self) -> None:
        for name, least in (("n_burn", 0), ("n_draws", 1), ("thin", 1), ("n_chains", 1), ("n_factors", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                self._refuse(name, f"an integer of at least {least}")
        require_number(self, "eta")
        for name, values in (
            ("correlation", ("hmc", "metropolis", "factors", "identity")),
            ("prior", ("lkj", "inverse-wishart")),
        ):
            if getattr(self, name) not in values:
                self._refuse(name, "one of " + ", ".join(map(repr, values)))

    def _refuse(self, name: str, wanted: str) -> None:
        raise InputError(f"{type(self).__name__}: {name} must be {wanted}, found {getattr(self, name)!r}.")

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        scaled = self._scaled(dense(X))
        means = MeansAt(self.draws_, scaled)
        held: Any = means if np.prod(means.shape) > _HELD else means.rows(np.arange(len(scaled)))
        return Probit(held, self.draws_.flat_correlations(), seed=self.seed_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def require_number(model: ProbitModel, name: str, *, above: float = 0.0) -> None:
    """Raise `InputError` unless a setting is a finite number above a limit."""
    value = getattr(model, name)
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not above < value < np.inf:
        model._refuse(name, f"a number above {above:g}")

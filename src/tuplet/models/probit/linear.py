"""Multivariate probit with linear means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from sklearn.base import clone

from tuplet.core.exceptions import InputError
from tuplet.core.parameters import FUNCTION, Having, declare
from tuplet.core.progress import Show
from tuplet.core.typing import Floats, Seed
from tuplet.models.probit.base import ProbitModel
from tuplet.models.probit.sampling.correlation import Correlation, Prior
from tuplet.models.probit.sampling.means import LinearSettings
from tuplet.space.features.encoding import ColumnChoices


@final
class ProbitClassifier(ProbitModel):
    """Multivariate probit with linear means.

        z = a + B x + e,  e ~ N(0, R),  label k is 1 if z_k > 0

    `correlation="identity"` makes it one probit regression for each label.

    Parameters
    ----------
    predictors : callable or transformer, optional
        Turns X (n, d) into the predictors that means are linear in: a function of an array, or a scikit-learn
        transformer, which is fitted. By default X itself.
    n_burn, n_draws, thin, n_chains, correlation, prior, eta, n_factors
        See `ProbitForestClassifier`.
    random_state, n_jobs, progress, warm_start
        See `ProbitForestClassifier`.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.

    Attributes
    ----------
    coef_ : array, shape (m, p)
        Posterior means of the coefficients of standardised predictors.
    intercept_ : array, shape (m,)
    correlation_, draws_, convergence_
        See `ProbitForestClassifier`.
    acceptance_ : float
        Share of accepted moves of coefficients and R.

    Notes
    -----
    Up to 30 labels, coefficients and R are drawn together by Hamiltonian Monte Carlo, given uniform numbers
    from which the latent variables follow by sequential conditioning; chains start near the posterior mode.
    Beyond, or with `correlation="metropolis"`, they are drawn one after the other given the latent variables.

    The coefficients of a label have a normal prior with one scale for all standardised predictors. It is
    estimated from the label before sampling (empirical Bayes; the prior of the scale is half-Cauchy with
    median 1 / sqrt(p) for p predictors), so that many predictors of little use cost little. It is at most 3,
    which keeps coefficients finite where labels are separable. Class variables, missing labels, weights and
    interrupts are treated as in `ProbitForestClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 2))
    >>> e = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 300)
    >>> Y = ((X[:, 0] * X[:, 1])[:, None] * 4 + e > 0).astype(int)
    >>> model = ProbitClassifier(lambda X: X[:, :1] * X[:, 1:], n_chains=1, random_state=0).fit(X, Y)
    >>> bool(abs(model.correlation_[0, 1] - 0.8) < 0.15)
    True
    >>> model.predict([[0.9, 0.9], [-0.9, 0.9]])
    array([[1, 1],
           [0, 0]])
    """

    _parameters = ProbitModel._parameters | declare(
        predictors=(FUNCTION, Having("a scikit-learn transformer", "transform"), None)
    )

    def __init__(
        self,
        predictors: Callable[[Floats], Any] | Any = None,
        *,
        n_burn: int = 50,
        n_draws: int = 128,
        thin: int = 1,
        n_chains: int = 4,
        correlation: Correlation = "hmc",
        prior: Prior = "lkj",
        eta: float = 1.0,
        n_factors: int = 4,
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        progress: Show = "auto",
        warm_start: bool = False,
    ) -> None:
        self.predictors = predictors
        self.n_burn = n_burn
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.correlation = correlation
        self.prior = prior
        self.eta = eta
        self.n_factors = n_factors
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _mean_settings(self) -> LinearSettings:
        return LinearSettings()

    def _learn_predictors(self, X: Floats) -> None:
        fitted = hasattr(self.predictors, "transform")
        self.transformer_ = clone(self.predictors).fit(X) if fitted else None

    def _predictors(self, X: Floats) -> Floats:
        if self.predictors is None:
            return X
        made = self.predictors(X) if self.transformer_ is None else self.transformer_.transform(X)
        made = made.toarray() if hasattr(made, "toarray") else np.asarray(made, dtype=float)
        if made.ndim != 2 or len(made) != len(X):
            raise InputError(
                f"ProbitClassifier: predictors must return an array of {len(X)} rows and one column for each"
                f" predictor, found shape {made.shape}."
            )
        return made

    @property
    def coef_(self) -> Floats:
        """Posterior means of the coefficients."""
        return self._coefficients()[:, 1:]

    @property
    def intercept_(self) -> Floats:
        """Posterior means of the intercepts."""
        return self._coefficients()[:, 0] + self.draws_.offsets

    def _coefficients(self) -> Floats:
        return np.concatenate([chain.coefficients for chain in self.draws_.means]).mean(axis=0)  # type: ignore[attr-defined]

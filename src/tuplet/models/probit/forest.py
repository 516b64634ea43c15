"""Multivariate probit with sums of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tuplet.core.parameters import Number, Whole, declare
from tuplet.core.progress import Show
from tuplet.core.typing import Seed
from tuplet.models.probit.base import ProbitModel
from tuplet.models.probit.sampling.correlation import Correlation, Prior
from tuplet.models.probit.sampling.forests import ForestSettings, load_features
from tuplet.models.probit.sampling.summary import inclusion_table
from tuplet.space.features.encoding import ColumnChoices

if TYPE_CHECKING:
    import pandas as pd


@final
class ProbitForestClassifier(ProbitModel):
    """Multivariate probit whose means are Bayesian sums of regression trees: MLCBART.

        z = G(x) + e,  e ~ N(0, R),  label k is 1 if z_k > 0

    Each label has a sum of trees G_k; the correlation matrix R describes how labels depend on each other
    given x. Predictions average over draws from the posterior distribution. Needs `tuplet[bart]`.

    Parameters
    ----------
    n_trees : int
        Trees of each label.
    n_burn, n_draws, thin : int
        Iterations of each chain that are dropped, draws that are kept of each chain after them, and
        iterations for each of these.
    n_chains : int
    correlation : {"hmc", "metropolis", "factors", "identity"}
        How R is drawn: any matrix, by Hamiltonian Monte Carlo or by the slower random walk of the paper;
        from `n_factors` factors, for many labels; or not at all, which makes the labels independent given x.
        With more than 60 labels, only the last two are possible.
    prior : {"lkj", "inverse-wishart"}
        Of R, for "hmc" and "metropolis": |R|^(eta - 1), or that of the correlations of an
        inverse-Wishart(m + 1, I) matrix.
    eta : float
        1 is uniform over correlation matrices; larger values favour weak correlations.
    n_factors : int
    shrinkage : float or "learn"
        r: the prior standard deviation of G_k(x) is 3 / r. "learn" draws it along, for each label.
    alpha, beta : float
        A node at depth d is split with prior probability alpha / (1 + d)^beta.
    select_features : bool
        Whether each label learns which features matter: the probability that a feature is split on has a
        sparse Dirichlet prior (Linero 2018) instead of being the same for all.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    random_state : int, Generator or None
    n_jobs : int, optional
        Processes that run chains side by side.
    progress : bool or "auto"
        Whether progress is shown; "auto" does so in a terminal.
    warm_start : bool
        Whether `fit` on the same rows draws only what is missing to `n_draws`, from where the chains ended.

    Attributes
    ----------
    correlation_ : array, shape (m, m)
        Posterior mean of R.
    draws_ : Draws
        Everything that was drawn: `correlations` (chains, draws, m, m), `levels` and `means`.
    convergence_ : Convergence or None
        Largest R-hat and least effective sample size; None with fewer than 100 draws of each chain.
    acceptance_ : float
        Share of accepted moves of R.

    Raises
    ------
    IntractableError
        If every correlation of more than 60 labels is to be drawn.

    Warns
    -----
    ConvergenceWarning
        If chains disagree, or their draws are worth few independent ones.

    Notes
    -----
    Class variables must have two classes. Missing labels are drawn along with everything else.
    `sample_weight` must hold whole numbers: rows are repeated. An interrupt (Ctrl-C) keeps the draws so
    far if there are ten of a chain.

    References
    ----------
    J. Tian, H. Chipman, T. Loughin, MLCBART: Multilabel Classification with Bayesian Additive Regression
    Trees, 2026. Where it is silent or differs: R is uniform a priori (eta = 1) and drawn by Hamiltonian
    Monte Carlo given the residuals; alpha is .95; the scale of the leaves is learned; means have the
    offset of the label's frequency; features are weighted as A. R. Linero does, Journal of the
    American Statistical Association 113 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> e = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 200)
    >>> Y = (np.sin(3 * X[:, :1]) + e > 0).astype(int)
    >>> model = ProbitForestClassifier(n_burn=200, n_draws=50, n_chains=1, random_state=0).fit(X, Y)
    >>> bool(model.correlation_[0, 1] > 0.6)
    True
    >>> model.predict([[0.5, 0.0], [-0.5, 0.0]], loss="subset")
    array([[1, 1],
           [0, 0]])
    """

    _parameters = ProbitModel._parameters | declare(
        n_trees=Whole(at_least=1),
        shrinkage=("learn", Number(above=0)),
        alpha=Number(above=0, below=1),
        beta=Number(at_least=0),
        select_features=bool,
    )

    def __init__(
        self,
        n_trees: int = 20,
        *,
        n_burn: int = 500,
        n_draws: int = 250,
        thin: int = 2,
        n_chains: int = 4,
        correlation: Correlation = "hmc",
        prior: Prior = "lkj",
        eta: float = 1.0,
        n_factors: int = 4,
        shrinkage: float | Literal["learn"] = "learn",
        alpha: float = 0.95,
        beta: float = 2.0,
        select_features: bool = True,
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        progress: Show = "auto",
        warm_start: bool = False,
    ) -> None:
        self.n_trees = n_trees
        self.n_burn = n_burn
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.correlation = correlation
        self.prior = prior
        self.eta = eta
        self.n_factors = n_factors
        self.shrinkage = shrinkage
        self.alpha = alpha
        self.beta = beta
        self.select_features = select_features
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _mean_settings(self) -> ForestSettings:
        load_features(np.zeros((1, 1)))  # a missing stochtree is an error before anything runs
        r = None if self.shrinkage == "learn" else float(self.shrinkage)
        return ForestSettings(
            int(self.n_trees),
            r,
            float(self.alpha),
            float(self.beta),
            bool(self.select_features),
        )

    def inclusion_table(self) -> pd.DataFrame:
        """How often each label's trees split on each feature, most used features first."""
        check_is_fitted(self, "space_")
        counts = self.draws_.split_counts()
        return inclusion_table(counts, self.space_.names, self._feature_names(counts.shape[2]))

    def _feature_names(self, d: int) -> list[str]:
        if self.encoder_ is not None:
            return [str(name) for name in self.encoder_.get_feature_names_out()]
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)])
        return [str(name) for name in names]

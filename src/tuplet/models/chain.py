"""Chains of classifiers: each class variable given x and those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any, Literal, cast, final

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.parameters import Having, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.joint.atoms import Atoms
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution
from tuplet.joint.linear_chain import LinearChain
from tuplet.joint.mixture import Mixture
from tuplet.joint.policies import Enumerate, MonteCarlo
from tuplet.local.base import Bound, LinearBound
from tuplet.local.stacked import Link, fit_links, prepare_further
from tuplet.models.base import JointClassifier
from tuplet.models.prior import bounded_joint
from tuplet.space.containers import listing
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, n_rows


@final
class ChainClassifier(JointClassifier):
    """Chains of classifiers: p(y | x) = prod_j p(y_j | x, the variables before j), one or several of them.

    | | `inference="exact"` | `inference="greedy"` |
    |---|---|---|
    | `n_chains=1` | probabilistic classifier chain, PCC | classifier chain, CC |
    | `n_chains>1` | mixture of the chains, EPCC | vote of the chains, ECC |

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba`; `default_estimator()`, imputed and standardised
        logistic regression, if None. The variables before enter as one-hot columns. In a mapping, variables
        that are not named get the default.
    order : None, "random", or sequence of names or positions
        Order of the variables in the chain. None is the order of the columns of y for one chain, and random
        for several, which never share an order. Integers are positions from 0, even if the columns of y
        have integers as names.
    n_chains : int
        Number of chains; it is reduced to the number of orders, m!, where that is smaller.
    inference : {"exact", "greedy"}
        "exact" answers queries about the joint distribution. "greedy" fixes one label after the other along
        the chain. All probability but 1 / (N + 1) is then on that one combination, or on those that the
        chains vote for: decisions are what the papers describe, but a likelihood means nothing.
    engine : "auto", `tuplet.joint.Enumerate(limit)` or `tuplet.joint.MonteCarlo(size, seed)`
        How an exact chain finds marginals and other sums over combinations. `Enumerate` follows every
        combination, up to `limit` of them, and is exact; `MonteCarlo` estimates with `size` points per row,
        within 2 / sqrt(size) (four standard errors), and says so with a warning. "auto" enumerates up to
        4,096 combinations, or 65,536 if the local models are linear as the default is, and estimates with
        1,000 points beyond. The most probable combinations and the probabilities of complete rows are
        exact with every engine.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    random_state : int, Generator or None
        For random orders, and for estimators whose own `random_state` is None: each local fit gets a seed
        of its own, the same for any `n_jobs`. None leaves them as they are.
    n_jobs : int, optional
        Fits that run side by side, by joblib.

    Attributes
    ----------
    orders_ : array of int, shape (n_chains, m)
        Positions of the variables in each chain.
    order_ : array of int, shape (m,)
        The same for a single chain.
    estimators_ : list of classifiers
        The fitted classifiers of a single chain, in its order; None where all rows had one label.
    models_ : list of StackedModel
        Chains share the model of a variable where the variables before it are the same.
    parents_ : list of tuples of int
        The variables that each model depends on.
    links_ : array of int, shape (n_chains, m)
        Which model each variable has in each chain.

    References
    ----------
    J. Read, B. Pfahringer, G. Holmes, E. Frank, Classifier chains for multi-label classification, Machine
    Learning 85, 2011. K. Dembczynski, W. Cheng, E. Hüllermeier, Bayes optimal multilabel classification via
    probabilistic classifier chains, ICML 2010.

    Examples
    --------
    >>> X = [[0.0], [0.1], [1.0], [1.1], [1.2]] * 4
    >>> y = [["dry", "hat"], ["dry", "hat"], ["wet", "umbrella"], ["wet", "hat"], ["wet", "umbrella"]] * 4
    >>> model = ChainClassifier().fit(X, y)
    >>> model.predict([[0.0], [1.1]], loss="subset")
    array([['dry', 'hat'],
           ['wet', 'umbrella']], dtype='<U8')
    """

    _parameters = declare(
        "columns estimator n_chains random_state n_jobs",
        order=("random", Having("a sequence of names or positions", "__iter__"), None),
        inference=("exact", "greedy"),
        engine=("auto", Enumerate, MonteCarlo),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        order: Literal["random"] | Sequence[int | str] | None = None,
        n_chains: int = 1,
        inference: Literal["exact", "greedy"] = "exact",
        engine: Any = "auto",
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.n_chains = n_chains
        self.inference = inference
        self.engine = engine
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        rng = np.random.default_rng(self.random_state)
        self.orders_ = self._choose_orders(rng)
        chains = [_links(order.tolist()) for order in self.orders_]
        distinct = list(dict.fromkeys(link for chain in chains for link in chain))
        self.links_ = np.array([[distinct.index(link) for link in chain] for chain in chains])
        self.parents_ = [link.parents for link in distinct]
        seeds = None if self.random_state is None else rng.integers(2**31 - 1, size=len(distinct)).tolist()
        self.models_ = fit_links(
            distinct,
            X,
            codes,
            sample_weight,
            space=self.space_,
            estimators=self._estimators(self.space_.names),
            n_jobs=self.n_jobs,
            groups=self._groups,
            seeds=seeds,
        )

    @property
    def order_(self) -> Codes:
        """Positions of the variables in the only chain."""
        self._require_one("order_", "orders_")
        return np.asarray(self.orders_[0])

    @property
    def estimators_(self) -> list[Any]:
        """Fitted classifiers of the only chain, in its order."""
        self._require_one("estimators_", "models_")
        return [self.models_[place].classifier_.estimator for place in self.links_[0][self.order_]]

    def _require_one(self, name: str, other: str) -> None:
        n_chains = len(getattr(self, "orders_", ()))
        if n_chains != 1:
            found = f"of {n_chains} chains has no {name}; see {other}" if n_chains else "is not fitted"
            raise AttributeError(f"This ChainClassifier {found}.")

    # -- orders -------------------------------------------------------------------------------------------

    def _choose_orders(self, rng: np.random.Generator) -> Codes:
        m = self.space_.n_variables
        if self.order is None and self.n_chains == 1:
            return np.arange(m)[None]
        if self.order is None or (isinstance(self.order, str) and self.order == "random"):
            return _random_orders(m, self.n_chains, rng)
        if self.n_chains > 1:
            raise InputError(
                f"ChainClassifier: a given order makes one chain, but n_chains={self.n_chains}; use"
                " order='random'."
            )
        return self._given_order()[None]

    def _given_order(self) -> Codes:
        names = self.space_.names
        given = list(cast(Sequence[int | str], self.order))
        order: list[Any] = [self.space_.position(v) if isinstance(v, str) else v for v in given]
        numbers = all(isinstance(v, (int, np.integer)) for v in order)
        if not numbers or sorted(order) != list(range(len(names))):
            raise InputError(
                f"ChainClassifier: order must name each of {listing(names)} once, or their positions from 0;"
                f" found {given!r}."
            )
        return np.array(order, dtype=np.intp)

    # -- prediction ---------------------------------------------------------------------------------------

    @property
    def _note(self) -> str:
        return "votes of greedy chains, not probabilities" if self.inference == "greedy" else ""

    def _predict_joint(self, X: Features) -> JointDistribution:
        rows = prepare_further(self.models_, X)
        bound = [m.bind(Z, parents) for m, Z, parents in zip(self.models_, rows, self.parents_, strict=True)]
        kind = _SoftmaxChain if all(isinstance(model, LinearBound) for model in bound) else Chain
        chains = [
            kind(tuple(order.tolist()), tuple(bound[i] for i in links))
            for order, links in zip(self.orders_, self.links_, strict=True)
        ]
        n, cards = n_rows(X), self.space_.cards
        if self.inference == "greedy":
            votes = Atoms.from_draws(cards, np.stack([chain.greedy(n) for chain in chains]))
            return bounded_joint(votes, self.label_counts_)
        joints = tuple(Autoregressive(cards, chain.order, chain, n, engine=self.engine) for chain in chains)
        if len(joints) == 1:
            return joints[0]
        return Mixture(np.full((n, len(joints)), -np.log(len(joints))), joints)


@dataclass(frozen=True)
class Chain:
    """A chain whose x is fixed to some rows: the conditional of an `Autoregressive`.

    Parameters
    ----------
    order : tuple of int
        The variables from first to last.
    bound : tuple of Bound
        p(variable | x, those before it), by position of the variable.
    """

    order: tuple[int, ...]
    bound: tuple[Bound, ...]

    def __call__(self, variable: int, rows: npt.NDArray[np.intp], codes: Codes) -> Floats:
        """Return the log-probabilities (r, k) of a variable, for rows (r,) and codes (r, m) of the others."""
        return self.bound[variable](rows, codes)

    def greedy(self, n: int) -> Codes:
        """Return the codes (n, m) that fixing one variable after the other gives."""
        codes = np.full((n, len(self.order)), UNKNOWN, dtype=np.intp)
        for variable in self.order:
            codes[:, variable] = self(variable, np.arange(n), codes).argmax(axis=1)
        return codes


class _SoftmaxChain(Chain):
    """A chain of models whose logits are sums; see `LinearConditional`."""

    def linear_chain(self) -> LinearChain:
        """See `LinearConditional.linear_chain`."""
        return self._packed

    @cached_property
    def _packed(self) -> LinearChain:
        terms = [cast(LinearBound, model).terms() for model in self.bound]
        return LinearChain.pack([len(each.share) for each in terms], self.order, terms)


def _links(order: list[int]) -> list[Link]:
    """Return each variable, by position, with those before it in ascending order."""
    return [Link(v, tuple(sorted(order[: order.index(v)]))) for v in range(len(order))]


def _random_orders(m: int, n_chains: int, rng: np.random.Generator) -> Codes:
    """Return distinct permutations of m variables, as many as requested or as there are."""
    wanted = min(n_chains, factorial(m)) if m < 13 else n_chains
    orders: dict[tuple[int, ...], None] = {}
    while len(orders) < wanted:
        orders[tuple(rng.permutation(m).tolist())] = None
    return np.array(list(orders), dtype=np.intp)

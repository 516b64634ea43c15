"""One list of models, each fitted at most once to one small table, for tests of what all models share."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from tuplet.models import (
    AutoJointClassifier,
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    GenerativeBayesNetClassifier,
    IndependentClassifier,
    InstanceLogisticClassifier,
    JointStackingClassifier,
    MixtureClassifier,
    NeighborClassifier,
    OutputCodingClassifier,
    PowersetClassifier,
    PriorClassifier,
    ProbitClassifier,
    ProbitForestClassifier,
    RandomFieldClassifier,
    RuleStackingClassifier,
    SharedForestClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
    TreeEnsembleClassifier,
    TreeMixtureClassifier,
    WeightedStackingClassifier,
)

_DRAWS = {"n_burn": 40, "n_draws": 30, "thin": 1, "n_chains": 1, "random_state": 0}
BINARY = {
    "output coding": OutputCodingClassifier(),
    "probit": ProbitClassifier(**_DRAWS),
    "probit forest": ProbitForestClassifier(5, **_DRAWS),
}
"""Models that take binary labels only."""

ANY = {
    "prior": PriorClassifier(),
    "prior of marginals": PriorClassifier("marginals"),
    "independent": IndependentClassifier(),
    "powerset": PowersetClassifier(),
    "chain": ChainClassifier(),
    "chains": ChainClassifier(n_chains=2, random_state=0),
    "greedy chains": ChainClassifier(n_chains=2, inference="greedy", random_state=0),
    "bayesnet": BayesNetClassifier(random_state=0),
    "generative": GenerativeBayesNetClassifier(random_state=0),
    "generative small": GenerativeBayesNetClassifier("small-tw"),
    "neighbors": NeighborClassifier(),
    "instance": InstanceLogisticClassifier(),
    "instance with features": InstanceLogisticClassifier(use_features=True),
    "shared forest": SharedForestClassifier(RandomForestClassifier(10), random_state=0),
    "stacked features": StackedFeaturesClassifier(n_folds=2),
    "field": RandomFieldClassifier(),
    "field tree": RandomFieldClassifier("tree", pairwise="linear", likelihood="pseudo"),
    "tree": TreeClassifier(),
    "tree of others": TreeClassifier(LogisticRegression()),
    "tree ensemble": TreeEnsembleClassifier(n_trees=3, random_state=0),
    "tree mixture": TreeMixtureClassifier(max_trees=3, random_state=0),
    "mixture": MixtureClassifier(IndependentClassifier(), n_components=2, max_iter=3, random_state=0),
    "stacking": JointStackingClassifier([IndependentClassifier(), PowersetClassifier()], cv=2),
    "rules": RuleStackingClassifier(max_rules=1, n_folds=2, random_state=0, progress=False),
    "weighted stacking": WeightedStackingClassifier(n_folds=2),
    "auto": AutoJointClassifier(time_budget=0.5),
    "decision": DecisionClassifier(ChainClassifier(), "subset"),
}
"""Models that take labels of any kind."""

MODELS = {**ANY, **BINARY}


def data(n=150, seed=0, missing=0.0):
    """Three dependent class variables with 2, 3 and 2 labels, of three types, in a frame."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    first = X[:, 0] + rng.normal(size=n) > 0
    second = np.digitize(X[:, 1] + first + rng.normal(size=n), [0, 1])
    third = second + first + rng.normal(size=n) > 1
    Y = pd.DataFrame(
        {
            "rain": np.where(first, "wet", "dry"),
            "wind": pd.Categorical(
                np.array(["calm", "breeze", "storm"])[second], ["calm", "breeze", "storm"]
            ),
            "late": third,
        },
        index=np.arange(n) + 1000,
    )
    Y["late"] = Y["late"].astype("boolean")
    if missing:
        Y = Y.mask(rng.random(Y.shape) < missing)
    return pd.DataFrame(X, columns=list("abcd"), index=Y.index), Y


def table(name):
    """Features and labels of the small table that a model is fitted to."""
    X, Y = data(60)
    if name in BINARY:
        Y = pd.DataFrame((X.to_numpy() > 0).astype(int), columns=list("pqrs"), index=X.index)
    return X, Y


@cache
def fitted(name):
    """Return a model, fitted to its table; tests share it and must not change it."""
    return clone(MODELS[name]).fit(*table(name))

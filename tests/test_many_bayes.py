import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from tuplet.exceptions import InputError
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.bayes_layout import BayesLayout
from tuplet.local.many_bayes import BayesBatch
from tuplet.typing import UNKNOWN


def draw(seed, n, q=5, k=3, missing=0.0):
    """Numbers, a constant, counts (0 and 1 alone in some blocks), zeros and ones, and categories."""
    rng = np.random.default_rng(seed)
    y, blocks = rng.integers(-1, k, size=n), rng.integers(-1, q, size=n)
    blocks[blocks == 1] = UNKNOWN  # an empty block
    y[(blocks == 2) & (y != UNKNOWN)] = 1  # a single class
    X = np.column_stack(
        [
            rng.normal(size=n) + y,
            100 + 3 * rng.normal(size=n),
            np.full(n, 0.1),
            np.where(blocks == 3, 0.7, rng.normal(size=n)),  # constant in a block, with rounding
            rng.poisson(0.4 + (blocks > 2), size=n),
            rng.integers(2, size=n),
            np.where(y == 0, 1, rng.integers(2, size=n)),
            np.zeros(n),
            rng.choice([-3.0, 0.0, 1.0, 2.5, 9.0], size=n, p=[0.1, 0.4, 0.3, 0.1, 0.1]),
        ]
    )
    X[rng.random(X.shape) < missing] = np.nan
    if missing:
        X[(blocks == 0) & (y == 0), 0] = np.nan  # a class that shows nothing
        X[blocks == 4, 5] = np.nan
    return rng, X, y, blocks


def one_by_one(model, X, y, blocks, q, k, weight, new):
    """Probabilities (q, k, n') by a classifier for each block, and the weights of the blocks."""
    answer, totals = np.zeros((q, k, len(new))), np.zeros(q)
    for g in range(q):
        rows = (blocks == g) & (y != UNKNOWN) & (weight > 0)
        totals[g] = weight[rows].sum()
        classes = np.unique(y[rows])
        if len(classes) == 1:
            answer[g, classes] = 1.0
        elif len(classes):
            fitted = clone(model).fit(X[rows], y[rows], weight[rows])
            answer[g, classes] = fitted.predict_proba(new).T
    return answer, totals


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    n=st.integers(1, 90),
    categorical=st.sampled_from(["auto", [8], [4, 5, 8], list(range(9)), []]),
    missing=st.sampled_from([0.0, 0.3]),
    weighted=st.booleans(),
    alpha=st.sampled_from([0.3, 1.0]),
    floor=st.sampled_from([1e-3, 1e-6, 0.5]),
)
def test_all_at_once_is_one_by_one(seed, n, categorical, missing, weighted, alpha, floor):
    rng, X, y, blocks = draw(seed, n, missing=missing)
    weight = rng.random(n) * (rng.random(n) < 0.9) if weighted else None
    model = MixedNaiveBayes(categorical=categorical, alpha=alpha, variance_floor=floor)
    new = np.vstack([X, draw(seed + 1, 30, missing=0.3)[1], draw(seed + 2, 10)[1] + 0.5])
    given_weight = np.ones(n) if weight is None else weight
    expected, totals = one_by_one(model, X, y, blocks, 5, 3, given_weight, new)

    batch = BayesBatch(X, BayesLayout.make(X, model))
    experts = batch.fit(y, blocks, 5, 3, weight)
    np.testing.assert_allclose(experts.totals, totals, rtol=1e-12)
    Z = batch.layout.encode(new)
    np.testing.assert_allclose(experts.table(Z), expected, atol=1e-9)
    asked = rng.integers(-1, 5, size=len(new))
    own = np.where(asked[:, None] == UNKNOWN, 0.0, expected[asked, :, np.arange(len(new))])
    np.testing.assert_allclose(experts.proba(Z, asked), own, atol=1e-9)

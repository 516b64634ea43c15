import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from draws import examples
from tuplet.exceptions import InputError
from tuplet.local import batches
from tuplet.local.batches import is_plain_bayes, make_batch
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.bayes_experts import BayesExperts
from tuplet.local.bayes_layout import BayesLayout
from tuplet.local.experts import ClassifierExperts
from tuplet.local.families import FamilyScorer
from tuplet.local.many_bayes import BayesBatch
from tuplet.local.split import SplitModel
from tuplet.structure import Family
from tuplet.typing import UNKNOWN

CARDS = (2, 3, 2)


class SlowBayes(MixedNaiveBayes):
    """The same classifier, but not one that is fitted all at once."""


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


@examples(50)
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


# -- the models and scores that are made of it -------------------------------------------------------------


def draw_variables(seed, n, missing):
    rng, X, _, _ = draw(seed, n, missing=missing)
    codes = rng.integers(CARDS, size=(n, 3))
    codes[:, 2] = np.where(rng.random(n) < 0.8, codes[:, 0], codes[:, 2])
    X[:, 0] += codes[:, 0] - codes[:, 1]
    if missing:
        codes[rng.random(codes.shape) < 0.1] = UNKNOWN
    return rng, X, codes


def both(make):
    """The same with the fast and with the slow classifier."""
    return make(MixedNaiveBayes()), make(SlowBayes())


@examples(25)
@given(
    seed=st.integers(0, 100_000),
    n=st.integers(2, 80),
    missing=st.sampled_from([0.0, 0.2]),
    weighted=st.booleans(),
    score=st.sampled_from(["bic", "cv"]),
    behind=st.sampled_from([(), (SimpleImputer(keep_empty_features=True),)]),
)
def test_scores_and_models_of_families_are_those_of_separate_fits(seed, n, missing, weighted, score, behind):
    rng, X, codes = draw_variables(seed, n, missing)
    weight = rng.random(n) * (rng.random(n) < 0.9) if weighted else None

    def scorer(classifier):
        estimator = make_pipeline(*behind, classifier) if behind else classifier
        return FamilyScorer(
            X,
            codes,
            CARDS,
            estimators=[estimator] * 3,
            parametrisation="split",
            score=score,
            n_folds=3,
            sample_weight=weight,
            random_state=0,
        )

    fast, slow = both(scorer)
    wanted = [Family(c, p, -np.inf) for c, p in ((0, ()), (0, (1,)), (2, (0,)), (1, (0, 2)))]
    np.testing.assert_allclose(list(fast.score(wanted)), list(slow.score(wanted)), rtol=1e-9, atol=1e-9)
    asked = rng.integers(-1, CARDS, size=(n, 3))
    for child, parents, _ in wanted:
        ours, theirs = fast.model(child, parents), slow.model(child, parents)
        np.testing.assert_allclose(ours.log_table(X), theirs.log_table(X), atol=1e-9)
        chosen = asked[:, list(parents)]
        np.testing.assert_allclose(ours.log_proba(X, chosen), theirs.log_proba(X, chosen), atol=1e-9)


def test_a_model_has_the_fast_form_and_survives_pickling():
    rng, X, codes = draw_variables(0, 80, 0.2)
    fast, slow = both(
        lambda classifier: SplitModel(classifier).fit(
            X, codes[:, :2], codes[:, 2], parent_cards=(2, 3), child_card=2
        )
    )
    assert isinstance(fast.experts_, BayesExperts)
    assert isinstance(slow.experts_, ClassifierExperts)
    assert fast.prepared_.Z is None
    assert fast.prepared_.batch is None  # the training rows are not kept
    again = pickle.loads(pickle.dumps(fast))
    np.testing.assert_array_equal(again.log_table(X), fast.log_table(X))
    rows, asked = rng.integers(80, size=300), rng.integers((3, 2), size=(300, 2))
    bound, other = fast.bind(X, positions=[1, 0]), slow.bind(X, positions=[1, 0])
    np.testing.assert_allclose(bound(rows, asked), other(rows, asked), atol=1e-9)


def test_rows_in_chunks_are_rows_at_once(monkeypatch):
    _, X, y, blocks = draw(1, 90, missing=0.2)
    batch = BayesBatch(X, BayesLayout.make(X, MixedNaiveBayes()))
    experts = batch.fit(y, blocks, 5, 3)
    whole = experts.table(batch.rows)
    monkeypatch.setattr("tuplet.local.bayes_experts._CHUNK", 7)
    np.testing.assert_array_equal(experts.table(batch.rows), whole)


def test_columns_far_from_zero_lose_no_digits():
    rng, _, y, blocks = draw(2, 90)
    X = rng.normal(size=(90, 3))
    tables = []
    for shift in (0.0, 2.0**20):
        batch = BayesBatch(X + shift, BayesLayout.make(X + shift, MixedNaiveBayes()))
        tables.append(batch.fit(y, blocks, 5, 3).table(batch.rows))
    np.testing.assert_allclose(*tables, atol=1e-7)


# -- what is left to separate fits -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classifier", "plain"),
    [
        (MixedNaiveBayes(), True),
        (MixedNaiveBayes(categorical=[0], alpha=0.1, variance_floor=1e-9), True),
        (MixedNaiveBayes(alpha=0.0), False),
        (MixedNaiveBayes(variance_floor=np.inf), False),
        (SlowBayes(), False),
    ],
)
def test_what_is_fitted_at_once(classifier, plain):
    assert is_plain_bayes(classifier) is plain


def test_features_that_are_left_to_separate_fits(monkeypatch):
    X = np.array([[0.0, 1.5], [1.0, np.nan], [1.0, 2.5]])
    assert make_batch(MixedNaiveBayes(), X, None) is not None
    assert make_batch(MixedNaiveBayes(), np.array([[0, 3], [1, 4]]), None) is not None
    assert make_batch(MixedNaiveBayes(), pd.DataFrame(X), None) is None
    assert make_batch(MixedNaiveBayes(), X.astype(object), None) is None
    assert make_batch(MixedNaiveBayes(), X * 1e200, None) is None
    assert make_batch(MixedNaiveBayes(), np.where(X > 2, np.inf, X), None) is None
    monkeypatch.setattr(batches, "_MAX_CELLS", 11)  # three rows of a number and three values
    assert make_batch(MixedNaiveBayes(categorical=[0]), X, None) is not None
    assert make_batch(MixedNaiveBayes(categorical=[1]), X, None) is None


# -- what is refused ---------------------------------------------------------------------------------------


def test_rows_that_cannot_be_used_are_refused():
    _, X, y, blocks = draw(3, 60)
    layout = BayesLayout.make(X, MixedNaiveBayes())
    experts = BayesBatch(X, layout).fit(y, blocks, 5, 3)
    for wrong in (X[:, :3], np.where(X > 100, np.inf, X)):
        with pytest.raises(InputError, match="columns of training and no infinity"):
            layout.encode(wrong)
    far = X.copy()
    far[:, 0] = 1e200
    with pytest.raises(InputError, match="too far from all classes"):
        experts.table(layout.encode(far))
    with pytest.raises(InputError, match="categorical must be"):
        BayesLayout.make(X, MixedNaiveBayes(categorical=[99]))

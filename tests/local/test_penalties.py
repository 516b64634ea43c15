"""The choice of a penalty by held-out rows, and the classifier that makes it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from draws import examples
from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    IndependentClassifier,
    PowersetClassifier,
    PriorClassifier,
    RidgeLogistic,
    TreeClassifier,
)
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.local import FamilyScorer, SplitModel, default_estimator, penalties
from tuplet.local.cross_fitting import inner_folds
from tuplet.local.penalties import GRID, Target, choose_for_rows, choose_strength, fold_shares
from tuplet.local.prepared import with_chosen_penalty


def problem(n=90, d=12, k=2, seed=0, pull=1.0):
    """Return standardised features and the codes of a class variable with k classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    logits = pull * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))
    return (X - X.mean(axis=0)) / X.std(axis=0), logits.argmax(axis=1)


def log_prior(C):
    """Log-density of Student's distribution with three degrees of freedom, up to a constant."""
    return stats.t.logpdf(np.log10(C / 0.3) / 0.5, 3)


def slow_score(X, y, C, weight, folds):
    """Log-likelihood of held-out rows by scikit-learn."""
    total = 0.0
    for fold in folds:
        model = LogisticRegression(C=C, max_iter=500)
        model.fit(X[fold.train], y[fold.train], fold.train_weight)
        own = model.predict_log_proba(X[fold.test])[np.arange(len(fold.test)), y[fold.test]]
        total += fold.test_weight @ own
    return total


# -- the choice --------------------------------------------------------------------------------------------


@examples(3)
@given(st.integers(0, 10_000), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.3, 2.0]), st.booleans())
def test_no_penalty_predicts_held_out_rows_much_better(seed, k, pull, weighted):
    X, y = problem(k=k, seed=seed, pull=pull)
    weight = np.ones(len(y)) + weighted * np.random.default_rng(seed).integers(2, size=len(y))
    C = choose_for_rows(X, X, y[:, None], [Target(y, k)], weight)
    folds = inner_folds(X.astype(np.float32), y[:, None], weight, 5)  # they ignore last digits
    held_out = {each: slow_score(X, y, each, weight, folds) for each in {*GRID[3:-2], C}}
    # Fits are rough, have a pseudo-row, and the climb takes the hill next to its start.
    best = max(GRID[3:-2], key=lambda each: held_out[each] + log_prior(each))
    lost = held_out[best] + log_prior(best) - held_out[C] - log_prior(C)
    assert lost < 2.0 or (GRID[0] == C and held_out[best] - held_out[C] < 2.0)


def test_a_hill_below_the_frequencies_is_left(monkeypatch):
    scores = dict.fromkeys(GRID, -10.0) | {3.0: -3.0, GRID[0]: -4.0}  # one column: the climb starts at 3
    monkeypatch.setattr(penalties._Trial, "score", lambda self, C: scores[C])
    y = np.array([0, 1, 0, 1])
    shares = fold_shares(inner_folds(np.eye(4), y[:, None], np.ones(4), 2), np.ones(4))
    chosen = choose_strength(np.zeros((5, 1)), [Target(y, 2)], np.ones(4), shares[:1])
    assert chosen == 3.0
    scores[GRID[0]] = -2.0
    assert choose_strength(np.zeros((5, 1)), [Target(y, 2)], np.ones(4), shares[:1]) == GRID[0]


def test_rows_in_any_order_and_whole_weights_give_the_same_choice():
    X, y = problem(n=120, d=30, seed=3)
    weight = np.random.default_rng(0).integers(0, 4, size=120).astype(float)
    usual = RidgeLogistic().fit(X, y, weight)
    order = np.random.default_rng(1).permutation(120)
    moved = RidgeLogistic().fit(X[order], y[order], weight[order])
    repeated = RidgeLogistic().fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int)))
    assert usual.C_ == moved.C_ == repeated.C_
    np.testing.assert_allclose(usual.predict_proba(X), repeated.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(usual.predict_proba(X), moved.predict_proba(X), atol=1e-3)


def test_noise_has_no_slopes_and_a_signal_has():
    X, y = problem(n=150, d=60, pull=0.0)
    noise = RidgeLogistic().fit(X, y)
    share = np.bincount(y) / len(y)
    assert np.abs(noise.predict_proba(X) - share).max() < 0.05
    X, y = problem(n=150, d=60, pull=3.0)
    assert RidgeLogistic().fit(X, y).C_ > 0.003


def test_many_rows_for_each_column_need_no_choice():
    X, y = problem(n=350, d=1, pull=0.0)
    assert RidgeLogistic().fit(X, y).C_ == 1.0
    assert RidgeLogistic().fit(X[:290], y[:290]).C_ < 1.0


def test_sparse_rows_and_samples_choose_alike(monkeypatch):
    X, y = problem(n=200, d=40, seed=5, pull=0.5)
    X[np.abs(X) < 0.5] = 0.0
    dense = RidgeLogistic(tol=1e-6).fit(X, y)
    csr = RidgeLogistic(tol=1e-6).fit(sparse.csr_array(X), y)
    assert 0.1 <= csr.C_ / dense.C_ <= 10  # other bytes, so other folds
    np.testing.assert_allclose(csr.coef_, RidgeLogistic(csr.C_, tol=1e-6).fit(X, y).coef_, atol=1e-3)
    monkeypatch.setattr(penalties, "LISTED_CELLS", 100)  # as if there were too many for a dense table
    large = RidgeLogistic(tol=1e-6).fit(sparse.csr_array(X), y)
    assert large.C_ == csr.C_
    np.testing.assert_allclose(large.coef_, csr.coef_, atol=1e-3)
    monkeypatch.undo()
    monkeypatch.setattr(penalties, "SAMPLE_SIZE", 100)
    assert 0.1 <= RidgeLogistic().fit(X, y).C_ / dense.C_ <= 10


def test_missing_labels_are_left_out_and_constants_do_not_count():
    X, y = problem(n=150, d=40, seed=2)
    codes = np.column_stack([y, np.zeros((150, 20), dtype=int)])
    codes[::5, 0] = UNKNOWN
    pipeline = make_pipeline(StandardScaler(), RidgeLogistic())
    C = with_chosen_penalty(pipeline, X, codes, [2] * 21, None)[-1].C
    assert 0.003 < C < 10
    assert with_chosen_penalty(pipeline, X, codes[:, 1:], [2] * 20, None)[-1].C == 1.0
    assert pipeline[-1].C == "auto"


# -- the classifier ----------------------------------------------------------------------------------------


@parametrize_with_checks([RidgeLogistic()])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n", [100, 900])
def test_a_fixed_penalty_gives_the_regression_of_scikit_learn(k, n, monkeypatch):
    X, y = problem(n=n, d=6, k=k)
    weight = np.random.default_rng(0).random(n)
    theirs = LogisticRegression(C=0.2, tol=1e-10, max_iter=5000).fit(X, y, weight)
    for cells in (penalties.LISTED_CELLS, 1):  # compiled, and in blocks of rows
        monkeypatch.setattr(penalties, "LISTED_CELLS", cells)
        ours = RidgeLogistic(0.2, tol=1e-9, max_iter=5000).fit(X, y, weight)
        assert ours.C_ == 0.2
        assert ours.coef_.shape == theirs.coef_.shape
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_one_class_and_wrong_settings_are_errors():
    X, y = problem()
    with pytest.raises(InputError, match="one class"):
        RidgeLogistic().fit(X, np.zeros(len(y)))
    for wrong in ("much", 0.0, -1.0):
        with pytest.raises(InputError, match="C"):
            RidgeLogistic(wrong).fit(X, y)


# -- in models ---------------------------------------------------------------------------------------------


def wide(n=120, d=150, m=3):
    """Return wide rows, half of them new, whose labels depend on two factors."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(2 * n, 2))
    X = 0.5 * factors @ rng.normal(size=(2, d)) + rng.normal(size=(2 * n, d))
    Y = (factors @ rng.normal(size=(2, m)) + rng.normal(size=(2 * n, m)) > 0).astype(int)
    return X[:n], Y[:n], X[n:], Y[n:]


@pytest.mark.parametrize(
    "model", [IndependentClassifier, ChainClassifier, PowersetClassifier, TreeClassifier, BayesNetClassifier]
)
def test_wide_tables_are_no_worse_than_the_frequencies(model):
    X, Y, X_new, Y_new = wide()
    prior = PriorClassifier().fit(X, Y).predict_joint(X_new).log_prob(Y_new)
    for features, new in ((X, X_new), (np.random.default_rng(1).normal(size=X.shape), X_new)):
        own = model().fit(features, Y).predict_joint(new).log_prob(Y_new)
        error = (own - prior).std() / np.sqrt(len(prior))
        assert (own - prior).mean() > -max(0.1, 2 * error)


def test_one_penalty_for_all_links_of_a_chain():
    X, Y, *_ = wide()
    model = ChainClassifier().fit(X, Y)
    chosen = {each.classifier_.estimator.C_ for each in model.models_}
    assert len(chosen) == 1
    assert chosen < set(GRID)
    factor = model.models_[-1].columns_.factor
    assert factor == pytest.approx(np.sqrt(max(1.0, penalties.PARENTS_C / chosen.pop())))


def test_searches_and_splits_choose_once():
    X, Y, *_ = wide()
    scorer = FamilyScorer(X, Y, (2, 2, 2), parametrisation="split", score="bic")
    assert {each[-1].C for each in scorer._estimators} < set(GRID)
    model = SplitModel().fit(X, Y[:, :1], Y[:, 1], parent_cards=(2,), child_card=2)
    assert model.prepared_.classifier.C in GRID


def test_an_explicit_regression_keeps_its_penalty():
    X, Y, *_ = wide()
    plain = default_estimator().set_params(ridgelogistic=LogisticRegression())
    for model in (ChainClassifier(plain).fit(X, Y), ChainClassifier(LogisticRegression(C=3.0)).fit(X, Y)):
        for each in model.models_:
            assert type(each.classifier_.estimator) is LogisticRegression
            assert each.columns_.factor == 1.0

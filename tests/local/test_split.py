import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from draws import examples
from tuplet.core.typing import UNKNOWN
from tuplet.joint.base import all_outcomes
from tuplet.local import default_estimator
from tuplet.local.base import configurations
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.logistic import is_plain_logistic
from tuplet.local.many_logistic import ManyLogistic
from tuplet.local.prepared import ManyClassifiers
from tuplet.local.split import SplitModel
from tuplet.local.stacked import StackedModel

CARDS = (2, 3)


class SlowLogistic(LogisticRegression):
    """The same classifier, but not one that the compiled code would recognise."""


def draw(seed, n=80, d=2, k=3, cards=CARDS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    parents = rng.integers(cards, size=(n, len(cards)))
    logits = X @ rng.normal(size=(d, k)) + (parents[:, :1] == 1) * rng.normal(size=k)
    child = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    return rng, X, parents, child


def fit(estimator, X, parents, child, cards=CARDS, k=3, weight=None, **settings):
    model = SplitModel(estimator, **settings)
    return model.fit(X, parents, child, parent_cards=cards, child_card=k, sample_weight=weight)


def precise(kind):
    return default_estimator().set_params(ridgelogistic=kind(tol=1e-10, max_iter=10_000, C=2.0))


# -- one answer, however it is computed --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 3])
def test_compiled_and_separate_fits_agree(seed, k):
    rng, X, parents, child = draw(seed, k=k)
    X[rng.random(X.shape) < 0.1] = np.nan
    parents[rng.random(parents.shape) < 0.05] = UNKNOWN
    child = np.where(rng.random(len(child)) < 0.1, UNKNOWN, child)
    child[configurations(parents, CARDS) == 2] = 1  # a single class
    parents[(parents == 1).all(axis=1), 1] = 0  # an empty configuration
    weight = rng.random(len(child)) * (rng.random(len(child)) < 0.9)
    fast, slow = (fit(precise(kind), X, parents, child, k=k, weight=weight) for kind in
                  (LogisticRegression, SlowLogistic))  # fmt: skip
    assert isinstance(fast.experts_, ManyLogistic)
    assert isinstance(slow.experts_, ManyClassifiers)
    # Both solvers stop at a gradient of 1e-10; their answers differ by that over the curvature.
    np.testing.assert_allclose(fast.log_table(X), slow.log_table(X), atol=1e-5)
    np.testing.assert_allclose(fast.log_proba(X, parents), slow.log_proba(X, parents), atol=1e-5)


@pytest.mark.parametrize("estimator", [None, GaussianNB(), RandomForestClassifier(5, random_state=0)])
def test_every_way_to_ask_gives_the_same_answer(estimator):
    rng, X, parents, child = draw(1)
    parents[(parents == 1).all(axis=1), 1] = 0
    model = fit(estimator, X, parents, child)
    table, bound = model.log_table(X), model.bind(X, positions=[2, 0])
    assert table.shape == (*CARDS, 3, len(X))
    np.testing.assert_allclose(np.exp(table).sum(axis=-2), 1.0)
    for outcome in all_outcomes(CARDS):
        asked = np.tile(outcome, (len(X), 1))
        np.testing.assert_allclose(table[tuple(outcome)].T, model.log_proba(X, asked), rtol=1e-10, atol=1e-12)
    rows = rng.integers(len(X), size=200)
    codes = rng.integers((3, 5, 2), size=(200, 3))
    expected = model.log_proba(X[rows], codes[:, [2, 0]])
    np.testing.assert_allclose(bound(rows, codes), expected, rtol=1e-10, atol=1e-12)


def test_the_answer_is_the_mixture_that_is_promised():
    _, X, parents, child = draw(3, cards=(3,))
    parents[parents == 2] = 1
    model = fit(GaussianNB(), X, parents, child, cards=(3,), strength=2.5)
    n, counts = len(child), np.bincount(child, minlength=3)
    base = (n * GaussianNB().fit(X, child).predict_proba(X) + (counts + 1) / (n + 3)) / (n + 1)
    for value in range(2):
        rows = parents[:, 0] == value
        own = GaussianNB().fit(X[rows], child[rows]).predict_proba(X)
        own = (n * own + (counts + 1) / (n + 3)) / (n + 1)
        expected = (rows.sum() * own + 2.5 * base) / (rows.sum() + 2.5)
        np.testing.assert_allclose(np.exp(model.log_table(X)[value].T), expected, rtol=1e-10)
    np.testing.assert_allclose(np.exp(model.log_table(X)[2].T), base, rtol=1e-10)  # nobody was there


def test_without_parents_it_is_the_other_model_without_parents():
    _, X, _, child = draw(4)
    nobody = np.zeros((len(X), 0), dtype=int)
    other = StackedModel(precise(LogisticRegression)).fit(X, nobody, child, parent_cards=(), child_card=3)
    model = fit(precise(LogisticRegression), X, nobody, child, cards=())
    assert model.log_table(X).shape == (3, len(X))
    np.testing.assert_allclose(model.log_table(X), other.log_table(X), atol=1e-6)
    np.testing.assert_allclose(
        model.bind(X)(np.arange(5), nobody[:5]), other.log_proba(X, nobody)[:5], atol=1e-6
    )


# -- what it learns from -----------------------------------------------------------------------------------


@examples(25)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 25))
def test_no_probability_is_zero(seed, n):
    """Also where configurations, classes or all labels are missing."""
    rng = np.random.default_rng(seed)
    X, parents = rng.normal(size=(n, 2)), rng.integers(-1, CARDS, size=(n, 2))
    child, weight = rng.integers(-1, 3, size=n), rng.random(n) * (rng.random(n) < 0.7)
    new = 10 * rng.normal(size=(6, 2))
    for estimator in (None, MixedNaiveBayes()):
        table = np.exp(fit(estimator, X, parents, child, k=4, weight=weight).log_table(new))
        np.testing.assert_allclose(table.sum(axis=-2), 1.0)
        assert (table > 0).all()


@pytest.mark.parametrize("estimator", [precise(LogisticRegression), GaussianNB()])
def test_rows_without_label_or_weight_teach_nothing(estimator):
    rng, X, parents, child = draw(5)
    weight, keep = rng.random(80), np.arange(80) % 4 > 0
    hidden = np.where(keep | (np.arange(80) % 8 == 0), child, UNKNOWN)
    absent = np.where(keep | (hidden == UNKNOWN), weight, 0.0)
    whole = fit(estimator, X, parents, hidden, weight=absent)
    part = fit(estimator, X[keep], parents[keep], child[keep], weight=weight[keep])
    np.testing.assert_allclose(whole.log_table(X), part.log_table(X), atol=1e-5)


@pytest.mark.parametrize("estimator", [precise(LogisticRegression), GaussianNB()])
def test_weights_are_repetitions(estimator):
    rng, X, parents, child = draw(6)
    counts = rng.integers(3, size=80)
    weighted = fit(estimator, X, parents, child, weight=counts.astype(float))
    again = np.repeat(np.arange(80), counts)
    repeated = fit(estimator, X[again], parents[again], child[again])
    np.testing.assert_allclose(weighted.log_table(X), repeated.log_table(X), atol=1e-5)


def test_rows_with_an_unknown_parent_teach_the_model_without_parents_alone():
    _, X, parents, child = draw(7)
    unknown = np.arange(80) < 20
    parents[unknown, 1] = UNKNOWN
    model = fit(GaussianNB(), X, parents, child)
    part = fit(GaussianNB(), X[~unknown], parents[~unknown], child[~unknown])
    for each, other in zip(model.experts_.classifiers, part.experts_.classifiers, strict=True):
        np.testing.assert_allclose(each.estimator.theta_, other.estimator.theta_)
    nobody = np.zeros((80, 0), dtype=int)
    base = fit(GaussianNB(), X, nobody, child, cards=())
    np.testing.assert_allclose(model.log_proba(X[:20], parents[:20]), base.log_proba(X[:20], nobody[:20]))


@pytest.mark.parametrize(
    "estimator", [KNeighborsClassifier(12), CalibratedClassifierCV(GaussianNB(), cv=4, ensemble=False)]
)
def test_configurations_with_too_few_rows_are_left_to_the_model_without_parents(estimator):
    _, X, parents, child = draw(8, cards=(3,), k=2)
    rare = np.flatnonzero(parents[:, 0] == 2)
    parents[rare[3:]] = 1
    child[rare[:3]] = [0, 1, 0]
    model = fit(estimator, X, parents, child, cards=(3,), k=2)
    assert [each is None for each in model.experts_.classifiers] == [False, False, True]
    base = fit(estimator, X, np.zeros((80, 0), dtype=int), child, cards=(), k=2)
    np.testing.assert_allclose(model.log_table(X)[2], base.log_table(X), rtol=1e-12)


def test_an_estimator_that_fails_on_all_rows_raises_its_error():
    _, X, parents, child = draw(9)
    with pytest.raises(ValueError, match="n_neighbors"):
        fit(KNeighborsClassifier(500), X, parents, child)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_without_features_it_is_frequencies(estimator):
    _, _, parents, child = draw(10, cards=(2,))
    X = np.zeros((80, 0))
    model = fit(estimator, X, parents, child, cards=(2,), strength=1.0)
    total = np.bincount(child, minlength=3)
    base = (total + (total + 1) / 83) / 81
    for value in range(2):
        counts = np.bincount(child[parents[:, 0] == value], minlength=3)
        own = (80 * counts / counts.sum() + (total + 1) / 83) / 81
        expected = (counts.sum() * own + base) / (counts.sum() + 1)
        np.testing.assert_allclose(np.exp(model.log_table(X)[value, :, 0]), expected)


def test_preparation_sees_all_rows_of_the_child():
    _, X, parents, child = draw(11)
    model = fit(make_pipeline(StandardScaler(), GaussianNB()), X, parents, child)
    np.testing.assert_allclose(model.prepared_.steps[0].mean_, X.mean(axis=0))
    assert model.prepared_.Z is None  # the training rows are not kept


def test_other_containers_of_features():
    rng, X, parents, child = draw(12)
    rare = sparse.csr_array(np.where(rng.random(X.shape) < 0.5, 0.0, X))
    scaled = make_pipeline(StandardScaler(with_mean=False), LogisticRegression(tol=1e-10))
    ours, dense = fit(scaled, rare, parents, child), fit(scaled, rare.toarray(), parents, child)
    assert isinstance(ours.experts_, ManyClassifiers)
    np.testing.assert_allclose(ours.log_table(rare), dense.log_table(rare.toarray()), atol=1e-5)
    assert fit(None, rare, parents, child).log_table(rare).shape == (*CARDS, 3, 80)
    frame = pd.DataFrame({"size": X[:, 0], "place": np.where(X[:, 1] > 0, "coast", "hill")})
    chosen = make_column_transformer((OneHotEncoder(), ["place"]), remainder="passthrough")
    logistic = LogisticRegression(tol=1e-10)
    named = fit(make_pipeline(chosen, logistic), frame, parents, child)
    plain = np.column_stack([X[:, 1] > 0, X[:, 1] <= 0, X[:, 0]]).astype(float)
    expected = fit(logistic, plain, parents, child).log_table(plain)
    np.testing.assert_allclose(named.log_table(frame), expected, atol=1e-5)


# -- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classifier", "plain"),
    [
        (LogisticRegression(), True),
        (LogisticRegression(C=0.1, max_iter=5, tol=1e-9, random_state=3), True),
        (LogisticRegression(solver="liblinear"), False),
        (LogisticRegression(class_weight="balanced"), False),
        (LogisticRegression(fit_intercept=False), False),
        (LogisticRegression(l1_ratio=0.5, solver="saga"), False),
        (LogisticRegression(C=np.inf), False),
        (SlowLogistic(), False),
        (GaussianNB(), False),
    ],
)
def test_what_compiled_code_can_fit(classifier, plain):
    assert is_plain_logistic(classifier) is plain

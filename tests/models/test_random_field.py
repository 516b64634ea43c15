"""Conditional random fields: likelihoods by enumeration, gradients by differences, fits and queries."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from draws import examples
from tuplet import IndependentClassifier
from tuplet.core.exceptions import ApproximationWarning, ConvergenceWarning, InputError, IntractableError
from tuplet.core.typing import UNKNOWN
from tuplet.joint.base import all_outcomes
from tuplet.joint.inference import BeliefPropagation, Exact
from tuplet.metrics import joint_log_loss
from tuplet.models.random_field import RandomFieldClassifier
from tuplet.models.random_field import classifier as classifier_module
from tuplet.models.random_field.field import PairwiseField, Scores
from tuplet.models.random_field.likelihood import EliminationLikelihood, HalvesLikelihood, PseudoLikelihood

CARDS = (2, 3, 1, 2, 4)


def problem(seed=0, n=7, cards=CARDS, missing=0.3, linear=False, density=0.7):
    """A field with random edges, random scores, codes with gaps and weights."""
    rng = np.random.default_rng(seed)
    edges = [edge for edge in combinations(range(len(cards)), 2) if rng.random() < density]
    field = PairwiseField(cards, edges)
    scores = Scores(
        rng.normal(size=(n, field.starts[-1])), rng.normal(size=(n if linear else 1, field.edge_starts[-1]))
    )
    codes = np.column_stack([rng.integers(0, card, n) for card in cards])
    codes[rng.random(codes.shape) < missing] = UNKNOWN
    return field, scores, codes, rng.uniform(0.2, 3, n)


def log_weights(field, scores):
    """Log-weights (n, outcomes) of every outcome, factor by factor."""
    outcomes = all_outcomes(field.cards)
    total = np.zeros((len(scores.single), len(outcomes)))
    for factor in field.factors(scores):
        cells = factor.log_table[tuple(outcomes[:, v] for v in factor.scope)]
        total += np.broadcast_to(cells, (len(outcomes), len(total))).T
    return outcomes, total


def enumerated(field, scores, codes, weights):
    """log p(what is known | x), summed over rows."""
    outcomes, total = log_weights(field, scores)
    agree = ((codes[:, None] == outcomes) | (codes[:, None] == UNKNOWN)).all(axis=2)
    known = logsumexp(np.where(agree, total, -np.inf), axis=1)
    return weights @ (known - logsumexp(total, axis=1))


def flat_objective(likelihood, scores):
    """Value and gradient as functions of one vector."""
    cut = scores.single.size

    def unpack(x):
        return Scores(x[:cut].reshape(scores.single.shape), x[cut:].reshape(scores.pair.shape))

    def gradient(x):
        slope = likelihood(unpack(x))[1]
        return np.concatenate([slope.single.ravel(), slope.pair.ravel()])

    return (
        lambda x: likelihood(unpack(x))[0],
        gradient,
        np.concatenate([scores.single.ravel(), scores.pair.ravel()]),
    )


FORMS = [(HalvesLikelihood, False), (EliminationLikelihood, False), (EliminationLikelihood, True)]


# -- likelihoods -------------------------------------------------------------------------------------------


def test_factors_are_the_scores_times_the_indicators():
    field, scores, *_ = problem()
    outcomes, total = log_weights(field, scores)
    indicators = field.indicators(outcomes)
    expected = scores.single @ indicators.T + scores.pair @ field.products(indicators).T
    np.testing.assert_allclose(total, expected, atol=1e-12)


@examples(25)
@given(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.sampled_from([0.0, 0.4]),
    st.sampled_from(FORMS),
)
def test_exact_likelihoods_equal_enumeration(seed, cards, missing, form):
    kind, linear = form
    field, scores, codes, weights = problem(seed, 4, tuple(cards), missing, linear)
    value, _ = kind(field, codes, weights)(scores)
    np.testing.assert_allclose(value, enumerated(field, scores, codes, weights), atol=1e-10)


@pytest.mark.parametrize(("kind", "linear"), [*FORMS, (PseudoLikelihood, False), (PseudoLikelihood, True)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_gradients_equal_finite_differences(kind, linear, missing):
    for seed in range(2):
        field, scores, codes, weights = problem(seed, 4, missing=missing, linear=linear)
        value, gradient, point = flat_objective(kind(field, codes, weights), scores)
        steps = 1e-5 * np.eye(len(point))
        differences = [(value(point + step) - value(point - step)) / 2e-5 for step in steps]
        np.testing.assert_allclose(gradient(point), differences, atol=1e-7)


def test_extreme_scores_lose_nothing():
    """Single scores that all but forbid what pairs all but force: sums run again in log space."""
    field = PairwiseField((2, 2, 2, 2), list(combinations(range(4), 2)))
    scores = Scores(np.array([[-900.0, 900.0, 900.0, -900.0]]), np.full((1, 6), -800.0))
    codes, weights = np.array([[0, 1, 0, UNKNOWN]]), np.ones(1)
    expected = enumerated(field, scores, codes, weights)
    for kind in (HalvesLikelihood, EliminationLikelihood):
        value, slope = kind(field, codes, weights)(scores)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        assert np.isfinite(slope.single).all()


def test_the_pseudo_likelihood_is_the_sum_of_conditionals():
    field, scores, codes, weights = problem(missing=0.0)
    outcomes, total = log_weights(field, scores)
    expected = 0.0
    for i, (code, weight) in enumerate(zip(codes, weights, strict=True)):
        for j in range(len(field.cards)):
            same = (np.delete(outcomes, j, axis=1) == np.delete(code, j)).all(axis=1)
            expected += weight * log_softmax(total[i, same])[code[j]]
    np.testing.assert_allclose(PseudoLikelihood(field, codes, weights)(scores)[0], expected)


# -- fits --------------------------------------------------------------------------------------------------


def labels(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    first = X[:, 0] + rng.normal(size=n) > 0
    second = np.digitize(X[:, 1] + 2 * first + rng.normal(size=n), [0, 1])
    return X, pd.DataFrame(
        {
            "rain": np.where(first, "wet", "dry"),
            "wind": np.array(["calm", "breeze", "storm"])[second],
            "late": second + first > 1,
        }
    )


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_without_edges_it_is_one_logistic_regression_for_each_variable(likelihood):
    X, Y = labels()
    X = StandardScaler().fit_transform(X)
    model = RandomFieldClassifier([], likelihood=likelihood, C=0.7, tol=1e-8).fit(X, Y)
    field = model.predict_joint(X).distribution.components[0]  # without a pseudo-row
    for j, name in enumerate(Y):
        plain = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000).fit(X, Y[name])
        np.testing.assert_allclose(field.marginals()[j], plain.predict_proba(X), atol=1e-5)


def test_the_fit_is_the_maximum_of_the_penalised_likelihood():
    X, Y = labels()
    model = RandomFieldClassifier(C=2.0, tol=1e-7).fit(X, Y)
    assert model.likelihood_ == "exact"
    codes = model.space_.encode(Y)
    scaled = model.scaler_.transform(X)
    ridge = lambda w: ((w.single[:-1] ** 2).sum() + (w.pair**2).sum()) / 4  # noqa: E731
    value = lambda w: enumerated(model.field_, w.scores(scaled), codes, np.ones(150)) - ridge(w)  # noqa: E731
    best, rng = value(model.weights_), np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(5):
            away = model.weights_.flat + size * rng.normal(size=len(model.weights_.flat))
            assert value(model.weights_.like(away)) < best
    field = model.predict_joint(X).distribution.components[0]  # without a pseudo-row
    np.testing.assert_allclose(field.log_prob(codes).sum(), best + ridge(model.weights_))


def sample_field(n, seed=0):
    """Labels from a field whose pair weights are known: a chain of three and one that is alone."""
    rng = np.random.default_rng(seed)
    field = PairwiseField((2, 2, 2, 2), [(0, 1), (1, 2)])
    X = rng.normal(size=(n, 2))
    single = X @ rng.normal(size=(2, 4)) + [0.3, -0.5, 0.1, 0.2]
    outcomes, total = log_weights(field, Scores(single, np.array([[1.5, -1.0]])))
    choice = (np.exp(log_softmax(total, axis=1)).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return X, outcomes[choice]


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_known_weights_come_back_and_independent_pairs_get_none(likelihood):
    X, Y = sample_field(20_000)
    model = RandomFieldClassifier(likelihood=likelihood, C=100).fit(X, Y)
    truth = dict.fromkeys(combinations(range(4), 2), 0.0) | {(0, 1): 1.5, (1, 2): -1.0}
    for edge, table in zip(model.edges_, model.pair_weights_, strict=True):
        assert abs(table[1, 1] - truth[edge]) < 0.15  # about three standard errors
    assert RandomFieldClassifier(2).fit(X, Y).edges_ == [(0, 1), (1, 2)]
    tree = RandomFieldClassifier("tree").fit(X, Y).edges_
    assert len(tree) == 3
    assert {(0, 1), (1, 2)} <= set(tree)


def test_pairs_that_depend_on_x():
    """Two labels agree where x > 0 and differ where x < 0: nothing but a pair weight linear in x knows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    first = rng.random(2000) < 0.5
    Y = np.column_stack([first, np.where(rng.random(2000) < 0.95, first == (x > 0), first != (x > 0))])
    linear = RandomFieldClassifier(pairwise="linear").fit(x[:, None], Y)
    constant = RandomFieldClassifier().fit(x[:, None], Y)
    one, other = (joint_log_loss(Y, model.predict_joint(x[:, None])) for model in (linear, constant))
    assert one < other - 0.3
    assert linear.pair_weights_[0].shape == (2, 2)


@pytest.mark.parametrize("likelihood", ["exact", "pseudo"])
def test_missing_labels_teach_what_they_can(likelihood):
    X, Y = sample_field(6000, seed=3)
    holes = Y.astype(object)
    holes[np.random.default_rng(0).random(Y.shape) < 0.3] = None
    model = RandomFieldClassifier(likelihood=likelihood, C=10).fit(X, holes)
    full = RandomFieldClassifier(C=10).fit(X, Y)
    alone = IndependentClassifier().fit(X, Y)
    loss, best, worst = (joint_log_loss(Y, m.predict_joint(X)) for m in (model, full, alone))
    assert loss - best < 0.35 * (worst - best)


@pytest.mark.parametrize(
    "settings", [{}, {"likelihood": "pseudo"}, {"pairwise": "linear"}, {"edges": "tree"}]
)
def test_weights_are_repeated_rows(settings):
    X, Y = labels(80)
    weights = np.random.default_rng(1).integers(1, 4, 80)
    times = np.repeat(np.arange(80), weights)
    ours = RandomFieldClassifier(**settings).fit(X, Y, sample_weight=weights)
    theirs = RandomFieldClassifier(**settings).fit(X[times], Y.iloc[times])
    np.testing.assert_allclose(
        ours.predict_joint(X).log_prob(Y), theirs.predict_joint(X).log_prob(Y), atol=1e-5
    )


# -- queries and choices -----------------------------------------------------------------------------------


def test_values_that_no_row_shows_keep_the_share_of_a_pseudo_row():
    X, Y = labels(100)
    Y["wind"] = pd.Categorical(Y["wind"], ["calm", "breeze", "storm", "gale"])
    Y["snow"] = 0
    prediction = RandomFieldClassifier().fit(X, Y).predict_joint(X)
    proba = prediction.marginals()
    # Once in the field, and once in the joint distribution.
    np.testing.assert_allclose(proba["snow"][1], 2 / (102 * 101), rtol=0.02)
    assert 0 < proba["wind"]["gale"].max() < 0.05
    total = np.exp(
        prediction.distribution.log_prob(np.repeat(all_outcomes((2, 4, 2, 2))[:, None], 100, axis=1))
    )
    np.testing.assert_allclose(total.sum(axis=0), 1)


@pytest.mark.parametrize("settings", [{}, {"likelihood": "pseudo"}, {"edges": "tree", "pairwise": "linear"}])
def test_constants_alone_leave_nothing_to_learn(settings):
    model = RandomFieldClassifier(**settings).fit(np.arange(18.0)[:, None], [["a", 0]] * 18)
    assert model.edges_ == []
    assert model.predict([[5.0]]).tolist() == [["a", 0]]
    field = model.predict_joint([[5.0]]).distribution.components[0]
    assert field.marginals()[1][0, 1] == pytest.approx(1 / (1 + 20 * 19))  # odds of 1 to (N+k)(N+1)


def test_edges_by_name_and_which_likelihood_is_chosen(monkeypatch):
    X, Y = labels(60)
    model = RandomFieldClassifier([("late", "rain"), (1, 0), ("rain", "late")]).fit(X, Y)
    assert model.edges_ == [(0, 2), (0, 1)]
    assert isinstance(model.engine_, Exact)
    monkeypatch.setattr(classifier_module, "_AUTO_OUTCOMES", 1)
    assert RandomFieldClassifier().fit(X, Y).likelihood_ == "exact"  # by elimination
    monkeypatch.setattr(classifier_module, "_AUTO_CELLS", 1)
    assert RandomFieldClassifier().fit(X, Y).likelihood_ == "pseudo"
    assert RandomFieldClassifier(likelihood="exact").fit(X, Y).likelihood_ == "exact"
    monkeypatch.setattr(classifier_module, "_ENGINE_TABLE", 1)
    assert isinstance(RandomFieldClassifier().fit(X, Y).engine_, BeliefPropagation)


def test_a_field_that_is_too_wide_says_so_and_its_answers_are_marked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = (X[:, :1] + rng.normal(size=(60, 26)) > 0).astype(int)
    with pytest.raises(IntractableError, match="likelihood='pseudo', or fewer edges"):
        RandomFieldClassifier(likelihood="exact").fit(X, Y)
    model = RandomFieldClassifier(C=0.1).fit(X, Y)
    assert model.likelihood_ == "pseudo"
    prediction = model.predict_joint(X[:5])
    assert np.isinf(prediction.distribution.tolerance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(ApproximationWarning):
            assert model.predict(X[:5]).shape == (5, 26)
    tree = RandomFieldClassifier("tree").fit(X, Y)
    assert tree.likelihood_ == "exact"
    assert tree.predict_joint(X).distribution.tolerance == 0


@pytest.mark.parametrize("edge", [("rain", "snow"), (0, 0), (0, 5)])
def test_edges_of_other_variables_are_errors_of_fit(edge):
    X, Y = labels(30)
    with pytest.raises(InputError):
        RandomFieldClassifier([edge]).fit(X, Y)


def test_too_few_iterations_warn():
    X, Y = labels()
    with pytest.warns(ConvergenceWarning, match="L-BFGS has not converged"):
        RandomFieldClassifier(max_iter=2).fit(X, Y)


@pytest.mark.data
def test_all_pairs_of_the_labels_of_yeast_fit_exactly(benchmark_set):
    """14 labels, a clique of 2^14 outcomes: the gain over independent labels is more than two nats."""
    X, Y, split = benchmark_set("yeast")
    train = split["__train__"].to_numpy(bool)
    model = RandomFieldClassifier().fit(X[train], Y[train])
    assert model.likelihood_ == "exact"
    assert len(model.edges_) == 91
    alone = IndependentClassifier().fit(X[train], Y[train])
    losses = [joint_log_loss(Y[~train], m.predict_joint(X[~train])) for m in (model, alone)]
    assert losses[0] < losses[1] - 2


def test_a_wide_table_of_noise_leaves_the_dependence_of_the_labels():
    rng = np.random.default_rng(0)
    X, first = rng.normal(size=(120, 80)), rng.integers(2, size=120)
    Y = np.column_stack([first, first ^ (rng.random(120) < 0.1)])
    model = RandomFieldClassifier().fit(X, Y)
    assert model.C_ < 0.01
    neither = model.predict_joint(rng.normal(size=(50, 80))).prob(np.zeros((50, 2), dtype=int))
    assert np.abs(neither - (Y == 0).all(axis=1).mean()).max() < 0.1

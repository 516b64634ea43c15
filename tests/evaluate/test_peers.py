"""Peers against probabilities multiplied by hand, in every form in which peers return them."""

import inspect
import math
import pickle
import random
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from tuplet.core.exceptions import InputError
from tuplet.evaluate.peers import AveragedChains, PeerClassifier, default_peers
from tuplet.evaluate.peers.classifier import apply_floor
from tuplet.joint.base import all_outcomes
from tuplet.local.multi_output import chain_probabilities, read_outputs
from tuplet.metrics import SCORERS, exact_match, joint_log_loss
from tuplet.testing import check_joint

FLOOR = 1e-4


def _share_of_right_labels(estimator, X, Y):
    return (estimator.predict(X) == Y).mean()


NATIVE = [
    RandomForestClassifier(10, random_state=0),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    MultiOutputClassifier(GaussianNB()),
    # scikit-learn's own score knows no several outputs of more than two labels.
    GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [2, 3]},
        cv=KFold(2),
        scoring=_share_of_right_labels,
    ),
]


def features(n=120, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def binary(n=120, seed=0):
    """A label matrix of three dependent columns."""
    rng = np.random.default_rng(seed)
    X = features(n, seed)
    first = X[:, 0] + rng.normal(size=n) > 0
    second = X[:, 1] + first + rng.normal(size=n) > 0.5
    return X, np.column_stack([first, second, second ^ (rng.random(n) < 0.2)]).astype(int)


def mixed(n=120, seed=0):
    """Columns of 2, 3 and 4 codes."""
    X, Y = binary(n, seed)
    return X, np.column_stack([Y[:, 0], np.digitize(X[:, 1], [-0.5, 0.5]), np.digitize(X[:, 2], [-1, 0, 1])])


def product(tables):
    """Log of the product of floored tables, outcome by outcome, (n, n_outcomes)."""
    outcomes = all_outcomes(tuple(table.shape[1] for table in tables))
    total = np.ones((len(tables[0]), len(outcomes)))
    for j, table in enumerate(tables):
        total *= floored(table)[:, outcomes[:, j]]
    return np.log(total)


def floored(table, floor=FLOOR):
    """The floor row by row and in words: raise one label after the other, scale those above."""
    answer = []
    for row in table:
        low = set()
        while True:
            rest = sum(p for c, p in enumerate(row) if c not in low)
            left = 1 - floor * len(low)
            now = [floor if c in low else p * left / rest for c, p in enumerate(row)]
            new = {c for c, p in enumerate(now) if p < floor}
            if not new:
                break
            low |= new
        answer.append(now)
    return np.array(answer)


def log_table(peer, X):
    joint = peer.predict_joint(X).distribution
    outcomes = all_outcomes(joint.cards)
    return np.stack([joint.log_prob(np.tile(outcome, (len(joint), 1))) for outcome in outcomes], axis=1)


def own(peer, X):
    """What the wrapped estimator gives to somebody who uses it alone: tables of its classes."""
    given = peer.predict_proba(X)
    if isinstance(given, list):
        return given
    matrix = np.asarray(given.todense()) if sparse.issparse(given) else given
    return [np.column_stack([1 - p, p]) for p in matrix.T]


# -- the joint ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", NATIVE, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("data", [binary, mixed])
def test_joint_is_the_product_of_the_floored_probabilities(estimator, data):
    X, Y = data()
    alone = clone(estimator).fit(X[:80], Y[:80])
    peer = PeerClassifier(estimator).fit(X[:80], Y[:80])
    np.testing.assert_allclose(log_table(peer, X[80:]), product(own(alone, X[80:])), rtol=1e-9)
    np.testing.assert_array_equal(peer.predict(X[80:]), alone.predict(X[80:]))
    check_joint(peer.predict_joint(X[80:84]).distribution)


@pytest.mark.parametrize(
    "estimator",
    [
        ClassifierChain(GaussianNB()),
        make_pipeline(StandardScaler(), ClassifierChain(LogisticRegression(), order=[2, 0, 1])),
        ClassifierChain(LogisticRegression(), chain_method="predict_proba"),
        MLPClassifier(max_iter=2000, tol=1e-2, random_state=0),
    ],
    ids=["chain", "ordered chain", "soft chain", "mlp"],
)
def test_matrix_of_positive_probabilities_is_read(estimator):
    X, Y = binary()
    alone = clone(estimator).fit(X[:80], Y[:80])
    peer = PeerClassifier(estimator).fit(X[:80], Y[:80])
    np.testing.assert_allclose(log_table(peer, X[80:]), product(own(alone, X[80:])), rtol=1e-9)
    np.testing.assert_array_equal(peer.predict(X[80:]), alone.predict(X[80:]))


def test_sparse_features_reach_the_peer():
    X, Y = binary()
    X = np.where(X > 0.5, X, 0.0)
    for estimator in (MultiOutputClassifier(LogisticRegression()), ClassifierChain(LogisticRegression())):
        dense = PeerClassifier(estimator).fit(X[:80], Y[:80])
        thin = PeerClassifier(estimator).fit(sparse.csr_array(X[:80]), Y[:80])
        np.testing.assert_allclose(
            log_table(dense, X[80:]), log_table(thin, sparse.csr_array(X[80:])), atol=1e-3
        )


def test_frames_with_text_and_gaps_are_encoded_for_answers_and_probabilities_alike():
    X, Y = mixed()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["b"] = np.where(X[:, 1] > 0, "high", "low")
    frame.loc[::7, "c"] = np.nan
    peer = PeerClassifier(MultiOutputClassifier(LogisticRegression())).fit(frame[:80], Y[:80])
    np.testing.assert_array_equal(peer.predict(frame[80:]), peer.predict_joint(frame[80:]).decide("hamming"))


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=6).filter(lambda row: sum(row) > 0.01),
    st.sampled_from([0.0, 1e-4, 0.01, 0.1]),
)
def test_floor_keeps_a_distribution_and_its_order(row, floor):
    table = np.array([row]) / sum(row)
    lifted = apply_floor(table, floor)
    assert lifted.sum() == pytest.approx(1)
    assert lifted.min() >= floor
    np.testing.assert_allclose(lifted, floored(table, floor), rtol=1e-12)
    assert (lifted[table < floor] == floor).all()
    below = table[:, :, None] <= table[:, None]
    assert (lifted[:, :, None] <= lifted[:, None] + 1e-15)[below].all()


def test_an_impossible_label_costs_the_floor_and_no_more():
    X, Y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([[0, 0], [0, 0], [1, 1], [1, 0]])
    peer = PeerClassifier(KNeighborsClassifier(2)).fit(X, Y)
    prediction = peer.predict_joint([[1.0]])
    # p(first = 0) = 0 is lifted, p(second = 0) = 1/2 is not.
    assert prediction.log_prob([[0, 0]])[0] == pytest.approx(math.log(FLOOR) + math.log(0.5))
    assert prediction.log_prob([[1, 0]])[0] == pytest.approx(math.log(1 - FLOOR) + math.log(0.5))
    assert joint_log_loss([[0, 0]], prediction) == pytest.approx(-math.log(FLOOR / 2))


def test_rows_with_a_lifted_true_label_are_counted():
    X, Y = mixed()
    peer = PeerClassifier(KNeighborsClassifier(5)).fit(X[:60], Y[:60])
    alone = KNeighborsClassifier(5).fit(X[:60], Y[:60])
    true = np.stack([table[np.arange(60), Y[60:, j]] for j, table in enumerate(alone.predict_proba(X[60:]))])
    prediction = peer.predict_joint(X[60:])
    expected = (true < FLOOR).any(axis=0).sum()
    assert 0 < expected < 60
    assert peer.n_floored(Y[60:], prediction) == expected
    clear = peer.set_params(floor=0.0).predict_joint(X[60:])
    assert peer.n_floored(Y[60:], clear) == expected
    assert np.isneginf(clear.log_prob(Y[60:])).sum() == expected


def test_unseen_and_missing_labels_are_counted_as_the_log_loss_charges_them():
    X, Y = np.arange(6.0)[:, None], pd.DataFrame({"a": list("xxxyyy"), "b": list("uvuvuv")})
    peer = PeerClassifier(MultiOutputClassifier(GaussianNB())).fit(X, Y)
    prediction = peer.predict_joint([[0.0], [0.0], [0.0]])
    truth = pd.DataFrame({"a": ["x", "z", None], "b": ["u", "u", "u"]})
    assert peer.n_floored(truth, prediction) == 1


@pytest.mark.parametrize("floor", [0.34, 0.99])
def test_impossible_floor_is_refused(floor):
    X = features(9)
    Y = np.column_stack([np.arange(9) % 3, np.arange(9) % 2])
    with pytest.raises(InputError, match="floor must be less than 1 / 3"):
        PeerClassifier(DecisionTreeClassifier(), floor=floor).fit(X, Y)


# -- labels that a fold lacks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        MultiOutputClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        AveragedChains(n_chains=2),
    ],
    ids=lambda e: type(e).__name__,
)
def test_constant_label_is_certain_up_to_the_floor(estimator):
    X, Y = binary()
    Y = np.column_stack([Y[:, 0], np.ones(len(Y), int), Y[:, 1]])
    peer = PeerClassifier(estimator).fit(X[:80], Y[:80])
    assert (peer.predict(X[80:])[:, 1] == 1).all()
    np.testing.assert_allclose(peer.predict_proba(X[80:])[1], [[FLOOR, 1 - FLOOR]] * 40)
    without = PeerClassifier(estimator).fit(X[:80], Y[:80, [0, 2]])
    np.testing.assert_array_equal(peer.predict(X[80:])[:, [0, 2]], without.predict(X[80:]))


def test_only_constant_labels_need_no_peer():
    peer = PeerClassifier(MultiOutputClassifier(LogisticRegression())).fit(features(5), [["a", 1]] * 5)
    assert peer.estimator_ is None
    assert peer.predict(features(2)).tolist() == [["a", 1]] * 2
    assert peer.predict_joint(features(2)).log_prob([["a", 1]] * 2).tolist() == pytest.approx(
        [math.log1p(-FLOOR)] * 2
    )


def test_declared_categories_without_rows_get_the_floor():
    X, Y = mixed()
    wind = pd.Categorical(np.array(["calm", "storm", "storm"])[Y[:, 1]], ["calm", "breeze", "storm"])
    frame = pd.DataFrame({"rain": Y[:, 0], "wind": wind, "sky": Y[:, 2]})
    compact = np.column_stack([Y[:, 0], np.minimum(Y[:, 1], 1), Y[:, 2]])
    for estimator in (ClassifierChain(GaussianNB()), MultiOutputClassifier(GaussianNB())):
        peer = PeerClassifier(estimator).fit(X[:80], frame[:80])
        dense = PeerClassifier(estimator).fit(X[:80], compact[:80])
        table = peer.predict_proba(X[80:])[1]
        np.testing.assert_allclose(table[:, 1], FLOOR, rtol=1e-12)
        seen = table[:, [0, 2]] / (1 - FLOOR)
        np.testing.assert_allclose(seen, dense.predict_proba(X[80:])[1], atol=2 * FLOOR)
        assert set(peer.predict(X[80:])["wind"]) <= {"calm", "storm"}


@pytest.mark.parametrize("shape", ["list", "column"])
def test_single_variable(shape):
    X, Y = mixed()
    y = Y[:, 1] if shape == "list" else Y[:, [1]]
    alone = GaussianNB().fit(X[:80], Y[:80, 1])
    for estimator in (GaussianNB(), MultiOutputClassifier(GaussianNB()), ClassifierChain(GaussianNB())):
        peer = PeerClassifier(estimator).fit(X[:80], y[:80])
        np.testing.assert_allclose(log_table(peer, X[80:]), product([alone.predict_proba(X[80:])]), rtol=1e-9)
        assert peer.predict(X[80:]).shape == y[80:].shape
        np.testing.assert_array_equal(np.ravel(peer.predict(X[80:])), alone.predict(X[80:]))


def test_rows_with_missing_labels_are_left_out():
    X, Y = binary()
    holes = pd.DataFrame(Y).astype("Int64")
    holes.iloc[:30, 1] = pd.NA
    peer = PeerClassifier(MultiOutputClassifier(GaussianNB())).fit(X, holes)
    full = PeerClassifier(MultiOutputClassifier(GaussianNB())).fit(X[30:], Y[30:])
    assert peer.n_complete_ == 90
    np.testing.assert_array_equal(log_table(peer, X), log_table(full, X))
    holes.iloc[:, 2] = pd.NA
    holes.iloc[0, 2], holes.iloc[1, 2] = 0, 1
    with pytest.raises(InputError, match="every row of y lacks one"):
        PeerClassifier(MultiOutputClassifier(GaussianNB())).fit(X, holes)


# -- chains ------------------------------------------------------------------------------------------------


def loop(chain, X):
    """Chain by chain rule, a row and a link at a time."""
    tables = [[] for _ in chain.estimators_]
    for x in X:
        before = []
        for variable, link in zip(chain.order_, chain.estimators_, strict=True):
            inputs = np.array([[*x, *before]])
            tables[variable].append(link.predict_proba(inputs)[0])
            before.append(link.predict(inputs)[0])
    return [np.array(table) for table in tables]


@pytest.mark.parametrize("order", [None, [2, 0, 1], "random"])
def test_chain_of_several_categories_is_walked_along_its_own_answers(order):
    X, Y = mixed()
    chain = ClassifierChain(GaussianNB(), order=order, random_state=3).fit(X[:80], Y[:80])
    for ours, theirs in zip(chain_probabilities(chain, X[80:]), loop(chain, X[80:]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    peer = PeerClassifier(ClassifierChain(GaussianNB(), order=order, random_state=3)).fit(X[:80], Y[:80])
    np.testing.assert_allclose(log_table(peer, X[80:]), product(loop(chain, X[80:])), rtol=1e-9)
    np.testing.assert_array_equal(peer.predict(X[80:]), chain.predict(X[80:]))


def test_walk_of_a_binary_chain_is_its_predict_proba():
    X, Y = binary()
    chain = ClassifierChain(LogisticRegression(), order=[1, 2, 0]).fit(X[:80], Y[:80])
    walked = np.column_stack([table[:, 1] for table in chain_probabilities(chain, X[80:])])
    np.testing.assert_allclose(walked, chain.predict_proba(X[80:]), rtol=1e-9)


def test_averaged_chains_are_the_recipe():
    X, Y = binary()
    recipe = [ClassifierChain(LogisticRegression(), order="random", random_state=i) for i in range(10)]
    mean = np.mean([chain.fit(X[:80], Y[:80]).predict_proba(X[80:]) for chain in recipe], axis=0)
    averaged = AveragedChains(estimator=LogisticRegression()).fit(X[:80], Y[:80])
    ours = np.column_stack([table[:, 1] for table in averaged.predict_proba(X[80:])])
    np.testing.assert_allclose(ours, mean, rtol=1e-9)
    np.testing.assert_array_equal(averaged.predict(X[80:]), mean >= 0.5)


def test_averaged_chains_of_several_categories():
    X, Y = mixed()
    averaged = AveragedChains(n_chains=3, estimator=GaussianNB(), random_state=5).fit(X[:80], Y[:80])
    loops = [loop(chain, X[80:]) for chain in averaged.chains_]
    for j, table in enumerate(averaged.predict_proba(X[80:])):
        np.testing.assert_allclose(table, sum(tables[j] for tables in loops) / 3, rtol=1e-9)
    assert averaged.predict(X[80:]).shape == (40, 3)


# -- decisions ---------------------------------------------------------------------------------------------


class Contrary(ClassifierMixin, BaseEstimator):
    """A peer whose answers are not its most probable labels."""

    def fit(self, X, Y):
        self.width_ = Y.shape[1]
        return self

    def predict_proba(self, X):
        return np.full((len(X), self.width_), 0.2)

    def predict(self, X):
        return np.ones((len(X), self.width_))


def test_decisions_are_the_peers_own_for_every_scorer():
    X, Y = binary()
    peer = PeerClassifier(Contrary()).fit(X, Y)
    assert "loss" not in inspect.signature(peer.predict).parameters
    ones = np.ones_like(Y)
    np.testing.assert_array_equal(peer.predict(X), ones)
    assert SCORERS["exact_match"](peer, X, Y) == exact_match(Y, ones) == peer.score(X, Y)
    assert SCORERS["hamming_score"](peer, X, Y) == pytest.approx((Y == 1).mean())
    assert (peer.predict_joint(X).decide("subset") == 0).all()


# -- errors ------------------------------------------------------------------------------------------------


def test_binary_peer_says_which_variable_has_more_labels():
    X, Y = mixed()
    frame = pd.DataFrame(Y, columns=["rain", "wind", "sky"])
    with pytest.raises(InputError, match=r"Contrary takes binary class variables only, but 'wind' has 3"):
        PeerClassifier(Contrary(), multiclass=None).fit(X, frame)
    with pytest.raises(InputError, match=r"probabilities of 2 labels of 'wind', which has 3"):
        PeerClassifier(Contrary()).fit(X, frame).predict_joint(X)


def test_other_estimator_for_more_labels():
    peer = PeerClassifier(Contrary(), multiclass=MultiOutputClassifier(GaussianNB()))
    assert isinstance(clone(peer).fit(*binary()).estimator_, Contrary)
    assert isinstance(clone(peer).fit(*mixed()).estimator_, MultiOutputClassifier)


class Careless(Contrary):
    """A peer that returns whatever it was told to."""

    def __init__(self, given):
        self.given = given

    def predict_proba(self, X):
        return self.given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.full((2, 3), np.nan), "not probabilities"),
        (np.full((2, 3), 1.4), "not probabilities"),
        ([np.full((2, 2), 0.5)] * 2, "cannot be read"),
        ([np.full((2, 2), 0.5)] * 2 + [np.ones(2)], r"tables of the shapes \(2, 2\), \(2, 2\), \(2,\)"),
        ([np.full((2, 2), 0.4)] * 3, "not probabilities"),
        (np.full((2, 5), 0.5), r"shape \(2, 5\)"),
    ],
)
def test_strange_probabilities_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        read_outputs(Careless(given), np.zeros((2, 1)), 3)


def test_peers_need_a_column_for_each_label():
    X, Y = binary()
    peer = PeerClassifier(Careless([np.full((2, 2), 0.5)] * 2 + [np.ones((2, 1))])).fit(X, Y)
    with pytest.raises(InputError, match=r"probabilities of 1 labels of .*, which has 2"):
        peer.predict_joint(X[:2])


def test_rounding_beyond_one_is_no_error():
    outputs = read_outputs(Careless(np.array([[1 + 1e-12, 0.5]])), np.zeros((1, 1)), 2)
    assert outputs[0].table.tolist() == [[0.0, 1.0]]


def test_outputs_have_the_labels_of_their_columns():
    X, Y = mixed()
    chain = ClassifierChain(GaussianNB(), order=[2, 0, 1]).fit(X, Y)
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    for classifier in (chain, make_pipeline(StandardScaler(), chain).fit(X, Y), forest):
        outputs = read_outputs(classifier, X, 3)
        for output, column in zip(outputs, Y.T, strict=True):
            np.testing.assert_array_equal(output.labels, np.unique(column))
            assert output.table.shape == (len(X), len(np.unique(column)))
    constant = GaussianNB().fit(X, Y[:, 0] * 0)
    assert read_outputs(constant, X[:1], 1)[0].table.tolist() == [[1.0]]


def test_peer_without_probabilities_or_weights_says_so():
    X, Y = binary()
    with pytest.raises(InputError, match="predict_proba"):
        PeerClassifier(MultiOutputClassifier(LinearSVC())).fit(X, Y)
    with pytest.raises(InputError, match="ClassifierChain takes no sample_weight"):
        PeerClassifier(ClassifierChain(LogisticRegression())).fit(X, Y, np.ones(len(X)))


def test_weights_reach_the_peer():
    X, Y = binary()
    weights = np.repeat([1.0, 3.0], 60)
    alone = RandomForestClassifier(5, random_state=0).fit(X, Y, weights)
    peer = PeerClassifier(RandomForestClassifier(5, random_state=0)).fit(X, Y, weights)
    np.testing.assert_allclose(log_table(peer, X), product(alone.predict_proba(X)), rtol=1e-9)


# -- conventions -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        PeerClassifier(MultiOutputClassifier(LogisticRegression())),
        PeerClassifier(DecisionTreeClassifier(random_state=0)),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def small(peer):
    """The same peer with few trees and chains."""
    sizes = {"n_estimators": 10, "iterations": 20, "n_chains": 3}
    found = {name: sizes.get(name.rpartition("__")[2]) for name in peer.get_params()}
    return peer.set_params(**{name: size for name, size in found.items() if size is not None})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the MLP as its users leave it
@pytest.mark.parametrize("name", default_peers())
def test_default_peer_clones_pickles_and_predicts(name):
    X, Y = binary(60)
    peer = clone(default_peers()[name])
    assert repr(peer) == repr(default_peers()[name])
    peer = small(peer).fit(X, Y)
    again = pickle.loads(pickle.dumps(peer))
    prediction = again.predict_joint(X)
    np.testing.assert_array_equal(prediction.distribution.log_prob(Y), peer.predict_joint(X).log_prob(Y))
    assert prediction.distribution.log_prob(Y).min() >= 3 * math.log(FLOOR) - 1e-9
    assert exact_match(Y, again.predict(X)) > 0.3
    assert "each at least 0.0001" in repr(prediction)


def test_default_peers_refuse_or_take_more_labels():
    X, Y = mixed(60)
    refused = []
    for name, peer in default_peers().items():
        try:
            small(peer).fit(X, Y)
        except InputError as error:
            assert "takes binary class variables only, but 'y1' has 3 labels" in str(error)  # noqa: PT017
            refused.append(name)
        else:
            assert peer.predict_joint(X).distribution.cards == (2, 3, 4)
            assert exact_match(Y, peer.predict(X)) > 0.2
    always = {"MLP"}
    assert (
        always
        <= set(refused)
        <= always
        | {
            "MLkNN",
            "LabelPowerset(logistic)",
            "LabelPowerset(forest)",
            "RAkELd(logistic)",
        }
    )


def test_peers_without_the_optional_packages(monkeypatch):
    plain = default_peers(optional=False)
    for module in ("skmultilearn", "skmultilearn.adapt", "catboost", "xgboost"):
        monkeypatch.setitem(sys.modules, module, None)
    assert list(default_peers()) == list(plain)


# -- optional packages -------------------------------------------------------------------------------------


def test_scikit_multilearn_is_read_from_its_sparse_matrices():
    pytest.importorskip("skmultilearn")
    from skmultilearn.adapt import MLkNN
    from skmultilearn.problem_transform import LabelPowerset

    X, Y = binary()
    for estimator in (MLkNN(k=5), LabelPowerset(LogisticRegression())):
        alone = clone(estimator).fit(X[:80], Y[:80])
        peer = PeerClassifier(estimator, multiclass=None).fit(X[:80], Y[:80])
        np.testing.assert_allclose(log_table(peer, X[80:]), product(own(alone, X[80:])), rtol=1e-9)
        np.testing.assert_array_equal(peer.predict(X[80:]), alone.predict(X[80:]).toarray())


def test_global_generators_are_seeded_and_put_back():
    pytest.importorskip("skmultilearn")
    X, Y = binary()
    Y = np.column_stack([Y, Y[:, ::-1] ^ (X > 1)])
    peer = default_peers(random_state=4)["RAkELd(logistic)"]
    random.seed(11)
    expected = random.random()
    random.seed(11)
    sets = [clone(peer).fit(X, Y).estimator_.classifier_.partition_.tolist() for _ in range(3)]
    assert random.random() == expected
    assert sets[0] == sets[1] == sets[2]


def test_catboost_and_xgboost_take_their_own_form_for_label_matrices():
    pytest.importorskip("catboost")
    pytest.importorskip("xgboost")
    X, Y = binary()
    for name, iterations in (("CatBoost", "iterations"), ("XGBoost", "n_estimators")):
        peer = default_peers()[name].set_params(**{f"estimator__{iterations}": 15}).fit(X[:80], Y[:80])
        alone = clone(peer.estimator).fit(X[:80], Y[:80])
        np.testing.assert_allclose(log_table(peer, X[80:]), product(own(alone, X[80:])), rtol=1e-5)
        np.testing.assert_array_equal(peer.predict(X[80:]), alone.predict(X[80:]))
        assert not isinstance(peer.estimator_, MultiOutputClassifier)


def test_dummy_is_a_peer_too():
    X, Y = mixed()
    peer = PeerClassifier(DummyClassifier(strategy="prior")).fit(X, Y)
    expected = product([np.tile(np.bincount(column) / len(Y), (len(Y), 1)) for column in Y.T])
    np.testing.assert_allclose(log_table(peer, X), expected, rtol=1e-9)


@pytest.mark.data
def test_forest_reproduces_what_was_measured_on_emotions(benchmark_set):
    X, Y, auxiliary = benchmark_set("emotions")
    train = auxiliary["__train__"].to_numpy(bool)
    peer = default_peers(optional=False)["RandomForest"].fit(X[train], Y[train])
    prediction = peer.predict_joint(X[~train])
    alone = RandomForestClassifier(random_state=0).fit(X[train].to_numpy(), Y[train].to_numpy())
    true = Y[~train].to_numpy()
    tables = alone.predict_proba(X[~train].to_numpy())
    clipped = np.maximum([table[np.arange(len(true)), true[:, j]] for j, table in enumerate(tables)], FLOOR)
    by_hand = np.log(clipped).sum(axis=0).mean()
    # Clipped without a care for the sum: at most six times the floor apart.
    assert -joint_log_loss(Y[~train], prediction) == pytest.approx(by_hand, abs=6 * FLOOR)

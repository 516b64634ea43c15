import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics as theirs
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from draws import examples
from tuplet import metrics
from tuplet.core.exceptions import ApproximationWarning, InputError
from tuplet.joint import Atoms, Mode
from tuplet.joint.base import all_outcomes
from tuplet.losses import LOSSES, Abstain, CostMatrix, FBeta, Hamming, Jaccard, SubsetZeroOne
from tuplet.models import DecisionClassifier, IndependentClassifier, PowersetClassifier
from tuplet.prediction import JointPrediction
from tuplet.space import ClassSpace, declare_order
from tuplet.space.containers import require_same_order

DECISION_METRICS = {
    name: getattr(metrics, name)
    for name in (
        "exact_match",
        "hamming_loss",
        "hamming_score",
        "instance_f1",
        "jaccard_score",
        "micro_f1",
        "macro_f1",
        "macro_precision",
        "macro_recall",
    )
}
PROBABILITY_METRICS = {
    "joint_log_loss": metrics.joint_log_loss,
    "median joint_log_loss": lambda *a, **k: metrics.joint_log_loss(*a, reduce="median", **k),
    "marginal_log_loss": metrics.marginal_log_loss,
    "brier_score": metrics.brier_score,
    "top_k_accuracy": lambda *a, **k: metrics.top_k_accuracy(*a, k=2, **k),
    "mode ece": lambda *a, **k: metrics.expected_calibration_error(metrics.mode_calibration(*a, **k)),
    "marginal ece": lambda *a, **k: metrics.expected_calibration_error(metrics.marginal_calibration(*a, **k)),
}


# -- decisions: binary label matrices give the numbers of scikit-learn -------------------------------------

THEIRS = {
    "exact_match": lambda *a, **k: theirs.accuracy_score(*a, **k),
    "hamming_loss": lambda *a, **k: theirs.hamming_loss(*a, **k),
    "instance_f1": lambda *a, **k: theirs.f1_score(*a, average="samples", zero_division=1, **k),
    "jaccard_score": lambda *a, **k: theirs.jaccard_score(*a, average="samples", zero_division=1, **k),
    "micro_f1": lambda *a, **k: theirs.f1_score(*a, average="micro", zero_division=0, **k),
    "macro_f1": lambda *a, **k: theirs.f1_score(*a, average="macro", zero_division=0, **k),
    "macro_precision": lambda *a, **k: theirs.precision_score(*a, average="macro", zero_division=0, **k),
    "macro_recall": lambda *a, **k: theirs.recall_score(*a, average="macro", zero_division=0, **k),
}


@pytest.mark.parametrize("name", THEIRS)
@examples(25)
@given(data=st.data())
def test_binary_labels_give_the_numbers_of_scikit_learn(data, name):
    n, m = data.draw(st.integers(1, 12)), data.draw(st.integers(2, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**20)))
    rate = data.draw(st.sampled_from([0.05, 0.5, 0.95]))  # constant columns too
    Y_true, Y_pred = (rng.random((2, n, m)) < rate).astype(int)
    weight = rng.integers(1, 4, n) if data.draw(st.booleans()) else None
    expected = THEIRS[name](Y_true, Y_pred, sample_weight=weight)
    assert DECISION_METRICS[name](Y_true, Y_pred, sample_weight=weight) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["macro_f1", "macro_precision", "macro_recall"])
def test_macro_of_one_many_valued_variable_is_that_of_scikit_learn(name):
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.choice(list("abcd"), (2, 50))
    function = getattr(theirs, {"macro_f1": "f1_score"}.get(name, name.removeprefix("macro_") + "_score"))
    ours = DECISION_METRICS[name](y_true, y_pred)
    assert ours == pytest.approx(function(y_true, y_pred, average="macro"))


@examples(25)
@given(st.integers(0, 2**20))
def test_many_valued_labels_agree_with_sets_of_pairs(seed):
    rng = np.random.default_rng(seed)
    cards = (2, 3, 4, 2)
    space = ClassSpace(tuple("abcd"), tuple(np.arange(k) for k in cards))
    Y_true, Y_pred = (np.column_stack([rng.integers(0, k, 9) for k in cards]) for _ in range(2))
    Y_true = np.where(rng.random(Y_true.shape) < 0.2, np.nan, Y_true)

    def row_sets(i):
        known = [j for j in range(4) if not np.isnan(Y_true[i, j])]
        return ({(j, Y[i, j]) for j in known if cards[j] > 2 or Y[i, j] == 1} for Y in (Y_true, Y_pred))

    f1, index, total = [], [], np.zeros(2)
    for i in np.flatnonzero(~np.isnan(Y_true).all(axis=1)):
        true, pred = row_sets(i)
        f1.append(2 * len(true & pred) / (len(true) + len(pred)) if true or pred else 1)
        index.append(len(true & pred) / len(true | pred) if true or pred else 1)
        total += 2 * len(true & pred), len(true) + len(pred)
    assert metrics.instance_f1(Y_true, Y_pred, space=space) == pytest.approx(np.mean(f1))
    assert metrics.jaccard_score(Y_true, Y_pred, space=space) == pytest.approx(np.mean(index))
    assert metrics.micro_f1(Y_true, Y_pred, space=space) == pytest.approx(total[0] / total[1])


def test_metrics_and_losses_are_the_same_measure():
    rng = np.random.default_rng(0)
    Y_true, Y_pred = rng.integers(0, 2, (2, 60, 4))
    for metric, loss in (
        (metrics.exact_match, SubsetZeroOne()),
        (metrics.hamming_score, Hamming()),
        (metrics.instance_f1, FBeta()),
        (metrics.jaccard_score, Jaccard()),
    ):
        assert metric(Y_true, Y_pred) == pytest.approx(1 - loss.value(Y_true, Y_pred).mean())
        assert metric(Y_true, Y_pred) == pytest.approx(1 - metrics.mean_loss(Y_true, Y_pred, loss))


# -- decisions: containers, gaps, weights ------------------------------------------------------------------


@pytest.mark.parametrize("metric", DECISION_METRICS.values())
def test_containers_do_not_matter(metric):
    rng = np.random.default_rng(1)
    true, pred = rng.integers(0, 2, (2, 20, 3))
    expected = metric(true, pred)
    frame = pd.DataFrame(pred, columns=list("abc"))
    assert metric(pd.DataFrame(true, columns=list("abc")), frame[["c", "a", "b"]]) == expected
    assert metric(pl.DataFrame(true, schema=list("abc")), frame) == expected
    assert metric(sparse.csr_array(true), sparse.csr_array(pred)) == expected
    assert metric(true.tolist(), frame) == expected
    assert metric(true.astype(bool), pred) == expected


def test_labels_on_one_side_only_are_labels_too():
    assert metrics.exact_match([["a", 1], ["a", 1]], [["b", 1], ["a", 1]]) == 0.5
    assert metrics.macro_f1([1, 1], [0, 1]) == pytest.approx(2 / 3)
    assert metrics.macro_f1([1, 1], [1, 1]) == 1.0
    assert metrics.macro_f1([0, 0], [0, 0]) == 0.0
    declared = pd.Series(["no", "no"], dtype=pd.CategoricalDtype(["yes", "no"]))
    assert metrics.macro_recall(declared, declared) == 1.0


def test_the_space_decides_what_is_binary():
    space = ClassSpace(("size",), (np.array(["s", "m", "l"]),))
    Y_true, Y_pred = ["s", "m"], ["s", "s"]
    assert metrics.instance_f1(Y_true, Y_pred, space=space) == 0.5
    assert metrics.instance_f1(Y_true, Y_pred) == 0.5  # "s" after "m": the row "m", "s" has a false positive
    assert metrics.micro_f1(Y_true, Y_pred, space=space) == 0.5
    assert metrics.micro_f1(Y_true, Y_pred) == pytest.approx(2 / 3)
    assert metrics.exact_match(["xl", "m"], ["s", "m"], space=space) == 0.5


def test_missing_truth_is_left_out_and_missing_answers_are_wrong():
    Y_true = pd.DataFrame({"a": ["x", "y", None, None], "b": [1, None, None, 0]})
    Y_pred = pd.DataFrame({"a": ["x", "x", "x", "y"], "b": [1, 1, 1, None]})
    assert metrics.exact_match(Y_true, Y_pred) == pytest.approx(1 / 3)
    assert metrics.hamming_loss(Y_true, Y_pred) == pytest.approx(2 / 3)
    # a: "y" is the positive of two rows, never found; b: one positive, found.
    assert metrics.macro_recall(Y_true, Y_pred) == 0.5
    nothing = pd.DataFrame({"a": [None, None], "b": [None, None]})
    space = ClassSpace.from_labels(Y_true)
    for metric in (metrics.exact_match, metrics.instance_f1, metrics.macro_f1):
        assert np.isnan(metric(nothing, Y_pred.iloc[:2], space=space))


@pytest.mark.parametrize("metric", DECISION_METRICS.values())
def test_weights_count_rows_of_decisions(metric):
    rng = np.random.default_rng(2)
    Y_true, Y_pred = rng.integers(0, 3, (2, 15, 3))
    times = rng.integers(0, 3, 15)
    space = ClassSpace.from_labels(np.vstack([Y_true, Y_pred]))
    repeated = metric(np.repeat(Y_true, times, 0), np.repeat(Y_pred, times, 0), space=space)
    assert metric(Y_true, Y_pred, sample_weight=times, space=space) == pytest.approx(repeated)


# -- what does not belong together -------------------------------------------------------------------------


@pytest.mark.parametrize("space", [None, ClassSpace.from_labels(pd.DataFrame({"cultivar": [0, 1, 2]}))])
def test_text_never_matches_numbers(space):
    Y = pd.DataFrame({"cultivar": [0, 1, 2, 1]})
    message = r"of 'cultivar' in Y_pred \(0, 1, 2\) occurs in Y_true \('0', '1', '2'\); are the types"
    with pytest.raises(InputError, match=message):
        metrics.exact_match(Y.astype(str), Y, space=space)
    with pytest.raises(InputError, match=r"\('0', '1', '2'\) occurs in Y_true \(0, 1, 2\)"):
        metrics.exact_match(Y, pl.DataFrame(Y.astype(str)), space=space)
    with pytest.raises(InputError, match=r"Y_pred \(True\) occurs in Y_true \('0', '1', '2'\)"):
        metrics.macro_f1(Y.astype(str), Y > -1, space=space)
    assert metrics.exact_match(Y, Y.astype(float), space=space) == 1.0
    assert metrics.exact_match(Y, Y + 10, space=space) == 0.0  # strange, but of one type
    mixed = Y.astype(object).replace(0, "none")
    assert metrics.exact_match(mixed, Y, space=space) == 0.75


def test_text_never_matches_the_numbers_of_a_prediction():
    joint = Atoms((3,), np.array([[[0], [1], [2]]]), np.zeros((4, 3)))
    prediction = JointPrediction(joint, ClassSpace.from_labels(pd.DataFrame({"cultivar": [0, 1, 2]})))
    with pytest.raises(InputError, match=r"in Y_true \('1'\) occurs in the prediction \(0, 1, 2\)"):
        metrics.joint_log_loss(["1"] * 4, prediction)
    assert metrics.joint_log_loss([7] * 4, prediction) == -metrics.LOG_FLOOR


def test_the_same_rows_in_another_order_are_an_error():
    prediction, Y = random_prediction(n=4)
    Y.index = list("wxyz")
    other = Y.loc[list("zwxy")]
    message = (
        r"Y_true and Y_pred hold the same rows in another order; align them with .loc, or pass .to_numpy"
    )
    with pytest.raises(InputError, match=message):
        metrics.exact_match(Y, other)
    with pytest.raises(InputError, match=message):
        metrics.exact_match(Y["a"], other["a"])
    named = JointPrediction(prediction.distribution, prediction.space, Y.index)
    with pytest.raises(InputError, match="Y_true and the prediction hold the same rows"):
        metrics.joint_log_loss(other, named)
    by_position = metrics.exact_match(Y, other.to_numpy())
    assert metrics.exact_match(Y, other.reset_index(drop=True)) == by_position  # not the same labels
    assert metrics.exact_match(Y, other.set_axis(list("zzxy"))) == by_position  # not one row each
    assert metrics.exact_match(Y, Y.copy()) == 1.0
    assert metrics.joint_log_loss(Y, named) == metrics.joint_log_loss(Y, prediction)


def test_indexes_are_compared_only_where_they_can_be():
    pairs = pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")])
    with pytest.raises(InputError, match="fit: X and Y hold the same rows"):
        require_same_order("fit: X and Y", pairs, pairs[::-1])
    with pytest.raises(InputError, match="hold the same rows"):
        require_same_order("fit: X and Y", pd.Index([1, "a", None], dtype=object), pd.Index([None, 1, "a"]))
    for theirs_ in (None, pairs, pairs[[0, 1, 1]], pairs[:2], pd.RangeIndex(3), pd.Index(["a", "b", "c"])):
        require_same_order("fit: X and Y", pairs, theirs_)
        require_same_order("fit: X and Y", theirs_, pairs)


def test_abstained_answers_are_counted():
    Y_true = pd.DataFrame({"a": ["x", "y", "y", None], "b": [1, 0, 0, 0]})
    Y_pred = pd.DataFrame({"a": ["x", None, "x", "x"], "b": [1, 0, None, None]}).convert_dtypes()
    weight = [1, 2, 0, 1]
    assert metrics.coverage(Y_pred) == 5 / 8
    assert metrics.coverage(pl.DataFrame(Y_pred)) == 5 / 8
    assert metrics.coverage([1, None, 0, 1], sample_weight=weight) == 0.5
    assert metrics.answered_accuracy(Y_true, Y_pred) == 3 / 4
    assert metrics.answered_accuracy(Y_true, Y_pred, sample_weight=weight) == 1.0
    assert metrics.exact_match(Y_true, Y_pred) == 1 / 4
    assert metrics.hamming_score(Y_true, Y_pred) == (1 + 0.5 + 0 + 0) / 4
    assert np.isnan(metrics.answered_accuracy(["x", "y"], [None, None]))


def test_abstaining_trades_coverage_for_accuracy():
    X, Y = small_data()
    prediction = IndependentClassifier().fit(X, Y).predict_joint(X)
    careful, bold = (prediction.decide(Abstain("hamming", cost)) for cost in (0.1, 1.0))
    assert metrics.coverage(careful) < metrics.coverage(bold) == 1.0
    assert metrics.answered_accuracy(Y, careful) > metrics.answered_accuracy(Y, bold)
    assert metrics.answered_accuracy(Y, bold) == pytest.approx(metrics.hamming_score(Y, bold))


# -- probabilities -----------------------------------------------------------------------------------------


def random_prediction(seed=0, n=30, cards=(2, 3, 2)):
    rng = np.random.default_rng(seed)
    outcomes = all_outcomes(cards)
    joint = Atoms(cards, outcomes[None], rng.normal(size=(n, len(outcomes))))
    space = ClassSpace(tuple("abc"[: len(cards)]), tuple(np.array(list("uvwx")[:k]) for k in cards))
    prediction = JointPrediction(joint, space)
    return prediction, space.decode(joint.sample(1, rng)[0])


def test_log_losses_and_brier_by_hand():
    prediction, Y = random_prediction()
    codes, joint = prediction.space.encode(Y), prediction.distribution
    rows = np.arange(len(Y))
    log_prob = joint.log_prob(codes)
    p = [table[rows, codes[:, j]] for j, table in enumerate(joint.marginals())]
    assert metrics.joint_log_loss(Y, prediction) == pytest.approx(-log_prob.mean())
    assert metrics.joint_log_loss(Y, prediction, reduce="median") == pytest.approx(np.median(-log_prob))
    assert metrics.marginal_log_loss(Y, prediction) == pytest.approx(-np.log(p).mean())
    assert metrics.marginal_log_loss(Y, prediction, reduce="median") == pytest.approx(
        np.median(-np.log(p).mean(axis=0))
    )
    brier = [
        ((table - np.eye(table.shape[1])[codes[:, j]]) ** 2).sum(axis=1).mean() / 2
        for j, table in enumerate(joint.marginals())
    ]
    assert metrics.brier_score(Y, prediction) == pytest.approx(np.mean(brier))


def test_impossible_rows_are_floored_and_counted():
    joint = Atoms((2, 2), np.array([[[0, 0], [1, 1]]]), np.log([[0.5, 0.5]] * 4))
    prediction = JointPrediction(joint, ClassSpace.from_labels(np.array([["n", "n"], ["y", "y"]])))
    Y = np.array([["n", "n"], ["n", "y"], ["n", None], ["strange", "y"]], dtype=object)
    floor = np.log(1e-4)
    expected = -np.array([np.log(0.5), 2 * floor, np.log(0.5), floor + np.log(0.5)])
    assert metrics.joint_log_loss(Y, prediction) == pytest.approx(expected.mean())
    assert metrics.n_floored(Y, prediction) == 2
    assert metrics.n_floored(Y, prediction, floor=-np.inf) == 2
    assert metrics.n_floored(Y, prediction, floor=-0.3) == 4
    assert metrics.joint_log_loss(Y, prediction, floor=-np.inf) == np.inf
    assert metrics.joint_log_loss(Y, prediction, floor=-1) == pytest.approx((3 * np.log(2) + 3) / 4)
    marginal = -np.array([np.log(0.5)] * 3 + [(floor + np.log(0.5)) / 2])
    assert metrics.marginal_log_loss(Y, prediction) == pytest.approx(marginal.mean())
    brier = [0.25, 0.25, 0.25, ((0.5 + 1) / 2 + 0.25) / 2]
    assert metrics.brier_score(Y, prediction) == pytest.approx(np.mean(brier))
    assert metrics.top_k_accuracy(Y, prediction, 2) == 0.5


def test_missing_labels_are_summed_out():
    prediction, Y = random_prediction()
    partly = Y.copy()
    partly.loc[::2, "a"] = None
    partly.loc[5] = None
    log_prob = prediction.log_prob(partly)
    assert metrics.joint_log_loss(partly, prediction) == pytest.approx(-np.delete(log_prob, 5).mean())
    assert metrics.n_floored(partly, prediction, floor=-np.inf) == 0
    for metric in PROBABILITY_METRICS.values():
        kept = np.delete(np.arange(len(Y)), 5)
        assert metric(partly, prediction) == pytest.approx(metric(partly.iloc[kept], prediction[kept]))


@pytest.mark.parametrize("metric", PROBABILITY_METRICS.values())
def test_weights_count_rows_of_probabilities(metric):
    prediction, Y = random_prediction(n=14)
    times = np.random.default_rng(0).integers(0, 3, len(Y))
    rows = np.repeat(np.arange(len(Y)), times)
    expected = metric(Y.iloc[rows], prediction[rows])
    assert metric(Y, prediction, sample_weight=times) == pytest.approx(expected)


def test_top_k_accuracy_counts_the_truth_among_the_first():
    prediction, Y = random_prediction()
    codes = prediction.space.encode(Y)
    log_prob = prediction.distribution.log_prob(all_outcomes((2, 3, 2))[:, None])
    rank = (log_prob > prediction.distribution.log_prob(codes)).sum(axis=0)
    for k in (1, 3, 12, 100):
        assert metrics.top_k_accuracy(Y, prediction, k) == pytest.approx((rank < k).mean())
    assert metrics.top_k_accuracy(Y, prediction, 1) == metrics.exact_match(Y, prediction.decide("subset"))


def test_calibration_of_a_distribution_that_is_right():
    joint, n = random_prediction(n=1)[0], 40_000
    prediction = joint[np.zeros(n, int)]
    Y = prediction.space.decode(joint.distribution.sample(n, 0)[:, 0])
    for calibration in (metrics.marginal_calibration, metrics.mode_calibration):
        frame = calibration(Y, prediction, n_bins=20)
        assert metrics.expected_calibration_error(frame) < 0.01
        assert (frame["mean_predicted"].between(frame["lower"], frame["upper"])).all()
    assert metrics.marginal_calibration(Y, prediction)["count"].sum() == n * (1 + 3 + 1)
    assert list(frame.columns) == ["bin", "lower", "upper", "mean_predicted", "observed", "count"]


def test_calibration_finds_overconfidence():
    certain = Atoms((2,), np.array([[[0], [1]]]), np.log([[1e-9, 1 - 1e-9]] * 10))
    prediction = JointPrediction(certain, ClassSpace(("y",), (np.array([0, 1]),)))
    frame = metrics.mode_calibration([1] * 7 + [0] * 3, prediction)
    assert frame["observed"].tolist() == [0.7]
    assert metrics.expected_calibration_error(frame) == pytest.approx(0.3)


def test_unproven_rankings_are_announced(monkeypatch):
    prediction, Y = random_prediction(n=2)
    mode = prediction.distribution.mode()
    monkeypatch.setattr(Atoms, "mode", lambda self: Mode(mode.codes, mode.log_prob, np.array([True, False])))
    with pytest.warns(ApproximationWarning, match="mode_calibration: .* in 1 of 2 rows"):
        metrics.mode_calibration(Y, prediction)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, Y: metrics.exact_match(Y, Y.iloc[:3]), "30 rows and Y_pred 3"),
        (lambda p, Y: metrics.exact_match(Y, Y[["a", "b"]]), "lacks the class variable 'c'"),
        (lambda p, Y: metrics.joint_log_loss(Y, Y), r"predict_joint\(X\)"),
        (lambda p, Y: metrics.joint_log_loss(Y.iloc[:3], p), "3 rows and the prediction 30"),
        (lambda p, Y: metrics.joint_log_loss(Y, p, reduce="max"), "'mean' or 'median'"),
        (lambda p, Y: metrics.joint_log_loss(Y, p, floor=0.5), "negative log-probability"),
        (lambda p, Y: metrics.exact_match(Y, Y, sample_weight=[1, 2]), "30 non-negative numbers"),
        (lambda p, Y: metrics.mode_calibration(Y, p, n_bins=0), "n_bins"),
        (lambda p, Y: metrics.top_k_accuracy(Y, p, 0), "at least 1"),
        (lambda p, Y: metrics.get_scorer("accuracy"), "'exact_match'.*'top_3_accuracy'.*'neg_f1_loss'"),
        (lambda p, Y: metrics.get_scorer("f1"), "found 'f1'"),
        (lambda p, Y: metrics.top_k_scorer(0), "at least 1, found 0"),
        (lambda p, Y: metrics.top_k_scorer("three"), "whole number"),
        (lambda p, Y: metrics.exact_match(Y, p), r"labels with labels, found a JointPrediction; pass model"),
        (lambda p, Y: metrics.macro_f1(p, Y), "labels with labels, found a JointPrediction"),
        (lambda p, Y: metrics.joint_log_loss(p, p), "labels with labels, found a JointPrediction"),
        (lambda p, Y: metrics.coverage(p), "labels with labels, found a JointPrediction"),
        (lambda p, Y: metrics.mean_loss(Y, Y, "f1"), "binary variables.*'b' has code 2"),
    ],
)
def test_bad_input_is_a_clear_error(call, message):
    with pytest.raises(InputError, match=message):
        call(*random_prediction())


# -- scorers -----------------------------------------------------------------------------------------------


def test_ranked_probability_score_equals_its_definition():
    rng = np.random.default_rng(0)
    cards = (4, 3, 2)
    outcomes = all_outcomes(cards)
    joint = Atoms(cards, outcomes[None], np.log(rng.dirichlet(np.ones(len(outcomes)), 5)))
    labels = tuple(np.arange(k) for k in cards)
    prediction = JointPrediction(joint, ClassSpace(("a", "b", "c"), labels, ordered=(True, False, False)))
    truth = np.column_stack([rng.integers(k, size=5) for k in cards])
    scores = []
    for row, y in enumerate(truth):
        p = [table[row] for table in joint.marginals()]
        stage = sum((p[0][: j + 1].sum() - (y[0] <= j)) ** 2 for j in range(3))
        others = [((p[v] - np.eye(cards[v])[y[v]]) ** 2).sum() / 2 for v in (1, 2)]
        scores.append(np.mean([stage, *others]))
    ours = metrics.ranked_probability_score(truth, prediction)
    assert ours == pytest.approx(np.mean(scores), abs=1e-12)
    weights = np.arange(5.0)
    weighted = metrics.ranked_probability_score(truth, prediction, sample_weight=weights)
    assert weighted == pytest.approx(np.average(scores, weights=weights), abs=1e-12)
    unseen = truth.copy()
    unseen[:, 0] = 9
    assert metrics.ranked_probability_score(unseen, prediction) >= ours
    missing = np.where(np.arange(3) == 0, truth, np.nan)
    of_stage = metrics.ranked_probability_score(missing, prediction)
    np.testing.assert_allclose(
        of_stage, metrics.ranked_probability_score(truth[:, 0], prediction.marginal("a")), atol=1e-12
    )
    nominal = JointPrediction(joint, ClassSpace(("a", "b", "c"), labels))
    with pytest.raises(InputError, match="no class variable is ordered"):
        metrics.ranked_probability_score(truth, nominal)


def test_a_certain_answer_has_its_distance_as_ranked_probability_score():
    joint = Atoms((5,), np.array([[[1]]]), np.zeros((1, 1)))
    prediction = JointPrediction(joint, ClassSpace(("stage",), (np.arange(5),), ordered=(True,)))
    assert [metrics.ranked_probability_score([y], prediction) for y in range(5)] == [1, 0, 1, 2, 3]


def test_scorers_of_ordered_variables():
    X, Y = small_data()
    staged = declare_order(pd.DataFrame({"stage": Y.sum(axis=1), "kind": Y[:, 0]}), ["stage"])
    model = IndependentClassifier().fit(X, staged)
    prediction = model.predict_joint(X)
    score = metrics.get_scorer("neg_ranked_probability_score")(model, X, staged)
    assert score == -metrics.ranked_probability_score(staged, prediction)
    decided = prediction.decide("absolute")
    steps = np.abs(model.space_.encode(staged) - model.space_.encode(decided)).mean()
    assert metrics.get_scorer("neg_absolute_loss")(model, X, staged) == pytest.approx(-steps)
    assert metrics.mean_loss(staged, decided, "absolute") == pytest.approx(steps)


def small_data(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    noisy = X @ rng.normal(size=(3, 3)) + rng.normal(size=(n, 3))
    return X, (noisy > 0).astype(int)


def test_scorers_work_in_cross_validation():
    X, Y = small_data()
    result = cross_validate(PowersetClassifier(), X, Y, cv=3, scoring=metrics.SCORERS)
    for name in metrics.SCORERS:
        assert np.isfinite(result[f"test_{name}"]).all()
    model = PowersetClassifier().fit(X, Y)
    assert metrics.get_scorer("exact_match")(model, X, Y) == metrics.exact_match(
        Y, model.predict(X, loss="subset")
    )
    assert metrics.get_scorer("instance_f1")(model, X, Y) == metrics.instance_f1(
        Y, model.predict(X, loss="f1")
    )
    joint = metrics.get_scorer("joint_log_likelihood")(model, X, Y)
    assert joint == pytest.approx(model.predict_joint(X).log_prob(Y).mean())


def test_scorers_take_more_than_two_categories():
    X, Y = small_data()
    wide = Y.copy()
    wide[:, 0] += X[:, 0] > 0.5
    result = cross_validate(PowersetClassifier(), X, wide, cv=3, scoring=metrics.SCORERS, error_score="raise")
    for name in metrics.SCORERS:
        assert np.isfinite(result[f"test_{name}"]).all()
    model = PowersetClassifier().fit(X, wide)
    answers = model.predict(X, loss="hamming")
    for name in ("instance_f1", "jaccard_score"):
        expected = getattr(metrics, name)(wide, answers, space=model.space_)
        assert metrics.get_scorer(name)(model, X, wide) == expected
    with pytest.raises(InputError, match=r"needs binary variables.*'y0' has 3 values"):
        metrics.get_scorer("neg_f1_loss")(model, X, wide)


def test_too_many_labels_for_jaccard_are_decided_for_f1():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = (X[:, [0]] + rng.normal(size=(60, 13)) > 0).astype(int)
    model = IndependentClassifier().fit(X, Y)
    expected = metrics.jaccard_score(Y, model.predict(X, loss="f1"))
    assert metrics.get_scorer("jaccard_score")(model, X, Y) == expected
    few = IndependentClassifier().fit(X, Y[:, :4])
    expected = metrics.jaccard_score(Y[:, :4], few.predict(X, loss="jaccard"))
    assert metrics.get_scorer("jaccard_score")(few, X, Y[:, :4]) == expected


def test_names_of_scorers_say_whether_they_are_scores():
    X, Y = small_data()
    model = IndependentClassifier().fit(X, Y)
    for name, scorer in metrics.SCORERS.items():
        assert name.startswith("neg_") or name.endswith("likelihood") == (scorer.sign < 0)
    for name in LOSSES:
        assert name not in metrics.SCORERS
        assert metrics.get_scorer(f"neg_{name}_loss")(model, X, Y) <= 0
    assert metrics.get_scorer("neg_f1_loss")(model, X, Y) == pytest.approx(
        metrics.get_scorer("instance_f1")(model, X, Y) - 1
    )


def test_top_k_accuracy_is_a_scorer():
    X, Y = small_data()
    model = PowersetClassifier().fit(X, Y)
    expected = metrics.top_k_accuracy(Y, model.predict_joint(X), 3)
    assert metrics.top_k_scorer(3)(model, X, Y) == expected
    assert metrics.top_k_scorer(np.int64(3))(model, X, Y) == expected
    assert metrics.get_scorer("top_3_accuracy")(model, X, Y) == expected


def test_scorers_look_into_pipelines_and_searches():
    X, Y = small_data()
    pipeline = make_pipeline(StandardScaler(), PowersetClassifier())
    search = GridSearchCV(
        pipeline,
        {"powersetclassifier__estimator": [None, RandomForestClassifier(5, random_state=0)]},
        scoring={name: metrics.get_scorer(name) for name in ("neg_f1_loss", "joint_log_likelihood")},
        refit="joint_log_likelihood",
        cv=2,
    ).fit(X, Y)
    for name in ("exact_match", "joint_log_likelihood"):
        scorer = metrics.get_scorer(name)
        assert scorer(search, X, Y) == scorer(search.best_estimator_, X, Y)
    last = search.best_estimator_[-1]
    assert scorer(search, X, Y) == scorer(last, search.best_estimator_[0].transform(X), Y)


def test_scorers_take_estimators_that_decide_by_themselves():
    X, Y = small_data()
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    expected = metrics.exact_match(Y, forest.predict(X))
    assert metrics.get_scorer("exact_match")(forest, X, Y) == expected
    with pytest.raises(InputError, match="needs a model with predict_joint"):
        metrics.get_scorer("joint_log_likelihood")(forest, X, Y)
    greedy = DecisionClassifier(IndependentClassifier(), loss="f2").fit(X, Y)
    assert metrics.get_scorer("macro_recall")(greedy, X, Y) == metrics.macro_recall(Y, greedy.predict(X))


def test_loss_scorers_decide_for_their_loss():
    X, Y = small_data()
    model = IndependentClassifier().fit(X, Y)
    loss = CostMatrix([[0, 1], [9, 0]])
    score = metrics.loss_scorer(loss)(model, X, Y)
    assert score == pytest.approx(-metrics.mean_loss(Y, model.predict(X, loss=loss), loss))
    assert metrics.get_scorer("neg_subset_loss")(model, X, Y) == pytest.approx(
        metrics.get_scorer("exact_match")(model, X, Y) - 1
    )
    careful = Abstain("hamming", 0.2)
    assert metrics.loss_scorer(careful)(model, X, Y) >= -0.2


def test_scorers_survive_a_label_that_training_lacked():
    X, Y = small_data()
    Y = Y.astype(object)
    Y[0, 0] = "new"
    model = IndependentClassifier().fit(X[1:], Y[1:])
    assert np.isfinite(metrics.get_scorer("joint_log_likelihood")(model, X, Y))
    right = (model.predict(X[:9], loss="subset") == Y[:9]).all(axis=1)
    assert not right[0]
    assert metrics.get_scorer("exact_match")(model, X[:9], Y[:9]) == right.mean()


def test_scorers_can_be_pickled_and_weighted():
    X, Y = small_data()
    model = IndependentClassifier().fit(X, Y)
    weight = np.arange(len(Y))
    for scorer in (*metrics.SCORERS.values(), metrics.loss_scorer("f2"), metrics.top_k_scorer(2)):
        again = pickle.loads(pickle.dumps(scorer))
        assert again == scorer or repr(again) == repr(scorer)
        assert again(model, X, Y, sample_weight=weight) == scorer(model, X, Y, sample_weight=weight)

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score, jaccard_score

from draws import examples
from tuplet.core.exceptions import ApproximationWarning, InputError, IntractableError, LabelError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms, Mode
from tuplet.joint.base import all_outcomes
from tuplet.losses import (
    LOSSES,
    Absolute,
    Abstain,
    CallableLoss,
    CostMatrix,
    FBeta,
    Hamming,
    Jaccard,
    Loss,
    Quantile,
    SubsetZeroOne,
    get_loss,
)
from tuplet.prediction import JointPrediction
from tuplet.space import ClassSpace
from tuplet.testing import strategies
from tuplet.testing.losses import check_loss
from tuplet.testing.oracle import enumerate_joint

# -- joints: a form is a strategy of joints, given the cardinalities ---------------------------------------


@st.composite
def tied_atoms(draw, cards):
    outcomes = all_outcomes(cards)
    n = draw(st.integers(1, 3))
    shared = draw(st.booleans())
    size = draw(st.integers(1, len(outcomes)))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    codes = np.stack([rng.permutation(outcomes)[:size] for _ in range(1 if shared else n)])
    # Small whole weights make ties, zeros make atoms that a row does not have.
    weights = rng.integers(0, 4, (n, size)) if draw(st.booleans()) else rng.random((n, size)) ** 4
    weights[:, rng.integers(size)] += 1
    with np.errstate(divide="ignore"):
        return Atoms(cards, codes, np.log(weights))


FORMS = {"tied atoms": tied_atoms, **strategies.FORMS}

mixed_cards = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
binary_cards = st.lists(st.sampled_from([2, 2, 2, 1]), min_size=1, max_size=5).map(tuple)


# -- losses: each is made for given cardinalities ----------------------------------------------------------


def distance(y_true, y_pred):
    return (np.abs(y_true - y_pred) * np.arange(1, y_true.shape[1] + 1)).sum(axis=1) ** 2


def weighted(cards):
    return Hamming(weights=np.arange(len(cards)) + (len(cards) == 1))


def costs(cards):
    rng = np.random.default_rng(3)
    return CostMatrix([rng.random((k, k)).round(1) * (1 - np.eye(k)) for k in cards])


def some_levels(cards):
    return [k * (j % 2 == 0) for j, k in enumerate(cards)]


ANY_CARDS = {
    "hamming": lambda cards: Hamming(),
    "weighted hamming": weighted,
    "cost matrix": costs,
    "subset": lambda cards: SubsetZeroOne(),
    "callable": lambda cards: CallableLoss(distance),
    "absolute": lambda cards: Absolute(),
    "absolute of some": lambda cards: Absolute(levels=some_levels(cards)),
    "quantile": lambda cards: Quantile(0.3),
    "quantile of some": lambda cards: Quantile(0.85, levels=some_levels(cards)),
    "abstaining absolute": lambda cards: Abstain(Absolute(levels=some_levels(cards)), 0.4),
    "callable among atoms": lambda cards: CallableLoss(distance, candidates="atoms"),
    "abstaining hamming": lambda cards: Abstain(Hamming(), 0.3),
    "abstaining weighted hamming": lambda cards: Abstain(weighted(cards), 0.3),
    "abstaining cost matrix": lambda cards: Abstain(costs(cards), 0.2),
    "abstaining subset": lambda cards: Abstain("subset", 0.5),
    "abstaining callable": lambda cards: Abstain(CallableLoss(distance), 0.5),
}
BINARY = {
    "f0.5": lambda cards: FBeta(0.5),
    "f1": lambda cards: FBeta(),
    "f2": lambda cards: FBeta(2),
    "jaccard": lambda cards: Jaccard(),
    "jaccard among atoms": lambda cards: Jaccard(candidates="atoms"),
    "abstaining f1": lambda cards: Abstain("f1", 0.3),
    "abstaining jaccard": lambda cards: Abstain("jaccard", 0.3),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ANY_CARDS)
@examples(8)
@given(data=st.data())
def test_no_answer_costs_less_than_the_decision(data, loss, form):
    cards = data.draw(mixed_cards)
    check_loss(ANY_CARDS[loss](cards), data.draw(FORMS[form](cards)), missing="callable" not in loss)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", BINARY)
@examples(8)
@given(data=st.data())
def test_no_set_costs_less_than_the_decision(data, loss, form):
    cards = data.draw(binary_cards)
    check_loss(BINARY[loss](cards), data.draw(FORMS[form](cards)))


@pytest.mark.parametrize("make", [*ANY_CARDS.values(), *BINARY.values()])
@examples(10)
@given(data=st.data())
def test_a_row_is_decided_the_same_alone_and_in_a_batch(data, make):
    joint = data.draw(tied_atoms((2, 2, 2)))
    loss = make(joint.cards)
    together = loss.decide(joint)
    alone = np.concatenate([loss.decide(row) for row in joint])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("form", FORMS)
@examples(6)
@given(data=st.data())
def test_medians_and_quantiles_equal_enumeration(data, form):
    cards = data.draw(mixed_cards)
    joint = data.draw(FORMS[form](cards))
    if joint.tolerance:
        return
    probabilities, outcomes = enumerate_joint(joint), all_outcomes(cards)
    steps = outcomes[:, None] - outcomes  # (truths, answers, m)
    for q in (0.1, 0.5, 0.9):
        values = np.where(steps > 0, q * steps, (q - 1) * steps).mean(axis=2)
        risks = probabilities @ values
        loss = Quantile(q)
        check_loss(loss, joint, atol=1e-12)
        chosen = loss.decide(joint)
        np.testing.assert_allclose(loss.risk(joint, chosen), risks.min(axis=1), rtol=0, atol=1e-12)
        ties = risks <= risks.min(axis=1, keepdims=True) + 1e-12
        lowest = np.array([outcomes[row].min(axis=0) for row in ties])  # positions decide alone
        np.testing.assert_array_equal(chosen, lowest)
    np.testing.assert_array_equal(Absolute().decide(joint), Quantile(0.5).decide(joint))
    check_loss(Absolute(), joint, atol=1e-12)


def test_distances_of_ordered_variables():
    y_true, y_pred = [[0, 3, 1]], [[2, 1, 0]]
    assert Absolute().value(y_true, y_pred) == pytest.approx((2 + 2 + 1) / 3)
    assert Absolute(levels=[3, 4, 0]).value(y_true, y_pred) == pytest.approx((2 + 2 + 1) / 3)
    assert Absolute(levels=[0, 4, 3]).value(y_true, y_pred) == pytest.approx((1 + 2 + 1) / 3)
    assert Quantile(0.9).value(y_true, y_pred) == pytest.approx((0.2 + 1.8 + 0.9) / 3)
    no_answer = Absolute(levels=[4, 4, 0]).value([[1, 3, 1]], [[UNKNOWN] * 3])
    assert no_answer == pytest.approx((2 + 3 + 1) / 3)
    assert Absolute(levels=[4]).value([[4]], [[3]]) == 3  # a label that is not in the space
    with pytest.raises(InputError, match="without levels"):
        Absolute().value([[1]], [[UNKNOWN]])
    with pytest.raises(InputError, match="2 levels do not fit 1"):
        Absolute(levels=[2, 2]).value([[1]], [[0]])
    with pytest.raises(InputError, match="q must be a number between 0 and 1"):
        Quantile(1.0)


def test_distances_follow_the_class_space():
    labels = (np.array(["I", "II", "III"]), np.array(["a", "b", "c"]))
    space = ClassSpace(("stage", "kind"), labels, ordered=(True, False))
    joint = Atoms((3, 3), np.array([[[0, 0], [1, 2], [2, 2]]]), np.log([[0.4, 0.3, 0.3]]))
    prediction = JointPrediction(joint, space)
    assert prediction.decide("absolute").to_numpy().tolist() == [["II", "c"]]
    assert prediction.decide("quantile0.9").to_numpy().tolist() == [["III", "c"]]
    assert prediction.decide(Abstain("absolute", 0.5)).isna().to_numpy().tolist() == [[True, False]]
    unordered = JointPrediction(joint, ClassSpace(("stage", "kind"), labels))
    for loss in ("absolute", Quantile(0.2), Abstain("quantile", 1)):
        with pytest.raises(InputError, match=r"no class variable is ordered; .*declare_order"):
            unordered.decide(loss)


# -- check_loss finds what is wrong ------------------------------------------------------------------------


class Broken(Loss):
    name = "broken"

    def __init__(self, fault):
        self.fault = fault

    def value(self, y_true, y_pred):
        values = Hamming().value(y_true, y_pred)
        if self.fault == "missing":
            return np.nan_to_num(values)
        return {"negative": values - 1, "truth": values + 1}.get(self.fault, values)

    def decide(self, joint):
        codes = Hamming().decide(joint)
        return codes[:, :1] if self.fault == "shape" else codes * (self.fault != "decision")

    def risk(self, joint, y_pred):
        return super().risk(joint, y_pred) * (2 if self.fault == "risk" else 1)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("negative", "is negative"),
        ("truth", "the truth itself"),
        ("missing", "must be nan"),
        ("risk", "off by"),
        ("shape", "of shape"),
        ("decision", "more than"),
    ],
)
def test_check_loss_names_the_fault(fault, message):
    joint = Atoms((2, 3), np.array([[[1, 2], [1, 1], [0, 2]]]), np.log([[0.6, 0.2, 0.2]]))
    check_loss(Broken("none"), joint)
    with pytest.raises(AssertionError, match=message):
        check_loss(Broken(fault), joint)


# -- values ------------------------------------------------------------------------------------------------


def test_values_equal_scikit_learn():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 2, (2, 200, 4))
    for beta in (0.5, 1, 2):
        ours = 1 - FBeta(beta).value(y_true, y_pred).mean()
        theirs = fbeta_score(y_true, y_pred, beta=beta, average="samples", zero_division=1)
        assert ours == pytest.approx(theirs, abs=1e-12)
    theirs = jaccard_score(y_true, y_pred, average="samples", zero_division=1)
    assert 1 - Jaccard().value(y_true, y_pred).mean() == pytest.approx(theirs, abs=1e-12)


def test_missing_truth_is_left_out():
    y_true, y_pred = [[1, UNKNOWN, 0, 1], [UNKNOWN] * 4], [[1, 0, 1, 1], [0, 0, 0, 0]]
    expected = {"hamming": 1 / 3, "subset": 1.0, "f1": 1 - 4 / 5, "jaccard": 1 / 3}
    for name, value in expected.items():
        np.testing.assert_allclose(get_loss(name).value(y_true, y_pred), [value, np.nan])
    three = Hamming(weights=[1, 5, 2, 1]).value(y_true, y_pred)
    np.testing.assert_allclose(three, [0.5, np.nan])
    np.testing.assert_allclose(CallableLoss(distance).value([[UNKNOWN], [2]], [[0], [1]]), [np.nan, 1])


def test_no_answer_has_a_price():
    y_true, y_pred = [[1, 0, 1]], [[1, UNKNOWN, 0]]
    assert Hamming().value(y_true, y_pred) == pytest.approx(2 / 3)
    assert SubsetZeroOne().value([[1, 0]], [[1, UNKNOWN]]) == 1
    assert FBeta().value([[1, 0]], [[1, UNKNOWN]]) == 0
    assert CostMatrix([[0, 2], [5, 0]]).value(y_true, y_pred) == pytest.approx((0 + 2 + 5) / 3)
    assert Abstain("hamming", 0.2).value(y_true, y_pred) == pytest.approx(1.2 / 3)
    assert Abstain(Hamming([2, 1, 1]), 0.2).value(y_true, y_pred) == pytest.approx(1.2 / 4)
    assert Abstain("f1", 0.2).value([[1, 0]], [[UNKNOWN, UNKNOWN]]) == 0.2
    assert Abstain("f1", 0.2).value([[1, 0]], [[1, UNKNOWN]]) == 0


# -- decisions ---------------------------------------------------------------------------------------------


def test_different_losses_decide_differently():
    joint = Atoms(
        (2, 2, 2),
        np.array([[[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]]]),
        np.log([[0.4, 0.2, 0.2, 0.2]]),
    )
    assert Hamming().decide(joint).tolist() == [[0, 0, 0]]
    assert SubsetZeroOne().decide(joint).tolist() == [[0, 0, 0]]
    assert FBeta().decide(joint).tolist() == [[1, 1, 1]]


def test_ties_go_to_the_lowest_code():
    uniform = Atoms((2, 2), all_outcomes((2, 2))[::-1][None], np.zeros((1, 4)))
    three = Atoms((3,), np.array([[[2], [1]]]), np.zeros((1, 2)))
    assert Hamming().decide(uniform).tolist() == [[0, 0]]
    assert CostMatrix(1 - np.eye(2)).decide(uniform).tolist() == [[0, 0]]
    assert Hamming().decide(three).tolist() == [[1]]
    assert CallableLoss(distance, candidates="atoms").decide(three).tolist() == [[1]]
    either = Atoms((2, 2, 2), np.array([[[1, 1, 0], [1, 0, 1]]]), np.zeros((1, 2)))
    for loss in (Jaccard(), Jaccard(candidates="atoms")):
        assert loss.decide(either).tolist() == [[1, 0, 1]]
    codes, weights = [[[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 0]]], [[1, 3, 2, 2]]
    assert FBeta(0.5).decide(Atoms((2, 2, 2), codes, np.log(weights))).tolist() == [[0, 1, 0]]


def test_abstain_leaves_open_what_costs_too_much():
    joint = Atoms((2, 3), all_outcomes((2, 3))[None], np.log([[0.5, 0.3, 0.0999, 0.05, 0.05, 0.0001]]))
    assert Abstain("hamming", 0.2).decide(joint).tolist() == [[0, UNKNOWN]]
    assert Abstain("hamming", 0.05).decide(joint).tolist() == [[UNKNOWN, UNKNOWN]]
    assert Abstain("hamming", 1.0).decide(joint).tolist() == [[0, 0]]
    assert Abstain("subset", 0.5).decide(joint).tolist() == [[0, 0]]
    assert Abstain("subset", 0.49).decide(joint).tolist() == [[UNKNOWN, UNKNOWN]]


def test_many_draws_can_be_the_candidates():
    rng = np.random.default_rng(0)
    draws = (rng.random((300, 5, 40)) < np.linspace(0.02, 0.98, 40)).astype(int)
    joint = Atoms.from_draws((2,) * 40, draws)
    with pytest.raises(IntractableError, match=r"1,099,511,627,776 outcomes.*limit=4,096.*draw\(1000\)"):
        Jaccard().decide(joint)
    with pytest.raises(
        IntractableError, match=r"prediction\.distribution\.draw\(1000\).*'f1', which is close"
    ):
        Jaccard().decide(joint)
    loss = Jaccard(candidates="atoms")
    prediction = JointPrediction(joint, ClassSpace.from_labels(np.eye(40, dtype=int)))
    answer = prediction.space.decode(loss.decide(prediction.distribution.draw(20, 0)))  # as the message says
    assert answer.shape == (5, 40)
    every = np.stack([loss.risk(joint, np.broadcast_to(d[None], (1, 5, 40)))[0] for d in draws])
    np.testing.assert_allclose(loss.risk(joint, loss.decide(joint)), every.min(axis=0))


def test_fbeta_handles_many_labels_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    joint = Atoms.from_draws((2,) * 60, (rng.random((50, 30, 60)) < 0.1).astype(int))
    loss = FBeta()
    whole, risk = loss.decide(joint), loss.risk(joint, loss.decide(joint))
    monkeypatch.setattr("tuplet.core.limits.working_cells", lambda: 32 * 60 * 60 * 7)
    np.testing.assert_array_equal(loss.decide(joint), whole)
    np.testing.assert_allclose(loss.risk(joint, whole), risk)
    assert (loss.risk(joint, np.stack([whole, 1 - whole]))[1] >= risk).all()


def test_an_unproven_mode_is_announced(monkeypatch):
    joint = Atoms((2,), np.array([[[0], [1]]]), np.zeros((2, 2)))
    unproven = Mode(np.zeros((2, 1), int), np.log([0.5, 0.5]), np.array([True, False]))
    monkeypatch.setattr(Atoms, "mode", lambda self: unproven)
    with pytest.warns(ApproximationWarning, match="in 1 of 2 rows"):
        SubsetZeroOne().decide(joint)


# -- names and errors --------------------------------------------------------------------------------------


def test_losses_go_by_name():
    assert get_loss("f2") == FBeta(2.0)
    assert get_loss("zero_one") == SubsetZeroOne()
    mine = Hamming([1, 2])
    assert get_loss(mine) is mine
    assert CallableLoss(distance).name == "distance"
    assert Abstain("f1", 0.25).name == "f1_or_0.25"
    for name, loss in LOSSES.items():
        assert name in (loss.name, "zero_one")
        assert pickle.loads(pickle.dumps(loss)) == loss
    again = pickle.loads(pickle.dumps(CostMatrix([[0, 1], [2, 0]])))
    np.testing.assert_array_equal(again.matrices[0], [[0, 1], [2, 0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: get_loss("hinge"), "one of 'hamming', 'subset'.*found 'hinge'"),
        (lambda: get_loss(distance), "Wrap a function in CallableLoss"),
        (lambda: Hamming([1, -1]), "non-negative"),
        (lambda: Hamming([0, 0]), "not all zero"),
        (lambda: Hamming([1, 2, 3]).value([[0, 1]], [[0, 1]]), "3 weights do not fit 2"),
        (
            lambda: Hamming({"a": 5}),
            "sees codes.*found a dict.*one weight per variable in order.*from_labels",
        ),
        (lambda: Hamming(pd.Series([1, 2], index=["b", "a"])), "found a Series"),
        (lambda: Hamming("heavy"), "one weight per variable in order.*found 'heavy'"),
        (lambda: Hamming(5), "one weight per variable in order"),
        (lambda: Hamming([[1], [2, 3]]), "one weight per variable in order"),
        (lambda: CostMatrix([]), r"give one matrix.*found \[\]"),
        (lambda: CostMatrix(5), "give one matrix.*found 5"),
        (lambda: CostMatrix({"a": [[0, 1], [1, 0]]}), "sees codes.*found a dict.*code order"),
        (lambda: CostMatrix(pd.DataFrame([[0, 1], [1, 0]])), "found a DataFrame.*code order"),
        (lambda: CostMatrix(pl.DataFrame([[0, 1], [1, 0]])), "found a DataFrame.*code order"),
        (lambda: CostMatrix([[[0]], pd.DataFrame([[0]])]), "DataFrame as the matrix of variable 1"),
        (lambda: CostMatrix([["a", "b"], ["c", "d"]]), "variable 0 must be square, found no numbers"),
        (lambda: CostMatrix([[[0, 1], [1, 0]], [[0, 1]]]), "variable 1 must be square"),
        (lambda: CostMatrix([0, 1]), "must be square"),
        (lambda: CostMatrix([[1, 0], [0, 0]]), "0 on its diagonal"),
        (lambda: CostMatrix([[0, 1, 2], [1, 0, 2]]), "must be square"),
        (lambda: CostMatrix([[0, 1], [1, 0]]).value([[0, 2]], [[0, 1]]), "code 2"),
        (lambda: FBeta(0), "positive number"),
        (lambda: FBeta("one"), "positive number, found 'one'"),
        (lambda: FBeta().value([[2]], [[1]]), "binary variables.*variable 0 has code 2"),
        (lambda: Jaccard().value([[1]], [[3]]), "binary variables.*code 3"),
        (lambda: Jaccard(candidates="some"), "'all' or 'atoms'"),
        (lambda: CallableLoss(np.subtract).value([[1, 0]], [[1, 0]]), "one number per row"),
        (lambda: CallableLoss(5), "must be callable, found 5"),
        (lambda: Abstain("hamming", -1), "at least 0"),
        (lambda: Abstain("hamming", None), "at least 0, found None"),
        (lambda: Hamming().value([["a"]], [["b"]]), "integer codes"),
        (lambda: Hamming().value([[0, 1]], [[0, 1, 1]]), "do not fit together"),
    ],
)
def test_bad_input_is_a_clear_error(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_joints_that_do_not_fit_are_a_clear_error():
    joint = Atoms((3, 2), all_outcomes((3, 2))[None], np.zeros((1, 6)))
    for loss in (FBeta(), Jaccard()):
        with pytest.raises(InputError, match=r"binary variables.*variable 0 has 3 values"):
            loss.decide(joint)
    with pytest.raises(InputError, match="variable 0 has 3 values, but its matrix is 2 x 2"):
        CostMatrix([[0, 1], [1, 0]]).decide(joint)
    with pytest.raises(InputError, match="3 matrices do not fit 2"):
        CostMatrix([[[0]]] * 3).decide(joint)


@pytest.mark.parametrize("loss", [Hamming([1, 2, 3]), Abstain(Hamming([1, 2, 3]), 0.2)])
def test_weights_must_fit_in_every_query(loss):
    joint = Atoms((3, 2), all_outcomes((3, 2))[None], np.zeros((1, 6)))
    for query in (
        lambda: loss.decide(joint),
        lambda: loss.risk(joint, [[0, 0]]),
        lambda: loss.value([[0, 0]], [[0, 0]]),
    ):
        with pytest.raises(InputError, match="3 weights do not fit 2 class variables"):
            query()


def test_errors_know_the_variable_so_that_it_can_be_named():
    joint = Atoms((2, 3), all_outcomes((2, 3))[None], np.zeros((1, 6)))
    prediction = JointPrediction(
        joint, ClassSpace(("sex", "size"), (np.arange(2), np.array(["l", "m", "s"])))
    )
    for loss in (CostMatrix([[0, 1], [1, 0]]), FBeta(), Jaccard()):
        with pytest.raises(InputError, match="'size' has 3 values"):
            prediction.decide(loss)
    for loss in (CostMatrix([[0, 1], [1, 0]]), FBeta(), Jaccard()):
        with pytest.raises(InputError, match="variable 1 has") as error:
            loss.value([[[0, 1]], [[0, 2]]], [[0, 1]])
        assert error.value.variable == 1


# -- names and labels --------------------------------------------------------------------------------------

SIZES = pd.DataFrame({"sex": [0, 1, 1], "risk": ["low", "mid", "high"]})
RISK = {"low": {"mid": 1, "high": 2}, "mid": {"low": 3, "mid": 0, "high": 4}, "high": {"low": 9, "mid": 5}}


def test_costs_by_label_do_not_depend_on_the_order_of_codes():
    declared = SIZES.astype({"risk": pd.CategoricalDtype(["low", "mid", "high"])})
    shuffled = pd.DataFrame(RISK).T.loc[
        ["mid", "high", "low"], ["high", "low", "mid"]
    ]  # gaps on the diagonal
    for Y in (SIZES, declared):
        space = ClassSpace.from_labels(Y)
        for costs in (RISK, shuffled, shuffled.fillna(0)):
            loss = CostMatrix.from_labels(space, {"risk": costs})
            for true in RISK:
                for predicted, cost in RISK[true].items():
                    rows = pd.DataFrame({"sex": [0, 0], "risk": [true, predicted]})
                    codes = space.encode(rows)
                    assert loss.value(codes[:1], codes[1:]) == cost / 2
            assert loss.value([[0, 0]], [[1, 0]]) == 0.5  # what is not named costs 1


def test_weights_by_name():
    space = ClassSpace.from_labels(SIZES)
    assert Hamming.from_labels(space, {"risk": 5}) == Hamming([1, 5])
    assert Hamming.from_labels(space, {}) == Hamming([1, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda space: Hamming.from_labels(space, {"rsk": 5}), "no class variable 'rsk'.*mean 'risk'"),
        (lambda space: Hamming.from_labels(space, [1, 5]), "mapping of the names.*found list"),
        (lambda space: Hamming.from_labels(["sex", "risk"], {"risk": 5}), "must be a ClassSpace.*found list"),
        (lambda space: Hamming.from_labels(space, {"risk": "much"}), "one weight per variable"),
        (lambda space: CostMatrix.from_labels(space, RISK), "no class variable 'low'"),
        (lambda space: CostMatrix.from_labels(space, {"risk": [[0, 1], [1, 0]]}), "'risk' must be a pandas"),
        (
            lambda space: CostMatrix.from_labels(space, {"risk": {**RISK, "mid": {"low": 3}}}),
            "'risk' lacks the cost of predicting 'high' where 'mid' is true",
        ),
        (
            lambda space: CostMatrix.from_labels(space, {"risk": {**RISK, "mid": {"low": "x", "high": 1}}}),
            "costs of 'risk' must be numbers",
        ),
        (
            lambda space: CostMatrix.from_labels(space, {"sex": {0: {0: 1, 1: 1}, 1: {0: 1}}}),
            "matrix of 'sex' must hold costs of at least 0, and 0 on its diagonal",
        ),
        (
            lambda space: CostMatrix.from_labels(space, {"sex": pd.DataFrame(0, [0, 0, 1], [0, 1])}),
            "labels of 'sex' must be there once each, found 0, 0, 1",
        ),
        (
            lambda space: CostMatrix.from_labels(space, {"sex": pd.DataFrame(0, [0, 1], [0, 0])}),
            "given twice in the columns",
        ),
    ],
)
def test_names_and_labels_that_do_not_fit_are_a_clear_error(make, message):
    with pytest.raises(InputError, match=message):
        make(ClassSpace.from_labels(SIZES))


def test_costs_of_unknown_labels_are_a_label_error():
    with pytest.raises(LabelError, match="'tiny' of 'risk'"):
        CostMatrix.from_labels(ClassSpace.from_labels(SIZES), {"risk": {**RISK, "tiny": {"low": 1}}})


def test_losses_say_whether_they_are_for_binary_variables():
    binary = [FBeta(), Jaccard(), Abstain("f1", 0.1)]
    every = [Hamming(), SubsetZeroOne(), CostMatrix([[0]]), CallableLoss(distance), Abstain("subset", 0.1)]
    assert all(loss.binary for loss in binary)
    assert not any(loss.binary for loss in every)


# -- functions of others -----------------------------------------------------------------------------------


def fails(y_true, y_pred):
    raise KeyError("size")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t, p: np.full(len(t), np.nan), r"finite numbers, found nan for the truth \[0, 0\]"),
        (lambda t, p: np.where((t != p).any(axis=1), np.inf, 0), "finite numbers, found inf"),
        (lambda t, p: 1.0, r"one number per row, found shape \(\)"),
        (lambda t, p: t != p, "one number per row, found shape"),
        (lambda t, p: None, "one number per row, found shape"),
        (lambda t, p: ["dear"] * len(t), "one number per row, found list"),
        (fails, "'fails' failed on codes of shape .* with KeyError: 'size'"),
    ],
)
def test_functions_that_are_no_losses_are_a_clear_error(function, message):
    joint = Atoms((2, 2), all_outcomes((2, 2))[None], np.zeros((1, 4)))
    loss = CallableLoss(function)
    for query in (lambda: loss.decide(joint), lambda: loss.risk(joint, [[1, 0]])):
        with pytest.raises(InputError, match=message):
            query()


def test_functions_may_pass_on_missing_truth():
    def careful(y_true, y_pred):
        return np.where((y_true == UNKNOWN).any(axis=1), np.nan, (y_true != y_pred).sum(axis=1))

    values = CallableLoss(careful).value([[0, 1], [UNKNOWN, 1], [UNKNOWN, UNKNOWN]], [0, 0])
    np.testing.assert_array_equal(values, [1, np.nan, np.nan])
    assert CallableLoss(fails).value(np.empty((0, 2), int), np.empty((0, 2), int)).shape == (0,)

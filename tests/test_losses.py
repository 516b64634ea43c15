import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score, jaccard_score

from tuplet.exceptions import ApproximationWarning, InputError, IntractableError
from tuplet.joint import Atoms, Mode
from tuplet.joint.base import all_outcomes
from tuplet.losses import (
    LOSSES,
    Abstain,
    CallableLoss,
    CostMatrix,
    FBeta,
    Hamming,
    Jaccard,
    Loss,
    SubsetZeroOne,
    get_loss,
)
from tuplet.testing import strategies
from tuplet.testing.losses import check_loss
from tuplet.typing import UNKNOWN

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


ANY_CARDS = {
    "hamming": lambda cards: Hamming(),
    "weighted hamming": weighted,
    "cost matrix": costs,
    "subset": lambda cards: SubsetZeroOne(),
    "callable": lambda cards: CallableLoss(distance),
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
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_no_answer_costs_less_than_the_decision(data, loss, form):
    cards = data.draw(mixed_cards)
    check_loss(ANY_CARDS[loss](cards), data.draw(FORMS[form](cards)), missing="callable" not in loss)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", BINARY)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_no_set_costs_less_than_the_decision(data, loss, form):
    cards = data.draw(binary_cards)
    check_loss(BINARY[loss](cards), data.draw(FORMS[form](cards)))


@pytest.mark.parametrize("make", [*ANY_CARDS.values(), *BINARY.values()])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_row_is_decided_the_same_alone_and_in_a_batch(data, make):
    joint = data.draw(tied_atoms((2, 2, 2)))
    loss = make(joint.cards)
    together = loss.decide(joint)
    alone = np.concatenate([loss.decide(row) for row in joint])
    np.testing.assert_array_equal(together, alone)


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
    loss = Jaccard(candidates="atoms")
    every = np.stack([loss.risk(joint, np.broadcast_to(d[None], (1, 5, 40)))[0] for d in draws])
    np.testing.assert_allclose(loss.risk(joint, loss.decide(joint)), every.min(axis=0))


def test_fbeta_handles_many_labels_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    joint = Atoms.from_draws((2,) * 60, (rng.random((50, 30, 60)) < 0.1).astype(int))
    loss = FBeta()
    whole, risk = loss.decide(joint), loss.risk(joint, loss.decide(joint))
    monkeypatch.setattr("tuplet.losses.expectation._CELLS", 60 * 60 * 7)
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
        (lambda: CostMatrix([]), "found none"),
        (lambda: CostMatrix([[1, 0], [0, 0]]), "0 on its diagonal"),
        (lambda: CostMatrix([[0, 1, 2], [1, 0, 2]]), "must be square"),
        (lambda: CostMatrix([[0, 1], [1, 0]]).value([[0, 2]], [[0, 1]]), "code 2"),
        (lambda: FBeta(0), "positive number"),
        (lambda: FBeta().value([[2]], [[1]]), "binary variables.*code 2"),
        (lambda: Jaccard().value([[1]], [[3]]), "binary variables.*code 3"),
        (lambda: Jaccard(candidates="some"), "'all' or 'atoms'"),
        (lambda: CallableLoss(np.subtract).value([[1, 0]], [[1, 0]]), "one number per row"),
        (lambda: Abstain("hamming", -1), "at least 0"),
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

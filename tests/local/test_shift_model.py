"""Local models whose parents shift the logits of the model without parents."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from draws import examples
from tuplet.core.typing import UNKNOWN
from tuplet.joint.base import all_outcomes
from tuplet.local.columns import PrincipalColumns, SparseColumns
from tuplet.local.shift_model import ShiftFamily, ShiftModel
from tuplet.local.shifts import STRENGTH

CARDS = (2, 3)


def draw(seed, n=120, d=3, k=2, cards=CARDS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    parents = rng.integers(cards, size=(n, len(cards)))
    logits = X @ rng.normal(size=(d, k)) + (parents[:, :1] == 1) * rng.normal(size=k)
    return rng, X, parents, (logits + rng.gumbel(size=(n, k))).argmax(axis=1)


def fit(X, parents, child, k=2, cards=CARDS, weight=None, **settings):
    columns = PrincipalColumns.learn(X, np.ones(X.shape[0]))
    model = ShiftModel(columns, **{"C_base": 0.5, "C_shift": 0.1, "tol": 1e-8} | settings)
    return model.fit(X, parents, child, parent_cards=cards, child_card=k, sample_weight=weight)


@pytest.mark.parametrize("is_additive", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_every_way_to_ask_gives_the_same_answer(is_additive, k):
    rng, X, parents, child = draw(0, k=k)
    parents[(parents == 1).all(axis=1), 1] = 0  # an empty configuration
    model = fit(X, parents, child, k, is_additive=is_additive)
    table, bound = model.log_table(X), model.bind(X, positions=[2, 0])
    assert table.shape == (*CARDS, k, len(X))
    np.testing.assert_allclose(np.exp(table).sum(axis=2), 1)
    for outcome in all_outcomes(CARDS):
        own = np.repeat(outcome[None], len(X), axis=0)
        np.testing.assert_allclose(model.log_proba(X, own), table[tuple(outcome)].T, atol=1e-10)
        codes = np.column_stack([own[:, 1], rng.integers(5, size=len(X)), own[:, 0]])
        np.testing.assert_allclose(bound(np.arange(len(X)), codes), table[tuple(outcome)].T, atol=1e-10)
    observed = model.log_table(X, parents[:, 1:])
    np.testing.assert_allclose(observed[1, :, 5], table[1, parents[5, 1], :, 5], atol=1e-10)
    np.testing.assert_allclose(model.log_table(model.prepare(X)), table, atol=1e-12)


@given(seed=st.integers(0, 1000), k=st.integers(2, 3))
@examples(10)
def test_shifts_of_a_configuration_are_those_of_a_general_optimiser(seed, k):
    _, X, parents, child = draw(seed, n=60, d=2, k=k)
    model, C = fit(X, parents, child, k), 0.1
    model.base_ = replace(model.base_, share=np.zeros(k))  # likelihoods that are maximised have no pseudo-row
    Z = model.prepare(X).leading[:-1]
    base = model.log_proba(X, np.full(parents.shape, UNKNOWN))
    mean = model.log_proba(X.mean(axis=0)[None], np.full((1, 2), UNKNOWN))[0]
    rows = (parents == (1, 2)).all(axis=1)

    def loss(theta):
        W, b = np.split(np.concatenate([np.zeros(3), theta]).reshape(2, 3) if k == 2 else theta.reshape(3, 3),
                        [2], axis=1)  # fmt: skip
        own = log_softmax(base + Z @ W.T + b.T, axis=1)[rows, child[rows]]
        pseudo = np.exp(mean) @ log_softmax(mean + b[:, 0])
        return -own.sum() - STRENGTH * pseudo + (W**2).sum() / (2 * C)

    best = minimize(loss, np.zeros(3 * (k if k > 2 else 1)), tol=1e-10)
    found = model.shifts_.theta[5]  # configuration (1, 2)
    assert loss(found.ravel()) == pytest.approx(best.fun, abs=1e-5)


def test_additive_shifts_have_one_slope_and_effects_that_add_up():
    _, X, parents, child = draw(1, k=3)
    model = fit(X, parents, child, 3, is_additive=True)
    theta = model.shifts_.theta.reshape(*CARDS, 3, -1)
    np.testing.assert_allclose(theta[..., :-1], np.broadcast_to(theta[:1, :1, :, :-1], theta[..., :-1].shape))
    intercepts = theta[..., -1]
    expected = intercepts[:, :1] + intercepts[:1] - intercepts[:1, :1]
    np.testing.assert_allclose(intercepts, expected, atol=1e-12)


def test_without_parents_both_kinds_are_the_shared_model():
    _, X, _, child = draw(2)
    nothing = np.zeros((len(X), 0), dtype=int)
    one, other = (fit(X, nothing, child, cards=(), is_additive=kind) for kind in (False, True))
    one.base_, other.base_ = (replace(each.base_, share=np.zeros(2)) for each in (one, other))
    np.testing.assert_allclose(one.log_table(X), other.log_table(X), atol=1e-12)
    # The intercept is fitted once more, beside a pseudo-row.
    logits = one.base_.logits(one.prepare(X).Z)[0, :-1]
    np.testing.assert_allclose(one.log_table(X)[1] - one.log_table(X)[0], logits, atol=0.05)


@pytest.mark.parametrize("is_additive", [False, True])
def test_weights_count_rows_and_unknown_labels_are_left_out(is_additive):
    rng, X, parents, child = draw(3)
    counts = rng.integers(1, 4, size=len(X))
    columns = PrincipalColumns.learn(X, np.ones(len(X)))
    settings = {"C_base": 0.5, "C_shift": 0.1, "tol": 1e-8, "is_additive": is_additive}
    sizes = {"parent_cards": CARDS, "child_card": 2}
    weighted = ShiftModel(columns, **settings).fit(
        X, parents, child, sample_weight=counts.astype(float), **sizes
    )
    # The base has scikit-learn's tolerance.
    repeated = ShiftModel(columns, **settings).fit(
        *(np.repeat(each, counts, axis=0) for each in (X, parents, child)), **sizes
    )
    np.testing.assert_allclose(weighted.log_table(X), repeated.log_table(X), atol=2e-3)
    more = ShiftModel(columns, **settings).fit(
        np.vstack([X, X[:9]]), np.vstack([parents, parents[:9]]), np.append(child, [UNKNOWN] * 9), **sizes
    )
    plain = ShiftModel(columns, **settings).fit(X, parents, child, **sizes)
    np.testing.assert_allclose(more.log_table(X), plain.log_table(X), atol=2e-3)


def test_sparse_columns_give_the_same_model():
    _, X, parents, child = draw(4)
    columns = SparseColumns.learn(sparse.csr_array(X), np.ones(len(X)))
    settings = {"C_base": 0.5, "C_shift": 0.1, "tol": 1e-8}
    sizes = {"parent_cards": CARDS, "child_card": 2}
    model = ShiftModel(columns, **settings).fit(sparse.csr_array(X), parents, child, **sizes)
    dense = fit(X, parents, child)
    assert model.prepare(sparse.csr_array(X)).shape == (len(X), 3)
    # Baselines have scikit-learn's tolerance.
    np.testing.assert_allclose(model.log_table(sparse.csr_array(X)), dense.log_table(X), atol=2e-3)
    own = model.log_proba(sparse.csr_array(X), parents)
    np.testing.assert_allclose(own, dense.log_proba(X, parents), atol=2e-3)


def test_a_family_counts_its_configurations():
    family = ShiftFamily(np.array([0, 1]), 2, np.array([[0, 2], [1, UNKNOWN]]), CARDS, False)
    assert family.n_configurations == 6
    assert family.blocks.tolist() == [2, UNKNOWN]

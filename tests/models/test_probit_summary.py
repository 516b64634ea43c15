"""Tables and pictures of a posterior distribution."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.special import ndtr

from tuplet.core.exceptions import InputError
from tuplet.joint import Probit
from tuplet.models.probit.sampling.summary import (
    combination_table,
    correlation_frame,
    correlation_table,
    inclusion_table,
    trace_table,
)
from tuplet.surface.plots import plot_correlations, plot_trace


def matrices(chains=4, draws=200, q=3, seed=0):
    """Correlation matrices around a common one, independent of each other."""
    rng = np.random.default_rng(seed)
    factors = np.linspace(0.3, 0.9, q)[:, None] + 0.1 * rng.normal(size=(chains, draws, q, 1))
    result = factors @ factors.swapaxes(-1, -2)
    result[..., np.arange(q), np.arange(q)] = 1.0
    return result


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_correlations_by_pair():
    draws = matrices()
    table = correlation_table(draws, ["a", "b", "c"], level=0.9)
    assert list(table.index) == [("a", "b"), ("a", "c"), ("b", "c")]
    values = draws[:, :, 0, 2]
    line = table.loc[("a", "c")]
    np.testing.assert_allclose(line["mean"], values.mean())
    np.testing.assert_allclose(line["sd"], values.std())
    np.testing.assert_allclose(line[["lower", "upper"]].to_numpy(float), np.quantile(values, [0.05, 0.95]))
    assert (table["r_hat"] < 1.02).all()
    assert table["ess"].between(500, 1500).all()  # of 800 independent draws


def test_a_chain_that_stands_apart_shows_in_r_hat():
    values = np.random.default_rng(0).normal(size=(4, 100, 2))
    values[0, :, 1] += 5
    table = trace_table(values, ["good", "bad"])
    assert table.loc["good", "r_hat"] < 1.05 < 1.2 < table.loc["bad", "r_hat"]
    drifting = np.linspace(0, 5, 100)[None, :, None] + values[:1, :, :1]
    assert trace_table(drifting, ["drift"]).loc["drift", "r_hat"] > 1.2  # halves of a single chain


def test_what_never_changes_has_no_diagnostics():
    table = correlation_table(np.tile(np.eye(2), (2, 50, 1, 1)), ["a", "b"])
    assert table[["r_hat", "ess"]].isna().all(axis=None)
    assert table["mean"].item() == 0


def test_correlation_matrix_as_a_frame():
    draws = matrices()
    frame = correlation_frame(draws, ["a", "b", "c"])
    np.testing.assert_allclose(frame.to_numpy(), draws.mean(axis=(0, 1)))
    assert list(frame.columns) == list(frame.index) == ["a", "b", "c"]


def test_inclusion_counts_put_used_features_first():
    counts = np.zeros((10, 2, 3), int)
    counts[:, 0, 2], counts[:, 1, 0] = 6, 2
    table = inclusion_table(counts, ["sick", "share"], ["age", "height", "weight"])
    assert list(table.index) == ["weight", "age", "height"]
    np.testing.assert_allclose(table["share_"], [0.75, 0.25, 0])
    np.testing.assert_allclose(table.loc["weight", ["sick", "share"]].to_numpy(float), [6, 0])
    assert (inclusion_table(counts * 0, ["a", "b"], ["x", "y", "z"])["share"] == 0).all()


def test_combinations_of_a_row_with_intervals():
    rng = np.random.default_rng(1)
    means = np.array([0.8, -0.5, 0.1]) + 0.2 * rng.normal(size=(300, 1, 3))
    joint = Probit(means, matrices(1, 300)[0])
    table = combination_table(joint, ["a", "b", "c"], k=4, level=0.8)
    top = table.iloc[:4]
    assert list(top.index) == [1, 2, 3, 4]
    assert top["probability"].is_monotonic_decreasing
    assert ((top["lower"] < top["probability"]) & (top["probability"] < top["upper"])).all()
    np.testing.assert_allclose(
        np.exp(joint.log_prob(top[["a", "b", "c"]].to_numpy(int)[:, None]))[:, 0],
        top["probability"],
        rtol=1e-6,
    )
    np.testing.assert_allclose(table.iloc[-1, :3].to_numpy(float), ndtr(means[:, 0]).mean(axis=0))
    assert (table.iloc[-3, :3] < table.iloc[-1, :3]).all()
    assert (table.iloc[-1, :3] < table.iloc[-2, :3]).all()
    assert len(combination_table(joint, ["a", "b", "c"], k=50)) == 8 + 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: correlation_table(np.eye(2), ["a", "b"]),
        lambda: trace_table(np.zeros((2, 5, 3)), ["a"]),
        lambda: trace_table(np.zeros((2, 5, 1)), ["a"], level=90),
        lambda: inclusion_table(np.zeros((4, 2, 3)), ["a", "b"], ["x"]),
        lambda: combination_table(Probit(np.zeros((1, 2, 2)), np.eye(2)[None]), ["a", "b"]),
        lambda: plot_correlations(np.eye(2), ["a"]),
        lambda: plot_trace(np.zeros(3)),
    ],
)
def test_what_does_not_fit_is_refused(call):
    with pytest.raises(InputError):
        call()


def test_heat_map_has_numbers_where_there_is_room():
    matrix = matrices().mean(axis=(0, 1))
    ax = plot_correlations(matrix, ["a", "b", "$c"], title="three")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "$c"]
    assert len(ax.texts) == 6
    many = plot_correlations(np.eye(50), [f"label {i}" for i in range(50)])
    assert not many.texts
    assert len(many.get_yticklabels()) == 50


def test_an_arranged_heat_map_keeps_names_with_their_values():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 8)
    matrix = np.where(group[:, None] == group, 0.8, -0.3) + 0.2 * np.eye(8)
    ax = plot_correlations(matrix, range(8), arrange=True)
    order = [int(label.get_text()) for label in ax.get_xticklabels()]
    assert sorted(order) == list(range(8))
    assert (np.diff(group[order]) != 0).sum() == 1  # the two groups stand apart
    shown = np.asarray(ax.images[0].get_array().filled(1.0))
    np.testing.assert_allclose(shown, matrix[np.ix_(order, order)])


def test_traces_draw_into_the_axes_they_are_given():
    _, ax = plt.subplots()
    assert plot_trace(np.zeros((3, 20)), "rho", ax=ax) is ax
    assert len(ax.lines) == 4

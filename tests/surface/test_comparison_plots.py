"""Pictures of comparisons: what is drawn, where, and that it can be read."""

import sys
from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from draws import examples
from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.surface.comparisons import (
    groups_from_difference,
    plot_calibration,
    plot_centred_boxes,
    plot_critical_differences,
    plot_differences,
    plot_pairs,
)
from tuplet.surface.comparisons.pairs import cut_length

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def tick_texts(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def boxes_of(ax, texts):
    """Where these texts are, in pixels, once everything has found its place."""
    ax.figure.draw_without_rendering()
    return [text.get_window_extent() for text in ax.texts if text.get_text() in texts]


def assert_apart(boxes):
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)


# -- groups ------------------------------------------------------------------------------------------------


def maximal(names, alike):
    """All maximal sets of at least two names of which all pairs are alike, by trying every set."""
    cliques = [
        set(subset)
        for size in range(2, len(names) + 1)
        for subset in combinations(names, size)
        if all(alike(a, b) for a, b in combinations(subset, 2))
    ]
    return [clique for clique in cliques if not any(clique < other for other in cliques)]


@examples(25)
@given(
    ranks=st.lists(st.sampled_from([1.0, 1.5, 2.0, 2.25, 3.0, 3.75, 5.0]), min_size=1, max_size=7),
    difference=st.sampled_from([0.25, 0.5, 0.75, 1.0, 2.0, 9.0]),
)
def test_groups_from_difference_are_the_maximal_cliques(ranks, difference):
    ranks = pd.Series(ranks, index=[f"m{i}" for i in range(len(ranks))])
    groups = groups_from_difference(ranks, difference)
    expected = maximal(list(ranks.index), lambda a, b: abs(ranks[a] - ranks[b]) < difference)
    assert sorted(map(sorted, groups)) == sorted(map(sorted, expected))
    assert [ranks[group[0]] for group in groups] == sorted(ranks[group].min() for group in groups)


# -- critical differences ----------------------------------------------------------------------------------


def lines_of_color(ax, color):
    return [line for line in ax.lines if line.get_color() == color and line.get_linestyle() == "-"]


def test_critical_differences_are_drawn_at_the_ranks():
    ranks = pd.Series({"prior": 3.3, "chain": 1.4, "independent": 3.2, "powerset": 2.1})
    ax = plot_critical_differences(ranks, 1.2, title="Cost $")
    ax.figure.canvas.draw()
    stems = sorted(line.get_xdata()[0] for line in ax.lines if line.get_solid_joinstyle() == "miter")
    np.testing.assert_allclose(stems, sorted(ranks))
    bars = sorted(tuple(line.get_xdata()) for line in lines_of_color(ax, "#3b82c4"))
    assert bars == [(1.4, 2.1), (2.1, 3.3)]
    assert {"CD = 1.20", "chain", "1.40", "1", "4"} <= set(texts_of(ax))
    bracket = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 1.4]
    np.testing.assert_allclose(np.diff(bracket[0]), 1.2)
    assert ax.get_title(loc="left") == "Cost $"


@pytest.mark.parametrize("n_models", [1, 3, 8, 20])
def test_critical_differences_can_be_read(n_models):
    rng = np.random.default_rng(n_models)
    names = [f"model {i} with quite a long name {'x' * (i % 12)}" for i in range(n_models)]
    ranks = pd.Series(np.round(rng.uniform(1, max(2, n_models), n_models)), index=names)  # with ties
    ax = plot_critical_differences(ranks, 1.7)
    labels = [text for text in texts_of(ax) if text.startswith("model")]
    assert len(set(labels)) == n_models
    boxes = boxes_of(ax, labels)
    assert_apart(boxes)
    width, height = ax.figure.bbox.width, ax.figure.bbox.height
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


def test_bars_of_one_height_do_not_touch():
    ranks = pd.Series(np.linspace(1, 10, 19), index=[f"m{i}" for i in range(19)])
    ax = plot_critical_differences(ranks, 1.6)
    spans = [(*line.get_xdata(), line.get_ydata()[0]) for line in lines_of_color(ax, "#3b82c4")]
    assert len(spans) == len(groups_from_difference(ranks, 1.6))
    for (start, end, height), (other_start, other_end, other_height) in combinations(spans, 2):
        assert height != other_height or end < other_start or other_end < start


def test_given_groups_replace_those_of_the_critical_difference():
    ranks = pd.Series({"a": 1.0, "b": 2.0, "c": 3.0})
    ax = plot_critical_differences(ranks, 5.0, groups=[["a", "c"], ["b"]])
    (bar,) = lines_of_color(ax, "#3b82c4")
    assert tuple(bar.get_xdata()) == (1.0, 3.0)
    (dots,) = [line for line in ax.lines if line.get_marker() == "o"]
    assert list(dots.get_xdata()) == [1.0, 3.0]  # b is passed, not joined
    assert "CD = 5.00, longer than the axis" in texts_of(ax)
    assert not lines_of_color(plot_critical_differences(ranks), "#3b82c4")
    with pytest.raises(InputError, match=r"name \['d'\]"):
        plot_critical_differences(ranks, groups=[["a", "d"]])
    with pytest.raises(InputError, match="finite average rank"):
        plot_critical_differences(pd.Series({"a": 1.0, "b": np.nan}))


# -- pairs -------------------------------------------------------------------------------------------------

SCORES = pd.DataFrame(
    {"a": [0.5, 0.2, 0.7, 0.4, np.nan, 0.9], "b": [0.4, 0.6, 0.7, 0.1, 0.3, -np.inf]},
    index=["s1", "s2", "s3", "s4", "s5", "s6"],
)


def test_pairs_are_drawn_at_their_scores():
    ax = plot_pairs(SCORES, "a", "b")
    ax.figure.canvas.draw()
    points = {
        marker: sorted(zip(*line.get_data(), strict=True))
        for line in ax.lines
        if (marker := line.get_marker()) in ("o", "s", "D")
    }
    assert points == {"o": [(0.1, 0.4), (0.4, 0.5)], "s": [(0.6, 0.2)], "D": [(0.7, 0.7)]}
    assert ax.get_xlim() == ax.get_ylim()
    assert {"a better: 3", "b better: 1"} <= set(texts_of(ax))  # the infinite one is a win
    assert ax.get_xlabel() == "b\nequal: 1,  infinite, not drawn: 1,  without a result: 1"
    assert {"s2", "s4"} <= set(texts_of(ax))
    assert "s3" not in texts_of(ax)


def test_the_shaded_side_is_where_the_first_is_better():
    for greater_is_better in (True, False):
        ax = plot_pairs(SCORES, "a", "b", greater_is_better=greater_is_better)
        (shade,) = [path for patch in ax.collections for path in patch.get_paths() if len(path.vertices) > 4]
        low, high = ax.get_xlim()
        assert (
            shade.contains_point((low + 0.1 * (high - low), high - 0.1 * (high - low))) == greater_is_better
        )
        wins = 3 if greater_is_better else 1
        assert f"a better: {wins}" in texts_of(ax)


@pytest.mark.parametrize("n_sets", [1, 8, 25])
def test_names_of_outlying_points_do_not_cover_each_other(n_sets):
    rng = np.random.default_rng(n_sets)
    names = [f"a data set of a long name, number {i}" for i in range(n_sets)]
    base = rng.uniform(0.4, 0.6, n_sets)
    scores = pd.DataFrame({"a": base + rng.normal(0, 0.05, n_sets), "b": base}, index=names)
    ax = plot_pairs(scores, "a", "b", errors=0.1 * scores, title="$")
    shown = [text for text in texts_of(ax) if text.startswith("a data")]
    distance = (scores["a"] - scores["b"]).abs()
    assert len(shown) == min(6, int((distance >= 0.15 * distance.max()).sum()))
    assert_apart(boxes_of(ax, shown))


def test_error_bars_of_pairs():
    errors = pd.DataFrame({"b": [0.2], "a": [0.05]}, index=["s1"])  # of one data set only
    ax = plot_pairs(SCORES, "a", "b", errors=errors)
    spans = [segment for patch in ax.containers for bars in patch[2] for segment in bars.get_segments()]
    finite = [segment for segment in spans if len(segment)]
    np.testing.assert_allclose(finite, [[[0.2, 0.5], [0.6, 0.5]], [[0.4, 0.45], [0.4, 0.55]]])


def test_differences_are_sorted_and_coloured_by_sign():
    ax = plot_differences(SCORES, "a", "b", title="Exact match")
    ax.figure.canvas.draw()
    assert tick_texts(ax.yaxis) == ["s4", "s1", "s3", "s2"]
    bars = list(ax.containers[0])
    np.testing.assert_allclose([bar.get_width() for bar in bars], [0.3, 0.1, 0.0, -0.4], atol=1e-12)
    colors = [mpl.colors.to_hex(bar.get_facecolor()) for bar in bars]
    assert colors[0] == colors[1] != colors[3]
    assert {"+0.300", "-0.400", "0", "← b better: 1", "a better: 3 →"} <= set(texts_of(ax))
    ax = plot_differences(SCORES, "a", "b", greater_is_better=False)
    assert tick_texts(ax.yaxis) == ["s2", "s3", "s1", "s4"]
    assert {"← a better: 1", "b better: 3 →"} <= set(texts_of(ax))


def test_errors_of_differences():
    def reach(errors):
        ax = plot_differences(SCORES, "a", "b", errors=errors)
        spans = [patch[2][0].get_segments() for patch in ax.containers if hasattr(patch, "has_xerr")]
        return {round(float(np.ptp(segment[:, 0])) / 2, 9) for segment in spans[0] if len(segment)}

    assert reach(pd.Series({"s1": 0.02})) == {0.02}
    assert reach(pd.DataFrame({"a": [0.03], "b": [0.04]}, index=["s2"])) == {0.05}


def test_a_bar_that_dwarfs_the_others_is_cut_and_says_so():
    scores = pd.DataFrame({"a": [100.0, 1.3, 1.2], "b": [0.0, 1.0, 1.4]}, index=["big", "x", "y"])
    ax = plot_differences(scores, "a", "b")
    assert ax.get_xlim()[1] < 1
    assert "+100.000" in texts_of(ax)
    first, second = ax.containers[0][0], ax.containers[1][0]
    assert first.get_width() < second.get_x()  # the gap


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_cut_lengths_leave_what_is_comparable(lengths):
    lengths = np.array(lengths)
    limit = cut_length(lengths)
    kept = lengths <= limit
    assert (~kept).sum() <= max(1, len(lengths) // 8)
    assert kept.all() or lengths[~kept].min() > 4 * lengths[kept].max()


def test_pairs_that_cannot_be_drawn():
    with pytest.raises(InputError, match=r"plot_pairs: no scores of 'c', only of \['a', 'b'\]"):
        plot_pairs(SCORES, "a", "c")
    with pytest.raises(InputError, match="no data set on which both"):
        plot_differences(SCORES.loc[["s5"]], "a", "b")


# -- boxes -------------------------------------------------------------------------------------------------


def tidy(n_sets=3, n_folds=4, models=("good", "fair", "bad"), seed=0):
    rng = np.random.default_rng(seed)
    lines = [
        (f"set {d}", model, fold, 10.0 * d - position + rng.normal(0, 0.1))
        for d in range(n_sets)
        for position, model in enumerate(models)
        for fold in range(n_folds)
    ]
    return pd.DataFrame(lines, columns=["dataset", "model", "fold", "value"])


@pytest.mark.parametrize("block", ["dataset", "fold"])
def test_boxes_are_centred(block):
    folds = tidy()
    ax = plot_centred_boxes(folds, block=block)
    ax.figure.canvas.draw()
    keys = ["dataset"] if block == "dataset" else ["dataset", "fold"]
    values = folds["value"] - folds.groupby(keys)["value"].transform("mean")  # all models have all folds
    assert tick_texts(ax.yaxis) == ["good", "fair", "bad"]
    for box, model in zip(ax.patches, ["good", "fair", "bad"], strict=True):
        quartiles = np.percentile(values[folds["model"] == model], [25, 75])
        np.testing.assert_allclose(np.unique(box.get_path().vertices[:, 0]), quartiles)
    means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"]
    np.testing.assert_allclose(means, values.groupby(folds["model"]).mean()[["good", "fair", "bad"]])
    assert tick_texts(plot_centred_boxes(folds, greater_is_better=False).yaxis) == ["bad", "fair", "good"]


def test_missing_folds_do_not_move_the_centre():
    folds = tidy(n_sets=1)
    whole = folds.copy()
    folds.loc[(folds["model"] == "bad") & (folds["fold"] > 0), "value"] = np.nan
    ax = plot_centred_boxes(folds)
    assert tick_texts(ax.yaxis) == ["good (n = 4)", "fair (n = 4)", "bad (n = 1)"]
    assert ax.get_xlabel().endswith("1 data set, 9 values, 3 without a finite value")
    centre = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"]
    means = whole.groupby("model")["value"].mean()
    means["bad"] = folds.loc[(folds["model"] == "bad"), "value"].dropna().iloc[0]
    np.testing.assert_allclose(centre, (means - means.mean())[["good", "fair", "bad"]])


def test_a_value_far_away_is_counted_not_drawn():
    folds = tidy(models=("a", "b"), n_folds=10)
    folds.loc[3, "value"] = -1000.0
    ax = plot_centred_boxes(folds, block="fold")
    ax.figure.canvas.draw()
    assert max(map(abs, ax.get_xlim())) < 10
    # Of 30 values, one is 499.5 below the mean of the two models, the others about 0.5 above: -16.2.
    assert {"1 far below, mean -16", "1 far above, mean 16"} <= set(texts_of(ax))


def test_boxes_that_cannot_be_drawn():
    with pytest.raises(InputError, match=r"it lacks \['fold'\]"):
        plot_centred_boxes(tidy().drop(columns="fold"))
    with pytest.raises(InputError, match="no finite value"):
        plot_centred_boxes(tidy().assign(value=np.nan))
    with pytest.raises(InputError, match="block must be"):
        plot_centred_boxes(tidy(), block="model")


# -- calibration -------------------------------------------------------------------------------------------

BINS = pd.DataFrame(
    {
        "lower": [0.0, 0.2, 0.8],
        "upper": [0.2, 0.4, 1.0],
        "mean_predicted": [0.1, 0.35, 0.9],
        "observed": [0.0, 0.5, 0.8],
        "count": [30.0, 8.0, 50.0],
    }
)


def test_calibration_is_drawn_where_the_bins_are():
    ax = plot_calibration(BINS, confidence=0.9, title="Marginals")
    ax.figure.canvas.draw()
    curve = ax.lines[-1]
    np.testing.assert_array_equal(curve.get_xdata(), BINS["mean_predicted"])
    np.testing.assert_array_equal(curve.get_ydata(), BINS["observed"])
    (band,) = ax.collections
    corners = {(round(x, 9), round(y, 9)) for x, y in band.get_paths()[0].vertices}
    for predicted, observed, count in BINS[["mean_predicted", "observed", "count"]].itertuples(index=False):
        interval = binomtest(round(observed * count), int(count)).proportion_ci(0.9, method="wilson")
        assert {(predicted, round(interval.low, 9)), (predicted, round(interval.high, 9))} <= corners
    bars = ax.child_axes[0].patches
    assert [bar.get_height() for bar in bars] == [30, 8, 50]
    np.testing.assert_allclose([bar.get_x() for bar in bars], BINS["lower"])
    assert ax.get_legend() is None


@pytest.mark.parametrize("n_models", [1, 8, 20])
def test_calibration_of_several_models(n_models):
    names = [f"_model ${i}$" for i in range(n_models)]
    ax = plot_calibration(dict.fromkeys(names, BINS))
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.lines[1:]}
    assert len(looks) == n_models
    below = ax.child_axes[0].get_tightbbox()
    assert below.y0 >= 0  # within the picture


def test_calibration_that_cannot_be_drawn():
    with pytest.raises(InputError, match=r"table of 'm' lacks the columns \['count'\]"):
        plot_calibration({"m": BINS.drop(columns="count")})
    with pytest.raises(InputError, match="the table is empty"):
        plot_calibration(BINS.iloc[:0])
    with pytest.raises(InputError, match="no model"):
        plot_calibration({})
    with pytest.raises(InputError, match="confidence must be between 0 and 1, found 95"):
        plot_calibration(BINS, confidence=95)


# -- all ---------------------------------------------------------------------------------------------------

EVERY = [
    lambda **more: plot_critical_differences(pd.Series({"a": 1.0, "b": 2.0}), 0.5, **more),
    lambda **more: plot_pairs(SCORES, "a", "b", **more),
    lambda **more: plot_differences(SCORES, "a", "b", **more),
    lambda **more: plot_centred_boxes(tidy(), **more),
    lambda **more: plot_calibration({"a": BINS}, **more),
]


def test_all_draw_on_given_axes():
    figure, axes = plt.subplots(3, 2, figsize=(10, 14), layout="constrained")
    for plot, ax in zip(EVERY, axes.flat, strict=False):
        assert plot(ax=ax) is ax
    figure.canvas.draw()
    assert len(plt.get_fignums()) == 1


def test_plots_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in EVERY:
        with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[plots\]"):
            plot()

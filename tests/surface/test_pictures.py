"""Pictures of predictions, labels and paths: that what is drawn is what was computed another way."""

import itertools
import sys
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from draws import examples
from tuplet import (
    AutoJointClassifier,
    NeighborClassifier,
    PriorClassifier,
    ProbitClassifier,
    RuleStackingClassifier,
    TreeMixtureClassifier,
)
from tuplet.core import clock
from tuplet.core.exceptions import ConvergenceWarning, InputError, MissingDependencyError
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Atoms
from tuplet.joint.base import all_outcomes
from tuplet.metrics import marginal_calibration, mode_calibration, top_k_accuracy
from tuplet.prediction import JointPrediction
from tuplet.prediction.dependence import conditional_dependence, label_dependence
from tuplet.space import ClassSpace
from tuplet.surface.plots import (
    LearningPath,
    plot_calibration,
    plot_combinations,
    plot_coverage,
    plot_dependence,
    plot_label_dependence,
    plot_marginals,
    plot_pair_table,
    plot_path,
)

mpl.use("Agg")

CARDS = (2, 3, 2)
SPACE = ClassSpace(
    ("rain", "$wind", "cold"),
    (np.array([0, 1]), np.array(["low", "<mid>", "high"]), np.array([False, True])),
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def random_joint(n, seed=0, cards=CARDS):
    """All outcomes with random probabilities, and these as an array (n, *cards)."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(np.prod(cards), 0.5), size=n)
    return Atoms(cards, all_outcomes(cards)[None], np.log(table)), table.reshape(n, *cards)


def random_labels(n, seed=0, missing=0.0, cards=CARDS):
    rng = np.random.default_rng(seed + 1)
    codes = np.column_stack([rng.integers(card, size=n) for card in cards])
    return np.where(rng.random(codes.shape) < missing, UNKNOWN, codes)


def prediction_of(n=20, seed=0):
    return JointPrediction(random_joint(n, seed)[0], SPACE)


def tick_texts(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


# -- coverage ----------------------------------------------------------------------------------------------


def coverage_by_hand(table, truth, k):
    """Shares of rows, observed and expected, over all outcomes of every row."""
    outcomes, observed, expected = all_outcomes(CARDS), [], []
    for chances, codes in zip(table.reshape(len(table), -1), truth, strict=True):
        known = codes != UNKNOWN
        if not known.any():
            continue
        best = outcomes[np.argsort(-chances, kind="stable")[:k]][:, known]
        observed.append((best == codes[known]).all(axis=1).any())
        covered = [any((row == one).all() for one in best) for row in outcomes[:, known]]
        expected.append(chances[covered].sum())
    return np.mean(observed), np.mean(expected)


@examples(15)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.4, 0.8]))
def test_coverage_is_what_counting_all_outcomes_gives(seed, missing):
    joint, table = random_joint(12, seed)
    truth = random_labels(12, seed, missing)
    truth[0] = 0  # at least one row is known
    curve = JointPrediction(joint, SPACE).coverage(SPACE.decode(truth), k=5)
    assert curve["k"].tolist() == [1, 2, 3, 4, 5]
    for k, observed, expected in zip(curve["k"], curve["observed"], curve["expected"], strict=True):
        np.testing.assert_allclose((observed, expected), coverage_by_hand(table, truth, k), atol=1e-12)


def test_coverage_goes_along_with_the_metric_and_knows_labels_that_training_lacks():
    prediction, Y = prediction_of(), SPACE.decode(random_labels(20, missing=0.2)).astype(object)
    Y.iloc[3, 1] = "storm"
    curve = prediction.coverage(Y, k=12)
    for k in (1, 4, 12):
        assert curve["observed"][k - 1] == pytest.approx(top_k_accuracy(Y, prediction, k))
    assert curve["observed"].iloc[-1] == pytest.approx(1 - 1 / curve["count"][0])  # the storm


def test_the_picture_of_coverage_has_both_lines():
    prediction, Y = prediction_of(), SPACE.decode(random_labels(20))
    ax, curve = prediction.plot_coverage(Y, k=6, title="$t"), prediction.coverage(Y, k=6)
    observed, expected = ax.lines[:2]
    np.testing.assert_allclose(observed.get_xydata(), curve[["k", "observed"]])
    np.testing.assert_allclose(expected.get_ydata(), curve["expected"])
    several = plot_coverage({"one": curve, "$two": curve.head(1)})
    assert [text.get_text() for text in several.get_legend().get_texts()][:2] == ["one", "$two"]
    several.figure.draw_without_rendering()


# -- dependence --------------------------------------------------------------------------------------------


def as_strength(nats):
    return np.sqrt(1 - np.exp(-2 * max(nats, 0.0)))


def test_dependence_of_labels_is_mutual_information_less_its_bias():
    codes = random_labels(60, missing=0.2)
    codes[:, 2] = np.where(codes[:, 0] == UNKNOWN, codes[:, 2], codes[:, 0])
    found = label_dependence(codes)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        both = (codes[:, [i, j]] != UNKNOWN).all(axis=1)
        nats = mutual_info_score(codes[both, i], codes[both, j])
        bias = (CARDS[i] - 1) * (CARDS[j] - 1) / (2 * both.sum())
        assert found[i, j] == found[j, i] == pytest.approx(as_strength(nats - bias))
    assert np.isnan(np.diag(found)).all()


def test_dependence_given_x_is_the_mean_information_of_the_rows():
    joint, table = random_joint(7)
    found = conditional_dependence(joint)
    for i, j, other in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        pairs = table.sum(axis=other + 1)
        nats = [
            entropy(pair.sum(axis=0)) + entropy(pair.sum(axis=1)) - entropy(pair.ravel()) for pair in pairs
        ]
        assert found[i, j] == pytest.approx(as_strength(np.mean(nats)))
    frame = JointPrediction(joint, SPACE).dependence()
    assert list(frame.index) == list(frame.columns) == list(SPACE.names)
    np.testing.assert_array_equal(frame, found)


def test_independent_labels_have_no_dependence_given_x():
    chances = [np.array([0.3, 0.7]), np.array([0.1, 0.2, 0.7]), np.array([0.5, 0.5])]
    table = np.einsum("i,j,k->ijk", *chances).reshape(1, -1)
    found = conditional_dependence(Atoms(CARDS, all_outcomes(CARDS)[None], np.log(table)))
    np.testing.assert_allclose(found[np.triu_indices(3, 1)], 0, atol=1e-7)


@pytest.mark.parametrize("q", [2, 5, 50])
def test_heat_maps_show_every_pair_at_its_names(q):
    rng = np.random.default_rng(q)
    half = np.triu(rng.random((q, q)), 1)
    matrix, names = half + half.T, [f"variable ${i}" for i in range(q)]
    ax = plot_dependence(matrix, names)
    ax.figure.draw_without_rendering()
    shown, across, down = ax.images[0].get_array().data, tick_texts(ax.xaxis), tick_texts(ax.yaxis)
    assert sorted(across) == sorted(names)
    assert across == down
    order = [names.index(name) for name in across]
    expected = matrix[np.ix_(order, order)]
    off = ~np.eye(q, dtype=bool)
    np.testing.assert_array_equal(shown[off], expected[off])
    assert len(ax.texts) == (q * (q - 1) if q <= 12 else 0)


def test_labels_of_a_data_set_are_drawn_by_their_names():
    codes = random_labels(50)
    ax = plot_label_dependence(SPACE.decode(codes), arrange=False)
    assert tick_texts(ax.yaxis) == list(SPACE.names)
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(ax.images[0].get_array().data[off], label_dependence(codes)[off])


# -- rows --------------------------------------------------------------------------------------------------


def test_marginals_of_a_row_are_bars_and_only_the_yes_of_yes_or_no():
    prediction = prediction_of()
    ax = prediction.plot_marginals(4)
    tables = [table[4] for table in prediction.distribution.marginals()]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [tables[0][1], *tables[1], tables[2][1]])
    assert tick_texts(ax.yaxis) == ["rain", "$wind: low", "<mid>", "high", "cold"]
    ax.figure.draw_without_rendering()


def test_marginals_of_several_rows_are_filled_where_labels_hold():
    prediction, Y = prediction_of(), SPACE.decode(random_labels(20))
    ax = prediction.plot_marginals([2, 5], Y=Y)
    codes = SPACE.encode(Y)[[2, 5]]
    tables = [table[[2, 5]] for table in prediction.distribution.marginals()]
    lines = [(0, 1), (1, 0), (1, 1), (1, 2), (2, 1)]
    marks = [line for line in ax.lines if len(line.get_xdata())]
    for r in range(2):
        full, empty = marks[2 * r : 2 * r + 2]
        holds = [codes[r, j] == code for j, code in lines]
        chances = np.array([tables[j][r, code] for j, code in lines])
        np.testing.assert_allclose(full.get_xdata(), chances[holds])
        np.testing.assert_allclose(empty.get_xdata(), chances[np.logical_not(holds)])


def test_marginals_have_the_credible_intervals_of_the_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = pd.DataFrame((X @ rng.normal(size=(2, 2)) + rng.normal(size=(60, 2)) > 0), columns=["a", "b"])
    model = ProbitClassifier(n_draws=60, n_burn=30, n_chains=2, random_state=0, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few draws tell little
        model.fit(X, Y)
    prediction = model.predict_joint(X[:3])
    ax = prediction.plot_marginals([0, 2], level=0.8)
    limits = prediction.intervals(level=0.8)
    drawn = [np.array(lines.get_segments())[:, :, 0] for lines in ax.collections[-2:]]
    for row, segments in zip((0, 2), drawn, strict=True):
        np.testing.assert_allclose(segments, limits[limits["row"] == row][["lower", "upper"]])


def test_faint_labels_of_many_are_left_out_unless_they_hold():
    m = 40
    space = ClassSpace(tuple(f"tag {j}" for j in range(m)), (np.array([0, 1]),) * m)
    chances = np.full(m, 0.001)
    chances[[3, 7]] = 0.5, 0.02
    tables = [np.array([[1 - chance, chance]]) for chance in chances]
    assert tick_texts(plot_marginals(tables, space).yaxis) == ["tag 3", "tag 7"]
    truth = np.zeros((1, m), dtype=int)
    truth[0, 20] = 1
    ax = plot_marginals(tables, space, truth=truth)
    assert tick_texts(ax.yaxis) == ["tag 3", "tag 7", "tag 20"]
    assert "37 labels below 0.02 are left out" in ax.get_xlabel()


def test_of_too_many_labels_the_most_probable_ones_are_drawn():
    cards = (5,) * 30
    space = ClassSpace(tuple(f"v{j}" for j in range(30)), tuple(np.arange(5) + 10 for _ in cards))
    tables = list(np.random.default_rng(0).dirichlet(np.ones(5), size=(30, 2)))
    ax = plot_marginals(tables, space, rows=["a", "b"])
    best = [int(table.mean(axis=0).argmax()) + 10 for table in tables]
    assert tick_texts(ax.yaxis) == [f"v{j}: {label}" for j, label in enumerate(best)]


def test_the_table_of_two_variables_is_their_joint_distribution():
    prediction = prediction_of()
    Y = SPACE.decode(random_labels(20))
    ax = prediction.plot_table("cold", "$wind", row=6, Y=Y)
    table = prediction.pairwise("cold", "$wind")[6]
    np.testing.assert_allclose(ax.images[0].get_array().data, table)
    assert tick_texts(ax.xaxis) == ["low", "<mid>", "high"]
    assert [float(text) for text in texts_of(ax)[6:]] == pytest.approx(
        [*table.sum(axis=1), *table.sum(axis=0)], abs=6e-4
    )
    (frame,) = ax.patches
    codes = SPACE.encode(Y)[6]
    left, top = frame.get_xy()
    middle = left + frame.get_width() / 2, top + frame.get_height() / 2
    np.testing.assert_allclose(middle, codes[[1, 2]])


def test_by_default_the_table_is_that_of_the_strongest_pair():
    prediction = prediction_of(3)
    for row in range(3):
        strengths = np.nan_to_num(conditional_dependence(prediction.distribution[[row]]))
        i, j = sorted(np.unravel_index(strengths.argmax(), (3, 3)))
        ax = prediction.plot_table(row=row)
        assert (ax.get_ylabel(), ax.get_xlabel()) == (SPACE.names[i], SPACE.names[j])
        other = strengths[1].argmax()
        assert prediction.plot_table("$wind", row=row).get_xlabel() == SPACE.names[other]
        assert prediction.plot_table(b="$wind", row=row).get_ylabel() == SPACE.names[other]


def test_true_combinations_have_a_tick_or_a_remark():
    joint, table = random_joint(1, seed=3)
    flat = table.ravel()
    order = np.argsort(-flat)
    best, worst = (all_outcomes(CARDS)[order[i]] for i in (1, -1))
    ticked = plot_combinations(joint, SPACE, k=3, truth=best)
    assert ["✓" in text for text in tick_texts(ticked.yaxis)][:3] == [False, True, False]
    none = plot_combinations(joint, SPACE, k=3, truth=worst)
    assert "none of them is true" in none.get_xlabel()
    gap = best.copy()
    gap[1] = UNKNOWN
    shown = all_outcomes(CARDS)[order[:3]]
    agrees = (shown[:, [0, 2]] == gap[[0, 2]]).all(axis=1)
    texts = tick_texts(plot_combinations(joint, SPACE, k=3, truth=gap).yaxis)
    assert ["✓" in text for text in texts][:3] == agrees.tolist()


# -- reliability -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "names"), [("both", [0, 1]), ("marginals", [0]), ("mode", [1])])
def test_reliability_is_that_of_the_metrics(kind, names):
    prediction, Y = prediction_of(60), SPACE.decode(random_labels(60, missing=0.1))
    ax = prediction.plot_reliability(Y, kind, n_bins=5)
    lines = [line for line in ax.lines if line.get_marker() not in ("", "None")]
    tables = [marginal_calibration(Y, prediction, 5), mode_calibration(Y, prediction, 5)]
    assert len(lines) == len(names)
    for line, name in zip(lines, names, strict=True):
        np.testing.assert_allclose(line.get_xydata(), tables[name][["mean_predicted", "observed"]])


# -- paths -------------------------------------------------------------------------------------------------


def test_a_path_shows_scores_errors_and_what_was_kept():
    path = LearningPath([0, 1, 2], [0.0, 0.3, 0.2], "$rules", "gain", errors=[0.0, 0.1, 0.1], chosen=1)
    ax = plot_path(path)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[0, 0.0], [1, 0.3], [2, 0.2]])
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[1, 0.3]])
    assert ax.get_legend().get_texts()[0].get_text() == "kept: 1"


def test_tries_have_the_best_so_far_and_names_of_leaders():
    rng = np.random.default_rng(0)
    steps, scores = rng.permutation(30).astype(float), rng.normal(size=30)
    names = tuple(f"model {i}" for i in range(30))
    ax = plot_path(LearningPath(steps, scores, "seconds", "score", names=names, level=3.0, level_name="all"))
    order = np.argsort(steps)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), np.maximum.accumulate(scores[order]))
    assert names[int(scores.argmax())] in texts_of(ax)
    ax.figure.draw_without_rendering()


def related_labels(n=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    first = X[:, 0] + rng.normal(size=n) > 0
    second = first ^ (rng.random(n) < 0.1)
    return X, np.column_stack([first, second, X[:, 1] > 0]).astype(int)


def test_models_draw_the_paths_that_they_went():
    X, y = related_labels()
    trees = TreeMixtureClassifier(max_trees=3, progress=False, random_state=0).fit(X, y)
    line = trees.plot_path().lines[0]
    np.testing.assert_allclose(line.get_ydata(), trees.validation_path_)
    rules = RuleStackingClassifier(max_rules=3, progress=False, random_state=0).fit(X, y)
    ax = rules.plot_path()
    np.testing.assert_allclose(ax.lines[0].get_ydata()[1:], rules.learned_.held_out)
    assert ax.lines[1].get_xdata() == [len(rules.rules_)]


def test_a_race_has_its_course(monkeypatch):
    ticks = itertools.count(step=0.01)
    monkeypatch.setattr(clock, "now", lambda: next(ticks))  # 20 s are 2,000 readings, on any machine
    X, y = related_labels(60)
    models = {"prior": PriorClassifier(), "neighbours": NeighborClassifier()}
    model = AutoJointClassifier(20, models=models, cv=2, n_jobs=1, progress=False, random_state=0).fit(X, y)
    race, board = model.race_, model.leaderboard_.set_index("model")
    assert sorted(race["model"]) == sorted(models)
    assert race["seconds"].is_monotonic_increasing
    assert race["log_likelihood"].tolist() == board.loc[race["model"], "log_likelihood"].tolist()
    ax = model.plot_path()
    np.testing.assert_allclose(ax.lines[0].get_xydata(), race[["seconds", "log_likelihood"]])
    assert ax.lines[-1].get_ydata()[0] == model.log_likelihood_
    assert model.log_likelihood_ >= race["log_likelihood"].max() - 1e-9


def test_paths_that_were_given_are_no_paths():
    X, y = related_labels(60)
    with pytest.raises(InputError, match="was given"):
        TreeMixtureClassifier(n_trees=1, progress=False).fit(X, y).plot_path()
    with pytest.raises(InputError, match="was given"):
        RuleStackingClassifier(n_rules=0, progress=False).fit(X, y).plot_path()


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot_dependence(np.eye(2), ["a"]), "does not fit 1 names"),
        (lambda: plot_pair_table(np.eye(2), ("a", "b"), (["x"], ["y", "z"])), "does not fit 1 and 2"),
        (lambda: plot_marginals([], SPACE), "found 0 of 0"),
        (lambda: plot_path(LearningPath([1, 2], [1.0], "a", "b")), "must be as many"),
        (lambda: plot_coverage(pd.DataFrame({"k": [1]})), "lacks the columns"),
        (lambda: prediction_of().plot_marginals(range(8)), "from 1 to 7 rows"),
        (lambda: prediction_of().plot_table("rain", "rain"), "two different variables"),
        (lambda: prediction_of().marginal("rain").plot_table(), "one class variable only"),
        (lambda: prediction_of().plot_reliability(SPACE.decode(random_labels(20)), "joint"), "found 'joint'"),
        (lambda: prediction_of().coverage(SPACE.decode(np.full((20, 3), UNKNOWN))), "no row with a known"),
        (lambda: prediction_of().plot_table(row=[1, 2]), "one row can be drawn at a time"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(draw, message):
    with pytest.raises(InputError, match=message):
        draw()


def test_without_matplotlib_every_picture_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    prediction, Y = prediction_of(), SPACE.decode(random_labels(20))
    curve = prediction.coverage(Y)
    for draw in (
        lambda: prediction.plot_marginals(),
        lambda: prediction.plot_table(),
        lambda: prediction.plot_dependence(),
        lambda: prediction.plot_reliability(Y),
        lambda: plot_coverage(curve),
        lambda: plot_label_dependence(Y),
        lambda: plot_path(LearningPath([1], [1.0], "a", "b")),
        lambda: plot_calibration(marginal_calibration(Y, prediction)),
    ):
        with pytest.raises(MissingDependencyError, match="matplotlib"):
            draw()

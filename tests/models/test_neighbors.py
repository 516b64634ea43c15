"""ML-kNN, and the neighbourhoods that instance-based models share."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skmultilearn.adapt import MLkNN

from draws import examples
from tuplet.joint import FactorGraph
from tuplet.models.count_tables import CountTables, _added, _left_out, counted_rows
from tuplet.models.neighborhoods import relevance
from tuplet.models.neighbors import NeighborClassifier, Neighborhoods


def binary(n=120, m=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :m] + X[:, [3]] + rng.normal(size=(n, m)) > 0.4).astype(int)


def three_labels(n=120, seed=0):
    X, Y = binary(n, 2, seed)
    return X, np.column_stack([Y, Y.sum(axis=1)])


@pytest.mark.parametrize("k", [1, 5, 10])
@pytest.mark.parametrize("s", [0.5, 1.0])
def test_marginals_are_those_of_scikit_multilearn(k, s):
    X, Y = binary()
    # Its neighbourhoods of training rows contain the row, unless it is told to skip the nearest one; which it
    # then does for new rows as well, where it is wrong.
    theirs = MLkNN(k=k, s=s, ignore_first_neighbours=1).fit(X[:90], Y[:90])
    theirs.ignore_first_neighbours = 0
    ours = NeighborClassifier(k, smoothing=s, standardize=False).fit(X[:90], Y[:90])
    expected = theirs.predict_proba(X[90:]).toarray()
    given_one = np.column_stack([table[:, 1] for table in ours.predict_proba(X[90:])])
    np.testing.assert_allclose(given_one, expected, atol=1e-12)


def plain_posterior(X, y, k, s, x):
    """p(y = c | how many of the k nearest have c), each label against all others, normalised; by counting."""
    order = lambda point, rows: sorted(rows, key=lambda i: np.sum((X[i] - point) ** 2))[:k]  # noqa: E731
    rows = range(len(y))
    scores = []
    for c in np.unique(y):
        count = lambda near, c=c: sum(y[i] == c for i in near)  # noqa: E731
        counts = [count(order(X[i], [r for r in rows if r != i])) for i in rows]
        here = count(order(x, rows))
        weights = []
        for member in (True, False):
            mine = [counts[i] for i in rows if (y[i] == c) == member]
            prior = (s + len(mine)) / (2 * s + len(y))
            weights.append(prior * (s + mine.count(here)) / (s * (k + 1) + len(mine)))
        scores.append(weights[0] / sum(weights))
    return np.array(scores) / sum(scores)


def test_several_labels_are_asked_about_one_by_one():
    X, Y = three_labels(60)
    model = NeighborClassifier(4, smoothing=1.0, standardize=False).fit(X[:50], Y[:50])
    for j in range(3):
        proba = model.predict_proba(X[50:])[j]
        expected = [plain_posterior(X[:50], Y[:50, j], 4, 1.0, x) for x in X[50:]]
        np.testing.assert_allclose(proba, expected, atol=1e-12)


def test_the_joint_is_the_product_of_the_marginals():
    X, Y = three_labels()
    prediction = NeighborClassifier().fit(X, Y).predict_joint(X)
    assert isinstance(prediction.distribution, FactorGraph)
    marginals = prediction.distribution.marginals()
    product = sum(np.log(p[np.arange(len(Y)), Y[:, j]]) for j, p in enumerate(marginals))
    np.testing.assert_allclose(prediction.log_prob(Y), product)


@examples(25)
@given(st.lists(st.integers(1, 4), min_size=6, max_size=12), st.integers(1, 8), st.integers(0, 1000))
def test_weights_are_numbers_of_rows(weights, k, seed):
    rng = np.random.default_rng(seed)
    weights = np.array(weights)
    X, labels, new = (
        rng.normal(size=(len(weights), 2)),
        rng.normal(size=(len(weights), 3)),
        rng.normal(size=(4, 2)),
    )
    times = np.repeat(np.arange(len(weights)), weights)
    weighted = Neighborhoods.fit(X, k, weights.astype(float), standardize=True, n_jobs=None)
    repeated = Neighborhoods.fit(X[times], k, None, standardize=True, n_jobs=None)
    assert weighted.k == repeated.k == min(k, len(times) - 1)
    np.testing.assert_allclose(
        weighted.sums_around(new, labels), repeated.sums_around(new, labels[times]), atol=1e-9
    )
    np.testing.assert_allclose(
        weighted.sums_among_training(labels, np.arange(len(X)))[times],
        repeated.sums_among_training(labels[times], np.arange(len(times))),
        atol=1e-9,
    )


def test_fractions_of_rows_fill_fractions_of_places():
    X = np.arange(6.0)[:, None]
    near = Neighborhoods.fit(X, 1, np.full(6, 0.4), standardize=False, n_jobs=None)
    np.testing.assert_allclose(near.sums_around(np.array([[0.1]]), np.eye(6)), [[0.4, 0.4, 0.2, 0, 0, 0]])
    among = near.sums_among_training(np.eye(6), np.arange(6))
    np.testing.assert_allclose(among.sum(axis=1), 1)
    assert (among.diagonal() == 0).all()


def slow_sums(X, weights, k, columns, point, own=None):
    """Sums over the k nearest places, one unit of the row `own` left out, by sorting all rows."""
    left, total = float(k), np.zeros(columns.shape[1])
    distance = ((X - point) ** 2).sum(axis=1)
    for i in np.argsort(distance, kind="stable"):
        taken = min(left, max(weights[i] - 1, 0) if i == own else weights[i])
        total, left = total + taken * columns[i], left - taken
    return total


@examples(40)
@given(st.integers(3, 40), st.integers(1, 9), st.sampled_from([0.01, 0.3, 1.0, 4.0]), st.integers(0, 1000))
def test_neighbourhoods_of_any_weights_are_those_of_sorted_rows(n, k, scale, seed):
    rng = np.random.default_rng(seed)
    X, columns, new = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.normal(size=(3, 3))
    weights = scale * rng.exponential(size=n) ** 3 + 1e-6  # most are light: more rows have to be asked for
    near = Neighborhoods.fit(X, k, weights, standardize=False, n_jobs=None)
    around = [slow_sums(X, weights, near.k, columns, x) for x in new]
    np.testing.assert_allclose(near.sums_around(new, columns), around, atol=1e-9)
    some = rng.permutation(n)[: n // 2 + 1]
    among = [slow_sums(X, weights, near.k, columns, X[i], i) for i in some]
    np.testing.assert_allclose(near.sums_among_training(columns, some), among, atol=1e-9)


def test_weights_that_add_up_to_one_need_no_search(monkeypatch):
    X, Y = binary(60)
    near = Neighborhoods.fit(X, 5, np.full(60, 1 / 60), standardize=True, n_jobs=None)
    monkeypatch.setattr(Neighborhoods, "_search", None)
    expected = (Y.sum(axis=0) - Y) / 60
    np.testing.assert_allclose(near.sums_among_training(Y.astype(float), np.arange(60)), expected)


def test_rows_that_are_not_drawn_teach_priors_and_are_neighbours():
    X, Y = binary(4000, seed=1)
    published = {"smoothing": 1.0, "standardize": True}
    Y[:, 2] &= np.random.default_rng(0).random(4000) < 0.06  # a rare label
    whole = NeighborClassifier(**published, n_learned=None).fit(X, Y)
    drawn = NeighborClassifier(**published, n_learned=1000).fit(X, Y)
    np.testing.assert_array_equal(drawn.prior_, whole.prior_)
    same = NeighborClassifier(**published, n_learned=4000).fit(X, Y)
    np.testing.assert_array_equal(same.likelihood_, whole.likelihood_)
    assert Y[:, 2].sum() < 128  # all of its rows count, then
    np.testing.assert_allclose(drawn.likelihood_[1, 2], whole.likelihood_[1, 2])
    np.testing.assert_allclose(drawn.likelihood_, whole.likelihood_, atol=0.06)
    new, true = binary(500, seed=2)
    gap = whole.predict_joint(new).log_prob(true) - drawn.predict_joint(new).log_prob(true)
    assert abs(gap.mean()) < 0.02


def test_missing_labels_count_by_frequencies_and_change_nothing_else():
    X, Y = binary()
    frame = pd.DataFrame(Y, columns=["a", "b", "c"]).astype("Int64")
    complete = NeighborClassifier(smoothing=1.0, standardize=True).fit(X, frame)
    frame.loc[::3, "b"] = pd.NA
    model = NeighborClassifier(smoothing=1.0, standardize=True).fit(X, frame)
    before, after = complete.predict_proba(X), model.predict_proba(X)
    np.testing.assert_allclose(after[0], before[0])
    np.testing.assert_allclose(after[2], before[2])
    np.testing.assert_allclose(after[1].sum(axis=1), 1)
    assert ((after[1][:, 1] > 0.5) == Y[:, 1]).mean() > 0.6


def test_few_rows_constant_labels_and_gaps():
    model = NeighborClassifier().fit([[1.0, np.nan], [2.0, 3.0], [0.0, 1.0]], [["a", 1], ["a", 0], ["a", 0]])
    assert model.neighborhoods_.k == 2
    first, second = model.predict_proba([[np.nan, 0.0]])
    assert first.tolist() == [[1.0]]
    assert 0 < second[0, 1] < 0.5


# -- few rows and columns without information --------------------------------------------------------------


@examples(20)
@given(st.integers(5, 30), st.integers(1, 4), st.sampled_from([0.0, 3.0, 100.0]), st.integers(0, 1000))
def test_scores_of_tables_are_those_of_leaving_each_row_out(n, k, strength, seed):
    rng = np.random.default_rng(seed)
    counts, labels = rng.integers(0, k + 1, (n, 2)).astype(float), rng.integers(0, 2, (n, 2)).astype(float)
    sides, prior = [1 - labels, labels], np.array([0.3, 0.6])
    total = 0.0
    for i in range(n):
        keep = np.arange(n) != i
        counted = counted_rows(counts[keep], [side[keep] for side in sides], k)
        # The rows added to both sides are as many as before; only their distribution changes.
        added = _added(counted.sum(axis=0), strength)
        proba = CountTables.with_rows(prior, counted, added).proba(counts[i : i + 1])[0]
        own = np.where(labels[i] == 1, proba, 1 - proba)
        size = np.where(labels[i] == 1, labels.sum(axis=0), (1 - labels).sum(axis=0))
        total += (np.where(labels[i] == 1, prior, 1 - prior) / size * np.log(own)).sum()
    assert _left_out(prior, counted_rows(counts, sides, k), strength) == pytest.approx(total)


@pytest.mark.parametrize("groups", [None, np.array([0, 0, 1, 2, 2, 3])])
def test_what_rows_lack_is_the_difference_to_new_rows_over_all_orders_of_the_neighbours(groups):
    """Any of the other rows is as likely to be near: the mean over all of them stands for all orders."""
    X, labels = np.arange(6.0)[:, None], np.array([[1.0], [0], [0], [1], [1], [0]])
    weights = np.array([1.0, 2, 1, 1, 3, 1])
    near = Neighborhoods.fit(X, 3, weights, standardize=False, n_jobs=None, groups=groups)
    lacking = near.lacking(labels, np.arange(6), groups)
    for i in range(6):
        left = weights - (np.arange(6) == i)  # a unit of the row itself
        if groups is not None:
            left = np.where(groups == groups[i], 0.0, weights)
        expected = near.k * (weights @ labels / weights.sum() - left @ labels / left.sum())
        np.testing.assert_allclose(lacking[i], expected)


def test_where_neighbours_are_of_no_use_predictions_are_the_frequencies():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 5)), rng.integers(0, 2, (60, 3))
    model = NeighborClassifier(30).fit(X, Y)
    assert max(np.ptp(table[:, 1]) for table in model.predict_proba(rng.normal(size=(50, 5)))) < 0.25
    plain = NeighborClassifier(30, smoothing=1.0).fit(X, Y)
    new = rng.normal(size=(400, 5)), rng.integers(0, 2, (400, 3))
    ours, theirs = (each.predict_joint(new[0]).log_prob(new[1]).mean() for each in (model, plain))
    assert ours > theirs


def test_columns_without_information_do_not_matter():
    X, Y = binary(400)
    junk = np.random.default_rng(1).normal(size=(400, 20))
    model = NeighborClassifier().fit(np.hstack([X, junk])[:300], Y[:300])
    factors = model.neighborhoods_.factors
    assert factors[:4].min() > 3 * factors[4:].mean()
    equal = NeighborClassifier(standardize=True).fit(np.hstack([X, junk])[:300], Y[:300])
    ours, theirs = (each.predict_joint(np.hstack([X, junk])[300:]) for each in (model, equal))
    assert ours.log_prob(Y[300:]).mean() > theirs.log_prob(Y[300:]).mean() + 0.1


def test_relevance_is_the_correlation_beyond_chance():
    rng = np.random.default_rng(0)
    X, labels, weights = rng.normal(size=(50, 3)), rng.random((50, 2)), rng.integers(1, 4, 50)
    X[:, 0] += labels.sum(axis=1)
    times = np.repeat(np.arange(50), weights)
    squared = np.corrcoef(np.hstack([X, labels])[times].T)[:3, 3:] ** 2
    expected = np.sqrt(np.maximum(squared.mean(axis=1) - 1 / (len(times) - 1), 0))
    np.testing.assert_allclose(relevance(X, labels, weights.astype(float)), expected / expected.max())
    assert not relevance(X, np.ones((50, 1)), weights.astype(float)).any()

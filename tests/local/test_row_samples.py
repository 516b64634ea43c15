"""Samples of rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from tuplet.local.row_samples import row_keys, sample_rows, sample_weights


def weights_of(X, codes, weight, size):
    """The weight of each row in a sample."""
    return sample_weights(row_keys(X, codes), weight, size)


@examples(20)
@given(st.integers(0, 1000), st.integers(1, 60))
def test_a_sample_follows_from_the_rows(seed, size):
    rng = np.random.default_rng(seed)
    X, codes = rng.integers(3, size=(50, 2)).astype(float), rng.integers(2, size=(50, 1))
    weight = rng.integers(0, 4, 50).astype(float)
    found = weights_of(X, codes, weight, size)
    assert ((found >= 0) & (found <= weight)).all()
    if size >= np.count_nonzero(weight):
        np.testing.assert_array_equal(found, weight)
        return
    groups = len(np.unique(np.hstack([X, codes]), axis=0))
    assert abs(found.sum() - size) <= groups  # each group of equal rows is off by less than one
    again = rng.permutation(np.repeat(np.arange(50), weight.astype(int)))
    repeated = weights_of(X[again], codes[again], np.ones(len(again)), size)
    for row in np.unique(np.hstack([X, codes]), axis=0):
        one, other = ((np.hstack(pair) == row).all(axis=1) for pair in ((X, codes), (X[again], codes[again])))
        assert found[one].sum() == repeated[other].sum() or len(again) <= size
    share = weights_of(X, codes, weight + 0.5, size) / (weight + 0.5)
    assert set(np.unique(share)) <= {0.0, 1.0}


def test_rows_of_a_sample():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(400, 2)), rng.integers(2, size=(400, 1))
    for size in (None, 400, 500):
        rows, weights = sample_rows(X, codes, None, size)
        assert rows.tolist() == list(range(400))
        assert weights is None
    rows, weights = sample_rows(X, codes, None, 100)
    assert weights is None
    assert 60 < len(rows) < 140
    order = rng.permutation(400)
    assert sorted(order[sample_rows(X[order], codes[order], None, 100).rows].tolist()) == rows.tolist()
    whole = rng.integers(1, 5, size=400).astype(float)
    sample = sample_rows(X, codes, whole, 100)
    np.testing.assert_allclose(sample.shares(whole) * whole[sample.rows], sample.weights)

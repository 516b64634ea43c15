"""Answers do not depend on the sizes of blocks, and the working memory bounds these."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.naive_bayes import GaussianNB

from draws import examples
from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    GenerativeBayesNetClassifier,
    IndependentClassifier,
    MixedNaiveBayes,
    PowersetClassifier,
    SharedForestClassifier,
)
from tuplet.core.exceptions import IntractableError
from tuplet.core.limits import BLOCK_CELLS, CACHE_CELLS, PASS_CELLS, block_cells, largest_array, row_blocks
from tuplet.losses.registry import LOSSES
from tuplet.space.features.inputs import require_size
from tuplet.testing import strategies

KIBIBYTE = 1 / 1024


@pytest.mark.parametrize("cells", [BLOCK_CELLS, PASS_CELLS, CACHE_CELLS])
def test_a_small_working_memory_makes_blocks_small_and_a_large_one_none_larger(cells):
    assert block_cells(cells) == cells
    for megabytes in (1e-9, 1.0, 100.0, 1e6):
        with config_context(working_memory=megabytes):
            assert block_cells(cells) == max(1, min(cells, int(megabytes * 2**17) // 32))


@given(st.integers(0, 50), st.integers(0, 40), st.integers(1, 300))
def test_blocks_are_all_rows_in_order(n, width, cells):
    blocks = list(row_blocks(n, width, cells))
    assert [i for block in blocks for i in range(n)[block]] == list(range(n))
    assert all((block.stop - block.start) * width <= max(cells, width) for block in blocks)


@pytest.mark.parametrize(("setting", "expected"), [({}, 1024), ({"SKLEARN_WORKING_MEMORY": "64"}, 64)])
def test_the_working_memory_is_known_without_importing_scikit_learn(setting, expected):
    script = (
        "import sys; from tuplet.core.limits import working_cells; before = working_cells();"
        "assert 'sklearn' not in sys.modules; import sklearn; assert working_cells() == before; print(before)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "SKLEARN_WORKING_MEMORY"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment | setting, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == expected * 2**17


def test_one_array_may_be_as_large_as_the_working_memory():
    with pytest.raises(IntractableError, match="working_memory"):
        require_size("It", 2**20, 2**8)
    with config_context(working_memory=2048):
        require_size("It", 2**20, 2**8)
    with config_context(working_memory=1):
        assert largest_array() == 2**27  # what cannot be cut is not refused sooner


def queries(joint):
    yield joint.log_prob(joint.mode().codes)
    yield joint.top_k(3).log_prob
    yield np.hstack(joint.marginals())
    yield joint.entropy()
    yield from joint.pairwise().values()
    yield LOSSES["hamming"].decide(joint)
    if set(joint.cards) == {2}:
        yield joint.count_marginals()
        yield LOSSES["f1"].decide(joint)
        yield LOSSES["jaccard"].decide(joint)


@examples(30)
@given(strategies.joints())
def test_no_answer_of_a_distribution_depends_on_the_blocks(joint):
    whole = list(queries(joint[:]))  # a copy, which remembers no answers
    with config_context(working_memory=KIBIBYTE):
        parts = list(queries(joint[:]))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


MODELS = {
    "independent": IndependentClassifier(MixedNaiveBayes()),
    "naive": IndependentClassifier(GaussianNB()),
    "chain": ChainClassifier(),
    "chain of others": ChainClassifier(GaussianNB()),
    "ensemble": ChainClassifier(n_chains=3, random_state=0),
    "powerset": PowersetClassifier(),
    "shared forest": SharedForestClassifier(random_state=0),
    "Bayes net": BayesNetClassifier(random_state=0),
    "generative": GenerativeBayesNetClassifier(random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_prediction_of_a_model_depends_on_the_blocks(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(80, 4)) > 0).astype(int)
    answers = []
    for megabytes in (1024, 16 * KIBIBYTE):
        with config_context(working_memory=megabytes):
            prediction = MODELS[name].fit(X, Y).predict_joint(X)
            answers.append((prediction.log_prob(Y), *np.hstack(prediction.distribution.marginals()).T))
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-9)

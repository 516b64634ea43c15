"""Fits are the same if, and only if, everything that makes their result is."""

import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tuplet import ChainClassifier, PowersetClassifier
from tuplet.core.exceptions import InputError
from tuplet.evaluate.fingerprint import data_digest, describe, short_digest
from tuplet.losses import CostMatrix

X = np.arange(12.0).reshape(6, 2)
Y = pd.DataFrame({"a": [0, 1, 0, 1, 0, 1], "b": list("xyxyxz")})

MODELS = [
    ChainClassifier(),
    ChainClassifier(n_chains=2),
    ChainClassifier(order=[1, 0]),
    ChainClassifier(order=("1", "0")),
    ChainClassifier(ExtraTreesClassifier(10)),
    ChainClassifier(ExtraTreesClassifier(11)),
    ChainClassifier({"a": ExtraTreesClassifier(10)}),
    ChainClassifier({"b": ExtraTreesClassifier(10)}),
    PowersetClassifier(),
    make_pipeline(StandardScaler(), ChainClassifier()),
    make_pipeline(FunctionTransformer(np.log1p), ChainClassifier()),
    make_pipeline(FunctionTransformer(np.sqrt), ChainClassifier()),
    make_pipeline(FunctionTransformer(partial(np.clip, a_min=0)), ChainClassifier()),
    make_pipeline(FunctionTransformer(partial(np.clip, a_min=1)), ChainClassifier()),
    make_pipeline(FunctionTransformer(lambda x: x + 1), ChainClassifier()),
    make_pipeline(FunctionTransformer(lambda x: x + 2), ChainClassifier()),
    CostMatrix([np.array([[0, 1], [2, 0]])]),
    CostMatrix([np.array([[0, 1], [3, 0]])]),
]


def test_different_settings_are_described_differently():
    texts = [describe(model) for model in MODELS]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("k", range(len(MODELS) - 4))
def test_the_same_settings_are_described_the_same(k):
    from sklearn.base import clone

    assert describe(clone(MODELS[k])) == describe(MODELS[k])


def test_another_process_describes_the_same():
    code = (
        "from sklearn.ensemble import ExtraTreesClassifier; from tuplet import ChainClassifier;"
        "from tuplet.evaluate.fingerprint import describe, data_digest; import pandas as pd;"
        "print(describe(ChainClassifier({'a': ExtraTreesClassifier(10)})));"
        "print(data_digest(pd.DataFrame({'u': [1.0, 2.0]}), pd.DataFrame({'v': ['x', None]})))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
        ).stdout
        for env in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"})
    ]
    assert runs[0] == runs[1]
    assert runs[0].splitlines()[0] == describe(ChainClassifier({"a": ExtraTreesClassifier(10)}))


def test_data_that_differ_in_anything_differ():
    tables = [
        (X, Y),
        (X + 1e-9, Y),
        (X.astype(np.float32), Y),
        (X[::-1], Y),
        (X.T.reshape(6, 2), Y),
        (pd.DataFrame(X, columns=["p", "q"]), Y),
        (pd.DataFrame(X, columns=["q", "p"]), Y),
        (sparse.csr_array(X), Y),
        (sparse.csr_array(X[::-1]), Y),
        (X, Y[::-1]),
        (X, Y.replace({"z": None})),
        (X, Y.astype({"b": "category"})),
        (X, Y.astype({"b": pd.CategoricalDtype(list("xyzw"))})),
        (X, Y.astype({"b": pd.CategoricalDtype(list("zyx"))})),
        (X, Y.astype({"b": pd.CategoricalDtype(list("xyz"), ordered=True)})),
        (X, Y.assign(a=pd.Series([0, "1", 0, 1, 0, 1], dtype=object))),
        (X, Y.assign(a=Y["a"].astype(object))),
        (sparse.csr_array(np.hstack([X, np.zeros((6, 1))])), Y),
        (X, Y[["b", "a"]]),
        (X, pl.from_pandas(Y)),
        (X, Y["a"].to_numpy()),
    ]
    digests = [data_digest(*pair) for pair in tables]
    assert len(set(digests)) == len(digests)
    assert digests == [data_digest(*pair) for pair in tables]


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def apply(self, x):
        return x * self.factor


def test_functions_are_what_they_do():
    def recursive(x):
        return recursive(x - 1) if x else 0

    functions = [
        Scale(1).apply,
        Scale(2).apply,
        lambda x, *, k=1: x,
        lambda x, *, k=2: x,
        lambda x: x in {"alpha", "beta"},
        lambda x: x in {"alpha", "gamma"},
        recursive,
    ]
    texts = [describe(function) for function in functions]
    assert len(set(texts)) == len(texts)
    with pytest.raises(InputError, match="lock"):
        describe({"lock": threading.Lock()})


def test_a_digest_knows_where_its_parts_end():
    assert short_digest("ab", "c") != short_digest("a", "bc")

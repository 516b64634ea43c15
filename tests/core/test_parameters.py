"""Declared parameters: every one of every public estimator, and what declarations take."""

import importlib
import inspect
from collections import defaultdict
from fractions import Fraction
from math import inf, isfinite, nan

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from public import addresses
from tuplet import ChainClassifier, MixtureClassifier
from tuplet.core.exceptions import InputError
from tuplet.core.parameters import FUNCTION, Having, Number, Whole, check_parameters, declare


def public_estimators():
    """Classes by name, without those whose parameters are skorch's or those of a pipeline of scikit-learn."""
    found = {}
    for address in addresses():
        module = importlib.import_module(address)
        for name in module.__all__:
            kind = getattr(module, name)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and not inspect.isabstract(kind):
                found[name] = kind
    found.pop("DeepClassifier", None)
    found.pop("JointPipeline")
    return found


ESTIMATORS = public_estimators()
SEVERAL = {
    "C",
    "C_shift",
    "alpha",
    "correlation",
    "criterion",
    "engine",
    "estimator",
    "max_parents",
    "max_width",
    "models",
    "n_trees",
    "parametrisation",
    "random_state",
    "smoothing",
    "structure",
    "time_budget",
    "tol",
}
"""Names whose meaning differs between estimators; there should be no more of them."""


def make(kind, **parameters):
    required = {"estimator": ChainClassifier(), "models": [ChainClassifier()]}
    needed = inspect.signature(kind).parameters.values()
    given = {p.name: required[p.name] for p in needed if p.default is inspect.Parameter.empty}
    return kind(**given | parameters)


def wrong_values(allowed):
    """Values that a declaration must refuse."""
    yield from (object(), "no such word", "1", nan, inf, -inf, dict)
    if None not in allowed:
        yield None
    if bool not in allowed:
        yield from (True, np.False_)
    if not any(isinstance(each, Number) for each in allowed):
        yield 1.5
    for each in allowed:
        if isinstance(each, Whole):
            yield from (limit for limit in (each.at_least - 1, each.other_than) if limit is not None)
        if isinstance(each, Number):
            yield from (limit for limit in (each.above, each.at_least - 0.1, each.below) if isfinite(limit))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_declared_and_checked_before_anything_else(name):
    kind = ESTIMATORS[name]
    model = make(kind)
    check_parameters(model)  # takes the defaults
    assert set(kind._parameters) == set(model.get_params(deep=False))
    for parameter, allowed in kind._parameters.items():
        if object in allowed:
            continue
        for value in wrong_values(allowed):
            with pytest.raises(InputError, match=f"^{name}: {parameter} must be .+; found .+"):
                make(kind, **{parameter: value}).fit(None, None)


def test_a_name_has_one_meaning():
    meanings = defaultdict(set)
    for kind in ESTIMATORS.values():
        for name, allowed in kind._parameters.items():
            meanings[name].add(allowed)
    assert {name for name, different in meanings.items() if len(different) > 1} == SEVERAL


def test_models_inside_of_models_are_checked():
    model = MixtureClassifier(ChainClassifier(n_chains=0), n_components=1)
    with pytest.raises(InputError, match=r"^ChainClassifier: n_chains must be a whole number"):
        model.fit([[0.0], [1.0]] * 5, [[0, 1], [1, 0]] * 5)


class Example(BaseEstimator):
    """An estimator with one parameter."""

    def __init__(self, size=None):
        self.size = size


def check(allowed, value):
    model = Example(value)
    model._parameters = declare(size=allowed)
    check_parameters(model)


@pytest.mark.parametrize(
    ("allowed", "value"),
    [
        (Whole(at_least=1), 1),
        (Whole(at_least=1), np.int8(1)),
        (Whole(other_than=0), -1),
        (Whole(), 10**400),
        (Number(at_least=0), 0),
        (Number(above=0), np.float32(1e-30)),
        (Number(above=0, below=1), Fraction(1, 2)),
        (Number(), 10**400),
        (bool, np.True_),
        (("auto", None), "auto"),
        (("auto", None), None),
        (np.ndarray, np.zeros(2)),
        (FUNCTION, check),
        (Having("a classifier", "fit"), LogisticRegression()),
        (object, nan),
    ],
)
def test_values_at_the_limits_and_of_numpy_are_taken(allowed, value):
    check(allowed, value)


@pytest.mark.parametrize(
    ("allowed", "value", "message"),
    [
        (Whole(at_least=1), 0, "a whole number of at least 1; found 0."),
        ((Whole(other_than=0), None), 0, "a whole number other than 0 or None; found 0."),
        (Number(above=0, below=1), 1, "a number above 0 and below 1; found 1."),
        (Number(), "3", "a number; found '3'."),
        (("auto", bool), 1, "'auto', True or False; found 1."),
        (("a", "b"), ["a"], "'a' or 'b'; found ['a']."),
        (("a", np.ndarray), None, "'a' or an instance of ndarray; found None."),
        (FUNCTION, "a\nb", r"a function; found 'a\nb'."),
        (bool, np.zeros((3, 1)), "True or False; found array([[0.], [0.], [0.]])."),
        (bool, "x" * 1000, f"True or False; found '{'x' * 119}...."),
    ],
)
def test_errors_have_the_allowed_values_and_the_one_found(allowed, value, message):
    with pytest.raises(InputError) as error:
        check(allowed, value)
    assert str(error.value) == f"Example: size must be {message}"

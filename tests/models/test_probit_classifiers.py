"""Probit classifiers end to end: posterior means, interrupts, warm starts, weights, odd and bad input."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import PolynomialFeatures

from tuplet.core.exceptions import ConvergenceWarning, InputError, IntractableError, TupletWarning
from tuplet.core.progress import Progress
from tuplet.core.typing import UNKNOWN
from tuplet.joint import Probit
from tuplet.models.probit import ProbitClassifier, ProbitForestClassifier
from tuplet.models.probit import base as probit_base
from tuplet.models.probit.sampling import forests
from tuplet.models.probit.sampling.chains import MarkovChain
from tuplet.models.probit.sampling.summary import Convergence

SHORT = {"n_burn": 30, "n_draws": 20, "thin": 1, "n_chains": 2, "random_state": 0}
ENDLESS = 1_000_000  # draws of a chain that only an interrupt ends
LINEAR, FOREST = ProbitClassifier(**SHORT), ProbitForestClassifier(5, **SHORT)
both = pytest.mark.parametrize("model", [LINEAR, FOREST], ids=["linear", "forest"])


def data(n=80, q=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    e = rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, q))
    return X, (X[:, :1] + e > 0).astype(int)


def same(a, b):
    return np.array_equal(a.draws_.correlations, b.draws_.correlations) and np.array_equal(
        a.draws_.levels, b.draws_.levels
    )


# -- what is learned ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", ["hmc", "factors", "metropolis"])
def test_linear_model_finds_what_the_data_were_made_with(correlation):
    rng = np.random.default_rng(0)
    R = np.array([[1, 0.7, -0.4], [0.7, 1, 0], [-0.4, 0, 1]])
    B = np.array([[1.0, 0], [-0.5, 0.5], [0, 0]])
    X = rng.normal(size=(1500, 2))
    Y = (X @ B.T + [0, 0.5, -1] + rng.multivariate_normal(np.zeros(3), R, 1500) > 0).astype(int)
    # Fewer than a hundred draws of a chain are not judged: the random walk would have to be.
    model = ProbitClassifier(
        n_burn=150, n_draws=80, n_chains=2, correlation=correlation, n_factors=2, random_state=0
    ).fit(X, Y)
    np.testing.assert_allclose(model.correlation_, R, atol=0.15)
    np.testing.assert_allclose(model.coef_ / X.std(axis=0), B, atol=0.15)
    np.testing.assert_allclose(model.intercept_, [0, 0.5, -1], atol=0.2)


def test_forests_find_a_bend_that_linear_means_do_not():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    Y = (2 * np.sign(abs(X[:, :1]) - 0.5) + rng.normal(size=(400, 2)) > 0).astype(int)
    forest = ProbitForestClassifier(10, n_burn=100, n_draws=30, n_chains=1, random_state=0).fit(X, Y)
    linear = ProbitClassifier(n_burn=100, n_draws=40, n_chains=1, random_state=0).fit(X, Y)
    true = ProbitClassifier(lambda X: np.sign(abs(X[:, :1]) - 0.5), **SHORT).fit(X, Y)
    new = rng.uniform(-1, 1, (500, 3))
    right = abs(new[:, 0]) > 0.5
    assert (forest.predict(new) == right[:, None]).mean() > 0.85
    assert (linear.predict(new) == right[:, None]).mean() < 0.65
    assert (true.predict(new) == right[:, None]).mean() > 0.9
    table = forest.inclusion_table()
    assert table.index[0] == "x0"
    assert table.columns.tolist() == ["y0", "y1", "share"]


def test_predictors_from_a_transformer():
    X, Y = data()
    model = ProbitClassifier(PolynomialFeatures(2, include_bias=False), **SHORT).fit(X, Y)
    assert model.coef_.shape == (3, 9)
    assert model.predict(X).shape == (80, 3)


@both
def test_the_joint_is_made_of_all_draws(model):
    X, Y = data()
    fitted = clone(model).fit(X, Y)
    joint = fitted.predict_joint(X[:7]).distribution
    assert isinstance(joint, Probit)
    assert joint.means.shape == (40, 7, 3)
    assert fitted.draws_.correlations.shape == (2, 20, 3, 3)
    np.testing.assert_allclose(fitted.correlation_, fitted.draws_.correlations.mean(axis=(0, 1)))
    marginals = fitted.predict_proba(X[:7])
    from scipy.special import ndtr

    for k in range(3):
        np.testing.assert_allclose(marginals[k][:, 1], ndtr(joint.means[:, :, k]).mean(axis=0), atol=1e-9)


def test_means_at_the_training_rows_are_those_of_the_chain():
    X, Y = data()
    model = clone(FOREST).fit(X, Y)
    from scipy.special import ndtr

    levels = ndtr(model.draws_.predict(model.scaler_.transform(X))).mean(axis=1)
    np.testing.assert_allclose(levels, model.draws_.levels.reshape(40, 3), atol=1e-10)


def test_many_rows_are_predicted_when_they_are_asked_for(monkeypatch):
    X, Y = data()
    model = clone(FOREST).fit(X, Y)
    at_once = model.predict_joint(X).distribution
    monkeypatch.setattr(probit_base, "HELD_CELLS", 100)
    lazily = model.predict_joint(X).distribution
    assert not isinstance(lazily.means, np.ndarray)
    np.testing.assert_allclose(lazily.log_prob(Y), at_once.log_prob(Y), atol=1e-12)


@both
def test_identity_makes_labels_independent(model):
    X, Y = data()
    fitted = clone(model).set_params(correlation="identity").fit(X, Y)
    np.testing.assert_array_equal(fitted.correlation_, np.eye(3))


# -- chains ------------------------------------------------------------------------------------------------


@both
def test_fits_repeat_whatever_the_number_of_processes_and_the_order_of_rows(model):
    X, Y = data()
    one = clone(model).fit(X, Y)
    assert same(one, clone(model).fit(X, Y))
    assert same(one, clone(model).set_params(n_jobs=2).fit(X, Y))
    assert same(one, clone(model).fit(X[::-1], Y[::-1]))
    other = clone(model).set_params(random_state=1).fit(X, Y)
    assert not same(one, other)


@both
def test_warm_start_draws_what_is_missing(model):
    X, Y = data()
    first = clone(model).fit(X, Y)
    longer = clone(model).set_params(warm_start=True).fit(X, Y).set_params(n_draws=50).fit(X, Y)
    assert longer.draws_.correlations.shape == (2, 50, 3, 3)
    np.testing.assert_array_equal(longer.draws_.correlations[:, :20], first.draws_.correlations)
    new = longer.predict_joint(X).distribution.means
    old = first.predict_joint(X).distribution.means
    np.testing.assert_allclose(new.reshape(2, 50, 80, 3)[:, :20], old.reshape(2, 20, 80, 3), atol=1e-12)
    before = longer.draws_
    assert longer.fit(X, Y).draws_ is before
    with pytest.raises(InputError, match="n_draws=10 is less than the 50"):
        longer.set_params(n_draws=10).fit(X, Y)
    longer = clone(model).set_params(warm_start=True).fit(X, Y)
    with pytest.raises(InputError, match="have changed"):
        longer.fit(X, 1 - Y)


def test_a_longer_chain_in_two_parts_is_the_chain_in_one():
    X, Y = data()
    whole = clone(LINEAR).set_params(n_draws=30).fit(X, Y)
    parts = clone(LINEAR).set_params(warm_start=True).fit(X, Y).set_params(n_draws=30).fit(X, Y)
    np.testing.assert_allclose(parts.draws_.correlations, whole.draws_.correlations, atol=1e-8)


@both
def test_a_warm_start_that_fails_leaves_the_model_as_it_was(model, monkeypatch):
    X, Y = data()
    fitted = clone(model).set_params(warm_start=True).fit(X, Y)
    before = fitted.predict_joint(X).distribution.log_prob(Y)

    def unchanged():
        return np.array_equal(fitted.predict_joint(X).distribution.log_prob(Y), before)

    with pytest.raises(InputError, match="X, y or sample_weight have changed"):
        fitted.fit(10 * X + 1, Y)
    assert unchanged()
    with pytest.raises(InputError, match="X, y or sample_weight have changed"):
        fitted.fit(pd.DataFrame(X[:, :2], columns=["a", "b"]), pd.DataFrame(Y, columns=list("uvw")))
    assert unchanged()
    assert isinstance(fitted.predict(X), np.ndarray)
    with pytest.raises(InputError, match="X has 80 rows, but y has 79"):
        fitted.fit(X, Y[1:])
    assert unchanged()
    with pytest.raises(InputError, match="n_draws=10 is less than the 20"):
        fitted.set_params(n_draws=10).fit(X, Y)
    assert unchanged()
    interrupt_after(monkeypatch, 9)
    with pytest.raises(KeyboardInterrupt):
        fitted.set_params(n_draws=60).fit(X, Y)
    assert unchanged()
    monkeypatch.undo()
    whole = clone(model).set_params(warm_start=True).fit(X, Y).set_params(n_draws=60).fit(X, Y)
    assert same(fitted.fit(X, Y), whole)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_trees", 9),
        ("n_burn", 31),
        ("thin", 2),
        ("n_chains", 3),
        ("correlation", "factors"),
        ("prior", "inverse-wishart"),
        ("eta", 2.0),
        ("shrinkage", 2.0),
        ("beta", 1.0),
        ("select_features", False),
    ],
)
def test_chains_do_not_go_on_with_other_settings(setting, value):
    X, Y = data(n=30)
    fitted = clone(FOREST).set_params(warm_start=True).fit(X, Y)
    fitted.set_params(n_draws=25, **{setting: value})
    with pytest.raises(InputError, match=rf"but {setting} has changed from .* to {value!r}; set it back"):
        fitted.fit(X, Y)
    assert fitted.predict(X).shape == (30, 3)
    free = {"random_state": 5, "n_jobs": 1, "progress": False}
    fitted.set_params(**{setting: getattr(FOREST, setting)}, **free)
    assert fitted.fit(X, Y).draws_.correlations.shape[1] == 25


def test_chains_do_not_go_on_with_other_predictors():
    X, Y = data(n=30)
    fitted = ProbitClassifier(PolynomialFeatures(2), warm_start=True, **SHORT).fit(X, Y)
    fitted.set_params(n_draws=25, predictors=PolynomialFeatures(2)).fit(X, Y)  # the same in another object
    for change in ({"predictors__degree": 3}, {"predictors": None}, {"predictors": np.sin}):
        with pytest.raises(InputError, match="but predictors has changed"):
            fitted.set_params(**change).fit(X, Y)


def test_a_failed_fit_is_none_to_go_on_from(monkeypatch):
    X, Y = data()
    fitted = clone(LINEAR).fit(X, Y)
    interrupt_after(monkeypatch, 5)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(10 * X, Y)
    monkeypatch.undo()
    assert same(fitted.set_params(warm_start=True).fit(X, Y), clone(LINEAR).fit(X, Y))


def interrupt_after(monkeypatch, n):
    """Raise KeyboardInterrupt in the n-th step of all chains together."""
    original, count = MarkovChain.advance, [0]

    def advance(self):
        count[0] += 1
        if count[0] > n:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(MarkovChain, "advance", advance)


@both
def test_an_interrupt_keeps_the_draws_so_far(model, monkeypatch):
    X, Y = data()
    whole = clone(model).fit(X, Y)
    interrupt_after(monkeypatch, 2 * 30 + 2 * 12 + 1)
    fitted = clone(model).set_params(warm_start=True)
    with pytest.warns(TupletWarning, match="interrupted; the model rests on 12 of 20 draws of 2 of 2 chains"):
        fitted.fit(X, Y)
    np.testing.assert_array_equal(fitted.draws_.correlations, whole.draws_.correlations[:, :12])
    assert fitted.predict(X).shape == (80, 3)
    monkeypatch.undo()
    assert fitted.fit(X, Y).draws_.correlations.shape == (2, 20, 3, 3)


def test_an_early_interrupt_is_an_interrupt(monkeypatch):
    X, Y = data()
    interrupt_after(monkeypatch, 65)
    model = clone(LINEAR)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def press_at(monkeypatch, n, seconds=0.0):
    """Send this process Ctrl-C a while after n steps of all chains together."""
    original, reached = Progress.advance, threading.Event()

    def advance(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if self.done >= n:
            reached.set()

    def press():
        reached.wait()
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Progress, "advance", advance)
    threading.Thread(target=press, daemon=True).start()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_between_steps(n_jobs, monkeypatch):
    X, Y = data()
    handler = signal.getsignal(signal.SIGINT)
    for milliseconds in range(0, 50, 5 if n_jobs == 1 else 25):
        press_at(monkeypatch, 50, milliseconds / 1000)
        model = ProbitClassifier(**{**SHORT, "n_burn": 1, "n_draws": ENDLESS, "n_jobs": n_jobs})
        # Few draws of short chains: whether they have converged is not asked.
        monkeypatch.setattr(probit_base, "convergence_of", lambda draws: None)
        with pytest.warns(TupletWarning, match=r"interrupted; the model rests on \d+ of 1000000 draws"):
            model.fit(X, Y)
        monkeypatch.undo()
        assert signal.getsignal(signal.SIGINT) is handler
        assert 10 <= model.draws_.correlations.shape[1] < ENDLESS
        assert model.predict(X[:2]).shape == (2, 3)


def test_one_chain_is_judged_by_its_halves():
    X, Y = data(q=2)
    judged = ProbitClassifier(n_burn=200, n_draws=1000, n_chains=1, random_state=0).fit(X, Y).convergence_
    assert 0.99 < judged.r_hat < 1.2
    assert Convergence(float("nan"), 1000.0).poor


def test_features_are_selected_in_all_kept_draws(monkeypatch):
    X, Y = data(q=2)
    seen = []
    original = forests.draw_feature_weights
    monkeypatch.setattr(forests, "draw_feature_weights", lambda *a: seen.append(1) or original(*a))
    settings = {"n_burn": 5, "n_draws": 6, "thin": 1, "n_chains": 1, "n_trees": 5, "random_state": 0}
    ProbitForestClassifier(**settings, select_features=True, progress=False).fit(X, Y)
    assert len(seen) == 2 * 6


def test_chains_that_wait_for_a_process_go_on_too(monkeypatch):
    X, Y = data()
    press_at(monkeypatch, 400)
    model = ProbitClassifier(**{**SHORT, "n_burn": 1, "n_draws": ENDLESS, "n_chains": 4, "n_jobs": 2})
    monkeypatch.setattr(probit_base, "convergence_of", lambda draws: None)
    with pytest.warns(
        TupletWarning, match=r"interrupted; the model rests on \d+ of 1000000 draws of 4 of 4 chains"
    ):
        model.fit(X, Y)


def test_chains_that_disagree_are_told_of(monkeypatch):
    X, Y = data(q=2)
    model = ProbitClassifier(n_burn=50, n_draws=100, thin=1, n_chains=2, random_state=0)
    monkeypatch.setattr(probit_base, "convergence_of", lambda draws: Convergence(1.7, 12.0))
    with pytest.warns(ConvergenceWarning, match=r"R-hat 1.70, least effective sample size 12"):
        model.fit(X, Y)
    monkeypatch.undo()
    judged = ProbitClassifier(n_burn=200, n_draws=1000, n_chains=2, random_state=0).fit(X, Y).convergence_
    assert 0.99 < judged.r_hat < 1.1
    assert judged.effective_size > 50
    assert clone(LINEAR).fit(X, Y).convergence_ is None


# -- input -------------------------------------------------------------------------------------------------


@both
def test_weights_repeat_rows(model):
    X, Y = data(n=40)
    weight = np.random.default_rng(0).integers(0, 4, 40)
    weighted = clone(model).fit(X, Y, weight)
    assert same(weighted, clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)))
    with pytest.raises(InputError, match="which must be whole numbers"):
        clone(model).fit(X, Y, weight + 0.5)
    with pytest.raises(InputError, match="amounts to 40,000,000 rows"):
        clone(model).fit(X, Y, np.full(40, 1e6))


@both
def test_missing_labels_are_drawn_along(model):
    X, Y = data(n=120)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"]).astype("Int64")
    frame = frame.mask(np.random.default_rng(0).random(Y.shape) < 0.3)
    fitted = clone(model).fit(X, frame)
    assert list(fitted.predict(X).columns) == ["a", "b", "c"]
    assert fitted.correlation_[0, 1] > 0.3
    codes = fitted.space_.encode(frame)
    assert (codes == UNKNOWN).any()


@both
def test_frames_gaps_and_sparse_features(model):
    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.loc[::7, "b"] = np.nan
    frame["place"] = np.where(X[:, 0] > 0, "coast", "inland")
    fitted = clone(model).fit(frame, Y)
    assert fitted.predict(frame).shape == (80, 3)
    if model is FOREST:
        assert set(fitted.inclusion_table().index) == {"a", "b", "c", "place=inland"}
    loose = clone(model).fit(sparse.csr_array(np.round(X)), Y)
    assert loose.predict(sparse.csr_array(np.round(X))).shape == (80, 3)


@both
def test_labels_that_rows_do_not_tell_of(model):
    X, Y = data()
    with pytest.warns(TupletWarning, match="show one label only of the class variable 'y1'"):
        fitted = clone(model).fit(X, np.column_stack([Y[:, 0], np.ones(80, int)]))
    assert (fitted.predict(X)[:, 1] == 1).all()
    assert np.isfinite(fitted.predict_joint(X).distribution.log_prob(np.zeros((80, 2), int))).all()
    for second in (Y[:, 0], 1 - Y[:, 0]):
        with pytest.warns(TupletWarning, match="'y0' and 'y1' agree"):
            fitted = clone(model).fit(X, np.column_stack([Y[:, 0], second]))
        assert np.isfinite(fitted.predict_joint(X).distribution.log_prob(np.zeros((80, 2), int))).all()


@both
@pytest.mark.parametrize("correlation", ["hmc", "metropolis", "factors"])
def test_more_labels_than_rows_and_separable_data(model, correlation):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, rng.random((12, 14)) < 0.5]).astype(int)
    with pytest.warns(TupletWarning) if len(np.unique(Y, axis=1).T) < 16 else no_warning():
        fitted = clone(model).set_params(correlation=correlation).fit(X, Y)
    assert np.isfinite(fitted.predict_joint(X).distribution.log_prob(Y)).all()
    assert (np.linalg.eigvalsh(fitted.draws_.correlations) > 0).all()


class no_warning:  # noqa: N801
    """Stands where a warning would be waited for."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


@pytest.mark.filterwarnings("ignore:ProbitForest.*show one label only")
def test_features_that_say_nothing():
    _, Y = data(q=2)
    model = clone(FOREST).fit(np.zeros((80, 1)), Y)
    proba = model.predict_proba(np.zeros((2, 1)))[0]
    np.testing.assert_allclose(proba[0], proba[1])
    with pytest.raises(InputError, match="at least 3 rows, found n_samples = 2"):
        clone(FOREST).fit(np.zeros((2, 1)), [[0, 0], [1, 0]])


@both
def test_features_too_large_to_compute_with_are_refused(model):
    X, Y = data()
    huge = np.where(np.arange(80)[:, None] == 3, 1e300, X)
    with pytest.raises(InputError, match=r"the features hold 1e\+300, which is too large"):
        clone(model).fit(huge, Y)
    fitted = clone(model).fit(np.clip(huge, -1e100, 1e100), Y)
    assert np.isfinite(fitted.predict_joint(X).distribution.log_prob(Y)).all()
    assert np.isfinite(fitted.predict_joint(huge).distribution.log_prob(Y)).all()


@both
def test_more_than_two_classes_are_refused_by_name(model):
    X, Y = data()
    three = np.column_stack([Y[:, 0], np.arange(80) % 3])
    with pytest.raises(InputError, match=r"Only binary .* 'y1' has 3 classes; use ChainClassifier"):
        clone(model).fit(X, three)
    with pytest.raises(InputError, match="'sky' has 1 class; leave it out"):
        clone(model).fit(X, pd.DataFrame({"sky": ["blue"] * 80}))


@both
@pytest.mark.parametrize("correlation", ["hmc", "metropolis"])
def test_correlations_of_many_labels_are_refused_at_once(model, correlation):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 2)), rng.integers(0, 2, (50, 61))
    with pytest.raises(IntractableError, match=r"1,830 correlations, .* Use TreeClassifier"):
        clone(model).set_params(correlation=correlation).fit(X, Y)


def test_more_labels_than_move_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = (X[:, :1] + rng.normal(size=(60, 1)) + rng.normal(size=(60, 31)) > 0).astype(int)
    fitted = clone(LINEAR).set_params(correlation="factors").fit(X, Y)
    assert fitted.correlation_[np.triu_indices(31, 1)].mean() > 0.2
    assert np.isfinite(fitted.predict_joint(X[:3]).distribution.log_prob(Y[:3])).all()


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 100))
    Y = (X[:, :2] + 0.1 * rng.normal(size=(30, 2)) > 0).astype(int)
    fitted = clone(LINEAR).fit(X, Y)
    assert fitted.coef_.shape == (2, 100)
    assert (fitted.predict(X) == Y).mean() > 0.9
    with_end = clone(LINEAR).set_params(warm_start=True).fit(X, Y).set_params(n_draws=30).fit(X, Y)
    assert same_start(fitted, with_end)


def same_start(short, long):
    return np.array_equal(long.draws_.correlations[:, :20], short.draws_.correlations)


def test_predictors_must_return_rows():
    X, Y = data(n=20)
    with pytest.raises(InputError, match="predictors must return"):
        ProbitClassifier(lambda X: X[0], **SHORT).fit(X, Y)


# -- habits of scikit-learn --------------------------------------------------------------------------------


@both
def test_pickling_cloning_and_searching(model):
    X, Y = data()
    fitted = clone(model).fit(X, Y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        again.predict_joint(X).distribution.log_prob(Y), fitted.predict_joint(X).distribution.log_prob(Y)
    )
    search = GridSearchCV(clone(model), {"eta": [1.0, 5.0]}, cv=KFold(2)).fit(X, Y)
    assert search.best_estimator_.score(X, Y) > 0.3


def test_one_label_in_one_column():
    X, Y = data()
    model = clone(FOREST).fit(X, Y[:, 0])
    assert model.predict(X).shape == (80,)
    assert model.predict_proba(X).shape == (80, 2)


def test_tables_name_class_variables():
    X, Y = data()
    model = clone(FOREST).fit(X, pd.DataFrame(Y, columns=["a", "b", "c"]))
    table = model.correlation_table()
    assert table.index.tolist() == [("a", "b"), ("a", "c"), ("b", "c")]
    np.testing.assert_allclose(table["mean"], model.correlation_[np.triu_indices(3, 1)])
    assert model.combination_table(X[:1], k=3).shape == (6, 6)
    assert model.plot_correlations().get_title() == ""
    assert model.plot_trace("a", "c").get_ylabel() == "a, c"
    with pytest.raises(InputError, match="no class variable 'd'"):
        model.plot_trace("a", "d")

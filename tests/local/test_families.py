from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.core.typing import UNKNOWN
from tuplet.local.families import PARAMETRISATIONS, FamilyScorer
from tuplet.local.split import SplitModel
from tuplet.local.stacked import StackedModel
from tuplet.structure import Family, candidate_parent_sets, find_dag

CARDS = (3, 2, 2, 3)
PRECISE = LogisticRegression(tol=1e-10, max_iter=10_000)


def draw(seed, n=120, d=2, missing=0.0):
    """A chain of class variables, each of which depends on x and on the one before."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = np.empty((n, len(CARDS)), dtype=int)
    for j, card in enumerate(CARDS):
        logits = X @ rng.normal(size=(d, card))
        if j:
            logits = logits + 2 * rng.normal(size=(CARDS[j - 1], card))[codes[:, j - 1]]
        codes[:, j] = (logits + rng.gumbel(size=(n, card))).argmax(axis=1)
    hidden = np.where(rng.random(codes.shape) < missing, UNKNOWN, codes)
    return rng, X, hidden


def subsets(child, largest=3):
    others = [v for v in range(len(CARDS)) if v != child]
    return chain.from_iterable(combinations(others, size) for size in range(largest + 1))


def families(children=(0, 1, 2, 3), floor=-np.inf, largest=3):
    return [Family(child, parents, floor) for child in children for parents in subsets(child, largest)]


def scores(X, codes, wanted, **settings):
    return np.array(list(FamilyScorer(X, codes, CARDS, random_state=0, **settings).score(wanted)))


# -- what a score is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("score", ["bic", "bic-true", "aic", "aic-true"])
@pytest.mark.parametrize("parametrisation", ["split", "inputs", "auto"])
def test_a_score_is_the_likelihood_of_the_model_less_its_penalty(parametrisation, score, missing):
    rng, X, codes = draw(0, missing=missing)
    weight = rng.random(len(X))
    given_to = {"estimators": [PRECISE] * 4, "sample_weight": weight, "random_state": 0}
    scorer = FamilyScorer(X, codes, CARDS, parametrisation=parametrisation, score=score, **given_to)
    wanted = families(children=[0, 3])
    for (child, parents, _), value in zip(wanted, scorer.score(wanted), strict=True):
        known = codes[:, child] != UNKNOWN
        log_proba = scorer.model(child, parents).log_proba(X[known], codes[np.ix_(known, parents)])
        own = log_proba[np.arange(known.sum()), codes[known, child]]
        kind = scorer.parametrisation_of(child, parents)
        width = X.shape[1] if "true" in score else 0
        n_free = PARAMETRISATIONS[kind].n_parameters(CARDS[child], [CARDS[p] for p in parents], width)
        each = 1.0 if "aic" in score else 0.5 * np.log(weight[known].sum())
        # Of the two solvers for inputs each stops at a gradient of 1e-10.
        assert value == pytest.approx(weight[known] @ own - each * n_free, abs=1e-5)


def test_the_penalty_of_the_paper():
    """(ln N)/2 times the configurations times (M - 1)."""
    _, X, codes = draw(1)
    scorer = FamilyScorer(X, codes, CARDS, parametrisation="split", score="bic")
    assert scorer.bound(0, (1, 3)) == pytest.approx(-0.5 * np.log(120) * (2 * 3) * (3 - 1))


@pytest.mark.parametrize("parametrisation", ["split", "inputs"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("estimator", [PRECISE, GaussianNB(), make_pipeline(PolynomialFeatures(), PRECISE)])
def test_a_cross_validated_score_is_that_of_models_fitted_to_the_other_folds(
    parametrisation, missing, estimator
):
    rng, X, codes = draw(2, missing=missing, n=150)
    weight = None if missing else rng.random(150)
    settings = {"parametrisation": parametrisation, "sample_weight": weight}
    scorer = FamilyScorer(
        X, codes, CARDS, estimators=[estimator] * 4, score="cv", n_folds=3, random_state=5, **settings
    )
    folds = np.random.default_rng(5).permutation(150) % 3  # the folds come first of all that is random
    for child, parents, value in zip([1, 2], [(0,), (1, 3)], scorer.score(
        [Family(1, (0,), -np.inf), Family(2, (1, 3), -np.inf)]), strict=True):  # fmt: skip
        expected, y = 0.0, codes[:, child]
        for fold in range(3):
            learn, held = folds != fold, (folds == fold) & (y != UNKNOWN)
            model = SplitModel(estimator) if parametrisation == "split" else StackedModel(estimator)
            model.fit(
                X[learn],
                codes[np.ix_(learn, parents)],
                y[learn],
                parent_cards=[CARDS[p] for p in parents],
                child_card=CARDS[child],
                sample_weight=None if weight is None else weight[learn],
            )
            log_proba = model.log_proba(X[held], codes[np.ix_(held, parents)])
            own = log_proba[np.arange(held.sum()), y[held]]
            expected += own.sum() if weight is None else weight[held] @ own
        assert value == pytest.approx(expected, abs=1e-5)


def test_compiled_and_separate_scores_agree():
    class SlowLogistic(LogisticRegression):
        pass

    _, X, codes = draw(3, missing=0.1)
    wanted = families(largest=2)
    for kind in ("split", "inputs"):
        fast, slow = (
            scores(
                X,
                codes,
                wanted,
                estimators=[make_pipeline(StandardScaler(), each(tol=1e-10))] * 4,
                parametrisation=kind,
                score="bic",
            )
            for each in (LogisticRegression, SlowLogistic)
        )
        np.testing.assert_allclose(fast, slow, atol=1e-4)


def test_rows_without_weight_are_as_good_as_absent():
    rng, X, codes = draw(4, missing=0.1)
    keep = rng.random(len(X)) < 0.7
    wanted = families(largest=2)
    for kind in ("split", "inputs"):
        given_to = {"estimators": [PRECISE] * 4, "parametrisation": kind, "score": "bic"}
        whole = scores(X, codes, wanted, sample_weight=keep.astype(float), **given_to)
        np.testing.assert_allclose(whole, scores(X[keep], codes[keep], wanted, **given_to), atol=1e-5)


def test_unknown_parents_speak_neither_for_nor_against_them():
    """Where no row knows a parent, splitting by it changes nothing but the penalty."""
    _, X, codes = draw(5)
    codes[:, 3] = UNKNOWN
    alone, split = scores(
        X, codes, [Family(1, (), -np.inf), Family(1, (3,), -np.inf)], parametrisation="split", score="aic"
    )
    assert split == pytest.approx(alone - 2)


# -- what the search relies on -----------------------------------------------------------------------------


@examples(10)
@given(
    seed=st.integers(0, 10_000),
    score=st.sampled_from(["bic", "bic-true", "aic", "aic-true", lambda n_free, n: n_free**1.5]),
    parametrisation=st.sampled_from(["split", "inputs", "auto"]),
    missing=st.sampled_from([0.0, 0.3]),
)
def test_bounds_hold_for_a_set_and_all_its_supersets(seed, score, parametrisation, missing):
    _, X, codes = draw(seed, n=40, missing=missing)
    scorer = FamilyScorer(X, codes, CARDS, score=score, parametrisation=parametrisation, random_state=0)
    wanted = families()
    found = dict(zip([(f.child, f.parents) for f in wanted], scorer.score(wanted), strict=True))
    for (child, parents), value in found.items():
        for subset in subsets(child):
            if set(subset) <= set(parents):
                assert value <= scorer.bound(child, subset)


def test_cross_validated_scores_have_no_bound():
    _, X, codes = draw(6)
    assert FamilyScorer(X, codes, CARDS, score="cv").bound is None


@pytest.mark.parametrize("score", ["bic", "cv"])
@pytest.mark.parametrize("parametrisation", ["split", "inputs", "auto"])
def test_floors_change_nothing_above_them(score, parametrisation):
    _, X, codes = draw(7, missing=0.1)
    wanted = families(children=[0, 1], largest=2)
    given_to = {"score": score, "parametrisation": parametrisation}
    exact = scores(X, codes, wanted, **given_to)
    for shift in (-3.0, -1e-6, 1e-6, 30.0):
        floored = [f._replace(floor=value + shift) for f, value in zip(wanted, exact, strict=True)]
        stopped = scores(X, codes, floored, **given_to)
        if shift < 0:
            np.testing.assert_allclose(stopped, exact, rtol=1e-9)
        else:
            assert (stopped <= [f.floor for f in floored]).all()


def test_hopeless_families_are_given_up_before_all_configurations_are_fitted(monkeypatch):
    _, X, codes = draw(8)
    rows, fit = [], SplitModel.fit

    def spy(self, X, parents, child, **settings):
        rows.append(int((child != UNKNOWN).sum()))
        return fit(self, X, parents, child, **settings)

    monkeypatch.setattr(SplitModel, "fit", spy)
    naive = {"estimators": [GaussianNB()] * 4, "parametrisation": "split", "score": "bic"}
    value = scores(X, codes, [Family(0, (1, 3), -np.inf)], **naive)[0]
    assert sum(rows) == len(X)
    rows.clear()
    assert scores(X, codes, [Family(0, (1, 3), value / 3)], **naive) == -np.inf
    assert 0 < sum(rows) < len(X)


def test_hopeless_families_are_given_up_before_all_folds_are_fitted(monkeypatch):
    _, X, codes = draw(8)
    fits, fit = [], StackedModel.fit

    def spy(self, *given_to, **settings):
        fits.append(self)
        return fit(self, *given_to, **settings)

    monkeypatch.setattr(StackedModel, "fit", spy)
    given_to = {"parametrisation": "inputs", "score": "cv", "n_folds": 5}
    value = scores(X, codes, [Family(0, (1, 3), -np.inf)], **given_to)[0]
    assert len(fits) == 5
    fits.clear()
    assert scores(X, codes, [Family(0, (1, 3), value / 3)], **given_to) == -np.inf
    assert 0 < len(fits) < 5


def test_pruning_does_not_change_the_best_network():
    _, X, codes = draw(9, n=200)
    for kind in ("split", "inputs"):
        scorer = FamilyScorer(X, codes, CARDS, score="bic", parametrisation=kind)
        pruned = candidate_parent_sets(4, 3, scorer.score, bound=scorer.bound)

        def exhaustive(level, scorer=scorer):
            return scorer.score([family._replace(floor=-np.inf) for family in level])

        everything = candidate_parent_sets(4, 3, exhaustive)
        assert pruned.n_scored < everything.n_scored or kind == "inputs"
        best, other = find_dag(pruned.scores), find_dag(everything.scores)
        assert best.score == pytest.approx(other.score, abs=1e-9)


@examples(15)
@given(seed=st.integers(0, 10_000))
def test_more_parents_never_lower_the_training_likelihood(seed):
    """Proposition 3.5, for local models that are optimal, not penalised and not smoothed.

    A penalty of ||W||^2 / 2C may cost the larger set at most q ||W||^2 / 2C of the smaller one's
    coefficients; these are small, since every x comes with all classes.
    """
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(6, 1)), 40, axis=0)
    codes = np.column_stack([rng.integers(card, size=240) for card in CARDS])
    free = LogisticRegression(C=1e7, tol=1e-9, max_iter=100_000)
    scorer = FamilyScorer(
        X, codes, CARDS, estimators=[free] * 4, parametrisation="split", score=lambda n_free, n: 0.0
    )
    wanted = families(children=[0], largest=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SplitModel.__init__.__kwdefaults__, "strength", 1e-12)
        found = dict(zip([f.parents for f in wanted], scorer.score(wanted), strict=True))
    for smaller, larger in combinations(found, 2):
        if set(smaller) < set(larger):
            assert found[larger] >= found[smaller] - 1e-3


# -- parametrisations and estimators -----------------------------------------------------------------------


@pytest.mark.parametrize("score", ["bic", "cv"])
def test_auto_finds_out_how_parents_enter(score):
    rng = np.random.default_rng(10)
    n = 400
    X, parents = rng.normal(size=(n, 3)), rng.integers(2, size=(n, 2))
    turned = X[:, 0] * np.where(parents[:, 0] == parents[:, 1], 3, -3)  # which sign, the parents tell
    shifted = X @ [1.0, -1.0, 0.5] + 3 * parents[:, 0] - 3 * parents[:, 1]
    for signal, expected in ((turned, "split"), (shifted, "inputs")):
        child = (signal + rng.logistic(size=n) > 0).astype(int)
        codes = np.column_stack([child, parents])
        scorer = FamilyScorer(X, codes, (2, 2, 2), parametrisation="auto", score=score, random_state=0)
        values = dict(
            zip(
                [(), (1,), (1, 2)],
                scorer.score([Family(0, p, -np.inf) for p in ((), (1,), (1, 2))]),
                strict=True,
            )
        )
        assert values[1, 2] > values[()]
        assert scorer.parametrisation_of(0, (1, 2)) == expected
        assert isinstance(scorer.model(0, (1, 2)), SplitModel if expected == "split" else StackedModel)


def test_auto_scores_are_the_better_of_both_where_they_are_cross_validated():
    _, X, codes = draw(11)
    wanted = families(largest=2)
    split, inputs, auto = (
        scores(X, codes, wanted, score="cv", parametrisation=kind) for kind in ("split", "inputs", "auto")
    )
    np.testing.assert_allclose(auto, np.maximum(split, inputs), rtol=1e-9)


@pytest.mark.parametrize("estimator", [RandomForestClassifier(5, max_depth=2), GaussianNB()])
def test_any_classifier_is_scored_by_the_model_that_it_becomes(estimator):
    """Also where chance is involved: a scorer settles it once."""
    _, X, codes = draw(12)
    scorer = FamilyScorer(X, codes, CARDS, estimators=[estimator] * 4, parametrisation="split", score="aic")
    (value,) = scorer.score([Family(3, (2,), -np.inf)])
    log_proba = scorer.model(3, (2,)).log_proba(X, codes[:, [2]])
    assert value == pytest.approx(log_proba[np.arange(120), codes[:, 3]].sum() - 2 * 2)


def test_what_auto_scores_by():
    _, X, codes = draw(13)
    for estimator, penalised in (
        (None, True),
        (GaussianNB(), True),
        (make_pipeline(StandardScaler(), GaussianNB()), True),
        (RandomForestClassifier(5), False),
    ):
        scorer = FamilyScorer(X, codes, CARDS, estimators=[None, estimator, None, None])
        assert (scorer.bound is not None) == penalised


def test_parents_that_are_no_class_variables():
    _, X, codes = draw(14)
    codes = np.column_stack([codes, codes[:, 0]])  # a discrete feature that gives the first label away
    scorer = FamilyScorer(X, codes, (*CARDS, 3), parametrisation="split", score="bic", random_state=0)
    alone, told = scorer.score([Family(0, (), -np.inf), Family(0, (4,), -np.inf)])
    assert told > alone + 20
    assert scorer.model(0, (4,)).log_table(X).shape == (3, 3, 120)


@pytest.mark.parametrize("parametrisation", ["split", "inputs", "auto"])
@pytest.mark.parametrize("score", ["bic", "cv"])
def test_without_features_scores_are_those_of_frequencies(parametrisation, score):
    _, _, codes = draw(15)
    X = np.zeros((120, 0))
    wanted = families(largest=1)
    values = scores(X, codes, wanted, parametrisation=parametrisation, score=score)
    assert np.isfinite(values).all()
    if score == "bic":
        counts = np.bincount(codes[:, 1], minlength=2)
        alone = (120 * counts / 120 + (counts + 1) / 122) / 121
        expected = counts @ np.log(alone) - 0.5 * np.log(120)
        assert values[[f[:2] for f in wanted].index((1, ()))] == pytest.approx(expected)


def test_a_single_row_or_variable_is_no_obstacle():
    one = FamilyScorer(np.zeros((1, 1)), np.zeros((1, 2), dtype=int), (2, 2), random_state=0)
    assert np.isfinite(list(one.score([Family(0, (), -np.inf), Family(0, (1,), -np.inf)]))).all()
    lonely = FamilyScorer(np.arange(6.0)[:, None], np.arange(6)[:, None] % 2, (2,), random_state=0)
    assert np.isfinite(list(lonely.score([Family(0, (), -np.inf)]))).all()
    assert lonely.model(0, ()).log_table(np.zeros((3, 1))).shape == (2, 3)


# -- side by side ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_workers_change_nothing(estimator):
    _, X, codes = draw(16)
    wanted = families(largest=2)
    given_to = {"estimators": [estimator] * 4, "score": "bic"}
    with parallel_config(backend="threading"):
        several = scores(X, codes, wanted, n_jobs=2, **given_to)
    np.testing.assert_array_equal(several, scores(X, codes, wanted, **given_to))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_scores_come_one_by_one_and_may_be_abandoned(n_jobs):
    _, X, codes = draw(17)
    values = FamilyScorer(X, codes, CARDS, n_jobs=n_jobs, random_state=0).score(families())
    assert np.isfinite([next(values) for _ in range(3)]).all()
    values.close()


# -- settings ----------------------------------------------------------------------------------------------


def test_parameters_that_cannot_be_counted_are_refused():
    _, X, codes = draw(18)
    with pytest.raises(InputError, match="GaussianNB cannot be counted"):
        FamilyScorer(X, codes, CARDS, score="bic-true", estimators=[GaussianNB()] * 4)

"""Rules stacked on classifiers: what is learned, what is asked of whom, and what can change afterwards."""

import pickle

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from tuplet.core.exceptions import InputError, IntractableError, LabelError, TupletWarning
from tuplet.local.multi_output import chain_probabilities
from tuplet.models import ChainClassifier, IndependentClassifier
from tuplet.models.compared.weighted_stacking import (
    WeightedStackingClassifier,
    label_similarity,
    stacking_weights,
)
from tuplet.models.rules import NoisyOr, Rule, RuleModel, RuleSet, RuleStackingClassifier
from tuplet.models.rules.calibration import learn_calibrator


def data(n=400, seed=0, missing=0.0):
    """Rain and wetness, which go together more than x tells, and a third that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    rain = X["a"] + rng.normal(size=n) > 0
    wet = np.where(rng.random(n) < 0.95, rain, X["b"] > 0)
    mood = np.digitize(X["c"] + rng.normal(size=n), [-0.5, 0.5])
    Y = pd.DataFrame(
        {
            "rain": np.where(rain, "yes", "no"),
            "wet": wet.astype(bool),
            "mood": pd.Categorical(np.array(["low", "fair", "high"])[mood], ["low", "fair", "high"]),
        }
    )
    return X, Y.astype({"wet": "boolean"}).mask(rng.random(Y.shape) < missing) if missing else Y


def log_likelihood(model, X, Y):
    return model.predict_joint(X).distribution.log_prob(model.space_.encode(Y)).mean()


def quiet(*arguments, **settings):
    return RuleStackingClassifier(*arguments, random_state=0, progress=False, **settings)


def same(one, other, X):
    for p, q in zip(one.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rules_are_learned_that_help_on_new_rows(missing):
    X, Y = data(missing=missing)
    new_X, new_Y = data(seed=1)
    model = quiet(GaussianNB()).fit(X, Y)
    base = IndependentClassifier(GaussianNB()).fit(X, Y)
    assert 1 <= len(model.rules_) <= 4
    assert all(isinstance(rule, NoisyOr) and rule.learned for rule in model.rules_)
    assert log_likelihood(model, new_X, new_Y) > log_likelihood(base, new_X, new_Y) + 0.15
    assert model.learned_.terms[0].scope == (0, 1)
    assert list(model.contributions_["log_likelihood"]) == sorted(model.learned_.contributions, reverse=True)
    assert model.predict_joint(X[:3]).note == ""


def test_without_dependence_there_are_no_rules_and_predictions_say_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = pd.DataFrame({"u": X[:, 0] + rng.normal(size=300) > 0, "v": X[:, 1] + rng.normal(size=300) > 0})
    model = quiet(GaussianNB()).fit(X, Y)
    assert len(model.rules_) == 0
    assert "No rule was learned" in model.predict_joint(X[:2]).note
    same(model, IndependentClassifier(GaussianNB()).fit(X, Y), X)


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the labels of its training rows by heart, and nothing else."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.seen_ = {row.tobytes(): code for row, code in zip(np.asarray(X), codes, strict=True)}
        return self

    def predict_proba(self, X):
        answer = np.full((len(X), len(self.classes_)), 1.0 / len(self.classes_))
        for i, row in enumerate(np.asarray(X)):
            if row.tobytes() in self.seen_:
                answer[i] = np.eye(len(self.classes_))[self.seen_[row.tobytes()]]
        return answer


def test_rules_learn_from_classifiers_that_have_not_seen_the_row():
    X, Y = data()
    model = quiet(Memory()).fit(X, Y)  # in-sample beliefs would be perfect, and no rule could help
    assert model.learned_.held_out.max() > 0.2


def test_importance_weights_do_not_let_classifiers_see_the_row():
    X, Y = data()
    weights = np.random.default_rng(0).uniform(3, 5, len(X))
    model = quiet(Memory()).fit(X, Y, weights)
    assert model.learned_.held_out.max() > 0.2


def test_a_class_variable_without_labels_is_known_by_rules_alone():
    X, Y = data()
    Y = Y.assign(umbrella=pd.Categorical([None] * len(Y), categories=["closed", "open"]))
    rules = ["0.9: umbrella == open <-> rain == yes"]
    model = quiet(GaussianNB(), rules=rules).fit(X, Y)
    # Of the rules; the pseudo-row that sure rows have knows of none.
    table = dict(zip(model.space_.names, model._rule_joint(X).marginals(), strict=True))
    rain, umbrella = table["rain"][:, 1], table["umbrella"][:, 1]
    np.testing.assert_allclose(umbrella, 0.9 * rain + 0.1 * (1 - rain), atol=1e-9)
    assert model.predict(X)["umbrella"].isin(["closed", "open"]).all()
    assert (
        quiet(GaussianNB(), rules=rules, priors={"umbrella": [0.9, 0.1]}).fit(X, Y).priors_["umbrella"][1]
        == 0.1
    )
    with pytest.raises(InputError, match="All labels of 'umbrella' are missing; drop"):
        ChainClassifier().fit(X, Y)
    with pytest.raises(InputError, match="declare its labels"):
        quiet(GaussianNB()).fit(X, Y.assign(umbrella=None))


def test_rules_are_learned_beside_wide_rules_of_experts():
    X, Y = data()
    rng = np.random.default_rng(1)
    other = pd.DataFrame(rng.integers(2, size=(len(X), 12)), columns=[f"l{j}" for j in range(12)])
    other["l0"] |= ~other.any(axis=1)
    expert = " | ".join(other)
    model = quiet(GaussianNB(), rules=[expert]).fit(X, pd.concat([Y[["rain", "wet"]], other], axis=1))
    assert {"rain", "wet"} <= set(model.rules_[1].inhibitions)


def test_where_nothing_was_tried_it_is_said():
    X, Y = data(n=60)
    weights = np.full(60, 1e-3)
    assert "no pattern of labels adds enough" in quiet(GaussianNB()).fit(X, Y, weights).learned_.summary


def test_rules_of_experts_that_bind_too_much_are_refused_with_a_way_out():
    rng = np.random.default_rng(0)
    Y = pd.DataFrame(rng.integers(2, size=(40, 30)), columns=[f"l{j}" for j in range(30)])
    rules = [f"0.8: l{i} xor l{j}" for i in range(30) for j in range(i)]
    with pytest.raises(IntractableError, match="n_rules=0 learns none"):
        quiet(GaussianNB(), rules=rules).fit(rng.normal(size=(40, 2)), Y)


def test_the_papers_learner_keeps_to_the_scope():
    X, Y = data(n=120)
    model = quiet(GaussianNB(), learner="paper", max_scope=2, n_rules=2).fit(X, Y)
    assert max(len(rule.inhibitions) for rule in model.rules_) <= 2


def test_a_seed_repeats_the_model_and_it_survives_pickling():
    X, Y = data()
    one, other = quiet(GaussianNB()).fit(X, Y), quiet(GaussianNB()).fit(X, Y)
    same(one, other, X)
    same(one, pickle.loads(pickle.dumps(one)), X)


# -- experts -----------------------------------------------------------------------------------------------


def test_expert_rules_alone_are_those_of_the_rule_model():
    X, Y = data()
    base = IndependentClassifier(GaussianNB()).fit(X, Y)
    model = quiet(GaussianNB(), rules=[Rule("rain -> wet", 0.8), "wet == False -> rain == no"], n_rules=0)
    model.fit(X, Y)
    beliefs = dict(zip(base.space_.names, base.predict_proba(X), strict=True))
    expected = RuleModel(base.space_, model.rules_).predict_joint(beliefs)
    for p, q in zip(model.predict_proba(X), expected.distribution.marginals(), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-9)


def test_the_probability_of_an_expert_rule_is_learned_and_others_are_learned_beside_it():
    X, Y = data()
    model = quiet(GaussianNB(), rules=[Rule("rain <-> wet", "learn"), Rule("mood == high -> rain", 0.55)])
    model.fit(X, Y)
    assert isinstance(model.rules_[0], Rule)
    assert model.rules_[0].p > 0.85
    assert model.rules_[1].p == 0.55
    alone = quiet(GaussianNB()).fit(X, Y)
    assert log_likelihood(model, X, Y) > log_likelihood(alone, X, Y) - 0.02


def test_rules_travel_as_json():
    X, Y = data()
    model = quiet(GaussianNB()).fit(X, Y)
    again = quiet(GaussianNB(), rules=RuleSet.from_json(model.rules_.to_json()), n_rules=0).fit(X, Y)
    same(model, again, X)


def test_a_row_is_explained():
    X, Y = data()
    model = quiet(GaussianNB(), rules=[Rule("rain -> wet", 0.9)], n_rules=0).fit(X, Y)
    assert "rain -> wet" in str(model.explain(X, 1))
    with pytest.raises(InputError, match="no row 400"):
        model.explain(X, 400)


# -- base classifiers --------------------------------------------------------------------------------------


def test_classifiers_by_name_see_their_own_columns():
    X, Y = data()
    own = {"rain": (GaussianNB(), ["a"]), "wet": (LogisticRegression(), ["b", "c"]), "mood": ("default", [2])}
    model = quiet(own, n_rules=0).fit(X, Y)
    expected = IndependentClassifier(GaussianNB()).fit(X[["a"]], Y[["rain"]]).predict_proba(X[["a"]])
    np.testing.assert_allclose(model.predict_proba(X)[0], expected[0], atol=1e-9)
    spoilt = X.assign(a=0.0)
    np.testing.assert_allclose(model.predict_proba(spoilt)[1], model.predict_proba(X)[1], atol=1e-9)


def test_columns_by_position_work_for_arrays_and_names_do_not():
    X, Y = data()
    quiet({"rain": (GaussianNB(), [0])}, n_rules=0).fit(X.to_numpy(), Y)
    with pytest.raises(InputError, match="no names"):
        quiet({"rain": (GaussianNB(), ["a"])}, n_rules=0).fit(X.to_numpy(), Y)
    with pytest.raises(InputError, match=r"expects the columns.*z"):
        quiet({"rain": (GaussianNB(), ["a", "z"])}, n_rules=0).fit(X, Y)


def test_variables_without_classifier_have_a_prior():
    X, Y = data()
    model = quiet({"rain": GaussianNB()}, n_rules=0, priors={"mood": [0.2, 0.3, 0.5]}).fit(X, Y)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba[2], np.tile([0.2, 0.3, 0.5], (len(X), 1)))
    np.testing.assert_allclose(proba[1][:, 1], (Y["wet"].sum() + 1) / (len(Y) + 2))
    model = quiet({"rain": GaussianNB()}, rules=["wet <-> rain == yes"], n_rules=0).fit(X, Y)
    assert np.corrcoef(*(p[:, 1] for p in model.predict_proba(X)[:2]))[0, 1] > 0.999


def test_the_marginals_of_any_model_and_a_classifier_of_many_outputs_will_do():
    X, Y = data(n=200)
    model = quiet(ChainClassifier(GaussianNB()), n_rules=0).fit(X, Y)
    same(model, ChainClassifier(GaussianNB()).fit(X, Y), X)
    forest = RandomForestClassifier(20, max_depth=3, random_state=0)
    assert len(quiet(forest, multi_output=True).fit(X, Y).rules_) > 0
    network = MLPClassifier((4,), max_iter=20, random_state=0)
    two = pd.DataFrame({"r": (Y["rain"] == "yes").astype(int), "w": Y["wet"].astype(int)})
    with pytest.warns(UserWarning, match="Stochastic Optimizer"):
        model = quiet(network, multi_output=True, n_rules=0).fit(X.to_numpy(), two)
    assert len(model.predict_proba(X.to_numpy())) == 2


def test_fitted_classifiers_are_taken_as_they_are():
    X, Y = data()
    fitted = {name: GaussianNB().fit(X, Y[name].astype(str if name != "wet" else bool)) for name in Y}
    new_X, new_Y = data(seed=2)
    model = quiet(fitted, prefit=True).fit(new_X, new_Y)
    assert len(model.rules_) > 0
    assert model.sources_[0].model is fitted["rain"]
    whole = quiet(IndependentClassifier(GaussianNB()).fit(X, Y), prefit=True, n_rules=0).fit(new_X, new_Y)
    np.testing.assert_allclose(whole.predict_proba(X)[0], fitted["rain"].predict_proba(X), atol=0.01)


@pytest.mark.parametrize("calibration", ["platt", "isotonic", "temperature", "dirichlet"])
def test_calibration_mends_overconfident_classifiers(calibration):
    X, Y = data(n=600)
    X = pd.concat([X] * 6, axis=1).set_axis([f"x{i}" for i in range(18)], axis=1)  # naive Bayes counts all
    new_X, new_Y = X[300:], Y[300:]
    plain, mended = (
        quiet(GaussianNB(), n_rules=0, calibration=kind).fit(X[:300], Y[:300])
        for kind in ("identity", calibration)
    )
    assert log_likelihood(mended, new_X, new_Y) > log_likelihood(plain, new_X, new_Y) + 0.3


def test_weights_reach_classifiers_and_rules():
    X, Y = data(n=300)
    odd = Y.copy()
    odd.loc[150:, "wet"] = odd.loc[150:, "rain"] != "yes"  # the second half says the contrary
    weights = np.repeat([1.0, 1e-6], [150, 150])
    light = quiet(GaussianNB()).fit(X, odd, sample_weight=weights)
    assert log_likelihood(light, X[:150], Y[:150]) > log_likelihood(
        quiet(GaussianNB()).fit(X, odd), X[:150], Y[:150]
    )


# -- changes -----------------------------------------------------------------------------------------------


def test_rules_come_and_go():
    X, Y = data()
    model = quiet(GaussianNB(), n_rules=0).fit(X, Y)
    before = model.predict_proba(X)
    more = model.add_rules(Rule("rain -> wet", 0.9, name="soaked"))
    assert abs(more.predict_proba(X)[0] - before[0]).max() > 0.05
    np.testing.assert_allclose(more.remove_rules("soaked").predict_proba(X)[0], before[0])
    assert len(model.rules_) == 0
    assert len(more.rules_) == 1
    with pytest.raises(InputError, match="no rule 3"):
        model.remove_rules(3)
    with pytest.raises(InputError, match="add_rules: the probability of the rule 'rain -> wet'"):
        model.add_rules(Rule("rain -> wet", "learn"))


def test_classifiers_come_and_go():
    X, Y = data()
    model = quiet(GaussianNB(), n_rules=0).fit(X, Y)
    before = model.predict_proba(X)
    without = model.remove_classifier("rain")
    np.testing.assert_allclose(without.predict_proba(X)[0][0], model.priors_["rain"])
    np.testing.assert_allclose(without.predict_proba(X)[1], before[1])
    other = GaussianNB().fit(X[["a"]], Y["rain"])
    replaced = without.add_classifier("rain", other, ["a"])
    np.testing.assert_allclose(replaced.predict_proba(X)[0], other.predict_proba(X[["a"]]), atol=1e-5)
    codes = model.space_.encode(Y)[:, 0]
    calibrator = learn_calibrator("temperature", other.predict_proba(X[["a"]]), codes)
    assert model.add_classifier("rain", other, ["a"], calibrator).calibrators_["rain"] is calibrator
    for table, same_table in zip(model.predict_proba(X), before, strict=True):
        np.testing.assert_array_equal(table, same_table)


def test_labels_come_and_go():
    X, Y = data()
    model = quiet(GaussianNB(), rules=["rain -> wet"], n_rules=0).fit(X, Y)
    wider = model.add_variable("umbrella", prior=[0.7, 0.3]).add_rules("umbrella <-> rain == yes")
    answer = wider.predict(X)
    assert list(answer.columns) == ["rain", "wet", "mood", "umbrella"]
    assert ((answer["umbrella"] == 1) == (answer["rain"] == "yes")).all()
    narrower = wider.remove_variable("rain")
    assert len(narrower.rules_) == 0
    assert list(narrower.predict(X).columns) == ["wet", "mood", "umbrella"]
    np.testing.assert_allclose(narrower.predict_proba(X)[2][:, 1], 0.3)
    assert list(model.predict(X).columns) == ["rain", "wet", "mood"]
    with pytest.raises(InputError, match="already"):
        model.add_variable("mood")


def unchanged(model, X, change, said):
    """Assert that a change is refused and leaves the model as it was."""
    before, text = model.predict_proba(X), repr(model.space_)
    with pytest.raises(InputError, match=said):
        change(model)
    assert repr(model.space_) == text
    for p, q in zip(model.predict_proba(X), before, strict=True):
        np.testing.assert_array_equal(p, q)


def of_all(X, Y):
    return IndependentClassifier(GaussianNB()).fit(X, Y)


def of_rain():
    X, Y = data(n=80)
    return GaussianNB().fit(X[["a", "b"]], Y["rain"])


RAIN = of_rain()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda model: model.add_rules("snow -> wet"), "'snow' is neither"),
        (lambda model: model.add_rules("mood == highest"), "no category 'highest'"),
        (lambda model: model.add_rules(NoisyOr({"snow": {"yes": 0.1}})), "no class variable 'snow'"),
        (lambda model: model.add_rules(3), "A rule must be text"),
        (lambda model: model.add_variable("sky", "xy"), "categories of 'sky' must be a list"),
        (lambda model: model.add_variable("sky", 3), "categories of 'sky' must be a list"),
        (lambda model: model.add_variable("sky", ["x", "x"]), "distinct"),
        (lambda model: model.add_variable("sky", ["x"]), "at least two"),
        (lambda model: model.add_variable("sky", prior=np.nan), "one row of probabilities"),
        (lambda model: model.add_variable("sky", prior=[[0.5, 0.5]] * 2), "one row of probabilities"),
        (lambda model: model.add_variable("other", ["high", "no mood"]), "may mean several things"),
        (lambda model: model.add_classifier("rain", "text"), "no predict_proba"),
        (lambda model: model.add_classifier("rain", IndependentClassifier()), "not fitted"),
        (lambda model: model.add_classifier("rain", GaussianNB()), "not fitted"),
        (
            lambda model: model.add_classifier("rain", RAIN, 7),
            "the columns '7'; X has 'a', 'b', 'c'",
        ),
        (lambda model: model.add_classifier("rain", RAIN, "age"), "expects the columns 'age'"),
        (lambda model: model.add_classifier("rain", RAIN, {"a": 1}), "must be a name, a position"),
        (lambda model: model.add_classifier("rain", RAIN, slice("a", "b")), "slice of positions"),
        (lambda model: model.add_classifier("rain", RAIN), "fitted to 2 columns.* 3"),
        (
            lambda model: model.add_classifier("rain", of_all(*other_names())),
            "class variables 'u', 'v'",
        ),
        (lambda model: model.explain(data(n=5)[0], "a"), "must be an integer"),
        (lambda model: model.explain(data(n=5)[0], 1.5), "must be an integer"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(change, said):
    X, Y = data(n=80)
    unchanged(quiet(GaussianNB(), rules=[Rule("high -> wet", 0.7)], n_rules=0).fit(X, Y), X, change, said)


def other_names():
    X, Y = data(n=80)
    return X, Y[["rain", "wet"]].set_axis(["u", "v"], axis=1)


@pytest.mark.parametrize("columns", [0, "a", ["a"], [0], slice(0, 1), np.array([0]), pd.Index(["a"])])
def test_columns_come_in_every_form(columns):
    X, Y = data(n=80)
    own = GaussianNB().fit(X[["a"]], Y["rain"])
    added = quiet(GaussianNB(), n_rules=0).fit(X, Y).add_classifier("rain", own, columns)
    given = quiet({"rain": (own, columns)}, prefit=True, n_rules=0).fit(X, Y)
    for model in (added, given):
        np.testing.assert_allclose(model.predict_proba(X)[0], own.predict_proba(X[["a"]]), atol=1e-5)


def test_one_of_several_variables_of_a_fitted_model_is_listened_to():
    X, Y = data(n=80)
    whole = of_all(X, Y[["mood", "wet", "rain"]])  # in another order
    added = quiet(GaussianNB(), n_rules=0).fit(X, Y).add_classifier("wet", whole)
    mapped = quiet({"wet": whole}, prefit=True, n_rules=0).fit(X, Y)
    every = quiet(whole, prefit=True, n_rules=0).fit(X, Y)
    for model in (added, mapped, every):
        np.testing.assert_allclose(model.predict_proba(X)[1], whole.predict_proba(X)[1], atol=1e-5)
    np.testing.assert_allclose(every.predict_proba(X)[0], whole.predict_proba(X)[2], atol=1e-5)


def test_fitted_pipelines_may_choose_columns_themselves():
    X, Y = data(n=80)
    own = make_pipeline(make_column_transformer(("passthrough", ["a"])), GaussianNB())
    own.fit(X[["a", "b"]], Y["rain"])
    model = quiet(GaussianNB(), n_rules=0).fit(X, Y).add_classifier("rain", own)
    np.testing.assert_allclose(model.predict_proba(X)[0], own.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("as_X", [np.asarray, sparse.csr_array])
def test_columns_that_x_does_not_have_are_named(as_X):
    X, Y = data(n=40)
    with pytest.raises(InputError, match="expects the columns '7'; X has 3 columns"):
        quiet({"rain": (LogisticRegression(), [7])}, n_rules=0).fit(as_X(X), Y)


def test_a_fitted_chain_with_more_than_two_labels_in_any_order_is_taken():
    X, Y = data(n=80)
    codes = np.column_stack([pd.factorize(Y[name], sort=True)[0] for name in Y])
    chain = ClassifierChain(GaussianNB(), order=[2, 0, 1]).fit(X.to_numpy(), codes)
    model = quiet(chain, prefit=True, n_rules=0).fit(X.to_numpy(), codes)
    for ours, theirs in zip(model.predict_proba(X.to_numpy()), chain_probabilities(chain, X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_fitted_classifiers_of_another_number_of_outputs_are_refused():
    X, Y = data(n=80)
    two = RandomForestClassifier(3, random_state=0).fit(X, np.column_stack([Y["rain"], Y["rain"]]))
    with pytest.raises(InputError, match="probabilities of 3 class variables"):
        quiet(two, prefit=True, n_rules=0).fit(X, Y).predict(X)


# -- reading -----------------------------------------------------------------------------------------------


def test_contributions_are_those_of_all_rules():
    X, Y = data()
    model = quiet(GaussianNB(), rules=[Rule("high -> wet", 0.6)]).fit(X, Y)
    frame = model.contributions(X, Y)
    assert len(frame) == len(model.rules_) > 1
    beliefs = dict(zip(Y, of_all(X, Y).predict_proba(X), strict=True))
    expected = RuleModel(model.space_, model.rules_).contributions(beliefs, Y)
    pd.testing.assert_frame_equal(frame, expected)
    assert "gain" not in model.contributions(X)


def test_rows_that_break_a_hard_rule_say_nothing_of_the_others():
    X, Y = data()
    model = quiet(
        GaussianNB(), rules=["rain == yes -> wet", "0.8: mood == low -> rain == no"], n_rules=0
    ).fit(X, Y)
    broken = Y.assign(rain="yes", wet=[False, *[True] * (len(Y) - 1)])
    gains = model.contributions(X, broken).set_index("rule")["gain"]
    assert np.isneginf(gains.loc["rain == yes -> wet"])
    assert np.isfinite(gains.drop("rain == yes -> wet")).all()


def test_classifiers_with_labels_of_others_are_refused():
    X, Y = data()
    model = quiet(GaussianNB()).fit(X, Y)
    before = model.predict_proba(X)
    numbers = GaussianNB().fit(X, (Y["rain"] == "yes").astype(int))
    with pytest.raises(LabelError, match="classifier of 'rain' has labels that the model does not"):
        model.add_classifier("rain", numbers)
    for ours, theirs in zip(model.predict_proba(X), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_explanations_are_drawn():
    X, Y = data(n=80)
    model = quiet(GaussianNB(), rules=[Rule("high -> wet", 0.6)], n_rules=0).fit(X, Y)
    ax = model.plot_explanation(X, 1, title="one row")
    assert ax.get_title(loc="left") == "one row"
    plt.close(ax.figure)


def test_rows_that_break_a_hard_rule_are_counted():
    X, Y = data(n=120)
    n_broken = int(((Y["rain"] == "yes") & ~Y["wet"]).sum())
    assert n_broken > 0
    with pytest.warns(TupletWarning, match=f"labels of {n_broken} of 120 rows break a rule"):
        quiet(GaussianNB(), rules=["rain -> wet"]).fit(X, Y)


# -- bad settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimators": {"snow": GaussianNB()}}, "'snow'"),
        ({"rules": ["rain -> snow"]}, "snow"),
        ({"estimators": None, "prefit": True}, "prefit=True"),
        ({"rules": None}, "Rules must be a list"),
        ({"rules": 3}, "Rules must be a list"),
        ({"priors": {"mood": [np.nan] * 3}}, "one row of probabilities"),
        ({"priors": {"wet": [[0.5, 0.5]] * 2}}, "one row of probabilities"),
        ({"estimators": {"rain": (GaussianNB(), "age")}}, "expects the columns 'age'"),
        ({"estimators": {"rain": (GaussianNB(), 7)}}, "expects the columns '7'"),
        ({"estimators": {"rain": (GaussianNB(), [0], 3)}}, "must be a classifier or"),
    ],
)
def test_bad_settings_are_named(settings, message):
    X, Y = data(n=40)
    with pytest.raises(InputError, match=message):
        quiet(**settings).fit(X, Y)


# -- weighted stacking -------------------------------------------------------------------------------------


def test_weights_minimise_the_objective():
    rng = np.random.default_rng(0)
    Z = rng.random((80, 5))
    Y = (Z[:, :4] + 0.3 * rng.normal(size=(80, 4)) > 0.5).astype(float)
    apart = 1 - label_similarity(Y, np.ones(80))
    lift = -0.5 * min(0, np.linalg.eigvalsh(apart).min())

    def objective(W):
        fit = 0.5 * ((Z @ W - Y) ** 2).sum() + 0.25 * np.trace(apart @ W.T @ W)
        return fit + 0.5 * lift * (W**2).sum() + 0.3 * np.abs(W).sum()

    W = stacking_weights(Z, Y, correlation=0.5, sparsity=0.3)
    for _ in range(200):
        assert objective(W + 0.01 * rng.normal(size=W.shape)) > objective(W) - 1e-6
    assert (stacking_weights(Z, Y, correlation=0.0, sparsity=100.0) == 0).all()


def test_weighted_stacking_repairs_classifiers_that_miss_a_column():
    X, Y = data(n=600)
    blind = {"rain": LogisticRegression(), "wet": LogisticRegression(), "mood": LogisticRegression()}
    model = WeightedStackingClassifier(blind).fit(X, Y)
    assert model.weights_.shape == (7, 7)
    assert model.score(X, Y) > 0.4
    for table in model.predict_proba(X):
        np.testing.assert_allclose(table.sum(axis=1), 1)
    gaps = Y.astype({"wet": "boolean"}).mask(np.random.default_rng(0).random(Y.shape) < 0.2)
    assert WeightedStackingClassifier().fit(X, gaps).predict(X).shape == Y.shape


def test_rules_of_some_rows_beside_classifiers_of_all():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    first = X[:, 0] + rng.normal(size=3000) > 0
    Y = np.column_stack([first, first & (rng.random(3000) < 0.9)]).astype(int)
    whole = RuleStackingClassifier(random_state=0, progress=False, n_learned=None).fit(X, Y)
    same = RuleStackingClassifier(random_state=0, progress=False, n_learned=3000).fit(X, Y)
    some = RuleStackingClassifier(random_state=0, progress=False, n_learned=600).fit(X, Y)
    np.testing.assert_array_equal(whole.predict_joint(X).log_prob(Y), same.predict_joint(X).log_prob(Y))
    coefficients = [model.sources_[0].beliefs(X[:9], model.space_) for model in (whole, some)]
    for name, table in coefficients[0].items():
        np.testing.assert_allclose(coefficients[1][name], table)
    assert len(some.rules_) > 0
    gap = (whole.predict_joint(X).log_prob(Y) - some.predict_joint(X).log_prob(Y)).mean()
    assert abs(gap) < 0.02

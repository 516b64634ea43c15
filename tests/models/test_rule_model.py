import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tuplet.core.exceptions import ImpossibleEvidenceError, InputError
from tuplet.joint.inference import BeliefPropagation
from tuplet.models.rules import NoisyOr, Rule, RuleSet
from tuplet.models.rules.model import RuleModel
from tuplet.space import ClassSpace

VARIABLES = {
    "camera": ["walking", "normal", "overhead"],
    "shoes": ["gait", "standing"],
    "hands": ["high", "centered", "low"],
}
EXPERT = ["0.8: (high & standing) -> overhead", Rule("normal -> (centered | low)", 0.9), "walking <-> gait"]
ONE_ROW = {
    "camera": {"overhead": 0.5, "walking": 0.1, "normal": 0.4},
    "shoes": [0.05, 0.95],
    "hands": np.array([[0.5, 0.3, 0.2]]),
}


def test_one_row_in_every_container():
    joint = RuleModel(VARIABLES, EXPERT).predict_joint(ONE_ROW)
    marginals = joint.marginals()
    np.testing.assert_allclose(marginals["camera"], [[0.007404, 0.289181, 0.703414]], atol=1e-6)
    assert joint.mode().iloc[0].to_dict() == {"camera": "overhead", "shoes": "standing", "hands": "high"}
    assert joint.mode_proven().all()


def test_series_are_read_by_category():
    camera = pd.Series({"overhead": 0.5, "normal": 0.4, "walking": 0.1}, name="proportion")
    beliefs = {**ONE_ROW, "camera": camera}
    joint = RuleModel(VARIABLES, EXPERT).predict_joint(beliefs)
    np.testing.assert_allclose(joint.marginals()["camera"], [[0.007404, 0.289181, 0.703414]], atol=1e-6)
    model = RuleModel(VARIABLES, priors={"camera": camera})
    assert model.priors["camera"].tolist() == [0.1, 0.4, 0.5]
    by_place = RuleModel(VARIABLES, priors={"camera": pd.Series([0.1, 0.4, 0.5])})
    assert by_place.priors["camera"].tolist() == [0.1, 0.4, 0.5]


def test_probabilities_are_learned_before_they_are_used():
    for model in (
        RuleModel(VARIABLES, [Rule("walking <-> gait", "learn")]),
        RuleModel(VARIABLES).add_rules("learned: walking <-> gait"),
    ):
        with pytest.raises(InputError, match="the rule 'walking <-> gait' is still to be learned; learn"):
            model.predict_joint(ONE_ROW)
    assert RuleModel(VARIABLES, ["learned 0.7: walking <-> gait"]).predict_joint(ONE_ROW)


def sensors(n, seed):
    rng = np.random.default_rng(seed)
    smoke, fire = rng.random(n), rng.random(n)
    truth = pd.DataFrame({"smoke": rng.random(n) < smoke, "fire": rng.random(n) < fire})
    truth["smoke"] |= truth["fire"] & (rng.random(n) < 0.9)
    return {"smoke": np.c_[1 - smoke, smoke], "fire": np.c_[1 - fire, fire]}, truth


def test_rules_are_learned_from_tables_of_beliefs():
    plain = RuleModel({"smoke": [False, True], "fire": [False, True]})
    expert = plain.add_rules(Rule("fire -> smoke", "learn"), Rule("smoke -> smoke", 0.9))
    beliefs, truth = sensors(400, 0)
    new_beliefs, new_truth = sensors(4000, 1)

    def score(model):
        return model.joint(new_beliefs).log_prob(model.space.encode(new_truth)).mean()

    for model in (plain, expert):
        learned = model.learn(beliefs, truth, random_state=0, progress=False)
        assert score(learned) > score(plain) + 0.2
        assert "learned; on held-out rows" in learned.learned.summary
    assert 0.9 < learned.rules[0].p < 1.0
    assert learned.rules[1].p == 0.9
    weighted = plain.learn(beliefs, truth, sample_weight=np.arange(400) < 200, random_state=0)
    half = plain.learn({name: t[:200] for name, t in beliefs.items()}, truth[:200], random_state=0)
    assert len(weighted.rules) > 0
    assert len(half.rules) > 0
    with pytest.raises(InputError, match="beliefs about 400 rows and labels of 7"):
        plain.learn(beliefs, truth[:7])


def test_impossible_evidence_names_the_rules():
    joint = RuleModel(VARIABLES, EXPERT).predict_joint(ONE_ROW)
    with pytest.raises(
        ImpossibleEvidenceError, match=r"(?s)probability zero.*rules exclude it.*walking <-> gait"
    ):
        joint.given(camera="walking", shoes="standing")


def test_variables_go_with_their_rules():
    model = RuleModel(VARIABLES, EXPERT, priors={"camera": [0.2, 0.3, 0.5]}).remove_variable("hands")
    assert model.space.names == ("camera", "shoes")
    assert [rule.text for rule in model.rules] == ["walking <-> gait"]
    assert model.priors["camera"].tolist() == [0.2, 0.3, 0.5]
    with pytest.raises(InputError, match="the only class variable"):
        model.remove_variable("camera").remove_variable("shoes")


def test_rules_that_are_called_the_same_go_by_position():
    model = RuleModel(VARIABLES, ["walking <-> gait", "0.7: walking <-> gait", "0.6: low -> gait"])
    with pytest.raises(InputError, match=r"Several rules are called 'walking <-> gait'.* 0, 1"):
        model.remove_rules("walking <-> gait")
    assert [rule.p for rule in model.remove_rules(np.int64(1)).rules] == [1.0, 0.6]
    assert [rule.p for rule in model.remove_rules(-1, 0).rules] == [0.7]
    for nobody in (None, True, 3):
        with pytest.raises(InputError, match="There is no rule"):
            model.remove_rules(nobody)


def test_frames_are_read_by_category_and_keep_their_index():
    rng = np.random.default_rng(0)
    camera, hands = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3), 5)
    shuffled = pd.DataFrame(camera, columns=VARIABLES["camera"], index=list("abcde"))[
        ["overhead", "normal", "walking"]
    ]
    model = RuleModel(VARIABLES, EXPERT)
    by_frame = model.predict_joint(
        {"hands": pl.DataFrame(hands, schema=VARIABLES["hands"]), "camera": shuffled}
    )
    by_array = model.predict_joint({"camera": camera, "hands": hands})
    assert list(by_frame.mode().index) == list("abcde")
    for name in VARIABLES:
        np.testing.assert_allclose(by_frame.marginals()[name], by_array.marginals()[name], atol=1e-12)
    assert by_array.log_prob(by_array.mode()).shape == (5,)


def test_variables_without_beliefs_get_their_prior():
    rules = [Rule("wet <-> rain", 0.95)]
    uniform = RuleModel({"rain": None, "wet": []}, rules)
    known = RuleModel({"rain": None, "wet": []}, rules, priors={"wet": 0.1})
    # With a uniform prior of "wet", rain keeps its belief; with another, the two opinions multiply.
    np.testing.assert_allclose(
        uniform.predict_joint({"rain": 0.7}).marginals()["rain"], [[0.3, 0.7]], atol=1e-12
    )
    yes, no = 0.7 * (0.95 * 0.1 + 0.05 * 0.9), 0.3 * (0.95 * 0.9 + 0.05 * 0.1)
    np.testing.assert_allclose(known.predict_joint({"rain": 0.7}).marginals()["rain"][1], [yes / (yes + no)])
    alone = known.predict_joint({})
    assert len(alone) == 1
    np.testing.assert_allclose(alone.marginals()["rain"][1], [0.95 * 0.1 + 0.05 * 0.9])


def test_a_sensor_that_is_silent_in_a_row_gets_the_prior_there():
    model = RuleModel(VARIABLES, EXPERT, priors={"shoes": {"gait": 0.2, "standing": 0.8}})
    shoes = np.array([[0.05, 0.95], [np.nan, np.nan]])
    together = model.predict_joint({"camera": ONE_ROW["camera"], "shoes": shoes})
    apart = model.predict_joint({"camera": ONE_ROW["camera"]})
    np.testing.assert_allclose(together.marginals()["shoes"].iloc[[1]], apart.marginals()["shoes"])
    assert len(together) == 2  # one row of the camera serves both


def test_beliefs_that_were_rounded_are_scaled():
    model = RuleModel(VARIABLES, [])
    np.testing.assert_allclose(
        model.predict_joint({"camera": [[0.33, 0.33, 0.33]]}).marginals()["camera"], [[1 / 3] * 3], atol=1e-12
    )


@pytest.mark.parametrize(
    ("beliefs", "said"),
    [
        ({"camera": [[0.1, 0.9]]}, "must have 3 columns"),
        ({"camera": [[0.1, 0.2, 0.3]]}, "add up to 1; row 0"),
        ({"camera": [[-0.1, 0.6, 0.5]]}, "add up to 1; row 0"),
        ({"camera": [[0.1, np.nan, 0.5]]}, "add up to 1; row 0"),
        ({"kamera": [[0.1, 0.4, 0.5]]}, "Did you mean 'camera'"),
        ({"camera": {"walking": 0.5, "flying": 0.5}}, "one column for each of"),
        ({"camera": 0.5}, "yes/no variables"),
        ({"camera": np.full((2, 3), 1 / 3), "shoes": np.full((3, 2), 0.5)}, "equally many rows"),
        ([[0.1, 0.4, 0.5]], "mapping of class variables"),
    ],
)
def test_beliefs_are_checked(beliefs, said):
    with pytest.raises(InputError, match=said):
        RuleModel(VARIABLES, EXPERT).predict_joint(beliefs)


def test_frames_in_different_orders_are_refused():
    camera = pd.DataFrame(np.full((2, 3), 1 / 3), columns=VARIABLES["camera"], index=["a", "b"])
    shoes = pd.DataFrame(np.full((2, 2), 0.5), columns=VARIABLES["shoes"], index=["b", "a"])
    with pytest.raises(InputError, match="different indices"):
        RuleModel(VARIABLES, EXPERT).predict_joint({"camera": camera, "shoes": shoes})


@pytest.mark.parametrize("variables", [{}, {"a": "text"}, {"a": ["x", "x"]}, ["a", "b"]])
def test_variables_are_checked(variables):
    with pytest.raises(InputError, match="RuleModel"):
        RuleModel(variables)


def test_mistakes_in_rules_say_what_names_there_are():
    for rules in (["high & -> low"], ["high -> lower"], [NoisyOr({"camera": {"flying": 0.5}})]):
        with pytest.raises(InputError, match=r"Known are camera \(walking, normal, overhead\)"):
            RuleModel(VARIABLES, rules)


def test_contradictions_name_rules_and_rows():
    model = RuleModel(VARIABLES, ["walking <-> gait", "walking", "standing"])
    with pytest.raises(ImpossibleEvidenceError, match="walking <-> gait"):
        model.predict_joint(ONE_ROW).mode()


def test_rules_and_variables_come_and_go():
    model = RuleModel(VARIABLES, EXPERT, priors={"shoes": [0.3, 0.7]})
    fewer = model.remove_rules(0, "walking <-> gait")
    assert fewer.rules == RuleSet(["0.9: normal -> (centered | low)"])
    again = fewer.add_rules("walking <-> gait").remove_rules(-1)
    assert again.rules == fewer.rules
    np.testing.assert_allclose(fewer.priors["shoes"], [0.3, 0.7])
    wider = model.add_variable("helmet", prior=0.9).add_rules(Rule("overhead -> helmet", 0.99))
    assert wider.space.names == ("camera", "shoes", "hands", "helmet")
    assert wider.predict_joint(ONE_ROW).marginals()["helmet"].iloc[0, 1] > 0.9
    with pytest.raises(InputError, match="no rule 'nothing'"):
        model.remove_rules("nothing")


def test_predictions_decisions_and_evidence():
    model = RuleModel(VARIABLES, EXPERT)
    joint = model.predict_joint(ONE_ROW)
    assert joint.given(shoes="gait").marginals()["camera"].iloc[0, 0] == pytest.approx(1.0)
    assert model.predict(ONE_ROW).iloc[0].tolist() == ["overhead", "standing", "high"]
    assert model.predict(ONE_ROW, "hamming").iloc[0].tolist() == ["overhead", "standing", "centered"]
    assert "walking <-> gait" in repr(model)
    assert "<table" in model._repr_html_()


def test_a_class_space_may_be_given():
    space = ClassSpace(("a", "b"), ([0, 1], ["x", "y"]))
    joint = RuleModel(space, ["a -> y"]).predict_joint({"a": 1.0})
    np.testing.assert_allclose(joint.marginals()["b"], [[0.0, 1.0]])


def test_the_example_runs(capsys):
    path = Path(__file__).parents[2] / "examples" / "warehouse_worker.py"
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert "camera: walking 0.007, normal 0.289, overhead 0.703" in said
    assert "P(high) = 0.70:  P(overhead) = 0.7898" in said
    assert "these rules contradict each other" in said


# -- mistakes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (["low", "fair", "high"], "must be numbers"),
        ("often", "must be numbers"),
        ([[0.2, 0.3, 0.5], [0.2, 0.8]], "must be numbers, equally many in every row"),
        (pd.DataFrame([["x", "y", "z"]], columns=VARIABLES["camera"]), "must be numbers"),
        (pl.DataFrame([["x"], ["y"], ["z"]], schema=VARIABLES["camera"]), "must be numbers"),
        ({"walking": [0.2, 0.5], "normal": [0.3, 0.2], "overhead": [0.5, 0.3]}, "pass a frame"),
        ({"walking": [0.2, 0.5], "normal": 0.3, "overhead": 0.5}, "must be numbers"),
        ({"walking": "x", "normal": 0.3, "overhead": 0.5}, "must be numbers"),
    ],
)
def test_tables_that_hold_no_numbers_are_refused(table, said):
    with pytest.raises(InputError, match=f"The beliefs about 'camera' .*{said}"):
        RuleModel(VARIABLES, EXPERT).predict_joint({"camera": table})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"variables": {"a": 3}}, "categories of 'a' must be a list"),
        ({"variables": {"a": [["x"], ["y"]]}}, "categories of 'a' must be a list"),
        ({"rules": None}, "Rules must be a list"),
        ({"rules": 3}, "Rules must be a list"),
        ({"priors": 3}, "Priors must be a mapping"),
        ({"priors": [0.5, 0.5]}, "Priors must be a mapping"),
        ({"priors": {"shoes": "x"}}, "must be numbers"),
        ({"priors": {"shoes": [np.nan, np.nan]}}, "one row of probabilities, found missing"),
        ({"priors": {"shoes": [[0.5, 0.5]] * 2}}, "one row of probabilities, found 2 rows"),
        ({"engine": "signed"}, "engine must be 'auto' or an engine"),
    ],
)
def test_bad_settings_are_refused_at_once(settings, said):
    with pytest.raises(InputError, match=said):
        RuleModel(**{"variables": VARIABLES, **settings})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"name": "helmet", "categories": "xy"}, "add_variable: the categories"),
        ({"name": "helmet", "categories": ["on"]}, "at least two"),
        ({"name": "helmet", "prior": np.nan}, "one row of probabilities"),
        ({"name": "helmet", "prior": [[0.5, 0.5]] * 2}, "one row of probabilities"),
        ({"name": "shoes"}, "already"),
    ],
)
def test_added_variables_are_checked(settings, said):
    with pytest.raises(InputError, match=said):
        RuleModel(VARIABLES, EXPERT).add_variable(**settings)


@pytest.mark.parametrize(
    ("row", "said"), [("a", "must be an integer"), (1.5, "must be an integer"), (1, "no row 1; there are 1")]
)
def test_rows_to_be_explained_are_checked(row, said):
    with pytest.raises(InputError, match=said):
        RuleModel(VARIABLES, EXPERT).explain(ONE_ROW, row)


def test_contributions_want_labels_of_the_same_rows():
    labels = pd.DataFrame([["overhead", "standing", "high"]] * 2, columns=list(VARIABLES))
    with pytest.raises(InputError, match="1 rows, but labels of 2"):
        RuleModel(VARIABLES, EXPERT).contributions(ONE_ROW, labels)


def test_predictions_tell_the_rows_on_which_estimates_settled():
    prediction = RuleModel(VARIABLES, EXPERT, engine=BeliefPropagation()).predict_joint(ONE_ROW)
    assert prediction.distribution.converged.shape == (1,)

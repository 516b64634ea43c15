import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest

from tuplet.core.exceptions import InputError
from tuplet.joint.base import all_outcomes
from tuplet.models.rules import Rule, compile_rules, rule_graph
from tuplet.models.rules.explain import contributions, explain, log_odds, rule_effects
from tuplet.models.rules.model import RuleModel
from tuplet.space import ClassSpace
from tuplet.surface.plots.rules import plot_rule_effects

matplotlib.use("Agg")

VARIABLES = {"camera": ["w", "n", "o"], "shoes": ["g", "s"], "hands": ["h", "c", "l"]}
EXPERT = [Rule("(h & s) -> o", 0.8), Rule("n -> (c | l)", 0.9), Rule("w <-> g"), Rule("h & o & s & !c", 0.5)]
SENSORS = {"camera": [0.1, 0.4, 0.5], "shoes": [0.05, 0.95], "hands": [0.5, 0.3, 0.2]}


def model(rules=EXPERT):
    return RuleModel(VARIABLES, rules)


def odds(probability):
    return np.log(probability) - np.log(1 - probability)


def test_the_effect_of_a_rule_is_what_is_missing_without_it():
    explanation = model().explain(SENSORS)
    with_all = np.hstack(model().joint(SENSORS).marginals())[0]
    for k in range(3):
        without = np.hstack(model().remove_rules(k).joint(SENSORS).marginals())[0]
        np.testing.assert_allclose(explanation.shifts[k], odds(with_all) - odds(without), atol=1e-9)
    np.testing.assert_allclose(explanation.shifts[3], 0.0, atol=1e-9)  # p = 1/2 says nothing
    before = np.hstack([SENSORS[name] for name in VARIABLES])
    np.testing.assert_allclose(explanation.total, odds(with_all) - odds(before), atol=1e-9)
    np.testing.assert_allclose(explanation.beliefs, before)


def test_how_often_rules_are_broken():
    joint = model().joint(SENSORS)
    effects = rule_effects(joint)
    outcomes = all_outcomes(joint.cards)
    for k, factor in enumerate(joint._problem.rules):
        breach = factor.breach_table()[tuple(outcomes[:, v] for v in factor.scope)]
        without = model().remove_rules(k).joint(SENSORS)
        for distribution, found in ((joint, effects.broken), (without, effects.broken_without)):
            probability = np.exp(distribution.log_prob(outcomes[:, None])[:, 0])
            assert found[0, k] == pytest.approx(float(probability @ breach), abs=1e-9)


def test_certain_labels_have_infinite_odds_and_no_nan():
    explanation = model(["o", "o | w"]).explain(SENSORS)
    assert explanation.total[2] == np.inf
    assert not np.isnan(explanation.shifts).any()
    np.testing.assert_allclose(explanation.shifts[1], 0.0, atol=1e-12)
    flat = np.array([[1.0 - 1e-14, 1e-14, 0.0]])
    np.testing.assert_allclose(log_odds(flat, np.array([0, 3]))[0, :2], [32.236, -32.236], atol=1e-3)


def test_contributions_are_sorted_and_their_gain_is_the_likelihood():
    rng = np.random.default_rng(0)
    beliefs = {name: rng.dirichlet(np.ones(len(values)), 6) for name, values in VARIABLES.items()}
    Y = pd.DataFrame({name: rng.choice(values, 6) for name, values in VARIABLES.items()})
    rules = [Rule("(h & s) -> o", 0.8), Rule("n -> (c | l)", 0.9), Rule("w -> g", 0.95)]
    table = model(rules).contributions(beliefs, Y)
    assert list(table.columns) == ["rule", "p", "moved", "broken", "broken_without", "gain"]
    assert (np.diff(table["gain"]) <= 0).all()
    whole = model(rules).predict_joint(beliefs).log_prob(Y)
    for _, line in table.iterrows():
        without = model(rules).remove_rules(line["rule"]).predict_joint(beliefs).log_prob(Y)
        assert line["gain"] == pytest.approx((whole - without).mean(), abs=1e-9)
    assert (np.diff(model(rules).contributions(beliefs)["moved"]) <= 0).all()


def test_gains_count_known_labels_only():
    space = ClassSpace(("a", "b"), ([0, 1], [0, 1]))
    factors = compile_rules([Rule("a -> b", 0.9)], space)
    joint = rule_graph([np.log([[0.5, 0.5]] * 2), np.log([[0.7, 0.3]] * 2)], factors)
    one = contributions(joint, space, np.array([[1, 1], [-1, -1]]))
    both = contributions(joint, space, np.array([[1, 1], [1, 1]]))
    assert one["gain"][0] == pytest.approx(both["gain"][0])
    none = contributions(joint, space, np.full((2, 2), -1))
    assert none["gain"][0] == 0.0


def test_tables_and_sentences():
    explanation = model().explain(SENSORS)
    effects = explanation.effects()
    assert list(effects.columns) == ["rule", "p", "variable", "category", "log_odds"]
    assert (np.diff(np.abs(effects["log_odds"])) <= 0).all()
    assert effects.iloc[0][["rule", "variable", "category"]].tolist() == ["w <-> g", "camera", "w"]
    assert explanation.labels().shape == (8, 5)
    assert explanation.rule_frame()["rule"].tolist() == [rule.text for rule in EXPERT]
    assert str(explanation).splitlines()[:2] == ["w: 0.100 -> 0.007 (log-odds -2.70)", "  -2.50  w <-> g"]
    assert "w &lt;-&gt; g" in explanation._repr_html_()
    assert "change nothing" in str(model([]).explain(SENSORS))
    with pytest.raises(InputError, match="no row 1"):
        model().explain(SENSORS, row=1)


def test_tables_are_polars_frames_where_labels_are():
    space = ClassSpace.from_labels(pl.DataFrame({"a": [0, 1], "b": [0, 1]}))
    joint = RuleModel(space, [Rule("a -> b", 0.9)]).joint({"a": 0.4, "b": 0.2})
    assert isinstance(explain(joint, space).effects(), pl.DataFrame)


def test_the_plot_shows_rules_and_labels():
    ax = model().plot_explanation(SENSORS, title="what the rules did")
    rows = [tick.get_text() for tick in ax.get_yticklabels()]
    assert rows[0] == "w <-> g"
    assert rows[-1] == "all rules together"
    assert any("0.50 → 0.70" in tick.get_text() for tick in ax.get_xticklabels())
    assert ax.get_title(loc="left") == "what the rules did"
    hard = plot_rule_effects(model(["o"]).explain(SENSORS), max_labels=3)
    assert "+∞" in [text.get_text() for text in hard.texts]
    with pytest.raises(InputError, match="no rules"):
        plot_rule_effects(model([]).explain(SENSORS))
    matplotlib.pyplot.close("all")

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.models.rules import Is, Label, NoisyOr, Rule, RuleSet, compile_rules
from tuplet.models.rules.language.formula import And, Iff, Implies, Not, Or, Xor
from tuplet.models.rules.language.parser import parse
from tuplet.space import ClassSpace

WORKER = ClassSpace(
    ("camera", "shoes", "hands"),
    (["walking", "normal", "overhead"], ["gait", "standing"], ["high", "centered", "low"]),
)
A, B, C = Label("a"), Label("b"), Label("c")


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("a & b | c", Or((And((A, B)), C))),
        ("a | b & c", Or((A, And((B, C))))),
        ("a xor b | c", Or((Xor((A, B)), C))),
        ("a & b xor c", Xor((And((A, B)), C))),
        ("!a & b", And((Not((A,)), B))),
        ("!(a & b)", Not((And((A, B)),))),
        ("not not a", Not((Not((A,)),))),
        ("a -> b -> c", Implies((A, Implies((B, C))))),
        ("a <- b <- c", Implies((C, Implies((B, A))))),
        ("a <-> b -> c", Iff((A, Implies((B, C))))),
        ("a <-> b <-> c", Iff((Iff((A, B)), C))),
        ("a and b or c", Or((And((A, B)), C))),
        ("a IMPLIES b IFF c", Iff((Implies((A, B)), C))),
        ("a ∧ ¬b ⇒ c", Implies((And((A, Not((B,)))), C))),
        ("a && b || c", Or((And((A, B)), C))),
        ("a ^ b", Xor((A, B))),
        ("x == 1 & y != 'two words'", And((Is("x", 1), Not((Is("y", "two words"),))))),
        ("x = True", Is("x", True)),
        ("x == 1.5", Is("x", 1.5)),
        ("'a->b' -> amazed-surprised", Implies((Label("a->b"), Label("amazed-surprised")))),
    ],
)
def test_texts_mean_what_logicians_expect(text, formula):
    assert parse(text) == formula


NAMES = st.sampled_from(["a", "b-c", "two words", "and", "1", 'say "x"', "back\\slash", "True", "ä", "x.y"])
CATEGORIES = st.one_of(NAMES, st.integers(-3, 3), st.booleans(), st.sampled_from([0.5, 1e-7]))
LEAVES = st.one_of(NAMES.map(Label), st.builds(Is, NAMES, CATEGORIES))


def formulas(leaves):
    def extend(inner):
        pair = st.tuples(inner, inner)
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            inner.map(lambda part: Not((part,))),
            several.map(And),
            several.map(Or),
            pair.map(Xor),
            pair.map(Implies),
            pair.map(Iff),
        )

    return st.recursive(leaves, extend, max_leaves=6)


@given(formulas(LEAVES))
def test_printed_formulas_are_read_as_the_same(formula):
    assert parse(str(formula)) == formula


def test_python_operators_build_the_same_rules():
    high, standing, overhead = Label("high"), Is("shoes", "standing"), Label("overhead")
    assert Rule((high & standing) >> overhead, 0.8) == Rule("(high & shoes == standing) -> overhead", 0.8)
    assert Rule((~high | overhead).iff(standing ^ high)) == Rule(
        "!high | overhead <-> shoes == standing xor high"
    )


# -- meaning ------------------------------------------------------------------------------------------------

VALUES = [("u", "p"), ("u", "q"), ("u", "r"), ("v", "s"), ("v", "t"), ("w", 0), ("w", 1)]
SPACE = ClassSpace(("u", "v", "w"), (["p", "q", "r"], ["s", "t"], [0, 1]))


def holds(formula, outcome):
    """The oracle: one outcome at a time, by Python's own logic."""
    match formula:
        case Is():
            return outcome[formula.variable] == formula.category
        case Label(name="w"):
            return outcome["w"] == 1
        case Label():
            return formula.name in outcome.values()
    parts = [holds(part, outcome) for part in formula.parts]
    match formula:
        case Not():
            return not parts[0]
        case And():
            return all(parts)
        case Or():
            return any(parts)
        case Xor():
            return parts[0] != parts[1]
        case Implies():
            return parts[1] if parts[0] else True
        case Iff():
            return parts[0] == parts[1]


@given(
    formulas(st.sampled_from([Is(*value) for value in VALUES] + [Label(n) for n in "pqrstw"])),
    st.sampled_from([0.0, 0.2, 0.9, 1.0]),
)
@examples(50)
def test_factors_agree_with_logic_on_every_outcome(formula, p):
    (factor,) = compile_rules([Rule(formula, p)], SPACE)
    for codes in itertools.product(range(3), range(2), range(2)):
        outcome = {n: SPACE.categories[j][codes[j]] for j, n in enumerate(SPACE.names)}
        expected = p if holds(formula, outcome) else 1 - p
        assert np.exp(factor.at(np.array(codes))) == pytest.approx(expected, abs=1e-15)
        inside = tuple(codes[v] for v in factor.scope)
        assert factor.table()[inside] == pytest.approx(expected, abs=1e-15)


def test_several_categories_of_one_variable_unite():
    # Intersecting them instead would make "normal -> (centered | low)" forbid normal altogether.
    (factor,) = compile_rules([Rule("normal -> (centered | low)", 0.9)], WORKER)
    assert factor.q is not None
    np.testing.assert_allclose(factor.table(), [[0.9] * 3, [0.1, 0.9, 0.9], [0.9] * 3])


def test_an_iff_that_may_fail_is_not_two_implications():
    (iff,) = compile_rules([Rule("walking <-> gait", 0.8)], WORKER)
    there, back = compile_rules([Rule("walking -> gait", 0.8), Rule("gait -> walking", 0.8)], WORKER)
    np.testing.assert_allclose(iff.table()[1], [0.2, 0.8])
    np.testing.assert_allclose((there.table() * back.table())[1], [0.16, 0.64])


def test_long_disjunctions_and_conjunctions_need_no_table():
    space = ClassSpace(tuple(f"x{j}" for j in range(60)), ([0, 1],) * 60)
    names = list(space.names)
    either, all_of = compile_rules(
        [Rule(" | ".join(names), 0.9), Rule(" & ".join(names), 0.7)],
        space,
    )
    none, every = np.zeros(60, int), np.ones(60, int)
    assert np.exp(either.at(none)) == pytest.approx(0.1)
    assert np.exp(either.at(every)) == pytest.approx(0.9)
    assert np.exp(all_of.at(none)) == pytest.approx(0.3)
    assert np.exp(all_of.at(every)) == pytest.approx(0.7)
    assert all_of.own_p == pytest.approx(0.7)
    with pytest.raises(InputError, match="Split it"):
        compile_rules([Rule(" xor ".join(names))], space)


def test_noisy_or_by_inhibitions_and_by_strengths():
    given_q = NoisyOr({"camera": {"walking": 0.2}, "shoes": {"gait": 0.4, "standing": 0.9}}, 0.95)
    strengths = {"camera": {"walking": 0.8}, "shoes": {"gait": 0.6, "standing": 0.1}}
    assert NoisyOr.from_strengths(strengths, 0.95) == given_q
    (factor,) = compile_rules([given_q], WORKER)
    breach = np.outer([0.2, 1.0, 1.0], [0.4, 0.9])
    np.testing.assert_allclose(factor.table(), 0.95 * (1 - breach) + 0.05 * breach)


# -- names and mistakes -------------------------------------------------------------------------------------


def test_bare_names_of_yes_no_variables_mean_yes():
    space = ClassSpace(("rain", "wind", "sky"), ([0, 1], ["yes", "no"], ["clear", "cloudy"]))
    (factor,) = compile_rules(["rain & wind -> cloudy"], space)
    assert np.exp(factor.at(np.array([1, 0, 0]))) == 0.0
    assert np.exp(factor.at(np.array([1, 1, 0]))) == 1.0
    for text in ("rain == 1", "rain == '1'", "rain == True"):
        (same,) = compile_rules([text], space)
        np.testing.assert_array_equal(same.table(), [0.0, 1.0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "(high & sanding) -> overhead",
            ["'sanding'", "          ^", "Did you mean 'standing'?", "hands (high"],
        ),
        ("camera == wlking", ["no category 'wlking'", "Did you mean 'walking'?"]),
        ("kamera == walking", ["no class variable 'kamera'", "Did you mean 'camera'?"]),
        ("camera -> high", ["categories walking, normal, overhead", "as in camera == walking"]),
        ("(high & ) -> low", ["expected a name", "          ^", "Known are camera"]),
        ("high low", ["expected an operator", "       ^"]),
        ("(high", ["found the end"]),
        ("high % low", ["no sign '%'"]),
        ("'high -> low", ["quote is not closed"]),
        ("hands == ", ["expected a category"]),
        ("", ["expected a name"]),
    ],
)
def test_mistakes_are_shown_where_they_stand(text, said):
    with pytest.raises(InputError) as error:
        compile_rules([text], WORKER)
    for part in said:
        assert part in str(error.value)


def test_ambiguous_names_are_refused_with_the_ways_to_say_it():
    space = ClassSpace(("left", "right"), (["up", "down"], ["up", "down"]))
    with pytest.raises(InputError, match="left == up or right == up"):
        compile_rules(["up"], space)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), "often"])
def test_probabilities_are_checked(p):
    with pytest.raises(InputError, match="between 0 and 1"):
        Rule("a", p)


def test_python_words_are_no_operators():
    high, standing = Is("hands", "high"), Is("shoes", "standing")
    for combine in (lambda: high and standing, lambda: high or standing, lambda: not high):
        with pytest.raises(InputError, match="combine formulas by &"):
            combine()


def test_what_is_to_be_learned_is_said_so():
    rule = Rule("a -> b", "learn")
    assert str(rule) == "a -> b  (p is to be learned)"
    assert eval(repr(rule)) == rule
    for rules in (RuleSet.from_text(RuleSet([rule]).to_text()), RuleSet.from_json(RuleSet([rule]).to_json())):
        assert rules[0].pending
    assert not rule.with_p(0.9).pending
    with pytest.raises(InputError, match="probability of a noisy_or is given"):
        RuleSet(["learned: noisy_or(a == 1: 0.1)"])


def test_a_probability_to_learn_has_a_start():
    rule = Rule("a -> b", "learn")
    assert rule.learned
    assert rule.p == 0.9
    changed = rule.with_p(0.6)
    assert changed.learned
    assert changed.p == 0.6


# -- sets, text, JSON ---------------------------------------------------------------------------------------

PROBABILITIES = st.floats(0, 1)
TITLES = st.one_of(st.none(), st.sampled_from(["one", "with ] bracket", "back\\slash", "colon: 0.5"]))
RULES = st.builds(Rule, formulas(LEAVES), PROBABILITIES, TITLES, st.booleans())
NOISY = st.builds(
    NoisyOr,
    st.dictionaries(
        NAMES, st.dictionaries(CATEGORIES, PROBABILITIES, min_size=1, max_size=3), min_size=1, max_size=3
    ),
    PROBABILITIES,
    TITLES,
    st.booleans(),
)


@given(st.lists(st.one_of(RULES, NOISY), max_size=4))
def test_rules_survive_text_and_json(rules):
    written = RuleSet(rules)
    assert RuleSet.from_text(written.to_text()) == written
    assert RuleSet.from_json(written.to_json()) == written


def test_text_has_remarks_names_and_probabilities():
    rules = RuleSet.from_text("""
        # what the foreman says
        [overhead work] 0.8: (high & standing) -> overhead
        walking <-> gait
        learned 0.7: normal -> !high
        learned: low -> !overhead
        0.99: noisy_or(camera == walking: 0.2, shoes == gait: 0.4)
    """)
    assert [rule.p for rule in rules] == [0.8, 1.0, 0.7, 0.9, 0.99]
    assert [rule.learned for rule in rules] == [False, False, True, True, False]
    assert rules[0].title == "overhead work"
    assert rules[4] == NoisyOr({"camera": {"walking": 0.2}, "shoes": {"gait": 0.4}}, 0.99)
    assert len(rules.compile(WORKER)) == 5


@pytest.mark.parametrize("text", ["no json", "{}", '{"format": "tuplet rules", "version": 2, "rules": []}'])
def test_other_json_is_refused(text):
    with pytest.raises(InputError, match="not JSON of rules"):
        RuleSet.from_json(text)


@pytest.mark.parametrize(
    "text", ["noisy_or(a: 0.2)", "noisy_or(a == b 0.2)", "noisy_or(a == b: 0.2", "noisy_or()"]
)
def test_broken_noisy_or_texts_are_refused(text):
    with pytest.raises(InputError, match=r"noisy_or is written|expected ','"):
        RuleSet([text])


def test_sets_print_as_sentences():
    rules = RuleSet(["0.8: a -> b"]) + RuleSet(
        [NoisyOr({"x": {"u": 0.25, "v": 1.0}, "y": {"w": 0.1}}, 0.999)]
    )
    assert str(rules) == "1. a -> b  (p = 0.8)\n2. y == w (0.9) or x == u (0.75)  (p = 0.999)"
    assert "<td style='text-align:left'>a -&gt; b</td>" in rules._repr_html_()
    assert rules[:1] == RuleSet(["0.8: a -> b"])
    with pytest.raises(InputError, match="found int"):
        RuleSet([3])


def test_noisy_or_rules_are_said_in_short_names_and_patterns():
    space = ClassSpace(("sky", "rain", "wind"), (["clear", "cloudy", "dark"], [0, 1], [0, 1]))
    strengths = {"sky": {"clear": 0.9}, "rain": {0: 0.6}}
    positive, negative = compile_rules(
        [
            NoisyOr.from_strengths(strengths),
            NoisyOr({"sky": {"clear": 0.0, "cloudy": 0.3}, "rain": {0: 0.0}, "wind": {1: 1.0}}, 0.1),
        ],
        space,
    )
    assert positive.text == "clear (0.9) or !rain (0.6)"
    assert negative.text == "(dark | cloudy (0.3)) & rain"
    assert negative.own_p == pytest.approx(0.9)
    np.testing.assert_allclose(np.exp(negative.at(np.array([[2, 1, 0], [0, 1, 1]]))), [0.9, 0.1])
    assert str(NoisyOr({"rain": {0: 0.0}}, 0.1)) == "not (rain == 0 (1))  (p = 0.9)"


# -- mistakes and extremes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RuleSet(None), "Rules must be a list.*None"),
        (lambda: RuleSet(3), "Rules must be a list.*3"),
        (lambda: RuleSet([3]), "text, a Rule or a NoisyOr"),
        (lambda: Rule(3), "text or a Formula"),
        (lambda: Rule("a", np.array([0.2, 0.3])), "between 0 and 1"),
        (lambda: Rule("a", np.array([0.2])), "between 0 and 1"),
        (lambda: Rule("a", "often"), "between 0 and 1, found 'often'"),
        (lambda: Rule("a", name=3), "a name must be text"),
        (lambda: NoisyOr(["a"]), "mapping of variables"),
        (lambda: NoisyOr({"a": 0.3}), "each inhibition belongs to a category of 'a'"),
        (lambda: NoisyOr({"a": {"x": "s"}}), "between 0 and 1, found 's'"),
        (lambda: NoisyOr.from_strengths(["a"]), "mapping of variables"),
        (lambda: NoisyOr.from_strengths({"a": 0.3}), "each strength belongs to a category of 'a'"),
        (lambda: NoisyOr.from_strengths({"a": {"x": "s"}}), "the strength of a.*found 's'"),
        (lambda: Label("a") & "b", "made of formulas"),
        (lambda: Or(()), "made of formulas"),
        (lambda: parse("(" * 2000 + "a" + ")" * 2000), "at most 64 levels"),
        (lambda: parse("!" * 5000 + "a"), "at most 64 levels"),
        (lambda: parse(" -> ".join(["a"] * 3000)), "at most 64 levels"),
        (lambda: parse(" <- ".join(["a"] * 3000)), "at most 64 levels"),
        (lambda: parse(" <-> ".join(["a"] * 3000)), "at most 64 levels"),
        (lambda: parse(" xor ".join(["a"] * 3000)), "at most 64 levels"),
        (lambda: RuleSet.from_json("[" * 100_000), "not JSON of rules"),
    ],
)
def test_mistakes_are_one_sentence(make, said):
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize("text", ["(" * 64 + "a" + ")" * 64, "!" * 64 + "a", " -> ".join(["a"] * 65)])
def test_the_deepest_formulas_can_be_used(text):
    formula = parse(text)
    assert parse(str(formula)) == formula
    assert {str(leaf) for leaf in formula.leaves()} == {"a"}


@pytest.mark.parametrize(("combine", "sign"), [(lambda x, y: x & y, " & "), (lambda x, y: x | y, " | ")])
def test_long_sums_by_operators_are_flat(combine, sign):
    names = [f"v{i}" for i in range(300)]
    formula = functools.reduce(combine, map(Label, names))
    assert formula == parse(sign.join(names))
    assert Rule(formula).formula == formula


def test_rules_can_be_kept_in_sets():
    one, same = (
        NoisyOr({"a": {0: 0.5, 1: 0.2}, "b": {"x": 0.0}}),
        NoisyOr({"b": {"x": 0}, "a": {1: 0.2, 0: 0.5}}),
    )
    assert one == same
    assert len({one, same, one.with_p(0.9), Rule("a"), Rule("a")}) == 3


@given(st.text(alphabet=st.sampled_from("ab \n\r\\]['\"#:n\u2028\x85"), min_size=1))
def test_any_name_survives_as_text(name):
    rules = RuleSet(
        [Rule("a -> b", 0.8, name=name), Rule(Is("c", name), 0.5), NoisyOr({name: {name: 0.25}}, name=name)]
    )
    assert RuleSet.from_text(rules.to_text()) == rules
    assert RuleSet.from_json(rules.to_json()) == rules


def test_rules_over_several_lines_become_one():
    rules = RuleSet([Rule('a\n  -> b == "x\ny"', 0.8)])
    assert "\n" not in rules.to_text()
    assert RuleSet.from_text(rules.to_text()) == rules
    assert RuleSet.from_text("0.8: a\r\n\r\n# nothing\r\nb\r\n") == RuleSet(["0.8: a", "b"])

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from draws import examples
from tuplet.core.exceptions import ConvergenceWarning, ImpossibleEvidenceError, InputError, IntractableError
from tuplet.joint import Search
from tuplet.joint.base import all_outcomes
from tuplet.joint.inference import BeliefPropagation
from tuplet.models.rules import NoisyOr, Rule, RuleFactor, RuleJoint, compile_rules
from tuplet.models.rules.inference.joint import culprits
from tuplet.models.rules.inference.maxima import Maxima, best_outcomes
from tuplet.models.rules.inference.sums import Sums
from tuplet.space import ClassSpace
from tuplet.testing import check_joint

EXACT = ("enumeration", "elimination", "signed", "inclusion-exclusion")
WORKER = ClassSpace(("camera", "shoes", "hands"), (["w", "n", "o"], ["g", "s"], ["h", "c", "l"]))
EXPERT = [Rule("(h & s) -> o", 0.8), Rule("n -> (c | l)", 0.9), Rule("w <-> g", 1.0)]
SENSORS = ([0.1, 0.4, 0.5], [0.05, 0.95], [0.5, 0.3, 0.2])


def worker(rules=EXPERT, sensors=SENSORS, **settings):
    beliefs = [np.log([belief]) for belief in sensors]
    return RuleJoint(WORKER.cards, beliefs, compile_rules(rules, WORKER), **settings)


def binary(rules, priors, **settings):
    space = ClassSpace(tuple("ABC"[: len(priors)]), ([0, 1],) * len(priors))
    beliefs = [np.log([[1 - p, p]]) for p in priors]
    return RuleJoint(space.cards, beliefs, compile_rules(rules, space), **settings)


def study(n_labels, n_rules, n, seed):
    """A model of the paper's simulation study (section 4.1) and n rows of beliefs."""
    rng = np.random.default_rng(seed)
    cards = tuple(int(card) for card in rng.integers(2, 5, n_labels))
    literals = [(j, c) for j, card in enumerate(cards) for c in range(card)]
    factors = []
    for _ in range(n_rules):
        q = {}
        for i in rng.choice(len(literals), rng.integers(2, 6), replace=False):
            j, c = literals[i]
            q.setdefault(j, np.ones(cards[j]))[c] = 1 - np.sqrt(rng.random())
        factors.append(RuleFactor(tuple(sorted(q)), 1.0, q=tuple(q[j] for j in sorted(q))))
    return cards, [np.log(rng.dirichlet(np.ones(card), n)) for card in cards], tuple(factors)


# -- numbers of the paper -----------------------------------------------------------------------------------


def test_posterior_of_the_warehouse_worker():
    # Section 3.3 and Table 1 of the paper; six digits from the enumeration of its formula.
    joint = worker()
    assert np.exp(joint.log_normalizer) == pytest.approx(0.4862, abs=1e-9)
    expected = np.zeros((3, 2, 3))
    expected[0, 0] = 0.003702, 0.002221, 0.001481
    expected[1, 1] = 0.007816, 0.168819, 0.112546
    expected[2, 1] = 0.351707, 0.211024, 0.140683
    found = np.exp(joint.log_prob(all_outcomes(joint.cards)[:, None])[:, 0])
    np.testing.assert_allclose(found, expected.ravel(), atol=1e-6)
    mode = joint.mode()
    assert mode.codes.tolist() == [[2, 1, 0]]
    assert mode.proven.all()


@pytest.mark.parametrize("method", ["auto", "enumeration", "elimination", "signed"])
def test_marginals_of_the_warehouse_worker(method):
    camera, shoes, hands = worker(method=method).marginals()
    np.testing.assert_allclose(camera, [[0.007404, 0.289181, 0.703414]], atol=1e-6)
    np.testing.assert_allclose(shoes, [[0.007404, 0.992596]], atol=1e-6)
    np.testing.assert_allclose(hands, [[0.363225, 0.382065, 0.254710]], atol=1e-6)


def test_the_marginals_printed_in_the_paper_come_from_intersected_literals():
    # The paper prints o .94, n .05, h .48, although its own Table 1 adds up to the marginals above: P(o) is
    # .3517 + .2110 + .1407. In "n -> (c | l)" the literals c and l belong to one label; the authors' code
    # intersects them where it must unite them. No category is both c and l, so what is left is "not n".
    camera, shoes, hands = worker([EXPERT[0], Rule("!n", 0.9), EXPERT[2]]).marginals()
    np.testing.assert_allclose(camera, [[0.01, 0.05, 0.94]], atol=0.005)
    np.testing.assert_allclose(shoes, [[0.01, 0.99]], atol=0.005)
    np.testing.assert_allclose(hands, [[0.48, 0.31, 0.21]], atol=0.005)
    right = worker().marginals()[0]
    assert abs(right[0, 2] - 0.94) > 0.2


def test_warehouse_worker_with_higher_hands():
    joint = worker(sensors=(SENSORS[0], SENSORS[1], [0.7, 0.18, 0.12]))
    assert np.exp(joint.log_normalizer) == pytest.approx(0.433, abs=1e-6)
    assert joint.marginals()[0][0, 2] == pytest.approx(0.789838, abs=1e-6)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(
    ("rules", "priors", "expected"),
    [
        ([Rule("B <- A", 0.8)], (0.3, 0.6), (0.2308, 0.6593)),
        ([Rule("B <- A", 0.2)], (0.1, 0.6), (0.1964, 0.5357)),
        ([Rule("B <- A", 1.0)], (0.3, 0.6), (0.2045, 0.6818)),
        (["A or C", "B or C"], (0.1, 0.3, 0.6), (0.1176, 0.3137, 0.9804)),
        (["B <- A", "B <- C"], (0.4, 0.2, 0.8), (0.2703, 0.6757, 0.5405)),
    ],
)
def test_golden_values_of_small_rules(method, rules, priors, expected):
    found = [marginal[0, 1] for marginal in binary(rules, priors, method=method).marginals()]
    np.testing.assert_allclose(found, expected, atol=5e-5)  # given with four digits


# -- against enumeration ------------------------------------------------------------------------------------


@st.composite
def rule_joints(draw, products_only=False):
    """Small joints with rules of every kind: certain and doubtful, products and tables, p below 1/2."""
    cards = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = []
    for _ in range(draw(st.integers(0, 4))):
        size = draw(st.integers(1, len(cards)))
        scope = tuple(sorted(int(v) for v in rng.permutation(len(cards))[:size]))
        p = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.999, 1.0]))
        shape = tuple(cards[v] for v in scope)
        if products_only or draw(st.booleans()):
            hard = draw(st.booleans())
            q = [rng.random(k) ** 2 for k in shape]
            q = tuple(
                np.where(rng.random(k) < 0.5, np.round(x) if hard else x, 1.0)
                for k, x in zip(shape, q, strict=True)
            )
            factors.append(RuleFactor(scope, p, q=q))
        else:
            factors.append(RuleFactor(scope, p, violated=np.round(rng.random(shape))))
    n = draw(st.integers(1, 3))
    sharp = draw(st.sampled_from([0.3, 1.0, 5.0]))
    beliefs = [np.log(rng.dirichlet(np.full(card, sharp), n)) for card in cards]
    return RuleJoint(cards, beliefs, factors, draw(st.sampled_from(["auto", *EXACT[:3]])))


def possible(joint):
    try:
        joint.marginals()
    except ImpossibleEvidenceError:
        return False
    return True


@given(rule_joints())
@examples(25)
def test_every_query_agrees_with_enumeration(joint):
    assume(possible(joint))
    check_joint(joint)


@given(rule_joints(products_only=True))
@examples(25)
def test_exact_methods_agree(joint):
    assume(possible(joint))
    answers = [Sums(joint.cards, joint.factors, method).marginals(joint.log_beliefs) for method in EXACT]
    for marginals, log_z in answers[1:]:
        np.testing.assert_allclose(np.hstack(marginals), np.hstack(answers[0][0]), rtol=0, atol=1e-10)
        np.testing.assert_allclose(log_z, answers[0][1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_exact_methods_agree_on_the_medium_study(seed):
    cards, beliefs, factors = study(10, 10, 20, seed)
    reference, log_z = Sums(cards, factors, "elimination").marginals(beliefs)
    for method in ("signed", "inclusion-exclusion"):
        marginals, other = Sums(cards, factors, method).marginals(beliefs)
        np.testing.assert_allclose(np.hstack(marginals), np.hstack(reference), rtol=0, atol=1e-10)
        np.testing.assert_allclose(other, log_z, rtol=0, atol=1e-10)


def test_the_large_study_is_exact_and_its_modes_are_proven():
    cards, beliefs, factors = study(30, 30, 3, 5)
    joint = RuleJoint(cards, beliefs, factors)
    assert joint.chosen_method == "signed"
    reference, log_z = Sums(cards, factors, "elimination").marginals(beliefs)
    np.testing.assert_allclose(np.hstack(joint.marginals()), np.hstack(reference), rtol=0, atol=1e-10)
    np.testing.assert_allclose(joint.log_normalizer, log_z, rtol=0, atol=1e-10)
    tables = RuleJoint(cards, beliefs, factors, method="elimination")
    codes, log_weight, _ = tables._engine.top_k(tables._problem(beliefs), 4)
    found = joint.top_k(4)
    assert found.proven.all()
    np.testing.assert_array_equal(found.codes, codes)
    np.testing.assert_allclose(found.log_prob, log_weight - log_z[:, None], atol=1e-9)


def test_lost_digits_are_noticed_and_recovered():
    # Beliefs that break all rules almost surely: 1 - Q is a difference of numbers that agree in 11 digits.
    space = ClassSpace(tuple("ABCDE"), ([0, 1],) * 5)
    factors = compile_rules(["A | B | C", "B | C | D", "C | D | E", "A | !C | E"], space)
    tiny = np.array([1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
    beliefs = [np.log(np.stack([1 - tiny, tiny], axis=1))] * 5
    reference, log_z = Sums(space.cards, factors, "enumeration").marginals(beliefs)
    for method in EXACT[1:]:
        marginals, other = Sums(space.cards, factors, method).marginals(beliefs)
        np.testing.assert_allclose(np.hstack(marginals), np.hstack(reference), rtol=0, atol=1e-10)
        np.testing.assert_allclose(other, log_z, rtol=1e-10)


def test_digits_that_both_passes_lose_are_noticed_too():
    # f is about 1e-8 everywhere, a difference of numbers near 1; shares add up to one all the same.
    rng = np.random.default_rng(3)
    cards = (2, 2, 2, 3)
    factors = (RuleFactor((0, 1, 2, 3), 1 - 1e-8, q=tuple(1 - 1e-8 * rng.random(card) for card in cards)),)
    beliefs = [np.log(rng.dirichlet(np.ones(card), 5)) for card in cards]
    for signed in ("signed", "inclusion-exclusion"):
        found = Sums(cards, factors, signed)
        marginals, _, error = found._attempt(beliefs, np.float64)
        reference, exact = Sums(cards, factors, "enumeration").marginals(beliefs)
        actual = np.abs(np.hstack(marginals) - np.hstack(reference)).max(axis=1)
        assert actual.max() > 1e-11
        assert (error > np.maximum(actual, 1e-10)).all()
        again, log_again = found.marginals(beliefs)
        np.testing.assert_allclose(np.hstack(again), np.hstack(reference), rtol=0, atol=1e-10)
        np.testing.assert_allclose(log_again, exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_estimated_error_bounds_the_error(seed):
    cards, beliefs, factors = study(10, 10, 30, seed)
    reference, _ = Sums(cards, factors, "elimination").marginals(beliefs)
    for method in ("signed", "inclusion-exclusion"):
        marginals, _, error = Sums(cards, factors, method)._attempt(beliefs, np.float64)
        actual = np.abs(np.hstack(marginals) - np.hstack(reference)).max(axis=1)
        assert (actual <= error + 1e-15).all()


def test_sums_that_do_not_fit_are_refused_or_estimated():
    cards, beliefs, factors = study(10, 10, 2, 0)
    with pytest.raises(IntractableError, match="max_cells"):
        RuleJoint(cards, beliefs, factors, "elimination", max_cells=10).marginals()
    joint = RuleJoint(cards, beliefs, factors, max_cells=10)
    assert joint.chosen_method == "propagation"
    assert joint.tolerance == np.inf
    exact = RuleJoint(cards, beliefs, factors)
    assert (
        np.corrcoef(np.hstack(joint.marginals()).ravel(), np.hstack(exact.marginals()).ravel())[0, 1] > 0.98
    )
    # The most probable outcome is exact all the same, though its probability is an estimate.
    np.testing.assert_array_equal(joint.mode().codes, exact.mode().codes)
    assert joint.mode().proven.all()


def test_propagation_that_does_not_converge_warns():
    cards, beliefs, factors = study(10, 10, 20, 1)
    joint = RuleJoint(cards, beliefs, factors, "propagation", propagation=BeliefPropagation(max_iter=2))
    with pytest.warns(ConvergenceWarning, match="of 20 rows"):
        joint.marginals()


def test_propagation_shapes_and_ranges():
    cards, beliefs, factors = study(4, 3, 3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check_joint(RuleJoint(cards, beliefs, factors, "propagation"))


# -- modes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [4, 64, 2**14])
def test_the_search_finds_the_best_outcomes_however_narrow_its_tables(width):
    for seed in range(4):
        cards, beliefs, factors = study(7, 8, 15, seed)
        factors = tuple(replace(f, p=(1.0, 0.9, 0.2)[k % 3]) for k, f in enumerate(factors))
        codes = np.full((15, 5, 7), -1)
        log_weight = np.full((15, 5), -np.inf)
        nodes = Maxima(cards, factors, width).search(np.hstack(beliefs), 5, 10**6, codes, log_weight)
        assert (nodes >= 0).all()
        joint = RuleJoint(cards, beliefs, factors, "enumeration")
        every = joint._log_table() + joint.log_normalizer[:, None]
        np.testing.assert_allclose(log_weight, -np.sort(-every, axis=1)[:, :5], atol=1e-9)


def test_long_rules_are_bounded_without_tables():
    rng = np.random.default_rng(0)
    space = ClassSpace(tuple(f"x{j}" for j in range(13)), ([0, 1],) * 13)
    rules = [
        NoisyOr({name: {1: float(rng.random())} for name in space.names}, 0.9),
        NoisyOr({name: {0: float(rng.random())} for name in space.names}, 0.3),
        Rule(" | ".join(f"!{name}" for name in space.names)),
        Rule(" & ".join(space.names[:3]), 0.2),
        Rule("x3 xor x7 xor x11", 0.8),
    ]
    factors = compile_rules(rules, space)
    beliefs = [np.log(rng.dirichlet([1, 1], 10)) for _ in space.names]
    joint = RuleJoint(space.cards, beliefs, factors)
    enumerated = RuleJoint(space.cards, beliefs, factors, "enumeration")
    best = joint.top_k(3)
    assert best.proven.all()
    expected = -np.sort(-enumerated._log_table(), axis=1)[:, :3]
    np.testing.assert_allclose(best.log_prob, expected, atol=1e-9)
    np.testing.assert_allclose(np.hstack(joint.marginals()), np.hstack(enumerated.marginals()), atol=1e-10)


def test_a_search_without_budget_says_so():
    cards, beliefs, factors = study(10, 10, 5, 3)
    joint = RuleJoint(cards, beliefs, factors, search=Search(max_nodes=12))
    found = joint.top_k(3)
    assert not found.proven.any()
    np.testing.assert_allclose(joint.log_prob(found.codes[:, 0]), found.log_prob[:, 0], atol=1e-9)
    unsearched = RuleJoint(cards, beliefs, factors, search=Search(max_nodes=0)).mode()
    assert not unsearched.proven.any()
    assert np.isfinite(unsearched.log_prob).all()


def test_later_stages_start_from_what_earlier_ones_found(monkeypatch):
    cards, beliefs, factors = study(8, 10, 10, 4)
    expected, _, _ = best_outcomes(cards, factors, beliefs, 3, 10**6)
    monkeypatch.setattr("tuplet.models.rules.inference.maxima._STAGES", ((4, 10), (16, 20), (64, 10**6)))
    codes, _, proven = best_outcomes(cards, factors, beliefs, 3, 10**6)
    assert proven.all()
    np.testing.assert_array_equal(codes, expected)


# -- larger than a table of outcomes ------------------------------------------------------------------------


def test_draws_of_a_large_model_follow_its_marginals():
    cards, beliefs, factors = study(20, 20, 1, 6)
    for max_cells in (2**23, 2 * Sums(cards, factors).costs["signed"]):  # by tables, and in turn
        joint = RuleJoint(cards, beliefs, factors, max_cells=max_cells)
        drawn = joint.sample(400, rng=0)
        for j, marginal in enumerate(joint.marginals()):
            share = np.bincount(drawn[:, 0, j], minlength=cards[j]) / 400
            assert np.abs(share - marginal[0]).max() < 0.1  # four standard errors


def test_counts_and_entropies_of_more_outcomes_than_are_listed():
    rng = np.random.default_rng(1)
    space = ClassSpace(tuple(f"x{j}" for j in range(12)), ([0, 1],) * 12)
    factors = compile_rules([Rule(f"x{j} -> x{j + 1} | x{j + 2}", 0.8) for j in range(10)], space)
    joint = RuleJoint(space.cards, [np.log(rng.dirichlet([1, 1], 2)) for _ in range(12)], factors)
    atoms = joint.to_atoms()
    np.testing.assert_allclose(joint.count_marginals(), atoms.count_marginals(), atol=1e-10)
    np.testing.assert_allclose(joint.entropy(), atoms.entropy(), atol=1e-9)
    some = joint.marginal([5, 2, 9])
    np.testing.assert_allclose(some.mode().log_prob, atoms.marginal([5, 2, 9]).mode().log_prob, atol=1e-9)


def test_modes_of_many_variables_of_a_larger_model():
    cards, beliefs, factors = study(12, 10, 3, 8)
    joint = RuleJoint(cards, beliefs, factors)
    chosen = list(range(10))
    while np.prod([cards[v] for v in chosen]) <= 2**16:
        chosen.append(len(chosen))
    part = joint.marginal(chosen)
    found = part.mode()
    assert found.proven.all()
    np.testing.assert_allclose(part.log_prob(found.codes), found.log_prob, atol=1e-9)
    for _ in range(20):  # nothing near is better
        other = found.codes.copy()
        v = np.random.default_rng(_).integers(len(chosen))
        other[:, v] = (other[:, v] + 1) % part.cards[v]
        assert (part.log_prob(other) <= found.log_prob + 1e-9).all()


# -- contradictions -----------------------------------------------------------------------------------------


def test_contradictions_name_the_rules_and_no_others():
    rules = ["w <-> g", Rule("h -> o", 0.9), Rule("s", name="always standing"), "o -> w", "c -> n", "w | o"]
    joint = worker(rules)
    with pytest.raises(ImpossibleEvidenceError) as error:
        joint.marginals()
    text = str(error.value)
    assert text.startswith("Row 0 has no possible outcome")
    for culprit in ("w <-> g", "always standing", "o -> w", "w | o"):
        assert culprit in text
    for innocent in ("h -> o", "c -> n"):
        assert innocent not in text


@pytest.mark.parametrize("method", ["auto", "elimination", "signed", "propagation"])
def test_contradictions_are_errors_for_every_method_and_query(method):
    for query in ("marginals", "mode", "entropy"):
        joint = worker(["w", "o | n"], method=method)
        with pytest.raises(ImpossibleEvidenceError, match="contradict each other"):
            getattr(joint, query)()


def test_contradictions_name_the_row_and_the_beliefs():
    factors = compile_rules(["w <-> g"], WORKER)
    camera = np.array([[0.1, 0.4, 0.5], [1.0, 0.0, 0.0], [0.2, 0.4, 0.4]])
    shoes = np.array([[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])
    with np.errstate(divide="ignore"):
        beliefs = [np.log(camera), np.log(shoes), np.zeros((3, 3))]
    with pytest.raises(ImpossibleEvidenceError, match=r"Row 1 .*cannot be satisfied given the categories"):
        RuleJoint(WORKER.cards, beliefs, factors).mode()
    fine = RuleJoint(WORKER.cards, [belief[[0, 2]] for belief in beliefs], factors)
    assert fine.mode().proven.all()


def test_none_of_the_culprits_can_be_spared():
    rng = np.random.default_rng(2)
    space = ClassSpace(tuple(f"x{j}" for j in range(6)), ([0, 1],) * 6)
    names = np.array(space.names)
    found = 0
    for _ in range(40):
        texts = [
            " | ".join(rng.choice(["", "!"]) + name for name in rng.choice(names, 2, replace=False))
            for _ in range(16)
        ]
        factors = compile_rules(texts, space)
        beliefs = [np.zeros((1, 2))] * 6
        if Sums(space.cards, factors).log_partition(beliefs)[0] > -np.inf:
            continue
        found += 1
        rules = [factors[k] for k in culprits(space.cards, beliefs, factors)]
        assert np.isneginf(Sums(space.cards, tuple(rules)).log_partition(beliefs)[0])
        for k in range(len(rules)):
            rest = tuple(rules[:k] + rules[k + 1 :])
            assert Sums(space.cards, rest).log_partition(beliefs)[0] > -np.inf
    assert found > 5


# -- arguments ----------------------------------------------------------------------------------------------


def test_arguments_are_checked():
    beliefs = [np.zeros((1, 2))] * 2
    factor = RuleFactor((0, 1), 0.9, violated=np.eye(2))
    with pytest.raises(InputError, match="method must be one of"):
        RuleJoint((2, 2), beliefs, [factor], "magic")
    with pytest.raises(InputError, match="variable 1"):
        RuleJoint((2, 3), beliefs, [])
    with pytest.raises(InputError, match="does not fit"):
        RuleJoint((2,), beliefs[:1], [factor])
    with pytest.raises(InputError, match="disjunctions"):
        RuleJoint((2, 2), beliefs, [factor], "inclusion-exclusion")
    with pytest.raises(InputError, match="either q or violated"):
        RuleFactor((0,), 0.9)


def test_no_rules_leave_the_beliefs_alone_and_no_rows_are_fine():
    rng = np.random.default_rng(0)
    beliefs = [rng.dirichlet(np.ones(3), 4) for _ in range(6)]
    joint = RuleJoint((3,) * 6, np.log(beliefs), [])
    np.testing.assert_allclose(joint.marginals(), beliefs, atol=1e-12)
    np.testing.assert_allclose(joint.log_normalizer, 0.0, atol=1e-12)
    empty = joint[np.array([], dtype=int)]
    assert empty.mode().codes.shape == (0, 6)
    assert empty.marginals()[0].shape == (0, 3)


# -- thousands of class variables ---------------------------------------------------------------------------


def many(scopes, n_variables, p, method):
    """Yes/no variables of which nothing is known, and rules that one of some variables is yes."""
    yes = np.array([1.0, 0.0])
    factors = [RuleFactor(tuple(scope), p, q=(yes,) * len(scope)) for scope in scopes]
    beliefs = np.log(np.full((n_variables, 1, 2), 0.5))
    return RuleJoint((2,) * n_variables, beliefs, factors, method=method)


@pytest.mark.parametrize("method", ["auto", "signed", "elimination", "inclusion-exclusion"])
def test_sums_over_a_thousand_variables_do_not_overflow(method):
    joint = many([range(8 * k, 8 * k + 8) for k in range(10)], 1300, 0.9, method)
    broken = 0.5**8
    holds = 0.9 * (1 - broken) + 0.1 * broken
    np.testing.assert_allclose(joint.log_normalizer, 10 * np.log(holds), rtol=1e-10)
    # A label of a rule: yes in half of all outcomes, and then the rule holds.
    flat = np.concatenate(joint.marginals())[:, 1]
    np.testing.assert_allclose(flat[:80], 0.45 / holds, rtol=1e-10)
    np.testing.assert_allclose(flat[80:], 0.5)


def test_a_rule_over_a_thousand_variables_does_not_overflow():
    joint = many([range(1100)], 1100, 0.7, "signed")
    np.testing.assert_allclose(joint.log_normalizer, np.log(0.7))
    np.testing.assert_allclose(np.concatenate(joint.marginals()), 0.5)


def test_beliefs_need_not_be_normalised():
    cards, beliefs, factors = study(12, 6, 3, 0)
    for method in ("signed", "inclusion-exclusion", "elimination"):
        plain = RuleJoint(cards, beliefs, factors, method=method)
        scaled = RuleJoint(cards, [b + 3.0 for b in beliefs], factors, method=method)
        np.testing.assert_allclose(scaled.log_normalizer, plain.log_normalizer + 36.0)


def test_rows_on_which_belief_propagation_settles_are_told():
    cards, beliefs, factors = study(8, 8, 4, 1)
    assert RuleJoint(cards, beliefs, factors).converged.all()
    loops = RuleJoint(cards, beliefs, factors, method="propagation")
    assert loops.converged.shape == (4,)
    hasty = RuleJoint(
        cards, beliefs, factors, method="propagation", propagation=BeliefPropagation(max_iter=1, tol=1e-9)
    )
    with pytest.warns(ConvergenceWarning):
        hasty.marginals()
    assert not hasty.converged.any()
    assert hasty[[0, 2]].converged.shape == (2,)

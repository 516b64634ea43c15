import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from draws import examples
from rule_study import study
from tuplet.core.exceptions import ConvergenceWarning, ImpossibleEvidenceError, InputError
from tuplet.joint.base import all_outcomes
from tuplet.joint.graph import culprits
from tuplet.joint.inference import BeliefPropagation, Exact, Problem, SignedElimination
from tuplet.models.rules import Rule, RuleFactor, compile_rules, rule_graph
from tuplet.space import ClassSpace
from tuplet.testing import check_joint

ENGINES = ("auto", Exact(), SignedElimination())
WORKER = ClassSpace(("camera", "shoes", "hands"), (["w", "n", "o"], ["g", "s"], ["h", "c", "l"]))
EXPERT = [Rule("(h & s) -> o", 0.8), Rule("n -> (c | l)", 0.9), Rule("w <-> g", 1.0)]
SENSORS = ([0.1, 0.4, 0.5], [0.05, 0.95], [0.5, 0.3, 0.2])


def worker(rules=EXPERT, sensors=SENSORS, **settings):
    beliefs = [np.log([belief]) for belief in sensors]
    return rule_graph(beliefs, compile_rules(rules, WORKER), **settings)


def binary(rules, priors, **settings):
    space = ClassSpace(tuple("ABC"[: len(priors)]), ([0, 1],) * len(priors))
    beliefs = [np.log([[1 - p, p]]) for p in priors]
    return rule_graph(beliefs, compile_rules(rules, space), **settings)


# -- numbers of the paper -----------------------------------------------------------------------------------


def test_posterior_of_the_warehouse_worker():
    # Section 3.3 and Table 1 of the paper; six digits from the enumeration of its formula.
    joint = worker()
    assert np.exp(joint._log_normalizer) == pytest.approx(0.4862, abs=1e-9)
    expected = np.zeros((3, 2, 3))
    expected[0, 0] = 0.003702, 0.002221, 0.001481
    expected[1, 1] = 0.007816, 0.168819, 0.112546
    expected[2, 1] = 0.351707, 0.211024, 0.140683
    found = np.exp(joint.log_prob(all_outcomes(joint.cards)[:, None])[:, 0])
    np.testing.assert_allclose(found, expected.ravel(), atol=1e-6)
    mode = joint.mode()
    assert mode.codes.tolist() == [[2, 1, 0]]
    assert mode.proven.all()


@pytest.mark.parametrize("engine", ENGINES)
def test_marginals_of_the_warehouse_worker(engine):
    camera, shoes, hands = worker(engine=engine).marginals()
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
    assert np.exp(joint._log_normalizer) == pytest.approx(0.433, abs=1e-6)
    assert joint.marginals()[0][0, 2] == pytest.approx(0.789838, abs=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
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
def test_golden_values_of_small_rules(engine, rules, priors, expected):
    found = [marginal[0, 1] for marginal in binary(rules, priors, engine=engine).marginals()]
    np.testing.assert_allclose(found, expected, atol=5e-5)  # given with four digits


# -- against enumeration ------------------------------------------------------------------------------------


@st.composite
def rule_joints(draw):
    """Small joints with rules of every kind: certain and doubtful, products and tables, p below 1/2."""
    cards = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = []
    for _ in range(draw(st.integers(0, 4))):
        size = draw(st.integers(1, len(cards)))
        scope = tuple(sorted(int(v) for v in rng.permutation(len(cards))[:size]))
        p = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.999, 1.0]))
        shape = tuple(cards[v] for v in scope)
        if draw(st.booleans()):
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
    return rule_graph(beliefs, factors, draw(st.sampled_from(ENGINES)))


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


def test_estimates_have_the_right_shapes_and_ranges():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check_joint(rule_graph(*study(4, 3, 3, 2), BeliefPropagation()))


# -- larger than a table of outcomes ------------------------------------------------------------------------


def test_counts_and_entropies_of_more_outcomes_than_are_listed():
    rng = np.random.default_rng(1)
    space = ClassSpace(tuple(f"x{j}" for j in range(12)), ([0, 1],) * 12)
    factors = compile_rules([Rule(f"x{j} -> x{j + 1} | x{j + 2}", 0.8) for j in range(10)], space)
    for engine in ENGINES:
        joint = rule_graph([np.log(rng.dirichlet([1, 1], 2)) for _ in range(12)], factors, engine)
        atoms = joint.to_atoms()
        np.testing.assert_allclose(joint.count_marginals(), atoms.count_marginals(), atol=1e-10)
        np.testing.assert_allclose(joint.entropy(), atoms.entropy(), atol=1e-9)
        some, listed = joint.marginal([5, 2, 9]), atoms.marginal([5, 2, 9])
        np.testing.assert_allclose(some.mode().log_prob, listed.mode().log_prob, atol=1e-9)


def test_modes_of_many_variables_of_a_larger_model():
    joint = rule_graph(*study(12, 10, 3, 8))
    chosen = list(range(10))
    while np.prod([joint.cards[v] for v in chosen]) <= 2**16:
        chosen.append(len(chosen))
    part = joint.marginal(chosen)
    found = part.mode()
    assert found.proven.all()
    np.testing.assert_allclose(part.log_prob(found.codes), found.log_prob, atol=1e-9)
    for seed in range(20):  # nothing near is better
        other = found.codes.copy()
        v = np.random.default_rng(seed).integers(len(chosen))
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


@pytest.mark.parametrize("engine", [*ENGINES, BeliefPropagation()])
def test_contradictions_are_errors_for_every_engine_and_query(engine):
    for query in ("marginals", "mode", "entropy", "count_marginals"):
        joint = binary(["A", "!A | B", "!B"], (0.3, 0.6), engine=engine)
        with pytest.raises(ImpossibleEvidenceError, match="contradict each other"):
            getattr(joint, query)()
    with pytest.raises(ImpossibleEvidenceError, match="contradict each other"):
        binary(["A", "!A | B", "!B"], (0.3, 0.6), engine=engine).sample(2)


def test_contradictions_name_the_row_and_the_beliefs():
    factors = compile_rules(["w <-> g"], WORKER)
    camera = np.array([[0.1, 0.4, 0.5], [1.0, 0.0, 0.0], [0.2, 0.4, 0.4]])
    shoes = np.array([[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]])
    with np.errstate(divide="ignore"):
        beliefs = [np.log(camera), np.log(shoes), np.zeros((3, 3))]
    with pytest.raises(ImpossibleEvidenceError, match=r"Row 1 .*cannot be satisfied given the categories"):
        rule_graph(beliefs, factors).mode()
    assert rule_graph([belief[[0, 2]] for belief in beliefs], factors).mode().proven.all()
    beliefs[0][1] = -np.inf
    with pytest.raises(ImpossibleEvidenceError, match=r"Row 1 .*no category of positive belief"):
        rule_graph(beliefs, factors).mode()


def test_none_of_the_culprits_can_be_spared():
    rng = np.random.default_rng(2)
    space = ClassSpace(tuple(f"x{j}" for j in range(6)), ([0, 1],) * 6)
    names = np.array(space.names)

    def problem(factors):
        return Problem(space.cards, tuple(factors), 1, 6)

    found = 0
    for _ in range(40):
        texts = [
            " | ".join(rng.choice(["", "!"]) + name for name in rng.choice(names, 2, replace=False))
            for _ in range(16)
        ]
        factors = compile_rules(texts, space)
        if Exact().log_partition(problem(factors))[0] > -np.inf:
            continue
        found += 1
        rules = culprits(problem(factors))
        assert np.isneginf(Exact().log_partition(problem(rules))[0])
        for k in range(len(rules)):
            assert Exact().log_partition(problem(rules[:k] + rules[k + 1 :]))[0] > -np.inf
    assert found > 5


# -- arguments ----------------------------------------------------------------------------------------------


def test_arguments_are_checked():
    beliefs = [np.zeros((1, 2))] * 2
    factor = RuleFactor((0, 1), 0.9, violated=np.eye(2))
    with pytest.raises(InputError, match=r"variables \(0, 1\) must have a table of shape \(2, \?"):
        rule_graph(beliefs[:1], [factor], Exact())
    with pytest.raises(InputError, match="nan"):
        rule_graph([np.full((1, 2), np.nan)] * 2, [factor]).marginals()
    with pytest.raises(InputError, match="either q or violated"):
        RuleFactor((0,), 0.9)


def test_no_rules_leave_the_beliefs_alone_and_no_rows_are_fine():
    rng = np.random.default_rng(0)
    beliefs = [rng.dirichlet(np.ones(3), 4) for _ in range(6)]
    for engine in ENGINES:
        joint = rule_graph(np.log(beliefs), [], engine)
        np.testing.assert_allclose(joint.marginals(), beliefs, atol=1e-12)
        np.testing.assert_allclose(joint._log_normalizer, 0.0, atol=1e-12)
        empty = joint[np.array([], dtype=int)]
        assert empty.mode().codes.shape == (0, 6)
        assert empty.marginals()[0].shape == (0, 3)

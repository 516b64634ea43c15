"""The model to start with: candidates against the clock, and what is left at any moment."""

import itertools
import os
import pickle
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from draws import examples
from troubled import Noted
from tuplet import (
    AutoJointClassifier,
    ChainClassifier,
    IndependentClassifier,
    JointStackingClassifier,
    NeighborClassifier,
    PowersetClassifier,
    PriorClassifier,
    load_penguins,
)
from tuplet.core import clock
from tuplet.core.clock import TimeBudget
from tuplet.core.exceptions import InputError
from tuplet.core.processes import Workers
from tuplet.models.stacking.blend import Blend
from tuplet.models.stacking.candidates import Candidate, default_candidates, is_light, quick_model
from tuplet.models.stacking.clock import Crew, Done, Task
from tuplet.models.stacking.held_out import HeldOut, Rows, folds_of
from tuplet.models.stacking.race import Race, first_rows
from tuplet.space import ClassSpace


def penguins():
    return load_penguins(return_X_y=True)


def rows_of(X, y, weights=None):
    space = ClassSpace.from_labels(y)
    return Rows(X, space.encode(y), weights, space)


def plain_rows(rng, n):
    """Rows with two features and two labels that have nothing to do with each other."""
    space = ClassSpace.from_labels([[0, 0], [1, 1]])
    return Rows(rng.normal(size=(n, 2)), rng.integers(2, size=(n, 2)), None, space)


# -- a race with a clock of its own ------------------------------------------------------------------------


class Hours:
    """A clock that only moves when work is done."""

    def __init__(self, budget):
        self.seconds, self.used = budget, 0.0

    @property
    def left(self):
        return max(0.0, self.seconds - self.used)


class Pretender:
    """Does no work: judges by the quality of a candidate, and takes its time for it."""

    n_workers, interrupted, start_seconds = 1, False, 0.0

    def __init__(self, clock, rng):
        self.clock, self.rng = clock, rng

    def run(self, tasks, reserve=float, told=lambda task, done: None):
        results = {}
        for task in tasks:
            results[task.key] = done = self._one(task, reserve())
            told(task, done)
        return results

    def _one(self, task, reserve):
        quality, cost = task.args[0]
        if self.clock.left - reserve <= task.expected:
            return Done(status="no time")
        refit = len(task.args) == 1
        n = 1 if refit else len(task.args[1].train)
        took = cost * n / 100
        if self.clock.left - reserve < took:
            self.clock.used = self.clock.seconds - reserve
            return Done(status="over time")
        self.clock.used += took
        if refit:
            return Done("fitted")
        log_prob = quality + self.rng.normal(size=len(task.args[1].test))
        return Done(HeldOut(log_prob, None, took, 0.0, float(log_prob.mean()), float(len(log_prob))))


@given(
    budget=st.floats(0.01, 300),
    costs=st.lists(st.floats(0.01, 20), min_size=1, max_size=12),
    n=st.sampled_from([30, 700, 2500, 9000]),
    seed=st.integers(0, 1000),
)
@examples(25)
def test_at_any_moment_there_is_a_valid_mixture_or_none(budget, costs, n, seed):
    rng = np.random.default_rng(seed)
    hours = Hours(budget)
    rows = plain_rows(rng, n)
    candidates = [Candidate(f"c{i}", (float(rng.normal()), cost)) for i, cost in enumerate(costs)]
    race = Race(rows, candidates, folds_of(rows, 3), Pretender(hours, rng), temperature=False)
    race.run()
    assert hours.used <= budget + 1e-9
    blend = race.blend()
    if blend is None:
        assert all(not entry.held for entry in race.entries) or race.n_folds == 0
        return
    assert sum(blend.weights.values()) == pytest.approx(1)
    assert set(race.refit(blend)) <= set(blend.names)
    # The mixture is at least as good as each of those that it was chosen from.
    assert blend.log_likelihood >= max(blend.alone[name] for name in blend.names) - 1e-9


def race_of_twenty(budget):
    """Candidates from the best to the worst, 0.03 seconds for a fold of four."""
    rng = np.random.default_rng(0)
    rows = plain_rows(rng, 400)
    candidates = [Candidate(f"c{i}", (-float(i), 0.01)) for i in range(20)]
    race = Race(rows, candidates, folds_of(rows, 4), Pretender(Hours(budget), rng), temperature=False)
    race.run()
    return race


def test_with_all_the_time_all_candidates_run_in_all_folds():
    race = race_of_twenty(1e6)
    assert race.n_folds == 4
    assert {entry.name for entry in race.running} >= {"c0", "c1", "c2"}
    assert "c19" not in {entry.name for entry in race.running}
    assert all(len(entry.held) == 4 for entry in race.entries)


def test_who_was_dropped_has_another_chance_if_there_is_time_the_best_first():
    race = race_of_twenty(2.0)
    assert [len(entry.held) for entry in race.entries[:6]] == [4] * 6
    assert len(race.entries[19].held) == 1
    assert race.entries[19].status == "dropped after the first fold"


def test_without_time_for_all_rows_the_best_on_few_is_fitted():
    rng = np.random.default_rng(0)
    rows = plain_rows(rng, 2500)
    hours = Hours(20.0)
    candidates = [
        Candidate("bad", (-5.0, 0.3)),
        Candidate("good", (0.0, 0.3)),
        Candidate("better, but slow", (1.0, 2.0)),
    ]
    race = Race(rows, candidates, folds_of(rows, 3), Pretender(hours, rng), temperature=False)
    race.run()
    assert race.blend() is None
    assert race.favourite().name == "good"
    assert hours.used <= 0.4 * 20, "heats leave time for the fit that counts"
    assert race.refit(Blend({"good": 1.0}, {"good": np.nan}, np.nan, np.nan, np.inf, 0)) == {"good": "fitted"}


def test_richer_kinds_of_good_candidates_are_tried():
    rng = np.random.default_rng(0)
    rows = plain_rows(rng, 200)
    good = Candidate("good", (0.0, 0.01), (("better", (3.0, 0.01)),))
    bad = Candidate("bad", (-30.0, 0.01), (("as bad", (-30.0, 0.01)),))
    race = Race(rows, [good, bad], folds_of(rows, 3), Pretender(Hours(1e6), rng), temperature=False)
    race.run()
    assert [entry.name for entry in race.entries] == ["good", "bad", "better"]
    assert race.blend().weights["better"] > 0.9


def test_heats_grow_to_the_number_of_rows():
    assert first_rows(900) == []
    assert first_rows(2000) == [1000]
    assert first_rows(100_000) == [1000, 4000, 16_000]


# -- processes ---------------------------------------------------------------------------------------------


def test_a_crew_does_works_and_says_what_it_could_not():
    def fail(rows):
        raise ValueError("no such thing")

    def sleep(rows):
        time.sleep(60)

    X, y = penguins()
    with Crew(rows_of(X, y), 2, TimeBudget(300.0)) as crew:
        done = crew.run([Task("n", len, ()), Task("bad", fail, ()), Task("here", len, (), light=True)])
        assert done["n"] == done["here"] == Done(len(X))
        assert done["bad"].status == "failed: ValueError: no such thing"
        assert crew.run([Task("unknown", len, (), unknown=True)])["unknown"] == Done(len(X))
        late = crew.run([Task("long", sleep, ()), Task("longer", len, (), 1e9)], lambda: crew.clock.left - 1)
        assert late["long"].status == "over time"
        assert late["longer"].status == "no time"


# -- the classifier ----------------------------------------------------------------------------------------


def test_with_time_for_everything_it_is_a_stack():
    X, y = penguins()
    trees = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)  # judged and fitted in a process
    models = {"a": IndependentClassifier(), "b": PowersetClassifier(trees), "c": PriorClassifier()}
    auto = AutoJointClassifier(600, models=models, cv=3, random_state=0, n_jobs=1).fit(X, y)
    stack = JointStackingClassifier(models, cv=3, random_state=0).fit(X, y)
    for name, weight in stack.weights_.items():
        if weight > 0.02:  # less is not worth a fit
            assert auto.weights_[name] == pytest.approx(weight, abs=0.02)
    assert auto.log_likelihood_ == pytest.approx(stack.log_likelihood_, abs=1e-3)
    np.testing.assert_allclose(
        auto.predict_joint(X[:20]).log_prob(y[:20]), stack.predict_joint(X[:20]).log_prob(y[:20]), atol=0.1
    )
    assert "3 of 3 models judged by 3 of 3 folds" in auto.summary_
    assert auto.leaderboard_["folds"].tolist() == [3, 3, 3]
    again = pickle.loads(pickle.dumps(auto))
    assert again.predict(X).equals(auto.predict(X))


def test_light_candidates_are_judged_however_slowly_processes_start(monkeypatch):
    def never(*args, **options):
        raise AssertionError("a process was started")

    ticks = itertools.count(step=0.001)
    monkeypatch.setattr(clock, "now", lambda: next(ticks))
    monkeypatch.setattr(Workers, "run", never)
    X, y = penguins()
    models = [
        PriorClassifier(),
        NeighborClassifier(),
        IndependentClassifier(),
        PowersetClassifier(),
        ChainClassifier(),
    ]
    model = AutoJointClassifier(2.0, models=models, cv=2, n_jobs=1).fit(X[::2], y[::2])
    assert model.leaderboard_["folds"].tolist() == [2] * 5
    assert set(model.models_) <= {"prior", "neighbor", "independent", "powerset", "chain"}


def test_candidates_of_unknown_cost_run_in_processes():
    X, y = penguins()
    rows = rows_of(X, y)
    classifier = LogisticRegression()
    for model in (IndependentClassifier, PowersetClassifier, ChainClassifier):
        assert is_light(model(), rows)
        assert not is_light(model(classifier), rows)
    assert not is_light(ChainClassifier(n_chains=10), rows)
    assert not is_light(Noted(os.devnull), rows)
    assert is_light(NeighborClassifier(), rows)
    many = np.arange(3000) % len(X)  # few for frequencies, many for all pairs of them
    more = Rows(X.iloc[many], rows.codes[many], None, rows.space)
    assert is_light(PriorClassifier(), more)
    assert not is_light(NeighborClassifier(), more)
    many = np.arange(200_000) % len(X)
    assert not is_light(PriorClassifier(), Rows(X.iloc[many], rows.codes[many], None, rows.space))


def test_a_candidate_that_fails_is_a_line_with_its_reason():
    X, y = penguins()
    models = {"broken": Noted(os.devnull, "fail"), "prior": PriorClassifier()}
    auto = AutoJointClassifier(600, models=models, cv=3, n_jobs=1).fit(X, y)
    assert auto.weights_ == {"prior": 1.0}
    line = auto.leaderboard_.set_index("model").loc["broken"]
    assert line["status"] == "failed: ValueError: no luck today"


@pytest.mark.parametrize("budget", [0.05, 0.5])
def test_without_time_there_is_a_chain(budget):
    X, y = penguins()
    model = AutoJointClassifier(budget).fit(X, y)
    assert list(model.models_) == ["quick chain of logistic"]
    assert "No time to compare models" in model.summary_
    assert np.isfinite(model.predict_joint(X).log_prob(y)).all()


# Whether a solver converges within its iterations depends on the last digits, and so on the processor.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_default_candidates_learn_from_every_kind_of_table():
    X, y = (part[::4] for part in penguins())
    frame = X.assign(place=np.where(X.iloc[:, 0] > X.iloc[:, 0].median(), "here", None))
    tables = [
        rows_of(X, y),
        rows_of(frame, y),
        rows_of(sparse.csr_array(np.nan_to_num(X.to_numpy(float))), y),
    ]
    for rows in tables:
        candidates = default_candidates(rows)
        assert len({candidate.name for candidate in candidates}) == len(candidates) >= 10
        linear = [candidate for candidate in candidates if "logistic" in candidate.name]
        for candidate in linear:
            candidate.model._fit_codes(rows.X, rows.space, rows.codes, None)


def test_rules_of_experts_are_candidates():
    X, y = penguins()
    model = AutoJointClassifier(600, models=None, rules=["Gentoo -> Biscoe"], cv=2, n_jobs=1)
    names = [candidate.name for candidate in model._candidates(rows_of(X, y))]
    assert {"rules over logistic", "rules over extra-trees"} <= set(names)


def test_the_quick_model_takes_as_many_rows_as_it_has_time_for():
    rng = np.random.default_rng(0)
    space = ClassSpace.from_labels([[0, 0], [1, 1]])
    rows = Rows(np.zeros((100_000, 100)), rng.integers(2, size=(100_000, 2)), None, space)
    _, some = quick_model(rows, 1.0)
    assert 5_000 < len(some) < 15_000
    _, more = quick_model(rows, 60.0)
    assert 3 * len(some) < len(more) <= 5 * len(some)  # every so manieth row is taken, a whole number
    weights = np.zeros(100_000)
    weights[17] = 1.0
    _, one = quick_model(Rows(rows.X, rows.codes, weights, space), 1.0)
    assert len(one) == 1


def test_rules_come_beside_models_of_ones_own():
    space = ClassSpace.from_labels([[0, 0], [1, 1]])
    rows = Rows(np.zeros((20, 2)), np.tile([[0, 0], [1, 1]], (10, 1)), None, space)
    model = AutoJointClassifier(models=[PriorClassifier()], rules=["y0 -> y1"], random_state=0)
    names = [candidate.name for candidate in model._candidates(rows)]
    assert names == ["prior", "rules over logistic", "rules over extra-trees"]


def test_texts_count_as_the_columns_that_they_become():
    space = ClassSpace.from_labels([[0, 0], [1, 1]])
    words = pd.DataFrame({"x": np.zeros(40_000), "word": [f"w{i % 200}" for i in range(40_000)]})
    rows = Rows(words, np.zeros((40_000, 2), int), None, space)
    assert len(quick_model(rows, 1.0)[1]) < 40_000 / 8


def test_lists_in_a_column_are_an_error_that_names_it():
    X, y = pd.DataFrame({"x": np.arange(40.0), "tags": [["a"]] * 40}), [[0, 1], [1, 0]] * 20
    with pytest.raises(InputError, match="holds lists or other containers in the column 'tags'"):
        AutoJointClassifier(0.5).fit(X, y)


def test_rows_without_weight_do_not_count_in_heats():
    rng = np.random.default_rng(0)
    weights = np.zeros(2400)
    weights[rng.permutation(2400)[:600]] = 1.0
    space = ClassSpace.from_labels([[0, 0], [1, 1]])
    rows = Rows(rng.normal(size=(2400, 2)), rng.integers(2, size=(2400, 2)), weights, space)
    candidates = [Candidate(f"c{i}", (-float(i), 0.01)) for i in range(3)]
    race = Race(rows, candidates, folds_of(rows, 3), Pretender(Hours(1e6), rng), temperature=False)
    race.run()
    assert race.n_folds == 3
    assert race.blend().n_rows == 600


def test_a_row_that_all_candidates_rule_out_does_not_end_the_race():
    X, y = [[0.0], [1.0]] * 20, [["hi", "on"], ["lo", "off"]] * 19 + [["hi", "off"]] * 2
    model = AutoJointClassifier(600, models=[PowersetClassifier(smoothing=0.0)], cv=4, n_jobs=1).fit(X, y)
    assert set(model.weights_) == {"powerset"}


def test_scores_of_candidates_count_weights():
    X, y = penguins()
    weights = np.where(np.arange(len(X)) % 2, 5.0, 1.0)
    models = {"a": IndependentClassifier(), "b": PriorClassifier()}
    model = AutoJointClassifier(600, models=models, cv=3, n_jobs=1).fit(X, y, weights)
    stack = JointStackingClassifier(models, cv=3).fit(X, y, weights)
    board = model.leaderboard_.set_index("model")["log_likelihood"]
    assert board["a"] == pytest.approx(stack.log_likelihoods_["a"], abs=1e-6)


def test_rules_with_unknown_names_are_an_error_at_once():
    X, y = penguins()
    with pytest.raises(InputError, match="emperor"):
        AutoJointClassifier(0.5, rules=["emperor -> Biscoe"]).fit(X, y)


def test_the_summary_says_what_happened():
    X, y = penguins()
    broken = AutoJointClassifier(600, models={"bad": Noted(os.devnull, "fail")}, cv=2, n_jobs=1).fit(X, y)
    assert broken.summary_.startswith("All models failed (the first one failed: ValueError: no luck today)")
    alone = AutoJointClassifier(600).fit([[1.0]], [["a", "b"]])
    assert alone.summary_.startswith("Too few rows to hold any out")


def test_own_candidates_are_checked_before_the_clock_starts():
    X, y = penguins()
    with pytest.raises(InputError, match="models is empty"):
        AutoJointClassifier(models=[]).fit(X, y)

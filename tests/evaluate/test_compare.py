"""Comparisons: the same folds for all, nothing finished done twice, and no model ends the run."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tuplet
from troubled import Doomed, Hungry, Moody, Noted, fits_noted, kill_noted, left_in_session, wait_until
from tuplet import (
    ChainClassifier,
    DecisionClassifier,
    IndependentClassifier,
    JointStackingClassifier,
    PriorClassifier,
    declare_order,
    default_estimator,
)
from tuplet.core.exceptions import InputError, TupletWarning
from tuplet.core.processes import StoppedError, Workers
from tuplet.evaluate import work
from tuplet.evaluate.compare import compare
from tuplet.evaluate.comparison import Comparison
from tuplet.evaluate.fingerprint import data_digest
from tuplet.io import Dataset
from tuplet.losses import CostMatrix
from tuplet.metrics import SCORERS, loss_scorer

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = pd.DataFrame({"a": (X[:, 0] > 0).astype(int), "b": np.where(X[:, 1] > 0, "yes", "no")})
SETS = {"made": (X, Y)}


def quick(models, datasets=SETS, **settings):
    settings = {"cv": 3, "isolate": False, "scores": ["exact_match", "joint_log_likelihood"]} | settings
    return compare(models, datasets, **settings)


# -- numbers -----------------------------------------------------------------------------------------------


def test_scores_are_those_of_a_plain_loop():
    models = {"prior": PriorClassifier(), "chain": ChainClassifier(order=[0, 1])}
    result = quick(models, cv=KFold(4), scores=None)
    for name, model in models.items():
        for fold, (train, test) in enumerate(KFold(4).split(X)):
            fitted = clone(model).fit(X[train], Y.iloc[train])
            line = result.runs.set_index(["model", "fold"]).loc[(name, fold)]
            assert line["status"] == "ok"
            assert (line["n_train"], line["n_test"]) == (45, 15)
            for score, scorer in SCORERS.items():
                assert line[score] == pytest.approx(scorer(fitted, X[test], Y.iloc[test])), score


def test_ordered_sets_have_a_ranked_probability_score():
    staged = declare_order(Y, [Y.columns[0]])
    result = quick({"prior": PriorClassifier()}, {"set": (X, staged)}, cv=2, scores=None)
    assert "neg_ranked_probability_score" in result.scores
    assert (result.runs["neg_ranked_probability_score"] < 0).all()


def test_isolated_and_parallel_runs_give_the_same_numbers():
    models = {"prior": PriorClassifier(), "nearest": IndependentClassifier(KNeighborsClassifier(3))}
    here, there = quick(models), quick(models, isolate=True, n_jobs=2)
    columns = ["dataset", "model", "fold", "status", "n_train", "n_test", "n_floored", *here.scores]
    pd.testing.assert_frame_equal(here.runs[columns], there.runs[columns])
    pd.testing.assert_frame_equal(here.calibration, there.calibration)
    assert (there.runs["peak_memory_mb"] >= 0).all()
    assert (there.runs["fit_cpu_seconds"] > 0).all()


def test_peak_memory_is_that_of_the_fit_alone():
    models = {f"{mb}": Hungry(os.devnull, megabytes=mb) for mb in (200, 0)}
    peak = quick(models, isolate=True, cv=2).table("peak_memory_mb").loc["made"]
    assert 200 <= peak["200"] < 280
    assert peak["0"] < 80


@pytest.mark.parametrize("wrapped", ["pipeline", "search", "decision"])
def test_models_inside_of_others_are_found(wrapped):
    # Which rows choose a penalty follows from the features, which a pipeline changes.
    chain = ChainClassifier(default_estimator().set_params(ridgelogistic__C=1.0))
    model = {
        "pipeline": make_pipeline(StandardScaler(), chain),
        "search": GridSearchCV(chain, {"n_chains": [1]}, cv=KFold(2)),
        "decision": DecisionClassifier(chain, loss="subset"),
    }[wrapped]
    result = quick({"plain": chain, wrapped: model})
    table = result.table("joint_log_likelihood")
    assert table.loc["made", wrapped] == pytest.approx(table.loc["made", "plain"], abs=0.02)


def test_plain_scikit_learn_classifiers_are_peers():
    result = quick({"nearest": KNeighborsClassifier(1)})
    assert result.runs["status"].eq("ok").all()
    wrong = (1 - result.runs["exact_match"]) * result.runs["n_test"]  # one neighbour is certain, always
    assert result.runs["n_floored"].tolist() == pytest.approx(wrong.tolist())


def test_a_seed_reaches_every_random_state_and_differs_between_folds(tmp_path):
    notes = tmp_path / "notes"
    quick({"noted": Noted(notes)})
    first = fits_noted(notes)
    assert len(set(first)) == 3
    quick({"noted": Noted(notes)})
    assert fits_noted(notes)[3:] == first
    quick({"noted": Noted(notes)}, random_state=1)
    assert set(fits_noted(notes)[6:]).isdisjoint(first)


# -- what was done is done ---------------------------------------------------------------------------------


def test_a_second_run_repeats_nothing_and_an_extended_one_does_what_is_new(tmp_path):
    notes, cache = tmp_path / "notes", tmp_path / "cache"
    first = quick({"noted": Noted(notes)}, cache=cache)
    again = quick({"noted": Noted(notes)}, cache=cache)
    assert len(fits_noted(notes)) == 3
    pd.testing.assert_frame_equal(first.runs, again.runs)
    quick(
        {"noted": Noted(notes), "prior": PriorClassifier()}, {**SETS, "half": (X[:30], Y[:30])}, cache=cache
    )
    assert len(fits_noted(notes)) == 6


def test_changed_settings_data_or_seeds_are_other_fits(tmp_path):
    notes, cache = tmp_path / "notes", tmp_path / "cache"
    quick({"noted": Noted(notes)}, cache=cache)
    changes = [
        ({"noted": Noted(notes, seconds=0.001)}, SETS, {}),
        ({"noted": Noted(notes)}, {"made": (X + 1, Y)}, {}),
        ({"noted": Noted(notes)}, {"made": (X, Y.replace({"yes": "ja"}))}, {}),
        ({"noted": Noted(notes)}, SETS, {"random_state": 1}),
    ]
    for k, (models, sets, settings) in enumerate(changes, start=1):
        quick(models, sets, cache=cache, **settings)
        assert len(fits_noted(notes)) == 3 * (k + 1)


def test_a_new_score_is_worth_a_new_fit_and_the_old_ones_are_not_asked_again(tmp_path):
    notes, cache = tmp_path / "notes", tmp_path / "cache"
    quick({"noted": Noted(notes)}, cache=cache)
    more = quick({"noted": Noted(notes)}, cache=cache, scores=["exact_match", "neg_brier_score"])
    assert len(fits_noted(notes)) == 6
    assert more.runs["neg_brier_score"].notna().all()


def test_spoiled_records_are_made_again(tmp_path):
    notes = tmp_path / "notes"
    quick({"noted": Noted(notes)}, cache=tmp_path)
    files = sorted(tmp_path.glob("made/*.json"))
    files[0].write_text(files[0].read_text()[:40])
    files[1].write_text("[]")
    with pytest.warns(TupletWarning, match="cannot be read"):
        again = quick({"noted": Noted(notes)}, cache=tmp_path)
    assert len(fits_noted(notes)) == 5
    assert again.runs["status"].eq("ok").all()


def test_results_can_be_read_from_the_folder_alone(tmp_path):
    result = quick({"prior": PriorClassifier()}, cache=tmp_path)
    read = Comparison.from_folder(tmp_path)
    pd.testing.assert_frame_equal(read.table("exact_match"), result.table("exact_match"))


def test_a_folder_with_several_settings_of_one_name_gives_the_newest(tmp_path):
    quick({"chain": ChainClassifier(order=[0, 1])}, cache=tmp_path)
    newest = quick({"chain": ChainClassifier(order=[1, 0])}, cache=tmp_path)
    with pytest.warns(TupletWarning, match="3 fits of earlier settings"):
        read = Comparison.from_folder(tmp_path)
    score = "joint_log_likelihood"
    pd.testing.assert_frame_equal(read.table(score), newest.table(score))


def test_other_scores_are_added_to_those_of_an_earlier_run(tmp_path):
    quick({"prior": PriorClassifier()}, cache=tmp_path, scores=["exact_match"])
    quick({"prior": PriorClassifier()}, cache=tmp_path, scores=["hamming_score"], calibration=False)
    read = Comparison.from_folder(tmp_path)
    assert read.runs[["exact_match", "hamming_score"]].notna().all(axis=None)
    assert read.calibration is not None


@pytest.mark.parametrize("labels", [sparse.csr_matrix, sparse.csr_array, pl.DataFrame, lambda y: y.tolist()])
def test_labels_of_any_container_can_be_compared(labels):
    result = quick({"chain": ChainClassifier()}, {"made": (X, labels((X[:, :2] > 0).astype(int)))})
    assert result.runs["status"].tolist() == ["ok"] * 3


@pytest.mark.parametrize("cv", [3, GroupKFold(3)])
def test_groups_of_a_data_set_stay_together(cv):
    groups = np.repeat(["one", "two", "three"], [10, 20, 30])
    result = quick({"prior": PriorClassifier()}, Dataset("grouped", X, Y, groups=groups), cv=cv)
    assert sorted(result.runs["n_test"]) == [10, 20, 30]


def test_models_and_searches_of_a_comparison_get_the_groups():
    groups = np.arange(60) // 6
    data = Dataset("grouped", X, Y, groups=groups)
    stack = JointStackingClassifier([PriorClassifier()], cv=GroupKFold(2), progress=False)
    search = GridSearchCV(PriorClassifier(), {"strategy": ["joint"]}, cv=GroupKFold(2))
    for model in (stack, search, make_pipeline(StandardScaler(), stack), DecisionClassifier(stack)):
        result = quick({"model": model}, data, cv=2)
        assert result.runs["status"].tolist() == ["ok"] * 2, result.problems()
    assert data_digest(X, Y) != data_digest(X, Y, groups) != data_digest(X, Y, groups[::-1])


SCRIPT = """
    import sys
    import numpy as np
    sys.path.insert(0, {tests!r})
    from troubled import Noted
    from tuplet.evaluate import compare
    # no main guard, as in a notebook
    made = np.arange(60.0)[:, None], np.arange(120).reshape(60, 2) % 3
    scores = ["exact_match"]
    models = {{"noted": Noted({notes!r}, seconds=0.2)}}
    print(len(compare(models, {{"made": made}}, cv=6, scores=scores, isolate=True, cache={cache!r}).runs))
"""


def start(tmp_path):
    code = SCRIPT.format(
        tests=str(Path(__file__).parents[1]), notes=str(tmp_path / "notes"), cache=str(tmp_path / "cache")
    )
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_run_loses_only_the_fit_under_way(tmp_path):
    run = start(tmp_path)
    while len(fits_noted(tmp_path / "notes")) < 3 and run.poll() is None:
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    finished = list((tmp_path / "cache").glob("made/*.json"))
    assert len(finished) >= 2
    output, errors = start(tmp_path).communicate()
    assert (output.strip(), errors) == ("6", "")
    # One fit was under way when the axe fell: it may have been made twice, no other.
    assert len(fits_noted(tmp_path / "notes")) <= 7


def test_two_runs_at_once_agree(tmp_path):
    both = [start(tmp_path), start(tmp_path)]
    for run in both:
        assert run.communicate() == ("6\n", "")
    assert len(list((tmp_path / "cache").glob("made/*"))) == 6


def test_names_that_look_alike_as_files_are_different_models(tmp_path):
    models = {"a*": PriorClassifier(), "a+": PriorClassifier(), "b" * 70 + "1": ChainClassifier()}
    result = quick(models, cache=tmp_path)
    assert set(result.runs["model"]) == set(models)


def test_a_score_of_the_same_name_that_is_computed_otherwise_is_another_one(tmp_path):
    for value in (1.0, 2.0):
        result = quick({"p": PriorClassifier()}, cache=tmp_path, scores={"s": lambda m, X, Y, v=value: v})
        assert result.runs["s"].tolist() == [value] * 3


def test_another_number_of_folds_is_another_run(tmp_path):
    quick({"p": PriorClassifier()}, cache=tmp_path, cv=2)
    quick({"p": PriorClassifier()}, cache=tmp_path, cv=4)
    with pytest.warns(TupletWarning, match="2 fits of earlier"):
        read = Comparison.from_folder(tmp_path)
    assert read.runs["fold"].tolist() == [0, 1, 2, 3]
    sorted(tmp_path.glob("made/*.json"))[-1].unlink()
    with pytest.warns(TupletWarning, match="2 fits of earlier"):
        read = Comparison.from_folder(tmp_path)
    assert read.table("exact_match").isna().all(axis=None)


def test_more_folds_of_the_same_kind_are_found_in_the_folder(tmp_path):
    folds = list(KFold(6).split(X))
    quick({"p": PriorClassifier()}, cache=tmp_path, cv=folds[:2])
    whole = quick({"p": PriorClassifier()}, cache=tmp_path, cv=folds)
    read = Comparison.from_folder(tmp_path)
    pd.testing.assert_frame_equal(read.table("exact_match"), whole.table("exact_match"))
    fewer = quick({"p": PriorClassifier()}, cache=tmp_path, cv=folds[:3])
    with pytest.warns(TupletWarning, match="3 fits of earlier"):
        read = Comparison.from_folder(tmp_path)
    pd.testing.assert_frame_equal(read.table("exact_match"), fewer.table("exact_match"))


def test_a_folder_never_mixes_models_on_different_folds(tmp_path):
    quick({"old": PriorClassifier(), "both": PriorClassifier()}, cache=tmp_path, cv=4)
    quick({"both": PriorClassifier(), "new": ChainClassifier()}, cache=tmp_path, random_state=1)
    with pytest.warns(TupletWarning, match="8 fits of earlier"):
        read = Comparison.from_folder(tmp_path)
    assert read.models == ("both", "new")


def test_what_went_well_once_is_never_lost(tmp_path):
    moody, cache = Moody(tmp_path / "mood"), tmp_path / "cache"
    quick({"moody": moody}, cache=cache, scores=["exact_match"])
    (tmp_path / "mood").touch()
    failed = quick({"moody": moody}, cache=cache, scores=["exact_match", "hamming_score"])
    assert set(failed.runs["status"]) == {"failed"}
    kept = quick({"moody": moody}, cache=cache, scores=["exact_match"])
    assert set(kept.runs["status"]) == {"ok"}


def test_a_score_that_failed_is_asked_again(tmp_path):
    notes = tmp_path / "notes"
    mood = tmp_path / "mood"
    mood.touch()

    def moody(model, X, Y):
        return 1 / (not mood.exists())

    for expected in (6, 6, 0, 0):
        names = {"moody": moody, "exact_match": "exact_match"}
        result = quick({"noted": Noted(notes)}, cache=tmp_path / "cache", scores=names, cv=6)
        assert result.runs["moody"].isna().sum() == expected
        if len(fits_noted(notes)) == 12:
            mood.unlink()
    assert len(fits_noted(notes)) == 18
    read = Comparison.from_folder(tmp_path / "cache")
    assert read.missing("moody").isna().all(axis=None)


def test_a_folder_of_failures_can_be_looked_at(tmp_path):
    quick({"bad": Noted(tmp_path / "notes", "fail")}, cache=tmp_path / "cache")
    assert "3 fits are missing" in repr(Comparison.from_folder(tmp_path / "cache"))


def test_numbers_of_numpy_are_numbers(tmp_path):
    result = compare(
        {"p": PriorClassifier()}, SETS, cv=np.int64(2), time_limit=np.float32(60), cache=tmp_path
    )
    assert set(result.runs["status"]) == {"ok"}
    for cv in (None, 2.5):
        with pytest.raises(InputError, match="cv must be a number of folds"):
            quick({"p": PriorClassifier()}, cv=cv)


def test_large_cost_matrices_are_told_apart():
    labels = rng.integers(40, size=(400, 1)).astype(str)
    losses = [CostMatrix([rng.random((40, 40)) * (1 - np.eye(40))]) for _ in range(2)]
    scorers = {str(k): loss_scorer(loss) for k, loss in enumerate(losses)}
    sets = {"wide": (rng.normal(size=(400, 2)), labels)}
    both = quick({"p": PriorClassifier()}, sets, cv=2, scores=scorers).runs["1"]
    alone = quick({"p": PriorClassifier()}, sets, cv=2, scores={"1": scorers["1"]}).runs["1"]
    assert both.tolist() == alone.tolist()


def test_scorers_find_a_whole_model():
    scorers = {
        "predict": lambda model, X, Y: float((model.predict(X).to_numpy() == Y.to_numpy()).mean()),
        "proba": lambda model, X, Y: model.predict_proba(X)[0].shape[1],
        "classes": lambda model, X, Y: len(model.classes_),
    }
    result = quick({"chain": ChainClassifier()}, scores={**scorers, "hamming": "hamming_score"})
    assert result.runs["predict"].tolist() == pytest.approx(result.runs["hamming"].tolist())
    assert result.runs[["proba", "classes"]].eq(2).all(axis=None)


@pytest.mark.parametrize("scaled", [False, True])
def test_scorers_may_ask_about_other_rows(scaled):
    def shifted(model, X, Y):
        return float((model.predict(X + 100).to_numpy() == Y.to_numpy()).mean())

    scorers = {
        "shifted": shifted,
        "some": lambda model, X, Y: len(model.predict_joint(X[:7])),
        "proba": lambda model, X, Y: len(model.predict_proba(X[:4])[0]),
        "score": lambda model, X, Y: model.score(X, Y),
    }
    model = make_pipeline(StandardScaler(), ChainClassifier()) if scaled else ChainClassifier()
    data = {"made": (1000 * X + 5, Y)}
    result = quick({"chain": model}, data, scores=scorers, cv=KFold(3))
    assert result.runs["some"].eq(7).all()
    assert result.runs["proba"].eq(4).all()
    for fold, (train, test) in enumerate(KFold(3).split(X)):
        fitted = clone(model).fit(1000 * X[train] + 5, Y.iloc[train])
        line = result.runs.loc[fold]
        assert line["score"] == pytest.approx(fitted.score(1000 * X[test] + 5, Y.iloc[test]))
        assert line["shifted"] == pytest.approx(shifted(fitted, 1000 * X[test] + 5, Y.iloc[test]))


def test_the_positive_label_is_the_same_in_every_fold():
    labels = pd.DataFrame({"state": ["abnormal"] + ["normal"] * 59})
    result = quick({"p": PriorClassifier()}, {"rare": (X, labels)}, scores=["macro_f1"], cv=KFold(3))
    assert result.runs["macro_f1"].min() > 0.9


# -- trouble -----------------------------------------------------------------------------------------------


def test_an_error_is_a_line_with_its_reason_and_is_tried_again(tmp_path):
    notes = tmp_path / "notes"
    models = {"bad": Noted(notes, "fail"), "prior": PriorClassifier()}
    result = quick(models, cache=tmp_path / "cache")
    assert result.problems().to_dict("records") == [
        {
            "dataset": "made",
            "model": "bad",
            "status": "failed",
            "reason": "ValueError: no luck today",
            "folds": 3,
        }
    ]
    assert result.table("exact_match").isna().to_numpy().tolist() == [[True, False]]
    quick(models, cache=tmp_path / "cache")
    assert len(fits_noted(notes)) == 6


def test_a_model_over_time_is_stopped_and_not_tried_on_further_folds(tmp_path):
    notes, cache = tmp_path / "notes", tmp_path / "cache"
    models = {"slow": Noted(notes, seconds=3600.0), "prior": PriorClassifier()}
    # Only fits count: how long a process takes to start does not matter.
    result = quick(models, isolate=True, time_limit=5, cache=cache)
    assert result.runs.query("model == 'slow'")["status"].tolist() == ["over time", "not run", "not run"]
    assert set(result.problems()["reason"]) == {"stopped after 5 s", "over time on fold 0"}
    assert result.runs.query("model == 'prior'")["status"].eq("ok").all()
    quick(models, isolate=True, time_limit=2, cache=cache)
    assert len(fits_noted(notes)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of Linux")
def test_a_fit_that_takes_too_much_memory_fails_and_the_next_one_has_its_memory():
    models = {"much": Hungry(os.devnull, megabytes=3000), "little": Hungry(os.devnull, megabytes=200)}
    runs = quick(models, isolate=True, memory_limit=1000, cv=2).runs
    assert runs["status"].tolist() == ["failed", "ok", "failed", "ok"]
    assert runs["reason"].str.contains("MemoryError").tolist() == [True, False, True, False]


def test_a_process_that_dies_takes_nothing_with_it():
    result = quick({"bad": Noted(os.devnull, "die"), "prior": PriorClassifier()}, isolate=True, cv=2)
    assert result.runs["status"].tolist() == ["crashed", "ok", "crashed", "ok"]
    assert result.runs["reason"].iloc[0] == "its process ended (exit code 7)"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_process_costs_at_most_the_fit_under_way(tmp_path):
    kill_noted(tmp_path / "pid")
    models = {"doomed": Doomed(tmp_path / "pid"), "prior": PriorClassifier()}
    runs = quick(models, isolate=True, n_jobs=2).runs
    lost = runs[runs["status"] != "ok"]
    # A process that had done other work before is taken for one that died while it was idle.
    assert len(lost) <= 1
    assert lost["reason"].str.contains("SIGKILL").all()


def test_what_cannot_be_sent_to_a_process_is_a_line():
    class Sealed:
        def __reduce__(self):
            raise TypeError("sealed")

    def scorer(model, X, Y):
        return 0.0

    scorer.sealed = Sealed()
    result = quick({"prior": PriorClassifier()}, isolate=True, cv=2, scores={"s": scorer})
    assert result.runs["status"].eq("crashed").all()
    assert "sealed" in result.runs["reason"].iloc[0]


def test_a_model_that_exits_is_a_line():
    result = quick({"bad": Noted(os.devnull, "exit"), "prior": PriorClassifier()}, cv=2)
    assert result.runs["status"].tolist() == ["failed", "ok", "failed", "ok"]
    assert result.runs["reason"].iloc[0] == "SystemExit: 3"


def test_a_worker_that_died_while_idle_is_replaced():
    with Workers() as workers:
        first = workers.run(os.getpid)
        os.kill(first, signal.SIGKILL)
        time.sleep(0.3)
        assert workers.run(os.getpid) != first
    with pytest.raises(StoppedError):
        workers.run(os.getpid)


def test_two_comparisons_in_two_threads_leave_each_other_alone(tmp_path):
    with ThreadPoolExecutor(2) as threads:
        models = [{"long": Noted(tmp_path / "notes", seconds=1.5)}, {"short": PriorClassifier()}]
        results = list(threads.map(lambda each: quick(each, isolate=True, cv=2), models))
    assert all(result.runs["status"].eq("ok").all() for result in results)


INTERRUPTED = """
    import multiprocessing, sys, threading, time, os, signal
    import numpy as np
    sys.path.insert(0, {tests!r})
    from troubled import Noted, fits_noted, wait_until
    from tuplet import PriorClassifier
    from tuplet.evaluate import compare
    def press():
        while len(fits_noted({notes!r})) < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press, daemon=True).start()
    made = {{"made": (np.arange(60.0)[:, None], np.arange(120).reshape(60, 2) % 3)}}
    how = dict(scores=["exact_match"], isolate=True, n_jobs=2)
    first = compare({{"slow": Noted({notes!r}, seconds=3600.0)}}, made, cv=4, **how)
    wait_until(lambda: not multiprocessing.active_children())
    assert not multiprocessing.active_children()
    second = compare({{"prior": PriorClassifier()}}, made, cv=3, **(how | {{"n_jobs": 1}}))
    print(first.runs["status"].tolist(), second.runs["status"].tolist())
"""


def test_after_a_real_interrupt_everything_has_stopped_and_the_next_comparison_works(tmp_path):
    code = INTERRUPTED.format(tests=str(Path(__file__).parents[1]), notes=str(tmp_path / "notes"))
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert run.stdout == "['not run', 'not run', 'not run', 'not run'] ['ok', 'ok', 'ok']\n"
    assert "interrupted after 0 of 4 fits" in run.stderr


SLOW_FIT = """
    import sys
    sys.path.insert(0, {tests!r})
    from test_compare import SETS
    from troubled import Sleepy
    from tuplet import ChainClassifier
    from tuplet.core import parallel
    parallel._SAVED = parallel._SAVED_READY = -1.0
    ChainClassifier(Sleepy({notes!r}), n_chains=4, n_jobs=2).fit(*SETS["made"])
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_in_a_fit_leaves_no_process(tmp_path):
    code = SLOW_FIT.format(tests=str(Path(__file__).parents[1]), notes=str(tmp_path / "notes"))
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        assert wait_until(lambda: len(set(fits_noted(tmp_path / "notes"))) == 2)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=100)
    assert "KeyboardInterrupt" in errors
    assert wait_until(lambda: not left_in_session(run.pid)), left_in_session(run.pid)


def test_an_interrupt_keeps_what_is_finished(tmp_path):
    with pytest.warns(TupletWarning, match="interrupted after 1 of 3 fits"):
        result = quick({"noted": Noted(tmp_path / "notes", "interrupt")})
    assert result.runs["status"].tolist() == ["ok", "not run", "not run"]


def test_warnings_are_kept_with_their_fit_and_out_of_sight(tmp_path):
    result = quick({"noted": Noted(tmp_path / "notes", "warn")})
    assert result.warnings().to_dict("records") == [
        {"dataset": "made", "model": "noted", "warning": "UserWarning: take care (3 times)", "folds": 3}
    ]


def test_a_score_that_cannot_be_had_is_missing_and_the_others_are_not():
    def intractable(model, X, Y):
        raise tuplet.core.exceptions.IntractableError("too wide")

    scorers = {"wide": intractable, "odd": lambda model, X, Y: 1 / 0, "exact": "exact_match"}
    result = quick({"prior": PriorClassifier()}, scores=scorers)
    assert result.runs[["wide", "odd"]].isna().all(axis=None)
    assert result.runs["exact"].notna().all()
    assert "too wide" in result.missing("wide").loc["made", "prior"]
    assert result.missing("exact").isna().all(axis=None)


@pytest.mark.parametrize(
    ("models", "datasets", "settings", "message"),
    [
        ({}, SETS, {}, "no models"),
        ([], SETS, {}, "no models"),
        ([PriorClassifier(), PriorClassifier()], SETS, {}, "several models are a PriorClassifier"),
        ({"a": PriorClassifier}, SETS, {}, r"did you mean PriorClassifier\(\)"),
        ({"a": "chain"}, SETS, {}, "'a' must be a classifier"),
        ({"a": LogisticRegression()}, SETS, {}, r"IndependentClassifier\(LogisticRegression"),
        ({"a": make_pipeline(StandardScaler(), LinearRegression())}, SETS, {}, "no classifier"),
        ({"a": PriorClassifier()}, SETS, {"n_jobs": "2"}, "n_jobs must be a whole number"),
        ({"a": PriorClassifier()}, SETS, {"scores": ["hamming_loss"]}, "did you mean 'neg_hamming_loss'"),
        ({"a": PriorClassifier()}, SETS, {"scores": ["exact_macht"]}, "did you mean 'exact_match'"),
        ({"a": PriorClassifier()}, {}, {}, "no data sets"),
        ({"a": PriorClassifier()}, [(X, Y)], {}, "must be a name, a Dataset"),
        ({"a": PriorClassifier()}, {"made": X}, {}, "must be a name, a Dataset"),
        ({"a": PriorClassifier()}, SETS, {"scores": ["accuracy"]}, "A scorer must be one of"),
        ({"a": PriorClassifier()}, SETS, {"time_limit": 1}, "isolate=True"),
        ({"a": PriorClassifier()}, SETS, {"time_limit": "5"}, "number of seconds"),
        ({"a": PriorClassifier()}, SETS, {"random_state": None}, "random_state must be a whole number"),
        ({"a": PriorClassifier()}, SETS, {"scores": []}, "no scores"),
        ({"a": PriorClassifier()}, SETS, {"scores": {"fold": "exact_match"}}, "cannot be called 'fold'"),
        ({"a": PriorClassifier()}, SETS, {"scores": {"s": 3}}, "must be a name or a scorer"),
        ({1: PriorClassifier(), "1": ChainClassifier()}, SETS, {}, "same name"),
    ],
)
def test_what_cannot_be_compared_is_said(models, datasets, settings, message):
    with pytest.raises(InputError, match=message):
        quick(models, datasets, **settings)


# -- tables ------------------------------------------------------------------------------------------------


def test_tables_of_a_comparison():
    result = quick([PriorClassifier(), ChainClassifier()], {**SETS, "half": (X[:30], Y[:30])})
    table = result.table("exact_match")
    assert (list(table.index), list(table.columns)) == (
        ["made", "half"],
        ["PriorClassifier", "ChainClassifier"],
    )
    folds = result.folds("exact_match")
    for name in table.index:
        pd.testing.assert_series_equal(folds[name].mean(), table.loc[name], check_names=False)
        pd.testing.assert_series_equal(
            folds[name].std(), result.spread("exact_match").loc[name], check_names=False
        )
    assert len(result.tidy()) == 2 * 2 * 3 * 2
    assert set(result.tidy("exact_match")["score"]) == {"exact_match"}
    assert result.costs().loc[("made", "PriorClassifier"), "fit_seconds"] > 0
    assert result.problems().empty
    chosen = result.select(models=["ChainClassifier"], datasets=["half"])
    assert chosen.table("exact_match").shape == (1, 1)
    with pytest.raises(InputError, match="'nobody' is not compared here"):
        result.select(models=["nobody"])
    with pytest.raises(InputError, match="no score 'f1'"):
        result.table("f1")


def test_a_mean_needs_all_folds():
    runs = pd.DataFrame(
        {
            "n_folds": 2,
            "dataset": "d",
            "model": ["a", "a", "b", "b"],
            "fold": [0, 1] * 2,
            "s": [1, 2, 3, np.nan],
        }
    )
    table = Comparison(runs, ["s"]).table("s")
    assert table.loc["d", "a"] == 1.5
    assert np.isnan(table.loc["d", "b"])


def test_calibration_of_all_folds_is_that_of_all_rows_at_once():
    model = ChainClassifier(order=[0, 1])
    train, tests = np.arange(30), [np.arange(30, 40), np.arange(40, 60)]
    result = quick({"chain": model}, cv=[(train, test) for test in tests])
    prediction = model.fit(X[:30], Y[:30]).predict_joint(X[30:])
    for kind, measure in (
        ("marginals", tuplet.metrics.marginal_calibration),
        ("mode", tuplet.metrics.mode_calibration),
    ):
        joined = result.calibration_table(kind, model="chain", n_bins=5)
        pd.testing.assert_frame_equal(joined, measure(Y[30:], prediction, 5), check_dtype=False)


def test_probabilities_that_cannot_be_had_cost_only_the_scores_that_need_them(monkeypatch):
    def too_wide(Y, prediction):
        raise tuplet.core.exceptions.IntractableError("too wide")

    monkeypatch.setattr(work, "n_floored", too_wide)
    X, Y = np.zeros((20, 1)), np.arange(20)[:, None] % 2
    result = compare({"prior": PriorClassifier()}, {"a": (X, Y)}, cv=2, scores=["exact_match"], isolate=False)
    assert result.runs["exact_match"].notna().all()
    assert result.runs["n_floored"].isna().all()

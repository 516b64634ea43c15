"""Work on clusters of Dask and Ray on this machine gives the same results as processes of ours."""

import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

from troubled import (
    Doomed,
    Noted,
    blas_threads,
    complain,
    fail,
    kill_noted,
    left_in_session,
    pid_of,
    wait_until,
)
from tuplet import (
    AutoJointClassifier,
    BayesNetClassifier,
    ChainClassifier,
    IndependentClassifier,
    PowersetClassifier,
    PriorClassifier,
    ProbitClassifier,
    load_penguins,
)
from tuplet.core import clusters
from tuplet.core.parallel import n_workers, run_many
from tuplet.evaluate import compare

# Whatever these packages warn about is theirs.
pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("default")]

TESTS = str(Path(__file__).parents[1])
QUICK = {"scores": ["exact_match", "joint_log_likelihood"], "progress": False}


@contextmanager
def dask_cluster():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        yield


@contextmanager
def ray_cluster():
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


# A cluster for each test: an error or a time limit ends what runs beside it, which with Dask costs a worker,
# and until that one is replaced the cluster has one, for which run_many sends nothing.
@pytest.fixture(params=["dask", "ray"])
def engine(request):
    """The name of a cluster that runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", TESTS, prepend=os.pathsep)  # workers import the models of the tests
        with {"dask": dask_cluster, "ray": ray_cluster}[request.param]():
            yield request.param


@pytest.fixture(autouse=True)
def backend(engine):
    with parallel_config(backend=engine, n_jobs=2):
        yield


def made(seed, n=90):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ rng.normal(size=(3, 3)) + rng.normal(size=(n, 3)) > 0).astype(int)


SETS = {"penguins": load_penguins(return_X_y=True), "first": made(1), "second": made(2)}
MODELS = {
    "prior": PriorClassifier(),
    "independent": IndependentClassifier(DecisionTreeClassifier(max_depth=3)),
    "chain": ChainClassifier(n_chains=3, order="random", n_jobs=2),
    "powerset": PowersetClassifier(),
    "network": BayesNetClassifier(n_jobs=2),
    "peer": RandomForestClassifier(n_estimators=10, n_jobs=2),
}


@pytest.fixture(scope="module")
def at_home():
    """Scores of processes of ours, by default and by the name that joblib has for its own."""
    plain = compare(MODELS, SETS, cv=2, n_jobs=2, **QUICK).runs
    with parallel_config(backend="loky", n_jobs=2):
        named = compare(MODELS, SETS, cv=2, **QUICK).runs
    for score in QUICK["scores"]:
        np.testing.assert_allclose(named[score], plain[score], rtol=0, atol=1e-12)
    return plain


def test_six_models_on_three_sets_have_the_same_scores(at_home):
    runs = compare(MODELS, SETS, cv=2, **QUICK).runs
    assert runs["status"].eq("ok").all()
    assert len(runs) == 6 * 3 * 2
    for score in QUICK["scores"]:
        np.testing.assert_allclose(runs[score], at_home[score], rtol=0, atol=1e-12)


def test_many_tasks_are_done_in_order_by_workers_with_one_thread():
    assert n_workers(None) == n_workers(-1) == 2
    assert n_workers(1) == 1
    answers = run_many(pid_of, [(x,) for x in range(20)])
    assert [x for x, _ in answers] == list(range(20))
    assert os.getpid() not in {pid for _, pid in answers}
    assert run_many(blas_threads, [()] * 4) == [{1}] * 4


def test_errors_and_warnings_come_back():
    with pytest.raises(ValueError, match="no "):
        run_many(fail, [(x,) for x in range(9)])
    with pytest.warns(ConvergenceWarning, match="not converged"):
        assert run_many(complain, [(x,) for x in range(9)]) == list(range(9))


def test_large_arrays_are_sent_once(monkeypatch, engine):
    kind = {"dask": clusters.Dask, "ray": clusters.Ray}[engine]
    sent, share = [], kind.share
    monkeypatch.setattr(kind, "share", lambda self, array: sent.append(array.nbytes) or share(self, array))
    large = np.ones(2**18)
    assert run_many(np.dot, [(large, i) for i in range(20)])[19][0] == 19
    assert sent == [large.nbytes]


def test_chains_draw_the_same():
    X, Y = SETS["first"]
    model = ProbitClassifier(n_burn=5, n_draws=10, n_chains=3, random_state=0, progress=False)
    there = model.fit(X, Y).draws_.correlations
    with parallel_config(backend="sequential"):
        np.testing.assert_array_equal(model.fit(X, Y).draws_.correlations, there)


def test_the_automatic_model_judges_its_candidates():
    trees = DecisionTreeClassifier(min_samples_leaf=30, random_state=0)
    models = {"a": IndependentClassifier(), "b": PowersetClassifier(trees)}
    fitted = AutoJointClassifier(600, models=models, cv=2, random_state=0, progress=False).fit(*SETS["first"])
    assert fitted.leaderboard_["folds"].tolist() == [2, 2]


def test_a_killed_worker_costs_no_fit(tmp_path):
    kill_noted(tmp_path / "pid")
    models = {"doomed": Doomed(tmp_path / "pid"), "prior": PriorClassifier()}
    runs = compare(models, {"first": SETS["first"]}, cv=2, **QUICK).runs
    assert runs["status"].eq("ok").all()


def test_a_fit_over_time_is_ended_and_the_others_are_made(tmp_path):
    models = {"slow": Noted(tmp_path / "notes", seconds=3600.0), "prior": PriorClassifier()}
    runs = compare(models, {"first": SETS["first"]}, cv=2, time_limit=5, **QUICK).runs
    assert set(runs.query("model == 'slow'")["status"]) <= {"over time", "not run"}
    assert runs.query("model == 'prior'")["status"].eq("ok").all()


INTERRUPTED = """
    import os, signal, sys, threading, time
    sys.path.insert(0, {tests!r})
    import numpy as np
    from joblib import parallel_config
    from test_clusters import dask_cluster, ray_cluster
    from troubled import Noted, fits_noted, wait_until
    from tuplet.evaluate import compare

    def press():
        wait_until(lambda: len(fits_noted({notes!r})) >= 2)
        os.kill(os.getpid(), signal.SIGINT)

    if __name__ == "__main__":
        threading.Thread(target=press, daemon=True).start()
        with {engine}_cluster(), parallel_config(backend={engine!r}, n_jobs=2):
            made = {{"made": (np.arange(60.0)[:, None], np.arange(120).reshape(60, 2) % 3)}}
            slow = Noted({notes!r}, seconds=3600.0)
            print(compare({{"slow": slow}}, made, cv=4, scores=["exact_match"]).runs["status"].tolist())
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_ends_what_is_under_way_and_leaves_no_process(tmp_path, engine):
    path = tmp_path / "script.py"
    folders = os.pathsep.join([TESTS, str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    path.write_text(
        textwrap.dedent(INTERRUPTED.format(tests=TESTS, notes=str(tmp_path / "notes"), engine=engine))
    )
    with subprocess.Popen(
        [sys.executable, str(path)],
        env=os.environ | {"PYTHONPATH": folders},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        output, errors = run.communicate(timeout=200)
    assert output.splitlines()[-1:] == ["['not run', 'not run', 'not run', 'not run']"], errors
    assert "interrupted after 0 of 4 fits" in errors
    assert wait_until(lambda: not left_in_session(run.pid)), left_in_session(run.pid)

"""Worker processes, and work that several of them share."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import effective_n_jobs, parallel_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from troubled import (
    blas_threads,
    change_and_sum,
    complain,
    count_until_stopped,
    end,
    fail,
    fail_sealed,
    in_a_worker,
    kill_oneself,
    pid_of,
    threads_of_parent,
    wait_until,
)
from tuplet import ChainClassifier, IndependentClassifier, PowersetClassifier
from tuplet.core import clock, parallel, processes
from tuplet.core.exceptions import TupletError
from tuplet.core.parallel import fan_out, n_workers, one_blas_thread, run_many
from tuplet.core.processes import (
    CrashedError,
    Monitor,
    OverTimeError,
    SharedArrays,
    StoppedError,
    Workers,
    answer,
    unpacked,
)


@pytest.fixture
def eager(monkeypatch):
    """Other processes are used however little they save."""
    monkeypatch.setattr(parallel, "_SAVED", -1.0)
    monkeypatch.setattr(parallel, "_SAVED_READY", -1.0)


@pytest.mark.usefixtures("eager")
def test_answers_come_in_order_and_this_process_takes_part():
    answers = run_many(pid_of, [(x,) for x in range(40)], n_jobs=2)
    assert [x for x, _ in answers] == list(range(40))
    assert answers[0][1] == os.getpid()
    assert run_many(pid_of, [(1,)], n_jobs=2) == [(1, os.getpid())]
    assert run_many(pid_of, [], n_jobs=2) == []


def test_small_work_starts_no_process(monkeypatch):
    monkeypatch.setattr(processes, "Process", None)
    monkeypatch.setattr(clock, "now", lambda: 0.0)  # on a busy machine a task may wait for its turn
    answers = run_many(pid_of, [(x, 0.0) for x in range(100)], n_jobs=2)
    assert {pid for _, pid in answers} == {os.getpid()}


@pytest.mark.usefixtures("eager")
def test_errors_and_warnings_come_back():
    with pytest.raises(ValueError, match="no "):
        run_many(fail, [(x,) for x in range(9)], n_jobs=2)
    with pytest.warns(ConvergenceWarning, match="not converged"):
        assert run_many(complain, [(x,) for x in range(9)], n_jobs=2) == list(range(9))


@pytest.mark.usefixtures("eager")
def test_a_process_that_ends_is_an_error():
    with pytest.raises(TupletError, match=r"its process ended \(exit code 7\)"):
        run_many(end, [(x,) for x in range(60)], n_jobs=2)


def test_a_backend_of_joblib_is_respected():
    with parallel_config(backend="threading"):
        answers = run_many(pid_of, [(x,) for x in range(6)], n_jobs=2)
    assert answers == [(x, os.getpid()) for x in range(6)]


def test_large_arrays_are_sent_to_a_process_once_and_forgotten_with_the_run(monkeypatch):
    monkeypatch.setattr(processes, "_LARGE", 1000)
    first, second = np.ones(200), np.full((20, 20), 2.0, order="F")
    with Workers() as workers:
        for i in range(3):  # tasks have copies of their own
            assert workers.run(change_and_sum, first, i) == 200 + i
        with workers.lease() as worker:
            assert len(worker._held) == 1
        table = workers.run(np.array, second)
        np.testing.assert_array_equal(table, second)
        assert not table.flags.c_contiguous
        with workers.lease() as worker:
            assert len(worker._held) == 2
        del first
        assert workers.run(pow, 2, 3) == 8
        with workers.lease() as worker:
            assert len(worker._held) == 1


@given(st.lists(st.integers(0, 4), max_size=8))
@settings(max_examples=20, deadline=None)
def test_packed_arrays_are_unpacked_as_they_were(places):
    arrays = [
        np.arange(5.0),
        np.arange(6).reshape(2, 3)[:, ::2],
        np.ones((3, 3), order="F"),
        np.array(["a"]),
        {},
    ]
    shared, chosen = SharedArrays(), [arrays[place] for place in places]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "_LARGE", 1)
        messages = [shared.pack((list, (chosen,))) for _ in range(2)]
    held = {key: bytes(buffer) for key, buffer in messages[0].buffers}
    again = [[held.get(key, bytes(buffer)) for key, buffer in message.buffers] for message in messages]
    for message, buffers in zip(messages, again, strict=True):
        for mine, theirs in zip(chosen, unpacked(answer(message.data, buffers)), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_results_come_as_they_are_finished_and_items_are_taken_after_them():
    others, used, taken = threading.Event(), [], []

    def items():
        for x in range(4):
            taken.append((x, len(used)))
            yield x

    def work(x):
        assert x > 0 or others.wait(60)
        return x

    for x in fan_out(work, items(), 2):
        used.append(x)
        if len(used) == 3:
            others.set()
    assert used == [1, 2, 3, 0]
    assert taken == [(0, 0), (1, 0), (2, 1), (3, 2)]


def test_who_stops_iterating_stops_the_workers():
    with Workers() as workers:
        results = fan_out(lambda x: workers.run(pid_of, x, 0 if x == 0 else 600), range(3), 2, workers)
        assert next(results)[0] == 0
        results.close()
        with pytest.raises(StoppedError):
            workers.run(os.getpid)


def test_work_inside_of_a_worker_keeps_to_its_threads():
    for n_threads in (1, 3):
        with Workers(n_threads) as workers:
            assert workers.run(n_workers, 8) == n_threads


@pytest.mark.parametrize("prefer", ["processes", "threads"])
def test_shared_memory_means_threads_of_this_process(prefer):
    table = np.zeros(40)

    def write(i):
        table[i] = i

    run_many(write, [(i,) for i in range(40)], n_jobs=2, prefer=prefer, require="sharedmem")
    assert table.tolist() == list(range(40))


def test_work_reports_steps_and_stops_when_told():
    monitor = Monitor()
    with Workers() as workers:
        threading.Thread(target=lambda: wait_until(lambda: monitor.n_steps > 2) and stop(monitor)).start()
        n_done = workers.run(count_until_stopped, monitor=monitor)
        assert n_done > 2
        assert workers.run(pow, 2, 3) == 8


def stop(monitor):
    monitor.stop = True


def test_limits_errors_and_crashes():
    with Workers() as workers:
        with pytest.raises(OverTimeError):
            workers.run(time.sleep, 60, time_limit=0.2)
        with pytest.raises(ValueError, match="no 1"):
            workers.run(fail, 1)
        with pytest.raises(CrashedError, match=r"SIGKILL\); it may have run out of memory"):
            workers.run(kill_oneself)
        with pytest.raises(RuntimeError, match="SystemExit: 3"):
            workers.run(sys.exit, 3)
        with pytest.raises(CrashedError, match="cannot be sent"):
            workers.run(print, threading.Lock())
        with pytest.raises(CrashedError, match="cannot be sent"):
            workers.run(threading.Lock)
        assert workers.run(pow, 2, 3) == 8


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_the_server_runs_one_thread():
    """What is forked while another thread holds a lock may never get that lock."""
    if os.environ.get("TUPLET_START_METHOD", "forkserver") != "forkserver":
        pytest.skip("there is no server")
    with Workers() as workers:
        # pyarrow's allocator has a thread of its own, which it takes care of when a process forks.
        assert [name for name in workers.run(threads_of_parent) if name != "jemalloc_bg_thd"] == ["python"]


def test_processes_have_the_threads_that_they_are_given():
    with Workers() as workers:
        assert workers.run(blas_threads) == {1}
    with Workers(n_threads=2) as workers:
        assert workers.run(blas_threads) == {2}


def test_threads_that_limit_side_by_side_restore_what_was_there():
    before, inside = blas_threads(), []
    first, second = threading.Event(), threading.Event()

    def outer():
        with one_blas_thread():
            first.set()
            second.wait(30)

    thread = threading.Thread(target=outer)
    thread.start()
    first.wait(30)
    with one_blas_thread():
        second.set()
        thread.join()  # the first one leaves while the second is inside
        inside.append(blas_threads())
    assert inside == [{1}]
    assert blas_threads() == before


class Recorder(GaussianNB):
    """A classifier that notes how many threads BLAS has while it learns and answers."""

    seen: ClassVar[dict[str, list[set[int]]]] = {}

    def fit(self, X, y, sample_weight=None):
        self.seen.setdefault("fit", []).append(blas_threads())
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        self.seen.setdefault("predict", []).append(blas_threads())
        return super().predict_proba(X)


@pytest.mark.parametrize("kind", [IndependentClassifier, PowersetClassifier, ChainClassifier])
def test_every_fit_and_prediction_has_one_blas_thread(kind):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.integers(2, size=(40, 2))
    Recorder.seen.clear()
    with threadpool_limits(2):
        kind(Recorder()).fit(X, Y).predict(X)
        assert blas_threads() == {2}
    assert set(Recorder.seen) == {"fit", "predict"}
    assert all(threads == {1} for answers in Recorder.seen.values() for threads in answers)


SCRIPT = """
    import os, sys, time
    from tuplet.core import parallel
    from tuplet.core.parallel import run_many
    parallel._SAVED = parallel._SAVED_READY = -1.0
    print("begun")

    class Own:
        def __init__(self, x):
            self.x = x

    def work(x):
        time.sleep(0.02)
        return Own(2 * x), os.getpid()

    answers = run_many(work, [(x,) for x in range(150)], n_jobs=2)
    assert [own.x for own, _ in answers] == [2 * x for x in range(150)]
    assert all(type(own) is Own for own, _ in answers)
    print(len({pid for _, pid in answers}), "processes")
"""


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_script_without_a_main_guard_runs_once(tmp_path, method):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, str(path)],
        env=os.environ | {"TUPLET_START_METHOD": method},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[0] == "begun", done.stderr
    assert done.stdout.count("begun") == 1
    assert "processes" in done.stdout
    assert not done.stderr


def test_a_program_ends_though_workers_wait_for_work():
    code = "import os; from tuplet.core.processes import Workers; workers = Workers(); workers.run(os.getpid)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)  # an idle worker waits for 300 s


def test_workers_of_a_daemon_work():
    """The processes of a `multiprocessing.Pool` are daemons, which may have no children by themselves."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(in_a_worker) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_workers_of_its_own():
    code = """
import os
from tuplet.core.processes import Workers
def worker():
    with Workers(keep=True) as workers:
        return workers.run(os.getpid)
first = worker()
if os.fork() == 0:
    assert worker() != first
    raise SystemExit
assert os.wait()[1] == 0
assert worker() == first
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_a_process_that_ended_while_idle_is_not_leased():
    with Workers() as workers:
        first = workers.run(os.getpid)
        os.kill(first, signal.SIGKILL)
        time.sleep(0.5)
        with workers.lease() as worker:
            assert worker.request(workers.pack(os.getpid), None, None) != first


def test_workers_tell_where_an_error_arose():
    with Workers() as workers:
        with pytest.raises(ValueError, match="no 1") as caught:
            workers.run(fail, 1)
        assert "troubled.py" in caught.value.__notes__[0]
        with pytest.raises(RuntimeError, match="SealedError: not to be sent"):
            workers.run(fail_sealed)


KILLED = """
    import os, time
    from tuplet.core.processes import Workers
    workers = Workers()
    print(workers.run(os.getpid), flush=True)
    workers.run(time.sleep, 600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(number):
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as run:
        worker = int(run.stdout.readline())
        time.sleep(0.2)
        run.send_signal(number)
    for _ in range(600):  # a loaded machine takes its time
        if not alive(worker):
            break
        time.sleep(0.1)
    assert not alive(worker)


def alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text() if Path("/proc").exists() else True


def inner_workers():
    return effective_n_jobs(None)


def test_work_inside_of_a_task_runs_in_turn_wherever_the_task_runs():
    with parallel_config(backend="loky", n_jobs=2):
        assert run_many(inner_workers, [()] * 4) == [1] * 4  # in this process, as little work starts no other

"""Models that get into trouble, where other processes can import them from."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_info

from tuplet.core.processes import Workers, report
from tuplet.joint import FactorGraph, JointDistribution
from tuplet.models import JointClassifier


class Noted(JointClassifier):
    """The prior, which notes every fit in a file, and fails, sleeps or dies if told to."""

    def __init__(self, path="", trouble=None, seconds=0.0, random_state=None):
        self.path, self.trouble, self.seconds, self.random_state = path, trouble, seconds, random_state

    def _fit(self, X, codes, sample_weight):
        with Path(self.path).open("a") as file:
            file.write(f"{len(X)} {self.random_state}\n")
        time.sleep(self.seconds)
        if self.trouble == "fail":
            raise ValueError("no luck\n today")
        if self.trouble == "exit":
            sys.exit(3)
        if self.trouble == "die":
            os._exit(7)
        if self.trouble == "warn":
            for _ in range(3):
                warnings.warn("take care", stacklevel=2)
        if self.trouble == "interrupt" and len(fits_noted(self.path)) == 2:
            raise KeyboardInterrupt
        self.table_ = [np.log(np.full((1, card), 1 / card)) for card in self.space_.cards]

    def _predict_joint(self, X) -> JointDistribution:
        return FactorGraph.independent([np.repeat(t, len(X), axis=0) for t in self.table_])


class Moody(Noted):
    """Fails as long as there is a file."""

    def _fit(self, X, codes, sample_weight):
        if Path(self.path).exists():
            raise ValueError("not in the mood")
        self.table_ = [np.log(np.full((1, card), 1 / card)) for card in self.space_.cards]


class Doomed(Noted):
    """The first fit of all writes the number of its process to a file, and waits to be killed."""

    def _fit(self, X, codes, sample_weight):
        try:
            with Path(self.path).open("x") as file:
                file.write(f"{os.getpid()}\n")
            time.sleep(600)
        except FileExistsError:
            pass
        self.table_ = [np.log(np.full((1, card), 1 / card)) for card in self.space_.cards]


class Sleepy(GaussianNB):
    """A classifier that is quick once, then notes its process and sleeps."""

    n_fits = 0

    def __init__(self, path=""):
        super().__init__()
        self.path = path

    def fit(self, X, y, sample_weight=None):
        Sleepy.n_fits += 1
        if Sleepy.n_fits > 1 or multiprocessing.parent_process() is not None:
            with Path(self.path).open("a") as file:
                file.write(f"{os.getpid()}\n")
            time.sleep(600)
        return super().fit(X, y, sample_weight)


def kill_noted(path):
    """Kill, in a thread of its own, the process that will write its number to a file."""

    def kill():
        wait_until(lambda: Path(path).exists() and Path(path).read_text().endswith("\n"))
        os.kill(int(Path(path).read_text()), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()


class Hungry(Noted):
    """Takes some memory and gives it back."""

    def __init__(self, path="", trouble=None, seconds=0.0, random_state=None, megabytes=0):
        super().__init__(path, trouble, seconds, random_state)
        self.megabytes = megabytes

    def _fit(self, X, codes, sample_weight):
        np.ones(self.megabytes * 2**17).sum()
        super()._fit(X, codes, sample_weight)


def fits_noted(path):
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def wait_until(happened, seconds=60):
    """Wait for something; return whether it happened. A loaded machine takes its time."""
    end = time.monotonic() + seconds
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(happened())


def left_in_session(session):
    """Names of the processes of a session that are no zombies."""
    names = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().rsplit(")", 1)
        except OSError:  # it has just ended
            continue
        state, _, _, its_session = rest.split()[:4]
        if int(its_session) == session and state != "Z":
            names.append(name)
    return names


# -- functions for other processes ---------------------------------------------------------------------------


def count_until_stopped():
    n_steps = 1
    while report(1):
        n_steps += 1
        time.sleep(0.01)
    return n_steps


def change_and_sum(array, x):
    array[0] += x
    return float(array.sum())


def pid_of(x, seconds=0.02):
    time.sleep(seconds)
    return x, os.getpid()


def fail(x):
    time.sleep(0.02)
    raise ValueError(f"no {x}")


def complain(x):
    time.sleep(0.02)
    warnings.warn("not converged", ConvergenceWarning, stacklevel=1)
    return x


def end(x):
    if multiprocessing.parent_process() is not None:
        os._exit(7)
    time.sleep(0.02)


def kill_oneself():
    os.kill(os.getpid(), signal.SIGKILL)


def threads_of_parent():
    """Names of the threads of the process that forked this one."""
    return [path.read_text().strip() for path in Path(f"/proc/{os.getppid()}/task").glob("*/comm")]


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


class SealedError(Exception):
    """An error that cannot be pickled."""

    def __reduce__(self):
        raise TypeError("sealed")


def fail_sealed():
    raise SealedError("not to be sent")


def in_a_worker():
    """Do some work in another process."""
    with Workers() as workers:
        return workers.run(pow, 2, 3)

"""Running the fits of a comparison: what is there is not done again, and nothing ends the run."""

from __future__ import annotations

import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext

import joblib
import numpy as np

from tuplet.evaluate.jobs import Job, Terms, claimed, not_run, reusable, run_job
from tuplet.evaluate.store import Record, Store
from tuplet.exceptions import TupletWarning
from tuplet.progress import Progress, Show


def run_all(jobs: list[Job], terms: Terms, store: Store | None, n_jobs: int, show: Show) -> list[Record]:
    """Return the records of all jobs in their order; those that an interrupt cut off are "not run"."""
    # Threads only wait for the processes that do the work; another backend of joblib may take over. Without
    # such processes the work needs some, too: warnings are caught per process.
    prefer = "threads" if terms.workers is not None else "processes"
    parallel = joblib.Parallel(
        n_jobs=n_jobs, prefer=prefer, return_as="generator_unordered", pre_dispatch="n_jobs"
    )
    with Progress("Comparing", len(jobs), show=show) as bar, terms.workers or nullcontext():
        ledger = _Ledger(jobs, n_jobs, bar)
        open_jobs = _open_jobs(jobs, terms, store, ledger)
        try:
            for job, record in parallel(joblib.delayed(run_job)(job, terms, store) for job in open_jobs):
                ledger.enter(job, record)
        except KeyboardInterrupt:
            if terms.workers is not None:
                terms.workers.stop()
            _say_interrupted(len(ledger.records), len(jobs), store)
    return [ledger.records.get(job.place) or not_run(job, "interrupted") for job in jobs]


def _open_jobs(jobs: list[Job], terms: Terms, store: Store | None, ledger: _Ledger) -> Iterator[Job]:
    """Yield the jobs that have to be done, and enter those that need not be when their turn comes.

    joblib asks for the next job when a worker becomes free: so a fit that another run has finished meanwhile
    is taken from the store, and a model that ran over time is not tried on further folds.
    """
    for job in jobs:
        record = store.get(job.key) if store is not None else None
        slow = ledger.over_time.get((job.dataset, job.model))
        if record is not None and reusable(record, job, terms):
            ledger.enter(job, claimed(record, job, store))
        elif slow is not None:
            ledger.enter(job, not_run(job, f"over time on fold {slow}"))
        else:
            yield job


class _Ledger:
    """The records so far, and what they tell about the rest: how long it will take, what is hopeless.

    joblib asks for jobs from threads of its own, so entering is locked.
    """

    def __init__(self, jobs: list[Job], n_jobs: int, bar: Progress) -> None:
        self.records: dict[tuple[str, str, int], Record] = {}
        self.over_time: dict[tuple[str, str], int] = {}
        self._left = Counter((job.dataset, job.model) for job in jobs)
        self._rows = {job.dataset: job.n_train for job in jobs}
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._n_jobs, self._bar, self._lock = n_jobs, bar, threading.Lock()

    def enter(self, job: Job, record: Record) -> None:
        """Add the record of a job."""
        pair = (job.dataset, job.model)
        with self._lock:
            self.records[job.place] = record
            self._left[pair] -= 1
            if record["status"] == "over time":
                self.over_time.setdefault(pair, job.fold)
            elif record["status"] == "ok":
                self._seconds[pair].append(record["fit_seconds"] + record["predict_seconds"])
            self._bar.advance(f"{job.dataset}, {job.model}", remaining=self._remaining())

    def _remaining(self) -> float | None:
        """Return how many seconds the rest will take if each fit takes as long as its like has taken.

        Its like is the same model on another fold; else on other data, by their rows; else any model.
        """
        if not self._seconds:
            return None
        means = {pair: float(np.mean(times)) for pair, times in self._seconds.items()}
        per_row: dict[str, list[float]] = defaultdict(list)
        for (dataset, model), seconds in means.items():
            per_row[model].append(seconds / self._rows[dataset])
        anybody = float(np.mean([rate for rates in per_row.values() for rate in rates]))

        def expected(dataset: str, model: str) -> float:
            rate = float(np.mean(per_row.get(model, anybody)))
            return means.get((dataset, model), rate * self._rows[dataset])

        return sum(count * expected(*pair) for pair, count in self._left.items()) / self._n_jobs


def _say_interrupted(done: int, total: int, store: Store | None) -> None:
    rest = "another run goes on from here" if store is not None else "a cache would let another run go on"
    warnings.warn(
        f"compare: interrupted after {done} of {total} fits; the result holds these, and {rest}.",
        TupletWarning,
        stacklevel=4,
    )

"""The fits of a comparison: which there are, how they are run, and what is kept of each."""

from __future__ import annotations

import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from joblib import cpu_count

from tuplet.core.exceptions import TupletWarning
from tuplet.core.parallel import fan_out, n_workers, open_workers
from tuplet.core.processes import CrashedError, OverTimeError, Packed, StoppedError, Workers
from tuplet.core.progress import Progress, Show, duration_text
from tuplet.evaluate.fingerprint import describe, short_digest
from tuplet.evaluate.folds import Folds
from tuplet.evaluate.store import Record, Store, record_key
from tuplet.evaluate.work import Scorer, do_work, failed
from tuplet.space.features.estimators import seeded

_PACKAGES = ("tuplet", "scikit-learn", "numpy")
"""Packages whose versions identify a fit: another version may give other numbers."""


@dataclass(frozen=True)
class FoldPlan:
    """A data set and its folds, the same for all models."""

    dataset: str
    X: Any
    Y: Any
    folds: Folds
    seed: int
    data: str  # digest of X, Y and groups
    groups: Any = None

    @cached_property
    def tables(self) -> Packed:
        """X, Y and groups, for workers."""
        return Packed((self.X, self.Y, self.groups))

    @cached_property
    def digest(self) -> str:
        """Digest of the data, all folds, the seed and the versions."""
        rows = [side.astype(np.int64).tobytes() for fold in self.folds for side in fold]
        versions = " ".join(f"{package} {version(package)}" for package in _PACKAGES)
        return short_digest(self.data, *rows, str(self.seed), versions)


@dataclass(frozen=True)
class Job:
    """One model on one fold of one data set."""

    plan: FoldPlan = field(repr=False)
    model: str
    fold: int
    estimator: Any = field(repr=False)
    scorers: Mapping[str, Scorer] = field(repr=False)
    calibration: bool = field(repr=False)

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.plan.dataset

    @property
    def place(self) -> tuple[str, str, int]:
        """Data set, model and fold."""
        return self.dataset, self.model, self.fold

    @property
    def n_train(self) -> int:
        """Number of training rows."""
        return len(self.plan.folds[self.fold][0])

    @cached_property
    def settings(self) -> str:
        """All parameters of the model, as a text."""
        return describe(self.estimator)

    @cached_property
    def scorer_texts(self) -> dict[str, str]:
        """The scorers as texts, by name."""
        return {name: describe(scorer) for name, scorer in self.scorers.items()}

    @cached_property
    def key(self) -> str:
        """Path of the record of this fit in a store; it differs for everything that changes the result.

        The other folds do not change it: runs with other numbers of folds share the fits of equal folds.
        """
        rows = [side.astype(np.int64).tobytes() for side in self.plan.folds[self.fold]]
        versions = " ".join(f"{package} {version(package)}" for package in _PACKAGES)
        parts = short_digest(self.settings, self.plan.data, *rows, str(self.seed), versions)
        return record_key(self.dataset, self.model, self.fold, parts)

    @property
    def seed(self) -> int:
        """Seed of the model."""
        return int(np.random.SeedSequence([self.plan.seed, self.fold]).generate_state(1)[0] >> 1)

    @property
    def identity(self) -> Record:
        """Entries of a record that name its place in a comparison."""
        names = {"dataset": self.dataset, "model": self.model, "fold": self.fold}
        return names | {
            "settings": self.settings,
            "plan": self.plan.digest,
            "n_folds": len(self.plan.folds),
        }


@dataclass(frozen=True)
class Terms:
    """The conditions of fits: limits of time and memory, number at a time, workers, and threads of each."""

    time_limit: float | None
    memory_limit: float | None
    number: int
    workers: Workers
    n_threads: int
    here: bool  # whether fits run in this process, without workers

    @classmethod
    def make(
        cls, time_limit: float | None, memory_limit: float | None, n_jobs: int | None, isolate: bool
    ) -> Self:
        """Share the cores of this machine among so many fits; on a cluster, each fit has one."""
        number = n_workers(n_jobs)
        workers = open_workers(max(1, cpu_count() // number))
        time_limit = None if time_limit is None else float(time_limit)
        n_threads = workers.n_threads if workers.is_local else 1
        # Several fits at a time always have processes of their own, since warnings are caught per process.
        return cls(time_limit, memory_limit, number, workers, n_threads, number == 1 and not isolate)


def run_all(jobs: list[Job], terms: Terms, store: Store | None, show: Show) -> list[Record]:
    """Return the records of all jobs in their order; those that an interrupt cut off are "not run"."""
    with Progress("Comparing", len(jobs), show=show) as bar, terms.workers as workers:
        ledger = _Ledger(jobs, terms.number, bar)
        open_jobs = _open_jobs(jobs, terms, store, ledger)
        work = partial(run_job, terms=terms, store=store)
        try:
            for job, record in fan_out(work, open_jobs, terms.number, None if terms.here else workers):
                ledger.enter(job, record)
        except KeyboardInterrupt:
            _warn_interrupted(len(ledger.records), len(jobs), store)
    return [ledger.records.get(job.place) or _not_run(job, "interrupted") for job in jobs]


def _open_jobs(jobs: list[Job], terms: Terms, store: Store | None, ledger: _Ledger) -> Iterator[Job]:
    """Yield the jobs that have to be run; records of the others are entered into the ledger.

    The next job is taken when a worker becomes free: so a fit that another run has finished meanwhile
    is taken from the store, and a model that ran over time is not run on further folds.
    """
    for job in jobs:
        record = store.get(job.key) if store is not None else None
        slow = ledger.over_time.get((job.dataset, job.model))
        if record is not None and _reusable(record, job, terms):
            ledger.enter(job, _claimed(record, job, store))
        elif slow is not None:
            ledger.enter(job, _not_run(job, f"over time on fold {slow}"))
        else:
            yield job


class _Ledger:
    """The records so far, the models that ran over time, and an estimate of the remaining time."""

    def __init__(self, jobs: list[Job], n_jobs: int, bar: Progress) -> None:
        self.records: dict[tuple[str, str, int], Record] = {}
        self.over_time: dict[tuple[str, str], int] = {}
        self._left = Counter((job.dataset, job.model) for job in jobs)
        self._rows = {job.dataset: job.n_train for job in jobs}
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._n_jobs, self._bar = n_jobs, bar

    def enter(self, job: Job, record: Record) -> None:
        """Add the record of a job."""
        pair = (job.dataset, job.model)
        self.records[job.place] = record
        self._left[pair] -= 1
        if record["status"] == "over time":
            self.over_time.setdefault(pair, job.fold)
        elif record["status"] == "ok":
            self._seconds[pair].append(record["fit_seconds"] + record["predict_seconds"])
        self._bar.advance(f"{job.dataset}, {job.model}", remaining=self._remaining())

    def _remaining(self) -> float | None:
        """Return the estimated seconds of the remaining fits, None before the first one.

        A fit is estimated by the same model on other folds; else on other data, in proportion to their rows;
        else by all models.
        """
        if not self._seconds:
            return None
        means = {pair: float(np.mean(times)) for pair, times in self._seconds.items()}
        per_row: dict[str, list[float]] = defaultdict(list)
        for (dataset, model), seconds in means.items():
            per_row[model].append(seconds / self._rows[dataset])
        overall = float(np.mean([rate for rates in per_row.values() for rate in rates]))

        def expected(dataset: str, model: str) -> float:
            rate = float(np.mean(per_row.get(model, overall)))
            return means.get((dataset, model), rate * self._rows[dataset])

        return sum(count * expected(*pair) for pair, count in self._left.items()) / self._n_jobs


def _warn_interrupted(done: int, total: int, store: Store | None) -> None:
    rest = (
        "another run continues from here" if store is not None else "with a cache, another run could continue"
    )
    warnings.warn(
        f"compare: interrupted after {done} of {total} fits; the result holds these, and {rest}.",
        TupletWarning,
        stacklevel=4,
    )


# -- one fit -----------------------------------------------------------------------------------------------


def run_job(job: Job, terms: Terms, store: Store | None) -> tuple[Job, Record]:
    """Run one fit and store its record; errors become part of the record."""
    try:
        done = _work(job, terms)
    except (KeyboardInterrupt, StoppedError):
        raise
    except OverTimeError:
        done = _without_scores("over time", f"stopped after {duration_text(terms.time_limit or 0)}")
    except CrashedError as crash:
        advice = "; pass isolate=False" if "cannot be sent" in str(crash) else ""
        done = _without_scores("crashed", f"{crash}{advice}")
    except Exception as error:
        done = _without_scores("failed", "") | failed(error)
    conditions = {"time_limit": terms.time_limit, "n_threads": terms.n_threads, "finished": time.time()}
    record = job.identity | done | conditions | {"scorers": job.scorer_texts}
    return job, record if store is None else _kept(record, job, store)


def _work(job: Job, terms: Terms) -> Record:
    plan = job.plan
    how = plan.folds[job.fold], job.scorers, job.calibration, terms.memory_limit
    estimator = seeded(job.estimator, job.seed)
    if terms.here:
        return do_work(estimator, (plan.X, plan.Y, plan.groups), *how)
    return terms.workers.run(do_work, estimator, plan.tables, *how, time_limit=terms.time_limit)


def _kept(record: Record, job: Job, store: Store) -> Record:
    """Store a record, together with the scores that an earlier run computed for the same fit."""
    earlier = store.get(job.key)
    if earlier is not None and earlier["status"] == "ok":
        if record["status"] != "ok":
            return record  # a successful record is not replaced by a failure
        record = _joined(earlier, record)
    _put(record, job, store)
    return record


def _put(record: Record, job: Job, store: Store) -> None:
    try:
        store.put(job.key, record)
    except OSError as error:
        warnings.warn(
            f"compare: a finished fit could not be kept ({error}); a later run will make it again.",
            TupletWarning,
            stacklevel=3,
        )


def _claimed(record: Record, job: Job, store: Store | None) -> Record:
    """Return a stored record as one of this job's comparison, and store it so.

    A fit does not depend on the other folds, but its record names the comparison, which
    `Comparison.from_folder` reads.
    """
    if all(record.get(key) == value for key, value in job.identity.items()):
        return record
    record = record | job.identity | {"finished": time.time()}
    if store is not None:
        _put(record, job, store)
    return record


def _joined(earlier: Record, record: Record) -> Record:
    """Return a record with the scores and calibration that only an earlier one has."""
    others = [name for name in earlier["scores"] if name not in record["scores"]]
    problems, retry = earlier.get("score_problems") or {}, earlier.get("retry") or []
    return record | {
        "scores": earlier["scores"] | record["scores"],
        "scorers": earlier["scorers"] | record["scorers"],
        "score_problems": {name: problems[name] for name in others if name in problems}
        | record["score_problems"],
        "retry": [name for name in others if name in retry] + record["retry"],
        "calibration": earlier.get("calibration") if record["calibration"] is None else record["calibration"],
    }


def _not_run(job: Job, reason: str) -> Record:
    """Return the record of a fit that was not started."""
    return job.identity | _without_scores("not run", reason)


def _without_scores(status: str, reason: str) -> Record:
    return {"status": status, "reason": reason, "scores": {}}


def _reusable(record: Record | None, job: Job, terms: Terms) -> bool:
    """Return whether a stored record can be used for a job.

    Failed fits and failed scores are run again, since their cause may be gone, and fits that ran over time
    if there is more time now. A score of the same name with another definition is computed anew.
    """
    if record is None:
        return False
    if record["status"] == "over time":
        given = record.get("time_limit")
        return given is not None and terms.time_limit is not None and terms.time_limit <= given
    calibrated = record.get("calibration") is not None or not job.calibration
    known, retry = record.get("scorers", {}), record.get("retry") or ()
    same = all(
        known.get(name) == text and name in record["scores"] and name not in retry
        for name, text in job.scorer_texts.items()
    )
    return record["status"] == "ok" and calibrated and same

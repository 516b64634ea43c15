"""The fits of a comparison: which there are, how each is done, and what is kept of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from tuplet.evaluate.fingerprint import describe, digest
from tuplet.evaluate.store import Record, Store, record_key
from tuplet.evaluate.work import Scorer, do_work, failed
from tuplet.exceptions import TupletWarning
from tuplet.local.estimators import seeded
from tuplet.processes import CrashedError, OverTimeError, StoppedError, Workers
from tuplet.progress import duration_text

_PACKAGES = ("tuplet", "scikit-learn", "numpy")
"""Whose version is part of what a fit is: another one may give other numbers."""

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Plan:
    """A data set and its folds, as all models meet them."""

    dataset: str
    X: Any
    Y: Any
    folds: list[tuple[Rows, Rows]]
    seed: int
    data: str  # digest of X and Y

    @cached_property
    def digest(self) -> str:
        """What makes two plans the same: the data, all folds, the seed and the versions."""
        rows = [side.astype(np.int64).tobytes() for fold in self.folds for side in fold]
        versions = " ".join(f"{package} {version(package)}" for package in _PACKAGES)
        return digest(self.data, *rows, str(self.seed), versions)


@dataclass(frozen=True)
class Job:
    """One model on one fold of one data set."""

    plan: Plan = field(repr=False)
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
        """Where the job belongs in a comparison."""
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
    def asked(self) -> dict[str, str]:
        """The scorers as texts, by name."""
        return {name: describe(scorer) for name, scorer in self.scorers.items()}

    @cached_property
    def key(self) -> str:
        """Where the record of this fit lies; anything that changes its result changes it.

        The other folds do not: a run with more of them may find some of its own.
        """
        rows = [side.astype(np.int64).tobytes() for side in self.plan.folds[self.fold]]
        versions = " ".join(f"{package} {version(package)}" for package in _PACKAGES)
        parts = digest(self.settings, self.plan.data, *rows, str(self.seed), versions)
        return record_key(self.dataset, self.model, self.fold, parts)

    @property
    def seed(self) -> int:
        """Seed of whatever the model leaves to chance."""
        return int(np.random.SeedSequence([self.plan.seed, self.fold]).generate_state(1)[0] >> 1)

    def rows(self) -> tuple[Any, Any, Any, Any]:
        """Return X and Y for training, X and Y for the test."""
        tables = (self.plan.X, self.plan.Y)
        return tuple(_safe_indexing(table, side) for side in self.plan.folds[self.fold] for table in tables)

    @property
    def identity(self) -> Record:
        """What a record says about where it belongs."""
        names = {"dataset": self.dataset, "model": self.model, "fold": self.fold}
        return names | {
            "settings": self.settings,
            "plan": self.plan.digest,
            "n_folds": len(self.plan.folds),
        }


@dataclass(frozen=True)
class Terms:
    """Under which conditions fits are done; without workers they are done right here."""

    time_limit: float | None
    workers: Workers | None
    n_threads: int


def run_job(job: Job, terms: Terms, store: Store | None) -> tuple[Job, Record]:
    """Do one fit and keep its record; whatever goes wrong with it is its record."""
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
    said = {"time_limit": terms.time_limit, "n_threads": terms.n_threads, "finished": time.time()}
    record = job.identity | done | said | {"scorers": job.asked}
    return job, record if store is None else _kept(record, job, store)


def _work(job: Job, terms: Terms) -> Record:
    work = (seeded(job.estimator, job.seed), *job.rows(), job.scorers, job.calibration)
    if terms.workers is None:
        return do_work(*work)
    return terms.workers.run(do_work, *work, time_limit=terms.time_limit)


def _kept(record: Record, job: Job, store: Store) -> Record:
    """Put a record into the store, together with what an earlier run asked of the same fit."""
    earlier = store.get(job.key)
    if earlier is not None and earlier["status"] == "ok":
        if record["status"] != "ok":
            return record  # what went well once stays, whatever has gone wrong now
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


def claimed(record: Record, job: Job, store: Store | None) -> Record:
    """Return a stored record as one of this job's comparison, in the store, too.

    A fit with other folds beside it is the same fit; who reads the folder later must find it among these.
    """
    if all(record.get(key) == value for key, value in job.identity.items()):
        return record
    record = record | job.identity | {"finished": time.time()}
    if store is not None:
        _put(record, job, store)
    return record


def _joined(earlier: Record, record: Record) -> Record:
    """Return a record with what an earlier one has beyond it: other scores, calibration."""
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


def not_run(job: Job, reason: str) -> Record:
    """Return what stands for a fit that was never started."""
    return job.identity | _without_scores("not run", reason)


def _without_scores(status: str, reason: str) -> Record:
    return {"status": status, "reason": reason, "scores": {}}


def reusable(record: Record | None, job: Job, terms: Terms) -> bool:
    """Return whether a stored record answers a job.

    Failures are tried again, for their cause may be gone, also those of single scores; what ran over time
    is, if there is more time now. A score of the same name that was computed otherwise is another one.
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
        for name, text in job.asked.items()
    )
    return record["status"] == "ok" and calibrated and same

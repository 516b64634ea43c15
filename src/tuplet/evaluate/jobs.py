"""The fits of a comparison: which there are, how each is done, and what is kept of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from tuplet.evaluate.fingerprint import describe, digest
from tuplet.evaluate.isolation import CrashedError, OverTimeError, run_isolated
from tuplet.evaluate.store import Record, Store, record_key
from tuplet.evaluate.work import Scorer, do_work
from tuplet.local.estimators import seeded
from tuplet.progress import duration_text

__all__ = ["Job", "Terms", "not_run", "reusable", "run_job"]

_PACKAGES = ("tuplet", "scikit-learn", "numpy")
"""Whose version is part of what a fit is: another one may give other numbers."""


@dataclass(frozen=True)
class Job:
    """One model on one fold of one data set."""

    dataset: str
    model: str
    fold: int
    estimator: Any = field(repr=False)
    X: Any = field(repr=False)
    Y: Any = field(repr=False)
    train: npt.NDArray[np.intp] = field(repr=False)
    test: npt.NDArray[np.intp] = field(repr=False)
    scorers: Mapping[str, Scorer] = field(repr=False)
    seed: int = field(repr=False)
    data: str = field(repr=False)  # digest of X and Y
    calibration: bool = field(repr=False, default=True)

    @cached_property
    def settings(self) -> str:
        """All parameters of the model, as a text."""
        return describe(self.estimator)

    @cached_property
    def key(self) -> str:
        """Where the record of this fit lies; anything that changes the result changes it."""
        versions = " ".join(f"{package} {version(package)}" for package in _PACKAGES)
        rows = (self.train.astype(np.int64).tobytes(), self.test.astype(np.int64).tobytes())
        parts = digest(self.settings, self.data, *rows, str(self.seed), versions)
        return record_key(self.dataset, self.model, self.fold, parts)

    def rows(self) -> tuple[Any, Any, Any, Any]:
        """Return X and Y for training, X and Y for the test."""
        sides = (self.train, self.test)
        return tuple(_safe_indexing(table, side) for side in sides for table in (self.X, self.Y))

    @property
    def identity(self) -> Record:
        """What a record says about where it belongs."""
        names = {"dataset": self.dataset, "model": self.model, "fold": self.fold}
        return names | {"settings": self.settings, "data": self.data}


@dataclass(frozen=True)
class Terms:
    """Under which conditions fits are done."""

    time_limit: float | None
    isolate: bool
    n_threads: int


def run_job(job: Job, terms: Terms, store: Store | None) -> tuple[Job, Record]:
    """Do one fit and keep its record."""
    model = seeded(job.estimator, job.seed)
    work = (model, *job.rows(), job.scorers, job.calibration)
    try:
        if terms.isolate:
            done = run_isolated(do_work, *work, time_limit=terms.time_limit, n_threads=terms.n_threads)
        else:
            done = do_work(*work)
    except OverTimeError:
        done = _without_scores("over time", f"stopped after {duration_text(terms.time_limit or 0)}")
    except CrashedError as crash:
        done = _without_scores("crashed", str(crash))
    terms_said = {"time_limit": terms.time_limit, "n_threads": terms.n_threads, "finished": time.time()}
    record = job.identity | done | terms_said
    if store is not None:
        record = _with_earlier_scores(record, store.get(job.key))
        store.put(job.key, record)
    return job, record


def _with_earlier_scores(record: Record, earlier: Record | None) -> Record:
    """Return a record that has kept what an earlier run asked of the same fit and this one did not."""
    if earlier is None or earlier.get("status") != "ok" or record["status"] != "ok":
        return record
    bins = record["calibration"] if record["calibration"] is not None else earlier.get("calibration")
    return record | {"scores": earlier["scores"] | record["scores"], "calibration": bins}


def not_run(job: Job, reason: str) -> Record:
    """Return what stands for a fit that was never started."""
    return job.identity | _without_scores("not run", reason)


def _without_scores(status: str, reason: str) -> Record:
    return {"status": status, "reason": reason, "scores": {}}


def reusable(record: Record | None, job: Job, terms: Terms) -> bool:
    """Return whether a stored record answers a job.

    Failures are tried again, for their cause may be gone; what ran over time is, if there is more time now.
    """
    if record is None:
        return False
    if record.get("status") == "over time":
        given = record.get("time_limit")
        return given is not None and terms.time_limit is not None and terms.time_limit <= given
    calibrated = record.get("calibration") is not None or not job.calibration
    return record.get("status") == "ok" and calibrated and set(job.scorers) <= set(record["scores"])

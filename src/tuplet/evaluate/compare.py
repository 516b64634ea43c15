"""Cross-validated comparisons of models on data sets."""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import joblib
import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

from tuplet.datasets import Dataset, load_dataset
from tuplet.evaluate.comparison import Comparison
from tuplet.evaluate.fingerprint import data_digest
from tuplet.evaluate.folds import make_folds
from tuplet.evaluate.isolation import stop_workers
from tuplet.evaluate.jobs import Job, Terms, not_run, reusable, run_job
from tuplet.evaluate.peers import PeerClassifier
from tuplet.evaluate.store import Record, Store
from tuplet.evaluate.work import Scorer
from tuplet.exceptions import InputError, TupletWarning
from tuplet.metrics import SCORERS, get_scorer
from tuplet.progress import Progress, Show

__all__ = ["compare"]


def compare(
    models: Mapping[str, Any] | Sequence[Any],
    datasets: Mapping[str, Any] | Sequence[Any] | str | Dataset,
    *,
    cv: Any = 10,
    scores: Sequence[str] | Mapping[str, Scorer] | None = None,
    calibration: bool = True,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    isolate: bool = True,
    random_state: int = 0,
    progress: Show = "auto",
) -> Comparison:
    """Compare models on data sets by cross-validation: the same folds for all, one fit and one joint a fold.

    Parameters
    ----------
    models : dict name -> model, or sequence of models
        Models of Tuplet, pipelines and searches around them, or any scikit-learn classifier for several
        outputs, whose probabilities are then multiplied as its users do (`PeerClassifier`).
    datasets : dict name -> (X, Y) or Dataset, or sequence of names and Datasets
        Names are those of `load_dataset`.
    cv : int, "split", "shipped", splitter or iterable of (train, test) positions
        A number makes iterative-stratified folds (`StratifiedFolds`); "split" is the data set's own training
        and test part, "shipped" that or its own folds.
    scores : sequence of names, or dict name -> scorer, optional
        See `tuplet.metrics.get_scorer`; all of `SCORERS` unless told. Greater is better.
    calibration : bool, default True
        Whether to keep what calibration plots need: marginals and the mode, which some joints are slow to
        give where the scores do not ask for them.
    n_jobs : int, optional
        Fits at the same time, by joblib; a backend chosen with `joblib.parallel_config` is respected.
    cache : path, optional
        Folder for finished fits. A run that is killed, or extended by models, sets or folds, continues from
        it and loses at most the fits that were under way. Several runs may share a folder. Delete it to
        start anew, for instance after a change of the code of a model.
    time_limit : float, optional
        Seconds for one fit with its prediction; a model that takes longer is stopped, not tried on the
        other folds of that set, and shown as such.
    isolate : bool, default True
        Fit in processes of their own, which can be stopped, may crash without harm, and whose peak memory is
        measured. Without it there is no time limit, but a debugger works.
    random_state : int
        Seed of the folds, and of every `random_state` that a model leaves at None.
    progress : bool or "auto"
        A line with the time left on standard error; "auto" shows it in terminals.

    Returns
    -------
    Comparison
        After an interrupt (Ctrl-C) of what is finished, with a warning.

    Examples
    --------
    >>> import tuplet
    >>> result = compare(
    ...     {"prior": tuplet.PriorClassifier(), "chain": tuplet.ChainClassifier()},
    ...     {"penguins": tuplet.load_penguins(return_X_y=True)},
    ...     cv=3,
    ...     scores=["exact_match", "joint_log_likelihood"],
    ...     isolate=False,
    ... )
    >>> bool(result.table("exact_match").loc["penguins", "chain"] > 0.6)
    True
    """
    if time_limit is not None and not isolate:
        raise InputError("compare: a time_limit needs isolate=True, where a fit can be stopped.")
    named = _named_models(models)
    scorers = _scorers(scores)
    sets = list(_named_sets(datasets))
    jobs = [
        job
        for name, data in sets
        for job in _jobs_of(name, data, named, scorers, cv, random_state, calibration)
    ]
    parallel = joblib.effective_n_jobs(n_jobs)
    terms = Terms(time_limit, isolate, max(1, joblib.cpu_count() // parallel))
    records = _run(jobs, terms, None if cache is None else Store(cache), parallel, progress)
    return Comparison.from_records(
        records, scores=tuple(scorers), models=tuple(named), datasets=tuple(name for name, _ in sets)
    )


# -- what is to be done ------------------------------------------------------------------------------------


def _named_models(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if not isinstance(models, Mapping):
        if hasattr(models, "fit"):
            models = [models]
        names = [type(model).__name__ for model in models]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"compare: several models are a {twice[0]}; pass a dict name -> model.")
        models = dict(zip(names, models, strict=True))
    if not models:
        raise InputError("compare: there are no models to compare.")
    return {str(name): _as_joint_model(str(name), model) for name, model in models.items()}


def _as_joint_model(name: str, model: Any) -> Any:
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise InputError(f"compare: the model {name!r} must be a classifier with fit, found {model!r}.")
    return model if _gives_joint(model) else PeerClassifier(model)


def _gives_joint(model: Any) -> bool:
    """Return whether a model, or what is inside of pipelines and searches, has `predict_joint`."""
    if isinstance(model, Pipeline):
        return _gives_joint(model.steps[-1][1])
    if isinstance(model, BaseSearchCV):
        return _gives_joint(model.estimator)
    return hasattr(model, "predict_joint")


def _scorers(scores: Sequence[str] | Mapping[str, Scorer] | None) -> dict[str, Scorer]:
    if scores is None:
        return dict(SCORERS)
    if isinstance(scores, Mapping):
        return {
            str(name): get_scorer(given) if isinstance(given, str) else given
            for name, given in scores.items()
        }
    return {name: get_scorer(name) for name in ([scores] if isinstance(scores, str) else scores)}


def _named_sets(datasets: Any) -> Iterator[tuple[str, Dataset]]:
    if isinstance(datasets, (str, Dataset)):
        datasets = [datasets]
    given = datasets.items() if isinstance(datasets, Mapping) else [(None, data) for data in datasets]
    seen: set[str] = set()
    for name, data in given:
        loaded = load_dataset(data) if isinstance(data, str) else data
        if not isinstance(loaded, Dataset):
            if name is None or not isinstance(loaded, Sequence) or len(loaded) != 2:
                raise InputError(
                    "compare: a data set must be a name, a Dataset, or an entry name: (X, Y) of a dict; found"
                    f" {type(loaded).__name__}."
                )
            loaded = Dataset(str(name), loaded[0], loaded[1], description="")
        name = str(loaded.name if name is None else name)
        if name in seen:
            raise InputError(f"compare: there are two data sets {name!r}; pass a dict name -> data set.")
        seen.add(name)
        yield name, loaded
    if not seen:
        raise InputError("compare: there are no data sets to compare models on.")


def _jobs_of(
    name: str,
    data: Dataset,
    models: dict[str, Any],
    scorers: dict[str, Scorer],
    cv: Any,
    seed: int,
    calibration: bool,
) -> Iterator[Job]:
    X, Y = data.X, data.Y
    folds = make_folds(cv, X, Y, train=data.train, folds=data.folds, random_state=seed)
    content = data_digest(X, Y)
    for fold, (train, test) in enumerate(folds):
        rest = (X, Y, train, test, scorers, _seed(seed, fold), content, calibration)
        for model, estimator in models.items():
            yield Job(name, model, fold, estimator, *rest)


def _seed(seed: int, fold: int) -> int:
    return int(np.random.SeedSequence([seed, fold]).generate_state(1)[0] >> 1)


# -- doing it ----------------------------------------------------------------------------------------------


def _run(jobs: list[Job], terms: Terms, store: Store | None, n_jobs: int, show: Show) -> list[Record]:
    """Return the records of all jobs in their order; those that an interrupt cut off are "not run"."""
    # Threads only wait for the processes that do the work; another backend of joblib may take over.
    workers = joblib.Parallel(
        n_jobs=n_jobs, prefer="threads", return_as="generator_unordered", pre_dispatch="n_jobs"
    )
    with Progress("Comparing", len(jobs), show=show) as bar:
        ledger = _Ledger(jobs, n_jobs, bar)
        open_jobs = _open_jobs(jobs, terms, store, ledger)
        try:
            for job, record in workers(joblib.delayed(run_job)(job, terms, store) for job in open_jobs):
                ledger.enter(job, record)
        except KeyboardInterrupt:
            _say_interrupted(len(ledger.records), len(jobs), store)
        finally:
            stop_workers()
    return [ledger.records.get(job.key) or not_run(job, "interrupted") for job in jobs]


def _open_jobs(jobs: list[Job], terms: Terms, store: Store | None, ledger: _Ledger) -> Iterator[Job]:
    """Yield the jobs that have to be done, and enter those that need not be when their turn comes.

    joblib asks for the next job when a worker becomes free: so a fit that another run has finished meanwhile
    is taken from the store, and a model that ran over time is not tried on further folds.
    """
    for job in jobs:
        record = store.get(job.key) if store is not None else None
        slow = ledger.over_time.get((job.dataset, job.model))
        if record is not None and reusable(record, job, terms):
            ledger.enter(job, record | job.identity)
        elif slow is not None:
            ledger.enter(job, not_run(job, f"over time on fold {slow}"))
        else:
            yield job


class _Ledger:
    """The records so far, and what they tell about the rest: how long it will take, what is hopeless.

    joblib asks for jobs from threads of its own, so entering is locked.
    """

    def __init__(self, jobs: list[Job], n_jobs: int, bar: Progress) -> None:
        self.records: dict[str, Record] = {}
        self.over_time: dict[tuple[str, str], int] = {}
        self._left = Counter((job.dataset, job.model) for job in jobs)
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._n_jobs, self._bar, self._lock = n_jobs, bar, threading.Lock()

    def enter(self, job: Job, record: Record) -> None:
        """Add the record of a job."""
        pair = (job.dataset, job.model)
        with self._lock:
            self.records[job.key] = record
            self._left[pair] -= 1
            if record["status"] == "over time":
                self.over_time.setdefault(pair, job.fold)
            elif record["status"] == "ok":
                self._seconds[pair].append(record["fit_seconds"] + record["predict_seconds"])
            self._bar.advance(f"{job.dataset}, {job.model}", remaining=self._remaining())

    def _remaining(self) -> float | None:
        """Return how many seconds the rest will take if each fit takes as long as its like has taken."""
        if not self._seconds:
            return None
        means = {pair: float(np.mean(times)) for pair, times in self._seconds.items()}
        overall = float(np.mean(list(means.values())))
        return sum(count * means.get(pair, overall) for pair, count in self._left.items()) / self._n_jobs


def _say_interrupted(done: int, total: int, store: Store | None) -> None:
    rest = "another run goes on from here" if store is not None else "a cache would let another run go on"
    warnings.warn(
        f"compare: interrupted after {done} of {total} fits; the result holds these, and {rest}.",
        TupletWarning,
        stacklevel=4,
    )

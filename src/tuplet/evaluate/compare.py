"""Cross-validated comparisons of models on data sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from tuplet.core.exceptions import InputError
from tuplet.core.progress import Show
from tuplet.evaluate.comparison import FACTS, Comparison
from tuplet.evaluate.fingerprint import data_digest, describe
from tuplet.evaluate.folds import make_folds
from tuplet.evaluate.jobs import FoldPlan, Job, Terms, run_all
from tuplet.evaluate.peers.classifier import PeerClassifier
from tuplet.evaluate.store import Store
from tuplet.evaluate.work import Scorer
from tuplet.io.dataset import Dataset
from tuplet.io.loading import load_dataset
from tuplet.metrics.scorers import ORDERED_SCORERS, SCORERS, get_scorer
from tuplet.space.containers import open_table
from tuplet.space.labels import is_ordered


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
    memory_limit: float | None = None,
    isolate: bool = True,
    random_state: int = 0,
    progress: Show = "auto",
) -> Comparison:
    """Compare models on data sets by cross-validation: the same folds for all, one fit and one joint a fold.

    Parameters
    ----------
    models : dict name -> model, or sequence of models
        Models of Tuplet, pipelines and searches around them, or any scikit-learn classifier for several
        outputs, whose probabilities are then multiplied as its users do (`PeerClassifier`). A search needs
        a splitter as its own `cv`, such as `StratifiedFolds(3)`, where labels are missing or of mixed types.
    datasets : dict name -> (X, Y) or Dataset, or sequence of names and Datasets
        Names are those of `load_dataset`. Rows that belong together, such as those of a patient, are named
        by `Dataset(name, X, Y, groups=...)`.
    cv : int, "split", "shipped", splitter or iterable of (train, test) positions
        A number makes iterative-stratified folds (`StratifiedFolds`); "split" is the data set's own training
        and test part, "shipped" that or its own folds. Groups stay together in stratified folds, and are
        passed to splitters such as `GroupKFold` and to the `fit` of models.
    scores : sequence of names, or dict name -> scorer, optional
        See `tuplet.metrics.get_scorer`; all of `SCORERS` by default, and the ranked probability score if all
        data sets have ordered class variables. A scorer is called as `scorer(model, X, Y)`; greater is
        better. A score that a stored fit lacks means a new fit.
    calibration : bool, default True
        Whether to keep what calibration plots need: marginals and the mode, which some joints are slow to
        give where the scores do not need them.
    n_jobs : int, optional
        Fits at the same time, as joblib counts them. `joblib.parallel_config` chooses a Dask or Ray cluster
        instead of processes on this machine.
    cache : path, optional
        Folder for finished fits. A run that is killed, or extended by models, sets or folds, continues from
        it and loses at most the fits that were under way. Several runs may share a folder. Delete it to
        start anew, for instance after a change of the code of a model.
    time_limit : float, optional
        Seconds for one fit with its prediction; a model that takes longer is stopped, not tried on the
        other folds of that set, and shown as such.
    memory_limit : float, optional
        Megabytes that one fit with its prediction may take, beyond what its process holds before; a fit that
        needs more fails. Only on Linux.
    isolate : bool, default True
        Fit in processes of their own, which can be stopped, may crash without harm, and whose peak memory is
        measured. Without it there are no limits, and with one fit at a time a debugger works.
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
    >>> bool(result.table("exact_match").loc["penguins", "chain"] > 0.5)
    True
    """
    _check(n_jobs, random_state)
    _check_limit("time_limit", "seconds", time_limit, isolate)
    _check_limit("memory_limit", "megabytes", memory_limit, isolate)
    if memory_limit is not None and sys.platform != "linux":
        raise InputError(f"compare: a memory_limit needs Linux, found {sys.platform}.")
    sets = dict(_named_sets(datasets))
    named = _named_models(models, several=any(open_table(data.Y).shape[1:] > (1,) for data in sets.values()))
    scorers = _scorers(scores, ordered=all(_has_order(data.Y) for data in sets.values()))
    if isinstance(cv, Iterator):
        cv = list(cv)  # it is needed for every data set
    plans = [_plan(name, data, cv, random_state) for name, data in sets.items()]
    jobs = [
        Job(plan, model, fold, estimator, scorers, calibration)
        for plan in plans
        for fold in range(len(plan.folds))
        for model, estimator in named.items()
    ]
    terms = Terms.make(time_limit, memory_limit, n_jobs, isolate)
    records = run_all(jobs, terms, None if cache is None else Store(cache), progress)
    return Comparison.from_records(records, scores=tuple(scorers), models=tuple(named), datasets=tuple(sets))


def _check(n_jobs: Any, random_state: Any) -> None:
    if n_jobs is not None and not isinstance(n_jobs, (int, np.integer)):
        raise InputError(f"compare: n_jobs must be a whole number or None, found {n_jobs!r}.")
    if not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise InputError(f"compare: random_state must be a whole number from 0, found {random_state!r}.")


def _check_limit(name: str, unit: str, limit: Any, isolate: bool) -> None:
    if limit is None:
        return
    if not isinstance(limit, (int, float, np.integer, np.floating)) or not limit > 0:
        raise InputError(f"compare: {name} must be a number of {unit}, found {limit!r}.")
    if not isolate:
        raise InputError(f"compare: a {name} needs isolate=True, where a fit has a process of its own.")


def _named_models(models: Mapping[str, Any] | Sequence[Any], several: bool) -> dict[str, Any]:
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
    named = {str(name): _as_joint_model(str(name), model, several) for name, model in models.items()}
    if len(named) < len(models):
        raise InputError("compare: two models have the same name as text; give them different names.")
    return named


def _as_joint_model(name: str, model: Any, several: bool) -> Any:
    if isinstance(model, type):
        raise InputError(f"compare: the model {name!r} is a class; did you mean {model.__name__}()?")
    if not hasattr(model, "fit"):
        raise InputError(f"compare: the model {name!r} must be a classifier with fit, found {model!r}.")
    describe(model)  # raises the error before any fit is made
    if _gives_joint(model):
        return model
    if several:
        _require_several_outputs(name, model)
    return PeerClassifier(model)


def _require_several_outputs(name: str, model: Any) -> None:
    """Raise `InputError` if a scikit-learn estimator is, by its tags, no classifier of several outputs."""
    last = model.estimator if isinstance(model, BaseSearchCV) else model
    last = last.steps[-1][1] if isinstance(last, Pipeline) else last
    kind = type(last).__name__
    if not type(last).__module__.startswith("sklearn."):
        return  # tags of others are not reliable
    tags = get_tags(last)
    if tags.estimator_type != "classifier":
        raise InputError(f"compare: the model {name!r} is a {kind}, which is no classifier.")
    if not tags.target_tags.multi_output and not tags.classifier_tags.multi_label:
        raise InputError(
            f"compare: the model {name!r} is a {kind}, which predicts one label; use"
            f" IndependentClassifier({kind}(...)) or scikit-learn's MultiOutputClassifier({kind}(...))."
        )


def _gives_joint(model: Any) -> bool:
    """Return whether a model, or what is inside of pipelines and searches, has `predict_joint`."""
    if isinstance(model, Pipeline):
        return _gives_joint(model.steps[-1][1])
    if isinstance(model, BaseSearchCV):
        return _gives_joint(model.estimator)
    return hasattr(model, "predict_joint")


def _has_order(Y: Any) -> bool:
    """Return whether some class variable is ordered."""
    return any(map(is_ordered, open_table(Y).form.dtypes))


def _scorers(scores: Sequence[str] | Mapping[str, Any] | None, ordered: bool) -> dict[str, Scorer]:
    if scores is None:
        return dict(SCORERS | ORDERED_SCORERS if ordered else SCORERS)
    if not isinstance(scores, Mapping):
        scores = {name: name for name in ([scores] if isinstance(scores, str) else scores)}
    if not scores:
        raise InputError("compare: there are no scores to compare models by.")
    return {str(name): _scorer(str(name), scorer) for name, scorer in scores.items()}


def _scorer(name: str, scorer: Any) -> Scorer:
    if name in FACTS:
        raise InputError(f"compare: a score cannot be called {name!r}, as a column of the result is.")
    if isinstance(scorer, str):
        return get_scorer(scorer)
    if not callable(scorer):
        raise InputError(f"compare: the score {name!r} must be a name or a scorer, found {scorer!r}.")
    return scorer


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
            loaded = Dataset(str(name), loaded[0], loaded[1])
        name = str(loaded.name if name is None else name)
        if name in seen:
            raise InputError(f"compare: there are two data sets {name!r}; pass a dict name -> data set.")
        seen.add(name)
        yield name, loaded
    if not seen:
        raise InputError("compare: there are no data sets to compare models on.")


def _plan(name: str, data: Dataset, cv: Any, seed: int) -> FoldPlan:
    X: Any = data.X
    if hasattr(X, "tocsr"):  # of other sparse matrices no rows can be taken
        X = X.tocsr()
    folds = make_folds(
        cv, X, data.Y, train=data.train, folds=data.folds, groups=data.groups, random_state=seed
    )
    groups = None if data.groups is None else np.asarray(data.groups)
    return FoldPlan(name, X, data.Y, folds, int(seed), data_digest(X, data.Y, groups), groups)

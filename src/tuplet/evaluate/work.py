"""One fit: a model learns a training fold, and all scores come from one joint of the test rows."""

from __future__ import annotations

import ctypes
import gc
import inspect
import math
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from tuplet.core.exceptions import TupletError
from tuplet.core.processes import Packed
from tuplet.evaluate.fingerprint import describe
from tuplet.evaluate.store import Record
from tuplet.local.cross_fitting import folds_of_groups
from tuplet.losses.base import Loss
from tuplet.losses.registry import get_loss
from tuplet.metrics.calibration import marginal_calibration, mode_calibration
from tuplet.metrics.probabilities import n_floored
from tuplet.prediction.joint import JointPrediction
from tuplet.space.classes import ClassSpace
from tuplet.space.features.estimators import group_arguments, unwrap

N_BINS = 20
"""Bins of the stored calibration tables; pictures may join neighbours."""

Scorer = Callable[[Any, Any, Any], float]
"""(fitted model, X, Y) -> score, greater is better, as in scikit-learn."""

_CALIBRATIONS = {"marginals": marginal_calibration, "mode": mode_calibration}


def do_work(
    model: Any,
    tables: tuple[Any, Any, Any] | Packed,
    fold: tuple[Any, Any],
    scorers: Mapping[str, Scorer],
    calibration: bool,
    memory_limit: float | None = None,
) -> Record:
    """Fit a model to the training rows of X and Y, predict one joint of the test rows, and score it.

    The third of the `tables` are groups of rows, or None: models whose fit takes groups get them.

    Errors do not end a comparison: the record then has the status "failed" and the reason. A score that
    cannot be computed (because there are too many outcomes, say) is missing, and `score_problems` has the
    reason. The time of prediction includes the scores, since many forms of a joint are lazy.
    """
    tables = tables.open() if isinstance(tables, Packed) else tables
    X, Y, groups = tables
    X_train, Y_train, X_test, Y_test = (_safe_indexing(table, side) for side in fold for table in (X, Y))
    groups = None if groups is None else groups[fold[0]]
    meter = _MemoryMeter()
    record: Record = {"n_train": _n_rows(X_train), "n_test": _n_rows(X_test), "scores": {}}
    with _collected_warnings(record), _limited_memory(memory_limit):
        try:
            with _timed(record, "fit"):
                fitted = _fit(clone(model), X_train, Y_train, groups)
            with _timed(record, "predict"):
                record |= _score(CachedPrediction(fitted, X_test), X_test, Y_test, scorers, calibration)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit() and panics of compiled code
            record |= failed(error)
        else:
            record["status"] = "ok"
    record["peak_memory_mb"] = meter.peak_mb()
    return record


def _fit(model: Any, X: Any, Y: Any, groups: Any) -> Any:
    """Fit a model that holds rows out by groups (n,): it takes them, or its search gets folds of them."""
    if groups is None:
        return model.fit(X, Y)
    with folds_of_groups(model, ClassSpace.from_labels(Y).encode(Y), groups):
        return model.fit(X, Y, **group_arguments(model, groups))


def failed(error: BaseException) -> Record:
    """Return the entries of a record about an error."""
    trace = ""
    with suppress(Exception):  # some errors cannot be printed
        trace = "".join(traceback.format_exception(error))
    return {"status": "failed", "reason": _reason(error), "trace": trace}


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


class CachedPrediction:
    """A fitted model whose prediction for the test rows is cached, so that all scorers use one joint.

    Decisions are cached by their loss. The `predict` of a model without a parameter `loss` (a peer, or a
    `DecisionClassifier`) is called once. Other attributes are those of the model, and other rows are
    predicted anew.
    """

    def __init__(self, fitted: Any, X: Any) -> None:
        self._fitted, self._given = fitted, X
        self.model, self._X = unwrap(fitted, X)
        self.prediction: JointPrediction = self.model.predict_joint(self._X)
        self.space_ = self.prediction.space
        self._decided: dict[str, Any] = {}
        takes_loss = "loss" in inspect.signature(self.model.predict).parameters
        self.predict: Callable[..., Any] = self._decide if takes_loss else self._own

    def __getattr__(self, name: str) -> Any:
        whole, inside = self.__dict__["_fitted"], self.__dict__["model"]
        return getattr(whole if hasattr(whole, name) else inside, name)

    def _about(self, X: Any) -> CachedPrediction:
        """Return the cached prediction of these rows: this one if they are the test rows."""
        return self if X is self._given else CachedPrediction(self._fitted, X)

    def predict_joint(self, X: Any) -> JointPrediction:
        """Return the one joint, or that of other rows."""
        return self._about(X).prediction

    def n_floored(self, Y: Any) -> int | None:
        """Count the test rows whose probability is raised to a floor; None if it cannot be computed.

        Peers apply a floor to single labels and count these rows themselves.
        """
        own = getattr(self.model, "n_floored", None)
        try:
            return n_floored(Y, self.prediction) if own is None else own(Y, self.prediction)
        except TupletError:
            return None

    def predict_proba(self, X: Any) -> Any:
        """Return the marginals of the joint in the form of scikit-learn."""
        marginals = self.predict_joint(X)._marginals("predict_proba")
        return marginals[0] if self.space_.single else marginals

    def _own(self, X: Any) -> Any:
        if X is not self._given:
            return self._about(X).predict(X)
        if "own" not in self._decided:
            self._decided["own"] = self.model.predict(self._X)
        return self._decided["own"]

    def _decide(self, X: Any, *, loss: str | Loss = "hamming") -> Any:
        if X is not self._given:
            return self._about(X).predict(X, loss=loss)
        key = describe(get_loss(loss))
        if key not in self._decided:
            codes = self.prediction._decide(loss, "predict")
            self._decided[key] = self.space_.decode(codes, self.prediction.index)
        return self._decided[key]


def _score(
    cached: CachedPrediction, X: Any, Y: Any, scorers: Mapping[str, Scorer], calibration: bool
) -> Record:
    scores, bins, problems, retry = {}, {}, {}, []
    for name, scorer in scorers.items():
        try:
            scores[name] = float(scorer(cached, X, Y))
        except Exception as error:  # the other scores are still computed
            scores[name], problems[name] = float("nan"), _reason(error)
            if not isinstance(error, TupletError):  # the cause may be the scorer, or temporary
                retry.append(name)
    for name, measure in _CALIBRATIONS.items() if calibration else ():
        try:
            bins[name] = _columns(measure(Y, cached.prediction, N_BINS))
        except TupletError as error:
            problems[name] = _reason(error)
    return {
        "scores": scores,
        "calibration": bins if calibration else None,
        "score_problems": problems,
        "retry": retry,
        "n_floored": cached.n_floored(Y),
    }


def _columns(frame: pd.DataFrame) -> dict[str, list[float]]:
    return {str(name): column.tolist() for name, column in frame.items()}


def _reason(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "its message cannot be shown"
    return text if isinstance(error, TupletError) else f"{type(error).__name__}: {text}".rstrip(": ")


@contextmanager
def _timed(record: Record, what: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield
    finally:
        record[f"{what}_seconds"] = time.perf_counter() - wall
        record[f"{what}_cpu_seconds"] = time.process_time() - cpu


@contextmanager
def _collected_warnings(record: Record) -> Iterator[None]:
    """Collect warnings in the record, since the terminal would not show which fit they belong to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    counts = Counter(f"{w.category.__name__}: {' '.join(str(w.message).split())}" for w in caught)
    record["warnings"] = [text if n == 1 else f"{text} ({n} times)" for text, n in counts.most_common(10)]


# -- memory ------------------------------------------------------------------------------------------------


@contextmanager
def _limited_memory(megabytes: float | None) -> Iterator[None]:
    """Let this process take so much more memory than it has: further allocations fail, as `MemoryError`."""
    if megabytes is None:
        yield
        return
    import resource  # not on Windows

    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = int((_status("VmData") + megabytes) * 2**20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if most < 0 else min(limit, most), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


class _MemoryMeter:
    """The peak memory of this process since the meter was made, beyond what it held then."""

    def __init__(self) -> None:
        _return_free_memory()
        self._resettable = _reset_peak()
        self._start = _status("VmRSS") if self._resettable else _lifetime_peak()

    def peak_mb(self) -> float:
        """Return megabytes; where the system's peak cannot be reset, how much it has grown."""
        peak = _status("VmHWM") if self._resettable else _lifetime_peak()
        return peak - self._start if math.isnan(peak) else max(0.0, peak - self._start)


def _return_free_memory() -> None:
    """Return free memory to the system: a fit that reuses it would seem to need none."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, TypeError, AttributeError):  # only in the C library of Linux
        return


def _reset_peak() -> bool:
    """Reset the system's record of the peak memory of this process; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def _lifetime_peak() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

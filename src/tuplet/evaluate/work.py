"""One fit: a model learns a training fold, and everything that is asked about it comes from one joint."""

from __future__ import annotations

import inspect
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pandas as pd
from sklearn.base import clone

from tuplet.evaluate.fingerprint import describe
from tuplet.evaluate.memory import MemoryMeter
from tuplet.evaluate.store import Record
from tuplet.exceptions import TupletError
from tuplet.local.multi_output import unwrap
from tuplet.losses import Loss, get_loss
from tuplet.metrics import marginal_calibration, mode_calibration, n_floored
from tuplet.prediction import JointPrediction

N_BINS = 20
"""Bins of the stored calibration tables; pictures may join neighbours."""

Scorer = Callable[[Any, Any, Any], float]
"""(fitted model, X, Y) -> score, greater is better; as scikit-learn has it."""

_CALIBRATIONS = {"marginals": marginal_calibration, "mode": mode_calibration}


def do_work(
    model: Any,
    X_train: Any,
    Y_train: Any,
    X_test: Any,
    Y_test: Any,
    scorers: Mapping[str, Scorer],
    calibration: bool,
) -> Record:
    """Fit, predict one joint, ask it everything, and return what came of it as plain values.

    An error is no end: it becomes a record with status "failed" and its reason. A score that cannot be
    had (too many outcomes, say) is missing, for the reason that `score_problems` holds. The time of
    prediction includes all that was asked, since many forms of a joint compute nothing before.
    """
    meter = MemoryMeter()
    record: Record = {"n_train": _n_rows(X_train), "n_test": _n_rows(X_test), "scores": {}}
    with _collected_warnings(record):
        try:
            with _timed(record, "fit"):
                fitted = clone(model).fit(X_train, Y_train)
            with _timed(record, "predict"):
                record |= _ask(Answer(fitted, X_test), X_test, Y_test, scorers, calibration)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() and panics of compiled code are no ends, either
            record |= failed(error)
        else:
            record["status"] = "ok"
    record["peak_memory_mb"] = meter.peak_mb()
    return record


def failed(error: BaseException) -> Record:
    """Return what a record says of an error."""
    trace = ""
    with suppress(Exception):  # of an error that cannot even be printed
        trace = "".join(traceback.format_exception(error))
    return {"status": "failed", "reason": _reason(error), "trace": trace}


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


class Answer:
    """A prediction that poses as the model that made it, so that scorers take all from the one joint.

    Decisions are remembered by their loss. A model whose `predict` takes no loss (a peer that decides its own
    way, or a `DecisionClassifier`) is asked for its decision once. All else, and whatever is asked about
    other rows, is asked of the model itself.
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

    def _about(self, X: Any) -> Answer:
        """Return the answer about these rows: this one if they are its own."""
        return self if X is self._given else Answer(self._fitted, X)

    def predict_joint(self, X: Any) -> JointPrediction:
        """Return the one joint, or that of other rows."""
        return self._about(X).prediction

    def n_floored(self, Y: Any) -> int | None:
        """Count the test rows that are charged a floor; None if their probabilities cannot be had.

        Peers apply a floor to single labels and know how.
        """
        own = getattr(self.model, "n_floored", None)
        try:
            return n_floored(Y, self.prediction) if own is None else own(Y, self.prediction)
        except TupletError:
            return None

    def predict_proba(self, X: Any) -> Any:
        """Return the marginals of the joint, as scikit-learn has them."""
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


def _ask(answer: Answer, X: Any, Y: Any, scorers: Mapping[str, Scorer], calibration: bool) -> Record:
    scores, bins, problems, retry = {}, {}, {}, []
    for name, scorer in scorers.items():
        try:
            scores[name] = float(scorer(answer, X, Y))
        except Exception as error:  # one score that fails takes no other with it
            scores[name], problems[name] = float("nan"), _reason(error)
            if not isinstance(error, TupletError):  # it may lie at the scorer, or at the moment
                retry.append(name)
    for name, measure in _CALIBRATIONS.items() if calibration else ():
        try:
            bins[name] = _columns(measure(Y, answer.prediction, N_BINS))
        except TupletError as error:
            problems[name] = _reason(error)
    return {
        "scores": scores,
        "calibration": bins if calibration else None,
        "score_problems": problems,
        "retry": retry,
        "n_floored": answer.n_floored(Y),
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
    """Keep warnings out of the terminal, where nobody could tell which fit they belong to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    counts = Counter(f"{w.category.__name__}: {' '.join(str(w.message).split())}" for w in caught)
    record["warnings"] = [text if n == 1 else f"{text} ({n} times)" for text, n in counts.most_common(10)]

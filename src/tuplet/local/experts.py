"""One classifier for each block of rows: any classifier, or those of all blocks in one go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from tuplet.kernels import sort_rows
from tuplet.local.batches import LinearExperts, Regressions, make_batch
from tuplet.local.blocks import Batch, Experts, Layout, class_weights
from tuplet.local.estimators import require_probabilities, weight_arguments
from tuplet.local.inputs import Features, n_rows, require_size, take_rows
from tuplet.local.many_logistic import ManyLogistic
from tuplet.local.parallel import run_many
from tuplet.local.smoothed import SmoothedClassifier
from tuplet.typing import UNKNOWN, Codes, Floats

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Prepared:
    """The features of a child's rows, made ready once for classifiers of all blocks.

    The steps of a pipeline before its classifier see all rows of the child, not those of one block: a mean
    or a variance of three rows is worse than that of a thousand, and all blocks then share one matrix.

    Parameters
    ----------
    steps : fitted Pipeline or None
        What comes before the classifier.
    classifier : classifier or None
        What is fitted to each block; None where X has no columns, or no row a label: then frequencies are
        all there is.
    Z : features, n rows
        What the classifiers see, for all rows that were given.
    batch : Batch or None
        The same for classifiers that are fitted in one go; None if they are something else.
    layout : Layout or None
        How the classifiers want to see rows; None if as the steps give them.
    """

    steps: Any
    classifier: Any
    Z: Features
    batch: Batch | None = None
    layout: Layout | None = None

    @classmethod
    def make(cls, estimator: Any, X: Features, child: Codes, weight: Floats | None) -> Prepared:
        """Fit what comes before the classifier to the rows whose child (n,) is known and that have weight.

        Parameters
        ----------
        estimator : classifier
            Not fitted.
        """
        require_probabilities(estimator)
        if X.shape[1] == 0 or not _used(child, weight).any():
            return cls(None, None, np.zeros((n_rows(X), 0)))
        steps, classifier = None, estimator
        if isinstance(estimator, Pipeline):
            classifier = estimator.steps[-1][1]
            steps = fit_steps(estimator, X, child, weight) if len(estimator.steps) > 1 else None
        Z = X if steps is None else steps.transform(X)
        batch = make_batch(classifier, Z, weight)
        return (
            cls(steps, classifier, Z)
            if batch is None
            else cls(steps, classifier, batch.rows, batch, batch.layout)
        )

    @property
    def is_compiled(self) -> bool:
        """Whether all fits are compiled regressions, or frequencies."""
        return isinstance(self.batch, Regressions) or self.classifier is None

    @property
    def is_batched(self) -> bool:
        """Whether nothing but compiled code and numpy is needed for the classifiers of blocks."""
        return self.batch is not None or self.classifier is None

    def ready(self, X: Features) -> Features:
        """Return what the classifiers see of further rows."""
        if self.classifier is None:
            return np.zeros((n_rows(X), 0))
        Z = X if self.steps is None else self.steps.transform(X)
        return Z if self.layout is None else self.layout.encode(Z)

    def without_rows(self) -> Prepared:
        """Return what is needed for further rows; the training rows are let go."""
        return replace(self, Z=None, batch=None)

    def fit(
        self,
        y: Codes,
        blocks: Codes,
        n_blocks: int,
        n_classes: int,
        weight: Floats | None = None,
        *,
        n_jobs: int | None = None,
        lenient: bool = True,
    ) -> Experts:
        """Fit one classifier to each block (n,) of codes y (n,); rows where either is `UNKNOWN` are left out.

        Parameters
        ----------
        lenient : bool
            Whether a block is left without a classifier where the rows do not suffice for one, as for
            neighbours or cross-validation inside of the classifier; otherwise its error is raised.
        """
        if self.classifier is None:
            return _frequencies(y, blocks, n_blocks, n_classes, weight)
        if self.batch is None:
            return _fit_each(self, y, blocks, n_blocks, n_classes, weight, n_jobs, lenient)
        return self.batch.fit(y, blocks, n_blocks, n_classes, weight, n_jobs=n_jobs)


@dataclass(frozen=True)
class ClassifierExperts:
    """Any classifiers; see `Experts`."""

    classifiers: tuple[SmoothedClassifier | None, ...]
    totals: Floats
    card: int

    def proba(self, Z: Features, blocks: Codes) -> Floats:
        """See `Experts.proba`."""
        answer = np.zeros((len(blocks), self.card))
        for g in np.unique(blocks[blocks != UNKNOWN]):
            rows = np.flatnonzero(blocks == g)
            answer[rows] = _ask(self.classifiers[g], take_rows(Z, rows), self.card)
        return answer

    def table(self, Z: Features) -> Floats:
        """See `Experts.table`."""
        n, q = n_rows(Z), len(self.classifiers)
        require_size(f"Probabilities by {q:,} classifiers", q * n, self.card)
        answer = np.empty((q, self.card, n))
        for g, classifier in enumerate(self.classifiers):
            answer[g] = _ask(classifier, Z, self.card).T
        return answer


# -- what is fitted ----------------------------------------------------------------------------------------


def _used(child: Codes, weight: Floats | None) -> Mask:
    known = child != UNKNOWN
    return known if weight is None else known & (weight > 0)


def fit_steps(estimator: Pipeline, X: Features, child: Codes, weight: Floats | None) -> Pipeline:
    """Fit a clone of all steps but the last to the rows whose child (n,) is known and that have weight."""
    used = _used(child, weight)
    steps = Pipeline(clone(estimator).steps[:-1])
    named = weight_arguments(estimator, None if weight is None else weight[used])
    kept = {key: value for key, value in named.items() if key.split("__")[0] in steps.named_steps}
    with config_context(enable_metadata_routing=False):  # the arguments name their steps already
        return steps.fit(take_rows(X, used), child[used], **kept)


def _frequencies(y: Codes, blocks: Codes, q: int, k: int, weight: Floats | None) -> LinearExperts:
    """Regressions without columns: the intercepts are the logarithms of the frequencies."""
    counts = class_weights(y, blocks, q, k, weight)
    present, zeros = counts > 0, np.zeros(q)
    log = np.log(counts, where=present, out=np.full((q, k), -np.inf))
    log[~present.any(axis=1)] = 0.0
    coef, done = np.zeros((q, k, 0)), np.ones(q, dtype=bool)
    many = ManyLogistic(coef, log, present, zeros, zeros, done, np.zeros(q, dtype=np.intp))
    return LinearExperts(many, counts.sum(axis=1))


def _fit_each(
    prepared: Prepared,
    y: Codes,
    blocks: Codes,
    q: int,
    k: int,
    weight: Floats | None,
    n_jobs: int | None,
    lenient: bool,
) -> ClassifierExperts:
    used = np.flatnonzero(_used(y, weight) & (blocks != UNKNOWN))
    order, starts = sort_rows(blocks[used], q)
    parts = np.split(used[order], starts[1:-1])
    filled = [g for g, rows in enumerate(parts) if len(rows)]
    tasks = [(prepared.classifier, prepared.Z, y, k, weight, parts[g], lenient) for g in filled]
    fitted: list[SmoothedClassifier | None] = [None] * q
    for g, classifier in zip(filled, run_many(_fit_one, tasks, n_jobs), strict=True):
        fitted[g] = classifier
    totals = [0.0 if each is None else each.counts.sum() for each in fitted]
    return ClassifierExperts(tuple(fitted), np.array(totals), k)


def _fit_one(
    classifier: Any, Z: Features, y: Codes, k: int, weight: Floats | None, rows: Codes, lenient: bool
) -> SmoothedClassifier | None:
    inputs, some = take_rows(Z, rows), None if weight is None else weight[rows]
    try:
        # Some complain only when they are asked, and some divide by a variance of zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = SmoothedClassifier.fit(classifier, inputs, y[rows], k, some)
            _ask(fitted, take_rows(inputs, np.zeros(1, dtype=np.intp)), k)
    except ValueError:
        if lenient:
            return None
        raise
    return fitted


def _ask(fitted: SmoothedClassifier | None, Z: Features, k: int) -> Floats:
    """Probabilities (n, k) of a calibrated classifier, zero for the classes it does not know."""
    answer = np.zeros((n_rows(Z), k))
    if fitted is None:
        return answer
    if fitted.estimator is None:
        answer[:, fitted.classes] = 1.0
        return answer
    answer[:, fitted.classes] = fitted.proba(Z)
    return answer

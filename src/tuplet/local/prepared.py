"""Features that are prepared once for the classifiers of many models, and how these are fitted.

Each block of rows has a classifier: any classifiers one by one, regressions and naive Bayes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from tuplet.core.limits import CACHE_CELLS, HELD_CELLS, row_blocks
from tuplet.core.parallel import run_many
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.local.base import BlockClassifiers, class_weights, sort_into_blocks
from tuplet.local.bayes import MixedNaiveBayes
from tuplet.local.calibration import SmoothedClassifier
from tuplet.local.logistic import is_plain_logistic
from tuplet.local.many_bayes import BayesBatch, BayesLayout
from tuplet.local.many_logistic import LogisticBatch, ManyLogistic
from tuplet.local.penalties import Target, choose_for_rows, logistic_batch
from tuplet.local.ridge import RidgeLogistic
from tuplet.local.smoothing import label_counts, pseudo_row, with_pseudo_row
from tuplet.space.features.estimators import (
    is_column_wise,
    last_step,
    require_probabilities,
    weight_keys,
)
from tuplet.space.features.inputs import Features, n_rows, require_size, take_rows
from tuplet.space.features.scaling import LimitedScaler

_LARGEST = 1e100
"""Numbers up to which squares cannot overflow; beyond, each classifier is fitted by itself."""

_MAX_CELLS = HELD_CELLS
"""Cells of encoded rows; a category with a value for each row would have as many columns as rows."""


@dataclass(frozen=True)
class PreparedFeatures:
    """The features of a child's rows, prepared once for all models that are fitted to them.

    The steps of a pipeline before its classifier are fitted to all rows of the child, not to those of one
    block: a mean or a variance of a thousand rows is better than that of three, and all blocks share one
    matrix.

    Parameters
    ----------
    steps : fitted Pipeline or None
        What comes before the classifier.
    classifier : classifier or None
        The estimator for each block; None if X has no columns, or no row has a label: then frequencies are
        used.
    takes_columns : bool
        Whether further columns can stand beside Z in a fit: the steps treat each column by itself.
    layout : BayesLayout or None
        How the classifiers take rows; None if as the steps return them.
    X : features, n rows, or None
        As they were given; None without training rows.
    Z : features, n rows, or None
        Inputs of the classifiers for all rows.
    batch : LogisticBatch, BayesBatch or None
        The same for classifiers of all blocks that are fitted at once; None for other classifiers.
    alone : array, shape (n, k), optional
        Probabilities by the model without parents, where they are known: a model that backs off to it then
        neither fits nor evaluates it.
    share : array, shape (k,), optional
        Of the pseudo-row of all rows, where a fit sees a part of them.
    rows : int array, shape (r,), optional
        If Z and `alone` are those of some rows, the positions of these in X.
    """

    steps: Any
    classifier: Any
    takes_columns: bool = False
    layout: BayesLayout | None = None
    X: Features = None
    Z: Features = None
    batch: LogisticBatch | BayesBatch | None = None
    alone: Floats | None = None
    share: Floats | None = None
    rows: Codes | None = None

    @classmethod
    def make(
        cls,
        estimator: Any,
        X: Features,
        child: Codes,
        weight: Floats | None,
        groups: Codes | None = None,
    ) -> PreparedFeatures:
        """Fit what comes before the classifier to the rows whose child (n,) is known and that have weight.

        Parameters
        ----------
        estimator : classifier
            Not fitted.
        X : features, n rows
            Returned as they are if they are prepared already.
        groups : int array, shape (n,), optional
            Rows of one group are held out together where a penalty is chosen.
        """
        if isinstance(X, PreparedFeatures):
            return X
        require_probabilities(estimator)
        if X.shape[1] == 0 or not used_rows(child, weight).any():
            return cls(None, None, X=X, Z=np.zeros((n_rows(X), 0)))
        steps, classifier = None, last_step(estimator)
        if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
            steps = fit_steps(estimator[:-1], X, child, weight)
        Z = apply_steps(steps, X)
        if _is_open(classifier, Z):
            target = Target(child, int(child.max()) + 1)
            C = choose_for_rows(X, Z, child[:, None], [target], weight, groups)
            classifier = _with_strength(classifier, C)
        batch = make_batch(classifier, Z, weight)
        layout = batch.layout if isinstance(batch, BayesBatch) else None
        columns = is_column_wise(estimator) and layout is None
        return cls(steps, classifier, columns, layout, X, Z if batch is None else batch.rows, batch)

    @classmethod
    def make_unbatched(cls, estimator: Any, X: Features, weight: Floats | None = None) -> PreparedFeatures:
        """Prepare rows for classifiers that get columns of parents beside them and are fitted one by one.

        Steps that treat each column by itself are fitted here, to all rows. Others have to see the columns
        of the parents too, so they remain a part of the classifier.
        """
        has_steps = isinstance(estimator, Pipeline) and len(estimator.steps) > 1
        if not has_steps or not is_column_wise(estimator) or not X.shape[1]:
            return cls(None, estimator, True, X=X, Z=X)
        require_probabilities(estimator)
        steps = fit_steps(estimator[:-1], X, None, weight)
        return cls(steps, last_step(estimator), True, X=X, Z=apply_steps(steps, X))

    @property
    def is_tunable(self) -> bool:
        """Whether the classifier is a `RidgeLogistic` whose fits to these rows are still to be prepared."""
        return type(self.classifier) is RidgeLogistic and self.batch is None and _is_numeric(self.Z)

    def tuned(
        self,
        codes: Codes,
        targets: Sequence[Target],
        weight: Floats | None,
        groups: Codes | None = None,
    ) -> PreparedFeatures:
        """Choose the penalty of a `RidgeLogistic`, if that is open, and prepare its columns for many fits.

        Parameters
        ----------
        codes : int array, shape (n, v)
            All class variables.
        targets : sequence of Target
            What the fits are to predict; by these the penalty is chosen.
        weight : array, shape (n,), or None
        groups : int array, shape (n,), optional
            Rows of one group are held out together.
        """
        classifier = self.classifier
        if not self.is_tunable:
            return self
        batch = logistic_batch(self.Z, weight, tol=classifier.tol, max_iter=classifier.max_iter)
        if classifier.C == "auto":
            C = choose_for_rows(self.X, self.Z, codes, targets, weight, groups, batch)
            classifier = _with_strength(classifier, C)
        batch = None if batch is None else batch.with_strength(float(classifier.C))
        return replace(self, classifier=classifier, batch=batch)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (n, d) of the features as they were given."""
        return tuple(self.X.shape)

    @property
    def is_compiled(self) -> bool:
        """Whether all fits are compiled regressions, or frequencies."""
        return isinstance(self.batch, LogisticBatch) or self.classifier is None

    @property
    def is_batched(self) -> bool:
        """Whether nothing but compiled code and numpy is needed for the classifiers of blocks."""
        return self.batch is not None or self.classifier is None

    def ready(self, X: Features) -> Features:
        """Return the inputs of the classifiers for further rows, or for rows that are prepared already."""
        if isinstance(X, PreparedFeatures):
            return X.Z
        if self.classifier is None:
            return np.zeros((n_rows(X), 0))
        Z = apply_steps(self.steps, X)
        return Z if self.layout is None else self.layout.encode(Z)

    def further(self, X: Features) -> PreparedFeatures:
        """Return further rows, prepared once for all models that share these steps."""
        return X if isinstance(X, PreparedFeatures) else replace(self.without_rows(), X=X, Z=self.ready(X))

    def take(self, rows: Codes) -> PreparedFeatures:
        """Return some rows, by position in increasing order, to be predicted."""
        if len(rows) == n_rows(self.Z):
            return self
        alone = None if self.alone is None else self.alone[rows]
        return replace(self, Z=take_rows(self.Z, rows), batch=None, alone=alone, rows=rows)

    @property
    def given(self) -> Features:
        """The features of these rows as they were given."""
        return self.X if self.rows is None else take_rows(self.X, self.rows)

    def without_rows(self) -> PreparedFeatures:
        """Return a copy without the training rows, for prediction."""
        return replace(self, X=None, Z=None, batch=None, alone=None, share=None)

    def fit(
        self,
        y: Codes,
        blocks: Codes,
        n_blocks: int,
        n_classes: int,
        weight: Floats | None = None,
        *,
        extra: Floats | None = None,
        groups: Codes | None = None,
        n_jobs: int | None = None,
        lenient: bool = True,
    ) -> BlockClassifiers:
        """Fit one classifier to each block (n,) of codes y (n,); rows where either is `UNKNOWN` are left out.

        Parameters
        ----------
        extra : array, shape (n, p), optional
            Further columns beside Z, for this fit alone; see `takes_columns`.
        groups : int array, shape (n,), optional
            Groups of rows; see `LocalModel.fit`.
        lenient : bool
            Whether a block is left without a classifier where the rows do not suffice for one, as for
            neighbours or cross-validation inside of the classifier; otherwise its error is raised.
        """
        if self.classifier is None:
            return ManyLogistic.from_frequencies(class_weights(y, blocks, n_blocks, n_classes, weight))
        if self.batch is None:
            return _fit_each(self, y, blocks, n_blocks, n_classes, weight, groups, n_jobs, lenient)
        if isinstance(self.batch, BayesBatch):
            return self.batch.fit(y, blocks, n_blocks, n_classes, weight)
        return self.batch.fit(y, blocks, n_blocks, n_classes, weight, extra=extra, n_jobs=n_jobs)


@dataclass(frozen=True)
class Base:
    """One classifier for all rows, smoothed: the model without parents p_0(y | x).

    Parameters
    ----------
    experts : BlockClassifiers
        Of one block.
    share : array, shape (k,)
        Of the pseudo-row; see `tuplet.local.smoothing`.
    """

    experts: BlockClassifiers
    share: Floats

    @classmethod
    def fit(
        cls,
        prepared: PreparedFeatures,
        child: Codes,
        card: int,
        weight: Floats | None,
        extra: Floats | None = None,
        groups: Codes | None = None,
    ) -> Base:
        """Learn from all rows whose child (n,) is known, if given with `extra` columns beside theirs."""
        one_block = np.zeros(len(child), dtype=np.intp)
        experts = prepared.fit(child, one_block, 1, card, weight, extra=extra, groups=groups, lenient=False)
        return cls(experts, pseudo_row(label_counts(child, card, weight)))

    def proba(self, Z: Features) -> Floats:
        """Probabilities (n, k) of prepared rows, none of them zero."""
        return with_pseudo_row(self.experts.table(Z)[0].T, self.share)


@dataclass(frozen=True)
class ManyClassifiers:
    """Any classifiers, None for blocks without one; see `BlockClassifiers`."""

    classifiers: tuple[SmoothedClassifier | None, ...]
    totals: Floats
    card: int

    def proba(self, Z: Features, blocks: Codes) -> Floats:
        """See `BlockClassifiers.proba`."""
        answer = np.zeros((len(blocks), self.card))
        for g in np.unique(blocks[blocks != UNKNOWN]):
            rows = np.flatnonzero(blocks == g)
            answer[rows] = _proba(self.classifiers[g], take_rows(Z, rows), self.card)
        return answer

    def table(self, Z: Features) -> Floats:
        """See `BlockClassifiers.table`."""
        n, q = n_rows(Z), len(self.classifiers)
        require_size(f"Probabilities by {q:,} classifiers", q * n, self.card)
        answer = np.empty((q, self.card, n))
        for g, classifier in enumerate(self.classifiers):
            answer[g] = _proba(classifier, Z, self.card).T
        return answer


# -- steps before the classifier ---------------------------------------------------------------------------


def fit_steps(steps: Pipeline, X: Features, child: Codes | None, weight: Floats | None) -> Pipeline | None:
    """Fit a clone of the steps to the rows whose child (n,) is known and that have weight.

    Without a child, for steps that do not use labels, to all rows that have weight.
    """
    used = used_rows(np.zeros(n_rows(X), dtype=np.intp) if child is None else child, weight)
    if not used.all():
        X, child = take_rows(X, used), None if child is None else child[used]
        weight = None if weight is None else weight[used]
    fitted = []
    for name, step in steps.steps:
        if step not in (None, "passthrough"):
            weights = {} if weight is None else dict.fromkeys(weight_keys(step), weight)
            fitted.append((name, clone(step).fit(X, child, **weights)))
            if len(fitted) < len(steps.steps):
                X = apply_steps(Pipeline(fitted[-1:]), X)
    return Pipeline(fitted) if fitted else None


def apply_steps(steps: Pipeline | None, X: Features) -> Features:
    """Return the inputs of a classifier: what the fitted steps before it make of X.

    Means that are subtracted and scales that are divided by take a fraction of the time that the checks and
    copies of scikit-learn's transformers take, which matters for single rows as for a million.
    """
    if steps is None:
        return X
    scaled = _scaled(steps, X) if isinstance(X, np.ndarray) and X.dtype == np.float64 else None
    return steps.transform(X) if scaled is None else scaled


def _scaled(steps: Pipeline, X: Floats) -> Floats | None:
    """Return X as imputers and scalers transform it; None for other steps or missing values.

    Blocks of rows stay in the cache of a core from the first operation to the last.
    """
    operations = _operations(steps)
    if operations is None:
        return None
    Z, total = np.empty_like(X), 0.0
    for rows in row_blocks(len(X), X.shape[1], CACHE_CELLS):
        part = X[rows]
        for apply, values in operations:
            part = apply(part, values, out=Z[rows])
        total += part.sum()
    if not np.isfinite(total):
        return None
    return Z if operations else X


def _operations(steps: Pipeline) -> list[tuple[np.ufunc, Floats]] | None:
    """Return what imputers and scalers do with columns without missing values; None for other steps."""
    answer: list[tuple[np.ufunc, Floats]] = []
    for _, step in steps.steps:
        if type(step) is LimitedScaler:
            answer += [(np.maximum, step.limits_.low), (np.minimum, step.limits_.high)]
        if type(step) in (StandardScaler, LimitedScaler):
            scaled = ((np.subtract, step.mean_), (np.divide, step.scale_))
            answer += [(apply, values) for apply, values in scaled if values is not None]
        elif type(step) is not SimpleImputer or not _leaves_alone(step):
            return None
    return answer


def _leaves_alone(imputer: SimpleImputer) -> bool:
    """Return whether input without NaN comes out of an imputer as it is."""
    kept = not imputer.add_indicator and not np.isnan(imputer.statistics_).any()
    return kept and imputer.missing_values is not None and bool(np.isnan(imputer.missing_values))


def used_rows(child: Codes, weight: Floats | None) -> npt.NDArray[np.bool_]:
    """Return which rows (n,) are learnt from: the child is known, and the weight is not zero."""
    known = child != UNKNOWN
    return known if weight is None else known & (weight > 0)


# -- penalties that are chosen -----------------------------------------------------------------------------


def with_chosen_penalty(
    estimator: Any,
    X: Features,
    codes: Codes,
    cards: Sequence[int],
    weight: Floats | None,
    groups: Codes | None = None,
    *,
    least: float = 0.0,
) -> Any:
    """Return an estimator whose `RidgeLogistic` has the C that suits all class variables; any other as it is.

    Parameters
    ----------
    estimator : classifier
    X : features, n rows
    codes : int array, shape (n, m)
    cards : sequence of int
    weight : array, shape (n,), or None
    groups : int array, shape (n,), optional
        Rows of one group are held out together.
    least : float
        Least C that is taken.
    """
    if not is_column_wise(estimator) or type(last_step(estimator)) is not RidgeLogistic:
        return estimator
    prepared = PreparedFeatures.make_unbatched(estimator, X, weight)
    if not _is_open(last_step(estimator), prepared.Z):
        return estimator
    targets = [Target(y, card) for y, card in zip(codes.T, cards, strict=True)]
    C = max(least, choose_for_rows(X, prepared.Z, codes, targets, weight, groups))
    changed = clone(estimator)
    last_step(changed).set_params(C=C)
    return changed


def _is_open(classifier: Any, Z: Features) -> bool:
    return type(classifier) is RidgeLogistic and classifier.C == "auto" and _is_numeric(Z)


def _with_strength(classifier: RidgeLogistic, C: float) -> RidgeLogistic:
    return clone(classifier).set_params(C=C)


def _is_numeric(Z: Any) -> bool:
    """Return whether Z is an array or a sparse matrix of finite numbers."""
    return (isinstance(Z, np.ndarray) or sparse.issparse(Z)) and _has_finite_sum(Z)


def _has_finite_sum(Z: Any) -> bool:
    return bool(np.isfinite(Z.sum()))


# -- fits of all blocks at once ----------------------------------------------------------------------------


def make_batch(classifier: Any, Z: Features, weight: Floats | None) -> LogisticBatch | BayesBatch | None:
    """Return the batch for a classifier and all rows, or None if it must be fitted block by block."""
    if not isinstance(Z, np.ndarray):
        return None
    if is_plain_logistic(classifier):
        return LogisticBatch(Z, weight, C=classifier.C, tol=classifier.tol, max_iter=classifier.max_iter)
    if is_plain_bayes(classifier) and _is_moderate(Z):
        layout = BayesLayout.make(Z, classifier.categorical, classifier.alpha, classifier.variance_floor)
        return BayesBatch(Z, layout) if len(Z) * layout.width <= _MAX_CELLS else None
    return None


def is_plain_bayes(classifier: Any) -> bool:
    """Return whether a classifier is a `MixedNaiveBayes` with settings that it would accept."""
    if type(classifier) is not MixedNaiveBayes:
        return False
    return bool(0 < classifier.alpha < np.inf and 0 < classifier.variance_floor < np.inf)


def _is_moderate(Z: Any) -> bool:
    """Return whether an array holds numbers, none of them huge or infinite; some may be missing."""
    return Z.dtype.kind in "fiub" and not (np.abs(Z.astype(np.float64, copy=False)) > _LARGEST).any()


# -- fits one by one ---------------------------------------------------------------------------------------


def _fit_each(
    prepared: PreparedFeatures,
    y: Codes,
    blocks: Codes,
    q: int,
    k: int,
    weight: Floats | None,
    groups: Codes | None,
    n_jobs: int | None,
    lenient: bool,
) -> ManyClassifiers:
    used = np.flatnonzero(used_rows(y, weight) & (blocks != UNKNOWN))
    order, starts = sort_into_blocks(blocks[used], q)
    parts = np.split(used[order], starts[1:-1])
    filled = [g for g, rows in enumerate(parts) if len(rows)]
    given = prepared.classifier, prepared.Z, y, k, weight, groups
    tasks = [(*given, parts[g], lenient) for g in filled]
    fitted: list[SmoothedClassifier | None] = [None] * q
    for g, classifier in zip(filled, run_many(_fit_one, tasks, n_jobs), strict=True):
        fitted[g] = classifier
    totals = [0.0 if each is None else each.counts.sum() for each in fitted]
    return ManyClassifiers(tuple(fitted), np.array(totals), k)


def _fit_one(
    classifier: Any,
    Z: Features,
    y: Codes,
    k: int,
    weight: Floats | None,
    groups: Codes | None,
    rows: Codes,
    lenient: bool,
) -> SmoothedClassifier | None:
    inputs, some = take_rows(Z, rows), None if weight is None else weight[rows]
    together = None if groups is None else groups[rows]
    try:
        # Some raise only in prediction, and some divide by a variance of zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = SmoothedClassifier.fit(classifier, inputs, y[rows], k, some, together)
            _proba(fitted, take_rows(inputs, np.zeros(1, dtype=np.intp)), k)
    except ValueError:
        if lenient:
            return None
        raise
    return fitted


def _proba(fitted: SmoothedClassifier | None, Z: Features, k: int) -> Floats:
    """Probabilities (n, k) of a calibrated classifier, zero for classes that it was not fitted to."""
    answer = np.zeros((n_rows(Z), k))
    if fitted is None:
        return answer
    if fitted.estimator is None:
        answer[:, fitted.classes] = 1.0
        return answer
    answer[:, fitted.classes] = fitted.proba(Z)
    return answer

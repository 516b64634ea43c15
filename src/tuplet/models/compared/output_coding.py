"""Codes of label vectors that are easy to predict and hard to confuse, decoded together with the labels.

A ridge regression of the labels gives predictions for the training rows that leave each row out; from these
a metric with a large margin is learned, and the codes are its directions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.utils import Tags

from tuplet.core.exceptions import ConvergenceWarning, InputError, IntractableError
from tuplet.core.limits import BLOCK_CELLS, row_blocks
from tuplet.core.parameters import Number, Whole, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.belief import BeliefPropagation
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.joint.inference.factor import Factor
from tuplet.local.cross_fitting import Positions, cross_fit, inner_folds
from tuplet.local.logistic import fit_scaler
from tuplet.local.smoothing import smoothed_frequencies
from tuplet.local.stacked import Link, fit_links, log_proba_alone
from tuplet.models.base import JointClassifier
from tuplet.models.prior import bounded_joint
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, as_matrix, n_rows, require_size, take_rows

_EXACT_LABELS = 18
"""Labels beyond which queries are approximate, unless an engine is given: 2^18 cells for each row."""

_MOST_LABELS = 120
"""Labels beyond which learning the codes of a few thousand rows takes minutes."""

_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
"""Penalties that are tried for the regression of labels on features."""

_N_FOLDS = 3
"""Folds that temper the decoder."""

_SWEEPS = 200
"""Largest number of sweeps of coordinate ascent over the labels."""

_SMALL_STEP = 1e-6
"""A row is done when no label moves further in a sweep."""


@final
class OutputCodingClassifier(JointClassifier):
    """Maximum margin output coding of binary labels: MMOC.

    Directions v_k in the space of label vectors are learned such that the codes v_k y of the true labels
    are near their predictions from x, and those of any other label vector far from them. Labels are then
    decoded from predictions of the codes and of the labels themselves.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers, optional
        Any scikit-learn classifier with `predict_proba`, for the labels themselves; `default_estimator()`,
        imputed and standardised logistic regression, if None.
    label_weight : float
        Weight of the labels' own classifiers against that of the codes: the paper's decoding parameter. 0
        decodes from codes alone.
    n_codes : int, optional
        Largest number of codes; those with the largest eigenvalues of the learned metric are kept.
    C : float
        Price of confusions when the codes are learned.
    max_cuts : int
        Largest number of cutting planes.
    tol : float
        Relative gap to the optimum at which learning the codes ends.
    engine : "auto" or Engine
        How the decoder is queried; "auto" is `Exact()` for up to 18 labels, otherwise `BeliefPropagation()`,
        whose answers are approximations, marked as such.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    n_jobs : int, optional
        Fits of the labels' classifiers that run side by side, by joblib.

    Attributes
    ----------
    codes_ : array, shape (n_codes, m)
        The directions v_k.
    code_variances_ : array, shape (n_codes,)
        Variance of the codes around predictions by regressions that have not seen the row.
    metric_ : MarginMetric
        What the codes come from, with its objective and its gap to the optimum.
    regression_ : LabelRegression
        Of the labels on x; the codes' predictions follow from it, because they are linear in the labels.
    models_ : list of StackedModel
        The labels' own classifiers.
    decoder_share_ : float
        Share b of the decoder's scores in log p(y | x).

    Notes
    -----
    The decoder is the graphical model

        s(y) = label_weight * sum_j log p_j(y_j | x) - sum_k (v_k y - v_k f(x))^2 / (2 s_k^2),

    a Bernoulli potential for each label and a Gaussian one for each code. It is a pairwise field, and
    decisions maximise it exactly where `engine` is exact (the paper decodes by mean fields). Its
    probabilities count the information of x twice, once by the labels and once by the codes, so they would
    be more extreme than they should be. So its scores are mixed with the training frequencies f of labels:

        log p(y | x) = b s(y) + (1 - b) sum_j log f_j(y_j) + const,

    where b, from 0 to 1, makes each label of a held-out row most probable given the others (Besag's
    pseudo-likelihood, which needs no sum over all label vectors).

    The codes are the eigenvectors of the metric Q = sum_k v_k v_k' that `fit_metric` finds, scaled by the
    roots of its eigenvalues. This is a reconstruction: the max-margin criterion, its form as metric
    learning, the relaxation of label vectors to a cube, cutting planes and the decoder are the paper's; the
    squared Frobenius norm of Q as its penalty, Hamming distance as margin, ridge regression whose answers
    about the training rows are those of leaving them out (so that codes that only look predictable are
    not preferred), and s_k^2 from the same, are choices made here.

    A missing label is held at its prediction while the codes are learned.

    References
    ----------
    Y. Zhang, J. Schneider, Maximum margin output coding, ICML 2012; and for the decoder Multi-label output
    codes using canonical correlation analysis, AISTATS 2011.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] < 0.2, X[:, 1] > 0]).astype(int)
    >>> model = OutputCodingClassifier().fit(X, Y)
    >>> model.predict([[1.5, 1.5], [-1.5, -1.5]], loss="subset")
    array([[1, 0, 1],
           [0, 1, 0]])
    """

    _parameters = declare(
        "columns estimator n_jobs",
        label_weight=Number(at_least=0),
        n_codes=(Whole(at_least=0), None),
        C=Number(above=0),
        max_cuts=Whole(at_least=1),
        tol=Number(above=0),
        engine=("auto", Engine),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        label_weight: float = 1.0,
        n_codes: int | None = None,
        C: float = 1.0,
        max_cuts: int = 200,
        tol: float = 1e-3,
        engine: Any = "auto",
        columns: ColumnChoices = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.label_weight = label_weight
        self.n_codes = n_codes
        self.C = C
        self.max_cuts = max_cuts
        self.tol = tol
        self.engine = engine
        self.columns = columns
        self.n_jobs = n_jobs

    @property
    def _note(self) -> str:
        return "scores of a decoder, tempered by held-out rows"

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        self._require_binary()
        self._require_few_labels()
        self.models_ = self._fit_labels(X, codes, np.arange(len(codes)), sample_weight)
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        varies = [len(np.unique(code[code != UNKNOWN])) > 1 for code in codes.T]
        self.coded_ = np.flatnonzero(varies)
        self.scaler_ = fit_scaler(as_matrix(X, "Codes of labels"), sample_weight)
        self._learn_codes(self._numbers(X), codes[:, self.coded_], weights)
        self.decoder_share_ = self._learn_share(X, codes, sample_weight)

    def _require_binary(self) -> None:
        wide = [name for name, card in zip(self.space_.names, self.space_.cards, strict=True) if card > 2]
        if wide:
            raise InputError(
                "Only binary classification is supported. The type of the target is multiclass:"
                f" OutputCodingClassifier codes 0/1 labels, but {wide[0]!r} has more than two; use"
                " RandomFieldClassifier or ChainClassifier."
            )

    def _require_few_labels(self) -> None:
        if (m := self.space_.n_variables) > _MOST_LABELS:
            raise IntractableError(
                f"OutputCodingClassifier would take minutes to learn codes of {m} labels (limit"
                f" {_MOST_LABELS}); drop rare labels, or use StackedFeaturesClassifier, ChainClassifier or"
                " SharedForestClassifier."
            )

    def _numbers(self, X: Features) -> Floats:
        scaled: Any = self.scaler_.transform(as_matrix(X, "Codes of labels"))
        if not sparse.issparse(X):
            return np.asarray(scaled)
        require_size("The regression of labels on sparse features", *scaled.shape)
        return np.asarray(scaled.toarray())

    def _learn_codes(self, X: Floats, codes: Codes, weights: Floats) -> None:
        """Learn regression, metric, codes and their variances from the labels that vary."""
        known = codes != UNKNOWN
        self.regression_ = fit_labels(X, codes, weights)
        unseen = self.regression_.unseen
        self.metric_ = fit_metric(
            codes.astype(float), unseen, known, weights, C=self.C, tol=self.tol, max_cuts=int(self.max_cuts)
        )
        values, vectors = np.linalg.eigh(self.metric_.metric)
        order = np.argsort(values)[::-1][: self.n_codes]
        kept = order[values[order] > 1e-6 * max(values.max(initial=0.0), 1e-12)]
        self.codes_ = (vectors[:, kept] * np.sqrt(values[kept])).T
        covariance = _covariance(np.where(known, codes - unseen, 0.0), known, weights)
        spread = np.einsum("kj,ji,ki->k", self.codes_, covariance, self.codes_)
        # Covariances of labels that are known in different rows need not be those of any vector.
        self.code_variances_ = np.maximum(spread, 1e-3 * (self.codes_**2).sum(axis=1))

    def _learn_share(self, X: Features, codes: Codes, sample_weight: Floats | None) -> float:
        """Return the share of the decoder's scores with which held-out labels are most probable."""
        held = cross_fit(
            inner_folds(X, codes, sample_weight, _N_FOLDS, self.space_, groups=self._groups),
            lambda rows, weights: self._fit_labels(X, codes, rows, weights),
            lambda models, rows: self._label_logits(models, take_rows(X, rows)),
        )
        if not held.predictions or not len(self.coded_):
            return 1.0
        coded, precision = codes[held.rows][:, self.coded_], self._precision()
        near = self.regression_.unseen[held.rows]
        others = np.where(coded == UNKNOWN, near, coded)
        own = np.vstack(held.predictions)[:, self.coded_]
        scores = own + near @ precision - 0.5 * np.diag(precision)
        scores -= others @ (precision - np.diag(np.diag(precision)))
        base = self._log_frequencies()[self.coded_]
        weight = np.ones(len(coded)) if held.weights is None else held.weights
        return best_share(scores, base[:, 1] - base[:, 0], coded, weight)

    def _fit_labels(self, X: Features, codes: Codes, rows: Positions, weights: Floats | None) -> list[Any]:
        """Fit the labels' own classifiers to some rows."""
        return fit_links(
            [Link(j, ()) for j in range(self.space_.n_variables)],
            take_rows(X, rows),
            codes[rows],
            weights,
            space=self.space_,
            estimators=self._estimators(self.space_.names),
            n_jobs=self.n_jobs,
            groups=None if self._groups is None else self._groups[rows],
        )

    def _label_logits(self, models: list[Any], X: Features) -> Floats:
        """Return the weighted log-odds (n, m) of the labels by their own classifiers; 0 of constant ones."""
        tables = log_proba_alone(models, X)
        odds = [table[:, -1] - table[:, 0] for table in tables]
        return np.asarray(self.label_weight * np.column_stack(odds))

    def _precision(self) -> Floats:
        return (self.codes_.T / self.code_variances_) @ self.codes_

    def _log_frequencies(self) -> Floats:
        """Return the log-frequencies (m, 2) of the labels, zeros in the second column of constant ones."""
        rows = [np.log(smoothed_frequencies(counts)) for counts in self.label_counts_]
        return np.array([[row[0], row[1] if len(row) > 1 else 0.0] for row in rows])

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        share = self.decoder_share_
        tables = [share * self.label_weight * table.T for table in log_proba_alone(self.models_, X)]
        precision = share * self._precision()
        predicted = np.clip(self.regression_.predict(self._numbers(X)), 0.0, 1.0)
        pull = predicted @ precision - 0.5 * np.diag(precision)
        for place, j in enumerate(self.coded_):
            tables[j][1] += pull[:, place]
        for table, log_frequencies in zip(tables, self._log_frequencies(), strict=True):
            table += (1.0 - share) * log_frequencies[: len(table), None]
        factors = [Factor((j,), table) for j, table in enumerate(tables)]
        factors += self._pairs(precision)
        graph = FactorGraph(self.space_.cards, factors, n=n_rows(X), engine=self._engine())
        return bounded_joint(graph, self.label_counts_)

    def _pairs(self, precision: Floats) -> list[Factor]:
        """What two labels that are both 1 add to the distance between codes, with its sign turned."""
        factors = []
        for a, b in zip(*np.triu_indices(len(precision), 1), strict=True):
            table = np.zeros((2, 2, 1))
            table[1, 1] = -precision[a, b]
            factors.append(Factor((int(self.coded_[a]), int(self.coded_[b])), table))
        return factors

    def _engine(self) -> Engine:
        if isinstance(self.engine, Engine):
            return self.engine
        return Exact() if len(self.coded_) <= _EXACT_LABELS or not len(self.codes_) else BeliefPropagation()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def best_share(scores: Floats, base: Floats, codes: Codes, weights: Floats) -> float:
    """Return the b in [0, 1] with which log-odds b * scores + (1 - b) * base make labels most probable.

    Parameters
    ----------
    scores : array, shape (n, m)
    base : array, shape (m,)
    codes : array of int, shape (n, m)
        0, 1, or `UNKNOWN`.
    weights : array, shape (n,)

    Examples
    --------
    >>> codes = np.array([[1], [1], [1], [0]])
    >>> round(best_share(np.full((4, 1), 2 * np.log(3)), np.zeros(1), codes, np.ones(4)), 3)
    0.5
    """
    known = codes != UNKNOWN
    difference, weight = scores - base, np.where(known, weights[:, None], 0.0)

    def slope(b: float) -> float:
        return float((weight * (codes - expit(base + b * difference)) * difference).sum())

    if slope(0.0) <= 0.0:  # the log-likelihood is concave in b
        return 0.0
    return 1.0 if slope(1.0) >= 0.0 else float(brentq(slope, 0.0, 1.0, xtol=1e-6))


# -- regression of the labels ------------------------------------------------------------------------------


class LabelRegression(NamedTuple):
    """Linear regression of m labels, with predictions for the training rows that leave each row out."""

    coef: Floats  # (d, m)
    intercept: Floats  # (m,)
    unseen: Floats  # (n, m)
    penalty: Floats  # (m,) the penalty that was chosen for each label

    def predict(self, X: Floats) -> Floats:
        """Expected labels (n, m), not confined to [0, 1]."""
        return X @ self.coef + self.intercept


def fit_labels(
    X: Floats, codes: Codes, weights: Floats, penalties: Sequence[float] = _PENALTIES
) -> LabelRegression:
    """Regress 0/1 labels on X, each on the rows that have it, with the penalty of the least error.

    The error is that of leaving out one row, or one unit of the weight of a row, at a time; it needs no
    further fits, since a row's residual r then becomes r / (1 - leverage).

    Parameters
    ----------
    X : array, shape (n, d)
    codes : array of int, shape (n, m)
        0, 1, or `UNKNOWN`.
    weights : array, shape (n,)
    penalties : sequence of float
        To choose from, for all labels that are known in the same rows together.
    """
    (n, m), d = codes.shape, X.shape[1]
    coef, intercept, unseen, penalty = np.zeros((d, m)), np.zeros(m), np.zeros((n, m)), np.zeros(m)
    known = codes != UNKNOWN
    patterns, which = np.unique(known, axis=1, return_inverse=True)
    for p, rows in enumerate(patterns.T):
        labels = np.flatnonzero(which.ravel() == p)
        used = slice(None) if rows.all() else np.flatnonzero(rows)  # no copy of X where all labels are known
        Y = codes[:, labels][used].astype(float)
        B, c, r, best = _ridge(X[used], Y, weights[used], np.asarray(penalties, dtype=float))
        coef[:, labels], intercept[labels], penalty[labels] = B, c, best
        predicted = X @ B + c
        predicted[used] = Y - r
        unseen[:, labels] = predicted
    return LabelRegression(coef, intercept, unseen, penalty)


def _ridge(X: Floats, Y: Floats, weights: Floats, penalties: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Coefficients (d, m), intercepts (m,), left-out residuals (n, m) and the best of the penalties."""
    ridge = _Ridge(X, Y, weights)
    errors = np.zeros(len(penalties))
    for rows in ridge.blocks():
        errors += [(weights[rows] @ ridge.left_out(rows, penalty) ** 2).sum() for penalty in penalties]
    best = float(penalties[int(np.argmin(errors))])
    residual = np.empty(Y.shape)
    for rows in ridge.blocks():
        residual[rows] = ridge.left_out(rows, best)
    coef = ridge.axes @ (ridge.target / (ridge.spread + best)[:, None])
    return coef, ridge.y_mean - ridge.x_mean @ coef, residual, best


class _Ridge:
    """Regressions of Y (n, m) on X (n, d) for any penalty, block by block: no further array as large as X.

    With weighted and centred rows A, principal axes V and squared singular values s^2, predictions are
    A V (s^2 + penalty)^-1 V' A' Y.
    """

    def __init__(self, X: Floats, Y: Floats, weights: Floats) -> None:
        self.X, self.Y, self.weights = X, Y, weights
        self.total = weights.sum()
        self.x_mean, self.y_mean = weights @ X / self.total, weights @ Y / self.total
        _, values, axes = np.linalg.svd(self._triangle(), full_matrices=False)
        self.spread, self.axes = values**2, axes.T
        cross = sum(self._rows(rows).T @ self._labels(rows) for rows in self.blocks())
        self.target = self.axes.T @ cross

    def blocks(self) -> Iterator[slice]:
        """Cut the rows into blocks that are not wider than they are long."""
        n, d = self.X.shape
        return row_blocks(n, 4 * d, max(BLOCK_CELLS, 4 * d * d))

    def _triangle(self) -> Floats:
        """Return a matrix with the singular values and axes of all rows: of a QR decomposition in blocks."""
        parts = np.zeros((0, self.X.shape[1]))
        for rows in self.blocks():
            parts = np.asarray(np.linalg.qr(np.vstack([parts, self._rows(rows)]), mode="r"))
        return parts

    def _rows(self, rows: slice) -> Floats:
        return np.sqrt(self.weights[rows])[:, None] * (self.X[rows] - self.x_mean)

    def _labels(self, rows: slice) -> Floats:
        return np.sqrt(self.weights[rows])[:, None] * (self.Y[rows] - self.y_mean)

    def left_out(self, rows: slice, penalty: float) -> Floats:
        """Residuals (r, m) of some rows by regressions without a unit of each row."""
        turned, shrink = self._rows(rows) @ self.axes, 1.0 / (self.spread + penalty)
        root, weights = np.sqrt(self.weights[rows])[:, None], self.weights[rows][:, None]
        residual = (self.Y[rows] - self.y_mean) - turned @ (shrink[:, None] * self.target) / root
        leverage = (turned**2 @ shrink)[:, None] / weights + 1.0 / self.total
        return residual / np.maximum(1.0 - np.minimum(weights, 1.0) * leverage, 1e-8)


def _covariance(residual: Floats, known: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """Covariance (m, m) around 0 of residuals (n, m), each pair over the rows in which both are known."""
    total = (known.T * weights) @ known
    return ((residual.T * weights) @ residual) / np.maximum(total, np.finfo(float).tiny)


# -- metric of the codes -----------------------------------------------------------------------------------


class MarginMetric(NamedTuple):
    """The result of `fit_metric`."""

    metric: Floats  # (m, m), symmetric, no negative eigenvalue
    objective: float
    gap: float  # objective less a lower bound on the least possible one
    n_cuts: int


def fit_metric(
    labels: Floats,
    predicted: Floats,
    known: npt.NDArray[np.bool_],
    weights: Floats,
    *,
    C: float,
    tol: float,
    max_cuts: int,
) -> MarginMetric:
    """Least Q with the true label vectors near, and all others far from, the predictions.

        min  1/2 |Q|^2 + C mean_i xi_i   over symmetric Q without negative eigenvalues,   such that
        |y - f_i|_Q^2 - |y_i - f_i|_Q^2 >= hamming(y_i, y) - xi_i   for all y in [0, 1]^m

    where |v|_Q^2 = v Q v. The corners of the cube are the label vectors; its inside is there because the
    most violated constraint over the whole cube is found exactly, by maximising a concave function. Each
    round adds the mean of all rows' most violated constraints as one cut and solves for all cuts so far.

    Parameters
    ----------
    labels, predicted : arrays, shape (n, m)
        True 0/1 labels y_i and predictions f_i.
    known : array of bool, shape (n, m)
        Labels that are not known are held at their predictions: they add no loss and no distance.
    weights : array, shape (n,)
    C : float
        Price of violations.
    tol : float
        Largest gap to the optimum, relative to the objective.
    max_cuts : int
    """
    share = weights / weights.sum()
    m = labels.shape[1]
    truth = np.where(known, labels, predicted)
    Q, alpha = np.zeros((m, m)), np.zeros(0)
    losses, slopes = np.zeros(0), np.zeros((0, m, m))
    answer, rivals = MarginMetric(Q, np.inf, np.inf, 0), truth.copy()
    lower = 0.0
    for n_cuts in range(1, max_cuts + 1):
        rivals = impostors(Q, truth, predicted, known, rivals)
        loss, slope, slack = _cut(Q, truth, rivals, predicted, share)
        objective = 0.5 * float((Q**2).sum()) + C * slack
        if objective < answer.objective:
            answer = answer._replace(metric=Q, objective=objective)
        answer = answer._replace(gap=answer.objective - lower, n_cuts=n_cuts)
        if answer.gap <= tol * max(answer.objective, 1e-12):
            return answer
        losses, slopes = np.append(losses, loss), np.concatenate([slopes, slope[None]])
        alpha, Q = _solve(losses, slopes, np.append(alpha, 0.0), C)
        lower = float(losses @ alpha) - 0.5 * float((Q**2).sum())
    warnings.warn(
        f"The metric of the output codes has not converged with {max_cuts} cuts (gap {answer.gap:.1e} of"
        f" {answer.objective:.1e}); raise max_cuts or tol.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return answer


def impostors(
    Q: Floats, truth: Floats, predicted: Floats, known: npt.NDArray[np.bool_], start: Floats
) -> Floats:
    """Vectors (n, m) of the cube that are near the predictions though far from the truth.

    They maximise hamming(y_i, y) - |y - f_i|_Q^2, by coordinate ascent for all rows at once; it is concave,
    and separable constraints make coordinate-wise optima optimal.
    """
    # Labels on the first axis: one label of all rows is then one piece of memory.
    gain = np.where(known, 0.5 - truth, 0.0).T  # half of what a unit of the label is worth
    answer, active = start.T.copy(), np.arange(len(truth))
    pull = Q @ (answer - predicted.T)
    for _ in range(_SWEEPS):
        y, near, worth, free = answer[:, active], pull[:, active], gain[:, active], known.T[:, active]
        largest = np.zeros(len(active))
        for j in range(len(Q)):
            slope = worth[j] - near[j]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                best = np.clip(y[j] + slope / Q[j, j], 0.0, 1.0)
            step = np.where(free[j] & (slope != 0.0), best - y[j], 0.0)
            y[j] += step
            near += Q[j][:, None] * step
            np.maximum(largest, np.abs(step), out=largest)
        answer[:, active], pull[:, active] = y, near
        active = active[largest > _SMALL_STEP]
        if not len(active):
            break
    return answer.T


def _cut(
    Q: Floats, truth: Floats, rivals: Floats, predicted: Floats, share: Floats
) -> tuple[float, Floats, float]:
    """Mean loss of the rivals, scatter of theirs less that of the truth (m, m), and the mean slack at Q."""
    loss = np.abs(truth - rivals).sum(axis=1)
    near, far = truth - predicted, rivals - predicted
    slack = loss + ((near @ Q) * near).sum(axis=1) - ((far @ Q) * far).sum(axis=1)
    used = share * (slack > 0)
    slope = (far.T * used) @ far - (near.T * used) @ near
    return float(used @ loss), slope, float(share @ np.maximum(slack, 0.0))


def _solve(losses: Floats, slopes: Floats, start: Floats, C: float) -> tuple[Floats, Floats]:
    """Multipliers (t,) and metric for the cuts so far, by an accelerated gradient method on the dual.

    The dual is losses . alpha - 1/2 |P(sum_t alpha_t slopes_t)|^2 over alpha >= 0 with sum at most C, where P
    leaves out negative eigenvalues; the metric is what stands inside the norm.
    """
    flat = slopes.reshape(len(slopes), -1)
    step = 1.0 / max(float(np.linalg.eigvalsh(flat @ flat.T)[-1]), 1e-12)
    alpha = ahead = start
    momentum = 1.0
    for _ in range(2000):
        gradient = losses - flat @ _nonnegative(ahead, slopes).ravel()
        new = _onto_simplex(ahead + step * gradient, C)
        change = new - alpha
        if change @ gradient < 0:  # momentum has overshot: start it again
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * change
        alpha, momentum = new, following
        if np.abs(change).max() <= 1e-9 * C:
            break
    return alpha, _nonnegative(alpha, slopes)


def _nonnegative(alpha: Floats, slopes: Floats) -> Floats:
    values, vectors = np.linalg.eigh(np.tensordot(alpha, slopes, axes=1))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _onto_simplex(point: Floats, total: float) -> Floats:
    """Nearest point whose entries are not negative and sum to `total` at most."""
    positive = np.maximum(point, 0.0)
    if positive.sum() <= total:
        return positive
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(point) + 1)
    return np.maximum(point - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)

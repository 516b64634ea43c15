"""The prediction of a model for its users: a joint distribution, queried and answered in labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import (
    ImpossibleEvidenceError,
    InputError,
    TupletError,
    TupletWarning,
    warn_outside,
)
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution, warn_unproven
from tuplet.joint.probit import Probit
from tuplet.losses.decomposable import DecomposableLoss
from tuplet.losses.subset import SubsetZeroOne
from tuplet.prediction import rendering
from tuplet.prediction.dependence import conditional_dependence
from tuplet.prediction.queries import (
    check_count,
    encode_known,
    encode_seen,
    known_text,
    read_loss,
    row_positions,
    warn_estimated,
)
from tuplet.prediction.reliability import coverage_curve
from tuplet.prediction.truth import read_truth
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.labels import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tuplet.losses.base import Loss

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _named(method: _Method) -> _Method:
    """Put names of class variables in place of their positions into the errors of a method."""

    @wraps(method)
    def with_names(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TupletError as error:
            if error.variable is None:
                raise
            name = (*self.space.names, "a hidden variable")[min(error.variable, self.space.n_variables)]
            raise type(error)(str(error).replace(f"variable {error.variable}", repr(name))) from None

    return cast(_Method, with_names)


@final
@dataclass(frozen=True, eq=False, repr=False)
class JointPrediction:
    """The predicted joint distribution of all class variables, for each of n rows.

    Labels come back in the container that the labels for training came in: frames for frames, arrays for
    arrays. Tables that Tuplet makes up itself (`marginals`, `top_k`, `sample`, `to_frame`) are polars
    frames if the labels came in one, and pandas frames otherwise.

    A class variable goes by its name, or by the key that its column had (0, 1, ...). Rows go by position:
    labels of the same rows in another order, by their pandas index, are an error.

    Parameters
    ----------
    distribution : JointDistribution
        The distribution in codes, a batch of n rows.
    space : ClassSpace
        Names and labels of its variables.
    index : pandas Index, optional
        Names of the rows, put on every pandas result.
    note : str
        A remark on how to read the probabilities, shown with the prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint.atoms import Atoms
    >>> from tuplet.space import ClassSpace
    >>> space = ClassSpace(("weather", "umbrella"), (np.array(["dry", "wet"]), np.array([False, True])))
    >>> codes = np.array([[[0, 0], [1, 0], [1, 1]]])
    >>> prediction = JointPrediction(Atoms((2, 2), codes, np.log([[0.5, 0.2, 0.3]])), space)
    >>> prediction
    JointPrediction: 1 row, 2 class variables
       weather  umbrella  probability
    0  dry      False           0.500
    >>> prediction.given(weather="wet").top_k(2)
       row  rank weather  umbrella  probability
    0    0     1     wet      True          0.6
    1    0     2     wet     False          0.4
    """

    distribution: JointDistribution
    space: ClassSpace
    index: pd.Index | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.distribution.cards != self.space.cards:
            raise InputError(
                f"JointPrediction: a distribution with cardinalities {self.distribution.cards} does not"
                f" belong to {self.space!r}."
            )
        if self.index is not None and len(self.index) != len(self.distribution):
            raise InputError(
                f"JointPrediction: an index of {len(self.index)} names does not fit"
                f" {len(self.distribution)} rows."
            )

    # -- rows ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.distribution)

    def __getitem__(self, rows: int | slice | npt.ArrayLike) -> JointPrediction:
        """Return some rows by position or mask, always as a prediction again."""
        return self._rows(row_positions(rows, len(self)))

    def _rows(self, positions: npt.NDArray[np.intp]) -> JointPrediction:
        index = None if self.index is None else self.index[positions]
        return replace(self, distribution=self.distribution[positions], index=index)

    def __iter__(self) -> Iterator[JointPrediction]:
        return (self[i] for i in range(len(self)))

    @property
    def tolerance(self) -> float:
        """Stated absolute error of probabilities that are sums over combinations, such as `marginals`.

        0 means exact, infinity that there is no guarantee. With many labels the marginals of a chain are
        estimates; its `mode`, `top_k`, `sample` and the `log_prob` of complete rows stay exact. A query that
        is answered by estimates gives an `ApproximationWarning`.
        """
        return self.distribution.tolerance

    # -- the most probable --------------------------------------------------------------------------------

    @_named
    def mode(self) -> Any:
        """Most probable combination of labels of every row.

        Not the most probable label of each variable: that is `decide("hamming")`.
        """
        mode = self.distribution.mode()
        warn_unproven("mode", mode.proven)
        return self.space.decode(mode.codes, self.index)

    def mode_proven(self) -> npt.NDArray[np.bool_]:
        """Whether the mode of each row (n,) is proven; False where a search ended on its budget."""
        return self.distribution.mode().proven

    @_named
    def top_k(self, k: int = 5) -> Any:
        """Return the k most probable combinations of every row, best first.

        Returns
        -------
        frame with the columns `row`, `rank` (from 1), one for each class variable, `probability`
            `row` is the index label of a row, or its position if X had no index. Combinations of probability
            zero are left out, so a row may have fewer than k lines. A column whose name a class variable has
            already gets an underscore: `rank_`.
        """
        ranking = self.distribution.top_k(check_count("top_k", "k", k, 1))
        warn_unproven("top_k", ranking.proven)
        if ranking.proven.all() and not self.distribution.scores_exactly:
            warn_estimated("top_k", self.distribution, measure=False)
        row, rank = np.nonzero(np.isfinite(ranking.log_prob))
        before = {"row": self._row_names(row), "rank": rank + 1}
        return _tidy_frame(
            self.space, ranking.codes[row, rank], before, {"probability": np.exp(ranking.log_prob[row, rank])}
        )

    # -- probabilities ------------------------------------------------------------------------------------

    @_named
    def marginals(self) -> dict[Any, Any]:
        """Probabilities of the labels of each variable: a frame (n, k_j) by name, a column for each label."""
        tables = self._marginals("marginals")
        return {
            key: _marginal_frame(self.space, j, tables[j], self.index)
            for j, key in enumerate(self.space.keys)
        }

    @_named
    def _marginals(self, query: str) -> list[Floats]:
        tables = self.distribution.marginals()
        warn_estimated(query, self.distribution, marginals=True)
        return tables

    @_named
    def log_prob(self, Y: Any) -> Floats:
        """Log-probability (n,) of labels.

        Parameters
        ----------
        Y : labels as in training, or a mapping of names to labels
            Missing labels are summed out, so a partial set of labels is fine. In a mapping, a value is one
            label for all rows or one label per row.

        Returns
        -------
        array, shape (n,)
            Minus infinity in rows with a label that was not there in training, with a warning. A single such
            label for all rows is an error. All other rows have finite values; see `JointClassifier`.

        Warns
        -----
        TupletWarning
            With the number of rows whose labels were not there in training.
        """
        return self._log_prob(Y, "log_prob")

    @_named
    def prob(self, Y: Any) -> Floats:
        """Probability (n,) of labels; see `log_prob`."""
        return np.exp(self._log_prob(Y, "prob"))

    def _log_prob(self, Y: Any, query: str) -> Floats:
        codes, unseen = encode_seen(self.space, Y, len(self), query, self.index)
        answer = np.minimum(self.distribution.log_prob(codes), 0.0)  # a sum may exceed one by rounding
        if (codes == UNKNOWN)[~unseen].any() or not self.distribution.scores_exactly:
            warn_estimated(query, self.distribution, measure=False)
        if unseen.any():
            warn_outside(
                f"{query}: {unseen.sum():,} of {len(self):,} rows have labels that were not there in"
                " training; their probability is zero.",
                TupletWarning,
            )
            answer[unseen] = -np.inf
        return answer

    @_named
    def intervals(self, Y: Any = None, level: float = 0.95) -> pd.DataFrame:
        """Credible intervals of probabilities, for models with posterior draws.

        Parameters
        ----------
        Y : labels as in training, or a mapping of names to labels, optional
            Whose probabilities to bound, as in `log_prob`; by default those of single labels.
        level : float
            Share of the draws inside an interval.

        Returns
        -------
        DataFrame
            `probability`, `lower` and `upper`: a line for each row, or for each row and class variable, whose
            second label is meant.
        """
        joint = _require_draws(self.distribution)
        if Y is None:
            return _label_intervals(joint, self.space, self._row_names(np.arange(len(self))), level)
        codes = encode_known(self.space, Y, len(self), "intervals", self.index)
        return _outcome_intervals(joint, codes, joint.log_prob(codes), self.index, level)

    @_named
    def entropy(self) -> Floats:
        """Shannon entropy (n,) of the joint distribution in nats: the uncertainty of the prediction."""
        answer = self.distribution.entropy()
        # Other forms enumerate complete outcomes, which a chain would score exactly even where it samples.
        if isinstance(self.distribution, Autoregressive) or not self.distribution.scores_exactly:
            warn_estimated("entropy", self.distribution)
        return answer

    @_named
    def pairwise(self, a: Any, b: Any) -> Floats:
        """Joint probabilities (n, k_a, k_b) of two variables, in the order of their categories."""
        pair = (self.space.position(a), self.space.position(b))
        if pair[0] == pair[1]:
            raise InputError(f"pairwise needs two different variables, found {a!r} twice.")
        joint = self.distribution.marginal(pair)
        answer = joint.pairwise()[0, 1]
        warn_estimated("pairwise", joint)
        return answer

    # -- other distributions ------------------------------------------------------------------------------

    @_named
    def given(self, known: Any = None, /, **labels: Any) -> JointPrediction:
        """Return the prediction given some known labels.

        Parameters
        ----------
        known : mapping or frame, optional
            Names and labels; a label is one for all rows or one per row, where a missing one is free.
        **labels
            The same as keywords: `given(species="Gentoo")`.

        Raises
        ------
        ImpossibleEvidenceError
            If the labels of a row have probability zero.
        """
        codes = encode_known(self.space, {} if known is None else known, len(self), "given", self.index)
        named = encode_known(self.space, labels, len(self), "given", self.index)
        codes = np.where(named == UNKNOWN, codes, named)
        try:
            joint = self.distribution.condition(codes)
        except ImpossibleEvidenceError as error:
            raise ImpossibleEvidenceError(self._impossible(codes) or str(error)) from None
        if self.distribution.scores_exactly and not joint.scores_exactly:
            warn_estimated("given", joint, measure=False)
        return replace(self, distribution=joint)

    @_named
    def marginal(self, *names: Any) -> JointPrediction:
        """Return the prediction of some variables only, in the order given; the others are summed out."""
        if len(names) == 1 and isinstance(names[0], (list, set, np.ndarray, pd.Index)):
            each = ", ".join(repr(name) for name in list(names[0])[:3])
            raise InputError(f"marginal: pass names one by one: marginal({each}).")
        chosen = [self.space.position(name) for name in names]
        if not chosen or len(set(chosen)) < len(chosen):
            raise InputError(
                f"marginal needs one or more different variables, found {listing(names) or 'none'}."
            )
        return replace(self, distribution=self.distribution.marginal(chosen), space=self.space.select(names))

    # -- decisions and draws ------------------------------------------------------------------------------

    @_named
    def decide(self, loss: str | Loss = "hamming") -> Any:
        """Labels with the least expected loss: a name such as "hamming", "subset" or "f1", or a `Loss`.

        Losses of positive labels, such as "f1", need labels of which one is known to be positive: 0 and 1,
        booleans, or a declared Categorical (or polars Enum) of two labels, the positive one last.
        """
        return self.space.decode(self._decide(loss, "decide"), self.index)

    @_named
    def _decide(self, loss: str | Loss, query: str) -> Codes:
        chosen = read_loss(loss, self.space)
        codes = chosen.decide(self.distribution)
        rests_on = getattr(chosen, "loss", chosen)  # that of an Abstain, too
        if not isinstance(rests_on, SubsetZeroOne):
            marginals = isinstance(rests_on, DecomposableLoss)
            warn_estimated(query, self.distribution, marginals=marginals)
        return codes

    @_named
    def sample(self, size: int = 1, random_state: Seed = None) -> Any:
        """Draw `size` combinations for every row.

        Returns
        -------
        frame with the columns `draw` (from 0), `row` and one for each class variable
            All rows of the first draw come first.
        """
        size = check_count("sample", "size", size, 0)
        draws = self.distribution.sample(size, random_state)
        draw, row = np.divmod(np.arange(size * len(self)), max(1, len(self)))
        return _tidy_frame(
            self.space,
            draws.reshape(-1, self.space.n_variables),
            {"draw": draw, "row": self._row_names(row)},
            {},
        )

    # -- tables -------------------------------------------------------------------------------------------

    @_named
    def to_frame(self) -> Any:
        """One line per row: the most probable combination and how probable it is.

        Returns
        -------
        frame with the columns of the class variables, `probability` of all of them together, and `P(name)`
        of each label by itself
        """
        mode = self.distribution.mode()
        warn_unproven("to_frame", mode.proven)
        rows, tables = np.arange(len(self)), self._marginals("to_frame")
        alone = {
            f"P({name})": table[rows, mode.codes[:, j]]
            for j, (name, table) in enumerate(zip(self.space.names, tables, strict=True))
        }
        return _tidy_frame(
            self.space, mode.codes, {}, {"probability": np.exp(mode.log_prob), **alone}, self.index
        )

    def __repr__(self) -> str:
        rows = self._row_names(slice(rendering.ROWS))
        return rendering.as_text(self.distribution, self.space, rows, self.note)

    def _repr_html_(self) -> str:
        rows = self._row_names(slice(rendering.ROWS))
        return rendering.as_html(self.distribution, self.space, rows, self.note)

    # -- summaries of all rows ----------------------------------------------------------------------------

    @_named
    def dependence(self) -> pd.DataFrame:
        """Dependence of all pairs of variables given x, mean over the rows.

        Returns
        -------
        DataFrame, shape (m, m)
            Between 0, independent given x, and 1; NaN on the diagonal. Mutual information I under
            p(y_i, y_j | x), averaged over the rows, as sqrt(1 - exp(-2 I)): about the size of a correlation.

        Examples
        --------
        >>> from tuplet.joint import Atoms
        >>> space = ClassSpace(("rain", "umbrella"), (np.array([0, 1]), np.array([0, 1])))
        >>> joint = Atoms((2, 2), np.array([[[0, 0], [1, 1]]]), np.log([[0.5, 0.5]]))
        >>> JointPrediction(joint, space).dependence().round(2)  # one determines the other: I = log 2
                  rain  umbrella
        rain       NaN      0.87
        umbrella  0.87       NaN
        """
        matrix = conditional_dependence(self.distribution)
        warn_estimated("dependence", self.distribution)
        return pd.DataFrame(matrix, index=self.space.names, columns=self.space.names)

    @_named
    def coverage(self, Y: Any, k: int = 20) -> pd.DataFrame:
        """Share of rows whose labels are among the 1, 2, ..., k most probable combinations.

        Parameters
        ----------
        Y : labels, shape (n, m)
            Where labels are missing, the others must agree with one of these combinations.
        k : int
            The largest number of combinations.

        Returns
        -------
        DataFrame
            Columns `k`, `observed`, `expected` (the mean probability of these combinations together) and
            `count`, the number of rows.

        Examples
        --------
        >>> from tuplet import PriorClassifier
        >>> y = [["wet", "umbrella"]] * 5 + [["dry", "hat"]] * 3 + [["dry", "umbrella"]] * 2
        >>> model = PriorClassifier().fit([[0]] * 10, y)
        >>> model.predict_joint([[0]] * 10).coverage(y, k=2)[["k", "observed"]]
           k  observed
        0  1       0.5
        1  2       0.8
        """
        k = check_count("coverage", "k", k, 1)
        truth = read_truth(Y, self.space, len(self), self.index)
        return coverage_curve(self.distribution, truth, k, "coverage")

    # -- plots --------------------------------------------------------------------------------------------

    @_named
    def plot(self, row: int = 0, k: int = 8, ax: Axes | None = None, *, Y: Any = None) -> Axes:
        """Draw the k most probable combinations of the row at this position (needs matplotlib).

        Parameters
        ----------
        row : int
            Position of the row.
        k : int
            Number of combinations.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        Y : labels, shape (n, m), optional
            True labels of all rows; the true combination has a tick.
        """
        return delegate("plot_prediction_combinations", self, row, k, Y=Y, ax=ax)

    @_named
    def plot_marginals(
        self, rows: Any = 0, *, Y: Any = None, level: float = 0.95, title: str = "", ax: Axes | None = None
    ) -> Axes:
        """Draw the probability of each label by itself, for one row or up to seven.

        Credible intervals are drawn where the model has them; see `intervals`.

        Parameters
        ----------
        rows : int, slice, or list of int
            Positions of the rows.
        Y : labels, shape (n, m), optional
            True labels of all rows; labels that hold are filled, others pale.
        level : float
            Of the credible intervals.
        title : str
        ax : matplotlib Axes, optional
        """
        return delegate("plot_prediction_marginals", self, rows, Y=Y, level=level, title=title, ax=ax)

    @_named
    def plot_table(
        self, a: Any = None, b: Any = None, row: int = 0, *, Y: Any = None, ax: Axes | None = None
    ) -> Axes:
        """Draw the joint probabilities of two variables of the row at this position as a table.

        Parameters
        ----------
        a, b : str, optional
            Names of the variables; by default the two that depend on each other most in this row.
        row : int
            Position of the row.
        Y : labels, shape (n, m), optional
            True labels of all rows; the cell that happened has a frame.
        ax : matplotlib Axes, optional
        """
        return delegate("plot_prediction_table", self, a, b, row, Y=Y, ax=ax)

    @_named
    def plot_dependence(self, *, arrange: bool = True, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw `dependence` as a heat map; `tuplet.surface.plots.plot_label_dependence` draws that of labels.

        Parameters
        ----------
        arrange : bool
            Whether variables that depend on the same others are put side by side.
        title : str
        ax : matplotlib Axes, optional
        """
        return delegate("plot_prediction_dependence", self, arrange=arrange, title=title, ax=ax)

    @_named
    def plot_reliability(
        self,
        Y: Any,
        kind: Literal["both", "marginals", "mode"] = "both",
        *,
        n_bins: int = 10,
        title: str = "",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw observed frequencies against predicted probabilities.

        Parameters
        ----------
        Y : labels, shape (n, m)
            What happened; missing ones are left out.
        kind : {"both", "marginals", "mode"}
            Probabilities of single labels, that of the most probable combination, or both.
        n_bins : int
            Bins of equal width between 0 and 1.
        title : str
        ax : matplotlib Axes, optional
        """
        return delegate("plot_prediction_reliability", self, Y, kind, n_bins=n_bins, title=title, ax=ax)

    @_named
    def plot_coverage(self, Y: Any, k: int = 20, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw `coverage`, observed and expected, against the number of combinations."""
        return delegate("plot_prediction_coverage", self, Y, k, title=title, ax=ax)

    # -- helpers ------------------------------------------------------------------------------------------

    def _impossible(self, codes: Codes) -> str:
        """Return which known labels are impossible together, in words; empty if none are."""
        rows = np.flatnonzero(np.isneginf(self.distribution.log_prob(codes)))
        if not len(rows):
            return ""
        others = f" (and in {len(rows) - 1} more)" if len(rows) > 1 else ""
        return (
            f"given: {known_text(self.space, codes[rows[0]])} has probability zero in row"
            f" {self._row_names(rows[0])}{others}; leave one of these labels out."
            + self.distribution._reason_against(codes[rows[0]], int(rows[0]))
        )

    def _row_names(self, rows: Any) -> Any:
        return (np.arange(len(self)) if self.index is None else self.index.to_flat_index())[rows]


# -- frames ------------------------------------------------------------------------------------------------


def _marginal_frame(space: ClassSpace, j: int, table: Floats, index: pd.Index | None) -> Any:
    """Return probabilities (n, k) of variable j with its labels as columns."""
    categories = space.categories[j]
    if not space.is_polars:
        return pd.DataFrame(table, index=index, columns=pd.Index(categories, name=space.keys[j]))
    import polars as pl

    titles = [str(label) for label in categories]
    if len(set(titles)) < len(titles):
        titles = [show(label) for label in categories]
    return pl.DataFrame(table, schema=titles, orient="row")  # polars would guess from the memory layout


def _tidy_frame(
    space: ClassSpace,
    codes: Codes,
    before: dict[str, Any],
    after: dict[str, Any],
    index: pd.Index | None = None,
) -> Any:
    """Return labels of codes (n, m) between other columns, whose names give way to those of the variables."""
    labels, keys = space.decode_frame(codes, index), space.keys
    columns = {
        **{_free(name, keys): values for name, values in before.items()},
        **{key: labels[key] for key in keys},
        **{_free(name, keys): values for name, values in after.items()},
    }
    if not space.is_polars:
        return pd.DataFrame(columns, index=labels.index)
    import polars as pl

    return pl.DataFrame({name: _plain(values) for name, values in columns.items()})


def _plain(values: Any) -> Any:
    return values.to_list() if isinstance(values, pd.Index) else values


def _free(name: str, taken: tuple[Any, ...]) -> str:
    while name in taken:
        name += "_"
    return name


# -- credible intervals ------------------------------------------------------------------------------------


def _require_draws(joint: JointDistribution) -> Probit:
    """Return the distribution if it has draws; raise `InputError` otherwise."""
    if not isinstance(joint, Probit):
        raise InputError(
            "intervals: credible intervals need draws of a model's parameters, which"
            f" {type(joint).__name__} does not have; ProbitClassifier and ProbitForestClassifier give them."
        )
    return joint


def _label_intervals(joint: Probit, space: ClassSpace, rows: Any, level: float) -> pd.DataFrame:
    """Return a line for each row and class variable: P(second label) and its credible interval."""
    limits = joint.marginal_intervals(level)  # (n, m, 2)
    positive = np.stack([table[:, 1] for table in joint.marginals()], axis=1)
    n, m = positive.shape
    return pd.DataFrame(
        {
            "row": np.repeat(np.asarray(rows), m),
            "variable": np.tile(np.array(space.names, dtype=object), n),
            "label": np.tile(np.array([str(labels[1]) for labels in space.categories], dtype=object), n),
            "probability": positive.ravel(),
            "lower": limits[..., 0].ravel(),
            "upper": limits[..., 1].ravel(),
        }
    )


def _outcome_intervals(
    joint: Probit, codes: Codes, log_prob: Floats, index: pd.Index | None, level: float
) -> pd.DataFrame:
    """Return a line for each row: the probability of its codes (n, m) and its credible interval."""
    limits = joint.intervals(codes, level)
    columns = {"probability": np.exp(log_prob), "lower": limits[:, 0], "upper": limits[:, 1]}
    return pd.DataFrame(columns, index=index)

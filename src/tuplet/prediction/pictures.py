"""Pictures of a prediction, and the numbers in them; all need matplotlib but `coverage` and `dependence`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.exceptions import InputError
from tuplet.joint import Probit
from tuplet.joint.base import JointDistribution
from tuplet.prediction.arguments import check_count, row_positions
from tuplet.prediction.estimates import warn_estimated
from tuplet.prediction.naming import named
from tuplet.prediction.reliability import coverage_curve, marginal_bins, mode_bins
from tuplet.prediction.truth import Truth, read_truth
from tuplet.space import ClassSpace
from tuplet.space.words import clip
from tuplet.typing import Codes, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Pictures:
    """What can be seen in a prediction; `JointPrediction` is the only one to have these methods."""

    distribution: JointDistribution
    space: ClassSpace
    index: pd.Index | None

    # -- one row, or a few --------------------------------------------------------------------------------

    @named
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
        from tuplet.plots import plot_combinations

        k = check_count("plot", "k", k, 1)
        at = self._one_row(row, "plot")
        names = " · ".join(self.space.names)
        what = names if len(names) <= 32 else f"{self.space.n_variables} class variables"
        return plot_combinations(
            self.distribution[at],
            self.space,
            k=k,
            truth=self._true_codes(Y, at),
            title=f"{what}, row {self._row_text(at)}",
            ax=ax,
        )

    @named
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
        from tuplet.plots import plot_marginals

        at = row_positions(rows, len(self.distribution), "plot_marginals")
        part = self.distribution[at]
        tables = part.marginals()
        warn_estimated("plot_marginals", part, marginals=True)
        one = f"row {self._row_text(at)}" if len(at) == 1 else ""
        return plot_marginals(
            tables,
            self.space,
            rows=[self._row_text(row) for row in at],
            limits=marginal_limits(part, level),
            truth=None if Y is None else self._truth(Y).codes[at],
            title=title or one,
            ax=ax,
        )

    @named
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
        from tuplet.plots import plot_pair_table

        at = self._one_row(row, "plot_table")
        pair = self._pair(a, b, self.distribution[at])
        joint = self.distribution[at].marginal(pair)
        table = joint.pairwise()[0, 1][0]
        warn_estimated("plot_table", joint)
        codes = self._true_codes(Y, at)
        seen = None if codes is None else (int(codes[pair[0]]), int(codes[pair[1]]))
        return plot_pair_table(
            table,
            (self.space.names[pair[0]], self.space.names[pair[1]]),
            (self.space.categories[pair[0]].tolist(), self.space.categories[pair[1]].tolist()),
            truth=seen if seen is not None and min(seen) >= 0 else None,
            title=f"row {self._row_text(at)}",
            ax=ax,
        )

    def _pair(self, a: Any, b: Any, one: JointDistribution) -> tuple[int, int]:
        if self.space.n_variables < 2:
            raise InputError("plot_table: there is one class variable only; see plot_marginals.")
        if a is not None and b is not None:
            pair = self.space.position(a), self.space.position(b)
            if pair[0] == pair[1]:
                raise InputError(f"plot_table needs two different variables, found {a!r} twice.")
            return pair
        from tuplet.plots.dependence import conditional_dependence

        strengths = np.triu(np.nan_to_num(conditional_dependence(one)))
        if a is not None or b is not None:
            named = self.space.position(b if a is None else a)
            line = strengths[named] + strengths[:, named]
            line[named] = -1.0
            other = int(line.argmax())
            return (other, named) if a is None else (named, other)
        i, j = np.unravel_index(int(strengths.argmax()), strengths.shape)
        return (int(i), int(j)) if i != j else (0, 1)

    # -- all rows -----------------------------------------------------------------------------------------

    @named
    def dependence(self) -> pd.DataFrame:
        """How much pairs of variables still tell of each other once x is known, mean over the rows.

        Returns
        -------
        DataFrame, shape (m, m)
            Between 0, independent given x, and 1; NaN on the diagonal. Mutual information I under
            p(y_i, y_j | x), averaged over the rows, as sqrt(1 - exp(-2 I)): about the size of a correlation.

        Examples
        --------
        >>> from tuplet.joint import Atoms
        >>> from tuplet.prediction import JointPrediction
        >>> space = ClassSpace(("rain", "umbrella"), (np.array([0, 1]), np.array([0, 1])))
        >>> joint = Atoms((2, 2), np.array([[[0, 0], [1, 1]]]), np.log([[0.5, 0.5]]))
        >>> JointPrediction(joint, space).dependence().round(2)  # one tells the other: I = log 2
                  rain  umbrella
        rain       NaN      0.87
        umbrella  0.87       NaN
        """
        from tuplet.plots.dependence import conditional_dependence

        matrix = conditional_dependence(self.distribution)
        warn_estimated("dependence", self.distribution)
        return pd.DataFrame(matrix, index=self.space.names, columns=self.space.names)

    @named
    def plot_dependence(self, *, arrange: bool = True, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw `dependence` as a heat map; `tuplet.plots.plot_label_dependence` draws that of labels.

        Parameters
        ----------
        arrange : bool
            Whether variables that depend on the same others are put side by side.
        title : str
        ax : matplotlib Axes, optional
        """
        from tuplet.plots import plot_dependence

        return plot_dependence(
            self.dependence().to_numpy(), self.space.names, arrange=arrange, title=title, ax=ax
        )

    @named
    def plot_reliability(
        self,
        Y: Any,
        kind: Literal["both", "marginals", "mode"] = "both",
        *,
        n_bins: int = 10,
        title: str = "",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw how often things happened against how probable they were said to be.

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
        from tuplet.plots import plot_calibration

        truth, ones = self._truth(Y), np.ones(len(self.distribution))
        bins = {}
        if kind not in ("both", "marginals", "mode"):
            raise InputError(f"plot_reliability: kind must be 'both', 'marginals' or 'mode', found {kind!r}.")
        if kind != "mode":
            bins["single labels"] = marginal_bins(self.distribution, truth, n_bins, ones)
        if kind != "marginals":
            query = "plot_reliability"
            bins["best combination"] = mode_bins(self.distribution, truth, n_bins, ones, query)
        return plot_calibration(bins, title=title, ax=ax)

    @named
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
        return coverage_curve(self.distribution, self._truth(Y), k, "coverage")

    @named
    def plot_coverage(self, Y: Any, k: int = 20, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw `coverage` against the number of combinations, with what the model itself expects."""
        from tuplet.plots import plot_coverage

        k = check_count("plot_coverage", "k", k, 1)
        curve = coverage_curve(self.distribution, self._truth(Y), k, "plot_coverage")
        return plot_coverage(curve, title=title, ax=ax)

    # -- helpers ------------------------------------------------------------------------------------------

    def _truth(self, Y: Any) -> Truth:
        return read_truth(Y, self.space, len(self.distribution), self.index)

    def _true_codes(self, Y: Any, at: npt.NDArray[np.intp]) -> Codes | None:
        return None if Y is None else self._truth(Y).codes[at[0]]

    def _one_row(self, row: Any, query: str) -> npt.NDArray[np.intp]:
        at = row_positions(row, len(self.distribution), query)
        if len(at) != 1:
            raise InputError(f"{query}: one row can be drawn at a time, found {len(at)}.")
        return at

    def _row_text(self, at: Any) -> str:
        row = int(np.ravel(at)[0])
        return clip(str(row if self.index is None else self.index.to_flat_index()[row]), 12)


def marginal_limits(joint: JointDistribution, level: float) -> list[Floats] | None:
    """Credible intervals (r, 2, 2) of both labels of each variable, where there are draws."""
    if not isinstance(joint, Probit):
        return None
    second = joint.marginal_intervals(level)  # (r, m, 2)
    both = np.stack([1 - second[..., ::-1], second], axis=2)
    return [both[:, j] for j in range(both.shape[1])]

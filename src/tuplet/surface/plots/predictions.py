"""Pictures of a joint prediction: the parts of the methods `plot*` of `JointPrediction` that draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Floats
from tuplet.joint.base import JointDistribution
from tuplet.joint.probit import Probit
from tuplet.prediction.dependence import conditional_dependence
from tuplet.prediction.joint import JointPrediction
from tuplet.prediction.queries import check_count, row_positions, warn_estimated
from tuplet.prediction.reliability import coverage_curve, marginal_bins, mode_bins
from tuplet.prediction.truth import Truth, read_truth
from tuplet.space.classes import ClassSpace
from tuplet.space.words import clip
from tuplet.surface.plots.calibration import plot_calibration, plot_coverage
from tuplet.surface.plots.combinations import plot_combinations
from tuplet.surface.plots.heatmap import plot_dependence, plot_pair_table
from tuplet.surface.plots.marginals import plot_marginals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# -- one row, or a few -------------------------------------------------------------------------------------


def plot_prediction_combinations(
    prediction: JointPrediction, row: int, k: int, *, Y: Any, ax: Axes | None
) -> Axes:
    """Draw the most probable combinations of a row; see `JointPrediction.plot`."""
    k = check_count("plot", "k", k, 1)
    at, space = _one_row(prediction, row, "plot"), prediction.space
    names = " · ".join(space.names)
    what = names if len(names) <= 32 else f"{space.n_variables} class variables"
    return plot_combinations(
        prediction.distribution[at],
        space,
        k=k,
        truth=_true_codes(prediction, Y, at),
        title=f"{what}, row {_row_text(prediction, at)}",
        ax=ax,
    )


def plot_prediction_marginals(
    prediction: JointPrediction, rows: Any, *, Y: Any, level: float, title: str, ax: Axes | None
) -> Axes:
    """Draw the probabilities of single labels; see `JointPrediction.plot_marginals`."""
    at = row_positions(rows, len(prediction), "plot_marginals")
    part = prediction.distribution[at]
    tables = part.marginals()
    warn_estimated("plot_marginals", part, marginals=True)
    one = f"row {_row_text(prediction, at)}" if len(at) == 1 else ""
    return plot_marginals(
        tables,
        prediction.space,
        rows=[_row_text(prediction, row) for row in at],
        limits=marginal_limits(part, level),
        truth=None if Y is None else _truth(prediction, Y).codes[at],
        title=title or one,
        ax=ax,
    )


def plot_prediction_table(
    prediction: JointPrediction, a: Any, b: Any, row: int, *, Y: Any, ax: Axes | None
) -> Axes:
    """Draw the joint table of two variables of a row; see `JointPrediction.plot_table`."""
    at, space = _one_row(prediction, row, "plot_table"), prediction.space
    pair = _pair(space, a, b, prediction.distribution[at])
    joint = prediction.distribution[at].marginal(pair)
    table = joint.pairwise()[0, 1][0]
    warn_estimated("plot_table", joint)
    codes = _true_codes(prediction, Y, at)
    seen = None if codes is None else (int(codes[pair[0]]), int(codes[pair[1]]))
    return plot_pair_table(
        table,
        (space.names[pair[0]], space.names[pair[1]]),
        (space.categories[pair[0]].tolist(), space.categories[pair[1]].tolist()),
        truth=seen if seen is not None and min(seen) >= 0 else None,
        title=f"row {_row_text(prediction, at)}",
        ax=ax,
    )


def _pair(space: ClassSpace, a: Any, b: Any, one: JointDistribution) -> tuple[int, int]:
    """Return the positions of two variables; those that are not named are the most dependent in this row."""
    if space.n_variables < 2:
        raise InputError("plot_table: there is one class variable only; see plot_marginals.")
    if a is not None and b is not None:
        pair = space.position(a), space.position(b)
        if pair[0] == pair[1]:
            raise InputError(f"plot_table needs two different variables, found {a!r} twice.")
        return pair
    strengths = np.triu(np.nan_to_num(conditional_dependence(one)))
    if a is not None or b is not None:
        named = space.position(b if a is None else a)
        line = strengths[named] + strengths[:, named]
        line[named] = -1.0
        other = int(line.argmax())
        return (other, named) if a is None else (named, other)
    i, j = np.unravel_index(int(strengths.argmax()), strengths.shape)
    return (int(i), int(j)) if i != j else (0, 1)


def marginal_limits(joint: JointDistribution, level: float) -> list[Floats] | None:
    """Credible intervals (r, 2, 2) of both labels of each variable, where there are draws."""
    if not isinstance(joint, Probit):
        return None
    second = joint.marginal_intervals(level)  # (r, m, 2)
    both = np.stack([1 - second[..., ::-1], second], axis=2)
    return [both[:, j] for j in range(both.shape[1])]


# -- all rows ----------------------------------------------------------------------------------------------


def plot_prediction_dependence(
    prediction: JointPrediction, *, arrange: bool, title: str, ax: Axes | None
) -> Axes:
    """Draw the dependence of all pairs given x; see `JointPrediction.plot_dependence`."""
    strengths = prediction.dependence().to_numpy()
    return plot_dependence(strengths, prediction.space.names, arrange=arrange, title=title, ax=ax)


def plot_prediction_reliability(
    prediction: JointPrediction,
    Y: Any,
    kind: Literal["both", "marginals", "mode"],
    *,
    n_bins: int,
    title: str,
    ax: Axes | None,
) -> Axes:
    """Draw observed frequencies against predicted probabilities; see `JointPrediction.plot_reliability`."""
    truth, ones = _truth(prediction, Y), np.ones(len(prediction))
    bins = {}
    if kind not in ("both", "marginals", "mode"):
        raise InputError(f"plot_reliability: kind must be 'both', 'marginals' or 'mode', found {kind!r}.")
    if kind != "mode":
        bins["single labels"] = marginal_bins(prediction.distribution, truth, n_bins, ones)
    if kind != "marginals":
        query = "plot_reliability"
        bins["best combination"] = mode_bins(prediction.distribution, truth, n_bins, ones, query)
    return plot_calibration(bins, title=title, ax=ax)


def plot_prediction_coverage(
    prediction: JointPrediction, Y: Any, k: int, *, title: str, ax: Axes | None
) -> Axes:
    """Draw the share of rows whose labels are among the k best; see `JointPrediction.plot_coverage`."""
    k = check_count("plot_coverage", "k", k, 1)
    curve = coverage_curve(prediction.distribution, _truth(prediction, Y), k, "plot_coverage")
    return plot_coverage(curve, title=title, ax=ax)


# -- helpers -----------------------------------------------------------------------------------------------


def _truth(prediction: JointPrediction, Y: Any) -> Truth:
    return read_truth(Y, prediction.space, len(prediction), prediction.index)


def _true_codes(prediction: JointPrediction, Y: Any, at: npt.NDArray[np.intp]) -> Codes | None:
    return None if Y is None else _truth(prediction, Y).codes[at[0]]


def _one_row(prediction: JointPrediction, row: Any, query: str) -> npt.NDArray[np.intp]:
    at = row_positions(row, len(prediction), query)
    if len(at) != 1:
        raise InputError(f"{query}: one row can be drawn at a time, found {len(at)}.")
    return at


def _row_text(prediction: JointPrediction, at: Any) -> str:
    row, index = int(np.ravel(at)[0]), prediction.index
    return clip(str(row if index is None else index.to_flat_index()[row]), 12)

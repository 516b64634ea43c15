"""What a fitted probit model tells of its posterior distribution: tables and pictures, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.core.typing import Floats
from tuplet.models.base import JointClassifier
from tuplet.models.probit.sampling.draws import Draws
from tuplet.models.probit.sampling.summary import combination_table, correlation_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ProbitReport(JointClassifier):
    """Tables and pictures of a model that has `draws_` and `correlation_`."""

    draws_: Draws
    correlation_: Floats

    def correlation_table(self, level: float = 0.95) -> pd.DataFrame:
        """Correlations of all pairs of class variables, with credible intervals, R-hat and effective sizes.

        Parameters
        ----------
        level : float
            Share of the draws inside an interval.
        """
        check_is_fitted(self, "space_")
        return correlation_table(self.draws_.correlations, self.space_.names, level)

    def combination_table(self, x: Any, k: int = 5, level: float = 0.95) -> pd.DataFrame:
        """Most probable combinations of one row and its marginals, with credible intervals.

        Parameters
        ----------
        x : array or frame, shape (1, d)
        k : int
            Number of combinations.
        level : float
            Share of the draws inside an interval.
        """
        joint: Any = self.predict_joint(x).distribution
        return combination_table(joint, self.space_.names, k, level)

    def plot_correlations(self, *, arrange: bool = False, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the posterior mean of the correlation matrix; see `tuplet.surface.plots.plot_correlations`."""
        check_is_fitted(self, "space_")
        return delegate(
            "plot_correlations", self.correlation_, self.space_.names, arrange=arrange, title=title, ax=ax
        )

    def plot_trace(self, first: str, second: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the correlation of two class variables, named, along the chains."""
        check_is_fitted(self, "space_")
        names = list(self.space_.names)
        for name in (first, second):
            if name not in names:
                raise InputError(f"plot_trace: there is no class variable {name!r}; there are {names}.")
        traces = self.draws_.correlations[:, :, names.index(first), names.index(second)]
        return delegate("plot_trace", traces, f"{first}, {second}", title=title, ax=ax)

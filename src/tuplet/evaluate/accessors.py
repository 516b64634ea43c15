"""`Comparison.tests` and `Comparison.plot`: statistical tests and plots of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.evaluate import statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tuplet.evaluate.comparison import Comparison


class ScoreTests:
    """Statistics of a comparison over its data sets; see `tuplet.evaluate.statistics` for each.

    Tests need a score of every model on every data set. Where some are missing, those models or those data
    sets are left out, whichever costs less; `without` names the models. Seconds and memory, of which less is
    better, are tested with opposite signs.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def without(self, score: str) -> list[str]:
        """Models that tests leave out because they lack scores."""
        every = self._comparison.table(score)
        # Models and data sets without any scores are left out in any case.
        whole = every.dropna(how="all").dropna(axis=1, how="all").notna()
        by_rows = whole.all(axis=1).sum() * whole.shape[1]
        by_models = whole.all(axis=0).sum() * whole.shape[0]
        kept = whole.columns[whole.all(axis=0)] if by_models > by_rows else whole.columns
        return [str(name) for name in every.columns.difference(kept, sort=False)]

    def possible(self, score: str) -> bool:
        """Whether there are two models with scores on two data sets: the least that can be ranked."""
        table = self._comparison.table(score).drop(columns=self.without(score))
        return table.shape[1] > 1 and int(table.notna().all(axis=1).sum()) > 1

    def _table(self, score: str, test: str) -> pd.DataFrame:
        table = self._comparison.table(score).drop(columns=self.without(score))
        if self.possible(score):
            return self._sign(score) * table
        found = f"{table.notna().all(axis=1).sum()} data sets with scores of {table.shape[1]} models"
        raise InputError(
            f"{test}: it compares two or more models over two or more data sets, found {found};"
            " tests.paired_t compares them over the folds of each data set."
        )

    def _sign(self, score: str) -> int:
        return 1 if self._comparison.greater_is_better(score) else -1

    def ranks(self, score: str) -> pd.Series:
        """Average ranks of the models over the data sets; the best has the lowest."""
        return statistics.average_ranks(self._table(score, "ranks"))

    def friedman(self, score: str, *, aligned: bool = False) -> Any:
        """Whether the models differ at all, by plain or by aligned ranks."""
        table = self._table(score, "friedman")
        return statistics.friedman_aligned(table) if aligned else statistics.friedman(table)

    def nemenyi(self, score: str, *, alpha: float = 0.05) -> statistics.PairTests:
        """Which pairs differ, by the distance of their average ranks."""
        return statistics.nemenyi(self._table(score, "nemenyi"), alpha=alpha)

    def conover(
        self, score: str, *, adjust: Literal["holm"] | None = None, alpha: float = 0.05
    ) -> statistics.PairTests:
        """Which pairs differ, by Conover's t test of rank sums."""
        return statistics.conover(self._table(score, "conover"), adjust=adjust, alpha=alpha)

    def versus(
        self,
        score: str,
        control: str,
        *,
        method: Literal["holm", "bonferroni-dunn"] = "holm",
        ranks: Literal["plain", "aligned"] = "plain",
        alpha: float = 0.05,
    ) -> statistics.ControlTests:
        """Which models differ from one of them."""
        table = self._table(score, "versus")
        if control in self.without(score):
            lacking = self._comparison.table(score)[control].isna()
            raise InputError(
                f"versus: {control!r} has no scores on {', '.join(map(str, lacking.index[lacking]))};"
                " select(datasets=[...]) leaves these out."
            )
        return statistics.versus_control(table, control, method=method, ranks=ranks, alpha=alpha)

    def wilcoxon(self, score: str, a: str, b: str) -> Any:
        """Whether two models differ, by signed ranks over the data sets."""
        return statistics.wilcoxon(self._pair(score, a, b), a, b)

    def bayesian(self, score: str, a: str, b: str, *, rope: float = 0.0, random_state: int = 0) -> Any:
        """How probable it is that one of two models is the better one more often than not."""
        return statistics.bayesian_signed_rank(
            self._pair(score, a, b), a, b, rope=rope, random_state=random_state
        )

    def _pair(self, score: str, a: str, b: str) -> pd.DataFrame:
        return self._sign(score) * self._comparison.select(models=[a, b]).table(score)

    def paired_t(
        self, score: str, *, alpha: float = 0.05, correction: Literal["nadeau-bengio"] | None = None
    ) -> Any:
        """Wins, ties and losses by paired t tests over the folds of each data set.

        Folds share training rows, so the plain test finds differences too often; "nadeau-bengio" corrects it,
        by the share of the rows that the folds of each data set test.
        """
        folds = {name: self._sign(score) * frame for name, frame in self._comparison.folds(score).items()}
        return statistics.paired_t(
            folds, alpha=alpha, correction=correction, test_share=self._comparison.test_shares()
        )


class ScorePlots:
    """Pictures of a comparison, each a matplotlib Axes; see `tuplet.surface.comparisons` for each."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def critical_differences(
        self, score: str, *, alpha: float = 0.05, title: str = "", ax: Axes | None = None
    ) -> Axes:
        """Average ranks on an axis; models that do not differ by the test of Nemenyi are joined."""
        found = self._comparison.tests.nemenyi(score, alpha=alpha)
        return delegate(
            "plot_critical_differences",
            found.ranks,
            found.critical_difference,
            title=title or in_words(score),
            ax=ax,
        )

    def pairs(self, score: str, a: str, b: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """One model against another, a point for each data set."""
        table, errors = self._comparison.table(score), _errors(self._comparison, score)
        return delegate("plot_pairs", table, a, b, errors=errors, **self._options(score, title, ax))

    def differences(self, score: str, a: str, b: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Difference of two models on each data set, as sorted bars."""
        return delegate(
            "plot_differences", self._comparison.table(score), a, b, **self._options(score, title, ax)
        )

    def boxes(self, score: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Box plots of the scores of all folds, centred in each data set."""
        folds = self._comparison.tidy(score)
        folds = folds[np.isfinite(folds["value"])]
        return delegate("plot_centred_boxes", folds, **self._options(score, title, ax))

    def _options(self, score: str, title: str, ax: Axes | None) -> dict[str, Any]:
        greater = self._comparison.greater_is_better(score)
        return {"greater_is_better": greater, "title": title or in_words(score), "ax": ax}

    def calibration(
        self,
        kind: Literal["marginals", "mode"] = "marginals",
        *,
        models: list[str] | None = None,
        dataset: str | None = None,
        n_bins: int = 10,
        title: str = "",
        ax: Axes | None = None,
    ) -> Axes:
        """Predicted against observed frequencies: of single labels, or of the most probable combination."""
        comparison = self._comparison
        bins = {
            model: comparison.calibration_table(kind, model=model, dataset=dataset, n_bins=n_bins)
            for model in models or comparison.models
        }
        drawn = {model: table for model, table in bins.items() if len(table)}
        return delegate("plot_calibration", drawn, title=title, ax=ax)


def in_words(score: str) -> str:
    """Return the name of a score as words."""
    return score.replace("_", " ")


def _errors(comparison: Comparison, score: str) -> pd.DataFrame | None:
    """Return standard errors of the means over folds, None if there is one fold only."""
    n_folds = comparison.runs.groupby("dataset")["fold"].nunique().reindex(comparison.datasets)
    errors = comparison.spread(score).div(n_folds**0.5, axis=0)
    return errors if errors.notna().to_numpy().any() else None

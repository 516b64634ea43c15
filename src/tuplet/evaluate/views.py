"""Views of a comparison: statistical tests, pictures, and a page with all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from tuplet.evaluate import plots, statistics
from tuplet.evaluate.report import Picture, PlainTable, ScoreTable, Section, html_page
from tuplet.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tuplet.evaluate.comparison import Comparison

_FEWEST = 3
"""Least number of models, and of data sets, for which a test of all ranks is meaningful."""


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
    """Pictures of a comparison, each a matplotlib Axes; see `tuplet.evaluate.plots` for each."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def critical_differences(
        self, score: str, *, alpha: float = 0.05, title: str = "", ax: Axes | None = None
    ) -> Axes:
        """Average ranks on an axis; models that do not differ by the test of Nemenyi are joined."""
        found = self._comparison.tests.nemenyi(score, alpha=alpha)
        return plots.plot_critical_differences(
            found.ranks, found.critical_difference, title=title or _in_words(score), ax=ax
        )

    def pairs(self, score: str, a: str, b: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """One model against another, a point for each data set."""
        table, errors = self._comparison.table(score), _errors(self._comparison, score)
        return plots.plot_pairs(table, a, b, errors=errors, **self._options(score, title, ax))

    def differences(self, score: str, a: str, b: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Difference of two models on each data set, as sorted bars."""
        return plots.plot_differences(self._comparison.table(score), a, b, **self._options(score, title, ax))

    def boxes(self, score: str, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Box plots of the scores of all folds, centred in each data set."""
        folds = self._comparison.tidy(score)
        folds = folds[np.isfinite(folds["value"])]
        return plots.plot_centred_boxes(folds, **self._options(score, title, ax))

    def _options(self, score: str, title: str, ax: Axes | None) -> dict[str, Any]:
        greater = self._comparison.greater_is_better(score)
        return {"greater_is_better": greater, "title": title or _in_words(score), "ax": ax}

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
        return plots.plot_calibration(drawn, title=title, ax=ax)


def _in_words(score: str) -> str:
    return score.replace("_", " ")


def _errors(comparison: Comparison, score: str) -> pd.DataFrame | None:
    """Return standard errors of the means over folds, None if there is one fold only."""
    n_folds = comparison.runs.groupby("dataset")["fold"].nunique().reindex(comparison.datasets)
    errors = comparison.spread(score).div(n_folds**0.5, axis=0)
    return errors if errors.notna().to_numpy().any() else None


# -- the page ----------------------------------------------------------------------------------------------


def comparison_page(comparison: Comparison, scores: tuple[str, ...], title: str) -> str:
    """Return one HTML page: a section for each score, then calibration, costs and problems."""
    sections = [_score_section(comparison, score) for score in scores]
    sections += _calibration_section(comparison)
    sections.append(Section("Costs", "Means over folds.", tables=[_plain(comparison.costs().reset_index())]))
    for heading, lines in (("Problems", comparison.problems()), ("Warnings", comparison.warnings())):
        if len(lines):
            sections.append(Section(heading, tables=[_plain(lines)]))
    n_models, n_sets = len(comparison.models), len(comparison.datasets)
    about = f"{n_models} models on {n_sets} data sets."
    return html_page(title, sections, text=about)


def _score_section(comparison: Comparison, score: str) -> Section:
    printed = comparison._printed(score)
    text, figures, tests = "", [], comparison.tests
    n_models = len(comparison.models) - len(tests.without(score))
    if tests.possible(score) and len(comparison.datasets) >= _FEWEST and n_models >= _FEWEST:
        gone = tests.without(score)
        remark = f"Ranks and tests are without {', '.join(gone)}, which lack scores.\n\n" if gone else ""
        text = f"{remark}{tests.friedman(score)}\n\n{tests.nemenyi(score)}"
        figures.append(Picture(_closed(comparison.plot.critical_differences(score)), "Average ranks."))
    several = len(comparison.runs["fold"].unique()) > 1 and len(comparison.models) > 1
    if several and np.isfinite(comparison.runs[score]).any():
        figures.append(
            Picture(_closed(comparison.plot.boxes(score)), "Scores of all folds, centred in each data set.")
        )
    return Section(_in_words(score).capitalize(), text, tables=[ScoreTable(**printed)], figures=figures)


def _calibration_section(comparison: Comparison) -> list[Section]:
    if comparison.calibration is None:
        return []
    captions: dict[Literal["marginals", "mode"], str] = {
        "marginals": "Probabilities of single labels.",
        "mode": "Probability of the most probable combination.",
    }
    figures = [
        Picture(_closed(comparison.plot.calibration(kind)), caption)
        for kind, caption in captions.items()
        if (comparison.calibration["kind"] == kind).any()
    ]
    return [Section("Calibration", "All data sets and folds together.", figures=figures)]


def _plain(lines: pd.DataFrame) -> PlainTable:
    """Return lines as a table whose first column names them and whose headings are words."""
    named = lines.rename(columns=_in_words)
    return PlainTable(named.set_index(named.columns[0]))


def _closed(ax: Axes) -> Axes:
    """Return the picture, no longer counted among pyplot's open figures."""
    import matplotlib.pyplot as plt

    plt.close(ax.figure)  # type: ignore[arg-type]
    return ax

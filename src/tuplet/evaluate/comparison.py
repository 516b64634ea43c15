"""The outcome of a comparison: every fit as a line, and the tables made of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import IO, Any, Self, final

import pandas as pd

from tuplet.core.atomic_files import write_bytes
from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError, TupletWarning
from tuplet.evaluate.accessors import ScorePlots, ScoreTests
from tuplet.evaluate.store import Record, Store
from tuplet.evaluate.work import N_BINS

FACTS = (
    "dataset",
    "model",
    "fold",
    "n_folds",
    "status",
    "reason",
    "n_train",
    "n_test",
    "fit_seconds",
    "fit_cpu_seconds",
    "predict_seconds",
    "predict_cpu_seconds",
    "peak_memory_mb",
    "n_floored",
    "warnings",
    "score_problems",
)
"""Columns of `runs` before the scores."""

_NUMBERS = FACTS[FACTS.index("n_train") : FACTS.index("warnings")]


@final
class Comparison:
    """Scores of models on folds of data sets, as `compare` returns them.

    Parameters
    ----------
    runs : DataFrame
        A line for each fit: `dataset`, `model`, `fold` of `n_folds`, `status` ("ok", "failed", "crashed",
        "over time" or "not run") and its `reason`, numbers of rows, seconds and CPU seconds of fit and
        prediction, peak memory in megabytes (beyond what the process held before), `n_floored` (test rows
        with a label whose probability was lifted to the floor of the log-likelihoods), the `warnings` that
        were given, `score_problems` (reasons of scores that could not be had, by name), then one column for
        each score. Greater is better.
    scores : sequence of str
        Which columns are scores.
    models, datasets : sequence of str, optional
        Their order; by first appearance by default.
    calibration : DataFrame, optional
        Bins of predicted and observed frequencies for each fit.
    """

    def __init__(
        self,
        runs: pd.DataFrame,
        scores: Sequence[str],
        *,
        models: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
        calibration: pd.DataFrame | None = None,
    ) -> None:
        self.runs = runs
        self.scores = tuple(scores)
        self.models = tuple(runs["model"].unique() if models is None else models)
        self.datasets = tuple(runs["dataset"].unique() if datasets is None else datasets)
        self.calibration = calibration

    # -- making one ---------------------------------------------------------------------------------------

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        *,
        scores: Sequence[str] = (),
        models: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
    ) -> Self:
        """Put together the records of fits; `scores` are those wanted, by default all that occur."""
        records = list(records)
        if not records:
            raise InputError("Comparison: there are no fits to put together.")
        asked = [record["scores"] or record.get("scorers", {}) for record in records]  # some have failed
        scores = scores or list(dict.fromkeys(name for names in asked for name in names))
        lines = [_line(record) | record["scores"] for record in records]
        runs = pd.DataFrame(lines, columns=[*FACTS, *scores])
        runs = runs.astype(dict.fromkeys([*_NUMBERS, *scores], float)).fillna({"reason": ""})
        return cls(runs, scores, models=models, datasets=datasets, calibration=_bins(records))

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Self:
        """Put together all fits in the `cache` folder of `compare`, also of a run that is still under way.

        Where a model of one name was compared with several settings, or on several data or folds of one name,
        the newest count.
        """
        return cls.from_records(_newest(Store(folder)))

    def select(
        self, *, models: Sequence[str] | None = None, datasets: Sequence[str] | None = None
    ) -> Comparison:
        """Return the comparison of some models on some data sets, in the order given."""
        models = self._known("models", models, self.models)
        datasets = self._known("datasets", datasets, self.datasets)

        def chosen(frame: pd.DataFrame) -> pd.DataFrame:
            return frame[frame["model"].isin(models) & frame["dataset"].isin(datasets)]

        bins = None if self.calibration is None else chosen(self.calibration)
        return Comparison(chosen(self.runs), self.scores, models=models, datasets=datasets, calibration=bins)

    # -- tables -------------------------------------------------------------------------------------------

    def table(self, score: str) -> pd.DataFrame:
        """Mean of a score (or of another number in `runs`) over the folds: data sets by models.

        It is missing unless all folds are there: a mean over the folds that went well would flatter.
        """
        return self._over_folds(score, "mean")

    def spread(self, score: str) -> pd.DataFrame:
        """Standard deviation of a score over the folds; missing where there is one fold only."""
        return self._over_folds(score, "std")

    def _over_folds(self, score: str, how: str) -> pd.DataFrame:
        by_pair = self.runs.groupby(["dataset", "model"], sort=False)
        column = by_pair[self._column(score)]
        values = column.agg(how).where(column.count() == by_pair["n_folds"].max())
        table = values.reset_index(name="value").pivot_table("value", "dataset", "model", dropna=False)
        return table.reindex(index=self.datasets, columns=self.models).rename_axis(index=None, columns=None)

    def folds(self, score: str) -> dict[str, pd.DataFrame]:
        """Scores of the folds of each data set: name -> folds by models."""
        column = self._column(score)
        return {
            str(name): runs.pivot_table(column, "fold", "model", dropna=False)
            .reindex(columns=self.models)
            .rename_axis(columns=None)
            for name, runs in self.runs.groupby("dataset", sort=False)
        }

    def tidy(self, *scores: str) -> pd.DataFrame:
        """One line for each score of each fit: `dataset`, `model`, `fold`, `score`, `value`."""
        chosen = [self._column(score) for score in scores] or list(self.scores)
        keys = ["dataset", "model", "fold"]
        return self.runs.melt(id_vars=keys, value_vars=chosen, var_name="score", value_name="value")

    def greater_is_better(self, score: str) -> bool:
        """Whether more is better: of scores it is, of seconds, memory and floored rows it is not."""
        return self._column(score) in self.scores

    def test_shares(self) -> dict[str, float]:
        """Share of the rows of each data set that a fold tests, on average; those that are known."""
        share = self.runs["n_test"] / (self.runs["n_train"] + self.runs["n_test"])
        means = share.groupby(self.runs["dataset"], sort=False).mean().dropna()
        return {str(name): float(value) for name, value in means.items()}

    def costs(self) -> pd.DataFrame:
        """Means over folds for each data set and model: seconds, memory, and floored rows in per cent."""
        runs = self.runs.assign(floored_percent=100 * self.runs["n_floored"] / self.runs["n_test"])
        columns = [*(fact for fact in FACTS if "seconds" in fact), "peak_memory_mb", "floored_percent"]
        return runs.groupby(["dataset", "model"], sort=False)[columns].mean()

    def problems(self) -> pd.DataFrame:
        """What did not go well: `dataset`, `model`, `status`, `reason` and in how many folds."""
        return _counted(self.runs[self.runs["status"] != "ok"], ["dataset", "model", "status", "reason"])

    def warnings(self) -> pd.DataFrame:
        """What the models warned of in their fits: `dataset`, `model`, `warning` and in how many folds."""
        lines = self.runs[["dataset", "model", "fold", "warnings"]].explode("warnings").dropna()
        return _counted(lines.rename(columns={"warnings": "warning"}), ["dataset", "model", "warning"])

    def calibration_table(
        self, kind: str = "marginals", *, model: str, dataset: str | None = None, n_bins: int = 10
    ) -> pd.DataFrame:
        """Predicted and observed frequencies of one model, all folds together.

        Parameters
        ----------
        kind : {"marginals", "mode"}
            Of the probabilities of single labels, or of the most probable combination.
        model : str
        dataset : str, optional
            By default all of them together.
        n_bins : int
            A divisor of 20.

        Returns
        -------
        DataFrame
            As `tuplet.metrics.marginal_calibration` gives it.
        """
        if self.calibration is None:
            raise InputError("calibration_table: this comparison was made without calibration tables.")
        if kind not in ("marginals", "mode"):
            raise InputError(f"calibration_table: kind must be 'marginals' or 'mode', found {kind!r}.")
        if n_bins < 1 or N_BINS % n_bins:
            raise InputError(f"calibration_table: n_bins must divide {N_BINS}, found {n_bins}.")
        (model,) = self._known("model", [model], self.models)
        bins = self.calibration
        bins = bins[(bins["kind"] == kind) & (bins["model"] == model)]
        if dataset is not None:
            bins = bins[bins["dataset"] == self._known("dataset", [dataset], self.datasets)[0]]
        return _joined(bins, n_bins)

    # -- forms --------------------------------------------------------------------------------------------

    @property
    def tests(self) -> ScoreTests:
        """Statistics of the scores: `result.tests.friedman("exact_match")`, and so on."""
        return ScoreTests(self)

    @property
    def plot(self) -> ScorePlots:
        """Plots of the scores: `result.plot.critical_differences("exact_match")`, and so on."""
        return ScorePlots(self)

    def to_text(self, score: str, *, width: int | None = None) -> str:
        """Table of a score for a terminal, by default of its width."""
        return delegate("text_table", **self._printed(score), width=width)

    def to_markdown(self, score: str) -> str:
        """Table of a score in Markdown: mean and standard deviation, best in bold, average ranks below."""
        return delegate("markdown_table", **self._printed(score))

    def to_latex(self, score: str, *, caption: str = "", label: str = "") -> str:
        """Table of a score in LaTeX, with the rules of the package booktabs."""
        return delegate("latex_table", **self._printed(score), caption=caption, label=label)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        scores: Sequence[str] = (),
        title: str = "Comparison",
    ) -> str:
        """One page with sortable tables and pictures of some scores (by default all); written to `path`."""
        chosen = [scores] if isinstance(scores, str) else scores
        page = delegate(
            "comparison_page", self, tuple(self._column(score) for score in chosen) or self.scores, title
        )
        if path is not None:

            def write(file: IO[Any]) -> None:
                file.write(page.encode())

            write_bytes(os.fspath(path), write, "to_html")
        return page

    def _printed(self, score: str) -> dict[str, Any]:
        """Return the arguments that all printed forms of a table take."""
        mean, spread = self.table(score), self.spread(score)
        return {
            "mean": mean,
            "std": spread if spread.notna().to_numpy().any() else None,
            "ranks": self.tests.ranks(score) if self.tests.possible(score) else None,
            "greater_is_better": self.greater_is_better(score),
            "missing": self.missing(score),
        }

    def missing(self, score: str) -> pd.DataFrame:
        """Reasons why a score is missing, data sets by models; None where it is not."""
        runs = self.runs[self.runs[self._column(score)].isna()]
        texts = [_why(line, score) for line in runs.to_dict("records")]
        first = runs.assign(text=texts).drop_duplicates(["dataset", "model"])
        reasons = pd.DataFrame(None, index=self.datasets, columns=self.models, dtype=object)
        for dataset, model, text in zip(first["dataset"], first["model"], first["text"], strict=True):
            reasons.loc[dataset, model] = text
        return reasons

    def __repr__(self) -> str:
        done = int((self.runs["status"] == "ok").sum())
        head = f"Comparison: {_count(self.models, 'model')}, {_count(self.datasets, 'data set')}, {done} fits"
        bad = len(self.runs) - done
        tail = f"\n{bad} fits are missing; see problems()." if bad else ""
        table = f"\n{self.scores[0]}\n{self.to_text(self.scores[0])}" if self.scores else ""
        return f"{head}{table}{tail}"

    # -- checks -------------------------------------------------------------------------------------------

    def _column(self, score: str) -> str:
        if score in self.scores or score in _NUMBERS:
            return score
        raise InputError(
            f"This comparison has no score {score!r}; it has {', '.join(map(repr, self.scores))}."
        )

    def _known(self, what: str, asked: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
        for name in asked or ():
            if name not in known:
                raise InputError(f"{what}: {name!r} is not compared here; there are {', '.join(known)}.")
        return known if asked is None else tuple(asked)


def _line(record: Record) -> dict[str, Any]:
    return {fact: record.get(fact) for fact in FACTS} | {
        "warnings": tuple(record.get("warnings", ())),
        "score_problems": record.get("score_problems") or {},
    }


def _why(line: dict[Any, Any], score: str) -> str:
    """Return why a fit has no score: what became of it, or what went wrong with that score alone."""
    if line["status"] != "ok":
        return f"{line['status']}: {line['reason']}".removesuffix(": ")
    problem = (line.get("score_problems") or {}).get(score, "")
    return f"no score: {problem}".removesuffix(": ")


def _newest(records: Iterable[Record]) -> list[Record]:
    """Return the records without those of a model's earlier settings, or of earlier data, with a warning."""
    everything = sorted(records, key=lambda record: record.get("finished", 0.0))
    plan = {r["dataset"]: r["plan"] for r in everything}  # one for all models, or folds would not be alike
    alike = [r for r in everything if r["plan"] == plan[r["dataset"]]]
    settings = {(r["dataset"], r["model"]): r["settings"] for r in alike}
    kept = [r for r in alike if r["settings"] == settings[r["dataset"], r["model"]]]
    if len(kept) < len(everything):
        warnings.warn(
            f"Comparison.from_folder: {len(everything) - len(kept)} fits of earlier settings, data or folds"
            " under the same names are left out; under different names both would be there.",
            TupletWarning,
            stacklevel=3,
        )
    return sorted(kept, key=lambda record: (record["dataset"], record["model"], record["fold"]))


def _counted(lines: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    return lines.groupby(keys, sort=False).size().rename("folds").reset_index()


def _count(things: Sequence[str], word: str) -> str:
    return f"{len(things)} {word}" + ("s" if len(things) != 1 else "")


# -- calibration -------------------------------------------------------------------------------------------


def _bins(records: Iterable[Record]) -> pd.DataFrame | None:
    """Return the calibration tables of all records as one frame."""
    frames = [
        pd.DataFrame(columns).assign(kind=kind, **{key: record[key] for key in ("dataset", "model", "fold")})
        for record in records
        for kind, columns in (record.get("calibration") or {}).items()
    ]
    return pd.concat(frames, ignore_index=True) if frames else None


def _joined(bins: pd.DataFrame, n_bins: int) -> pd.DataFrame:
    """Return bins of several folds joined into fewer, wider ones: sums of counts, means by counts."""
    wide = (bins["bin"] * n_bins // N_BINS).rename("bin")
    sums = pd.DataFrame(
        {
            "count": bins["count"],
            "mean_predicted": bins["mean_predicted"] * bins["count"],
            "observed": bins["observed"] * bins["count"],
        }
    )
    total = sums.groupby(wide).sum()
    means = total[["mean_predicted", "observed"]].div(total["count"], axis=0)
    lower = total.index.to_numpy() / n_bins
    limits = pd.DataFrame({"lower": lower, "upper": lower + 1 / n_bins}, index=total.index)
    return pd.concat([limits, means, total["count"]], axis=1).reset_index()

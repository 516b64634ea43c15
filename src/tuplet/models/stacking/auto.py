"""The model to start with: everything that is worth a try, within a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tuplet.core.clock import TimeBudget
from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.core.parallel import n_workers
from tuplet.core.parameters import declare
from tuplet.core.progress import Progress, Show, duration_text
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.models.base import JointClassifier
from tuplet.models.rules.language.ruleset import RuleSet
from tuplet.models.stacking.blend import Blend
from tuplet.models.stacking.candidates import (
    Candidate,
    default_candidates,
    is_light,
    quick_model,
    rule_candidates,
)
from tuplet.models.stacking.classifier import MODELS, named_models
from tuplet.models.stacking.clock import Crew
from tuplet.models.stacking.held_out import Rows, fit_on, folds_of
from tuplet.models.stacking.race import Race
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUICK = "quick chain of logistic"

_WORTHWHILE = 1.0
"""Seconds below which processes would not even have started."""

_COLUMNS = ["model", "log_likelihood", "weight", "rows", "folds", "fit_seconds", "predict_seconds", "status"]


@final
class AutoJointClassifier(JointClassifier):
    """The model to start with: many models are tried within a time, and the best mixture of them is kept.

    Candidates of all families (independent, powerset, chains, trees, Bayesian networks, generative networks,
    probit, neighbours, rules if there are any) with several local models (logistic, kernels, extra-trees,
    forests, boosting) are judged by the joint log-likelihood of rows that they have not seen: first on few
    rows, then, if they do well, on all rows, fold by fold. What is left is stacked as in
    `JointStackingClassifier` and fitted to all rows.

    Parameters
    ----------
    time_budget : float
        Seconds that `fit` may take. Fits run in processes of their own, which are stopped when the time is
        up; with half a second there is a logistic chain, with more there is more.
    models : list or mapping of models, optional
        What to try, instead of the default candidates; rules of experts come beside them.
    rules : sequence of str, Rule or NoisyOr
        Rules of experts; models that obey them are candidates, too. See `RuleStackingClassifier`.
    cv : int, splitter, or iterable of (train, test)
        Folds of the final comparison; see `JointStackingClassifier`.
    temperature : bool
        See `JointStackingClassifier`.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`. None leaves it to each model inside.
    random_state : int, Generator or None
        The same number gives the same model wherever the clock cut nothing off.
    n_jobs : int, optional
        Processes; -1, all cores, unless told.
    progress : bool or "auto"
        Whether to show how far it is; "auto" does so in a terminal.

    Attributes
    ----------
    leaderboard_ : DataFrame
        For every candidate its held-out joint log-likelihood per row, its weight in the mixture, the rows and
        folds that it was judged on, the seconds of one fit and one prediction there, and what became of it.
    summary_ : str
        What there was time for, in a sentence.
    weights_ : dict of str to float
    models_ : dict of str to model
        The models of the mixture, fitted to all rows.
    log_likelihood_ : float
        Held-out joint log-likelihood per row of the mixture.
    log_likelihood_error_ : float
        Its standard error; see `JointStackingClassifier`.
    tempering_ : Tempering
        The power of the mixture and what it gains.
    reliability_ : DataFrame or None
        See `JointStackingClassifier`.
    race_ : DataFrame
        The candidates that were judged in all folds that count, in the order in which they were done, with
        the `seconds` since the start and their held-out `log_likelihood`.

    Notes
    -----
    Ctrl-C ends the comparison and goes on with what it has found; pressed again it ends the fit.

    Examples
    --------
    >>> from tuplet import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> model = AutoJointClassifier(time_budget=0.5, random_state=0).fit(X[::2], y[::2])
    >>> model.summary_
    'No time to compare models in 0.5 s: a chain of logistic regressions on 172 of 172 rows.'
    >>> model.weights_
    {'quick chain of logistic': 1.0}
    """

    _parameters = declare(
        "columns time_budget rules cv temperature random_state n_jobs progress", models=(MODELS, None)
    )

    _feature_form = "raw"  # each model has its own view of them
    _keeps_frames = True
    _drops_unweighted = False  # cv may name rows by position
    _judged_by_few_rows = False  # each fit would take the whole time

    def __init__(
        self,
        time_budget: float = 60.0,
        *,
        models: Sequence[Any] | Mapping[str, Any] | None = None,
        rules: Sequence[Any] = (),
        cv: Any = 5,
        temperature: bool = True,
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = -1,
        progress: Show = "auto",
    ) -> None:
        self.time_budget = time_budget
        self.models = models
        self.rules = rules
        self.cv = cv
        self.temperature = temperature
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return []

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        clock = TimeBudget(float(self.time_budget))
        rows = Rows(X, codes, sample_weight, self.space_, self._groups)
        candidates = self._candidates(rows)
        folds = folds_of(rows, self.cv)
        no_time = f"No time to compare models in {self.time_budget:g} s"
        if not folds or clock.seconds < _WORTHWHILE:
            self._keep_quick(rows, no_time if folds else "Too few rows to hold any out")
            self.leaderboard_, self.race_ = _board([], self.weights_), _course([])
            return
        self._keep_quick(rows, no_time)
        with (
            Crew(rows, n_workers(self.n_jobs), clock) as crew,
            Progress("Trying models", round(clock.seconds), show=self.progress) as progress,
        ):
            told = _Ticker(progress, clock)
            race = Race(rows, candidates, folds, crew, self.temperature, told)
            race.run()
            self._keep_best(race)
            progress.total = progress.done
        self._sum_up(race, clock)

    def _candidates(self, rows: Rows) -> list[Candidate]:
        if self.models is None:
            found = default_candidates(rows, self.rules)
        else:
            found = [
                Candidate(name, model, light=is_light(model, rows))
                for name, model in named_models(self.models).items()
            ]
            found += rule_candidates(rows, self.rules)
        RuleSet(self.rules).compile(rows.space)  # a name that nobody knows is an error at once
        rng = np.random.default_rng(self.random_state)
        return [candidate.seeded(rng) for candidate in found]

    def _keep_quick(self, rows: Rows, reason: str) -> None:
        """Have something to return whatever comes."""
        model, some = quick_model(rows, float(self.time_budget))
        self.models_ = {_QUICK: fit_on(model, some)}
        self._blend = _alone(_QUICK)
        self._take_over(self._blend)
        self._quick = f"a chain of logistic regressions on {len(some):,} of {len(rows):,} rows."
        self.summary_ = f"{reason}: {self._quick}"

    def _keep_best(self, race: Race) -> None:
        blend = race.blend()
        if blend is None:
            favourite = race.favourite()
            if favourite is None:
                return
            blend = _alone(favourite.name)
        fitted = race.refit(blend)
        if not fitted:
            return
        if len(fitted) < len(blend.names):
            blend = race.blend(list(fitted))  # of those that there was time for
        if blend is not None:
            self.models_ = fitted
            self._take_over(blend)

    def _take_over(self, blend: Blend) -> None:
        self._blend = blend
        self.weights_ = {name: blend.weights[name] for name in blend.names}
        self.log_likelihood_, self.log_likelihood_error_ = blend.log_likelihood, blend.error
        self.tempering_ = blend.tempering
        self.reliability_ = blend.reliability

    def _sum_up(self, race: Race, clock: TimeBudget) -> None:
        self.leaderboard_, self.race_ = _board(race.entries, self.weights_), _course(race.course())
        judged = sum(bool(entry.held) for entry in race.entries)
        if _QUICK in self.weights_:
            ends = [entry.status for entry in race.entries]
            if all(end.startswith(("failed", "crashed")) for end in ends):
                self.summary_ = f"All models failed (the first one {ends[0]}): {self._quick}"
            return
        if not race.n_folds:
            self.summary_ = (
                f"No time to judge models on all rows: {next(iter(self.weights_))}, the best on few rows."
            )
            return
        self.summary_ = (
            f"{judged} of {len(race.entries)} models judged by {race.n_folds} of {len(race.folds)} folds of"
            f" {len(race.rows):,} rows in {duration_text(clock.used)}; a mixture of {len(self.weights_)}."
            + (" It was interrupted; with more time it may be better." if race.crew.interrupted else "")
        )

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        return self._blend.joint(X, self.models_, self.label_counts_)

    # -- reading the model --------------------------------------------------------------------------------

    def plot_path(self, *, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the held-out log-likelihood of the models over time, and that of the mixture."""
        check_is_fitted(self, "space_")
        if not len(self.race_):
            raise InputError("plot_path: there was no time for a race, so there is no path to draw.")
        return delegate("plot_learning_path", self, title=title, ax=ax)


class _Ticker:
    """Shows the clock as progress."""

    def __init__(self, progress: Progress, clock: TimeBudget) -> None:
        self.progress, self.clock = progress, clock

    def __call__(self, name: str) -> None:
        passed = min(round(self.clock.used), self.progress.total) - self.progress.done
        self.progress.advance(name, steps=max(0, passed), remaining=self.clock.left)


def _course(lines: Sequence[tuple[str, float, float]]) -> pd.DataFrame:
    """Who was judged when, and how well."""
    return pd.DataFrame(lines, columns=["model", "seconds", "log_likelihood"])


def _alone(name: str) -> Blend:
    """Return a mixture of one, about which nothing is known."""
    return Blend({name: 1.0}, {name: np.nan}, np.nan, np.nan, np.inf, 0)


def _board(entries: Sequence[Any], weights: Mapping[str, float]) -> pd.DataFrame:
    """Everything that is known of the candidates, the best first."""
    lines = [
        {
            "model": entry.name,
            "log_likelihood": entry.score,
            "weight": weights.get(entry.name, 0.0),
            "rows": entry.n_rows,
            "folds": len(entry.held),
            "fit_seconds": entry.fit_seconds,
            "predict_seconds": entry.predict_seconds,
            "status": entry.status,
        }
        for entry in entries
    ]
    board = pd.DataFrame(lines, columns=_COLUMNS)
    return board.sort_values(["folds", "log_likelihood"], ascending=False, ignore_index=True)

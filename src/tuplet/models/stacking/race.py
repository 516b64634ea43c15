"""Candidates against each other and the clock: few rows first, all rows for those that do well there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from tuplet.core.typing import Floats
from tuplet.local.cross_fitting import Fold, Positions, inner_folds
from tuplet.models.mixture_weights import mixture_weights
from tuplet.models.stacking.blend import Blend, find_blend
from tuplet.models.stacking.candidates import Candidate
from tuplet.models.stacking.clock import Crew, Done, Task
from tuplet.models.stacking.held_out import HeldOut, Rows, fit_on, gain_of, judge
from tuplet.models.stacking.tempering import n_tables

_FIRST = 1000
"""Rows of the first heat."""

_GROWTH = 4
"""How many times the rows of a heat the next one has."""

_KEEP, _KEEP_LATE = 6, 3
"""Candidates that always stay in the race: after a heat, whose rows are few, and after the first fold."""

_SHARE = 0.01
"""Weight in the mixture of a heat with which a candidate stays in the race, whatever its own place, and
below which a model is not worth its time in the end."""

_CHEAP = 0.02
"""Share of the time below which a candidate stays in the race as long as it is not clearly worse than the
best: a fold of few rows says little."""

_HEATS = 0.4
"""Share of the time that heats on few rows may take: what counts is how models do on all rows."""

_RESERVE = 0.15
"""Share of the time that is kept for the final fits, at least."""

_MEMBERS = 4
"""Models that are expected in the final mixture."""

_CAUTION = 1.3
"""Factor on expected times of the final fits, so that they end before the clock does."""


@final
class Race:
    """Heats on growing numbers of rows, then folds of all rows; in the end a mixture of who is left.

    Parameters
    ----------
    rows : Rows
    candidates : sequence of Candidate
        In the order in which they start.
    folds : list of Fold
        Of all rows.
    crew : Crew
    temperature : bool
        Whether the mixture may be raised to a power.
    told : callable, optional
        Gets the name of each candidate that has run a heat.
    """

    def __init__(
        self,
        rows: Rows,
        candidates: Sequence[Candidate],
        folds: Sequence[Fold],
        crew: Crew,
        temperature: bool,
        told: Callable[[str], None] = lambda name: None,
    ) -> None:
        self.rows, self.folds, self.crew, self.temperature = rows, list(folds), crew, temperature
        self.entries = [Entry(candidate) for candidate in candidates]
        self.running = list(self.entries)
        self._told = told

    # -- the race -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run all heats that there is time for."""
        for size in first_rows(len(self.rows)):
            self._heat(size)
        # Who did best on few rows is judged on all rows first: there may be no time for the others.
        self._sort()
        # What takes a moment is judged in all folds at once, while the others start.
        light = [entry for entry in self.running if entry.candidate.light]
        heavy = [entry for entry in self.running if not entry.candidate.light]
        self._judge([*self._heats(light, range(len(self.folds))), *self._heats(heavy, [0])])
        said = {entry.name: entry.held[0].log_prob for entry in self._with(1)}
        self.running = self._best(said, self.folds[0], "the first fold", _KEEP_LATE)
        self._sort()
        self._judge(self._heats(self.running, range(1, len(self.folds))))
        self._try_richer()
        self._try_again()
        self._try_richer()

    def _sort(self) -> None:
        """Let who did best so far start first."""
        self.running.sort(key=lambda entry: -np.nan_to_num(entry.score, nan=-np.inf))

    def _heat(self, size: int) -> None:
        """Judge the candidates by the last third of some rows."""
        order = np.random.default_rng(0).permutation(len(self.rows))[:size]
        fold = _split(self.rows, order)
        if fold is None:  # hardly any of these rows have a weight
            return
        said: dict[str, Floats] = {}
        for heat, held in self._judge([_Heat(entry, fold, size) for entry in self.running], 1 - _HEATS):
            heat.entry.log_likelihood = held.log_likelihood
            said[heat.entry.name] = held.log_prob
        n_kept = max(_KEEP, -(-len(said) // 2))
        self.running = self._best(said, fold, f"{size:,} rows", n_kept)

    def _heats(self, entries: Sequence[Entry], numbers: Iterable[int]) -> list[_Heat]:
        """Return the folds of all rows that candidates have not run in yet, one fold after the other."""
        n = len(self.rows)
        return [
            _Heat(entry, self.folds[f], n, f) for f in numbers for entry in entries if f not in entry.held
        ]

    def _try_richer(self) -> None:
        """Judge richer kinds of those candidates that the mixture leans on."""
        blend = self.blend()
        if blend is None:
            return
        known, k = {entry.name for entry in self.entries}, self.n_folds
        ranked = sorted(self._with(k), key=lambda entry: -blend.weights.get(entry.name, 0.0))
        new = [
            entry.richer(name, model)
            for entry in ranked
            if blend.weights.get(entry.name, 0.0) > _SHARE
            for name, model in entry.candidate.richer
            if name not in known
        ]
        self.entries += new
        self._judge(self._heats(new, range(k)))

    def _try_again(self) -> None:
        """Judge in all folds who was dropped, the best first: there is time, and chance may have erred."""
        k = self.n_folds
        judged = {entry.name for entry in self._with(k)}
        dropped = [entry for entry in self.entries if entry.n_rows and entry.name not in judged]
        dropped.sort(key=lambda entry: (not entry.held, -np.nan_to_num(entry.score, nan=-np.inf)))
        self._judge([heat for entry in dropped for heat in self._heats([entry], range(k))])

    # -- who is left --------------------------------------------------------------------------------------

    @property
    def n_folds(self) -> int:
        """Folds that count: all that somebody was judged in, or fewer if slow candidates are worth that.

        They are if, on the folds that they have, they make the mixture better by two standard errors.
        """
        numbers = [k for k in range(1, len(self.folds) + 1) if self._with(k)]
        best = numbers[-1] if numbers else 0
        for k in reversed(numbers[:-1]):
            gain = self._mixed(k, k) - self._mixed(best, k)
            tested = np.concatenate([fold.test for fold in self.folds[:k]])
            if gain_of(gain, self._weight(k), self.rows.groups_of(tested)).is_clear:
                best = k
        return best

    def _mixed(self, judged_in: int, k: int) -> Floats:
        """Log-probabilities (n,) of the rows of k folds by the best mixture of those judged in so many."""
        said = [np.concatenate([e.held[f].log_prob for f in range(k)]) for e in self._with(judged_in)]
        log_prob = np.stack(said, axis=1)
        with np.errstate(divide="ignore"):
            log_weights = np.log(mixture_weights(log_prob, self._weight(k)).weights)
            return np.asarray(logsumexp(log_prob + log_weights, axis=1))

    def _weight(self, k: int) -> Floats:
        """Weights (n,) of the rows of k folds."""
        return np.concatenate([fold.test_weight for fold in self.folds[:k]])

    def _with(self, k: int) -> list[Entry]:
        return [entry for entry in self.entries if all(f in entry.held for f in range(k))]

    def _best(self, said: dict[str, Floats], fold: Fold, where: str, n_kept: int) -> list[Entry]:
        """Return the best of those that ran, who has weight in a mixture of all, and who is cheap to keep."""
        if not said:
            return list(self.running)
        weight, groups = fold.test_weight, self.rows.groups_of(fold.test)
        log_prob = np.stack(list(said.values()), axis=1)
        finite = np.asarray(np.isfinite(log_prob).all(axis=0))
        alone = np.where(finite, weight @ np.where(finite, log_prob, 0.0), -np.inf)
        shares = np.zeros(len(said))
        if finite.any():
            shares[finite] = mixture_weights(log_prob[:, finite], weight).weights
        places = np.argsort(np.argsort(-alone))
        behind = log_prob[:, [int(alone.argmax())]] - log_prob
        gains = [gain_of(each, weight, groups) for each in behind.T]
        clear = [not ok or gain.is_clear for ok, gain in zip(finite, gains, strict=True)]
        cheap = {entry.name for entry in self.running if self._is_cheap(entry)}
        kept = {
            name
            for name, place, share, worse in zip(said, places, shares, clear, strict=True)
            if place < n_kept or share > _SHARE or (name in cheap and not worse)
        }
        for entry in self.running:
            if entry.name in said and entry.name not in kept:
                entry.status = f"dropped after {where}"
        # Who ran before, and was not reached this time, may still be good.
        waiting = {entry.name for entry in self.running if entry.n_rows and entry.status == "no time"}
        return [entry for entry in self.running if entry.name in kept | (waiting - said.keys())]

    def _is_cheap(self, entry: Entry) -> bool:
        """Whether all folds of a candidate take little of the time."""
        seconds = len(self.folds) * entry.expected(len(self.rows)) / self.crew.n_workers
        return seconds <= _CHEAP * self.crew.clock.seconds

    def blend(self, names: Sequence[str] | None = None) -> Blend | None:
        """Return the best mixture of those judged in all folds that count; None if there is nobody."""
        k = self.n_folds
        entries = [e for e in self._with(k) if names is None or e.name in names] if k else []
        if not entries:
            return None
        judged = {entry.name: [entry.held[f] for f in range(k)] for entry in entries}
        blend = find_blend(self.rows, self.folds[:k], judged, temperature=self.temperature)
        worth = [name for name in blend.names if blend.weights[name] >= _SHARE]
        return blend if len(worth) == len(blend.names) else self.blend(worth)

    def course(self) -> list[tuple[str, float, float]]:
        """Return who was judged in all folds that count, after how many seconds, and how well; in order."""
        k = self.n_folds
        return sorted(((e.name, *e.after(k)) for e in self._with(k)), key=lambda line: line[1]) if k else []

    # -- work ---------------------------------------------------------------------------------------------

    def favourite(self) -> Entry | None:
        """Return who did best on few rows, of those that there is time to fit to all rows; None if nobody."""
        ran = [entry for entry in self.entries if np.isfinite(entry.log_likelihood)]
        affordable = [entry for entry in ran if self._final_seconds(entry) <= self._after_heats]
        return max(affordable, key=lambda entry: entry.log_likelihood, default=None)

    @property
    def _after_heats(self) -> float:
        return (1 - _HEATS) * self.crew.clock.seconds

    def _final_seconds(self, entry: Entry) -> float:
        return _CAUTION * entry.expected(len(self.rows))

    def refit(self, blend: Blend) -> dict[str, Any]:
        """Fit the models of a mixture to all rows; those for which there was no time are missing."""
        chosen = sorted(
            (entry for entry in self.entries if entry.name in blend.names),
            key=lambda entry: -blend.weights[entry.name],
        )
        done = self.crew.run([_final(entry.candidate) for entry in chosen])
        for entry in chosen:
            result = done.get(entry.name, Done(status="stopped"))
            entry.status = "in the mixture" if result.status == "ok" else f"final fit: {result.status}"
        return {name: result.value for name, result in done.items() if result.status == "ok"}

    def _reserve(self) -> float:
        """Seconds that the final fits need, as far as one can tell: never less than a share of the budget."""
        least = _RESERVE * self.crew.clock.seconds
        judged = [entry for entry in self.entries if 0 in entry.held]
        if not judged:
            favourite = self.favourite()
            return max(least, 0.0 if favourite is None else self._final_seconds(favourite))
        top = sorted(judged, key=lambda entry: -entry.score)[:_MEMBERS]
        if all(entry.candidate.light for entry in top):
            return least
        fits = [1.25 * entry.fit_seconds for entry in top]
        seconds = _CAUTION * max(max(fits), sum(fits) / self.crew.n_workers)
        return max(least, seconds + self.crew.start_seconds)  # of processes whose work was cut off

    def _judge(self, heats: Sequence[_Heat], kept: float = 0.0) -> list[tuple[_Heat, HeldOut]]:
        """Do what there is time for, with a share `kept` of the whole time left at least."""
        tasks = [self._task(i, heat) for i, heat in enumerate(heats)]

        def told(task: Task, result: Done) -> None:
            heat = heats[task.key]
            heat.entry.note(result, heat)
            if result.status == "ok" and heat.number is not None:
                heat.entry.done_at[heat.number] = self.crew.clock.used
            self._told(heat.entry.name)

        def reserve() -> float:
            return max(self._reserve(), kept * self.crew.clock.seconds)

        done = {} if self.crew.interrupted else self.crew.run(tasks, reserve, told)
        results = [(heat, done.get(i, Done(status="stopped"))) for i, heat in enumerate(heats)]
        return [(heat, result.value) for heat, result in results if result.status == "ok"]

    def _task(self, number: int, heat: _Heat) -> Task:
        whole = heat.number is not None
        tables = n_tables(self.rows.space.cards, len(heat.fold.test)) if whole else 0
        work = heat.candidate.model, heat.fold, tables
        known = bool(heat.entry.n_rows)
        return Task(number, _judge, work, heat.expected, heat.candidate.light, not known)


def first_rows(n: int) -> list[int]:
    """Return the sizes of the heats before all n rows; none where that would save little."""
    sizes, size = [], _FIRST
    while size * 2 <= n:
        sizes.append(size)
        size *= _GROWTH
    return sizes


def _split(rows: Rows, some: Positions) -> Fold | None:
    """Return two thirds of some rows to learn from, and one third to be judged by; None if too few weigh."""
    part = rows.take(some, None if rows.weights is None else rows.weights[some])
    rng = np.random.default_rng(0)
    for fold in inner_folds(None, part.codes, part.weights, 3, groups=part.groups, rng=rng):
        return replace(fold, train=some[fold.train], test=some[fold.test])
    return None


def _judge(rows: Rows, model: Any, fold: Fold, tables: int) -> HeldOut:
    return judge(model, rows, fold, tables)


def _final(candidate: Candidate) -> Task:
    """A fit to all rows; for a light one there is always time."""
    expected = -np.inf if candidate.light else 0.0
    return Task(candidate.name, _refit, (candidate.model,), expected, candidate.light)


def _refit(rows: Rows, model: Any) -> Any:
    return fit_on(model, rows)


_LEAST = -700.0
"""Log-probability at which a row that a candidate rules out is counted: a row may be impossible for all."""

_GROWTH_OF_TIME = 1.1
"""Power of the number of rows with which the time of a fit is expected to grow."""


@final
@dataclass
class Entry:
    """A candidate in the race.

    Attributes
    ----------
    held : dict of int to HeldOut
        What it said of the rows of each fold of all rows.
    n_rows : int
        Rows of the largest heat that it has run, training and test.
    fit_seconds, predict_seconds : float
        Of the last fit.
    log_likelihood : float
        In the last heat.
    status : str
        What became of it.
    done_at : dict of int to float
        Seconds from the start of the race to the end of each fold of all rows.
    """

    candidate: Candidate
    held: dict[int, HeldOut] = field(default_factory=dict)
    n_rows: int = 0
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    log_likelihood: float = np.nan
    status: str = "no time"
    done_at: dict[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the candidate."""
        return self.candidate.name

    @property
    def score(self) -> float:
        """Held-out log-likelihood per row: of all rows so far, or of the last heat of fewer."""
        if not self.held:
            return self.log_likelihood
        return _mean(list(self.held.values()))  # at once: others may add to them meanwhile

    def after(self, k: int) -> tuple[float, float]:
        """Seconds until the first k folds were done, and their held-out log-likelihood per row."""
        return max(self.done_at[f] for f in range(k)), _mean([self.held[f] for f in range(k)])

    def expected(self, n: int) -> float:
        """Seconds that a heat of n rows should take; 0 if nothing is known."""
        if not self.n_rows:
            return 0.0
        return float((self.fit_seconds + self.predict_seconds) * (n / self.n_rows) ** _GROWTH_OF_TIME)

    def richer(self, name: str, model: Any) -> Entry:
        """Return a model of the same kind, of which it is known how long it should take."""
        times = float(getattr(model, "n_chains", 2))
        seconds = times * self.fit_seconds, times * self.predict_seconds
        return Entry(Candidate(name, model), {}, self.n_rows, *seconds)

    def note(self, done: Done, heat: _Heat) -> None:
        """Keep what is known after a heat."""
        if done.status == "ok":
            self.n_rows, self.status = heat.n_rows, "judged"
            self.fit_seconds, self.predict_seconds = done.value.fit_seconds, done.value.predict_seconds
            if heat.number is not None:
                log_prob = np.maximum(done.value.log_prob, _LEAST)
                self.held[heat.number] = replace(done.value, log_prob=log_prob)
        elif not self.held:
            self.status = done.status


@final
@dataclass(frozen=True)
class _Heat:
    """One heat of one candidate: a fold of `n_rows` rows, the `number`-th of all rows or of fewer."""

    entry: Entry
    fold: Fold
    n_rows: int
    number: int | None = None

    @property
    def candidate(self) -> Candidate:
        """Who runs."""
        return self.entry.candidate

    @property
    def expected(self) -> float:
        """Seconds that it should take."""
        return self.entry.expected(self.n_rows)


def _mean(parts: list[HeldOut]) -> float:
    return sum(part.weight * part.log_likelihood for part in parts) / sum(part.weight for part in parts)

"""Candidates in a race, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from tuplet.models.stacking.candidates import Candidate
from tuplet.models.stacking.clock import Done
from tuplet.models.stacking.held_out import Fold, HeldOut

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

    def note(self, done: Done, heat: Heat) -> None:
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
class Heat:
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

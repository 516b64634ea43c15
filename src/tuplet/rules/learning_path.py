"""The path of growing numbers of rules, judged on rows that are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tuplet.progress import Progress
from tuplet.rules.learning_data import Evidence
from tuplet.rules.learning_paper import PaperSettings, learn_as_in_the_paper
from tuplet.rules.learning_search import Settings, best_rule
from tuplet.rules.learning_terms import AnyTerm, Term
from tuplet.typing import Floats

Learner = Literal["greedy", "paper"]

_PATIENCE = 5
"""Rules in vain after which no more are tried."""

_PAPER_SIZES = (1, 2, 5, 10, 15, 20)
"""Numbers of rules that the paper's learner is tried with."""


@dataclass(frozen=True, eq=False)
class Search:
    """What all restarts share."""

    evidence: Evidence
    given: list[AnyTerm]
    settings: Settings
    learner: Learner
    n_rules: int | Literal["auto"]
    max_rules: int
    n_folds: int

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of rules, in the order in which they are tried."""
        if self.n_rules != "auto":
            return tuple(range(1, self.n_rules + 1)) if self.learner == "greedy" else (self.n_rules,)
        if self.learner == "greedy":
            return tuple(range(1, self.max_rules + 1))
        return tuple(size for size in _PAPER_SIZES if size <= self.max_rules)

    @property
    def n_steps(self) -> int:
        """How many of them there are."""
        return len(self.steps)


class Path:
    """Rules of all rows and, side by side, of all rows but a fold, for growing numbers of rules."""

    def __init__(self, search: Search, rng: np.random.Generator) -> None:
        self.search, self.rng = search, rng
        self.parts: list[_Part] = []
        evidence = search.evidence
        if search.n_rules == "auto":
            fold = rng.permutation(evidence.n) % min(search.n_folds, evidence.n)
            for number in range(fold.max() + 1):
                learn, judge = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
                self.parts.append(_Part(search, evidence.rows(learn), evidence.rows(judge)))
        self.whole = _Part(search, evidence, None)
        self.kept: dict[int, list[Term]] = {0: []}
        self.gains: dict[int, Floats] = {}
        self.interrupted = False

    def run(self, bar: Progress) -> None:
        """Add rules until none helps any more."""
        try:
            for size in self.search.steps:
                grown = [part.grow(size, self.rng) for part in (*self.parts, self.whole)]
                self.kept[size] = list(self.whole.terms)
                if self.parts:
                    self.gains[size] = np.concatenate([part.held_gain() for part in self.parts])
                bar.advance(self._note(size))
                if not any(grown) or self._in_vain(size):
                    break
        except KeyboardInterrupt:
            self.interrupted = True

    def _note(self, size: int) -> str:
        return f"{size} rules" + (f", held out {self._mean(self.gains[size]):+.4f}" if self.parts else "")

    def _in_vain(self, size: int) -> bool:
        if not self.parts or self.search.learner == "paper":
            return False
        best = max(self.gains, key=lambda one: self._mean(self.gains[one]))
        return size >= best + _PATIENCE

    def _mean(self, gains: Floats) -> float:
        return float(np.average(gains, weights=self._weights))

    @property
    def _weights(self) -> Floats:
        return np.concatenate([part.judge.weights for part in self.parts if part.judge is not None])

    def held_out(self) -> tuple[Floats, Floats]:
        """Return mean gains on held-out rows and their standard errors, for `sizes`."""
        means = [self._mean(gains) for gains in self.gains.values()]
        errors = [
            np.sqrt(self._mean((gains - mean) ** 2) / len(gains))
            for gains, mean in zip(self.gains.values(), means, strict=True)
        ]
        return np.array(means), np.array(errors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of rules that were judged."""
        return tuple(self.gains)

    def chosen(self) -> list[Term]:
        """Return the rules of the best number."""
        if not self.parts:
            return self.kept[max(self.kept)]
        means, errors = self.held_out()
        if not len(means) or means.max() <= errors[int(np.argmax(means))]:
            return []
        return self.kept[self.sizes[int(np.argmax(means))]]

    def value(self, terms: list[Term]) -> float:
        """Return how good the rules are: on held-out rows, if there are any."""
        if self.parts:
            return float(self.held_out()[0].max(initial=0.0)) if terms else 0.0
        evidence = self.search.evidence
        return float(evidence.weights @ evidence.log_gain([*self.search.given, *terms]))


class _Part:
    """Rules learned from some rows, and others to judge them."""

    def __init__(self, search: Search, learn: Evidence, judge: Evidence | None) -> None:
        self.search, self.learn, self.judge = search, learn, judge
        self.terms: list[Term] = []

    def grow(self, size: int, rng: np.random.Generator) -> bool:
        """Come to so many rules; return whether there is anything new."""
        search = self.search
        if search.learner == "paper":
            paper = PaperSettings()
            paper = replace(paper, max_scope=min(paper.max_scope, search.settings.max_scope))
            self.terms = learn_as_in_the_paper(self.learn, search.given, size, paper, rng)
            return True
        found = best_rule(self.learn, [*search.given, *self.terms], search.settings, rng)
        if found is not None:
            self.terms = [*self.terms, found.term]
        return found is not None

    def held_gain(self) -> Floats:
        assert self.judge is not None
        given = self.search.given
        return self.judge.log_gain([*given, *self.terms]) - self.judge.log_gain(given)

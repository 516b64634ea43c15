"""Learning noisy-or rules from beliefs and labels: as many as help on rows that they have not seen.

Rules are learned from all rows and, at the same time, from all rows but a fold; the gain of the held-out rows
decides how many of them are kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tuplet.core.exceptions import InputError, IntractableError, TupletWarning
from tuplet.core.progress import Progress, Show
from tuplet.core.typing import Codes, Floats
from tuplet.local.cross_fitting import inner_folds, mean_and_error
from tuplet.models.rules.language.rule import NoisyOr
from tuplet.models.rules.learning.evidence import Evidence, Term
from tuplet.models.rules.learning.paper import PaperSettings, learn_as_in_the_paper
from tuplet.models.rules.learning.search import SearchSettings, best_rule, fit_strengths
from tuplet.space.classes import ClassSpace

Learner = Literal["greedy", "paper"]

_MOST_CELLS = 2**20
"""Cells of one row that given rules may need where rules are learned beside them: there are many passes."""

_RULES_OF_LABELS, _FEWEST = 3_200, 10
"""Product of rules and class variables at which "auto" stops, and the rules that it tries in any case."""

_PATIENCE = 5
"""Rules in vain after which no more are tried."""

_PAPER_SIZES = (1, 2, 5, 10, 15, 20)
"""Numbers of rules that the paper's learner is tried with."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Rules that were learned, and how their number was found.

    Parameters
    ----------
    terms : tuple of Term
        In canonical form, those that contribute most first.
    contributions : array, shape (number of rules,)
        Mean log-likelihood of a training row that is lost without each of them.
    strengths : tuple of float
        Learned logit p of the given rules whose probability was to be learned.
    held_out : array, shape (sizes,)
        Mean gain in log-likelihood of rows that were held out, for every number of rules in `sizes`; empty if
        the number was given.
    held_out_error : array, shape (sizes,)
        Standard errors of these means.
    sizes : tuple of int
    interrupted : bool
        Whether somebody stopped the learning.
    """

    terms: tuple[Term, ...]
    contributions: Floats
    strengths: tuple[float, ...] = ()
    held_out: Floats = field(default_factory=lambda: np.zeros(0))
    held_out_error: Floats = field(default_factory=lambda: np.zeros(0))
    sizes: tuple[int, ...] = ()
    interrupted: bool = False

    @property
    def summary(self) -> str:
        """One sentence on what was learned."""
        if not len(self.held_out):
            return f"{_rules(len(self.terms))} learned; their number was given."
        if not self.terms and not self.held_out.any():
            return (
                "No rule was learned: no pattern of labels adds enough to the log-likelihood of the training"
                " rows, each counted by its weight, to be tried on others."
            )
        if not self.terms:
            return (
                "No rule was learned: none makes held-out rows more probable by more than its standard error,"
                " so the beliefs stay as they are but for given rules."
            )
        best = self.sizes.index(len(self.terms)) if len(self.terms) in self.sizes else -1
        return (
            f"{_rules(len(self.terms))} learned; on held-out rows"
            f" {'they add' if len(self.terms) > 1 else 'it adds'} {self.held_out[best]:.3f}"
            f" (standard error {self.held_out_error[best]:.3f}) to the mean log-likelihood."
        )


def _rules(n: int) -> str:
    return f"{n} rule{'s' * (n != 1)}"


def learn_rules(
    evidence: Evidence,
    learnable: Sequence[Term] = (),
    *,
    n_rules: int | Literal["auto"] = "auto",
    max_rules: int = 60,
    learner: Learner = "greedy",
    settings: SearchSettings | None = None,
    n_folds: int = 3,
    rng: np.random.Generator,
    progress: Show = "auto",
) -> Learned:
    """Learn noisy-or rules.

    Parameters
    ----------
    evidence : Evidence
        Beliefs must be those of classifiers that have not seen the rows.
    learnable : sequence of Term
        Given rules whose probability is learned, before any other rule.
    n_rules : int or "auto"
        "auto" takes the number that is best on rows that are held out, in folds; none if the best number is
        not better than no rules by more than a standard error. A number is the most that are learned: a rule
        that does not add `settings.least_gain` is none.
    max_rules : int
        Where "auto" stops at the latest; with more than 53 of the m class variables, at 3,200 / m rules,
        since each takes longer to find the more there are.
    learner : "greedy" or "paper"
        "greedy" adds one rule after the other; "paper" starts from random scopes and follows the gradient.
    settings : SearchSettings, optional
        For "greedy".
    n_folds : int
        Folds that "auto" holds out in turn.
    rng : Generator
    progress : bool or "auto"

    Warns
    -----
    TupletWarning
        If labels of some rows break given rules that allow no exception; such rows are left out.

    Returns
    -------
    Learned
        If interrupted from the keyboard, with the best of the rules so far.
    """
    settings = SearchSettings() if settings is None else settings
    evidence = _allowed(evidence)
    given = fit_strengths(evidence, learnable, settings) if learnable and evidence.n else list(learnable)
    if n_rules == 0 or evidence.n < 2 or len(evidence.cards) < 2:
        return Learned((), np.zeros(0), tuple(term.strength for term in given))
    settings = _with_room(settings, evidence, given)
    search = _Search(evidence, given, settings, learner, n_rules, max_rules, n_folds)
    path = _Path(search, rng.spawn(1)[0])
    with Progress("Learning rules", search.n_steps, show=progress) as bar:
        path.run(bar)
    return _finish(evidence, given, path)


def _allowed(evidence: Evidence) -> Evidence:
    """Leave out rows whose labels given rules exclude: nothing that is learned makes them possible."""
    kept = evidence.possible()
    if len(kept) < evidence.n:
        warnings.warn(
            f"The labels of {evidence.n - len(kept)} of {evidence.n} rows break a rule that allows no"
            " exception; no rule is learned from them. Give such rules a p between 0 and 1.",
            TupletWarning,
            stacklevel=2,
        )
    return evidence.rows(kept)


def _with_room(settings: SearchSettings, evidence: Evidence, given: Sequence[Term]) -> SearchSettings:
    """Allow learned rules as many cells as given ones need: or there would be none beside these."""
    needed = evidence.cells_with(given)
    if needed > _MOST_CELLS:
        raise IntractableError(
            "The given rules bind so many class variables together that no rules can be learned beside them;"
            " n_rules=0 learns none."
        )
    return replace(settings, max_cells=max(settings.max_cells, 2 * needed))


def _finish(evidence: Evidence, given: list[Term], path: _Path) -> Learned:
    """Sort rules by what the training rows lose without each of them."""
    terms = path.chosen()
    whole = evidence.weights @ evidence.log_gain([*given, *terms])
    without = [
        evidence.weights @ evidence.log_gain([*given, *terms[:k], *terms[k + 1 :]]) for k in range(len(terms))
    ]
    lost = (whole - np.array(without)) / evidence.weights.sum() if terms else np.zeros(0)
    order = np.argsort(-lost, kind="stable")
    means, errors = path.held_out()
    return Learned(
        tuple(terms[k] for k in order),
        lost[order],
        tuple(term.strength for term in given),
        means,
        errors,
        path.sizes,
        path.interrupted,
    )


def as_rule(term: Term, space: ClassSpace) -> NoisyOr:
    """Return a learned term as a rule with names.

    Examples
    --------
    >>> space = ClassSpace(("sky", "rain"), (["clear", "cloudy"], [0, 1]))
    >>> print(as_rule(Term((0, 1), 2.0, (np.array([0.0, 5.0]), np.array([5.0, 0.0]))), space))
    sky == cloudy (0.99) or rain == 0 (0.99)  (p = 0.8808)
    """
    if not term.scope:
        raise InputError("as_rule: the rule has no labels.")
    inhibitions = {
        space.names[v]: {space.categories[v][c]: float(np.exp(-cost)) for c, cost in enumerate(costs)}
        for v, costs in zip(term.scope, term.costs, strict=True)
    }
    return NoisyOr(inhibitions, term.probability, learned=True)


# -- the path of growing numbers of rules -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Search:
    """What is learned from, and how."""

    evidence: Evidence
    given: list[Term]
    settings: SearchSettings
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
            most = max(_FEWEST, _RULES_OF_LABELS // len(self.evidence.cards))
            return tuple(range(1, min(self.max_rules, most) + 1))
        return tuple(size for size in _PAPER_SIZES if size <= self.max_rules)

    @property
    def n_steps(self) -> int:
        """How many of them there are."""
        return len(self.steps)


class _Path:
    """Rules of all rows and, side by side, of all rows but a fold, for growing numbers of rules."""

    def __init__(self, search: _Search, rng: np.random.Generator) -> None:
        self.search, self.rng = search, rng
        self.parts: list[_Part] = []
        evidence = search.evidence
        if search.n_rules == "auto":
            for fold in inner_folds(
                None, evidence.codes, None, search.n_folds, groups=evidence.groups, rng=rng
            ):
                self.parts.append(_Part(search, evidence.rows(fold.train), evidence.rows(fold.test)))
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
        found = [mean_and_error(gains, self._weights, self._groups) for gains in self.gains.values()]
        means, errors = np.array(found).reshape(-1, 2).T
        return means, errors

    @property
    def _groups(self) -> Codes | None:
        groups = [part.judge.groups for part in self.parts if part.judge is not None]
        known = [each for each in groups if each is not None]
        return np.concatenate(known) if known else None

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


class _Part:
    """Rules learned from some rows, and others to judge them."""

    def __init__(self, search: _Search, learn: Evidence, judge: Evidence | None) -> None:
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

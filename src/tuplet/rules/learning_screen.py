"""Patterns of labels that the present rules expect too often or too seldom, counted in draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuplet.rules.learning_data import Evidence
from tuplet.rules.learning_terms import AnyTerm
from tuplet.typing import UNKNOWN, Codes, Floats

Pattern = tuple[tuple[int, int], ...]
"""Variables, ascending, with one category each."""

_Found = dict[tuple[int, ...], float]
"""Patterns as ascending lines of the 0/1 tables, with their surprise."""

_DRAWS, _DRAWS_PER_ROW = 20_000, 200
"""Draws that patterns are counted in, at most. They choose scopes; what is fitted is fitted exactly."""


@dataclass(frozen=True, eq=False)
class Screen:
    """Labels of rows, and draws from the posterior of these rows: a line of 0 and 1 for every category.

    Parameters
    ----------
    cards : tuple of int
    truth : array of float32, shape (sum of cards, n)
        Zero where a label is missing.
    drawn : array of float32, shape (sum of cards, draws)
        Zero where the row's label is missing: what cannot be observed is not expected.
    truth_weights, drawn_weights : arrays, shapes (n,) and (draws,)
        Of the same total.
    """

    cards: tuple[int, ...]
    truth: Floats
    drawn: Floats
    truth_weights: Floats
    drawn_weights: Floats

    @classmethod
    def draw(cls, evidence: Evidence, terms: Sequence[AnyTerm], rng: np.random.Generator) -> Screen:
        """Draw from the posterior under the rules so far."""
        size = int(np.clip(_DRAWS // max(1, evidence.n), 2, _DRAWS_PER_ROW))
        draws = evidence.sample(terms, size, rng)
        draws[:, evidence.codes == UNKNOWN] = UNKNOWN
        return cls(
            evidence.cards,
            _one_hot(evidence.codes, evidence.cards),
            _one_hot(draws.reshape(-1, draws.shape[2]), evidence.cards),
            evidence.weights.astype(np.float32),
            np.tile(evidence.weights / size, size).astype(np.float32),
        )

    @cached_property
    def owner(self) -> Codes:
        """Variable of every line."""
        return np.repeat(np.arange(len(self.cards)), self.cards)

    def patterns(
        self, n: int, width: int, longest: int, least: float, fits: Callable[[tuple[int, ...]], bool]
    ) -> list[Pattern]:
        """Return the n most surprising patterns.

        A beam search: the most surprising pairs of labels, each made longer by one label at a time as long as
        that adds to the surprise.

        Parameters
        ----------
        n : int
        width : int
            Patterns of a length that are made longer.
        longest : int
            Most labels of a pattern.
        least : float
            Nats that a further label must add.
        fits : callable
            Whether a scope is allowed.
        """
        beam = self._first_that_fit(self._pairs(4 * width), width, fits) if longest > 1 else {}
        done: _Found = dict(beam)
        for _ in range(longest - 2):
            longer: _Found = {}
            for lines, value in beam.items():
                longer |= self._longer(lines, value + least, width)
            beam = self._first_that_fit(longer, width, fits)
            done |= beam
        best = sorted(done, key=lambda lines: -done[lines])[:n]
        return [tuple(self._literal(i) for i in lines) for lines in best]

    def _first_that_fit(self, found: _Found, width: int, fits: Callable[[tuple[int, ...]], bool]) -> _Found:
        """Return the most surprising patterns whose scopes are allowed."""
        kept: _Found = {}
        for lines in sorted(found, key=lambda lines: -found[lines]):
            if len(kept) == width:
                break
            if fits(tuple(int(v) for v in self.owner[list(lines)])):
                kept[lines] = found[lines]
        return kept

    def _pairs(self, n: int) -> _Found:
        """Return the n most surprising pairs."""
        observed = (self.truth * self.truth_weights) @ self.truth.T
        expected = (self.drawn * self.drawn_weights) @ self.drawn.T
        value = self._surprise(observed, expected)
        value[self.owner[:, None] >= self.owner] = -1.0
        order = np.argsort(-value, axis=None, kind="stable")[:n]
        pairs = [divmod(int(flat), len(self.owner)) for flat in order]
        return {pair: float(value[pair]) for pair in pairs if value[pair] > 0}

    def _longer(self, lines: tuple[int, ...], least: float, n: int) -> _Found:
        """Return the n most surprising patterns of one more label whose surprise is at least so much."""
        chosen = list(lines)
        observed = self.truth @ (self.truth_weights * self.truth[chosen].prod(axis=0))
        expected = self.drawn @ (self.drawn_weights * self.drawn[chosen].prod(axis=0))
        value = self._surprise(observed, expected)
        value[np.isin(self.owner, self.owner[chosen])] = -1.0
        order = np.argsort(-value, kind="stable")[:n]
        return {tuple(sorted((*lines, int(i)))): float(value[i]) for i in order if value[i] >= least}

    def _literal(self, line: int) -> tuple[int, int]:
        v = int(self.owner[line])
        return v, int(line - np.searchsorted(self.owner, v))

    def _surprise(self, observed: Floats, expected: Floats) -> Floats:
        """Return a lower bound of what the log-likelihood gains when a rule corrects the number of rows.

        A rule that weights a pattern by e^-s adds sum_i log f(y_i) - sum_i log E_i f, which is at least the
        same with the mean of E_i f in the place of each (Jensen). The best s then makes the expected number
        the observed one and gains their divergence.
        """
        total = float(self.truth_weights.sum())
        o = np.clip(observed.astype(float), 0.1, max(0.1, total - 0.1))
        e = np.clip(expected.astype(float), 0.1, max(0.1, total - 0.1))
        rest_o, rest_e = np.maximum(total - o, 0.1), np.maximum(total - e, 0.1)
        gain: Floats = o * np.log(o / e) + rest_o * np.log(rest_o / rest_e)
        return gain


def _one_hot(codes: Codes, cards: Sequence[int]) -> Floats:
    parts = [code == np.arange(card)[:, None] for code, card in zip(codes.T, cards, strict=True)]
    return np.vstack(parts).astype(np.float32)

"""Deadlines and budgets of seconds, with a clock that the test sets."""

import math

import pytest

from tuplet.core import clock
from tuplet.core.clock import TimeBudget, is_over


@pytest.fixture
def hands(monkeypatch):
    hands = [100.0]
    monkeypatch.setattr(clock, "now", lambda: hands[0])
    return hands


def test_a_budget_is_used_up(hands):
    budget = TimeBudget(10.0)
    assert (budget.used, budget.left, budget.after(5.0)) == (0.0, 10.0, 105.0)
    hands[0] = 107.0
    assert (budget.used, budget.left) == (7.0, 3.0)
    assert is_over(budget.after(5.0))
    assert not is_over(budget.after(8.0))
    hands[0] = 120.0
    assert budget.left == 0.0


def test_without_a_limit_nothing_is_late(hands):
    budget = TimeBudget()
    hands[0] = 1e9
    assert budget.left == math.inf
    assert not is_over(budget.after(budget.seconds / 2))
    assert not is_over(None)

"""Rules from data: evidence of held-out rows, the greedy search, and the learner of the paper."""

__all__: list[str] = []

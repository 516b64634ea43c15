"""Joint distributions of beliefs and rules: sums, maxima, and contradictions."""

__all__: list[str] = []

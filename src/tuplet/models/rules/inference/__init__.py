"""Joint distributions of beliefs and rules: sums, maxima, and what contradicts."""

__all__: list[str] = []

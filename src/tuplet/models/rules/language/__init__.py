"""The language of rules: formulas, their texts, and their translation to numbers."""

__all__: list[str] = []

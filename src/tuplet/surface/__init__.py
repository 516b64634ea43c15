"""Presentation: plots, pages, reports and the command line."""

__all__: list[str] = []

"""Pages of HTML without other files: tables that can be sorted, and pictures.

`html_page` takes sections; a section holds text, tables and pictures, without markup.
"""

from tuplet.surface.pages.grid import ScoreTable
from tuplet.surface.pages.page import Picture, PlainTable, Section, html_page

__all__ = ["Picture", "PlainTable", "ScoreTable", "Section", "html_page"]

"""Printed forms of comparisons: Markdown, LaTeX, text for terminals, and one page of HTML.

All take scores as frames, data sets x models, and mark the best of each line: every score that rounds to the
same digits. What is missing is a short sign with its reason in a footnote.
"""

from tuplet.evaluate.report.latex import latex_table
from tuplet.evaluate.report.markdown import markdown_table
from tuplet.evaluate.report.terminal import text_table
from tuplet.pages import Picture, PlainTable, ScoreTable, Section, html_page

__all__ = [
    "Picture",
    "PlainTable",
    "ScoreTable",
    "Section",
    "html_page",
    "latex_table",
    "markdown_table",
    "text_table",
]

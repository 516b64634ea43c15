"""One page about a fitted model: what it is made of, its data, its scores, examples of rows.

`model_page` shows what all models have, and what `report_sections` returns for the type of the model.
"""

from tuplet.surface.report.page import model_page, write_report
from tuplet.surface.report.sections import report_sections

__all__ = ["model_page", "report_sections", "write_report"]

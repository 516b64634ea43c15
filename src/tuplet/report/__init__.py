"""One page about a fitted model: what it is made of, its data, its scores, examples of rows.

`model_page` asks the model for what all models have, and for sections of its own by `_report_sections`.
"""

from tuplet.report.page import model_page

__all__ = ["model_page"]

"""Models as files: one file for each, safe to load from a stranger, since nothing in it is executed.

`save_model` and `load_model` are the way in and out; `read_header` tells what a file holds before it is
loaded.
"""

from typing import TYPE_CHECKING

from tuplet.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.persistence.files import load_model, read_header, save_model
    from tuplet.persistence.header import ModelHeader, Variable
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.persistence.files": "load_model read_header save_model",
            "tuplet.persistence.header": "ModelHeader Variable",
        },
    )

__all__ = ["ModelHeader", "Variable", "load_model", "read_header", "save_model"]

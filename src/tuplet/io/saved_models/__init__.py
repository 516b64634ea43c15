"""Models as files, safe to load from an untrusted source because nothing in them is executed.

`save_model` writes a model, `load_model` reads it, and `read_header` describes a file without loading it.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.io.saved_models.files import ModelHeader, Variable, load_model, read_header, save_model
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"tuplet.io.saved_models.files": "ModelHeader Variable load_model read_header save_model"}
    )

__all__ = ["ModelHeader", "Variable", "load_model", "read_header", "save_model"]

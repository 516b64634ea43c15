"""Models as files, safe to load from an untrusted source because nothing in them is executed.

`save_model` writes a model, `load_model` reads it, and `read_header` describes a file without loading it.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.io.saved_models.archive import ModelHeader, Variable
    from tuplet.io.saved_models.files import load_model, read_header, save_model
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.io.saved_models.files": "load_model read_header save_model",
            "tuplet.io.saved_models.archive": "ModelHeader Variable",
        },
    )

__all__ = ["ModelHeader", "Variable", "load_model", "read_header", "save_model"]

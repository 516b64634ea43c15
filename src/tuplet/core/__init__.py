"""What every other part may use: errors and warnings, names of array types, processes, files, progress.

Errors, warnings and types are public; everything else is for the library itself.
"""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.core.exceptions import (
        ApproximationWarning,
        ConvergenceWarning,
        DataFormatError,
        ImpossibleEvidenceError,
        InputError,
        IntractableError,
        LabelError,
        MissingDependencyError,
        ModelFileError,
        NoSuchRowError,
        NoTargetsError,
        TupletError,
        TupletWarning,
    )
    from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.core.exceptions": (
                "ApproximationWarning ConvergenceWarning DataFormatError ImpossibleEvidenceError "
                "InputError IntractableError LabelError MissingDependencyError ModelFileError "
                "NoSuchRowError NoTargetsError TupletError TupletWarning"
            ),
            "tuplet.core.typing": "UNKNOWN Codes Floats Seed",
        },
    )

__all__ = [
    "UNKNOWN",
    "ApproximationWarning",
    "Codes",
    "ConvergenceWarning",
    "DataFormatError",
    "Floats",
    "ImpossibleEvidenceError",
    "InputError",
    "IntractableError",
    "LabelError",
    "MissingDependencyError",
    "ModelFileError",
    "NoSuchRowError",
    "NoTargetsError",
    "Seed",
    "TupletError",
    "TupletWarning",
]

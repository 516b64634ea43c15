"""Errors and warnings, as one tree.

```
TupletError
├── InputError (also a ValueError)            the data or an argument cannot be used
│   ├── DataFormatError                       a file that does not comply with its format
│   ├── LabelError                            a label that is not in the class space
│   ├── NoTargetsError                        a table whose class variables are not specified
│   ├── ModelFileError                        a model that cannot be saved, or a file without one
│   ├── NoSuchRowError (also an IndexError)    a row that a prediction does not have
│   └── ImpossibleEvidenceError               conditioning on something of probability zero
├── IntractableError (also a RuntimeError)    the exact answer needs more than the stated size
└── MissingDependencyError (also an ImportError)

TupletWarning (a UserWarning)
├── ConvergenceWarning                        an iterative method stopped before it converged
└── ApproximationWarning                      an answer is an estimate, or its optimality is not proven
```

A message states what was attempted, what was found (names, not positions) and what to do.
"""

import sys
import warnings


class TupletError(Exception):
    """Base of every error that Tuplet raises on purpose.

    Parameters
    ----------
    message : str
    variable : int, optional
        The class variable that the error is about, where only its position is known. The message then has
        "variable 3", which code that has the names replaces by the name.
    """

    def __init__(self, message: str = "", *, variable: int | None = None) -> None:
        super().__init__(message)
        self.variable = variable


class InputError(TupletError, ValueError):
    """The data or an argument cannot be used as given."""


class DataFormatError(InputError):
    """A file that is damaged, cut short, or not of the format that it is read as.

    Parameters
    ----------
    message : str
    line : int, optional
        The line that the error is about, from 1, in files that have lines.
    """

    def __init__(self, message: str = "", *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class LabelError(InputError):
    """A label that is not in the class space."""


class NoTargetsError(InputError):
    """A table without a specification of which columns are class variables."""


class ModelFileError(InputError):
    """A model that cannot be saved as data, or a file from which none can be loaded."""


class NoSuchRowError(InputError, IndexError):
    """A row that a prediction does not have; an `IndexError` too, as for any sequence."""


class ImpossibleEvidenceError(InputError):
    """Evidence to which the distribution gives probability zero."""


class IntractableError(TupletError, RuntimeError):
    """The exact answer needs more memory or steps than the stated limit allows."""


class MissingDependencyError(TupletError, ImportError):
    """An optional package is needed and not installed."""


class TupletWarning(UserWarning):
    """Base of every warning that Tuplet gives."""


class ConvergenceWarning(TupletWarning):
    """An iterative method stopped before it converged."""


class ApproximationWarning(TupletWarning):
    """An answer is an estimate, or is not proven optimal."""


def warn_outside(message: str, category: type[Warning]) -> None:
    """Warn with the line outside of the library as the origin."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tuplet":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)

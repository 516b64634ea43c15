"""Labels become codes here, once, and codes become labels again; `features` does the same for X.

`labels` handles one column, `containers` arrays, frames and sparse matrices, and `ClassSpace` the names of
the class variables. `words` shortens names and labels for texts and plots.
"""

from tuplet.space.classes import ClassSpace

__all__ = ["ClassSpace"]

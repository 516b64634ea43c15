"""Labels become codes here, once, and labels again once.

`labels` knows one column, `containers` knows arrays, frames and sparse matrices, and `ClassSpace` ties them
to the names of the class variables.
"""

from tuplet.space.classes import ClassSpace

__all__ = ["ClassSpace"]

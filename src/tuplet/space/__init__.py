"""Labels become codes here, once, and codes become labels again; `features` does the same for X.

`labels` handles one column, `containers` arrays, frames and sparse matrices, and `ClassSpace` the names of
the class variables, `declare_order` gives labels an order. `words` shortens names and labels for texts and
plots.
"""

from tuplet.space.classes import ClassSpace
from tuplet.space.order import declare_order

__all__ = ["ClassSpace", "declare_order"]

"""Compiled loops: arrays in, arrays out.

Nothing here knows of class variables, models or labels, and nothing is checked: the callers see to shapes,
dtypes (float64, intp, C order) and finite values, because every other dtype would be compiled anew. All
functions release the GIL, so threads run side by side, and keep their machine code on disk.

A compiled function lives in one file with all it calls: numba's cache notices changes in its own file only.
"""

from tuplet.kernels.blocks import Blocks, sort_rows
from tuplet.kernels.logistic import fit_blocks, fit_shifts

__all__ = ["Blocks", "fit_blocks", "fit_shifts", "sort_rows"]

"""Compiled loops: arrays in, arrays out; see `tuplet.core.compiled`.

Nothing here depends on class variables, models or labels, and nothing is checked: callers provide shapes,
dtypes (float64, intp, C order) and finite values. All functions release the GIL, so that threads run in
parallel.

A compiled function lives in one file with all it calls: numba's cache notices changes in its own file only.
"""

from tuplet.kernels.logistic import fit_blocks, fit_shifts

__all__ = ["fit_blocks", "fit_shifts"]

"""Types of arrays that are used throughout the library, and the code of an unknown value."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

UNKNOWN = -1
"""No value: a missing label, a free variable in conditioning, an abstained position in a decision."""

Codes: TypeAlias = npt.NDArray[np.intp]
"""Integer codes of class variables, the variables on the last axis; `UNKNOWN` where there is no value."""

Floats: TypeAlias = npt.NDArray[np.float64]
"""Double-precision numbers."""

Seed: TypeAlias = int | np.random.Generator | None
"""Whatever `numpy.random.default_rng` takes."""

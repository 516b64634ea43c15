"""How much memory a process needs."""

from __future__ import annotations

import ctypes
import gc
import math
import sys
from pathlib import Path


class MemoryMeter:
    """Most memory that this process held at any time since the meter was made, beyond what it held then."""

    def __init__(self) -> None:
        _return_free_memory()
        self._resettable = _reset_peak()
        self._start = _status("VmRSS") if self._resettable else _lifetime_peak()

    def peak_mb(self) -> float:
        """Return megabytes; where the system's peak cannot be reset, how much it has grown."""
        peak = _status("VmHWM") if self._resettable else _lifetime_peak()
        return peak - self._start if math.isnan(peak) else max(0.0, peak - self._start)


def _return_free_memory() -> None:
    """Give free memory back to the system, or a fit that uses it again would seem to need none."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, TypeError, AttributeError):  # only the C library of Linux has it
        return


def _reset_peak() -> bool:
    """Let the system's record of this process's peak start anew; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) / 1024


def _lifetime_peak() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

"""Run the test suite as other machines would: `python tests/cpus.py [NAME ...]`, or `make test-cpus`.

Each run has a numba cache of its own, no benchmark data, and no variable CI. What libraries compute differs
in the last digits between processors; no test may depend on that, nor on the load of the machine.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

NO_VECTORS = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
"""All that numpy can do without: AVX2, AVX512 and their like."""

MACHINES = {
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "no-vectors": {"NPY_DISABLE_CPU_FEATURES": NO_VECTORS},
    "one-thread": {"OMP_NUM_THREADS": "1"},
    "two-threads": {"OMP_NUM_THREADS": "2"},
    # Without vectors the extension module is not used, so that numba compiles for that processor.
    "generic": {"NUMBA_CPU_NAME": "generic", "NPY_DISABLE_CPU_FEATURES": NO_VECTORS},
    "spawn": {"TUPLET_START_METHOD": "spawn"},
    "busy": {},
}


def run(name, options):
    """Run the suite as one machine; return its exit code and lines about it."""
    with ExitStack() as stack:
        cache = stack.enter_context(tempfile.TemporaryDirectory())
        if name == "busy":
            stack.enter_context(busy_loops(4))
        environment = {key: value for key, value in os.environ.items() if key not in ("CI", "TUPLET_DATA")}
        environment |= {"NUMBA_CACHE_DIR": cache} | MACHINES[name]
        before, start = used(), time.monotonic()
        chosen = "not slow and not deep and not cluster"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", chosen, *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = used() - before
        said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        last = (done.stdout.strip().splitlines() or done.stderr.strip().splitlines())[-1]
    minutes = (time.monotonic() - start) / 60
    said += [f"exit code {done.returncode}"] if done.returncode else []
    return done.returncode, [f"{name:12} {seconds / 60:5.1f} CPU min {minutes:5.1f} min  {last}", *said]


def used():
    """CPU seconds of all child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


@contextmanager
def busy_loops(count):
    """Keep the machine busy with other work, which ends before it is counted."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main():
    names = [argument for argument in sys.argv[1:] if argument in MACHINES]
    options = [argument for argument in sys.argv[1:] if argument not in MACHINES]
    failed = False
    for name in names or MACHINES:
        code, lines = run(name, options)
        failed |= code != 0
        print(*lines, sep="\n", flush=True)  # noqa: T201
    sys.exit(failed)


if __name__ == "__main__":
    main()

"""Ten million rows through `tuplet predict`, from Parquet to Parquet: memory, time, and a kill half-way.

Twenty features; three class variables by a chain of logistic regressions (fitted to 2,000 rows), with the
three most probable combinations of every row. The command runs in a process of its own, whose peak memory
the operating system tells. It is killed (SIGKILL) half-way over an older output, which must stay as it was.

    python benchmarks/run.py streaming

By itself, `python benchmarks/streaming.py 100000` takes fewer rows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tuplet import ChainClassifier

N_FEATURES, GROUP = 20, 250_000
NAMES = [f"x{j}" for j in range(N_FEATURES)]


def make(path: Path, n_rows: int) -> None:
    """Write features, a quarter of a million rows at a time."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float64()) for name in NAMES])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n_rows, GROUP):
            # Few distinct values, so that the file stays small and writing it is not what takes the time.
            part = rng.integers(-40, 40, (min(GROUP, n_rows - start), N_FEATURES)) / 16
            writer.write_table(pa.table(dict(zip(NAMES, part.T, strict=True)), schema=schema))


def fit(path: Path) -> None:
    """Save a small model."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(2000, N_FEATURES)), columns=NAMES)
    latent = X.to_numpy()[:, :3] + rng.normal(size=(2000, 3))
    latent[:, 1:] += latent[:, :1]
    Y = pd.DataFrame({name: np.digitize(latent[:, j], (-1, 1)) for j, name in enumerate("abc")})
    ChainClassifier().fit(X, Y).save(path)


def peak_and_cpu(process: subprocess.Popen[bytes]) -> tuple[float, float, int]:
    """Wait for a process; return its peak memory in MB, its CPU seconds, and its exit code."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, process.returncode


def main() -> None:
    """Print what a whole run takes, and what a killed one leaves."""
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, model, out = folder / "new.parquet", folder / "m.tuplet", folder / "out.parquet"
        make(data, n_rows)
        fit(model)
        command = [sys.executable, "-m", "tuplet", "predict", model, data, "--top-k", "3", "--out", out]
        start = time.monotonic()
        peak, cpu, code = peak_and_cpu(subprocess.Popen(command))
        wall = time.monotonic() - start
        written = pq.ParquetFile(out).metadata
        print("| rows | in, MB | out, MB | peak memory, MB | CPU s | rows per CPU s | exit code |")
        print("|---|---|---|---|---|---|---|")
        sizes = [f"{path.stat().st_size / 1e6:,.0f}" for path in (data, out)]
        print(
            f"| {written.num_rows:,} | {sizes[0]} | {sizes[1]} | {peak:,.0f} | {cpu:,.0f}"
            f" | {written.num_rows / cpu:,.0f} | {code} |\n"
        )
        before = out.stat()
        process = subprocess.Popen(command)
        time.sleep(wall / 2)
        process.send_signal(signal.SIGKILL)
        _, _, code = peak_and_cpu(process)
        drafts = [path.stat().st_size / 1e6 for path in folder.glob(".out.parquet*")]
        after = out.stat()
        same = (before.st_ino, before.st_mtime_ns, before.st_size) == (
            after.st_ino,
            after.st_mtime_ns,
            after.st_size,
        )
        print(
            f"Killed after {wall / 2:,.0f} of {wall:,.0f} s (exit code {code}), with {sum(drafts):,.0f} MB of"
            f" the new output written beside it: the old output is {'as it was' if same else 'SPOILT'}."
        )


if __name__ == "__main__":
    main()

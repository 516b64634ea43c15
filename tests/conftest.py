"""What several tests share."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from benchmark_sets import load_benchmark
from draws import load_profile

load_profile()


def pytest_collection_finish() -> None:
    """Exempt what is loaded from garbage collection: `compare` collects before every fit that it measures."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread: on small tables threads spend most of their time waiting.

    Tests of thread limits set their own with `threadpool_limits`.
    """
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session", autouse=True)
def heeds_interrupts() -> Iterator[None]:
    """Handle Ctrl-C: a shell that runs the tests in the background lets all their processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def benchmark_set() -> Callable[..., tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]]:
    """A reader of benchmark sets: name -> features, targets, auxiliary columns (split, folds)."""
    if not os.environ.get("TUPLET_DATA"):
        pytest.skip("needs the benchmark sets; set TUPLET_DATA to the folder with manifest.json")

    def read(name: str, **options) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        data = load_benchmark(name, **options)
        shipped = {"__train__": data.train, "__fold__": data.folds}
        auxiliary = {key: value for key, value in shipped.items() if value is not None}
        return data.X, data.Y, pd.DataFrame(auxiliary, index=data.X.index)

    return read


@pytest.fixture(autouse=True)
def no_picture_left() -> Iterator[None]:
    """Close pictures that a test has made: another one may look whether its own are closed."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

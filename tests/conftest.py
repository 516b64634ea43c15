"""What several tests share."""

import os
from collections.abc import Callable

import pandas as pd
import pytest

from tuplet.datasets import load_dataset


@pytest.fixture
def benchmark_set() -> Callable[..., tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]]:
    """A reader of benchmark sets: name -> features, targets, auxiliary columns (split, folds)."""
    if not os.environ.get("TUPLET_DATA"):
        pytest.skip("needs the benchmark sets; set TUPLET_DATA to the folder with manifest.json")

    def read(name: str, **options) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        data = load_dataset(name, **options)
        shipped = {"__train__": data.train, "__fold__": data.folds}
        auxiliary = {key: value for key, value in shipped.items() if value is not None}
        return data.X, data.Y, pd.DataFrame(auxiliary, index=data.X.index)

    return read

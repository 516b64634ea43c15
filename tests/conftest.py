"""What several tests share."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture
def benchmark_set() -> Callable[[str], tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]]:
    """A reader of benchmark sets: name -> features, targets, auxiliary columns."""
    folder = os.environ.get("TUPLET_DATA")
    if not folder:
        pytest.skip("needs the benchmark sets; set TUPLET_DATA to the folder with manifest.json")
    described = {
        entry["name"]: entry for entry in json.loads((Path(folder) / "manifest.json").read_text())["sets"]
    }

    def read(name: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        frame = pd.read_parquet(Path(folder) / described[name]["file"])
        targets = described[name]["target_names"]
        auxiliary = [column for column in frame if column.startswith("__")]
        return frame.drop(columns=[*targets, *auxiliary]), frame[targets], frame[auxiliary]

    return read

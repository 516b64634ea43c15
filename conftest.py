"""Examples in `tuplet.local.deep` run with the tests that need torch, and nowhere where it is missing."""

from importlib.util import find_spec
from pathlib import Path

import pytest

DEEP = Path(__file__).parent / "src" / "tuplet" / "local" / "deep"

collect_ignore_glob = [] if find_spec("torch") and find_spec("skorch") else [str(DEEP / "*")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples as `deep`."""
    for item in items:
        if DEEP in item.path.parents:
            item.add_marker("deep")

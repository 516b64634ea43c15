"""Pages about models, written to files."""

from __future__ import annotations

from typing import IO, Any


def write_report(model: Any, path: Any, X: Any, Y: Any, **options: Any) -> None:
    """Write a page about a model in full or not at all; see `JointClassifier.report`."""
    # Only now: most users of models never ask for a page or a file.
    from tuplet.datasets.files.atomic import write_bytes
    from tuplet.report import model_page

    page = model_page(model, X, Y, **options).encode()

    def write(file: IO[Any]) -> None:
        file.write(page)

    write_bytes(path, write, "report")

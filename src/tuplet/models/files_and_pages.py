"""The methods `save` and `report`, which all fitted models have."""

from __future__ import annotations

from typing import Any

from tuplet.core.delegates import delegate
from tuplet.losses.base import Loss


class SavedAndReported:
    """A fitted model that can be written to a file, and described on a page."""

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `tuplet.load_model` reads; see `tuplet.save_model`."""
        delegate("save_model", self, path)

    def report(
        self,
        path: Any,
        X: Any = None,
        Y: Any = None,
        *,
        title: str | None = None,
        n_examples: int = 5,
        loss: str | Loss = "hamming",
    ) -> None:
        """Write one page of HTML about the fitted model, which needs no other files (needs matplotlib).

        Parameters
        ----------
        path : str or Path
            An existing file is replaced, and only when the new one is complete.
        X : array, sparse matrix or frame, shape (n, d), optional
            Rows to describe, preferably not those of the training; without them the page is about the model
            and its class variables only.
        Y : labels of these rows, shape (n, m), optional
            For scores, reliability and the most surprising rows; missing ones are allowed.
        title : str, optional
            By default the kind of the model and its class variables.
        n_examples : int
            Rows that are shown as examples, and as the most surprising ones.
        loss : str or Loss
            A loss whose mean is shown with the other scores.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from tuplet import ChainClassifier, load_penguins
        >>> X, y = load_penguins(return_X_y=True)
        >>> page = Path(tempfile.mkdtemp()) / "penguins.html"
        >>> ChainClassifier().fit(X, y).report(page)
        >>> "species → island → sex" in page.read_text(encoding="utf-8")
        True
        """
        delegate("write_report", self, path, X, Y, title=title, n_examples=n_examples, loss=loss)

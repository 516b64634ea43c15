"""Networks as local models: a skorch classifier that fits itself to its task."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Seed
from tuplet.local.deep.backend import NeuralNetClassifier, to_tensor, torch
from tuplet.local.deep.mixup import mix_rows
from tuplet.local.deep.rows import Batch, Read, Rows, as_it_is


class DeepClassifier(NeuralNetClassifier):
    """A network as a scikit-learn classifier, made anew for the classes and columns of every fit.

    Parameters
    ----------
    module : subclass of torch.nn.Module, or function that makes one
        Gives logits (b, n_classes) for a batch. Arguments called `n_classes`, `n_inputs` (columns of X) and
        `n_parents` are filled in by `fit`; others come as `module__width=32` and the like.
    image_shape : (channels, height, width), optional
        X holds images in flat columns, `images.reshape(len(images), -1)`.
    read : callable, optional
        X holds one column of paths, or of anything else that `read` turns into an image (channels, height,
        width). Images are read batch by batch, and need never be in memory all at once.
    mixup : float
        Parameter alpha of mixup, see `mix_rows`; 0 is without.
    random_state : int, Generator or None
        For first weights, order of rows, dropout and mixup; None uses torch's global generator.
    **settings
        Anything that `skorch.NeuralNetClassifier` takes. Defaults that differ from skorch's: `AdamW` with
        `lr=1e-3`, cross-entropy on logits, shuffled rows, no rows kept for validation (`train_split=None`),
        no output (`verbose=0`).

    Notes
    -----
    Local models that give parents as inputs put them beside X as one-hot columns. With images, a network gets
    them as a second argument, `forward(x, parents)`, and their number as `n_parents`; without images they are
    columns like the others.

    Weights of rows multiply their losses; they are scaled to a mean of 1. A single row that would be
    the last batch is left out of that epoch, because batch normalisation needs two. An interrupt (Ctrl-C) is
    passed on, where skorch would stop the training and go on.

    Examples
    --------
    >>> from tuplet import ChainClassifier
    >>> from tuplet.local.deep import MLP
    >>> rng = np.random.default_rng(0)
    >>> X, first = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    >>> Y = np.column_stack([first, np.where(X[:, 0] > 0, first, 1 - first)])
    >>> model = ChainClassifier(DeepClassifier(MLP, max_epochs=60), random_state=0).fit(X, Y)
    >>> given = model.predict_joint([[2.0, 0.0], [-2.0, 0.0]]).given(y0=1)
    >>> given.mode()
    array([[1, 1],
           [1, 0]])
    """

    def __init__(
        self,
        module: Any,
        *,
        image_shape: Sequence[int] | None = None,
        read: Read | None = None,
        mixup: float = 0.0,
        random_state: Seed = None,
        **settings: Any,
    ) -> None:
        defaults = {
            "criterion": torch.nn.CrossEntropyLoss,
            "optimizer": torch.optim.AdamW,
            "lr": 1e-3,
            "train_split": None,
            "verbose": 0,
            "iterator_train__shuffle": True,
            "iterator_train__collate_fn": as_it_is,
            "iterator_valid__collate_fn": as_it_is,
        }
        super().__init__(module, **(defaults | settings))
        self.image_shape = image_shape
        self.read = read
        self.mixup = mixup
        self.random_state = random_state

    # -- fitting ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Make the network and train it.

        Parameters
        ----------
        X : array or frame, shape (n, d)
        y : int array, shape (n,)
            Classes 0 .. c - 1, each of which must occur.
        sample_weight : array, shape (n,), optional
        """
        self._check()
        y = np.asarray(y)
        n_classes = len(np.unique(y))
        if y.dtype.kind not in "iu" or n_classes < 2 or not (y.min() == 0 and y.max() == n_classes - 1):
            raise InputError("DeepClassifier: y must hold the classes 0, 1, ... without gaps, at least two.")
        weight = None if sample_weight is None else np.asarray(sample_weight) / np.mean(sample_weight)
        rows = Rows(X, y, weight, image_shape=self.image_shape, read=self.read)
        self.n_features_in_ = np.shape(X)[1]
        self.sizes_ = {
            "n_classes": n_classes,
            "n_inputs": self.n_features_in_,
            "n_parents": rows.n_parents,
        }
        with _seed(self.random_state):
            if not self.warm_start or not self.initialized_:
                self.initialize()
            self.notify("on_train_begin", X=rows, y=rows.y)
            self.fit_loop(rows, rows.y, **fit_params)
            self.notify("on_train_end", X=rows, y=rows.y)
        return self

    def _check(self) -> None:
        if self.image_shape is not None and self.read is not None:
            raise InputError(
                "DeepClassifier: image_shape is for flat columns, read for paths; pass one of them."
            )
        if not 0 <= self.mixup < np.inf:
            raise InputError(f"DeepClassifier: mixup must be a number from 0, found {self.mixup!r}.")

    def initialize_module(self) -> Self:
        """Make the network for the classes and columns that `fit` has found."""
        given = self.get_params_for("module")
        if not isinstance(self.module, torch.nn.Module):
            wanted = inspect.signature(self.module).parameters
            sizes = getattr(self, "sizes_", {})
            if sizes.get("n_parents") and "n_parents" not in wanted:
                raise InputError(
                    f"DeepClassifier: {sizes['n_parents']} columns stand beside the images, for parents, but"
                    f" {self.module.__name__} has no argument n_parents; add it, or choose a model without"
                    ' parents as inputs, such as BayesNetClassifier(parametrisation="split").'
                )
            given = {key: size for key, size in sizes.items() if key in wanted} | given
        self.module_ = self.initialized_instance(self.module, given)
        return self

    def get_dataset(self, X: Any, y: Any = None) -> Any:
        """Return rows X as batches."""
        if isinstance(X, torch.utils.data.Dataset):
            return X
        width = getattr(self, "n_features_in_", None)
        if width is not None and np.shape(X)[1:] != (width,):
            raise InputError(
                f"DeepClassifier: X must have {width} columns, as in fit; found {np.shape(X)[1:]}."
            )
        return Rows(X, y, image_shape=self.image_shape, read=self.read)

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return an iterator over batches, in training without one of a single row."""
        loader = super().get_iterator(dataset, training=training)
        sampler = getattr(loader, "batch_sampler", None)
        if training and isinstance(sampler, torch.utils.data.BatchSampler):
            size = sampler.batch_size
            sampler.drop_last |= len(dataset) > size and len(dataset) % size == 1
        return loader

    def predict_proba(self, X: Any) -> Any:
        """Probabilities (n, c) of the classes 0 .. c - 1."""
        with torch.random.fork_rng(devices=[]):  # torch draws a number for every pass, shuffled or not
            return super().predict_proba(X)

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """Return the logits (b, c) of a batch."""
        inputs = to_tensor({key: x[key] for key in ("x", "parents") if key in x}, device=self.device)
        return self.module_(*inputs.values(), **fit_params)

    def train_step_single(self, batch: Batch, **fit_params: Any) -> dict[str, Any]:
        """Add the gradients of a batch; with mixup, those of means of its rows."""
        if not self.mixup:
            return super().train_step_single(batch, **fit_params)
        self._set_training(True)
        mixed = mix_rows(batch, self.mixup)
        logits = self.infer(mixed.inputs, **fit_params)
        losses = [
            self.get_loss(logits, codes, X=x, training=True) for x, codes in (mixed.first, mixed.second)
        ]
        loss = mixed.share * losses[0] + (1 - mixed.share) * losses[1]
        loss.backward()
        return {"loss": loss, "y_pred": logits}

    def get_loss(self, y_pred: Any, y_true: Any, X: Any = None, training: bool = False) -> Any:
        """Return the mean loss of a batch, weighted where rows have weights."""
        if "weight" not in X:
            return super().get_loss(y_pred, y_true, X=X, training=training)
        reduction, self.criterion_.reduction = self.criterion_.reduction, "none"
        try:
            losses = super().get_loss(y_pred, y_true, X=X, training=training)
        finally:
            self.criterion_.reduction = reduction
        return (to_tensor(X["weight"], device=self.device) * losses).mean()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self.read is not None
        return tags


@contextmanager
def _seed(random_state: Seed) -> Iterator[None]:
    """Give torch's generators a state of their own; the caller's is as before afterwards."""
    if random_state is None:
        yield
        return
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(np.random.default_rng(random_state).integers(2**63 - 1)))
        yield

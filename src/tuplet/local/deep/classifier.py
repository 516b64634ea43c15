"""Networks as local models: a skorch classifier that adapts to its task, and rows of X as batches for it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import Tags

from tuplet.core.exceptions import InputError, MissingDependencyError
from tuplet.core.parameters import FUNCTION, Having, Number, check_parameters, declare
from tuplet.core.typing import Floats, Seed
from tuplet.local.deep.backend import Dataset, NeuralNetClassifier, to_tensor, torch
from tuplet.space.features.inputs import Features

Read: TypeAlias = Callable[[Any], npt.ArrayLike]
"""From a value of the first column of X, such as a path, to an image (channels, height, width)."""

_Batch: TypeAlias = tuple[dict[str, Any], Any]
"""Tensors of b rows: "x", and "parents" (b, p) and "weight" (b,) where there are any; codes (b,)."""

_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_SCALE = np.array([0.229, 0.224, 0.225], dtype=np.float32)
"""Means and standard deviations of red, green and blue over ImageNet, by which pretrained networks scale."""


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
    raised again, where skorch would end the training and continue.

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

    _parameters = declare(
        "random_state",
        image_shape=(Having("a sequence (channels, height, width)", "__iter__"), None),
        read=(FUNCTION, None),
        mixup=Number(at_least=0),
    )

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
            "iterator_train__collate_fn": _as_it_is,
            "iterator_valid__collate_fn": _as_it_is,
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
        check_parameters(self)
        if self.image_shape is not None and self.read is not None:
            raise InputError(
                "DeepClassifier: image_shape is for flat columns, read for paths; pass one of them."
            )
        y = np.asarray(y)
        n_classes = len(np.unique(y))
        if y.dtype.kind not in "iu" or n_classes < 2 or not (y.min() == 0 and y.max() == n_classes - 1):
            raise InputError("DeepClassifier: y must hold the classes 0, 1, ... without gaps, at least two.")
        weight = None if sample_weight is None else np.asarray(sample_weight) / np.mean(sample_weight)
        rows = RowDataset(X, y, weight, image_shape=self.image_shape, read=self.read)
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
        return RowDataset(X, y, image_shape=self.image_shape, read=self.read)

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

    def train_step_single(self, batch: _Batch, **fit_params: Any) -> dict[str, Any]:
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


def read_image(path: str | Path, *, size: int = 224) -> Floats:
    """Return an image file as networks trained on ImageNet expect it: an array (3, size, size).

    The shorter side is scaled to 8/7 of `size` (256 pixels for 224), the middle is cut out, and colours are
    standardised.

    Parameters
    ----------
    path : str or Path
    size : int
        Pixels of each side.

    Examples
    --------
    >>> from functools import partial
    >>> small = partial(read_image, size=64)  # for `DeepClassifier(ResNet18, read=small)`
    """
    picture = _pillow().open(path).convert("RGB")
    scale = size * 8 / 7 / min(picture.size)
    picture = picture.resize([max(size, round(side * scale)) for side in picture.size])
    left, top = ((side - size) // 2 for side in picture.size)
    picture = picture.crop((left, top, left + size, top + size))
    pixels = np.asarray(picture, dtype=np.float32) / 255
    return ((pixels - _MEAN) / _SCALE).transpose(2, 0, 1)


def mix_rows(batch: _Batch, alpha: float) -> _Mixed:
    """Mix each row of a batch with another one, drawn by torch's generator.

    Parameters
    ----------
    batch : dict of tensors and codes (b,)
        "x" and "parents" are mixed; weights are not, as each belongs to a label.
    alpha : float
        The share is drawn from Beta(alpha, alpha), one for the batch: small values leave rows almost as they
        are.

    References
    ----------
    H. Zhang, M. Cisse, Y. Dauphin, D. Lopez-Paz, mixup: Beyond empirical risk minimization, ICLR 2018.
    """
    inputs, codes = batch
    share = float(torch.distributions.Beta(alpha, alpha).sample())
    partner = torch.randperm(len(codes))
    others = {key: part[partner] for key, part in inputs.items()}
    means = {key: torch.lerp(others[key], part, share) for key, part in inputs.items() if key != "weight"}
    return _Mixed(means, batch, (others, codes[partner]), share)


class _Mixed(NamedTuple):
    """A batch of means, share * row + (1 - share) * partner, and what they were made of."""

    inputs: dict[str, Any]
    first: _Batch
    second: _Batch
    share: float


# -- rows as batches ---------------------------------------------------------------------------------------


@final
class RowDataset(Dataset):
    """Rows of X with their codes and weights, handed out a batch at a time.

    Without `image_shape` and `read` a row is all its columns. With either, columns beside the image are the
    one-hot parents that a local model has put there.

    Parameters
    ----------
    X : array or frame, shape (n, d)
    y : int array, shape (n,), optional
    weight : array, shape (n,), optional
    image_shape : sequence of int, optional
        (channels, height, width) of the image in the first columns.
    read : callable, optional
        What turns a value of the first column into an image.
    """

    def __init__(
        self,
        X: Features,
        y: npt.NDArray[Any] | None = None,
        weight: npt.NDArray[Any] | None = None,
        *,
        image_shape: Sequence[int] | None = None,
        read: Read | None = None,
    ) -> None:
        self.read = read
        self.X, parents = _divide(X, image_shape, read)
        self.y = np.zeros(len(self.X), dtype=np.int64) if y is None else np.asarray(y, dtype=np.int64)
        columns = {"parents": parents if parents.shape[1] else None, "weight": weight}
        self.beside = {k: np.asarray(v, dtype=np.float32) for k, v in columns.items() if v is not None}

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_parents(self) -> int:
        """Number of columns beside the image."""
        return self.beside["parents"].shape[1] if "parents" in self.beside else 0

    def __getitems__(self, rows: Sequence[int]) -> _Batch:
        # torch calls this method, where a data set has it, once per batch rather than `__getitem__` per row.
        x = self.X[rows]
        if self.read is not None:
            x = np.stack([np.asarray(self.read(value), dtype=np.float32) for value in x])
        parts = {"x": x} | {key: column[rows] for key, column in self.beside.items()}
        return {key: torch.from_numpy(part) for key, part in parts.items()}, torch.from_numpy(self.y[rows])

    def __getitem__(self, row: int) -> _Batch:
        inputs, code = self.__getitems__([row])
        return {key: part[0] for key, part in inputs.items()}, code[0]


@contextmanager
def _seed(random_state: Seed) -> Iterator[None]:
    """Give torch's generators a state of their own; the caller's is as before afterwards."""
    if random_state is None:
        yield
        return
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(np.random.default_rng(random_state).integers(2**63 - 1)))
        yield


def _as_it_is(batch: _Batch) -> _Batch:
    """Return a batch; what torch calls to put rows together has nothing left to do."""
    return batch


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError("Reading images needs pillow; run `pip install tuplet[deep]`.") from None
    return Image


def _divide(
    X: Features, image_shape: Sequence[int] | None, read: Read | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return what the network's first argument is made of, and the columns beside it (n, p)."""
    if read is not None:
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        return frame.iloc[:, 0].to_numpy(), frame.iloc[:, 1:].to_numpy(dtype=np.float32)
    table = np.asarray(X, dtype=np.float32)
    if table.ndim != 2:
        raise InputError(
            f"X must be of shape (n, d), found {table.shape}; images go in as X.reshape(len(X), -1), with"
            " image_shape=(channels, height, width)."
        )
    if image_shape is None:
        return table, table[:, :0]
    size = math.prod(image_shape)
    if table.shape[1] < size:
        raise InputError(
            f"X has {table.shape[1]} columns, too few for images of shape {tuple(image_shape)}, which take"
            f" {size}."
        )
    return table[:, :size].reshape(-1, *image_shape), table[:, size:]

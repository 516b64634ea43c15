"""Image files as arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tuplet.core.exceptions import MissingDependencyError
from tuplet.core.typing import Floats

_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_SCALE = np.array([0.229, 0.224, 0.225], dtype=np.float32)
"""Means and standard deviations of red, green and blue over ImageNet, by which pretrained networks scale."""


def read_image(path: str | Path, *, size: int = 224) -> Floats:
    """Return an image file as a network that was trained on ImageNet wants it: an array (3, size, size).

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


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError("Reading images needs pillow; run `pip install tuplet[deep]`.") from None
    return Image

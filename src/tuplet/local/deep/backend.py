"""torch and skorch, or placeholders where they are not installed.

The other modules of this package subclass these names. So they can be imported, documented and collected by
pytest without torch; only creating a network fails then, with the command that installs torch.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tuplet.core.exceptions import MissingDependencyError


class _Missing:
    """A base class whose subclasses cannot be made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise MissingDependencyError(
            f"{cls.__name__} needs torch and skorch; run `pip install tuplet[deep]`."
        )


torch: Any = None
Module: Any = _Missing
Dataset: Any = _Missing
NeuralNetClassifier: Any = _Missing
to_tensor: Any = None

try:
    import torch as _torch
    from skorch import NeuralNetClassifier as _Classifier
    from skorch.utils import to_tensor as _to_tensor
except ImportError:
    INSTALLED = False
else:
    INSTALLED = True
    torch, Module, Dataset = _torch, _torch.nn.Module, _torch.utils.data.Dataset
    NeuralNetClassifier, to_tensor = _Classifier, _to_tensor

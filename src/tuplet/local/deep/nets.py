"""Two small networks: for columns of numbers, and for small images."""

from __future__ import annotations

from typing import Any, final

from tuplet.local.deep.backend import Module, torch


@final
class MLP(Module):
    """A perceptron with two hidden layers, for columns of numbers.

    Columns should be of about the same scale: `make_pipeline(StandardScaler(), DeepClassifier(MLP))`.

    Parameters
    ----------
    n_inputs, n_classes : int
    width : int
        Units of each hidden layer.
    dropout : float

    Examples
    --------
    >>> import torch
    >>> MLP(5, 3)(torch.zeros(2, 5)).shape
    torch.Size([2, 3])
    """

    def __init__(self, n_inputs: int, n_classes: int, *, width: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        nn = torch.nn
        hidden = [nn.Linear(n_inputs, width), nn.ReLU(), nn.Dropout(dropout)]
        hidden += [nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, n_classes))

    def forward(self, x: Any) -> Any:
        """Return the logits (b, n_classes) of rows (b, n_inputs)."""
        return self.layers(x)


@final
class ConvNet(Module):
    """Two convolutions and a hidden layer, for images of some ten to fifty pixels a side.

    Parents enter the hidden layer beside the features of the image, so the two can interact.

    Parameters
    ----------
    n_classes : int
    n_parents : int
        Number of one-hot columns of the parents.
    channels : int
        Of the images.
    width : int
        Channels of the first convolution; the second has twice as many.
    grid : (int, int)
        Rows and columns to which features are pooled: the resolution at which positions are kept.

    Examples
    --------
    >>> import torch
    >>> ConvNet(3, n_parents=2)(torch.zeros(4, 1, 8, 16), torch.zeros(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        n_classes: int,
        n_parents: int = 0,
        *,
        channels: int = 1,
        width: int = 16,
        grid: tuple[int, int] = (2, 4),
    ) -> None:
        super().__init__()
        nn = torch.nn
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(grid),
            nn.Flatten(),
        )
        n_features = 2 * width * grid[0] * grid[1]
        self.hidden = nn.Linear(n_features, 4 * width)
        # In a layer of their own, parents begin with weights that suit their number: as some columns among
        # hundreds of features they would have little influence.
        self.parents = nn.Linear(n_parents, 4 * width, bias=False) if n_parents else None
        self.last = nn.Linear(4 * width, n_classes)

    def forward(self, x: Any, parents: Any = None) -> Any:
        """Return the logits (b, n_classes) of images (b, channels, h, w) and parents (b, n_parents)."""
        hidden = self.hidden(self.features(x))
        if self.parents is not None:
            hidden = hidden + self.parents(parents)
        return self.last(torch.relu(hidden))

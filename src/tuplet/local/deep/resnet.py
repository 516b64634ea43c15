"""The residual network of 18 layers, with the names of torchvision's, so that its weights can be loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, final

from tuplet.core.exceptions import InputError
from tuplet.local.deep.backend import Module, torch

_IMAGENET = "https://download.pytorch.org/models/resnet18-f37072fd.pth"
"""torchvision's weights, trained on ImageNet (its `ResNet18_Weights.IMAGENET1K_V1`); 45 MB."""

_OWN = ("fc.", "parents.")
"""Beginnings of the names of weights that belong to a task, not to images."""


@final
class ResNet18(Module):
    """ResNet-18: a stem, four stages of two residual blocks, and a linear layer.

    Parameters
    ----------
    n_classes : int
    n_parents : int
        Number of one-hot columns of the parents; they add to the logits.
    weights : path, "imagenet" or None
        Weights to begin with: a file of torchvision's `resnet18` (a state dict), or "imagenet" to download it
        through `torch.hub`. Its last layer is used only if it has as many classes. None begins at random.

    Notes
    -----
    Made for colour images (b, 3, 224, 224), scaled as `read_image` does; other sizes work. Parameters and
    buffers have the names and shapes of torchvision's, 11,689,512 parameters with 1,000 classes.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, Deep residual learning for image recognition, CVPR 2016; table 1.

    Examples
    --------
    >>> import torch
    >>> ResNet18(7)(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 7])
    """

    def __init__(self, n_classes: int, n_parents: int = 0, *, weights: str | Path | None = None) -> None:
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = nn.Sequential(_Block(64, 64, 1), _Block(64, 64, 1))
        self.layer2 = nn.Sequential(_Block(64, 128, 2), _Block(128, 128, 1))
        self.layer3 = nn.Sequential(_Block(128, 256, 2), _Block(256, 256, 1))
        self.layer4 = nn.Sequential(_Block(256, 512, 2), _Block(512, 512, 1))
        self.fc = nn.Linear(512, n_classes)
        self.parents = nn.Linear(n_parents, n_classes, bias=False) if n_parents else None
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
        if weights is not None:
            self.load(weights)

    def forward(self, x: Any, parents: Any = None) -> Any:
        """Return the logits (b, n_classes) of images (b, 3, h, w) and parents (b, n_parents)."""
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits = self.fc(x.mean(dim=(2, 3)))
        return logits if self.parents is None else logits + self.parents(parents)

    def load(self, weights: str | Path) -> None:
        """Take over weights of torchvision's `resnet18`: a file, or "imagenet" for the published ones."""
        if str(weights) == "imagenet":
            state = torch.hub.load_state_dict_from_url(
                _IMAGENET, map_location="cpu", check_hash=True, weights_only=True
            )
        else:
            state = torch.load(weights, map_location="cpu", weights_only=True)
        mine = self.state_dict()
        # The last layer is of another task, unless it has the same classes.
        fitting = {
            name: value
            for name, value in state.items()
            if not name.startswith(_OWN) or (name in mine and value.shape == mine[name].shape)
        }
        strange = [name for name in fitting if name not in mine or fitting[name].shape != mine[name].shape]
        left = self.load_state_dict({k: v for k, v in fitting.items() if k not in strange}, strict=False)
        lacking = [name for name in left.missing_keys if not name.startswith(_OWN)]
        if strange or lacking:
            found = f"{strange[0]} does not fit" if strange else f"{lacking[0]} is missing"
            raise InputError(f"ResNet18: {weights} holds no weights of torchvision's resnet18: {found}.")


@final
class _Block(Module):
    """Two convolutions whose answer is added to their input.

    Where the shape changes, the input goes through a convolution of one pixel first.
    """

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        nn = torch.nn
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = None
        if stride > 1 or n_in != n_out:
            self.downsample = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: Any) -> Any:
        change = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(change + (x if self.downsample is None else self.downsample(x)))

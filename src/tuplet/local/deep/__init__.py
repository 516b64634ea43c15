"""Networks as local models, on columns of numbers and on images; needs torch and skorch (`tuplet[deep]`).

`DeepClassifier` is what any model takes as `estimator`; `MLP`, `ConvNet` and `ResNet18` are networks for it,
and `TemperatureScaled`, which works with every classifier, calibrates its probabilities.
"""

from tuplet.local.deep.classifier import DeepClassifier, read_image
from tuplet.local.deep.nets import MLP, ConvNet
from tuplet.local.deep.resnet import ResNet18
from tuplet.local.temperature import TemperatureScaled

__all__ = ["MLP", "ConvNet", "DeepClassifier", "ResNet18", "TemperatureScaled", "read_image"]

"""Classifiers that users would choose instead of Tuplet, in a form that can be compared with it.

`PeerClassifier` puts any multi-output classifier behind the interface of Tuplet's models: its joint is the
product of its labels' probabilities, with a stated floor, and its decisions are its own. `default_peers` is
the list that a comparison should include. `AveragedChains` is one of them: scikit-learn has it as a recipe in
its documentation, not as a class.
"""

from tuplet.evaluate.peers.catalogue import AveragedChains, default_peers
from tuplet.evaluate.peers.classifier import PeerClassifier

__all__ = ["AveragedChains", "PeerClassifier", "default_peers"]

"""Comparisons of models: the same folds for all, every score from one joint distribution, statistics.

`compare` fits and scores the models and returns a `Comparison`. `statistics` takes plain frames of scores, so
that results from elsewhere can be tested with it, too. `default_peers` are the classifiers that users would
choose instead of Tuplet.
"""

from tuplet.evaluate import statistics
from tuplet.evaluate.compare import compare
from tuplet.evaluate.comparison import Comparison
from tuplet.evaluate.folds import StratifiedFolds, duplicate_groups, make_folds
from tuplet.evaluate.peers import AveragedChains, PeerClassifier, default_peers

__all__ = [
    "AveragedChains",
    "Comparison",
    "PeerClassifier",
    "StratifiedFolds",
    "compare",
    "default_peers",
    "duplicate_groups",
    "make_folds",
    "statistics",
]

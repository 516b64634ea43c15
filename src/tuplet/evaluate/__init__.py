"""Comparisons of models: the same folds for all, every score from one joint, statistics, pictures, pages.

`compare` runs, `Comparison` holds what came of it. `statistics`, `plots` and `report` take plain frames of
scores, so that results from elsewhere can be tested and shown with them, too. `default_peers` are the
classifiers that users would pick instead of Tuplet.
"""

from tuplet.evaluate import plots, report, statistics
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
    "plots",
    "report",
    "statistics",
]

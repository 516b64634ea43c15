"""Statistics of comparisons: whether one model is better than another, beyond chance.

Scores come as a pandas DataFrame, a row for each data set (or fold) and a column for each model; GREATER IS
BETTER, so pass the negative of a loss. Rows with a gap are left out; every result has their number.

| question | function |
|---|---|
| do any of the models differ? | `friedman`, `friedman_aligned` |
| which pairs differ? | `nemenyi`, `conover`, `all_pairs` |
| which differ from this one? | `versus_control` |
| is a better than b? | `wilcoxon`, `bayesian_signed_rank` |
| on how many data sets is it? | `paired_t` |

Scores that differ by no more than rounding errors count as ties, so 0.3 and 0.1 + 0.2 share a rank.

References
----------
Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.
García, Fernández, Luengo, Herrera, Advanced nonparametric tests for multiple comparisons in the design of
experiments in computational intelligence and data mining, Information Sciences 180, 2010.
Benavoli, Corani, Demšar, Zaffalon, Time for a change: a tutorial for comparing multiple classifiers through
Bayesian analysis, JMLR 18, 2017.
"""

from tuplet.evaluate.statistics.bayes import BayesianSignedRank, bayesian_signed_rank
from tuplet.evaluate.statistics.posthoc import (
    ControlTests,
    PairTests,
    all_pairs,
    conover,
    holm,
    nemenyi,
    versus_control,
)
from tuplet.evaluate.statistics.ranks import (
    AlignedFriedman,
    Friedman,
    average_ranks,
    friedman,
    friedman_aligned,
)
from tuplet.evaluate.statistics.signed_ranks import SignedRanks, wilcoxon
from tuplet.evaluate.statistics.ttests import PairedT, paired_t

__all__ = [
    "AlignedFriedman",
    "BayesianSignedRank",
    "ControlTests",
    "Friedman",
    "PairTests",
    "PairedT",
    "SignedRanks",
    "all_pairs",
    "average_ranks",
    "bayesian_signed_rank",
    "conover",
    "friedman",
    "friedman_aligned",
    "holm",
    "nemenyi",
    "paired_t",
    "versus_control",
    "wilcoxon",
]

"""Joint distributions in the forms that carry every model."""

from tuplet.joint.atoms import Atoms
from tuplet.joint.autoregressive import Autoregressive
from tuplet.joint.base import JointDistribution, Mode, Ranking
from tuplet.joint.graph import FactorGraph
from tuplet.joint.mixture import Mixture
from tuplet.joint.probit import Probit
from tuplet.joint.search import Search
from tuplet.joint.splitting import Enumerate, MonteCarlo

__all__ = [
    "Atoms",
    "Autoregressive",
    "Enumerate",
    "FactorGraph",
    "JointDistribution",
    "Mixture",
    "Mode",
    "MonteCarlo",
    "Probit",
    "Ranking",
    "Search",
]

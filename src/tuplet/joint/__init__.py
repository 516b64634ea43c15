"""Joint distributions in the forms that carry every model."""

from typing import TYPE_CHECKING

from tuplet.core.lazy import lazy_names

if TYPE_CHECKING:
    from tuplet.joint.atoms import Atoms
    from tuplet.joint.autoregressive import Autoregressive
    from tuplet.joint.base import JointDistribution, Mode, Ranking
    from tuplet.joint.graph import FactorGraph
    from tuplet.joint.mixture import Mixture
    from tuplet.joint.policies import Enumerate, MonteCarlo
    from tuplet.joint.probit import Probit
    from tuplet.joint.search import Search
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "tuplet.joint.atoms": "Atoms",
            "tuplet.joint.autoregressive": "Autoregressive",
            "tuplet.joint.base": "JointDistribution Mode Ranking",
            "tuplet.joint.graph": "FactorGraph",
            "tuplet.joint.mixture": "Mixture",
            "tuplet.joint.probit": "Probit",
            "tuplet.joint.search": "Search",
            "tuplet.joint.policies": "Enumerate MonteCarlo",
        },
    )

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

"""What the library is tested with, for whoever writes a form, a loss or a model of their own.

- `enumerate_joint`, `enumerate_log_joint`: the truth by brute force;
- `check_joint`: every query of a joint distribution against it;
- `check_loss`: no outcome has a lower risk than the decision;
- `tuplet.testing.strategies`: hypothesis strategies (needs hypothesis).
"""

from tuplet.testing.joints import check_joint
from tuplet.testing.losses import check_loss
from tuplet.testing.oracle import enumerate_joint, enumerate_log_joint

__all__ = ["check_joint", "check_loss", "enumerate_joint", "enumerate_log_joint"]

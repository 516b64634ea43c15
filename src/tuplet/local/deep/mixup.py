"""mixup: a network learns from weighted means of pairs of rows, and from both of their labels."""

from __future__ import annotations

from typing import Any, NamedTuple

from tuplet.local.deep.backend import torch
from tuplet.local.deep.rows import Batch


class Mixed(NamedTuple):
    """A batch of means, share * row + (1 - share) * partner, and what they were made of."""

    inputs: dict[str, Any]
    first: Batch
    second: Batch
    share: float


def mix_rows(batch: Batch, alpha: float) -> Mixed:
    """Mix each row of a batch with another one, drawn by torch's generator.

    Parameters
    ----------
    batch : dict of tensors and codes (b,)
        "x" and "parents" are mixed; weights are not, as each belongs to a label.
    alpha : float
        The share is drawn from Beta(alpha, alpha), one for the batch: small values leave rows almost as they
        are.

    References
    ----------
    H. Zhang, M. Cisse, Y. Dauphin, D. Lopez-Paz, mixup: Beyond empirical risk minimization, ICLR 2018.
    """
    inputs, codes = batch
    share = float(torch.distributions.Beta(alpha, alpha).sample())
    partner = torch.randperm(len(codes))
    others = {key: part[partner] for key, part in inputs.items()}
    means = {key: torch.lerp(others[key], part, share) for key, part in inputs.items() if key != "weight"}
    return Mixed(means, batch, (others, codes[partner]), share)

"""Problems of multi-dimensional classification, sampled from Bayesian networks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes, Seed
from tuplet.models.generative.networks.bif import read_bif
from tuplet.models.generative.networks.network import Network


def sample_mdc_problem(
    network: str | Path | Network,
    n_samples: int = 5000,
    random_state: Seed = None,
    *,
    classes: int | Sequence[str] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sample rows from a Bayesian network, and let some of its variables be the class variables.

    Parameters
    ----------
    network : Network, or path of a .bif or .bif.gz file
    n_samples : int
        Rows, independent of each other.
    random_state : int, Generator or None
        Chooses the class variables first and then the rows.
    classes : int or sequence of str, optional
        Names of the class variables, or how many are drawn at random; a third of all, rounded, if None.

    Returns
    -------
    X, Y : pandas DataFrames, shapes (n_samples, d) and (n_samples, m)
        Columns are pandas Categoricals with all states of the network, in its order. X holds every variable
        that is no class variable; to keep the informative ones, put an `InformationGainFilter` before the
        model, so that it is fitted to the training rows alone.

    References
    ----------
    Learning tractable multidimensional Bayesian network classifiers; section 4.

    Examples
    --------
    >>> network = Network(("rain", "wet"), (("no", "yes"),) * 2, ((), (0,)),
    ...                   (np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.0, 1.0]])))
    >>> X, Y = sample_mdc_problem(network, 4, random_state=0, classes=["wet"])
    >>> X["rain"].tolist(), Y["wet"].tolist()
    (['no', 'no', 'no', 'no'], ['no', 'yes', 'no', 'no'])
    """
    if not isinstance(network, Network):
        network = read_bif(network)
    rng = np.random.default_rng(random_state)
    chosen = _class_variables(network, classes, rng)
    codes = network.sample(n_samples, rng)
    rest = [v for v in range(network.n_variables) if v not in set(chosen)]
    return _frame(network, codes, rest), _frame(network, codes, chosen)


def _class_variables(
    network: Network, classes: int | Sequence[str] | None, rng: np.random.Generator
) -> list[int]:
    n = network.n_variables
    if classes is None:
        classes = max(1, round(n / 3))
    if isinstance(classes, (int, np.integer)):
        if not 1 <= classes < n:
            raise InputError(
                f"sample_mdc_problem: of {n} variables, 1 to {n - 1} can be class variables; found {classes}."
            )
        return sorted(rng.choice(n, size=int(classes), replace=False).tolist())
    chosen = [network.position(name) for name in ([classes] if isinstance(classes, str) else classes)]
    if not 1 <= len(set(chosen)) == len(chosen) < n:
        raise InputError("sample_mdc_problem: classes must name some of the variables, each once, not all.")
    return chosen


def _frame(network: Network, codes: Codes, variables: list[int]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            network.names[v]: pd.Categorical.from_codes(codes[:, v], categories=pd.Index(network.states[v]))
            for v in variables
        }
    )

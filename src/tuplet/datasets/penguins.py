"""The Palmer penguins."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, overload

import pandas as pd

from tuplet.datasets.base import Dataset

_CLASSES = ["species", "island", "sex"]

_DESCRIPTION = """\
Palmer penguins: 344 adult penguins of three species on three islands of the Palmer Archipelago, Antarctica,
measured from 2007 to 2009.

Class variables: species (Adelie, Chinstrap, Gentoo), island (Biscoe, Dream, Torgersen), sex (female, male).
Features: bill length and depth and flipper length in mm, body mass in g, and the year.
Missing: the sex of 11 penguins, and all four measurements of 2 of these.

Horst AM, Hill AP, Gorman KB (2020). palmerpenguins: Palmer Archipelago (Antarctica) penguin data.
https://allisonhorst.github.io/palmerpenguins/, doi:10.5281/zenodo.3960218. Public domain (CC0).
"""


@overload
def load_penguins(return_X_y: Literal[False] = False) -> Dataset: ...
@overload
def load_penguins(return_X_y: Literal[True]) -> tuple[pd.DataFrame, pd.DataFrame]: ...
def load_penguins(return_X_y: bool = False) -> Dataset | tuple[pd.DataFrame, pd.DataFrame]:
    """Load the Palmer penguins: species, island and sex from four measurements and the year.

    Missing values are kept, in the measurements and in the labels.

    Parameters
    ----------
    return_X_y : bool
        Return the pair (X, Y) instead of a `Dataset`.

    Returns
    -------
    Dataset, or (X, Y)

    References
    ----------
    Horst AM, Hill AP, Gorman KB (2020). palmerpenguins: Palmer Archipelago (Antarctica) penguin data.

    Examples
    --------
    >>> penguins = load_penguins()
    >>> penguins
    Dataset(penguins: 344 rows, 5 features, class variables species, island, sex)
    >>> X, Y = load_penguins(return_X_y=True)
    >>> int(Y["sex"].isna().sum())
    11
    """
    with (files("tuplet.datasets") / "penguins.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    X, Y = frame.drop(columns=_CLASSES), frame[_CLASSES].copy()
    return (X, Y) if return_X_y else Dataset("penguins", X, Y, _DESCRIPTION)

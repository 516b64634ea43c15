"""Wilcoxon's signed-rank test of two models over data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from tuplet.core.typing import Floats
from tuplet.evaluate.statistics.scores import (
    check_choice,
    complete_rows,
    differences,
    p_text,
    rows_text,
    tie_classes,
)

Zeros = Literal["split", "drop"]


@dataclass(frozen=True, eq=False, repr=False)
class SignedRanks:
    """Result of `wilcoxon`.

    Attributes
    ----------
    a, b : labels of the models
    statistic : float
        The smaller of the two rank sums, Wilcoxon's T.
    r_plus, r_minus : float
        Sums of the ranks of the differences in favour of a and of b.
    z : float
        Deviation of `r_plus` from its expectation in standard deviations (without correction for ties);
        positive if a is better.
    p_value : float
    n_rows, n_left_out : int
    """

    a: Any
    b: Any
    statistic: float
    r_plus: float
    r_minus: float
    z: float
    p_value: float
    n_rows: int
    n_left_out: int

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        return (
            f"Wilcoxon: rank sums {self.a} {self.r_plus:g}, {self.b} {self.r_minus:g};"
            f" {p_text(self.p_value)} (z = {self.z:.2f}); {rows_text(self.n_rows, self.n_left_out)}"
        )

    def __repr__(self) -> str:
        return self.summary


def wilcoxon(scores: pd.DataFrame, a: Any, b: Any, *, zeros: Zeros = "split") -> SignedRanks:
    """Wilcoxon's signed-rank test that two models perform alike, two-sided.

    Parameters
    ----------
    scores : DataFrame, shape (n, k)
        Rows are data sets, columns are models, greater is better. Only gaps of a and b matter.
    a, b : labels of columns
    zeros : {"split", "drop"}
        Ranks of rows without a difference are split evenly between the two sums, as Demšar (2006) does
        ("zsplit" of scipy), or these rows are left out, as Wilcoxon did ("wilcox" of scipy).

    Notes
    -----
    The p value is that of `scipy.stats.wilcoxon` for the rows that are not dropped: exact for up to 50 rows,
    or 13 with ties or zeros, and otherwise from the normal distribution, corrected for ties. Scores that
    differ by less than 1e-13 are ties.

    References
    ----------
    Demšar (2006), section 3.1.3.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"forest": [0.9, 0.8, 0.7, 0.6, 0.9], "tree": [0.8, 0.6, 0.4, 0.2, 0.95]})
    >>> wilcoxon(scores, "forest", "tree")
    Wilcoxon: rank sums forest 14, tree 1; p = 0.12 (z = 1.75); 5 rows
    """
    check_choice("wilcoxon", "zeros", zeros, ("split", "drop"))
    complete = complete_rows("wilcoxon", scores, [a, b], finite=True)
    r_plus, r_minus, z, p_value = _test(complete.values, zeros)
    return SignedRanks(
        a,
        b,
        min(r_plus, r_minus),
        r_plus,
        r_minus,
        z,
        p_value,
        len(complete.values),
        complete.n_left_out,
    )


def _test(values: Floats, zeros: Zeros) -> tuple[float, float, float, float]:
    """Rank sums in favour of the first and of the second column, z and p value."""
    difference = differences(values)
    if zeros == "drop":
        difference = difference[difference != 0]
    n = len(difference)
    half = n * (n + 1) / 4
    if not difference.any():
        return half, half, 0.0, 1.0
    # Classes in the place of sizes, so that rounding does not break ties; zeros are a class of their own.
    sizes = tie_classes(np.abs(difference), np.abs(values).max()) + 1
    signed = np.sign(difference) * sizes
    r_plus = half + float(np.sign(signed) @ stats.rankdata(np.abs(signed))) / 2
    z = (r_plus - half) / np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    p_value = float(stats.wilcoxon(signed, zero_method="zsplit").pvalue)
    return r_plus, 2 * half - r_plus, float(z), p_value

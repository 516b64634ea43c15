"""The user's view of a joint distribution: labels in, labels out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tuplet.exceptions import ImpossibleEvidenceError, InputError, TupletError
from tuplet.joint.base import JointDistribution, warn_unproven
from tuplet.losses import get_loss
from tuplet.prediction import rendering
from tuplet.prediction.evidence import encode_known, known_text
from tuplet.prediction.frames import marginal_frame, tidy_frame
from tuplet.space import ClassSpace
from tuplet.typing import UNKNOWN, Codes, Floats, Seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tuplet.losses import Loss

__all__ = ["JointPrediction"]


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _named(method: _Method) -> _Method:
    """Let a method's errors speak of class variables by name: below the rim only positions are known."""

    @wraps(method)
    def with_names(self: JointPrediction, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TupletError as error:
            if error.variable is None:
                raise
            name = (*self.space.names, "a hidden variable")[min(error.variable, self.space.n_variables)]
            raise type(error)(str(error).replace(f"variable {error.variable}", repr(name))) from None

    return cast(_Method, with_names)


@final
@dataclass(frozen=True, eq=False, repr=False)
class JointPrediction:
    """What a model believes about all class variables of n rows, together.

    Labels come back in the container that the labels for training came in: frames for frames, arrays for
    arrays. Tables that Tuplet makes up itself (`marginals`, `top_k`, `sample`, `to_frame`) are polars
    frames if the labels came in one, and pandas frames otherwise.

    Parameters
    ----------
    distribution : JointDistribution
        The distribution in codes, a batch of n rows.
    space : ClassSpace
        Names and labels of its variables.
    index : pandas Index, optional
        Names of the rows, put on every pandas result.

    Examples
    --------
    >>> import numpy as np
    >>> from tuplet.joint.atoms import Atoms
    >>> from tuplet.space import ClassSpace
    >>> space = ClassSpace(("weather", "umbrella"), (np.array(["dry", "wet"]), np.array([False, True])))
    >>> codes = np.array([[[0, 0], [1, 0], [1, 1]]])
    >>> prediction = JointPrediction(Atoms((2, 2), codes, np.log([[0.5, 0.2, 0.3]])), space)
    >>> prediction
    JointPrediction: 1 row, 2 class variables
       weather  umbrella  probability
    0  dry      False           0.500
    >>> prediction.given(weather="wet").top_k(2)
       row  rank weather  umbrella  probability
    0    0     1     wet      True          0.6
    1    0     2     wet     False          0.4
    """

    distribution: JointDistribution
    space: ClassSpace
    index: pd.Index | None = None

    def __post_init__(self) -> None:
        if self.distribution.cards != self.space.cards:
            raise InputError(
                f"JointPrediction: a distribution with cardinalities {self.distribution.cards} does not"
                f" belong to {self.space!r}."
            )
        if self.index is not None and len(self.index) != len(self.distribution):
            raise InputError(
                f"JointPrediction: an index of {len(self.index)} names does not fit"
                f" {len(self.distribution)} rows."
            )

    # -- rows ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.distribution)

    def __getitem__(self, rows: int | slice | npt.ArrayLike) -> JointPrediction:
        """Return some rows by position or mask, always as a prediction again."""
        chosen = rows if isinstance(rows, int | np.integer | slice) else np.asarray(rows)
        if isinstance(chosen, np.ndarray) and not chosen.size:
            chosen = chosen.astype(np.intp)  # numpy calls an empty list floats
        positions = np.atleast_1d(np.arange(len(self))[chosen])
        index = None if self.index is None else self.index[positions]
        return JointPrediction(self.distribution[positions], self.space, index)

    def __iter__(self) -> Iterator[JointPrediction]:
        return (self[i] for i in range(len(self)))

    # -- the most probable --------------------------------------------------------------------------------

    @_named
    def mode(self) -> Any:
        """Most probable combination of labels of every row.

        Not the most probable label of each variable: that is `decide("hamming")`.
        """
        mode = self.distribution.mode()
        warn_unproven("mode", mode.proven)
        return self.space.decode(mode.codes, self.index)

    def mode_proven(self) -> npt.NDArray[np.bool_]:
        """Whether the mode of each row (n,) is proven; False where a search ended on its budget."""
        return self.distribution.mode().proven

    @_named
    def top_k(self, k: int = 5) -> Any:
        """Return the k most probable combinations of every row, best first.

        Returns
        -------
        frame with the columns `row`, `rank` (from 1), one for each class variable, `probability`
            Combinations of probability zero are left out, so a row may have fewer than k lines. A column
            whose name a class variable has already gets an underscore: `rank_`.
        """
        ranking = self.distribution.top_k(k)
        warn_unproven("top_k", ranking.proven)
        row, rank = np.nonzero(np.isfinite(ranking.log_prob))
        before = {"row": self._row_names(row), "rank": rank + 1}
        return tidy_frame(
            self.space, ranking.codes[row, rank], before, {"probability": np.exp(ranking.log_prob[row, rank])}
        )

    # -- probabilities ------------------------------------------------------------------------------------

    @_named
    def marginals(self) -> dict[str, Any]:
        """Probabilities of the labels of each variable: a frame (n, k_j) by name, a column for each label."""
        tables = self.distribution.marginals()
        return {
            name: marginal_frame(self.space, j, tables[j], self.index)
            for j, name in enumerate(self.space.names)
        }

    @_named
    def log_prob(self, Y: Any) -> Floats:
        """Log-probability (n,) of labels.

        Parameters
        ----------
        Y : labels as in training, or a mapping of names to labels
            Missing labels are summed out, so a partial set of labels is fine. In a mapping, a value is one
            label for all rows or one label per row.
        """
        return self.distribution.log_prob(encode_known(self.space, Y, len(self), "log_prob"))

    def prob(self, Y: Any) -> Floats:
        """Probability (n,) of labels; see `log_prob`."""
        return np.exp(self.log_prob(Y))

    @_named
    def entropy(self) -> Floats:
        """Shannon entropy (n,) of the joint distribution in nats: how unsure the model is."""
        return self.distribution.entropy()

    def pairwise(self, a: str, b: str) -> Floats:
        """Joint probabilities (n, k_a, k_b) of two variables, in the order of their categories."""
        pair = (self.space.position(a), self.space.position(b))
        return self.distribution.marginal(pair).pairwise()[0, 1]

    # -- other distributions ------------------------------------------------------------------------------

    @_named
    def given(self, known: Any = None, /, **labels: Any) -> JointPrediction:
        """Return what the model believes once some labels are known.

        Parameters
        ----------
        known : mapping or frame, optional
            Names and labels; a label is one for all rows or one per row, where a missing one is free.
        **labels
            The same as keywords: `given(species="Gentoo")`.

        Raises
        ------
        ImpossibleEvidenceError
            If the labels of a row have probability zero.
        """
        codes = encode_known(self.space, {} if known is None else known, len(self), "given")
        named = encode_known(self.space, labels, len(self), "given")
        codes = np.where(named == UNKNOWN, codes, named)
        try:
            joint = self.distribution.condition(codes)
        except ImpossibleEvidenceError as error:
            raise ImpossibleEvidenceError(self._impossible(codes) or str(error)) from None
        return JointPrediction(joint, self.space, self.index)

    def marginal(self, *names: str) -> JointPrediction:
        """Return the prediction of some variables only, in the order given; the others are summed out."""
        joint = self.distribution.marginal([self.space.position(name) for name in names])
        return JointPrediction(joint, self.space.select(names), self.index)

    # -- decisions and draws ------------------------------------------------------------------------------

    @_named
    def decide(self, loss: str | Loss = "hamming") -> Any:
        """Labels with the least expected loss: a name such as "hamming", "subset" or "f1", or a `Loss`."""
        return self.space.decode(get_loss(loss).decide(self.distribution), self.index)

    @_named
    def sample(self, size: int = 1, random_state: Seed = None) -> Any:
        """Draw `size` combinations for every row.

        Returns
        -------
        frame with the columns `draw` (from 0), `row` and one for each class variable
            All rows of the first draw come first.
        """
        draws = self.distribution.sample(size, random_state)
        draw, row = np.divmod(np.arange(size * len(self)), max(1, len(self)))
        return tidy_frame(
            self.space,
            draws.reshape(-1, self.space.n_variables),
            {"draw": draw, "row": self._row_names(row)},
            {},
        )

    # -- tables and pictures ------------------------------------------------------------------------------

    @_named
    def to_frame(self) -> Any:
        """One line per row: the most probable combination and how probable it is.

        Returns
        -------
        frame with the columns of the class variables, `probability` of all of them together, and `P(name)`
        of each label by itself
        """
        mode = self.distribution.mode()
        warn_unproven("to_frame", mode.proven)
        rows = np.arange(len(self))
        alone = {
            f"P({name})": table[rows, mode.codes[:, j]]
            for j, (name, table) in enumerate(
                zip(self.space.names, self.distribution.marginals(), strict=True)
            )
        }
        return tidy_frame(
            self.space, mode.codes, {}, {"probability": np.exp(mode.log_prob), **alone}, self.index
        )

    def plot(self, row: int = 0, k: int = 8, ax: Axes | None = None) -> Axes:
        """Draw the k most probable combinations of the row at this position (needs matplotlib)."""
        from tuplet.plots import plot_combinations

        one = self[row]
        names = " · ".join(self.space.names[:5]) + " ..." * (self.space.n_variables > 5)
        title = f"{names}, row {self._row_names(row)}"
        return plot_combinations(one.distribution, self.space, k=k, title=title, ax=ax)

    def __repr__(self) -> str:
        return rendering.as_text(self.distribution, self.space, self._row_names(slice(rendering.ROWS)))

    def _repr_html_(self) -> str:
        return rendering.as_html(self.distribution, self.space, self._row_names(slice(rendering.ROWS)))

    # -- helpers ------------------------------------------------------------------------------------------

    def _impossible(self, codes: Codes) -> str:
        """Return which known labels are impossible together, in words; empty if none are."""
        rows = np.flatnonzero(np.isneginf(self.distribution.log_prob(codes)))
        if not len(rows):
            return ""
        others = f" (and in {len(rows) - 1} more)" if len(rows) > 1 else ""
        return (
            f"given: {known_text(self.space, codes[rows[0]])} has probability zero in row"
            f" {self._row_names(rows[0])}{others}; leave one of these labels out."
        )

    def _row_names(self, rows: Any) -> Any:
        return (np.arange(len(self)) if self.index is None else self.index.to_flat_index())[rows]

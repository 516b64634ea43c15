"""Names, categories and cardinalities of the class variables: labels become codes here, and labels again."""

from __future__ import annotations

import difflib
import html
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
import pandas as pd

from tuplet.core.exceptions import InputError
from tuplet.core.typing import Codes
from tuplet.space import labels
from tuplet.space.containers import Form, Table, build, listing, open_table

_SHOWN = 8
"""Categories and variables that a repr shows before it stops."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class ClassSpace:
    """The class variables of a problem: their names and the labels each of them can take.

    Parameters
    ----------
    names : tuple of str
        Names of the m class variables.
    categories : tuple of arrays
        Labels of each variable in code order: the code of a label is its position.
    form : Form, optional
        The container and the types that `decode` gives back; by default a pandas frame.
    ordered : tuple of bool, optional
        Whether the labels of each variable are in a meaningful order, as stages are; by default none are.

    Examples
    --------
    >>> import pandas as pd
    >>> Y = pd.DataFrame({"species": ["Gentoo", "Adelie", None], "adult": [True, False, True]})
    >>> space = ClassSpace.from_labels(Y)
    >>> space
    ClassSpace(species: Adelie | Gentoo; adult: False | True)
    >>> space.encode(Y)
    array([[ 1,  1],
           [ 0,  0],
           [-1,  1]])
    >>> space.decode(space.encode(Y)).equals(Y)
    True
    """

    names: tuple[str, ...]
    categories: tuple[np.ndarray, ...]
    form: Form | None = None
    ordered: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        categories = tuple(labels.as_array(values) for values in self.categories)
        if len(self.names) != len(categories) or len(set(self.names)) < len(self.names):
            raise InputError(
                f"ClassSpace: names must be distinct and as many as categories, found {listing(self.names)}"
                f" for {len(categories)} lists of categories."
            )
        ordered = tuple(map(bool, self.ordered)) or (False,) * len(categories)
        if len(ordered) != len(categories):
            raise InputError(
                f"ClassSpace: ordered must be True or False for each of {len(categories)} variables, found"
                f" {len(ordered)} values."
            )
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "ordered", ordered)

    @classmethod
    def from_labels(cls, Y: Any, *, order: Mapping[Any, Sequence[Any]] | Sequence[Any] | None = None) -> Self:
        """Learn the space from labels.

        Parameters
        ----------
        Y : array, pandas or polars Series or DataFrame, sparse 0/1 matrix, or lists; shape (n,) or (n, m)
            Strings, integers, booleans, whole floats, dates, categoricals, or anything hashable. The
            categories that a pandas Categorical or a polars Enum declares are the space, observed or not;
            other labels are sorted. A column of booleans has the categories False and True, and a column in
            which all numbers are 0 or 1 has both, even if only one of them occurs. The labels of an ordered
            Categorical and of an Enum are `ordered`.
        order : mapping of names to labels, or names, optional
            Variables that are ordered, with all their labels from the lowest to the highest. Names without
            labels are for variables whose labels are numbers or dates, or declared as categories.

        Returns
        -------
        ClassSpace

        Examples
        --------
        >>> Y = [["II", "no"], ["I", "yes"], ["III", "no"]]
        >>> space = ClassSpace.from_labels(Y, order={"y0": ["I", "II", "III", "IV"]})
        >>> space
        ClassSpace(y0: I < II < III < IV; y1: no | yes)
        >>> space.ordered
        (True, False)
        """
        table = open_table(Y)
        if table.n_rows == 0 or not table.columns:
            raise InputError(f"Y must have at least one row and one column, found shape {table.shape}.")
        names = table.names()
        if table.form.container in ("sparse array", "sparse matrix"):
            categories = (_zero_and_one(table.columns, names),) * len(names)
        else:
            categories = tuple(map(labels.learn, table.columns, names))
        space = cls(names, categories, table.form, tuple(map(labels.is_ordered, table.form.dtypes)))
        return space if order is None else space._with_order(order)

    def _with_order(self, order: Mapping[Any, Sequence[Any]] | Sequence[Any]) -> Self:
        """Return the space with some variables ordered; see `from_labels`."""
        if isinstance(order, str):
            raise InputError(f"order must map names to labels, or be a list of names, found {order!r}.")
        categories, dtypes, ordered = list(self.categories), list(self._form.dtypes), list(self.ordered)
        for name in order:
            j = self.position(name)
            given = order[name] if isinstance(order, Mapping) else None
            categories[j] = self._in_order(j, given)
            dtypes[j] = labels.ordered_dtype(dtypes[j], categories[j], self._form.container, self.names[j])
            ordered[j] = True
        form = None if self.form is None else self.form._replace(dtypes=tuple(dtypes))
        return replace(self, categories=tuple(categories), form=form, ordered=tuple(ordered))

    def _in_order(self, j: int, given: Sequence[Any] | None) -> np.ndarray:
        """Return the labels of variable j from the lowest to the highest."""
        if given is None:
            if not self._is_declared(j) and not labels.are_comparable(self.categories[j]):
                raise InputError(
                    f"The order of the labels of {self.names[j]!r} is not known; give them from the lowest to"
                    f" the highest: order={{{self.names[j]!r}: [...]}}."
                )
            return self.categories[j]
        return labels.in_order(self.categories[j], given, self.names[j])

    # -- shapes -------------------------------------------------------------------------------------------

    @property
    def cards(self) -> tuple[int, ...]:
        """Number of categories of each variable."""
        return tuple(len(values) for values in self.categories)

    @property
    def n_variables(self) -> int:
        """Number of class variables m."""
        return len(self.names)

    @property
    def single(self) -> bool:
        """Whether the labels came as one 1-D column."""
        return self._form.single

    @property
    def _form(self) -> Form:
        return self.form or Form("pandas", False, self.names, tuple(c.dtype for c in self.categories))

    @property
    def is_polars(self) -> bool:
        """Whether frames of labels are polars frames; otherwise they are of pandas."""
        return self._form.container == "polars"

    @property
    def named(self) -> bool:
        """Whether the labels came with names, by which the columns of frames are matched."""
        return self._form.keys is not None

    @property
    def keys(self) -> tuple[Any, ...]:
        """Columns of frames of labels: those that came in (0, 1, ...), or names that are more informative."""
        keys = self._form.keys
        if keys is None or self.single or any(isinstance(key, tuple) for key in keys):
            return self.names
        return keys

    def position(self, name: Any) -> int:
        """Return the position of the class variable of this name, or of this key of the columns of Y."""
        for names in (self.names, self._form.keys or ()):
            if isinstance(name, Hashable) and name in names:
                return names.index(name)
        close = difflib.get_close_matches(str(name), self.names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"There is no class variable {name!r}; there are {listing(self.names)}.{hint}")

    def yes_no(self, j: int) -> bool:
        """Whether the labels of variable j are 0 and 1, or False and True."""
        return bool(self.categories[j].tolist() == [0, 1])

    def knows_positive(self, j: int) -> bool:
        """Whether it is specified which label of variable j is the positive one.

        It is for the labels 0 and 1, for booleans, and by a declared order: of a Categorical, of an Enum, or
        of the categories given to `ClassSpace`; not by the alphabetical order of labels.
        """
        return self.yes_no(j) or self.ordered[j] or self._is_declared(j)

    def _is_declared(self, j: int) -> bool:
        return self.form is None or labels.declared(self.form.dtypes[j]) is not None

    def select(self, names: Sequence[Any]) -> ClassSpace:
        """Return the space of some of the variables, in the order given."""
        chosen = [self.position(name) for name in names]
        form = self._form
        keys = None if form.keys is None else tuple(form.keys[j] for j in chosen)
        return ClassSpace(
            tuple(self.names[j] for j in chosen),
            tuple(self.categories[j] for j in chosen),
            None  # then the order of the categories was declared, and still is
            if self.form is None
            else form._replace(keys=keys, dtypes=tuple(form.dtypes[j] for j in chosen)),
            tuple(self.ordered[j] for j in chosen),
        )

    # -- labels to codes ----------------------------------------------------------------------------------

    def encode(self, Y: Any) -> Codes:
        """Codes (n, m) of labels; `UNKNOWN` where one is missing (None, NaN, NA, NaT, null, masked).

        Frames are matched by the names of their columns, in any order, and columns that are no class
        variable are ignored; everything else is matched by position. A space that was learned from labels
        without names takes frames by position too, if their names are no help.

        Raises
        ------
        LabelError
            If a label is not in the space. "1" is not 1; 1, 1.0 and True are the same label.
        InputError
            If columns are missing.
        """
        table = open_table(Y)
        columns = self._match(table)
        codes = np.empty((table.n_rows, self.n_variables), dtype=np.intp)
        for j, column in enumerate(columns):
            codes[:, j] = labels.encode(column, self.categories[j], self.names[j])
        return codes

    def codes_of(self, name: Any, values: Any) -> Codes:
        """Codes (n,) of labels of one variable; a single label gives an array without dimensions."""
        j = self.position(name)
        if not pd.api.types.is_list_like(values):
            return self.codes_of(name, [values]).reshape(())
        table = open_table(values)
        if not table.form.single:
            raise InputError(
                f"The labels of {name!r} must be one label or one column, found shape {table.shape}."
            )
        return labels.encode(table.columns[0], self.categories[j], self.names[j])

    def _match(self, table: Table) -> list[Any]:
        """Return the columns of the variables, in their order."""
        if table.form.keys is not None and not table.form.single:
            names = table.names()
            lacking = [name for name in self.names if name not in set(names)]
            if not lacking:
                return [table.columns[names.index(name)] for name in self.names]
            if self.named:
                raise InputError(
                    f"Y lacks the class variable{'s' if len(lacking) > 1 else ''} {listing(lacking)};"
                    f" its columns are {listing(names)}."
                )
        if len(table.columns) != self.n_variables:
            raise InputError(
                f"Y must have {self.n_variables} column{'s' if self.n_variables > 1 else ''}"
                f" ({listing(self.names)}), found {len(table.columns)}."
            )
        return table.columns

    # -- codes to labels ----------------------------------------------------------------------------------

    def decode(self, codes: Codes, index: pd.Index | None = None) -> Any:
        """Labels of codes (n, m), in the container and of the types that came in.

        Parameters
        ----------
        codes : array of int, shape (n, m)
            `UNKNOWN` decodes to a missing value. Only then does the type of a column change, if it cannot
            hold one: integers of pandas become nullable, those of numpy floats, sparse matrices dense.
        index : pandas Index, optional
            Put on the result if that is a pandas object.
        """
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != self.n_variables:
            raise InputError(f"Codes must be of shape (n, {self.n_variables}), found {codes.shape}.")
        return build(self._form, self.names, self.categories, codes, index)

    def decode_frame(self, codes: Codes, index: pd.Index | None = None) -> Any:
        """Labels of codes (n, m) as a frame with `keys` as columns, whatever container came in."""
        form = self._form._replace(
            container="polars" if self.is_polars else "pandas", single=False, keys=self.keys
        )
        return build(form, self.names, self.categories, np.asarray(codes), index)

    def decode_column(self, j: int, codes: Codes) -> np.ndarray:
        """Labels of variable j as an array of the shape of `codes`."""
        return labels.decode(np.asarray(codes), self.categories[j])

    # -- for people ---------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        variables = [f"{name}: {self._text(j)}" for j, name in enumerate(self.names[:_SHOWN])]
        if self.n_variables > _SHOWN:
            variables.append(f"... {self.n_variables - _SHOWN} more")
        return f"ClassSpace({'; '.join(variables)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td><td>{self.cards[j]}</td>"
            f"<td style='text-align:left'>{html.escape(self._text(j))}</td></tr>"
            for j, name in enumerate(self.names)
        )
        head = "<tr><th>class variable</th><th>k</th><th style='text-align:left'>labels</th></tr>"
        return f"<table style='color:inherit'><thead>{head}</thead><tbody>{rows}</tbody></table>"

    def _text(self, j: int) -> str:
        glue = " < " if self.ordered[j] else " | "
        shown = glue.join(str(label) for label in self.categories[j][:_SHOWN])
        return shown + (f"{glue}... {self.cards[j] - _SHOWN} more" if self.cards[j] > _SHOWN else "")


def _zero_and_one(columns: list[np.ndarray], names: tuple[str, ...]) -> np.ndarray:
    """Return the categories 0 and 1 of a sparse matrix, after a look at its values."""
    for column, name in zip(columns, names, strict=True):
        strange = column[(column != 0) & (column != 1)]
        if len(strange):
            raise InputError(
                f"A sparse Y must hold 0 and 1 only; {name!r} holds {labels.show(strange[0])}. Pass a dense"
                " array for other labels."
            )
    return np.array([0, 1], dtype=columns[0].dtype)

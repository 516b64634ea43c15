"""The rows and the class variables: how many, of what kind, what is missing, how often."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from tuplet.core.typing import UNKNOWN, Codes
from tuplet.space.classes import ClassSpace
from tuplet.space.features.inputs import as_pandas
from tuplet.space.words import clip, column_kind, is_yes_no, shorten, values_text
from tuplet.surface.pages.page import PlainTable, Section
from tuplet.surface.report.pieces import combinations, facts, words_of

_FEATURES, _COMBINATIONS = 40, 12
"""Features and combinations of labels that have a line of their own."""


# -- class variables ---------------------------------------------------------------------------------------


def space_section(space: ClassSpace, codes: Codes | None) -> Section:
    """Return the section of the class variables; with their frequencies in codes (n, m), if there are any."""
    names = pd.Index(shorten(space.names, 48), name="class variable")
    columns: dict[str, Any] = {}
    if codes is None or not is_yes_no(space):
        columns["labels"] = list(space.cards)
        columns["which"] = [words_of(values.tolist()) for values in space.categories]
    if any(space.ordered):
        columns["ordered"] = ["yes" if is_in else "no" for is_in in space.ordered]
    tables = []
    if codes is not None:
        columns |= _yes_columns(codes) if is_yes_no(space) else _often_columns(space, codes)
        tables = [_combinations(space, codes)] if space.n_variables > 1 else []
    return Section(
        "Class variables", tables=[PlainTable(pd.DataFrame(columns, index=names), "Labels"), *tables]
    )


def _yes_columns(codes: Codes) -> dict[str, Any]:
    known = (codes != UNKNOWN).sum(axis=0)
    yes = (codes == 1).sum(axis=0)
    share = np.divide(yes, known, out=np.full(len(yes), np.nan), where=known > 0)
    return {"rows with it": yes, "rows where it is known": known, "share": share}


def _often_columns(space: ClassSpace, codes: Codes) -> dict[str, Any]:
    columns = [_column(space, j, codes[:, j]) for j in range(space.n_variables)]
    known, often, share = zip(*columns, strict=True)
    return {"known": known, "most frequent": often, "its share": share}


def _column(space: ClassSpace, j: int, codes: Codes) -> tuple[int, str, float]:
    """Return how many labels of a variable are known, the most frequent one, and its share."""
    known = codes[codes != UNKNOWN]
    if not len(known):
        return 0, "—", float("nan")
    counts = np.bincount(known, minlength=space.cards[j])
    best = int(counts.argmax())
    return len(known), clip(str(space.categories[j][best]), 24), float(counts[best] / len(known))


def _combinations(space: ClassSpace, codes: Codes) -> PlainTable:
    whole = codes[(codes != UNKNOWN).all(axis=1)]
    found, counts = np.unique(whole, axis=0, return_counts=True) if len(whole) else (whole, np.zeros(0, int))
    order = np.argsort(-counts, kind="stable")[:_COMBINATIONS]
    frame = pd.DataFrame(
        {
            "combination": combinations(space, found[order], 90),
            "rows": counts[order],
            "share": counts[order] / max(1, len(whole)),
        },
        index=pd.Index(np.arange(1, len(order) + 1), name="rank"),
    )
    return PlainTable(frame, "Most frequent combinations of labels")


# -- rows --------------------------------------------------------------------------------------------------


def data_sections(
    X: Any, space: ClassSpace, codes: Codes | None, names: list[str]
) -> tuple[Section, list[Section]]:
    """Return the facts about the rows, and a section of the features.

    Parameters
    ----------
    X : features
    space : ClassSpace
    codes : array of int, shape (n, m), optional
        Labels, if there are any.
    names : list of str
        Of the features.
    """
    table: Any = as_pandas(X)
    features = []
    if sparse.issparse(table):
        lines = _sparse_facts(table)
    else:
        frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(np.asarray(table), columns=names)
        lines = _frame_facts(frame)
        features = [Section("Features", tables=[_features(frame)])]
    if codes is not None:
        lines |= _label_facts(space, codes)
    return Section("Data", tables=[facts(lines, "The rows of this page")]), features


def _sparse_facts(matrix: Any) -> dict[str, Any]:
    n, d = matrix.shape
    zeros = 1 - matrix.count_nonzero() / max(1, n * d)
    return {"rows": n, "features": f"{d} (sparse)", "share of zeros": float(zeros)}


def _frame_facts(frame: pd.DataFrame) -> dict[str, Any]:
    kinds = pd.Series([column_kind(frame.iloc[:, i]) for i in range(frame.shape[1])])
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.value_counts(sort=False).items())
    gaps = frame.isna().to_numpy()
    lines: dict[str, Any] = {"rows": len(frame), "features": f"{frame.shape[1]} ({counts or 'none'})"}
    if gaps.any():
        lines["missing values"] = (
            f"{int(gaps.sum())} ({gaps.mean():.1%}), in {gaps.any(axis=0).sum()} features"
        )
    else:
        lines["missing values"] = "none"
    return lines


def _label_facts(space: ClassSpace, codes: Codes) -> dict[str, Any]:
    known = codes != UNKNOWN
    whole = codes[known.all(axis=1)]
    counts = np.unique(whole, axis=0, return_counts=True)[1] if len(whole) else np.zeros(0, int)
    missing = int((~known).sum())
    lines: dict[str, Any] = {
        "missing labels": f"{missing} ({1 - known.mean():.1%})" if missing else "none",
        "distinct combinations of labels": len(counts),
        "combinations that occur once": int((counts == 1).sum()),
    }
    if space.n_variables > 1 and is_yes_no(space) and len(whole):
        lines["labels that hold per row (cardinality)"] = float((whole == 1).sum(axis=1).mean())
    return lines


def _features(frame: pd.DataFrame) -> PlainTable:
    shown = frame.iloc[:, :_FEATURES]
    columns = [shown.iloc[:, i] for i in range(shown.shape[1])]
    table = pd.DataFrame(
        {
            "kind": [column_kind(column) for column in columns],
            "missing": [int(column.isna().sum()) for column in columns],
            "values": [values_text(column) for column in columns],
        },
        index=pd.Index(shorten([str(name) for name in shown.columns], 40), name="feature"),
    )
    more = frame.shape[1] - _FEATURES
    return PlainTable(table, f"The first {_FEATURES} of {frame.shape[1]}" if more > 0 else "")

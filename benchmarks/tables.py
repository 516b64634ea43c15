"""Default settings on foreign tables, beside the training frequencies.

Tables that are generated or shipped with scikit-learn: ids, dates, text, outliers, wide, sparse, constant,
two rows per class, 200 labels, five rows, 200,000 rows, repeated patients. All settings are the defaults. The
figure is the mean log-probability of the labels of new rows, minus that of `PriorClassifier` for the same
rows, in nats. Models that treat the labels as independent given x are compared with the frequencies of single
labels: no product reaches those of combinations where x is of no use. It is too low if a model is worse by
more than .01 and by more than two paired standard errors. On some tables columns without information are
added as well: a model must not lose more than .05. Rows with a label that was not in training are left out.
Every cell is a process of its own with one thread and 90 CPU seconds; finished cells are kept in
benchmarks/cache/tables, so that an interrupted run continues.

Groups of rows are passed where a user knows them; "patients, groups not given" is the same table without, in
which a model judges itself by rows whose siblings it has seen.

    python benchmarks/run.py tables
    python benchmarks/tables.py medical          measures one table, for several processes side by side
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cells import MODELS, measured, work_within_limits
from foreign_tables import JUNK_TABLES, TABLES, Table, rows_of, with_junk

Cell: TypeAlias = np.ndarray | str
"""Log-probabilities of the new rows, or why there are none."""

CACHE = Path(__file__).parent / "cache" / "tables"
PRODUCTS = (
    "independent",
    "neighbors",
    "stacked features",
    "weighted stacking",
    "instance logistic",
    "output coding",
)
"""Models that treat the labels as independent given x."""

WORSE, LOST = 0.01, 0.05
"""How much worse than the frequencies, and than without the added columns, a model may be, in nats."""


# -- one cell, in a process of its own ---------------------------------------------------------------------


def measure(name: str, table: str, junk: bool) -> Iterator[dict[str, Any]]:
    """Fit a model to a table; yield its log-probabilities of the labels of the new rows."""
    rows = with_junk(TABLES[table]()) if junk else TABLES[table]()
    given = {} if rows.groups is None else {"groups": rows.groups}
    model = MODELS[name]().fit(rows.X, rows.Y, **given)
    yield {"log_prob": log_probs(model, rows).round(5).tolist()}


def log_probs(model: Any, rows: Table) -> np.ndarray:
    """Return the log-probabilities of the new rows all of whose labels occurred in training."""
    labels, new = (np.asarray(Y) for Y in (rows.Y, rows.Y_new))
    known = np.flatnonzero([all(map(set.__contains__, map(set, labels.T), row)) for row in new])
    return model.predict_joint(rows_of(rows.X_new, known)).log_prob(rows_of(rows.Y_new, known))


# -- all cells ---------------------------------------------------------------------------------------------


def cell(name: str, table: str, junk: bool = False) -> Cell:
    """Return the log-probabilities of a cell, or why there are none."""
    path = CACHE / f"{table.replace('/', '')}{' with junk' * junk}-{name}.json"
    answer = measured(__file__, [name, table, str(int(junk))], path)
    return answer["reason"] if "reason" in answer else np.array(answer["log_prob"])


def compared(
    ours: np.ndarray | str, theirs: np.ndarray | str, least: float, n_errors: float
) -> tuple[str, bool]:
    """Return the mean difference as text, and whether it is below `-least` and so many standard errors."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return "-", False
    difference = ours - theirs
    mean, error = difference.mean(), difference.std() / np.sqrt(len(difference))
    too_low = not mean >= -max(least, n_errors * error)
    return f"**{mean:.2f}**" if too_low else f"{mean:.2f}", too_low


def section(title: str, tables: list[str], junk: bool) -> list[str]:
    """Print a table with a line for each model; return the reasons of cells without figures."""
    names = [name for name in MODELS if not name.startswith("prior")]
    print(f"\n**{title}**\n\n| table |", " | ".join(names), "|\n|---|" + "---|" * len(names))
    reasons, n_low, n_cells = [], 0, 0
    for table in tables:
        entries = []
        for name in names:
            ours = cell(name, table, junk)
            base = name if junk else "prior of single labels" if name in PRODUCTS else "prior"
            text, low = compared(ours, cell(base, table), *((LOST, 0.0) if junk else (WORSE, 2.0)))
            entries.append(text)
            n_low, n_cells = n_low + low, n_cells + (text != "-")
            if isinstance(ours, str):
                reasons.append(f"- {table}{', columns added' * junk}, {name}: {ours.split('. ')[0][:160]}")
        print(f"| {table} |", " | ".join(entries), "|", flush=True)
    print(f"\nToo low: {n_low} of {n_cells} cells.")
    return reasons


def main() -> None:
    """Print both tables, and why cells have no figures."""
    reasons = section("Better than the training frequencies by", list(TABLES), junk=False)
    reasons += section("Gained by columns without information", list(JUNK_TABLES), junk=True)
    print("\nNo figures:\n")
    print("\n".join(reasons) or "none")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        work_within_limits(measure(sys.argv[1], sys.argv[2], sys.argv[3] == "1"), Path(sys.argv[4]))
    elif len(sys.argv) == 2:
        for each in MODELS:
            cell(each, sys.argv[1])
            if sys.argv[1] in JUNK_TABLES:
                cell(each, sys.argv[1], junk=True)
    else:
        main()

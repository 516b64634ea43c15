"""Tables of all kinds, generated or shipped with scikit-learn, and columns that carry no information."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse


class Table(NamedTuple):
    """Rows to learn from, with their groups if these are given, and rows to be judged by."""

    X: Any
    Y: Any
    X_new: Any
    Y_new: Any
    groups: np.ndarray | None = None


def split(X: Any, Y: Any, n_train: int, seed: int = 0) -> Table:
    """Return a random split."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    return split_at(X, Y, np.sort(order[:n_train]), np.sort(order[n_train:]))


def split_at(X: Any, Y: Any, train: np.ndarray, new: np.ndarray) -> Table:
    """Return the split of these rows."""
    return Table(rows_of(X, train), rows_of(Y, train), rows_of(X, new), rows_of(Y, new))


def rows_of(table: Any, rows: np.ndarray) -> Any:
    """Return some rows of a frame, an array or a matrix."""
    return table.iloc[rows].reset_index(drop=True) if isinstance(table, pd.DataFrame) else table[rows]


def labels_of(
    signal: np.ndarray, n_labels: int, seed: int, *, strength: float = 1.0, categories: int = 2
) -> np.ndarray:
    """Return labels (n, m) from the first columns of `signal`, with noise that they have in common."""
    rng = np.random.default_rng(seed)
    n, d = signal.shape
    weights = rng.normal(size=(d, n_labels)) * strength / np.sqrt(d)
    noise = 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, n_labels))
    score = signal @ weights + noise + 0.4 * rng.normal(size=n_labels)
    cuts = np.linspace(-1, 1, categories + 1)[1:-1] * 1.2
    return np.searchsorted(cuts, score)


def named(Y: np.ndarray, name: str = "y") -> pd.DataFrame:
    """Return labels as a frame."""
    return pd.DataFrame(Y, columns=[f"{name}{j}" for j in range(Y.shape[1])])


# -- tables as hospitals and shops have them ---------------------------------------------------------------


def medical() -> Table:
    """Return 29 features of several kinds and 7 class variables with up to five stages."""
    rng, n = np.random.default_rng(11), 4_500
    numbers = rng.normal(size=(n, 18)) @ (np.eye(18) + 0.3 * rng.normal(size=(18, 18)))
    counts = rng.poisson(3, size=(n, 4))
    flags = rng.random((n, 5)) < rng.random(5)
    ward = rng.choice(["north", "south", "east"], size=n, p=[0.5, 0.3, 0.2])
    sex = rng.choice(["f", "m"], size=n)
    frame = pd.DataFrame(numbers, columns=[f"value {j}" for j in range(18)])
    for j in range(4):
        frame[f"count {j}"] = counts[:, j]
    for j in range(5):
        frame[f"flag {j}"] = flags[:, j]
    frame["ward"], frame["sex"] = ward, sex
    frame = frame.mask(rng.random(frame.shape) < 0.03)
    signal = np.column_stack([numbers[:, :6], counts[:, :2] - 3, flags[:, :2], sex == "f"]).astype(float)
    binary, stages = labels_of(signal, 4, 1), labels_of(signal, 3, 2, categories=5)
    return split(frame, named(np.column_stack([binary, stages])), 3_000)


def with_dates() -> Table:
    """Return a table whose labels depend on the month and the year of a date."""
    rng, n = np.random.default_rng(12), 2_000
    day = rng.integers(0, 3_000, n)
    date = pd.Timestamp("2015-01-01") + pd.to_timedelta(day, unit="D")
    season = np.column_stack([np.cos(2 * np.pi * day / 365.25), day / 1_500 - 1, rng.normal(size=n)])
    frame = pd.DataFrame({"seen": date.strftime("%d.%m.%Y"), "size": season[:, 2]})
    return split(frame, named(labels_of(2 * season, 4, 3)), 1_200)


def with_text() -> Table:
    """Return remarks of six words, three of which say something about the labels."""
    rng, n = np.random.default_rng(13), 2_000
    signal = rng.normal(size=(n, 3))
    words = np.array([f"word{j}" for j in range(300)])
    telling = np.where(signal > 0, ["warm", "tall", "red"], ["cold", "short", "blue"])
    remarks = [" ".join(rng.permutation([*telling[i], *rng.choice(words, 3)])) for i in range(n)]
    frame = pd.DataFrame({"remark": remarks, "number": rng.normal(size=n)})
    return split(frame, named(labels_of(2 * np.sign(signal), 4, 4)), 1_200)


def with_wards() -> Table:
    """Return a category of 400 values, each with an effect of its own."""
    rng, n = np.random.default_rng(14), 4_000
    effect = rng.normal(size=(400, 2))
    ward = rng.zipf(1.3, n) % 400
    numbers = rng.normal(size=(n, 4))
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    frame["ward"] = [f"W{w:03d}" for w in ward]
    return split(frame, named(labels_of(np.column_stack([numbers, 2 * effect[ward]]), 5, 5)), 2_500)


def nominal_only() -> Table:
    """Return twelve text columns of three to eight values."""
    rng, n = np.random.default_rng(15), 1_500
    cards = rng.integers(3, 9, 12)
    codes = np.column_stack([rng.integers(0, k, n) for k in cards])
    effects = np.column_stack([rng.normal(size=k)[codes[:, j]] for j, k in enumerate(cards)])
    frame = pd.DataFrame({f"c{j}": [f"v{v}" for v in codes[:, j]] for j in range(12)})
    return split(frame, named(labels_of(effects, 5, 6, strength=2)), 900)


def repeated_patients(*, known: bool) -> Table:
    """Return twenty rows of each of 80 patients, the new rows of patients who were not in training.

    Models may be told which rows belong together.
    """
    rng, n = np.random.default_rng(16), 1_600
    patient = np.repeat(np.arange(80), 20)
    traits, state = rng.normal(size=(80, 12)), rng.normal(size=(80, 5))
    X = traits[patient] + 0.2 * rng.normal(size=(n, 12))
    Y = labels_of(np.column_stack([X[:, :3], 2 * state[patient]]), 5, 7)
    table = split_at(X, Y, np.flatnonzero(patient < 50), np.flatnonzero(patient >= 50))
    return table._replace(groups=patient[patient < 50] if known else None)


def counter() -> Table:
    """Return integers that count the rows, a price with outliers, and few features."""
    rng, n = np.random.default_rng(17), 900
    numbers = rng.normal(size=(n, 5))
    frame = pd.DataFrame(numbers, columns=list("abcde")).assign(
        number=np.arange(n), price=np.exp(3 * rng.normal(size=n))
    )
    return split(frame, named(labels_of(numbers, 4, 8)), 600)


# -- numbers that are hard to handle -----------------------------------------------------------------------


def plain(n: int, d: int, m: int, seed: int, *, useful: int = 8, n_train: int = 0, **others: Any) -> Table:
    """Return normal features, some of them useful."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return split(X, labels_of(X[:, :useful], m, seed, **others), n_train or (2 * n) // 3)


def outliers() -> Table:
    """Return features with a Cauchy distribution, in training and after."""
    X = np.random.default_rng(21).standard_cauchy(size=(1_500, 10))
    return split(X, labels_of(np.arctan(X), 5, 21, strength=2), 900)


def one_outlier() -> Table:
    """Return ordinary training rows; one value in fifty is a million times too large afterwards."""
    table = plain(1_500, 10, 5, 22, n_train=900)
    wrong = np.random.default_rng(22).random(table.X_new.shape) < 0.02
    return table._replace(X_new=np.where(wrong, 1e6 * table.X_new, table.X_new))


def scales() -> Table:
    """Return columns from 1e-12 to 1e12, some with a large mean."""
    table = plain(1_500, 10, 5, 23, n_train=900)
    scale, mean = 10.0 ** np.linspace(-12, 12, 10), 10.0 ** np.linspace(-6, 15, 10)
    return table._replace(X=table.X * scale + mean, X_new=table.X_new * scale + mean)


def constant_columns() -> Table:
    """Return ten constant columns, and one that is constant in training only."""
    table = plain(900, 8, 4, 24)
    constants = np.tile(np.arange(11.0), (len(table.X), 1)), np.tile(np.arange(11.0), (len(table.X_new), 1))
    constants[1][:, 0] = np.random.default_rng(24).normal(size=len(table.X_new))
    return table._replace(X=np.hstack([table.X, constants[0]]), X_new=np.hstack([table.X_new, constants[1]]))


def collinear() -> Table:
    """Return each column five times, with little noise."""
    table = plain(900, 8, 5, 25)
    rng = np.random.default_rng(25)

    def repeated(X: np.ndarray) -> np.ndarray:
        return np.tile(X, 5) + 1e-6 * rng.normal(size=(len(X), 5 * X.shape[1]))

    return table._replace(X=repeated(table.X), X_new=repeated(table.X_new))


def gaps() -> Table:
    """Return features of which 30 % are missing, and a column that is missing almost always."""
    table, rng = plain(1_500, 10, 5, 26), np.random.default_rng(26)

    def holed(X: np.ndarray) -> np.ndarray:
        share = np.append(np.full(X.shape[1] - 1, 0.3), 0.99)
        return np.where(rng.random(X.shape) < share, np.nan, X)

    return table._replace(X=holed(table.X), X_new=holed(table.X_new))


def missing_labels() -> Table:
    """Return training labels of which 20 % are missing."""
    table = plain(1_500, 10, 5, 27)
    Y = table.Y.astype(float)
    Y[np.random.default_rng(27).random(Y.shape) < 0.2] = np.nan
    return table._replace(Y=named(Y).astype("Int64"), Y_new=named(table.Y_new))


def zero_one(standardised: bool) -> Table:
    """Return 600 rare 0/1 columns of 1,500 rows, as they are or standardised, and 20 labels."""
    rng, n, d = np.random.default_rng(28), 1_500, 600
    X = (rng.random((n, d)) < rng.beta(0.5, 15, d)).astype(float)
    Y = labels_of(X[:, np.argsort(-X.mean(axis=0))[:40]] * 4, 20, 28)
    if standardised:
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-3)
    return split(X, Y, 1_000)


def wide_sparse() -> Table:
    """Return a sparse matrix of 2,000 columns, and 40 labels."""
    rng = np.random.default_rng(29)
    X = sparse.random(2_400, 2_000, 0.01, "csr", random_state=29)
    topics = np.asarray((X @ rng.normal(size=(2_000, 12))) * 1.5)
    return split(X, labels_of(topics, 40, 29, strength=3), 1_600)


def nothing_to_learn() -> Table:
    """Return labels that do not depend on the 30 features."""
    rng = np.random.default_rng(30)
    return split(rng.normal(size=(600, 30)), labels_of(rng.normal(size=(600, 5)), 6, 30), 400)


def xor() -> Table:
    """Return labels that depend on products of the features."""
    X = np.random.default_rng(31).normal(size=(1_500, 6))
    return split(X, labels_of(3 * np.sign(X[:, :3] * X[:, 3:]), 4, 31), 1_000)


def separable() -> Table:
    """Return labels that linear functions of the features determine."""
    X = np.random.default_rng(32).normal(size=(600, 6))
    return split(X, (X @ np.random.default_rng(33).normal(size=(6, 5)) > 0).astype(int), 400)


def copies() -> Table:
    """Return labels most of which are copies of each other."""
    table = plain(900, 8, 2, 34)
    wide = [0, 0, 0, 1, 1, 1, 0]
    return table._replace(Y=table.Y[:, wide], Y_new=table.Y_new[:, wide])


def rare_labels() -> Table:
    """Return twelve labels of which one row in a hundred has each."""
    rng = np.random.default_rng(35)
    X = rng.normal(size=(2_000, 12))
    return split(
        X, (X @ rng.normal(size=(12, 12)) / 3.5 + rng.normal(size=(2_000, 12)) > 3.2).astype(int), 1_300
    )


def constant_label() -> Table:
    """Return a class variable with one label in training, which new rows have, too."""
    table = plain(600, 8, 4, 36)
    return table._replace(Y=np.insert(table.Y, 2, 0, axis=1), Y_new=np.insert(table.Y_new, 2, 0, axis=1))


def two_per_class() -> Table:
    """Return two training rows for each of 20 classes of the first variable."""
    rng = np.random.default_rng(37)
    centres = 2 * rng.normal(size=(20, 5))
    kind = np.tile(np.arange(20), 12)
    X = centres[kind] + rng.normal(size=(240, 5))
    Y = np.column_stack([kind, kind % 2, labels_of(X, 2, 37)])
    return split_at(X, Y, np.arange(40), np.arange(40, 240))


def five_rows() -> Table:
    """Return five training rows, in which all labels occur."""
    X = np.random.default_rng(38).normal(size=(205, 4))
    Y = labels_of(X, 3, 38)
    for seed in range(100):
        table = split(X, Y, 5, seed)
        if all(len(np.unique(column)) == 2 for column in table.Y.T):
            break
    return table


def shipped(name: str) -> Table:
    """Return a data set of scikit-learn with several class variables made from its columns."""
    from sklearn import datasets

    loaded = getattr(datasets, f"load_{name}")()
    X, target = loaded.data, loaded.target
    if name == "digits":
        Y = np.column_stack([target, target % 2, target > 4, np.isin(target, (0, 6, 8, 9))]).astype(int)
        return split(X, Y, 1_000)
    taken = {"diabetes": (2, 3, 4), "wine": (0, 6, 9), "breast_cancer": (0, 1, 4)}[name]
    sized = np.column_stack([X[:, taken], target] if name == "diabetes" else [X[:, taken]])
    Y = np.column_stack([np.searchsorted(np.quantile(column, (1 / 3, 2 / 3)), column) for column in sized.T])
    if name != "diabetes":
        Y = np.column_stack([Y, target])
    return split(np.delete(X, taken, axis=1), Y, (2 * len(X)) // 3)


def penguins() -> Table:
    """Return the Palmer penguins."""
    from tuplet import load_penguins

    X, Y = load_penguins(return_X_y=True)
    return split(X, Y, 230)


TABLES: dict[str, Callable[[], Table]] = {
    "penguins": penguins,
    "diabetes": lambda: shipped("diabetes"),
    "wine": lambda: shipped("wine"),
    "breast cancer": lambda: shipped("breast_cancer"),
    "digits": lambda: shipped("digits"),
    "medical": medical,
    "dates": with_dates,
    "text": with_text,
    "400 wards": with_wards,
    "nominal": nominal_only,
    "patients": lambda: repeated_patients(known=True),
    "patients, groups not given": lambda: repeated_patients(known=False),
    "counter": counter,
    "plain": lambda: plain(900, 8, 5, 20),
    "one feature": lambda: plain(600, 1, 4, 40, useful=1),
    "555 x 49": lambda: plain(833, 49, 6, 41, useful=4, n_train=555, strength=0.5),
    "640 x 401": lambda: plain(960, 401, 12, 42, useful=10, n_train=640),
    "30 stages": lambda: plain(1_500, 8, 2, 43, categories=30, strength=2),
    "200 labels": lambda: plain(900, 20, 200, 44, n_train=600),
    "200,000 rows": lambda: plain(205_000, 20, 6, 45, n_train=200_000),
    "Cauchy": outliers,
    "one outlier": one_outlier,
    "scales": scales,
    "constants": constant_columns,
    "collinear": collinear,
    "gaps": gaps,
    "missing labels": missing_labels,
    "0/1": lambda: zero_one(standardised=False),
    "0/1 standardised": lambda: zero_one(standardised=True),
    "wide sparse": wide_sparse,
    "nothing to learn": nothing_to_learn,
    "xor": xor,
    "separable": separable,
    "copies": copies,
    "rare labels": rare_labels,
    "constant label": constant_label,
    "two per class": two_per_class,
    "five rows": five_rows,
}


# -- columns without information ---------------------------------------------------------------------------

JUNK_TABLES = ("penguins", "medical", "400 wards", "nominal", "plain", "counter", "wine", "dates", "gaps")
"""Tables that are also judged with `with_junk`."""


def with_junk(table: Table) -> Table:
    """Add a record number as text, a date as text, a remark, 400 wards, a constant and a counter."""
    rng, n_train = np.random.default_rng(99), table.X.shape[0]
    junk = junk_columns(rng, n_train + table.X_new.shape[0])
    # Rows of some tables are in the order of their labels, so they are numbered in another one.
    new_rows = np.arange(n_train, len(junk))
    junk["line"] = np.concatenate([rng.permutation(n_train), rng.permutation(new_rows)])
    old, new = (pd.DataFrame(X).rename(columns=str) for X in (table.X, table.X_new))
    return table._replace(
        X=pd.concat([old, junk.iloc[:n_train]], axis=1),
        X_new=pd.concat([new, junk.iloc[n_train:].reset_index(drop=True)], axis=1),
    )


def junk_columns(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Return columns that do not depend on anything."""
    day = pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    words = np.array(["late", "early", "left", "came", "no", "pain", "or", "fever", "today", "with", "some"])
    return pd.DataFrame(
        {
            "record": [f"R{number:06d}" for number in rng.permutation(10 * n)[:n]],
            "admitted": day.strftime("%d.%m.%Y"),
            "remark": [" ".join(rng.choice(words, 6)) for _ in range(n)],
            "unit": [f"U{number}" for number in rng.integers(0, 400, n)],
            "source": "export 7",
        }
    )

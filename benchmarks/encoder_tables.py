"""Tables with columns of every kind, generated: the truth about each column is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

TEXT = (
    "patient reports mild severe pain chest left right knee cough fever since monday tuesday week "
    "month no known allergy smoker former never family history heart lung liver kidney stable unclear "
    "improved worse follow up in two three days referred to ward clinic home seen by nurse doctor on "
    "call night "
)
WORDS = TEXT.split()

Table = tuple[pd.DataFrame, pd.DataFrame]
Effect = Callable[[np.random.Generator, int], tuple[dict[str, object], np.ndarray]]


def clinic(n: int = 3000, seed: int = 0) -> Table:
    """29 features, 20 of them numbers with a few gaps, and 7 findings that depend on them and each other."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, 5))
    numbers = factors @ rng.normal(size=(5, 20)) + rng.normal(size=(n, 20))
    flags = (factors @ rng.normal(size=(5, 5)) + rng.normal(size=(n, 5)) > 0.5).astype(int)
    X = pd.DataFrame(numbers.round(2), columns=[f"lab_{j}" for j in range(20)])
    X = X.mask(rng.random(X.shape) < 0.02)
    for j in range(5):
        X[f"sign_{j}"] = flags[:, j]
    for j, k in enumerate((2, 3, 4, 6)):
        X[f"group_{j}"] = np.array(list("abcdef"))[
            (factors[:, j] + rng.normal(size=n)).argsort().argsort() * k // n
        ]
    logits = factors @ rng.normal(size=(5, 7)) * 1.2 - 1.5
    return X, findings(logits, rng)


def findings(logits: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Return findings by their log-odds, each also raised by the one before."""
    Y = np.zeros(logits.shape, dtype=int)
    for j in range(logits.shape[1]):
        before = Y[:, j - 1] if j else 0
        Y[:, j] = logits[:, j] + 1.5 * before + rng.logistic(size=len(Y)) > 0
    return pd.DataFrame(Y, columns=[f"finding_{j}" for j in range(Y.shape[1])])


def junk(X: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Return X with columns that have nothing to do with any label."""
    rng, n = np.random.default_rng(seed), len(X)
    dates = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(1500, size=n), unit="D")
    return X.assign(
        record=[f"R{i:07d}" for i in rng.permutation(10 * n)[:n]],
        admitted=dates.strftime("%d.%m.%Y"),
        remark=[" ".join(rng.choice(WORDS, size=6)) for _ in range(n)],
        ward=[f"W{w}" for w in rng.integers(400, size=n)],
        country="DE",
        row=np.arange(1, n + 1),
    )


def _shifted(
    effect: Callable[[np.random.Generator, int], tuple[dict[str, object], np.ndarray]],
) -> Callable[[], Table]:
    """Return a table of five numbers, and of columns that raise the log-odds of three findings."""

    def make() -> Table:
        rng, n = np.random.default_rng(5), 3000
        numbers = rng.normal(size=(n, 5))
        columns, logit = effect(rng, n)
        logits = numbers @ rng.normal(size=(5, 3)) * 0.7 - 0.7 + logit[:, None] * np.array([1.0, -1.0, 0.5])
        return pd.DataFrame(numbers, columns=list("abcde")).assign(**columns), findings(logits, rng)

    return make


def _wards(rng: np.random.Generator, n: int) -> tuple[dict[str, object], np.ndarray]:
    ward, effect = rng.integers(400, size=n), rng.normal(size=400)
    return {"ward": np.char.add("ward ", ward.astype(str))}, effect[ward]


def _few_frequent(rng: np.random.Generator, n: int) -> tuple[dict[str, object], np.ndarray]:
    share = 1 / np.arange(1, 301)
    town, effect = rng.choice(300, size=n, p=share / share.sum()), rng.normal(size=300)
    return {"town": np.char.add("town ", town.astype(str))}, effect[town]


def _dates(rng: np.random.Generator, n: int) -> tuple[dict[str, object], np.ndarray]:
    day = rng.integers(1500, size=n)
    dates = pd.Timestamp("2019-01-01") + pd.to_timedelta(day, unit="D")
    season = 1.5 * np.cos(2 * np.pi * np.asarray(dates.dayofyear) / 365.25)
    return {"seen": dates.strftime("%d.%m.%Y")}, season + (day - 750) / 750


def _text(rng: np.random.Generator, n: int) -> tuple[dict[str, object], np.ndarray]:
    words = rng.integers(len(WORDS), size=(n, 6))
    weight = np.where(np.arange(len(WORDS)) < 12, rng.normal(size=len(WORDS)) * 1.5, 0)
    return {"remark": [" ".join(np.array(WORDS)[row]) for row in words]}, weight[words].sum(axis=1)


def _codes(rng: np.random.Generator, n: int) -> tuple[dict[str, object], np.ndarray]:
    dose = rng.gamma(2, 2, size=n).round(2)
    code = np.array([f"{letter}{digit}" for letter in "ABC" for digit in range(10)])[rng.integers(30, size=n)]
    effect = pd.Series(code).str[0].map({"A": -1.0, "B": 0.0, "C": 1.0}).to_numpy()
    written = pd.Series(dose).astype(str).str.replace(".", ",").where(rng.random(n) > 0.05)
    return {"dose": written, "code": code}, 0.4 * (dose - 4) + effect


GENERATED: dict[str, Callable[[], Table]] = {
    "clinic": clinic,
    "clinic, junk added": lambda: (junk(clinic()[0]), clinic()[1]),
    "400 wards": _shifted(_wards),
    "300 towns, few frequent": _shifted(_few_frequent),
    "dates as text": _shifted(_dates),
    "remarks": _shifted(_text),
    "decimal commas, codes": _shifted(_codes),
}
"""Tables by their names."""

"""Ordered class variables: local models for ordered classes beside nominal ones.

Joint log-likelihood (higher is better) and ranked probability score (lower is better) of rows that were held
out, in 5 folds; "by" is the difference to the nominal model above, with its standard error over rows.
"nominal" is the default local model of each kind of model, "nominal, C chosen" logistic regression with C
from 0.001 to 100 by 3 folds, "ordinal" is `ordinal_estimator()`. "steps" are the mean numbers of steps
between truth and decision, for decisions by the loss "hamming" and by the loss "absolute".

generated: a latent score is linear in x and the variable before, plus logistic noise, cut into 5 categories:
proportional odds are right. jura, enb: concentrations of metals and loads of buildings in 4 categories of
equal size; diabetes: three measurements in 5. edm and rf1 (every 5th hour) have ordered categories of their
own.

Every finished set of folds is kept in benchmarks/cache, so an interrupted run goes on where it stopped.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py ordered
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    TreeClassifier,
    declare_order,
    ordinal_estimator,
)
from tuplet.surface.comparisons import markdown_table

CACHE = Path(__file__).parent / "cache" / "ordered"


# -- data --------------------------------------------------------------------------------------------------


def generated() -> tuple[pd.DataFrame, pd.DataFrame]:
    """600 rows, 10 features, 4 class variables with 5 ordered categories each."""
    rng = np.random.default_rng(0)
    X, labels, before = rng.normal(size=(600, 10)), {}, np.zeros(600)
    for j in range(4):
        score = 0.6 * X @ rng.normal(size=10) + 0.5 * before + rng.logistic(size=600)
        labels[f"stage{j}"] = np.digitize(score, np.quantile(score, np.sort(rng.uniform(0.1, 0.9, 4))))
        before = labels[f"stage{j}"] - labels[f"stage{j}"].mean()
    return pd.DataFrame(X).add_prefix("x"), pd.DataFrame(labels)


def stored(name: str, targets: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a set from the folder of sets."""
    frame = pd.read_parquet(Path(os.environ["TUPLET_DATA"]) / f"{name}.parquet")
    features = [c for c in frame if c not in targets and not str(c).startswith("__")]
    return frame[features], frame[targets]


def binned(Y: pd.DataFrame, k: int) -> pd.DataFrame:
    """Cut columns of numbers into k categories of equal size."""
    return pd.DataFrame({name: pd.qcut(Y[name], k, labels=False) for name in Y})


def jura() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return concentrations of three metals."""
    X, Y = stored("jura", ["Cd", "Co", "Cu"])
    return X, binned(Y, 4)


def enb() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return heating and cooling loads."""
    X, Y = stored("enb", ["Y1", "Y2"])
    return X, binned(Y, 4)


def diabetes() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return three measurements of patients."""
    frame = load_diabetes(as_frame=True, scaled=False).frame
    targets = ["bmi", "bp", "target"]
    return frame.drop(columns=targets), binned(frame[targets], 5)


def edm() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return actions of operators: down, none, up."""
    return stored("edm", ["DFlow", "DGap"])


def rf1() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return every fifth row: the flow at eight gauges, in 3 or 4 classes."""
    gauges = ("CHSI2", "NASI2", "EADM7", "SCLM7", "CLKM7", "VALI2", "NAPM7", "DLDI4")
    X, Y = stored("Rf1", [f"{gauge}_48H__0" for gauge in gauges])
    return X.iloc[::5].reset_index(drop=True), Y.iloc[::5].reset_index(drop=True)


SETS: dict[str, Callable[[], tuple[pd.DataFrame, pd.DataFrame]]] = {
    "generated": generated,
    "jura": jura,
    "diabetes": diabetes,
    "enb": enb,
    "edm": edm,
    "rf1": rf1,
}


# -- models ------------------------------------------------------------------------------------------------


def chosen_nominal() -> Any:
    """Return logistic regression whose C is chosen by 3 folds."""
    grid = LogisticRegressionCV(
        Cs=[0.001, 0.01, 0.1, 1, 10, 100],
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="neg_log_loss",
        max_iter=1000,
    )
    return make_pipeline(SimpleImputer(), StandardScaler(), grid)


MODELS: dict[tuple[str, str], Callable[[], Any]] = {
    ("chain", "nominal"): ChainClassifier,
    ("chain", "nominal, C chosen"): lambda: ChainClassifier(chosen_nominal()),
    ("chain", "ordinal"): lambda: ChainClassifier(ordinal_estimator()),
    ("tree", "nominal"): TreeClassifier,
    ("tree", "ordinal"): lambda: TreeClassifier(
        ordinal_estimator(), parametrisation="inputs", random_state=0
    ),
    ("network", "nominal"): BayesNetClassifier,
    ("network", "ordinal"): lambda: BayesNetClassifier(ordinal_estimator(), random_state=0),
}

SLOW = "rf1"
"""The set on which chains alone are compared: the others take minutes with eight variables."""


# -- scores ------------------------------------------------------------------------------------------------


def score_rows(make: Callable[[], Any], X: pd.DataFrame, Y: pd.DataFrame) -> dict[str, Any]:
    """Return the scores of all rows (n,), each by a model that was not fitted to it, and the CPU time."""
    scores = {key: np.zeros(len(Y)) for key in ("log-likelihood", "ranked", "hamming", "absolute")}
    seconds = 0.0
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X.iloc[train], Y.iloc[train])
            prediction = model.predict_joint(X.iloc[test])
            decided = {loss: prediction.decide(loss) for loss in ("hamming", "absolute")}
        seconds += time.process_time() - begun
        scores["log-likelihood"][test] = prediction.log_prob(Y.iloc[test])
        truth = model.space_.encode(Y.iloc[test])
        scores["ranked"][test] = ranked(truth, prediction.distribution.marginals())
        for loss, answer in decided.items():
            scores[loss][test] = np.abs(truth - model.space_.encode(answer)).mean(axis=1)
    return {"seconds": seconds, **{key: value.tolist() for key, value in scores.items()}}


def ranked(truth: np.ndarray, marginals: list[np.ndarray]) -> np.ndarray:
    """Return the ranked probability score of each row, averaged over the variables."""
    scores = [
        ((np.cumsum(p, axis=1) - (truth[:, [j]] <= np.arange(p.shape[1]))) ** 2).sum(axis=1)
        for j, p in enumerate(marginals)
    ]
    return np.mean(scores, axis=0)


def cached(name: str, kind: tuple[str, str], X: pd.DataFrame, Y: pd.DataFrame) -> dict[str, Any]:
    """Return the scores of a model on a set, from disk if they are there."""
    path = CACHE / f"{name} {' '.join(kind)}.json"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(score_rows(MODELS[kind], X, Y)))
    answer: dict[str, Any] = json.loads(path.read_text())
    return answer


def difference(scores: dict[str, Any], nominal: dict[str, Any], key: str) -> str:
    """Return a mean difference and its standard error."""
    values = np.array(scores[key]) - np.array(nominal[key])
    if not values.any():
        return ""
    return f"{values.mean():+.4f} ± {values.std(ddof=1) / len(values) ** 0.5:.4f}"


def lines(name: str) -> list[dict[str, object]]:
    """Return the lines of one set."""
    X, Y = SETS[name]()
    Y = declare_order(Y.astype(int), list(Y))
    answer = []
    for family, local in MODELS:
        if name == SLOW and family != "chain":
            continue
        scores = cached(name, (family, local), X, Y)
        nominal = cached(name, (family, "nominal"), X, Y)
        means = {key: float(np.mean(scores[key])) for key in scores if key != "seconds"}
        answer.append(
            {
                "set": name,
                "model": family,
                "local models": local,
                "log-likelihood": f"{means['log-likelihood']:.3f}",
                "by": difference(scores, nominal, "log-likelihood"),
                "ranked probability score": f"{means['ranked']:.4f}",
                "by ": difference(scores, nominal, "ranked"),
                "steps, hamming": f"{means['hamming']:.3f}",
                "steps, absolute": f"{means['absolute']:.3f}",
                "CPU s": f"{scores['seconds']:.0f}",
            }
        )
    return answer


def main() -> None:
    """Print the table."""
    table = pd.DataFrame([line for name in SETS for line in lines(name)])
    print(table.to_markdown(index=False) if hasattr(table, "to_markdown") else markdown_table(table))


if __name__ == "__main__":
    main()

"""Edge fits of a conditional tree against one scikit-learn call per edge and value: CPU time, one thread.

yeast, its training rows (standard split), features standardised; all 182 edges between its 14 labels, three
folds: what the choice of the edges of a tree is based on. scikit-learn fits one logistic regression to the
rows of each value of the parent (the frequencies of labels where there is only one). "the same models" are
those fits by our compiled solver; "as TreeClassifier fits them" are penalised shifts of the model without the
parent. The penalty is TreeClassifier's choice for its own, and for separate models the best of five on these
very folds, which favours them. Log-likelihoods are those of held-out rows: of a child's label, mean over all
edges; and of all labels of a row, with the edges of the best forest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmark_sets import load_benchmark
from timing import cpu
from tuplet import TreeClassifier
from tuplet.local.many_logistic import LogisticBatch
from tuplet.models.trees.logistic import LogisticTreeLearner, TreeSettings
from tuplet.structure import best_forest, edges

GRID = (0.001, 0.003, 0.01, 0.03, 0.1)


def by_scikit_learn(Z: np.ndarray, codes: np.ndarray, kept: np.ndarray, C: float) -> np.ndarray:
    """Held-out log-likelihoods (m, m) of every child (columns) given every parent (rows), in one fold."""
    m = codes.shape[1]
    answer = np.zeros((m, m))
    for parent in range(m):
        for value in (0, 1):
            learnt, judged = (np.flatnonzero(rows & (codes[:, parent] == value)) for rows in (kept, ~kept))
            for child in range(m):
                if child != parent:
                    answer[parent, child] += one_fit(Z, codes[:, child], learnt, judged, C)
    return answer


def one_fit(Z: np.ndarray, y: np.ndarray, learnt: np.ndarray, judged: np.ndarray, C: float) -> float:
    """Fit to some rows, judge by others."""
    if len(np.unique(y[learnt])) < 2:
        share = (y[learnt].sum() + 1) / (len(learnt) + 2)
        return float(np.log(np.where(y[judged] == 1, share, 1 - share)).sum())
    if not len(judged):
        return 0.0
    model = LogisticRegression(C=C, max_iter=10_000).fit(Z[learnt], y[learnt])
    return float(model.predict_log_proba(Z[judged])[np.arange(len(judged)), y[judged]].sum())


def by_batches(Z: np.ndarray, codes: np.ndarray, kept: np.ndarray, C: float) -> np.ndarray:
    """The same by the compiled solver: all values of a parent at once."""
    m = codes.shape[1]
    batch, answer = LogisticBatch(np.ascontiguousarray(Z[kept]), C=C, tol=1e-3), np.zeros((m, m))
    for parent in range(m):
        blocks, asked = np.ascontiguousarray(codes[kept, parent]), codes[~kept, parent]
        for child in range(m):
            if child != parent:
                y = np.ascontiguousarray(codes[kept, child])
                fitted = batch.fit(y, blocks, 2, 2)
                table = fitted.log_proba(Z[~kept], asked)
                own = table[np.arange(len(asked)), codes[~kept, child]]
                for value in (0, 1):
                    rows = blocks == value
                    if len(np.unique(y[rows])) < 2:  # what the rival does there
                        share = (y[rows].sum() + 1) / (rows.sum() + 2)
                        chance = np.log(np.where(codes[~kept, child] == 1, share, 1 - share))
                        own = np.where(asked == value, chance, own)
                answer[parent, child] = own.sum()
    return answer


def main() -> None:
    """Print CPU seconds and held-out log-likelihoods."""
    data = load_benchmark("yeast")
    X, codes = data.X[data.train].to_numpy(float), data.Y[data.train].to_numpy().astype(np.intp)
    chosen = TreeClassifier().fit(X, codes)
    settings = TreeSettings("split", chosen.C_, chosen.C_shared_, chosen.C_shift_, 3, None, None)
    trees = LogisticTreeLearner(X, codes, (2,) * codes.shape[1], None, settings)
    folds = [held == 0 for _, held in trees.chooser.shares]
    Z, m = trees.rows.Z[:-1], codes.shape[1]

    def separate(fit: Callable[..., np.ndarray], C: float) -> np.ndarray:
        return sum(fit(Z, codes, kept, C) for kept in folds)

    def shifted() -> np.ndarray:
        trees.chooser._logits = {}  # the models without parents count, too
        return trees.edges(None).given

    C = max(GRID, key=lambda C: separate(by_batches, C).sum())
    lines = [
        ("scikit-learn, one call per edge and value", lambda: separate(by_scikit_learn, C), 1),
        ("Tuplet, the same models", lambda: separate(by_batches, C), 3),
        ("Tuplet, as TreeClassifier fits them", shifted, 3),
    ]
    alone = trees.edges(None).alone
    print(
        f"yeast, {len(codes)} rows, {len(folds) * 2 * m * (m - 1)} fits; C = {C:g} for separate models,"
        f" {chosen.C_:g}, {chosen.C_shared_:g} and {chosen.C_shift_:g} without parents, shared and for shifts"
    )
    print(f"{'':45}{'CPU s':>8}{'faster':>9}{'log-likelihood of all edges':>30}{'of the best forest':>21}")
    first = None
    for name, work, repeats in lines:
        seconds, given = cpu(work, repeats), work()
        first = first or seconds
        np.fill_diagonal(given, -np.inf)
        every = given[np.isfinite(given)].mean() / len(codes)
        forest = alone.sum() + sum((given - alone)[edge] for edge in edges(best_forest(given - alone)))
        print(f"{name:45}{seconds:8.2f}{first / seconds:8.1f}x{every:30.4f}{forest / len(codes):21.4f}")


if __name__ == "__main__":
    main()

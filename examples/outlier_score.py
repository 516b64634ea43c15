"""Find the penguins whose labels do not fit them.

Minus log p(y | x) of the labels that were observed is a conditional outlier score: it asks how surprising a
combination of labels is for a bird of these measurements, not how unusual the bird is. Every bird is scored
by a model that has not seen it. Labels that nobody knows are summed out.
"""

import pandas as pd
from sklearn.model_selection import KFold

from tuplet import ChainClassifier
from tuplet.datasets import load_penguins


def outlier_scores(model, X: pd.DataFrame, Y: pd.DataFrame, random_state: int = 0) -> pd.DataFrame:
    """Score the labels of every row by models of the other folds; `model` is fitted anew for each."""
    parts = []
    for train, test in KFold(10, shuffle=True, random_state=random_state).split(X):
        model.fit(X.iloc[train], Y.iloc[train])
        prediction = model.predict_joint(X.iloc[test])
        labels = Y.iloc[test]
        expected = prediction.mode().add_prefix("expected_")
        parts.append(labels.join(expected).assign(score=-prediction.log_prob(labels)))
    return pd.concat(parts).sort_values("score", ascending=False)


def main() -> None:
    """Print the ten birds whose labels are the most surprising."""
    X, Y = load_penguins(return_X_y=True)
    scores = outlier_scores(ChainClassifier(), X, Y)
    print(scores.head(10).round(2).to_string())
    print(f"\nmedian score of all {len(scores)} birds: {scores['score'].median():.2f}")


if __name__ == "__main__":
    main()

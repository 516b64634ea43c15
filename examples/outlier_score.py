"""
Labels that do not fit: an outlier score
========================================

Minus log p(y | x) of the labels that were observed is a conditional outlier score: it asks how surprising a
combination of labels is for a bird of these measurements, not how unusual the bird is. Every bird is scored
by a model that has not seen it. Labels that nobody knows are summed out.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.model_selection import KFold

from tuplet import ChainClassifier, load_penguins


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


X, Y = load_penguins(return_X_y=True)
scores = outlier_scores(ChainClassifier(), X, Y)
print(scores.head(10).round(2).to_string())
print(f"\nmedian score of all {len(scores)} birds: {scores['score'].median():.2f}")

# %%
# What if labels were mixed up? Exchange the species of twenty birds, and look where they end up in the
# list.

wrong = Y.copy()
swapped = Y.sample(20, random_state=0).index
wrong.loc[swapped, "species"] = Y.loc[swapped, "species"].map(
    {"Adelie": "Gentoo", "Gentoo": "Chinstrap", "Chinstrap": "Adelie"}
)
again = outlier_scores(ChainClassifier(), X, wrong)
print(f"of the 20 most surprising birds, {again.index[:20].isin(swapped).sum()} were mixed up")

# %%

fig, ax = plt.subplots(figsize=(6, 3.2))
bins = [i / 2 for i in range(int(2 * again["score"].max()) + 3)]
ax.hist(again.drop(index=swapped)["score"], bins, label="labels as observed")
ax.hist(again.loc[swapped, "score"], bins, label="species exchanged")
ax.set(xlabel="surprise, -log p(y | x) in nats", ylabel="birds", yscale="symlog")
ax.legend(frameon=False)
plt.tight_layout()
plt.show()

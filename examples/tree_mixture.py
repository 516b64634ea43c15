"""
A mixture of trees
==================

In a tree every label has at most one parent, so inference is cheap however many labels there are. A mixture
of trees can say what no single tree can. Here two kinds of readers tag articles: for one kind "war" goes
with "politics", for the other with "history", and nobody knows who tagged what.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tuplet import IndependentClassifier, TreeClassifier, TreeMixtureClassifier

rng = np.random.default_rng(1)


def articles(n: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Return four features of n articles and their tags."""
    X = rng.normal(size=(n, 4))
    first = rng.random(n) < 0.5

    def tag(log_odds: np.ndarray) -> np.ndarray:
        return rng.random(n) < 1 / (1 + np.exp(-log_odds))

    politics, history = tag(X[:, 0]), tag(X[:, 1])
    war = tag(6.0 * np.where(first, politics, history) - 3.0)
    maps = tag(6.0 * np.where(first, history, politics) - 3.0)
    quotes = tag(X[:, 2] + 2.0 * politics - 1.0)
    return X, pd.DataFrame(
        {"politics": politics, "history": history, "war": war, "maps": maps, "quotes": quotes}
    )


X, Y = articles(1500)
X_new, Y_new = articles(2000)
models = {
    "independent": IndependentClassifier(),
    "one tree": TreeClassifier(),
    "mixture of trees": TreeMixtureClassifier(max_trees=5, random_state=0),
}
for name, model in models.items():
    joint = model.fit(X, Y).predict_joint(X_new)
    print(f"{name:<17} log-likelihood of a row {joint.log_prob(Y_new).mean():.3f}")

# %%
# Trees are added one at a time, each fitted first to the rows that the mixture explains badly, until held-
# out rows say that it is enough.

mixture = models["mixture of trees"]
print("weights of the trees:", mixture.weights_.round(2))

mixture.plot_path()
plt.show()

# %%
# The most probable combination of a mixture is found with a proof.

joint = mixture.predict_joint(X_new[:200])
print("most probable combinations that are proven:", f"{joint.mode_proven().mean():.0%}")

# %%
# The first tree as a graph.

models["one tree"].plot(title="One tree over the tags")
plt.show()

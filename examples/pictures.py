"""
Pictures of a prediction
========================

Predictions draw themselves: one row, a few rows, or how well all rows were judged. Each picture is a
matplotlib Axes, so it can be changed, saved, or drawn beside others with ``ax=``.
"""

import matplotlib.pyplot as plt

from tuplet import BayesNetClassifier, load_penguins
from tuplet.surface.plots import plot_label_dependence

X, Y = load_penguins(return_X_y=True)
test = X.index % 3 == 0
joint = BayesNetClassifier().fit(X[~test], Y[~test]).predict_joint(X[test])
unsure = int(joint.entropy().argmax())

# %%
# The bird that the model is least sure of: its most probable combinations, with a tick at the true one.

joint.plot(unsure, Y=Y[test])
plt.show()

# %%
# The probability of each label by itself, for three birds; labels that hold are filled.

joint.plot_marginals([unsure, 60, 95], Y=Y[test])
plt.show()

# %%
# Two variables of one bird. A cell that is not the product of its sums tells of dependence.

joint.plot_table("species", "island", row=unsure, Y=Y[test])
plt.show()

# %%
# How strongly labels depend on each other: in the data, and in the prediction, where the features have
# explained a part of it.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
plot_label_dependence(Y, title="labels", ax=left)
joint.plot_dependence(title="labels, given the features", ax=right)
plt.tight_layout()
plt.show()

# %%
# Are probabilities what they say? Of what is called 70 % certain, 70 % should happen.

joint.plot_reliability(Y[test], n_bins=5)
plt.show()

# %%
# How many combinations must be listed until the true one is among them, and how many the model expects.

joint.plot_coverage(Y[test], k=8)
plt.show()

"""
Probit forests, and how sure a probability is
=============================================

`ProbitForestClassifier` draws from the posterior distribution of its parameters: sums of trees for every
label, and correlations between the labels. So a probability comes with a credible interval, and the
correlations with theirs. It needs the extra ``bart``. The chains here are far too short for real work: they
are made to run while the page is built.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tuplet import ProbitForestClassifier

rng = np.random.default_rng(0)
R = np.array([[1.0, 0.7, 0.8], [0.7, 1.0, 0.9], [0.8, 0.9, 1.0]])
X = rng.uniform(size=(250, 3))
signal = np.column_stack([np.sin(np.pi * X[:, 0] * X[:, 1]) + shift for shift in (-0.1, 0.1)] + [X[:, 2]])
Y = pd.DataFrame(
    signal + rng.multivariate_normal(np.zeros(3), R, size=len(X)) > 0.6, columns=["fever", "rash", "fatigue"]
)

model = ProbitForestClassifier(n_burn=150, n_draws=80, n_chains=2, random_state=0).fit(X, Y)

# %%
# Correlations of what the features leave unexplained, beside the true ones .7, .8 and .9.

model.plot_correlations()
plt.show()

# %%
# Intervals of single labels for a few rows, then of a whole combination.

rows = model.predict_joint(rng.uniform(size=(4, 3)))
print(rows.intervals().round(3).to_string())
print(rows.intervals({"fever": True, "rash": True, "fatigue": True}, level=0.9).round(3).to_string())

# %%
# The same as a picture: the probability of all three labels along the third feature, with the interval in
# which 90 % of the draws lie.

grid = np.column_stack([np.full(25, 0.5), np.full(25, 0.5), np.linspace(0, 1, 25)])
band = model.predict_joint(grid).intervals({"fever": True, "rash": True, "fatigue": True}, level=0.9)
fig, ax = plt.subplots(figsize=(6, 3.4))
ax.fill_between(grid[:, 2], band["lower"], band["upper"], alpha=0.25)
ax.plot(grid[:, 2], band["probability"])
ax.set(xlabel="third feature", ylabel="P(fever, rash and fatigue)", ylim=(0, None))
plt.tight_layout()
plt.show()

"""
What follows once a label is known
==================================

A joint distribution can be asked again when something becomes known. Here the island of a bird is looked
up, and the model says what that means for its species and its sex.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tuplet import ChainClassifier, load_penguins

X, Y = load_penguins(return_X_y=True)
test = X.index % 3 == 0
joint = ChainClassifier().fit(X[~test], Y[~test]).predict_joint(X[test])

# %%
# The bird whose species is least certain, before and after. `given` returns a prediction again, so
# everything that can be asked of one can be asked of the other.

unsure = int(np.argmax(joint.marginal("species").entropy()))
bird = joint[unsure]
beliefs = {"nothing known": bird.marginals()["species"].iloc[0]}
for island in ("Biscoe", "Dream", "Torgersen"):
    beliefs[f"seen on {island}"] = bird.given(island=island).marginals()["species"].iloc[0]
table = pd.DataFrame(beliefs).T
print(table.round(3).to_string())

# %%

ax = table.plot.barh(stacked=True, figsize=(7, 2.6), width=0.75)
ax.invert_yaxis()
ax.set(xlim=(0, 1), xlabel="probability of the species")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=3, frameon=False)
plt.tight_layout()
plt.show()

# %%
# Over all test rows: how probable the true values of two labels are, before and after the third is known.
# Labels are given for all rows at once, one for each row; missing ones stay free.

for known in Y:
    others = [name for name in Y if name != known]
    truth = Y.loc[test, others]
    before = joint.marginal(*others).log_prob(truth).mean()
    after = joint.given({known: Y.loc[test, known]}).marginal(*others).log_prob(truth).mean()
    print(f"{known:<8} known: log-likelihood of {' and '.join(others):<19} from {before:.3f} to {after:.3f}")

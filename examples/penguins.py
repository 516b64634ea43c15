"""
Penguins from beginning to end
==============================

Three things about a penguin are to be told from its measurements: its species, the island that it was seen
on, and its sex. They depend on each other. Chinstraps live on Dream only, and what a body mass says about
the sex is another thing for each species. So they are predicted together.
"""

import matplotlib.pyplot as plt

from tuplet import ChainClassifier, IndependentClassifier, load_penguins
from tuplet.metrics import exact_match, hamming_loss, joint_log_loss

X, Y = load_penguins(return_X_y=True)
print(X.head(3).to_string(), Y.head(3).to_string(), sep="\n\n")

# %%
# Some rows lack measurements and some lack a label. All of them are used: gaps in X are filled inside of
# the model, from the training rows, and a missing label leaves a row out for that class variable only.

test = X.index % 3 == 0
model = ChainClassifier().fit(X[~test], Y[~test])
print(model.space_)

# %%
# What the model predicts is a distribution over all 18 combinations. Here are the most probable ones of a
# few birds, then the first of them as a picture.

joint = model.predict_joint(X[test])
print(joint[[60, 95]].top_k(3).round(3).to_string(index=False))

# %%

joint.plot(row=60, Y=Y[test])
plt.show()

# %%
# Independent models are about as good at single labels. That labels were predicted one by one shows in the
# probabilities of combinations.

alone = IndependentClassifier().fit(X[~test], Y[~test]).predict_joint(X[test])
print(f"{'':<14}{'Hamming loss':>14}{'exact match':>14}{'log-likelihood':>16}")
for name, prediction in {"chain": joint, "independent": alone}.items():
    single = hamming_loss(Y[test], prediction.decide("hamming"))
    whole = exact_match(Y[test], prediction.decide("subset"))
    print(f"{name:<14}{single:>14.3f}{whole:>14.3f}{-joint_log_loss(Y[test], prediction):>16.3f}")

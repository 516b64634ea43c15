"""
Decisions under costs, and the right not to answer
==================================================

A model says how probable each combination is. What to answer is another question, and depends on what
errors cost. The same prediction serves any loss.
"""

import matplotlib.pyplot as plt
import pandas as pd

from tuplet import ChainClassifier, load_penguins
from tuplet.losses import Abstain, CostMatrix
from tuplet.metrics import answered_accuracy, coverage, exact_match, hamming_loss, mean_loss

X, Y = load_penguins(return_X_y=True)
test = X.index % 3 == 0
model = ChainClassifier().fit(X[~test], Y[~test])
joint, truth = model.predict_joint(X[test]), Y[test]

# %%
# The most probable label of each variable is the best answer for Hamming loss, the most probable
# combination the best for exact match. Each wins by its own measure.

for loss in ("hamming", "subset"):
    answer = joint.decide(loss)
    single, whole = hamming_loss(truth, answer), exact_match(truth, answer)
    print(f"{loss:<8} Hamming loss {single:.3f}  exact match {whole:.3f}")

# %%
# Suppose that it does harm to take a Chinstrap for something else: ten times as much as any other error.
# Costs go by labels; class variables that are not named cost 1 for every error.

kinds = ["Adelie", "Chinstrap", "Gentoo"]
costs = pd.DataFrame(1.0, index=kinds, columns=kinds)
costs.loc["Chinstrap"] = 10.0
for kind in kinds:
    costs.loc[kind, kind] = 0.0
careful = CostMatrix.from_labels(model.space_, {"species": costs})
for name, loss in {"hamming": "hamming", "careful": careful}.items():
    answer = joint.decide(loss)
    missed = ((truth["species"] == "Chinstrap") & (answer["species"] != "Chinstrap")).sum()
    print(f"{name:<8} mean cost {mean_loss(truth, answer, careful):.4f}  Chinstraps missed: {missed}")

# %%
# `Abstain` adds one more answer, "leave it open", at a price. The lower the price, the fewer labels are
# answered, and the better those are.

prices = [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
answers = [joint.decide(Abstain("hamming", price)) for price in prices]
answered = [coverage(answer) for answer in answers]
right = [answered_accuracy(truth, answer) for answer in answers]

fig, ax = plt.subplots(figsize=(6, 3.6))
ax.plot(answered, right, marker="o")
for price, x, y in zip(prices, answered, right, strict=True):
    ax.annotate(f"{price:g}", (x, y), textcoords="offset points", xytext=(6, 4), fontsize=8)
ax.set(
    xlabel="share of labels that are answered",
    ylabel="share of these that are right",
    title="Price of an open label, from .02 to .5",
)
plt.tight_layout()
plt.show()

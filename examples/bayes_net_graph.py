"""
The label graph of a Bayesian network
=====================================

Which labels depend on which, beyond what the features explain? `BayesNetClassifier` answers with a graph
that is proven to score best, and with the strength of every edge. The data are simulated, so the true edges
are known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tuplet import BayesNetClassifier, IndependentClassifier

rng = np.random.default_rng(0)


def clinic(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return age and years of smoking of n patients, and five findings that depend on them and each other."""
    age, years = rng.normal(50, 15, n), rng.exponential(10, n)

    def happens(log_odds: np.ndarray) -> np.ndarray:
        return rng.random(n) < 1 / (1 + np.exp(-log_odds))

    bronchitis = happens(0.12 * years - 1.5)
    tumour = happens(0.06 * years + 0.04 * (age - 50) - 2.5)
    shadow = happens(np.where(tumour, 3.0, -3.0))
    breathless = happens(-2.5 + 2.5 * bronchitis + 2.5 * tumour)
    cough = happens(-1.5 + 3.0 * bronchitis)
    labels = {
        "bronchitis": bronchitis,
        "tumour": tumour,
        "shadow": shadow,
        "breathless": breathless,
        "cough": cough,
    }
    return pd.DataFrame({"age": age, "years of smoking": years}), pd.DataFrame(labels)


X, Y = clinic(1000)
model = BayesNetClassifier().fit(X, Y)
print(model.edges().round(1).to_string(index=False))
print("proven to be the best graph:", model.proven_)

# %%
# The strength of an edge is what the score loses without it. Directions are a matter of the factorisation:
# graphs that say the same about dependence score the same, so an arrow is no claim about causes.

model.plot()
plt.show()

# %%
# For one patient the network has numbers. The strength of an edge is now the information that the two share
# for this patient.

patient = pd.DataFrame({"age": [70.0], "years of smoking": [30.0]})
print(model.explain(patient))

# %%
# New patients are predicted better than by models that do not know of each other.

X_new, Y_new = clinic(2000)
for each in (model, IndependentClassifier().fit(X, Y)):
    prediction = each.predict_joint(X_new)
    print(f"{type(each).__name__:<22} log-likelihood of a row {prediction.log_prob(Y_new).mean():.3f}")

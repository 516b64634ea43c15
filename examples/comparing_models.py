"""
Comparing models on several data sets
=====================================

`compare` fits every model to the same folds and asks each for one joint distribution, from which all scores
come. The data sets come with scikit-learn: beside their class, some of their measurements, cut into thirds,
are class variables, and the others are features.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier

from tuplet import ChainClassifier, IndependentClassifier, PowersetClassifier, PriorClassifier, load_penguins
from tuplet.evaluate import compare


def thirds(data: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the other columns as features, and these as class variables with the values 0, 1 and 2."""
    labels = {
        name: pd.qcut(data[name], 3, labels=False, duplicates="drop") for name in names if name != "target"
    }
    if "target" in names:
        labels["target"] = data["target"]
    features = data.drop(columns=[name for name in {*names, "target"} if name in data])
    return features, pd.DataFrame(labels)


datasets = {
    "penguins": load_penguins(return_X_y=True),
    "iris": thirds(load_iris(as_frame=True).frame, ["petal length (cm)", "petal width (cm)", "target"]),
    "wine": thirds(load_wine(as_frame=True).frame, ["alcohol", "color_intensity", "flavanoids", "target"]),
    "cancer": thirds(load_breast_cancer(as_frame=True).frame, ["mean area", "worst concavity", "target"]),
    "diabetes": thirds(
        load_diabetes(as_frame=True).frame.rename(columns={"target": "progress"}), ["bmi", "bp", "progress"]
    ),
}
models = {
    "prior": PriorClassifier(),
    "independent": IndependentClassifier(),
    "chain": ChainClassifier(),
    "powerset": PowersetClassifier(),
    "forest": RandomForestClassifier(50, random_state=0),  # scikit-learn's own
}
result = compare(models, datasets, cv=3, scores=["exact_match", "joint_log_likelihood"], isolate=False)
print(result.to_text("exact_match", width=100))

# %%
# Average ranks over the data sets. Friedman's test says whether the models differ at all; models that are
# joined by a bar do not differ by the test of Nemenyi, which five data sets make a coarse one.

print(result.tests.friedman("joint_log_likelihood"))
result.plot.critical_differences("joint_log_likelihood")
plt.show()

# %%
# Are probabilities what they say? Of the combinations that a model calls 70 % certain, 70 % should be
# right.

result.select(models=["chain", "powerset", "forest"]).plot.calibration("mode")
plt.show()

# %%
# What it costs: seconds of a fit, and of everything that was asked of the joint.

seconds = result.costs()[["fit_cpu_seconds", "predict_cpu_seconds"]]
print(seconds.groupby("model").mean().round(3).to_string())

"""
Rules of an expert: the warehouse worker
========================================

The example of section 3.3 of Kirchhof et al. (2021), "pRSL: Interpretable multi-label stacking by learning
probabilistic rules". A camera tells walking from work at normal height and overhead; sensor shoes tell gait
from standing; a wristband tells how high the hands are. Each has a model of its own, and none is sure.

``python examples/warehouse_worker.py --plot file.png`` also writes the picture.
"""

import sys

import numpy as np

from tuplet.core.exceptions import ImpossibleEvidenceError
from tuplet.models.rules import NoisyOr, Rule, RuleModel, RuleSet

SENSORS = {
    "camera": ["walking", "normal", "overhead"],
    "shoes": ["gait", "standing"],
    "hands": ["high", "centered", "low"],
}

RULES = RuleSet.from_text("""
    # Who stands with the hands up usually works overhead.
    [overhead work] 0.8: (high & standing) -> overhead
    # Normal work is done with the hands at the centre or low.
    [normal height] 0.9: normal -> (centered | low)
    # The camera's walking and the shoes' gait are the same thing.
    [same movement] 1.0: walking <-> gait
""")

BELIEFS = {
    "camera": {"walking": 0.1, "normal": 0.4, "overhead": 0.5},
    "shoes": {"gait": 0.05, "standing": 0.95},
    "hands": {"high": 0.5, "centered": 0.3, "low": 0.2},
}

model = RuleModel(SENSORS, RULES)
print(model.rules)

# %%
# What the sensors say together. The paper prints P(overhead) = .94: its code intersects "centered" and
# "low" in the second rule, and no hand is both, so that normal work was forbidden. Its table of
# combinations, the one below, is right.

joint = model.predict_joint(BELIEFS)
print(joint.top_k(9).to_string(index=False, float_format="{:.4f}".format))
print("\nThe most probable combination is proven:", bool(joint.mode_proven()[0]))
for name, table in joint.marginals().items():
    print(f"{name}: " + ", ".join(f"{label} {p:.3f}" for label, p in table.iloc[0].items()))

# %%
# Which rules moved which label, in log-odds; then how likely each rule is broken, and would be without it.

explanation = model.explain(BELIEFS)
print(explanation)
print()
print(explanation.rule_frame().to_string(index=False, float_format="{:.3f}".format))

# %%

ax = model.plot_explanation(BELIEFS, title="What the rules did")
if "--plot" in sys.argv:
    ax.figure.savefig(sys.argv[sys.argv.index("--plot") + 1], dpi=150)

# %%
# The wristband gets surer, and the camera's label with it.

for high in (0.5, 0.7, 0.9, 0.99):
    hands = {"high": high, "centered": 0.6 * (1 - high), "low": 0.4 * (1 - high)}
    posterior = model.predict_joint({**BELIEFS, "hands": hands}).marginals()["camera"]
    print(f"P(high) = {high:.2f}:  P(overhead) = {posterior['overhead'].iloc[0]:.4f}")

# %%
# A shoe falls silent for a minute: rows are moments, and a missing belief is no belief.

shoes = np.array([[0.05, 0.95], [np.nan, np.nan], [0.9, 0.1]])
print(model.predict_joint({**BELIEFS, "shoes": shoes}).to_frame().round(3).to_string())

# %%
# A noisy-or rule by hand, and a label that no sensor sees.

wider = model.add_variable("break").add_rules(
    Rule("break -> !overhead", 0.95),
    NoisyOr.from_strengths({"break": {1: 0.9}, "shoes": {"standing": 0.6}, "hands": {"low": 0.3}}, p=0.9),
)
print(wider.rules)
print("P(break) =", round(float(wider.predict_joint(BELIEFS).marginals()["break"].iloc[0, 1]), 4))

# %%
# Rules that contradict each other are named.

against = ("overhead -> high", "standing -> !high", "overhead", "!walking")
try:
    model.add_rules(*against).predict_joint(BELIEFS).mode()
except ImpossibleEvidenceError as error:
    print(error)

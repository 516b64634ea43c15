"""The script of a user, run and type-checked by `make test-wheel` against the installed wheel."""

from pathlib import Path
from typing import assert_type

from tuplet import (
    BayesNetClassifier,
    ChainClassifier,
    IndependentClassifier,
    JointPrediction,
    load_model,
    load_penguins,
    save_model,
)
from tuplet.evaluate import Comparison, compare
from tuplet.losses import Hamming, Loss, get_loss
from tuplet.metrics import exact_match, joint_log_loss


def main(path: Path) -> None:
    """Fit, predict, decide, score, save, load and compare."""
    X, Y = load_penguins(return_X_y=True)
    chain = assert_type(ChainClassifier().fit(X[:300], Y[:300]), ChainClassifier)
    network = assert_type(BayesNetClassifier().fit(X[:300], Y[:300]), BayesNetClassifier)
    joint = assert_type(chain.predict_joint(X[300:]), JointPrediction)
    females = assert_type(joint.given(sex="female"), JointPrediction)
    subset = assert_type(get_loss("subset"), Loss)
    assert (females.decide(subset)["sex"] == "female").all()
    assert assert_type(exact_match(Y[300:], chain.predict(X[300:], loss=Hamming())), float) > 0.4
    assert assert_type(joint_log_loss(Y[300:], network.predict_joint(X[300:])), float) < 2.0
    save_model(chain, path)
    assert (load_model(path).predict_joint(X[300:]).prob(Y[300:]) == joint.prob(Y[300:])).all()
    models = {"independent": IndependentClassifier(), "chain": ChainClassifier()}
    result = assert_type(compare(models, {"penguins": (X, Y)}, cv=2), Comparison)
    assert result.problems().empty
    assert result.table("joint_log_likelihood").loc["penguins", "chain"] > -1.5


if __name__ == "__main__":
    main(Path("model.tuplet"))

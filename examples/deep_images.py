"""
Networks as local models: three labels of noisy images
======================================================

Every image shows two of scikit-learn's digits side by side: 3, 5 or 8, and mostly the same one twice. Asked
for are both digits and how they relate: same, rising or falling. The noise leaves the digits in doubt, and
then the labels must be guessed together: networks that guess one by one say "8", "5" and "rising". A
Bayesian network over the labels does not.

Networks that learn from so few images are surer than they are right; temperature scaling and mixup are
there for that. It needs torch (``pip install 'tuplet[deep]'``) and some minutes, and is not run for this
page.
"""

import time

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits

from tuplet import BayesNetClassifier, IndependentClassifier
from tuplet.local.deep import ConvNet, DeepClassifier, TemperatureScaled
from tuplet.metrics import exact_match

DIGITS = np.array([3, 5, 8])
SHAPE = (1, 8, 16)
"""Channels, height and width of an image."""


def make_images(n: int, noise: float = 0.4, random_state: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    """Return images (n, 1, 8, 16) of two digits, and their labels."""
    rng = np.random.default_rng(random_state)
    pictures, shown = load_digits(return_X_y=True)
    pools = [pictures[shown == digit].reshape(-1, 8, 8) / 16 for digit in DIGITS]
    left = rng.integers(3, size=n)
    right = (left + rng.choice(3, size=n, p=[0.7, 0.2, 0.1])) % 3
    halves = [np.stack([rng.choice(pools[code]) for code in side]) for side in (left, right)]
    images = np.concatenate(halves, axis=2)[:, None]
    relation = np.array(["falling", "same", "rising"])[np.sign(right - left) + 1]
    labels = pd.DataFrame({"left": DIGITS[left], "right": DIGITS[right], "relation": relation})
    return images + noise * rng.normal(size=images.shape), labels


def sketch(image: np.ndarray) -> str:
    """Return an image (1, 8, 16) drawn in characters."""
    shades = " .:-=+*#%@"
    levels = (image[0].clip(0, 1) * (len(shades) - 1)).round().astype(int)
    return "\n".join("   " + "".join(shades[level] * 2 for level in line) for line in levels)


def local_models() -> dict[str, object]:
    """Return the networks that compete: any of them is an `estimator`."""
    settings = {"image_shape": SHAPE, "module__width": 8, "max_epochs": 18, "lr": 0.008, "random_state": 0}
    plain = DeepClassifier(ConvNet, **settings)
    mixed = DeepClassifier(ConvNet, mixup=0.2, **settings)
    return {
        "plain": plain,
        "temperature scaling": TemperatureScaled(plain, random_state=0),
        "mixup": mixed,
        "mixup and temperature scaling": TemperatureScaled(mixed, random_state=0),
    }


def graph(model: BayesNetClassifier) -> str:
    """Return the edges of a network as text."""
    names = model.space_.names
    edges = [
        f"{', '.join(names[p] for p in parents)} → {names[child]}"
        for child, parents in enumerate(model.parents_)
        if parents
    ]
    return "; ".join(edges) or "no edges"


def main() -> None:
    """Fit all models to 500 images, and judge them by 1,000 others."""
    torch.set_num_threads(1)
    images, Y = make_images(1500)
    X = images.reshape(len(images), -1)  # flat columns; the networks know the shape
    train, test = slice(500), slice(500, None)
    print(f"The first image: {', '.join(f'{name} = {label}' for name, label in Y.iloc[0].items())}\n")
    print(sketch(images[0]), end="\n\n")
    print(f"{'local model':<31}{'labels':<14}{'log-likelihood':>15}{'exact match':>13}{'seconds':>9}  graph")
    for name, net in local_models().items():
        models = {
            "independent": IndependentClassifier(net),
            "Bayes net": BayesNetClassifier(
                net, max_parents=2, parametrisation="split", criterion="bic", random_state=0
            ),
        }
        for kind, model in models.items():
            begun = time.perf_counter()
            joint = model.fit(X[train], Y[train]).predict_joint(X[test])
            likelihood, right = joint.log_prob(Y[test]).mean(), exact_match(Y[test], joint.mode())
            shown = graph(model) if kind == "Bayes net" else ""
            took = time.perf_counter() - begun
            print(f"{name:<31}{kind:<14}{likelihood:>15.3f}{right:>13.3f}{took:>9.1f}  {shown}", flush=True)
            name = ""
    print("\nThe log-likelihood is that of all three labels together, in nats per image.")


if __name__ == "__main__":
    main()

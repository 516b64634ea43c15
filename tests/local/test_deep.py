"""Networks as local models: any model takes them, on numbers and on images."""

import importlib.util
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuplet import BayesNetClassifier, ChainClassifier, IndependentClassifier, PowersetClassifier
from tuplet.core.exceptions import InputError
from tuplet.local.deep import MLP, ConvNet, DeepClassifier, ResNet18, TemperatureScaled, read_image
from tuplet.local.deep.classifier import RowDataset, mix_rows

pytestmark = pytest.mark.deep
torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")
torch.set_num_threads(1)

MODELS = {
    "independent": IndependentClassifier(),
    "powerset": PowersetClassifier(),
    "chain": ChainClassifier(random_state=0),
    "net, split": BayesNetClassifier(max_parents=1, parametrisation="split", random_state=0),
    "net, inputs": BayesNetClassifier(max_parents=1, parametrisation="inputs", random_state=0),
}


@pytest.fixture(params=MODELS, ids=str)
def model(request):
    return clone(MODELS[request.param])


@pytest.fixture
def table():
    """Two columns; three class variables of 3, 2 and 2 categories, the last a copy of the second."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    first = (X[:, 0] > -0.5).astype(int) + (X[:, 0] > 0.5)
    second = rng.integers(2, size=240)
    second[first == 2] = 1  # a configuration that lacks a class
    return X, pd.DataFrame({"first": first, "second": second, "third": second})


@pytest.fixture
def bars():
    """Images (1, 4, 6) with a bar in the left or right half, and whether a hidden coin agrees with it."""
    rng = np.random.default_rng(1)
    side, coin = rng.integers(2, size=(2, 200))
    images = 0.1 * rng.normal(size=(200, 1, 4, 6))
    images[np.arange(200), 0, :, 1 + 3 * side] += 1
    labels = pd.DataFrame({"coin": coin, "agrees": np.where(coin == side, "yes", "no")})
    return images, labels


tabular = partial(DeepClassifier, MLP, max_epochs=15, lr=0.02, module__width=16)
small = partial(DeepClassifier, ConvNet, max_epochs=15, lr=0.01, module__width=4, random_state=0)


# -- numbers -------------------------------------------------------------------------------------------------


def test_every_model_takes_a_network(model, table):
    X, Y = table
    model.set_params(estimator=make_pipeline(StandardScaler(), tabular(random_state=0))).fit(X, Y)
    joint = model.predict_joint(X)
    log_prob = joint.log_prob(Y)
    assert np.isfinite(log_prob).all()
    # Without dependence: ln 2 for each of second and third, where first is not 2 (two thirds of the rows).
    assert log_prob.mean() > (-1.2 if isinstance(model, IndependentClassifier) else -0.8)
    assert (joint.marginals()["first"].to_numpy().argmax(axis=1) == Y["first"]).mean() > 0.9


class _Plain(torch.nn.Module):
    """A module of a user who has never heard of us, but for the change to single precision."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.layer = torch.nn.Linear(n_in, n_out)

    def forward(self, x):
        return self.layer(x.float())


def test_every_model_takes_a_plain_skorch_classifier(model, table):
    X, Y = table
    Y = Y[["second", "third"]]
    width = X.shape[1]

    def net(n_in, n_out):
        return skorch.NeuralNetClassifier(
            _Plain,
            criterion=torch.nn.CrossEntropyLoss,
            module__n_in=n_in,
            module__n_out=n_out,
            max_epochs=3,
            train_split=None,
            verbose=0,
        )

    if isinstance(model, ChainClassifier):
        estimator = {"second": net(width, 2), "third": net(width + 1, 2)}
    elif isinstance(model, BayesNetClassifier):
        model.set_params(parametrisation="split")
        estimator = net(width, 2)
    else:
        estimator = net(width, 2)
    log_prob = model.set_params(estimator=estimator).fit(X, Y).predict_joint(X).log_prob(Y)
    assert np.isfinite(log_prob).all()


def test_missing_labels_and_weights_reach_the_network(table):
    X, Y = table
    Y = Y.astype(float)
    Y.iloc[::5, 0] = np.nan
    weight = np.where(Y["second"] == 1, 1.0, 1e-4)
    model = ChainClassifier(tabular(), random_state=0).fit(X, Y, sample_weight=weight)
    assert model.predict_proba(X)[1][:, 1].min() > 0.9


def test_a_weight_is_a_repetition(table):
    # Full batches and plain gradient descent: then the two are the same up to rounding.
    X, y = table[0], table[1]["first"].to_numpy()
    weight = np.arange(len(y)) % 3
    again = np.repeat(np.arange(len(y)), weight)
    net = tabular(random_state=0, batch_size=-1, optimizer=torch.optim.SGD, lr=0.5)
    weighted = net.fit(X, y, sample_weight=weight).predict_proba(X)
    repeated = clone(net).fit(X[again], y[again]).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)
    assert np.abs(weighted - clone(net).fit(X, y).predict_proba(X)).max() > 0.01


def test_seeds_decide_everything_and_disturb_nobody(table):
    X, y = table[0], table[1]["first"].to_numpy()
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    first, second, other = (
        tabular(random_state=s, mixup=0.2, module__dropout=0.2, max_epochs=2).fit(X, y).predict_proba(X)
        for s in (0, 0, 1)
    )
    torch.testing.assert_close(torch.rand(3), expected)
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-3


def test_models_hand_their_seed_down(table):
    joints = [
        ChainClassifier(tabular(max_epochs=2), random_state=seed).fit(*table).predict_joint(table[0])
        for seed in (0, 0, 1)
    ]
    scores = [joint.log_prob(table[1]) for joint in joints]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.abs(scores[0] - scores[2]).max() > 1e-4


def test_fitted_models_can_be_copied_and_sent(table):
    X, Y = table
    model = ChainClassifier(tabular(max_epochs=2), random_state=0).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_joint(X).log_prob(Y), model.predict_joint(X).log_prob(Y))
    assert clone(model).estimator.get_params()["module__width"] == 16


def test_a_row_that_would_be_alone_in_its_batch_is_left_out():
    class Normed(torch.nn.Sequential):
        def __init__(self, n_inputs, n_classes):
            super().__init__(torch.nn.Linear(n_inputs, n_classes), torch.nn.BatchNorm1d(n_classes))

    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9) % 2
    net = DeepClassifier(Normed, batch_size=4, max_epochs=2).fit(X, y)
    assert [len(epoch["batches"]) for epoch in net.history] == [2, 2]
    assert net.predict_proba(X).shape == (9, 2)  # everybody is answered


def test_an_interrupt_is_passed_on(table):
    class Stop(skorch.callbacks.Callback):
        def on_epoch_end(self, net, **kwargs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tabular(callbacks=[Stop()]).fit(table[0], table[1]["first"].to_numpy())


def test_rows_kept_for_validation_are_scored(table):
    X, y = table[0], table[1]["first"].to_numpy()
    net = tabular(train_split=skorch.dataset.ValidSplit(5), random_state=0).fit(X, y, np.ones(len(y)))
    assert net.history[-1, "valid_acc"] > 0.7
    assert net.history[-1, "valid_loss"] < net.history[0, "valid_loss"]


# -- images --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["chain", "net, split", "net, inputs"])
def test_labels_that_depend_on_each_other_given_the_image(kind, bars):
    images, Y = bars
    X = images.reshape(200, -1)
    model = clone(MODELS[kind]).set_params(
        estimator=small(image_shape=images.shape[1:], max_epochs=40, module__width=8)
    )
    joint = model.fit(X, Y).predict_joint(X)
    # Nobody knows the coin, ln 2; but who does knows the rest, and an independent model never does.
    assert joint.log_prob(Y).mean() > -0.9
    known = joint.given(coin=1).marginals()["agrees"]["yes"]
    right = images[:, 0, :, 4].mean(axis=1) > 0.5
    assert ((known > 0.5) == right).mean() > 0.95


def test_images_may_be_read_when_they_are_needed(bars, tmp_path):
    images, Y = bars
    for i, image in enumerate(images):
        np.save(tmp_path / f"{i}.npy", image)
    paths = pd.DataFrame({"path": [str(tmp_path / f"{i}.npy") for i in range(len(images))]})
    numbers = np.arange(len(images), dtype=float)[:, None]

    def joint(X, **how):
        return ChainClassifier(small(max_epochs=3, **how)).fit(X, Y).predict_joint(X).log_prob(Y)

    flat = joint(images.reshape(200, -1), image_shape=(1, 4, 6))
    np.testing.assert_allclose(joint(paths, read=np.load), flat, atol=1e-5)
    np.testing.assert_allclose(joint(numbers, read=lambda i: images[int(i)]), flat, atol=1e-5)


def test_temperature_scaling_hands_paths_through(bars, tmp_path):
    images, Y = bars
    for i, image in enumerate(images):
        np.save(tmp_path / f"{i}.npy", image)
    paths = pd.DataFrame({"path": [str(tmp_path / f"{i}.npy") for i in range(len(images))]})
    local = TemperatureScaled(small(read=np.load, max_epochs=3), random_state=0)
    model = BayesNetClassifier(local, parametrisation="split", max_parents=1, random_state=0).fit(paths, Y)
    assert np.isfinite(model.predict_joint(paths).log_prob(Y)).all()


def test_the_example_tells_what_it_says():
    path = Path(__file__).parents[2] / "examples" / "deep_images.py"
    spec = importlib.util.spec_from_file_location("deep_images", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    images, Y = example.make_images(700, noise=0.3)
    assert images.shape == (700, *example.SHAPE)
    assert set(Y["relation"][Y["left"] == Y["right"]]) == {"same"}
    assert len(example.sketch(images[0]).splitlines()) == 8
    net = DeepClassifier(
        ConvNet, image_shape=example.SHAPE, module__width=4, max_epochs=12, lr=0.01, random_state=0
    )
    X, some, rest = images.reshape(700, -1), slice(300), slice(300, None)
    edges = [("left", "relation"), ("right", "relation")]
    together = BayesNetClassifier(
        net, max_parents=2, parametrisation="split", criterion="bic", required=edges, random_state=0
    )
    scores = [
        model.fit(X[some], Y[some]).predict_joint(X[rest]).log_prob(Y[rest]).mean()
        for model in (IndependentClassifier(net), together)
    ]
    assert scores[1] > scores[0] + 0.2
    assert "relation" in example.graph(together)


# -- mixup ---------------------------------------------------------------------------------------------------


def _batch(n=6):
    rows = RowDataset(np.random.default_rng(0).normal(size=(n, 7)), np.arange(n) % 3, image_shape=(1, 2, 3))
    return rows.__getitems__(range(n))


def test_mixed_rows_are_means_of_rows_and_partners():
    inputs, codes = _batch()
    torch.manual_seed(3)
    mixed = mix_rows((inputs, codes), 0.5)
    assert 0 < mixed.share < 1
    assert mixed.first == (inputs, codes)
    others, partner_codes = mixed.second
    for key in ("x", "parents"):
        expected = mixed.share * inputs[key] + (1 - mixed.share) * others[key]
        torch.testing.assert_close(mixed.inputs[key], expected)
    pairs = {(row.tobytes(), int(code)) for row, code in zip(inputs["x"].numpy(), codes, strict=True)}
    assert {
        (row.tobytes(), int(code)) for row, code in zip(others["x"].numpy(), partner_codes, strict=True)
    } == pairs


def test_shares_are_drawn_from_the_beta_distribution():
    torch.manual_seed(0)
    shares = [mix_rows(_batch(2), 0.4).share for _ in range(2000)]
    assert stats.kstest(shares, stats.beta(0.4, 0.4).cdf).pvalue > 0.001


def test_the_gradient_is_that_of_mixed_labels(bars):
    # Cross-entropy is linear in the target: two labels with shares are one soft label.
    net = small(image_shape=(1, 4, 6), mixup=1.0, max_epochs=1, optimizer=torch.optim.SGD, lr=0.0)
    X, y = bars[0].reshape(200, -1), (bars[1]["agrees"] == "yes").to_numpy().astype(int)
    net.fit(X, y, sample_weight=1.0 + y)
    batch = net.get_dataset(X, y).__getitems__(range(50))
    batch[0]["weight"] = torch.linspace(0.5, 1.5, 50)
    torch.manual_seed(7)
    net.module_.zero_grad()
    loss = net.train_step_single(batch)["loss"]
    found = [p.grad.clone() for p in net.module_.parameters()]
    torch.manual_seed(7)
    mixed = mix_rows(batch, 1.0)
    net.module_.zero_grad()
    log_proba = torch.log_softmax(net.module_(mixed.inputs["x"]), dim=1)
    soft = torch.zeros(50, 2)
    for (inputs, codes), share in ((mixed.first, mixed.share), (mixed.second, 1 - mixed.share)):
        soft[torch.arange(50), codes] += share * inputs["weight"]
    expected = -(soft * log_proba).sum(dim=1).mean()
    expected.backward()
    torch.testing.assert_close(loss, expected)
    for mine, parameter in zip(found, net.module_.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, rtol=1e-4, atol=1e-6)


# -- ResNet-18 -----------------------------------------------------------------------------------------------


def torchvision_layout():
    """Names and shapes of the state dict of torchvision's resnet18, from its published architecture."""

    def norm(name, n):
        parts = dict.fromkeys(["weight", "bias", "running_mean", "running_var"], (n,))
        return {f"{name}.{part}": shape for part, shape in parts.items()} | {
            f"{name}.num_batches_tracked": ()
        }

    layout = {"conv1.weight": (64, 3, 7, 7)} | norm("bn1", 64)
    n_in = 64
    for stage, n in enumerate((64, 128, 256, 512), start=1):
        for block in (0, 1):
            at = f"layer{stage}.{block}"
            layout |= {f"{at}.conv1.weight": (n, n_in, 3, 3)} | norm(f"{at}.bn1", n)
            layout |= {f"{at}.conv2.weight": (n, n, 3, 3)} | norm(f"{at}.bn2", n)
            if n_in != n:
                layout |= {f"{at}.downsample.0.weight": (n, n_in, 1, 1)} | norm(f"{at}.downsample.1", n)
            n_in = n
    return layout | {"fc.weight": (1000, 512), "fc.bias": (1000,)}


def random_state_dict(seed=0):
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in torchvision_layout().items():
        value = torch.randn(shape, generator=generator) * 0.05
        state[name] = value.abs() + 0.5 if name.endswith("running_var") else value
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
    return state


def functional_resnet(state, x):
    """The same network written with functions of the weights alone, in evaluation mode."""
    f = torch.nn.functional

    def norm(x, name):
        mean, var, weight, bias = (
            state[f"{name}.{part}"][:, None, None]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / torch.sqrt(var + 1e-5) * weight + bias

    x = f.relu(norm(f.conv2d(x, state["conv1.weight"], stride=2, padding=3), "bn1"))
    x = f.max_pool2d(x, 3, stride=2, padding=1)
    for stage in (1, 2, 3, 4):
        for block in (0, 1):
            at, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            kept = x
            if stride == 2:
                kept = norm(f.conv2d(x, state[f"{at}.downsample.0.weight"], stride=2), f"{at}.downsample.1")
            x = f.relu(norm(f.conv2d(x, state[f"{at}.conv1.weight"], stride=stride, padding=1), f"{at}.bn1"))
            x = f.relu(norm(f.conv2d(x, state[f"{at}.conv2.weight"], padding=1), f"{at}.bn2") + kept)
    return x.mean(dim=(2, 3)) @ state["fc.weight"].T + state["fc.bias"]


def test_the_layout_is_torchvisions():
    net = ResNet18(1000)
    assert {name: tuple(value.shape) for name, value in net.state_dict().items()} == torchvision_layout()
    assert sum(parameter.numel() for parameter in net.parameters()) == 11_689_512


def test_loaded_weights_give_the_published_function(tmp_path):
    state = random_state_dict()
    torch.save(state, tmp_path / "resnet18.pth")
    net = ResNet18(1000, weights=tmp_path / "resnet18.pth").eval()
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(net(x), functional_resnet(state, x), rtol=1e-3, atol=1e-4)
    net.load_state_dict(state, strict=True)  # torchvision's own way


def test_the_last_layer_is_kept_for_other_classes(tmp_path):
    torch.save(random_state_dict(), tmp_path / "resnet18.pth")
    net = ResNet18(7, n_parents=2, weights=tmp_path / "resnet18.pth").eval()
    torch.testing.assert_close(net.conv1.weight, random_state_dict()["conv1.weight"])
    x, parents = torch.zeros(2, 3, 32, 32), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    with torch.no_grad():
        logits = net(x, parents)
        torch.testing.assert_close(logits[1] - logits[0], net.parents.weight[:, 1] - net.parents.weight[:, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("layer3.1.conv2.weight"), "layer3.1.conv2.weight is missing"),
        (lambda state: state.update({"conv1.weight": torch.zeros(64, 1, 7, 7)}), "conv1.weight does not fit"),
        (lambda state: state.update({"layer5.weight": torch.zeros(1)}), "layer5.weight does not fit"),
    ],
)
def test_other_files_are_refused(tmp_path, change, message):
    state = random_state_dict()
    change(state)
    torch.save(state, tmp_path / "other.pth")
    with pytest.raises(InputError, match=message):
        ResNet18(7, weights=tmp_path / "other.pth")


def test_the_papers_recipe_on_small_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    red, person = rng.integers(2, size=(2, 16))
    pixels = rng.integers(60, size=(16, 40, 48, 3), dtype=np.uint8)
    pixels[red == 1, ..., 0] += 180
    for i in range(16):
        image.fromarray(pixels[i]).save(tmp_path / f"{i}.png")
    torch.save(random_state_dict(), tmp_path / "resnet18.pth")
    X = pd.DataFrame({"path": [str(tmp_path / f"{i}.png") for i in range(16)]})
    Y = pd.DataFrame({"red": red, "person": person})
    net = DeepClassifier(
        ResNet18,
        module__weights=str(tmp_path / "resnet18.pth"),
        read=partial(read_image, size=32),
        mixup=0.2,
        max_epochs=1,
        batch_size=8,
    )
    model = BayesNetClassifier(
        TemperatureScaled(net), parametrisation="split", criterion="bic", max_parents=1, random_state=0
    ).fit(X, Y)
    assert np.isfinite(model.predict_joint(X).log_prob(Y)).all()


def test_images_are_cut_and_scaled_as_for_imagenet(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((100, 300, 3), dtype=np.uint8)
    pixels[:, 120:180] = (255, 0, 51)
    image.fromarray(pixels).save(tmp_path / "wide.png")
    found = read_image(tmp_path / "wide.png", size=56)
    assert found.shape == (3, 56, 56)
    assert found.dtype == np.float32
    # 300 x 100 becomes 192 x 64; the middle 56 columns hold the stripe of 38 from 9 on.
    np.testing.assert_allclose(
        found[:, 28, 28], (np.array([1, 0, 0.2]) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], rtol=1e-5
    )
    np.testing.assert_allclose(found[:, 28, 2], -np.array([0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225])


# -- errors --------------------------------------------------------------------------------------------------


class _NoParents(torch.nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.n_classes = n_classes
        self.layer = torch.nn.Linear(24, n_classes)

    def forward(self, x):
        return self.layer(x.flatten(1))


def test_clear_errors(bars, table):
    images, Y = bars
    X, y = images.reshape(200, -1), Y["coin"].to_numpy()
    with pytest.raises(InputError, match="_NoParents has no argument n_parents"):
        ChainClassifier(DeepClassifier(_NoParents, image_shape=(1, 4, 6))).fit(X, Y)
    with pytest.raises(InputError, match="too few for images of shape"):
        small(image_shape=(3, 8, 8)).fit(X, y)
    with pytest.raises(InputError, match="images go in as"):
        small(image_shape=(1, 4, 6)).fit(images, y)
    with pytest.raises(InputError, match="pass one of them"):
        small(image_shape=(1, 4, 6), read=np.load).fit(X, y)
    with pytest.raises(InputError, match=r"classes 0, 1, \.\.\. without gaps"):
        small(image_shape=(1, 4, 6)).fit(X, 2 * y)
    with pytest.raises(InputError, match="mixup must be a number of at least 0; found -1"):
        small(image_shape=(1, 4, 6), mixup=-1).fit(X, y)
    with pytest.raises(InputError, match="must have 24 columns"):
        small(image_shape=(1, 4, 6), max_epochs=1).fit(X, y).predict_proba(X[:, :23])

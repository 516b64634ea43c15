"""The page about a model: every model has one, it stands alone, and its numbers are those of the metrics."""

import re
import sys
import warnings
from functools import cache
from html.parser import HTMLParser
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import tuplet.models
from tuplet import load_model
from tuplet.core.exceptions import InputError, MissingDependencyError, TupletError, TupletWarning
from tuplet.metrics import (
    exact_match,
    hamming_score,
    joint_log_loss,
    marginal_log_loss,
    ranked_probability_score,
)
from tuplet.models import (
    AutoJointClassifier,
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    GenerativeBayesNetClassifier,
    IndependentClassifier,
    InstanceLogisticClassifier,
    JointClassifier,
    JointStackingClassifier,
    MixtureClassifier,
    NeighborClassifier,
    OutputCodingClassifier,
    PowersetClassifier,
    PriorClassifier,
    ProbitClassifier,
    ProbitForestClassifier,
    RandomFieldClassifier,
    RuleStackingClassifier,
    SharedForestClassifier,
    StackedFeaturesClassifier,
    TreeClassifier,
    TreeEnsembleClassifier,
    TreeMixtureClassifier,
    WeightedStackingClassifier,
)
from tuplet.prediction.truth import read_truth
from tuplet.space import ClassSpace, declare_order
from tuplet.surface.report import page
from tuplet.surface.report.pieces import in_time
from tuplet.surface.report.predictions import _given
from tuplet.surface.report.scores import _coverage

mpl.use("Agg")

QUIET = {"progress": False}
DRAWS = {"n_draws": 20, "n_burn": 20, "n_chains": 1, "random_state": 0, **QUIET}
MODELS = {
    "auto": AutoJointClassifier(0.5, random_state=0, **QUIET),
    "bayesnet": BayesNetClassifier(**QUIET),
    "chain": ChainClassifier(n_chains=2, random_state=0),
    "decision": DecisionClassifier(TreeClassifier(), loss="f1"),
    "generative": GenerativeBayesNetClassifier(random_state=0),
    "independent": IndependentClassifier(),
    "instance": InstanceLogisticClassifier(),
    "stacking": JointStackingClassifier([TreeClassifier(), PowersetClassifier()], cv=2, **QUIET),
    "mixture": MixtureClassifier(PowersetClassifier(), n_components=2, max_iter=2, random_state=0, **QUIET),
    "neighbors": NeighborClassifier(),
    "coding": OutputCodingClassifier(),
    "powerset": PowersetClassifier(),
    "prior": PriorClassifier(),
    "probit": ProbitClassifier(**DRAWS),
    "forest": ProbitForestClassifier(**DRAWS),
    "field": RandomFieldClassifier(),
    "rules": RuleStackingClassifier(rules=["a -> c"], max_rules=1, n_folds=2, random_state=0, **QUIET),
    "shared": SharedForestClassifier(random_state=0),
    "features": StackedFeaturesClassifier(n_folds=2),
    "tree": TreeClassifier(),
    "ensemble": TreeEnsembleClassifier(n_trees=2, random_state=0),
    "trees": TreeMixtureClassifier(max_trees=2, random_state=0, **QUIET),
    "weighted": WeightedStackingClassifier(n_folds=2),
}
HOSTILE = "<script>alert('b')</script> & \"b\""


def rows(n=48, m=3, seed=0):
    """Features with a gap, and labels of which some depend on each other; names as they should not be."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x", "<i>y</i>", "$z"])
    latent = X.to_numpy() @ rng.normal(size=(3, m)) + rng.normal(size=(n, m)) + rng.normal(size=(n, 1))
    names = ["a", HOSTILE, "c", *(f"label {j}" for j in range(3, m))][:m]
    return X, pd.DataFrame((latent > 0).astype(int), columns=names)


@cache
def fitted(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TupletWarning)
        return MODELS[name].fit(*rows())


def page_of(model, tmp_path, *args, **options):
    path = tmp_path / "page.html"
    model.report(path, *args, **options)
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    return path.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Reads headings and tables, and notices what is not closed or comes from elsewhere."""

    VOID = ("meta", "br", "link", "img", "input")

    def __init__(self, page):
        super().__init__()
        self.open, self.headings, self.cells, self.foreign = [], [], {}, []
        self._row, self._text = [], None
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.foreign += [
            values[key] for key in ("src", "href") if re.match(r"\w+:/|//", values.get(key) or "")
        ]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "th", "td"):
            self._text = values.get("data-value", "")
            self._shown = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("h1", "h2"):
            self.headings.append(self._shown.strip())
        elif tag in ("th", "td"):
            self._row.append(self._text or self._shown.strip())
        elif tag == "tr" and self._row:
            self.cells.setdefault(self._row[0], self._row[1:])
            self._row = []

    def handle_data(self, data):
        if self._text is not None:
            self._shown += data


@pytest.fixture
def unrendered(monkeypatch):
    """Pictures are drawn but not written out, which takes most of the time."""
    monkeypatch.setattr("tuplet.surface.pages.page.inline_svg", lambda figure, prefix, label: "<svg></svg>")
    monkeypatch.setattr("tuplet.surface.plots.calibration.apply_layout", lambda ax: None)


# -- every model -------------------------------------------------------------------------------------------


def test_every_model_is_tried():
    models = (getattr(tuplet.models, name) for name in tuplet.models.__all__)
    classifiers = {
        m
        for m in models
        if isinstance(m, type) and (issubclass(m, JointClassifier) or m is DecisionClassifier)
    }
    assert {type(model) for model in MODELS.values()} == classifiers - {JointClassifier}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_a_page(name, tmp_path, unrendered):
    X, Y = rows()
    model = fitted(name)
    gaps = Y.astype("Int64")
    gaps.iloc[::7, 1] = pd.NA
    gaps.iloc[3] = pd.NA
    page = page_of(model, tmp_path, X[:20], gaps[:20], n_examples=1)
    reader = Reader(page)
    assert "Not available" not in page
    assert "<script>alert" not in page
    assert not reader.foreign
    wanted = ["Data", "Scores", "Reliability", "Dependence", "Examples", "Most surprising rows", "Model"]
    assert [heading for heading in reader.headings if heading in wanted] == wanted
    assert plt.get_fignums() == []
    bare = Reader(page_of(model, tmp_path))
    assert "Model" in bare.headings
    assert "Scores" not in bare.headings
    parts = set(reader.headings) - set(bare.headings)
    assert parts <= {"Features", *wanted}  # what the model is made of is on both


@pytest.mark.parametrize(
    ("name", "heading", "words"),
    [
        ("bayesnet", "Graph", ["<svg"]),
        ("tree", "Graph", ["Edges", "held-out log-likelihood"]),
        ("generative", "Graph", ["3 classes, 3 features"]),
        ("rules", "Rules", ["a -&gt; c", "How many rules it took"]),
        ("trees", "Trees", ["How many trees it took", "Tree of weight"]),
        ("probit", "Correlations", ["95 % credible intervals"]),
        ("stacking", "Mixture", ["Held-out joint log-likelihood of the mixture"]),
        ("auto", "Mixture", ["No time to compare models", "quick chain of logistic (1.00)"]),
        ("field", "Edges", ["drawn together"]),
        ("chain", "Chains", ["Orders of the chains"]),
        ("prior", "Combinations", ["share of training rows"]),
    ],
)
def test_models_tell_what_they_are_made_of(name, heading, words, tmp_path, unrendered):
    page = page_of(fitted(name), tmp_path)
    assert heading in Reader(page).headings
    for word in words:
        assert word in page


# -- numbers -----------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_metrics(tmp_path, unrendered):
    X, Y = rows(80)
    model = TreeClassifier().fit(X[:50], Y[:50])
    baseline = PriorClassifier("marginals").fit(X[:50], Y[:50])
    X, Y = X[50:], Y[50:]
    cells = Reader(page_of(model, tmp_path, X, Y, loss="f1")).cells
    prediction = model.predict_joint(X)
    expected = {
        "exact match of the most probable combination": exact_match(Y, model.predict(X, loss="subset")),
        "share of labels that are right (Hamming score)": hamming_score(Y, model.predict(X)),
        "joint log-likelihood per row": -joint_log_loss(Y, prediction),
        "log-loss per label": marginal_log_loss(Y, prediction),
    }
    for name, value in expected.items():
        assert float(cells[name][0]) == pytest.approx(value)
    expected = {
        "exact match of the most probable combination": exact_match(Y, baseline.predict(X, loss="subset")),
        "share of labels that are right (Hamming score)": hamming_score(Y, baseline.predict(X)),
        "joint log-likelihood per row": -joint_log_loss(Y, baseline.predict_joint(X)),
    }
    for name, value in expected.items():
        assert float(cells[name][1]) == pytest.approx(value)
    assert any("f1" in name for name in cells)
    right = (model.predict(X)["a"] == Y["a"]).mean()
    assert float(cells["a"][0]) == pytest.approx(right)


def test_ordered_variables_have_a_score_of_their_own(tmp_path, unrendered):
    X, Y = rows(60)
    staged = declare_order(Y[["a"]].assign(stage=np.arange(60) % 3), ["stage"])
    model = IndependentClassifier().fit(X, staged)
    written = page_of(model, tmp_path, X, staged)
    cells = Reader(written).cells
    score = ranked_probability_score(staged, model.predict_joint(X))
    assert float(cells["ranked probability score per label"][0]) == pytest.approx(score)
    assert re.search(r"<th[^>]*>(<[^>]*>)*ordered<", written)


def test_surprising_rows_are_those_of_least_probability(tmp_path, unrendered):
    X, Y = rows(60)
    X.index = Y.index = [f"row {i}" for i in range(60)]
    model = ChainClassifier().fit(X, Y)
    page = page_of(model, tmp_path, X, Y, n_examples=3)
    worst = X.index[np.argsort(model.predict_joint(X).log_prob(Y))[:3]]
    section = page[page.index("Most surprising rows</h2>") :]
    assert re.findall(r"<span>(row \d+)</span>", section)[:3] == list(worst)


def test_scores_of_as_many_rows_as_in_training_come_with_a_warning(tmp_path, unrendered):
    X, Y = rows()
    model = IndependentClassifier().fit(X, Y)
    assert "these scores are too high" in page_of(model, tmp_path, X, Y)
    assert "these scores are too high" not in page_of(model, tmp_path, X[:9], Y[:9])


# -- kinds of rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "sparse", "polars", "lists"])
def test_rows_may_come_in_any_container(kind, tmp_path, unrendered):
    X, Y = rows()
    make = {
        "array": np.asarray,
        "sparse": lambda each: sparse.csr_array(each.to_numpy()),
        "polars": lambda each: pl.DataFrame({str(name): each[name].to_numpy() for name in each}),
        "lists": lambda each: each.to_numpy().tolist(),
    }[kind]
    model = IndependentClassifier().fit(make(X), make(Y))
    page = page_of(model, tmp_path, make(X), make(Y), n_examples=1)
    assert "Not available" not in page
    assert Reader(page).cells["rows"] == ["48"]


def test_mixed_features_are_told_by_kind(tmp_path, unrendered):
    X, Y = rows()
    X = X.assign(
        town=["<b>Rome</b>", "Oslo", None] * 16, level=pd.Categorical(["lo", "hi"] * 24, ordered=True)
    )
    page = page_of(ChainClassifier().fit(X, Y), tmp_path, X)
    cells = Reader(page).cells
    assert cells["features"] == ["5 (3 numeric, 1 text, 1 ordered)"]
    assert cells["missing values"] == ["16 (6.7%), in 1 features"]
    assert cells["town"] == ["text", "16.0", "<b>Rome</b> (16), Oslo (16)"]
    assert "Scores" not in Reader(page).headings


def test_one_class_variable_is_enough(tmp_path, unrendered):
    X, Y = rows(m=1)
    for model in (IndependentClassifier(), TreeClassifier(), PowersetClassifier()):
        page = page_of(model.fit(X, Y["a"]), tmp_path, X, Y["a"], n_examples=2)
        assert "Not available" not in page
        assert "Dependence" not in Reader(page).headings


def test_fifty_class_variables_have_a_page_of_reasonable_size(tmp_path):
    X, Y = rows(90, m=50)
    model = TreeClassifier(C=1.0, C_shift=1.0).fit(X[:60], Y[:60])
    page = page_of(model, tmp_path, X[60:], Y[60:], n_examples=1)
    reader = Reader(page)
    assert "Not available" not in page
    assert all(f"label {j}" in reader.cells for j in range(3, 50))
    assert page.count("<svg") >= 5
    assert len(page) < 2e6


def test_of_very_many_class_variables_the_most_dependent_are_mapped(tmp_path, monkeypatch, unrendered):
    monkeypatch.setattr("tuplet.surface.report.predictions._VARIABLES", 4)
    X, Y = rows(60, m=6)
    page = page_of(IndependentClassifier().fit(X, Y), tmp_path, X, Y, n_examples=0)
    assert "4 of 6 class variables, the most dependent" in page
    bare = page_of(IndependentClassifier().fit(X, Y), tmp_path, X, n_examples=0)
    assert "Dependence" not in Reader(bare).headings


def test_two_to_the_thousands_of_combinations_have_a_number():
    space = ClassSpace(tuple(f"y{j}" for j in range(2000)), ([0, 1],) * 2000)
    said = page._summary(SimpleNamespace(space_=space, n_features_in_=3))
    assert "about 10^602 combinations" in said


def test_slow_work_ends_in_time_and_fast_work_does_all_rows():
    rows = np.arange(100)
    parts = [part for _, part in in_time(rows, lambda part: part)]
    assert sorted(np.concatenate(parts)) == rows.tolist()
    assert [size for size, _ in in_time(rows, len, seconds=1e-9)] == [16]


def test_curves_of_parts_are_the_curve_of_all(tmp_path, monkeypatch, unrendered):
    X, Y = rows(60)
    prediction = TreeClassifier().fit(X, Y).predict_joint(X)
    truth = read_truth(Y, prediction.space, 60, None)
    pd.testing.assert_frame_equal(_coverage(prediction, truth), prediction.coverage(Y, 20), check_dtype=False)
    n, given = _given(prediction)
    assert n == 60
    np.testing.assert_allclose(given, prediction.dependence())


def test_labels_that_training_lacks_are_never_right_and_no_error(tmp_path, unrendered):
    X, Y = rows()
    Y = Y.replace({0: "no", 1: "yes"})
    model = IndependentClassifier().fit(X, Y)
    Y.iloc[0, 0] = "perhaps"
    cells = Reader(page_of(model, tmp_path, X[:10], Y[:10])).cells
    right = (model.predict(X[:10])["a"] == Y["a"][:10]).mean()
    assert float(cells["a"][0]) == pytest.approx(right)


def test_labels_may_all_be_missing(tmp_path, unrendered):
    X, Y = rows()
    model = IndependentClassifier().fit(X, Y)
    page = page_of(model, tmp_path, X, Y.astype("Int64").where(Y.isna()))
    assert "Not available" not in page


# -- the file ----------------------------------------------------------------------------------------------


def test_the_same_model_gives_the_same_page_also_from_a_file(tmp_path):
    X, Y = rows()
    model = TreeClassifier(C=1.0, C_shift=1.0).fit(X, Y)
    (tmp_path / "pages").mkdir()
    first = page_of(model, tmp_path / "pages")
    model.save(tmp_path / "model.tuplet")
    assert "<svg" in first
    assert page_of(load_model(tmp_path / "model.tuplet"), tmp_path / "pages") == first


def test_a_page_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    model = IndependentClassifier().fit(*rows())
    path = tmp_path / "page.html"
    path.write_text("old")
    monkeypatch.setattr("tuplet.surface.report.page.html_page", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.report(path)
    assert path.read_text() == "old"
    monkeypatch.undo()
    with pytest.raises(InputError, match="cannot be written"):
        model.report(tmp_path / "nowhere" / "page.html")


def test_what_a_model_cannot_answer_is_said_on_the_page(tmp_path, monkeypatch, unrendered):
    X, Y = rows()
    model = IndependentClassifier().fit(X, Y)

    def refuse(*args):
        raise TupletError("too many <combinations>")

    monkeypatch.setattr("tuplet.surface.report.page.example_section", refuse)
    page = page_of(model, tmp_path, X, Y)
    assert "Not available for this model: too many &lt;combinations&gt;" in page
    assert "Scores" in Reader(page).headings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"Y": [[0, 0, 0]]}, "labels Y come with features X"),
        ({"n_examples": -1}, "n_examples must be a whole number"),
        ({"loss": "nonsense"}, "nonsense"),
    ],
)
def test_mistakes_are_said_before_any_work(options, message, tmp_path):
    model = IndependentClassifier().fit(*rows())
    with pytest.raises(TupletError, match=message):
        model.report(tmp_path / "page.html", **options)
    assert not list(tmp_path.iterdir())


def test_a_model_must_be_fitted_and_pictures_need_matplotlib(tmp_path, monkeypatch):
    with pytest.raises(NotFittedError):
        IndependentClassifier().report(tmp_path / "page.html")
    model = IndependentClassifier().fit(*rows())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match="matplotlib"):
        model.report(tmp_path / "page.html")


def test_titles_and_no_examples(tmp_path, unrendered):
    X, Y = rows()
    page = page_of(IndependentClassifier().fit(X, Y), tmp_path, X, Y, title="<My> model", n_examples=0)
    reader = Reader(page)
    assert reader.headings[0] == "<My> model"
    assert "Examples" not in reader.headings

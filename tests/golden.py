"""Compare the predictions of all public models between two versions of the package.

    python tests/golden.py record FILE.npz          record the predictions of the `tuplet` that is importable
    python tests/golden.py compare OLD.npz NEW.npz  print the differences; the exit code is 1 if there are any
    python tests/golden.py against REVISION         record a revision of git and this tree, and compare them

`make golden BASE=REVISION` runs the last one. After FILE.npz or REVISION, words select the entries whose
names contain one of them. Models are fitted to small parts of the penguins and of the benchmark sets in the
folder TUPLET_DATA, with fixed seeds, one BLAS thread and one job. Both versions have to be recorded on the
same machine. Modes and decisions have to be equal unless both are equally good.

An entry whose model cannot be constructed (the class, option or value does not exist) or whose data set is
not available is skipped and listed. An entry that fails later is an error: if an option is removed on
purpose and only `fit` refuses it, remove the entry here. Only public names are imported, so that this file
runs with versions whose modules are arranged differently.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import tuplet

TOLERANCE = 1e-9
"""Largest absolute difference between numbers that are equal."""

TIE = 1e-12
"""Two outcomes whose probabilities or risks differ by at most this are equally good."""

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class NotAvailableError(Exception):
    """A model, an option or a data set does not exist here."""


def public(*addresses):
    """Return the first public module that exists: addresses differ between versions."""
    for address in addresses:
        try:
            return import_module(address)
        except ModuleNotFoundError:
            continue
    raise NotAvailableError(f"none of {', '.join(addresses)}")


def belief_propagation():
    return public("tuplet.inference", "tuplet.joint.inference").BeliefPropagation()


def report(*parts, sep=" "):
    print(*parts, sep=sep, flush=True)  # noqa: T201


# -- data ---------------------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Training rows and test rows of a data set."""

    X: Any
    Y: Any
    X_new: Any
    Y_new: Any
    weights: Any = None


def split(X, Y, n_train, n_test):
    order = np.random.default_rng(0).permutation(len(Y))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return Rows(X.iloc[train], Y.iloc[train], X.iloc[test], Y.iloc[test])


def penguins():
    X, Y = tuplet.load_penguins(return_X_y=True)
    complete = X.notna().all(axis=1) & Y.notna().all(axis=1)
    return split(X[complete], Y[complete], 120, 30)


def gaps():
    """Return penguins with text and boolean columns, missing features and labels, and weights."""
    X, Y = tuplet.load_penguins(return_X_y=True)
    rng = np.random.default_rng(1)
    X = X.assign(island=Y["island"], recent=X["year"] > 2007).drop(columns="year")
    X.loc[rng.random(len(X)) < 0.1, "bill_depth_mm"] = np.nan
    labels = pd.DataFrame({"species": Y["species"], "sex": Y["sex"], "heavy": X.pop("body_mass_g") > 4000})
    rows = split(X, labels.astype(object).mask(rng.random(labels.shape) < 0.1), 130, 30)
    return rows._replace(weights=rng.uniform(0.5, 2.0, len(rows.Y)))


def benchmark_set(name, n_features, n_labels, n_train, n_test):
    path = Path(os.environ.get("TUPLET_DATA", "")) / f"{name}.parquet"
    if not path.is_file():
        raise NotAvailableError(f"TUPLET_DATA has no {name}.parquet")
    table = pd.read_parquet(path)
    table = table[[column for column in table if not column.startswith("__")]]
    n_targets = {"emotions": 6, "flags": 7, "jura_mdc": 2}[name]
    X, Y = table.iloc[:, :-n_targets], table.iloc[:, -n_targets:]
    return split(X.iloc[:, :n_features], Y.iloc[:, :n_labels], n_train, n_test)


def emotions():
    return benchmark_set("emotions", 24, 5, 120, 30)


def weighted():
    rows = emotions()
    return rows._replace(weights=np.random.default_rng(2).integers(0, 3, len(rows.Y)).astype(float))


def sparse():
    """Return emotions with sparse features: the values above the 70th percentile."""
    rows = emotions()
    X, X_new = rows.X.to_numpy(), rows.X_new.to_numpy()
    limits = np.quantile(X, 0.7, axis=0)
    kept = [csr_array(np.where(each > limits, each, 0.0)) for each in (X, X_new)]
    return rows._replace(X=kept[0], X_new=kept[1])


def flags():
    return benchmark_set("flags", 19, 5, 120, 30)


def jura():
    return benchmark_set("jura_mdc", 9, 2, 120, 30)


SETS = {each.__name__: each for each in (penguins, gaps, emotions, weighted, sparse, flags, jura)}


@cache
def rows_of(name):
    return SETS[name]()


# -- models -------------------------------------------------------------------------------------------------

FOREST = RandomForestClassifier(10, max_depth=5, random_state=0)
LDA = LinearDiscriminantAnalysis()
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
DRAWS = {"n_burn": 30, "n_draws": 20, "thin": 1, "n_chains": 1}
EDGES = (("species", "island"),)

GENERAL = {
    "prior": lambda: tuplet.PriorClassifier(),
    "independent": lambda: tuplet.IndependentClassifier(),
    "powerset": lambda: tuplet.PowersetClassifier(),
    "chain": lambda: tuplet.ChainClassifier(),
    "chains": lambda: tuplet.ChainClassifier(n_chains=3),
    "greedy chain": lambda: tuplet.ChainClassifier(inference="greedy"),
    "Bayes net": lambda: tuplet.BayesNetClassifier(),
    "generative": lambda: tuplet.GenerativeBayesNetClassifier(),
    "neighbors": lambda: tuplet.NeighborClassifier(),
    "instance logistic": lambda: tuplet.InstanceLogisticClassifier(n_neighbors=5),
    "shared forest": lambda: tuplet.SharedForestClassifier(RandomForestClassifier(10)),
    "stacked features": lambda: tuplet.StackedFeaturesClassifier(n_folds=3),
    "weighted stacking": lambda: tuplet.WeightedStackingClassifier(n_folds=3),
    "random field": lambda: tuplet.RandomFieldClassifier(),
    "tree": lambda: tuplet.TreeClassifier(),
    "tree ensemble": lambda: tuplet.TreeEnsembleClassifier(n_trees=3),
    "tree mixture": lambda: tuplet.TreeMixtureClassifier(max_trees=3, max_iter=8),
    "mixture": lambda: tuplet.MixtureClassifier(n_components=2, max_iter=4),
    "stacking": lambda: tuplet.JointStackingClassifier(
        [tuplet.IndependentClassifier(), tuplet.PowersetClassifier(), tuplet.PriorClassifier()], cv=3
    ),
    "rule stacking": lambda: tuplet.RuleStackingClassifier(max_rules=3, n_folds=3),
    "auto": lambda: tuplet.AutoJointClassifier(
        1e6, models=[tuplet.IndependentClassifier(), tuplet.ChainClassifier()], cv=3
    ),
}
"""Models of labels of any kind, for most data sets."""

BINARY = {
    "output coding": lambda: tuplet.OutputCodingClassifier(),
    "probit": lambda: tuplet.ProbitClassifier(**DRAWS),
    "probit forest": lambda: tuplet.ProbitForestClassifier(5, **DRAWS),
}
"""Models of binary labels."""


def bayes_net(*args, **options):
    return lambda: tuplet.BayesNetClassifier(*args, **options)


def generative(*args, **options):
    return lambda: tuplet.GenerativeBayesNetClassifier(*args, **options)


def chain(*args, **options):
    return lambda: tuplet.ChainClassifier(*args, **options)


def tree(*args, **options):
    return lambda: tuplet.TreeClassifier(*args, **options)


def tree_mixture(*args, **options):
    return lambda: tuplet.TreeMixtureClassifier(*args, **({"n_trees": 3, "max_iter": 5} | options))


def field(*args, **options):
    return lambda: tuplet.RandomFieldClassifier(*args, **options)


def rules(*args, **options):
    return lambda: tuplet.RuleStackingClassifier(*args, **({"n_folds": 3, "max_rules": 3} | options))


def probit(**options):
    return lambda: tuplet.ProbitClassifier(**(DRAWS | options))


def probit_forest(**options):
    return lambda: tuplet.ProbitForestClassifier(5, **(DRAWS | options))


SPECIES_RULES = (
    "species == Gentoo -> island == Biscoe",
    "species == Chinstrap -> island == Dream",
)

VARIANTS = {
    "prior of marginals": ("penguins", lambda: tuplet.PriorClassifier("marginals")),
    # estimators
    "independent LDA": ("penguins", lambda: tuplet.IndependentClassifier(LDA)),
    "independent pipeline": ("emotions", lambda: tuplet.IndependentClassifier(SCALED)),
    "independent forest": ("emotions", lambda: tuplet.IndependentClassifier(FOREST)),
    "independent tree": (
        "jura",
        lambda: tuplet.IndependentClassifier(DecisionTreeClassifier(random_state=0)),
    ),
    "independent neighbors": ("jura", lambda: tuplet.IndependentClassifier(KNeighborsClassifier())),
    "independent naive Bayes": ("gaps", lambda: tuplet.IndependentClassifier(tuplet.MixedNaiveBayes())),
    "independent temperature": (
        "emotions",
        lambda: tuplet.IndependentClassifier(tuplet.TemperatureScaled(GaussianNB(), random_state=0)),
    ),
    "independent by name": (
        "penguins",
        lambda: tuplet.IndependentClassifier({"species": GaussianNB(), "sex": FOREST}),
    ),
    "powerset without smoothing": ("penguins", lambda: tuplet.PowersetClassifier(GaussianNB(), smoothing=0)),
    "powerset with smoothing": ("emotions", lambda: tuplet.PowersetClassifier(FOREST, smoothing=0.1)),
    # chains
    "chain forest": ("emotions", chain(FOREST)),
    "chain naive Bayes": ("gaps", chain(GaussianNB())),
    "chain order": ("penguins", chain(order=["sex", "island", "species"])),
    "chain random order": ("emotions", chain(order="random")),
    "chain enumerated": ("emotions", lambda: chain(engine=tuplet.joint.Enumerate())()),
    "chain by Monte Carlo": ("emotions", lambda: chain(engine=tuplet.joint.MonteCarlo(200, 0))()),
    "chains of LDA": ("jura", chain(LDA, n_chains=2)),
    "greedy chains": ("emotions", chain(n_chains=3, inference="greedy")),
    # Bayes nets
    "Bayes net split": ("emotions", bayes_net(parametrisation="split")),
    "Bayes net inputs": ("emotions", bayes_net(parametrisation="inputs")),
    "Bayes net one parent": ("jura", bayes_net(max_parents=1, parametrisation="split")),
    "Bayes net aic": ("emotions", bayes_net(criterion="aic")),
    "Bayes net aic-true": ("penguins", bayes_net(criterion="aic-true")),
    "Bayes net bic-true": ("penguins", bayes_net(criterion="bic-true")),
    "Bayes net cv": ("penguins", bayes_net(criterion="cv")),
    "Bayes net cv split": ("emotions", bayes_net(criterion="cv", parametrisation="split", max_parents=2)),
    "Bayes net LDA": ("penguins", bayes_net(LDA)),
    "Bayes net forest": ("penguins", bayes_net(RandomForestClassifier(5, random_state=0), max_parents=1)),
    "Bayes net naive Bayes": ("penguins", bayes_net(GaussianNB(), shortlist=None)),
    "Bayes net mixed naive Bayes": ("gaps", lambda: bayes_net(tuplet.MixedNaiveBayes())()),
    "Bayes net shortlist": ("emotions", bayes_net(shortlist=3)),
    "Bayes net as inputs": ("flags", bayes_net(discrete_as="inputs")),
    "Bayes net as parents": ("flags", bayes_net(discrete_as="parents", max_feature_parents=2)),
    "Bayes net as both": ("flags", bayes_net(discrete_as="both", max_parents=2, max_feature_parents=1)),
    "Bayes net discrete features": ("penguins", bayes_net(discrete_features=["year"])),
    "Bayes net edges": (
        "penguins",
        bayes_net(required=EDGES, forbidden=[("sex", "species"), ("species", "sex")]),
    ),
    "Bayes net exact": ("emotions", bayes_net(method="exact")),
    "Bayes net integer": ("emotions", bayes_net(method="integer")),
    "Bayes net order": ("emotions", bayes_net(method="order")),
    "Bayes net width": ("emotions", bayes_net(criterion="aic", max_width=1)),
    "Bayes net propagation": (
        "emotions",
        lambda: bayes_net(criterion="aic", engine=belief_propagation())(),
    ),
    # generative Bayes nets
    "generative trees": ("emotions", generative("tree-tree")),
    "generative trees of flags": ("flags", generative("tree-tree")),
    "generative polytrees": ("emotions", generative("polytree-polytree")),
    "generative polytrees of flags": ("flags", generative("polytree-polytree")),
    "generative pure filter": ("flags", generative("pure-filter", max_parents=3)),
    "generative small width": ("flags", generative("small-tw")),
    "generative small": ("flags", generative("small-tw", max_width=2)),
    "generative swaps": ("flags", generative(moves="swaps", n_starts=2)),
    "generative width": ("flags", generative(max_width=2, max_component=3)),
    "generative aic": ("penguins", generative(criterion="aic", n_bins=3)),
    "generative k2": ("penguins", generative(criterion="k2", smoothing=0.5)),
    "generative bdeu": ("penguins", generative(criterion="bdeu")),
    "generative trees with gaps": ("gaps", generative("tree-tree")),
    "generative small with gaps": ("gaps", generative("small-tw")),
    "generative propagation": (
        "flags",
        lambda: generative("tree-tree", engine=belief_propagation())(),
    ),
    # trees
    "tree inputs": ("emotions", tree(parametrisation="inputs")),
    "tree random": ("emotions", tree(structure="random")),
    "tree given": ("penguins", tree(structure=[("species", "island"), ("species", "sex")])),
    "tree edges": ("penguins", tree(required=EDGES, forbidden=[("species", "sex")])),
    "tree of fixed C": ("emotions", tree(C=0.1, C_shift=0.1, screening=None)),
    "tree screened": ("emotions", tree(screening=2.0)),
    "tree of LDA": ("penguins", tree(LDA)),
    "tree of LDA inputs": ("emotions", tree(LDA, parametrisation="inputs")),
    "tree of forests": ("emotions", tree(RandomForestClassifier(5, random_state=0))),
    "tree of naive Bayes": ("gaps", lambda: tree(tuplet.MixedNaiveBayes())()),
    "tree ensemble LDA": ("emotions", lambda: tuplet.TreeEnsembleClassifier(LDA, n_trees=3)),
    "tree ensemble inputs": (
        "penguins",
        lambda: tuplet.TreeEnsembleClassifier(n_trees=3, parametrisation="inputs"),
    ),
    "tree mixture of three": ("emotions", tree_mixture()),
    "tree mixture inputs": ("emotions", tree_mixture(parametrisation="inputs", C=0.1, C_shift=0.1)),
    "tree mixture annealing": ("emotions", tree_mixture(map_inference="annealing")),
    "tree mixture naive Bayes": ("penguins", tree_mixture(GaussianNB(), n_trees=2)),
    "tree mixture edges": ("penguins", tree_mixture(required=EDGES, forbidden=[("species", "sex")])),
    "mixture of independent": (
        "emotions",
        lambda: tuplet.MixtureClassifier(tuplet.IndependentClassifier(), n_components=3, max_iter=5),
    ),
    "mixture of powersets": (
        "penguins",
        lambda: tuplet.MixtureClassifier(tuplet.PowersetClassifier(GaussianNB()), max_components=3),
    ),
    "mixture annealing": (
        "emotions",
        lambda: tuplet.MixtureClassifier(n_components=2, max_iter=3, map_inference="annealing"),
    ),
    # rules
    "given rules": ("penguins", rules(GaussianNB(), SPECIES_RULES, n_rules=0)),
    "rules with probabilities": (
        "penguins",
        lambda: rules(
            rules=[tuplet.Rule(SPECIES_RULES[0], 0.9), tuplet.Rule(SPECIES_RULES[1], "learn")], n_rules=1
        )(),
    ),
    "noisy or": (
        "penguins",
        lambda: rules(
            GaussianNB(),
            [
                tuplet.NoisyOr({"species": {"Gentoo": 0.2, "Adelie": 0.7}, "island": {"Dream": 0.4}}, 0.9),
                SPECIES_RULES[1],
            ],
            n_rules=0,
        )(),
    ),
    "rules of the paper": ("emotions", rules(learner="paper", n_rules=2)),
    "two rules": ("emotions", rules(FOREST, n_rules=2, max_scope=3)),
    "rules after Platt": ("emotions", rules(GaussianNB(), calibration="platt")),
    "rules after isotonic": ("emotions", rules(GaussianNB(), calibration="isotonic")),
    "rules after temperature": ("jura", rules(GaussianNB(), calibration="temperature")),
    "rules after Dirichlet": ("jura", rules(GaussianNB(), calibration="dirichlet")),
    "rules over a chain": ("emotions", lambda: rules(tuplet.ChainClassifier(), n_rules=1)()),
    "rules over one forest": ("emotions", rules(FOREST, multi_output=True)),
    "rules over some": (
        "penguins",
        rules(
            {"species": (GaussianNB(), ["bill_length_mm", "bill_depth_mm"]), "sex": "default"},
            SPECIES_RULES,
            priors={"island": [0.5, 0.3, 0.2]},
            n_rules=0,
        ),
    ),
    # probit
    "probit metropolis": ("emotions", probit(correlation="metropolis")),
    "probit factors": ("emotions", probit(correlation="factors", n_factors=2)),
    "probit identity": ("emotions", probit(correlation="identity")),
    "probit inverse Wishart": ("emotions", probit(prior="inverse-wishart", thin=2)),
    "probit chains": ("emotions", probit(n_chains=2, eta=2.0)),
    "probit predictors": ("emotions", probit(predictors=StandardScaler())),
    "probit forest factors": ("emotions", probit_forest(correlation="factors", n_factors=2)),
    "probit forest metropolis": ("emotions", probit_forest(correlation="metropolis")),
    "probit forest fixed": ("emotions", probit_forest(shrinkage=2.0, select_features=False)),
    "probit forest shallow": ("flags", probit_forest(alpha=0.8, beta=3.0)),
    # other models
    "random field tree": ("emotions", field("tree")),
    "random field edges": ("penguins", field(EDGES, C=0.1)),
    "random field linear": ("emotions", field("tree", pairwise="linear", likelihood="exact")),
    "random field pseudo": ("emotions", field(likelihood="pseudo")),
    "random field pseudo linear": ("jura", field(pairwise="linear", likelihood="pseudo")),
    "random field few edges": ("emotions", field(2)),
    "random field propagation": (
        "emotions",
        lambda: field(engine=belief_propagation())(),
    ),
    "output coding of two": (
        "emotions",
        lambda: tuplet.OutputCodingClassifier(LDA, n_codes=2, label_weight=0.5),
    ),
    "output coding without labels": ("flags", lambda: tuplet.OutputCodingClassifier(label_weight=0.0, C=0.1)),
    "neighbors unscaled": (
        "jura",
        lambda: tuplet.NeighborClassifier(5, smoothing=0.5, standardize=False),
    ),
    "instance logistic with features": (
        "penguins",
        lambda: tuplet.InstanceLogisticClassifier(use_features=True, standardize=False),
    ),
    "instance logistic LDA": ("emotions", lambda: tuplet.InstanceLogisticClassifier(LDA)),
    "shared extra trees": (
        "emotions",
        lambda: tuplet.SharedForestClassifier(RandomForestClassifier(8, max_depth=4, random_state=1)),
    ),
    "stacked features LDA": ("emotions", lambda: tuplet.StackedFeaturesClassifier(LDA, n_folds=3)),
    "stacked features forest": ("jura", lambda: tuplet.StackedFeaturesClassifier(FOREST, n_folds=2)),
    "weighted stacking LDA": (
        "emotions",
        lambda: tuplet.WeightedStackingClassifier(LDA, n_folds=3, correlation=0.01, sparsity=0.01),
    ),
    "gate": (
        "emotions",
        lambda: tuplet.JointStackingClassifier(
            [tuplet.IndependentClassifier(), tuplet.PowersetClassifier()], cv=3, gate=True
        ),
    ),
    "gate of any labels": (
        "jura",
        lambda: tuplet.JointStackingClassifier(
            [tuplet.ChainClassifier(), tuplet.PowersetClassifier(GaussianNB())], cv=3, gate=True
        ),
    ),
    "stacking without temperature": (
        "penguins",
        lambda: tuplet.JointStackingClassifier(
            [tuplet.BayesNetClassifier(LDA), tuplet.TreeClassifier()], cv=2, temperature=False
        ),
    ),
    "decision subset": ("emotions", lambda: tuplet.DecisionClassifier(tuplet.ChainClassifier(), "subset")),
    "decision f1": ("emotions", lambda: tuplet.DecisionClassifier(tuplet.ChainClassifier(), "f1")),
    "peer": ("emotions", lambda: tuplet.evaluate.PeerClassifier(FOREST)),
    "peer of chains": (
        "emotions",
        lambda: tuplet.evaluate.PeerClassifier(tuplet.evaluate.AveragedChains(3, GaussianNB())),
    ),
}
"""Name: data set and model."""


def settled(model):
    """Return a model with a seed, one job and no progress bar."""
    options = model.get_params(deep=False)
    if "random_state" in options and options["random_state"] is None:
        model.set_params(random_state=0)
    given = {"n_jobs": 1, "progress": False}
    return model.set_params(**{name: value for name, value in given.items() if name in options})


CONSTRUCTED: set[str] = set()
"""Names of the classes that have been recorded."""


def constructed(make):
    try:
        model = make()
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        raise NotAvailableError(str(error).splitlines()[0]) from error
    CONSTRUCTED.add(type(model).__name__)
    return model


def fitted(make, rows):
    model = settled(constructed(make))
    options = {} if rows.weights is None else {"sample_weight": rows.weights}
    return model.fit(rows.X, rows.Y, **options)


def model_entry(make):
    """Return an entry that fits a model and records what it predicts."""

    def record(rows):
        model = fitted(make, rows)
        prediction, decision = model.predict_joint(rows.X_new), model.predict(rows.X_new)
        value = risk(prediction, getattr(model, "loss", "hamming"), decision)
        return answers(prediction, rows.Y_new) | {"predict": as_text(decision), "predict value": value}

    return record


# -- entries with code of their own -------------------------------------------------------------------------


def classifier_entry(make, variable):
    """Return an entry of a classifier of one variable."""

    def record(rows):
        model = constructed(make)
        known = rows.Y[variable].notna().to_numpy()
        options = {} if rows.weights is None else {"sample_weight": rows.weights[known]}
        X, X_new = as_numbers(rows.X, rows.X_new)
        model.fit(X[known], rows.Y[variable][known].astype(str), **options)
        return {"probabilities": model.predict_proba(X_new)}

    return record


def as_numbers(X, X_new):
    """Return frames with numbers in place of text and booleans."""
    both = pd.concat([X, X_new])
    for name in both.select_dtypes(exclude="number"):
        both[name] = pd.factorize(both[name], sort=True)[0]
    return both[: len(X)], both[len(X) :]


def beliefs_of(X, rows, variables):
    """Return the beliefs of naive Bayes about class variables."""
    return {
        name: GaussianNB(var_smoothing=0.1).fit(rows.X, rows.Y[name]).predict_proba(X) for name in variables
    }


def rule_model_entry(formulas, **options):
    """Return an entry of rules over the beliefs of naive Bayes."""

    def record(rows):
        categories = {name: sorted(rows.Y[name].unique()) for name in rows.Y}
        model = constructed(lambda: tuplet.RuleModel(categories, formulas(), **options))
        return answers(model.predict_joint(beliefs_of(rows.X_new, rows, categories)), rows.Y_new)

    return record


def learned_rule_model(rows):
    categories = {name: sorted(rows.Y[name].unique()) for name in rows.Y}
    model = constructed(lambda: tuplet.RuleModel(categories, SPECIES_RULES[:1]))
    beliefs = beliefs_of(rows.X, rows, ["species", "sex"])
    model = model.learn(beliefs, rows.Y, max_rules=3, random_state=0, progress=False)
    return answers(model.predict_joint(beliefs_of(rows.X_new, rows, ["species", "sex"])), rows.Y_new)


def changed_rules(rows):
    """Add and remove rules of a fitted model."""
    model = fitted(rules(GaussianNB(), SPECIES_RULES, n_rules=0), rows)
    model = model.add_rules("sex == male -> !(species == Chinstrap)").remove_rules(0)
    return answers(model.predict_joint(rows.X_new), rows.Y_new)


def prefit_rules(rows):
    """Learn rules over classifiers that were fitted to other rows."""
    half = len(rows.Y) // 2
    first = {name: GaussianNB().fit(rows.X[:half], rows.Y[name][:half]) for name in rows.Y}
    make = rules(first, prefit=True, n_rules=1)
    return answers(
        fitted(make, rows._replace(X=rows.X[half:], Y=rows.Y[half:])).predict_joint(rows.X_new), rows.Y_new
    )


def filtered(rows):
    selection = constructed(lambda: tuplet.InformationGainFilter(3))
    pipeline = make_pipeline(selection, settled(constructed(GENERAL["chain"]))).fit(rows.X, rows.Y)
    support = pipeline[0].support_.astype(float)
    return {"support": support} | answers(
        pipeline[1].predict_joint(pipeline[0].transform(rows.X_new)), rows.Y_new
    )


def from_bif(rows):
    """Write a network to a file and predict with the one that is read from it."""
    model = fitted(generative("tree-tree"), rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.bif"
        model.to_bif(path)
        again = type(model).from_bif(path)
    return answers(again.predict_joint(rows.X_new), rows.Y_new)


def saved(rows):
    """Predict with a model that was saved and loaded."""
    model = fitted(bayes_net(), rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        again = tuplet.load_model(path)
    return answers(again.predict_joint(rows.X_new), rows.Y_new)


def warm_probit(rows):
    """Go on with the chains of a fitted model."""
    model = fitted(probit(warm_start=True), rows)
    model.set_params(n_draws=30).fit(rows.X, rows.Y)
    return answers(model.predict_joint(rows.X_new), rows.Y_new)


def noisy_rules():
    return [
        tuplet.Rule(SPECIES_RULES[0], 0.9),
        tuplet.Rule(SPECIES_RULES[1], 0.8),
        tuplet.NoisyOr({"species": {"Gentoo": 0.2, "Adelie": 0.6}, "island": {"Dream": 0.4}}, 0.9),
    ]


def is_one(name):
    return public("tuplet.rules", "tuplet.models.rules").Is(name, 1)


def emotion_rules():
    names = list(rows_of("emotions").Y)
    return [
        tuplet.Rule((is_one(names[i]) & ~is_one(names[j])) >> is_one(names[k]), p)
        for i, j, k, p in [(0, 1, 2, 0.9), (1, 2, 3, 0.7), (2, 3, 4, 0.8), (4, 0, 1, 0.6), (3, 4, 0, 0.95)]
    ]


def rule_engine_entry(name):
    """Return an entry of rules with an engine of this name."""

    def record(rows):
        engine = getattr(public("tuplet.joint.inference"), name)()
        return rule_model_entry(emotion_rules, engine=engine)(rows)

    return record


SPECIAL = {
    "naive Bayes": ("penguins", classifier_entry(lambda: tuplet.MixedNaiveBayes(), "species")),
    "naive Bayes with gaps": (
        "gaps",
        classifier_entry(lambda: tuplet.MixedNaiveBayes(categorical=[3, 4], alpha=0.5), "sex"),
    ),
    "naive Bayes weighted": (
        "weighted",
        classifier_entry(lambda: tuplet.MixedNaiveBayes(variance_floor=0.01), "happy-pleased"),
    ),
    "temperature": (
        "penguins",
        classifier_entry(lambda: tuplet.TemperatureScaled(GaussianNB(), random_state=0), "island"),
    ),
    "temperature refit": (
        "jura",
        classifier_entry(lambda: tuplet.TemperatureScaled(FOREST, refit=True, random_state=0), "Rock"),
    ),
    "default estimator": ("jura", classifier_entry(lambda: tuplet.default_estimator(), "Rock")),
    "rule model": ("penguins", rule_model_entry(lambda: SPECIES_RULES)),
    "rule model with noise": ("penguins", rule_model_entry(noisy_rules)),
    "rule model with priors": (
        "penguins",
        rule_model_entry(noisy_rules, priors={"island": [0.6, 0.3, 0.1]}),
    ),
    "rule model of emotions": ("emotions", rule_model_entry(emotion_rules)),
    **{
        f"rule model by {method}": ("emotions", rule_engine_entry(engine))
        for method, engine in {
            "elimination": "Exact",
            "signed": "SignedElimination",
            "propagation": "BeliefPropagation",
        }.items()
    },
    "rule model learned": ("penguins", learned_rule_model),
    "rules changed": ("penguins", changed_rules),
    "rules prefit": ("penguins", prefit_rules),
    "filter of features": ("emotions", filtered),
    "generative from BIF": ("flags", from_bif),
    "Bayes net saved": ("penguins", saved),
    "probit going on": ("emotions", warm_probit),
}
"""Name: data set and entry."""


def entries():
    """Return the entries by name: the data set and the function that records it."""
    found = {}
    for name, make in GENERAL.items():
        for data in ("penguins", "emotions", "jura", "gaps", "weighted", "sparse", "flags"):
            found[f"{name} / {data}"] = (data, model_entry(make))
    for name, make in BINARY.items():
        for data in ("emotions", "flags", "weighted"):
            found[f"{name} / {data}"] = (data, model_entry(make))
    for name, (data, make) in VARIANTS.items():
        found[f"{name} / {data}"] = (data, model_entry(make))
    for name, (data, record) in SPECIAL.items():
        found[f"{name} / {data}"] = (data, record)
    return found


# -- recording ----------------------------------------------------------------------------------------------


def as_text(labels):
    return np.asarray(labels).astype(str)


def answers(prediction, Y):
    """Return what a prediction answers: arrays by name. The value of an outcome has its name and `value`."""
    names = prediction.space.names
    parts = {f"marginals of {name}": np.asarray(table) for name, table in prediction.marginals().items()}
    parts["pair"] = np.asarray(prediction.pairwise(*names[:2]))
    parts |= given_frequent_label(prediction, parts)
    parts["log_prob"] = np.asarray(prediction.log_prob(Y))
    mode = prediction.mode()
    parts["mode"] = as_text(mode)
    parts["mode value"] = np.exp(np.asarray(prediction.log_prob(mode)))
    binary = max(prediction.space.cards) == 2
    for loss in ("hamming", "subset", *(("f1", "jaccard") if binary else ())):
        decision = prediction.decide(loss)
        parts |= {loss: as_text(decision), f"{loss} value": risk(prediction, loss, decision)}
    return parts


def given_frequent_label(prediction, parts):
    """Return the marginals if the first variable has the label that is most probable on average."""
    name = prediction.space.names[0]
    label = prediction.space.categories[0][parts[f"marginals of {name}"].mean(axis=0).argmax()]
    try:
        tables = prediction.given({name: label}).marginals()
    except public("tuplet.exceptions", "tuplet.core").ImpossibleEvidenceError:
        return {}
    return {f"marginals of {other} given {name}": np.asarray(table) for other, table in tables.items()}


def risk(prediction, loss, decision):
    """Return the expected loss of a decision in each row."""
    codes = prediction.space.encode(decision)
    return tuplet.losses.get_loss(loss).risk(prediction.distribution, codes)


def without_entry():
    """Return the names of public models that no entry has constructed."""
    models = {name for name in tuplet.__all__ if name.endswith(("Classifier", "RuleModel"))}
    return sorted(models - CONSTRUCTED - {"JointClassifier"})


def cpu_seconds():
    own, children = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def record(path, *wanted):
    """Record all entries, or those whose names contain one of the words."""
    arrays, notes = {}, {"skipped": [], "failed": []}
    sources = Path(tuplet.__file__).resolve().parent.parent
    report(f"Recording {sources}")
    if Path(os.environ.get("GOLDEN_SOURCES", sources)).resolve() != sources:
        raise RuntimeError("Another tuplet is imported than the one to be recorded.")
    for name, (data, entry) in entries().items():
        if wanted and not any(word in name for word in wanted):
            continue
        begun = cpu_seconds()
        try:
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")
                parts = entry(rows_of(data))
            arrays |= {f"{name}|{part}": array for part, array in parts.items()}
            outcome = ""
        except NotAvailableError as reason:
            outcome = f"skipped: {reason}"
            notes["skipped"].append(f"{name}|{reason}")
        except Exception as error:
            outcome = f"failed: {type(error).__name__}: {error}"
            notes["failed"].append(f"{name}|{type(error).__name__}: {error}")
            if wanted:
                traceback.print_exc()
        report(f"{cpu_seconds() - begun:7.2f} s  {name}  {outcome}")
    np.savez_compressed(path, **arrays, **{kind: np.array(lines, str) for kind, lines in notes.items()})
    report(f"{len(notes['failed'])} failed, {len(notes['skipped'])} skipped, {cpu_seconds():.0f} CPU seconds")
    if not wanted and without_entry():
        report("Public models without an entry:", *without_entry())
    return 0


# -- comparing ----------------------------------------------------------------------------------------------


def compare(old_path, new_path):
    """Print the largest difference of each entry; return 1 if two recordings are not equal."""
    old, new = (dict(np.load(path)) for path in (old_path, new_path))
    listed = {
        f"{kind} in {version}": dict(line.split("|", 1) for line in recording.pop(kind).tolist())
        for version, recording in (("old", old), ("new", new))
        for kind in ("skipped", "failed")
    }
    grouped = [by_entry(recording) for recording in (old, new)]
    wrong = set(listed["failed in new"])
    report(f"{'largest difference':>18}  {'other outcomes':>14}  {'ties':>4}  entry")
    for name in (name for name in grouped[0] if name in grouped[1]):
        difference, n_other, n_ties = differences(grouped[0][name], grouped[1][name])
        is_wrong = difference > TOLERANCE or n_other > 0
        wrong |= {name} if is_wrong else set()
        report(f"{difference:18.1e}  {n_other:14d}  {n_ties:4d}  {name}{'  DIFFERENT' if is_wrong else ''}")
    for kind, reasons in listed.items():
        for name, reason in reasons.items():
            report(f"{kind}: {name} ({reason})")
    report(f"only in one recording: {len(grouped[0].keys() ^ grouped[1].keys())} entries")
    n_compared = len(grouped[0].keys() & grouped[1].keys())
    report(f"{n_compared} entries compared, {len(wrong)} different or failed", *sorted(wrong), sep="\n  ")
    return int(bool(wrong) or not n_compared)


def by_entry(recording):
    """Return the arrays of each entry by the names of its parts."""
    grouped: dict[str, dict[str, Any]] = {}
    for key, array in recording.items():
        name, part = key.split("|", 1)
        grouped.setdefault(name, {})[part] = array
    return grouped


def differences(old, new):
    """Return the largest difference of numbers, the number of other outcomes, and of other ones that tie."""
    difference, n_other, n_ties = 0.0, 0, 0
    if old.keys() != new.keys():
        return np.inf, 0, 0
    for part in old:
        if old[part].shape != new[part].shape:
            difference = np.inf
        elif old[part].dtype.kind == "U":
            other = (old[part] != new[part]).reshape(len(old[part]), -1).any(axis=1)
            ties = other & tied(old, new, part)
            n_other, n_ties = n_other + int((other & ~ties).sum()), n_ties + int(ties.sum())
        else:
            difference = max(difference, distance(old[part], new[part]))
    return difference, n_other, n_ties


def tied(old, new, part):
    """Return in which rows the outcomes of two versions are equally good."""
    return np.abs(old[f"{part} value"] - new[f"{part} value"]) <= TIE


def distance(old, new):
    """Return the largest absolute difference; infinity if other entries are infinite or NaN."""
    finite = np.isfinite(old)
    if not np.array_equal(old[~finite], new[~finite], equal_nan=True) or not np.isfinite(new[finite]).all():
        return np.inf
    return float(np.abs(old[finite] - new[finite]).max(initial=0.0))


def against(revision, *wanted):
    """Record a revision and this tree, each in a new process, and compare them."""
    with tempfile.TemporaryDirectory() as folder:
        tree, old, new = (Path(folder) / name for name in ("tree", "old.npz", "new.npz"))
        git("worktree", "add", "--quiet", "--detach", str(tree), revision)
        try:
            # Its name has a digest of the kernels: a module of other kernels is not used.
            for module in (ROOT / "src/tuplet").glob("_compiled_*"):
                shutil.copy(module, tree / "src/tuplet")
            record_in(tree / "src", old, wanted)
        finally:
            git("worktree", "remove", "--force", str(tree))
        record_in(ROOT / "src", new, wanted)
        return compare(old, new)


def git(*arguments):
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


def record_in(sources, path, wanted):
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(sources), "GOLDEN_SOURCES": str(sources)}
    command = [sys.executable, str(Path(__file__).resolve()), "record", str(path), *wanted]
    subprocess.run(command, env=environment, check=True)


COMMANDS: dict[str, tuple[Callable[..., int], int]] = {
    "record": (record, 1),
    "compare": (compare, 2),
    "against": (against, 1),
}
"""Functions and the least number of their arguments."""


def main(command="", *arguments):
    function, least = COMMANDS.get(command, (None, 0))
    if function is None or len(arguments) < least:
        report(__doc__)
        return 2
    return function(*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Groups of rows that belong together: `fit(..., groups=...)` reaches everything that holds rows out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from all_models import MODELS
from tuplet import (
    AutoJointClassifier,
    BayesNetClassifier,
    ChainClassifier,
    DecisionClassifier,
    IndependentClassifier,
    JointStackingClassifier,
    MixtureClassifier,
    NeighborClassifier,
    PowersetClassifier,
    PriorClassifier,
    RuleStackingClassifier,
    SharedForestClassifier,
    TemperatureScaled,
    TreeClassifier,
    TreeEnsembleClassifier,
    TreeMixtureClassifier,
)
from tuplet.core.exceptions import InputError, TupletWarning
from tuplet.local import cross_fitting
from tuplet.metrics import get_scorer
from tuplet.models import InstanceLogisticClassifier, StackedFeaturesClassifier, WeightedStackingClassifier
from tuplet.models.neighborhoods import Neighborhoods
from tuplet.models.prior import seen_combinations, unseen_mass
from tuplet.models.stacking.held_out import Rows
from tuplet.models.stacking.race import _split


def similar_rows(seed, n_groups, size=20, world=0):
    """Groups of rows whose features and labels have most in common; two class variables."""
    law, rng = np.random.default_rng([world, 0]), np.random.default_rng([world, seed])
    slopes = 0.8 * law.normal(size=(2, 3, 3))
    center, groups = rng.normal(size=(n_groups, 3)), np.repeat(np.arange(n_groups), size)
    X = center[groups] + 0.2 * rng.normal(size=(len(groups), 3))
    own = center @ slopes + 1.5 * rng.normal(size=(2, n_groups, 3))
    codes = (own[:, groups] + 0.7 * rng.gumbel(size=(2, len(groups), 3))).argmax(axis=2).T
    return X, codes, groups


# -- what a model reports ----------------------------------------------------------------------------------


def test_held_out_figures_are_those_of_new_groups_only_with_groups():
    """50 groups: within a standard error of the figure on new groups, and many away without `groups`.

    Means over three tables: a single difference is larger than its standard error in a third of all cases.
    """
    differences = {True: [], False: []}
    for world in range(3):
        X, Y, groups = similar_rows(1, 50, world=world)
        new_X, new_Y, _ = similar_rows(2, 200, world=world)
        for given, found in differences.items():
            tree = DecisionTreeClassifier(max_depth=4, random_state=0)
            members = [ChainClassifier(), NeighborClassifier(), IndependentClassifier(tree)]
            model = JointStackingClassifier(members, temperature=False, progress=False)
            model.fit(X, Y, groups=groups if given else None)
            reached = model.predict_joint(new_X).log_prob(new_Y).mean()
            found.append((model.log_likelihood_ - reached) / model.log_likelihood_error_)
    assert abs(np.mean(differences[True])) < 1
    assert min(differences[False]) > 5


# -- every fold inside of models ---------------------------------------------------------------------------

BOOSTING = HistGradientBoostingClassifier(max_iter=3)
FOREST = ExtraTreesClassifier(5, bootstrap=True, random_state=0)
HOLD_OUT = {
    "chain of trees": ChainClassifier(DecisionTreeClassifier()),
    "chain of forests": ChainClassifier(FOREST),
    "chain of searches": ChainClassifier(GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3)),
    "independent": IndependentClassifier(BOOSTING),
    "powerset": PowersetClassifier(FOREST),
    "tree": TreeClassifier(),
    "tree of others": TreeClassifier(DecisionTreeClassifier(), n_folds=2),
    "tree ensemble": TreeEnsembleClassifier(n_trees=2, random_state=0),
    "tree mixture": TreeMixtureClassifier(max_trees=2, random_state=0),
    "tree mixture of others": TreeMixtureClassifier(GaussianNB(), max_trees=2, n_folds=2, max_iter=1),
    "mixture": MixtureClassifier(
        IndependentClassifier(DecisionTreeClassifier()), n_components=2, max_iter=1, random_state=0
    ),
    "bayesnet of shifts": BayesNetClassifier(),
    "bayesnet": BayesNetClassifier(parametrisation="split"),
    "bayesnet of others": BayesNetClassifier(GaussianNB(), criterion="cv", random_state=0),
    "shared forest": SharedForestClassifier(FOREST, random_state=0),
    "stacking": JointStackingClassifier(
        [PriorClassifier(), ChainClassifier(DecisionTreeClassifier())], cv=2, gate=True
    ),
    "rules": RuleStackingClassifier(
        DecisionTreeClassifier(), max_rules=1, n_folds=2, random_state=0, progress=False
    ),
    "stacked features": StackedFeaturesClassifier(DecisionTreeClassifier(), n_folds=2),
    "weighted stacking": WeightedStackingClassifier(DecisionTreeClassifier(), n_folds=2),
    "instance": InstanceLogisticClassifier(DecisionTreeClassifier()),
    "decision": DecisionClassifier(ChainClassifier(DecisionTreeClassifier()), "subset"),
    "auto": AutoJointClassifier(5.0, models=[ChainClassifier(), PriorClassifier()], n_jobs=1, cv=2),
}


SAMPLED = ["tree", "tree mixture", "mixture", "bayesnet of shifts"]


@pytest.mark.parametrize(
    ("name", "size"), [*((name, 2**15) for name in HOLD_OUT), *((name, 60) for name in SAMPLED)]
)
def test_all_folds_inside_of_a_model_are_folds_of_groups(monkeypatch, name, size):
    for module in ("trees.logistic", "mixtures.base"):
        monkeypatch.setattr(f"tuplet.models.{module}.SAMPLE_SIZE", size)
    divided, original = [], cross_fitting._divide

    def divide(X, codes, sample_weight, n_folds, groups, rng):
        assert groups is not None
        assert len(groups) == len(codes)
        folds = original(X, codes, sample_weight, n_folds, groups, rng)
        assert not any(set(groups[fold.train]) & set(groups[fold.test]) for fold in folds)
        divided.append(n_folds)
        return folds

    monkeypatch.setattr(cross_fitting, "_divide", divide)
    X, codes, groups = similar_rows(0, 12, size=8)
    Y, weights = codes % 2, np.where(np.arange(96) % 7, 1.0, 0.0)  # also rows that are left out
    clone(HOLD_OUT[name]).fit(X, Y, weights, groups)
    assert divided


@pytest.mark.parametrize("name", ["prior", "neighbors", "field", "generative small", "probit"])
def test_others_take_groups_too_and_names_of_groups_do_not_matter(name):
    X, codes, groups = similar_rows(0, 10, size=6)
    first, second = (clone(MODELS[name]).fit(X, codes % 2, groups=g) for g in (groups, groups.astype(str)))
    np.testing.assert_allclose(first.predict_proba(X)[0], second.predict_proba(X)[0])
    assert not hasattr(first, "_groups") or first._groups is None


def test_nothing_of_the_groups_is_left_after_a_fit_that_fails():
    X, codes, groups = similar_rows(0, 4, size=5)
    model = ChainClassifier(order=["no such name"])
    with pytest.raises(Exception, match="no such name"):
        model.fit(X, codes, groups=groups)
    assert model._groups is None


def test_few_rows_of_a_race_are_divided_by_groups_too():
    X, codes, groups = similar_rows(0, 12, size=8)
    space = ChainClassifier().fit(X, codes).space_
    rows = Rows(X, codes, np.where(np.arange(96) % 5, 1.0, 0.0), space, groups)
    fold = _split(rows, np.random.default_rng(1).permutation(96)[:60])
    assert len(fold.train) > len(fold.test) > 0
    assert not set(groups[fold.train]) & set(groups[fold.test])
    np.testing.assert_array_equal(fold.train_weight, 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_neighbours_of_training_rows_come_from_other_groups(weighted):
    X, _, groups = similar_rows(3, 8, size=5)
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, size=len(X)).astype(float) if weighted else np.ones(len(X))
    near = Neighborhoods.fit(X, 6, weights, standardize=False, n_jobs=None, groups=groups)
    columns = rng.normal(size=(len(X), 2))
    ours = near.sums_among_training(columns, np.arange(len(X)), groups)
    for i, sums in enumerate(ours):
        order = np.argsort(((X - X[i]) ** 2).sum(axis=1))
        line = np.repeat(order, weights[order].astype(int))
        chosen = line[groups[line] != groups[i]][:6]
        np.testing.assert_allclose(sums, columns[chosen].sum(axis=0))


def test_neighbourhoods_are_no_larger_than_the_rows_of_other_groups():
    X, _, _ = similar_rows(3, 2, size=5)
    groups = np.array([0] * 7 + [1] * 3)
    assert Neighborhoods.fit(X, 10, None, standardize=True, n_jobs=None, groups=groups).k == 3


def test_unseen_combinations_are_counted_by_groups():
    codes = np.array([[0, 0], [0, 0], [1, 0], [1, 0], [0, 1]])
    groups = np.array([0, 1, 2, 2, 2])
    seen = seen_combinations(codes, None)
    assert unseen_mass(seen, (3, 3)) == pytest.approx(1 / 5)
    # Each row is predicted from the other groups: the last three have combinations that none of them shows.
    alone = [not (codes[groups != g] == row).all(axis=1).any() for row, g in zip(codes, groups, strict=True)]
    assert np.mean(alone) == 3 / 5
    assert unseen_mass(seen, (3, 3), groups) == 0.5  # its limit
    assert unseen_mass(seen_combinations(codes[:2], None), (3, 3), groups[:2]) == pytest.approx(1 / 3)


def test_a_shared_forest_trusts_leaves_less_if_groups_are_new():
    X, Y, groups = similar_rows(0, 30)
    new_X, new_Y, _ = similar_rows(1, 200)
    model = SharedForestClassifier(ExtraTreesClassifier(30, bootstrap=True), random_state=0)
    alone, grouped = (clone(model).fit(X, Y, groups=given) for given in (None, groups))
    assert grouped.combination_share_ < alone.combination_share_
    values = [model.predict_joint(new_X).log_prob(new_Y).mean() for model in (grouped, alone)]
    assert values[0] > values[1]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_temperature_holds_out_whole_groups(share):
    X, codes, groups = similar_rows(0, 20)
    y = codes[:, 0].copy()
    y[groups == 3] = 9  # a class of one group, which must stay
    seen = []

    class Watched(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, -1].astype(int))
            return super().fit(X, y, sample_weight)

    model = TemperatureScaled(Watched(max_iter=1000), held_out=share, random_state=0)
    model.fit(np.column_stack([X, groups]), y, groups=groups)
    learned = set(seen[0])
    assert 3 in learned
    assert len(seen[0]) == 20 * len(learned)
    assert model.n_held_out_ == 400 - len(seen[0])
    assert len(learned) == pytest.approx(20 * (1 - share), abs=1)


def test_a_scaled_classifier_in_a_chain_gets_groups():
    X, codes, groups = similar_rows(0, 30)
    scaled = TemperatureScaled(LogisticRegression(), held_out=0.17, random_state=0)
    model = ChainClassifier(make_pipeline(StandardScaler(), scaled)).fit(X, codes, groups=groups)
    assert [link.classifier_.estimator.n_held_out_ for link in model.models_] == [100, 100]  # five groups


# -- splitters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [GroupKFold(3), StratifiedGroupKFold(3), LeaveOneGroupOut()])
def test_splitters_of_groups(cv):
    X, Y, groups = similar_rows(0, 8, size=6)
    members = [PriorClassifier(), IndependentClassifier()]
    model = JointStackingClassifier(members, cv=cv, progress=False).fit(X, Y, groups=groups)
    assert sum(model.weights_.values()) == pytest.approx(1)
    with pytest.raises(InputError, match=r"pass them as fit\(..., groups=...\)"):
        JointStackingClassifier(members, cv=cv, progress=False).fit(X, Y)


def test_a_splitter_may_leave_rows_out():
    X, Y = np.zeros((200, 1)), np.random.default_rng(0).integers(0, 2, size=(200, 2))
    folds = list(TimeSeriesSplit(4).split(X))
    model = JointStackingClassifier([PriorClassifier()], cv=TimeSeriesSplit(4), progress=False).fit(X, Y)
    same = [PriorClassifier().fit(X[train], Y[train]) for train, _ in folds]
    held = [m.predict_joint(X[test]).log_prob(Y[test]) for m, (_, test) in zip(same, folds, strict=True)]
    assert model.log_likelihood_ == pytest.approx(np.concatenate(held).mean())
    auto = AutoJointClassifier(
        5.0, models=[PriorClassifier()], cv=TimeSeriesSplit(4), n_jobs=1, progress=False
    )
    assert auto.fit(X, Y).log_likelihood_ == pytest.approx(model.log_likelihood_)


# -- scikit-learn ------------------------------------------------------------------------------------------


def test_metadata_routing():
    X, Y, groups = similar_rows(0, 6, size=6)
    seen = []

    class Watched(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append(len(set(groups)))
            return super().fit(X, y, sample_weight)

    score = get_scorer("joint_log_likelihood")
    with config_context(enable_metadata_routing=True):
        model = IndependentClassifier(Watched()).set_fit_request(groups=True)
        cross_validate(model, X, Y, cv=GroupKFold(3), params={"groups": groups}, scoring=score)
        assert set(seen) <= {4, 3}  # of six groups two are held out, and one of four for calibration
        seen.clear()
        pipe = make_pipeline(StandardScaler(), model)
        search = GridSearchCV(
            pipe, {"independentclassifier__n_jobs": [None]}, cv=GroupKFold(2), scoring=score
        )
        search.fit(X, Y, groups=groups)
        assert max(seen) == 6
    make_pipeline(StandardScaler(), IndependentClassifier(Watched())).fit(
        X, Y, independentclassifier__groups=groups
    )


def test_a_search_over_models_holds_out_groups_without_routing():
    X, Y, groups = similar_rows(0, 6, size=6)
    score = get_scorer("joint_log_likelihood")
    search = GridSearchCV(NeighborClassifier(), {"n_neighbors": [3, 9]}, cv=GroupKFold(3), scoring=score)
    assert search.fit(X, Y, groups=groups).best_params_["n_neighbors"] in (3, 9)


# -- groups that make no sense -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(19), r"groups must be of shape \(20,\), as X has 20 rows; found \(19,\)"),
        (np.zeros((20, 2)), r"found \(20, 2\)"),
        (np.r_[np.nan, np.zeros(19)], "groups has 1 missing value;"),
        ([None] * 5 + ["a"] * 15, "groups has 5 missing values;"),
        (pd.Series(range(20), index=range(20, 0, -1)), "X and groups"),
    ],
)
def test_groups_that_are_refused(groups, message):
    X, codes, _ = similar_rows(0, 2, size=10)
    frame = pd.DataFrame(X, index=range(1, 21))
    with pytest.raises(InputError, match=message):
        ChainClassifier().fit(frame, codes, groups=groups)


def test_a_single_group_is_warned_about_and_ignored():
    X, codes, _ = similar_rows(0, 4, size=10)
    with pytest.warns(TupletWarning, match="a single group"):
        model = TreeClassifier().fit(X, codes, groups=np.full(40, "all"))
    assert model.scores_ == pytest.approx(TreeClassifier().fit(X, codes).scores_)
    with pytest.warns(TupletWarning, match="a single group"):  # of the rows that count
        TreeClassifier().fit(X, codes, np.repeat([1.0, 0.0], 20), np.repeat([0, 1], 20))


def test_fewer_groups_than_folds():
    X, codes, groups = similar_rows(0, 3, size=10)
    with pytest.warns(TupletWarning, match="5 folds are to be made of 3 groups"):
        model = JointStackingClassifier([PriorClassifier()], cv=5, progress=False).fit(
            X, codes, groups=groups
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = JointStackingClassifier([PriorClassifier()], cv=3, progress=False).fit(X, codes, groups=groups)
    assert model.log_likelihood_ == pytest.approx(same.log_likelihood_)


def test_names_of_several_types_are_groups():
    X, codes, _ = similar_rows(0, 4, size=10)
    names = np.array([1, "1", 2.5, ("a", "b")], dtype=object)[np.repeat(np.arange(4), 10)]
    TreeClassifier().fit(X, codes, groups=names)

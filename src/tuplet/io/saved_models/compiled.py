"""Recipes of scikit-learn's compiled structures, whose code does not check the indices that it follows.

A forged file could make it read memory outside of its arrays. So trees and support vectors are checked, and
search trees of neighbours are built again from their points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors import BallTree, KDTree
from sklearn.svm._base import BaseSVC
from sklearn.tree._tree import Tree

from tuplet.core.exceptions import InputError, ModelFileError

_METRICS = ("euclidean", "manhattan", "chebyshev", "hamming", "canberra", "braycurtis", "haversine")
"""Distances without parameters, by the names of their classes and of scikit-learn's arguments."""


def take_apart(obj: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Return the recipe of a tree or of a search tree of neighbours, None for any other object."""
    if type(obj) is Tree:
        _, sizes, state = obj.__reduce__()
        return "tree", (*sizes, state["max_depth"], state["nodes"], state["values"])
    if type(obj) is TreePredictor:
        return "boosted tree", (obj.nodes, obj.binned_left_cat_bitsets, obj.raw_left_cat_bitsets)
    if type(obj) in (KDTree, BallTree):
        state = obj.__getstate__()
        return "neighbors", (type(obj).__name__, state[0], state[4], _metric(state[11]), state[12])
    return None


def _metric(metric: Any) -> dict[str, Any]:
    name = type(metric).__name__.removesuffix("64").removesuffix("Distance").lower()
    if name in _METRICS:
        return {"metric": name}
    if name == "minkowski":
        p, weights, _ = metric.__getstate__()
        return {"metric": name, "p": p} | ({"w": weights} if len(weights) else {})
    raise InputError(f"neighbours by the distance {type(metric).__name__} cannot be saved")


# -- making them again -------------------------------------------------------------------------------------


def _tree(
    n_features: int, n_classes: np.ndarray, n_outputs: int, depth: int, nodes: np.ndarray, values: np.ndarray
) -> Tree:
    classes = np.ascontiguousarray(n_classes, dtype=np.intp)
    _require(n_outputs >= 1 and classes.shape == (n_outputs,) and classes.min() >= 1)
    _require(values.shape == (len(nodes), n_outputs, classes.max()))
    inner = nodes["left_child"] != -1
    _check_nodes(inner, nodes["left_child"], nodes["right_child"])
    _require(_inside(nodes["feature"][inner], n_features))
    tree = Tree(int(n_features), classes, int(n_outputs))
    tree.__setstate__({"max_depth": int(depth), "node_count": len(nodes), "nodes": nodes, "values": values})
    return tree


def _boosted_tree(nodes: np.ndarray, binned: np.ndarray, raw: np.ndarray) -> TreePredictor:
    inner = nodes["is_leaf"] == 0
    _check_nodes(inner, nodes["left"], nodes["right"])
    _require(binned.shape == raw.shape == (len(raw), 8) and binned.dtype == raw.dtype == np.uint32)
    _require(_inside(nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)], len(raw)))
    _require(nodes["feature_idx"].min() >= 0)
    return TreePredictor(nodes, binned, raw)


def _check_nodes(inner: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Children exist and come after their parents, so every path ends at a leaf."""
    place = np.arange(len(inner))
    _require(len(inner) > 0)
    for child in (left, right):
        _require(bool((child[inner] > place[inner]).all()) and _inside(child[inner], len(inner)))


def _neighbors(
    kind: str, points: np.ndarray, leaf_size: int, metric: dict[str, Any], weights: np.ndarray | None
) -> Any:
    _require(kind in ("KDTree", "BallTree") and metric["metric"] in (*_METRICS, "minkowski"))
    made = KDTree if kind == "KDTree" else BallTree
    return made(points, leaf_size=leaf_size, sample_weight=weights, **metric)


def _inside(values: np.ndarray, end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _require(sound: bool) -> None:
    if not sound:
        raise ModelFileError("The file has trees or vectors with invalid indices: forged or damaged.")


# -- checks that need the owner of a structure -------------------------------------------------------------


def check_whole(model: Any) -> None:
    """Check that trees use only features that the estimators that own them get."""
    for part in _parts(model):
        n_features: int = getattr(part, "n_features_in_", 0)
        if isinstance(getattr(part, "tree_", None), Tree):
            _require(part.tree_.n_features == n_features)
        if isinstance(part, BaseForest | BaseGradientBoosting):
            trees = np.ravel(getattr(part, "estimators_", ()))
            _require(all(tree.n_features_in_ == n_features for tree in trees))
        if isinstance(part, BaseHistGradientBoosting):
            rounds = getattr(part, "_predictors", ())
            _require(
                all(_inside(tree.nodes["feature_idx"], n_features) for trees in rounds for tree in trees)
            )
        if isinstance(part, BaseSVC) and hasattr(part, "support_"):
            _check_vectors(part)


def _check_vectors(svc: Any) -> None:
    """Check that the arrays of a support vector machine have the sizes that its compiled part expects."""
    n, k = len(svc.support_), len(svc._n_support)
    pairs = k * (k - 1) // 2
    _require(svc.support_vectors_.shape == (n, svc.n_features_in_))
    _require(svc._dual_coef_.shape == (k - 1, n) and svc._intercept_.shape == (pairs,))
    _require(bool((svc._n_support >= 0).all()) and svc._n_support.sum() == n)
    _require(len(svc._probA) == len(svc._probB) and len(svc._probA) in (0, pairs))


def _parts(model: Any) -> Iterator[Any]:
    """Yield every object with attributes that a model refers to, once."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        obj = waiting.pop()
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        if isinstance(obj, dict):
            waiting.extend(obj.values())
        elif isinstance(obj, list | tuple | set):
            waiting.extend(obj)
        elif isinstance(obj, np.ndarray):
            waiting.extend(obj.ravel().tolist() if obj.dtype == object else ())
        elif hasattr(obj, "__dict__") and not isinstance(obj, type):
            waiting.extend(vars(obj).values())
            yield obj


BUILDERS: dict[str, Callable[..., Any]] = {
    "tree": _tree,
    "boosted tree": _boosted_tree,
    "neighbors": _neighbors,
}

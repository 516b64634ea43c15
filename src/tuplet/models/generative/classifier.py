"""Generative Bayesian network classifiers: classes and features in one network, classes first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, final, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tuplet.core.delegates import delegate
from tuplet.core.exceptions import InputError
from tuplet.core.parameters import Number, Whole, declare
from tuplet.core.typing import UNKNOWN, Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.joint.graph import FactorGraph
from tuplet.joint.inference.engine import Engine, Exact
from tuplet.joint.inference.factor import Factor
from tuplet.local.row_samples import SAMPLE_SIZE, sample_rows
from tuplet.models.base import JointClassifier
from tuplet.models.generative.files import from_network, to_network
from tuplet.models.generative.networks.bif import read_bif, write_bif
from tuplet.models.generative.networks.learners import (
    LearnerOptions,
    Structure,
    default_criterion,
    learn_structure,
)
from tuplet.models.generative.networks.network import Network
from tuplet.models.generative.networks.scores import CountScorer
from tuplet.models.generative.networks.three_part import ThreePartGraph
from tuplet.models.generative.tables import (
    beside,
    count_tables,
    gap_factors,
    known_factors,
    touched_families,
)
from tuplet.models.prior import bounded_joint
from tuplet.space.classes import ClassSpace
from tuplet.space.containers import listing
from tuplet.space.features.discrete import DiscreteColumns
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.inputs import Features, n_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 12
"""Components that are listed."""


@final
class GenerativeBayesNetClassifier(JointClassifier):
    """One discrete Bayesian network of classes and features, in which no feature is above a class.

    Given the features, what is left is a product of small tables over classes, which is queried exactly. Its
    cost is bounded while the graph is learned (paper term: multidimensional Bayesian network classifier,
    MBC).

    Parameters
    ----------
    structure : {"cb-obs", "tree-tree", "polytree-polytree", "pure-filter", "small-tw"}
        How the graph is learned. "cb-obs", the paper's method: greedy parents along an order that is searched
        for, with bounds on what prediction costs. "tree-tree", "polytree-polytree": trees or polytrees of
        classes and of features. "pure-filter": greedy parents along the order of the columns, classes
        first. "small-tw": a class tree, and bridges to features within a width.
    criterion : {"auto", "bic", "aic", "k2", "bdeu"}
        Score of a family from its counts; see `CountScorer`. "auto" is the criterion of the paper: "k2" for
        "pure-filter", otherwise "bic".
    max_parents : int or None
        Largest number of parents of a variable.
    max_component : int or None
        "cb-obs": largest number of classes that class and bridge edges may hold together.
    max_width : int or None
        "cb-obs" and "small-tw": largest width of the pruned graph; 5 for "small-tw" if None.
    moves : {"insertions", "swaps"}
        "cb-obs": moves of the search over orders; "swaps" of neighbours is the paper's.
    n_starts : int
        "cb-obs": random orders that the search starts from; fewer with hundreds of variables, where a search
        takes seconds.
    smoothing : float
        Number > 0 of pseudo-rows in each cell of the conditional tables.
    n_bins : int
        Numbers with more different values than this in training are cut into so many bins of about equally
        many training rows; with fewer, each value is a bin. Edges lie halfway between values.
    engine : Engine, optional
        How the joint distribution is queried; `Exact()` by default.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`.
    random_state : int, Generator or None
        Of the search over orders.

    Attributes
    ----------
    graph_ : ThreePartGraph
        Class, bridge and feature subgraphs, components, pruned graph and width.
    class_parents_, bridge_parents_, feature_parents_ : tuple of tuples of int
        The three subgraphs: class parents of classes, class parents of features, and feature parents of
        features (positions of features).
    components_ : tuple of ClassComponent
        Classes that hang together given the features, with their features.
    pruned_edges_ : tuple of (int, int)
        The graph of classes that is left when all features are known.
    width_ : int
        Min-fill width of the pruned graph.
    induced_size_ : int
        Cells of all tables that prediction builds for one row.
    tables_ : list of arrays
        p(variable | parents) of classes, then features, each (*cards of the parents, card).
    columns_ : DiscreteColumns
        Features as discrete variables: their values, or edges of bins.
    score_ : float
        Criterion of the graph on the training rows; NaN after `from_bif`.

    Notes
    -----
    Missing labels and missing features in training: a family counts the rows in which it is complete, for its
    table and for its score. There it is compared with no parents at all, so scores stay comparable. No
    value is made up, and rows need not be dropped.

    Of more than 32,768 rows, "cb-obs" searches a good order by a sample of about so many, with scores that
    estimate those of all rows. From there one short search by all rows finds the graph.

    Missing features at prediction are summed out exactly. A value that training did not show is treated as
    missing.

    References
    ----------
    Learning tractable multidimensional Bayesian network classifiers.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"sky": ["grey", "blue", "grey", "blue"] * 10, "month": [1, 7, 2, 8] * 10})
    >>> Y = pd.DataFrame({"rain": [1, 0, 1, 0] * 10, "cold": ["yes", "no", "yes", "no"] * 10})
    >>> model = GenerativeBayesNetClassifier(random_state=0).fit(X, Y)
    >>> model.bridge_parents_, model.width_
    (((0,), (0,)), 1)
    >>> model.predict(pd.DataFrame({"sky": ["grey", None], "month": [1, 7]}))
       rain cold
    0     1  yes
    1     0   no
    """

    _parameters = declare(
        "columns n_bins random_state",
        structure=get_args(Structure),
        criterion=("auto", "bic", "aic", "k2", "bdeu"),
        max_parents=(Whole(at_least=1), None),
        max_component=(Whole(at_least=1), None),
        max_width=(Whole(at_least=1), None),
        moves=("insertions", "swaps"),
        n_starts=Whole(at_least=1),
        smoothing=Number(above=0),
        engine=(Engine, None),
    )

    _feature_form = "columns"  # which are variables of the network
    _text_is_discrete = True

    def __init__(
        self,
        structure: Structure = "cb-obs",
        *,
        criterion: Literal["auto", "bic", "aic", "k2", "bdeu"] = "auto",
        max_parents: int | None = 4,
        max_component: int | None = 15,
        max_width: int | None = None,
        moves: Literal["insertions", "swaps"] = "insertions",
        n_starts: int = 3,
        smoothing: float = 1.0,
        n_bins: int = 5,
        engine: Engine | None = None,
        columns: ColumnChoices = None,
        random_state: Seed = None,
    ) -> None:
        self.structure = structure
        self.criterion = criterion
        self.max_parents = max_parents
        self.max_component = max_component
        self.max_width = max_width
        self.moves = moves
        self.n_starts = n_starts
        self.smoothing = smoothing
        self.n_bins = n_bins
        self.engine = engine
        self.columns = columns
        self.random_state = random_state

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return []

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        options = LearnerOptions(
            max_component=self.max_component,
            max_width=self.max_width,
            moves=self.moves,
            n_starts=self.n_starts,
            random_state=self.random_state,
        )
        self.columns_ = DiscreteColumns.learn(X, self._names_of(X), self.n_bins, sample_weight)
        rows = beside(codes, self.columns_.codes(X))
        cards = (*self.space_.cards, *self.columns_.cards)
        criterion = default_criterion(self.structure) if self.criterion == "auto" else self.criterion
        scorer = CountScorer(
            rows,
            cards,
            codes.shape[1],
            criterion=criterion,
            sample_weight=sample_weight,
            max_parents=self.max_parents,
        )
        sample = None
        if self.structure == "cb-obs" and len(codes) > SAMPLE_SIZE:
            sample = scorer.sample(*sample_rows(X, codes, sample_weight, SAMPLE_SIZE))
        graph = learn_structure(scorer, self.structure, options, sample)
        tables = count_tables(
            graph.parents,
            rows,
            cards,
            (*self.space_.names, *self.columns_.names),
            self.smoothing,
            sample_weight,
        )
        self._take(graph, tables)
        self.score_ = scorer.total(graph.parents)

    def _names_of(self, X: Features) -> list[str]:
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
        return [str(name) for name in getattr(X, "columns", names)]

    def _take(self, graph: ThreePartGraph, tables: list[Floats]) -> None:
        self.graph_ = graph
        self.tables_ = tables
        self.class_parents_ = graph.class_parents
        self.bridge_parents_ = graph.bridge_parents
        self.feature_parents_ = graph.feature_parents
        self.components_ = graph.components
        self.pruned_edges_ = graph.pruned_edges
        self.width_ = graph.width
        self.induced_size_ = graph.induced_size(self.space_.cards)
        with np.errstate(divide="ignore"):  # tables of files may have zeros
            self._log_tables = [np.log(table) for table in tables]

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        codes = self.columns_.codes(X)
        cards = (*self.space_.cards, *self.columns_.cards)
        missing = codes == UNKNOWN
        touched = touched_families(self.graph_, missing) if missing.any() else None
        tables = known_factors(self.graph_, self._log_tables, cards, codes, touched)
        if touched is not None:
            gaps = gap_factors(self.graph_, self._log_tables, cards, codes, self.columns_.names)
            for scope, table in gaps.items():
                tables[scope] = tables[scope] + table if scope in tables else table
        factors = [Factor(scope, table) for scope, table in tables.items()]
        engine = Exact() if self.engine is None else self.engine
        graph = FactorGraph(self.space_.cards, factors, n_rows(X), engine=engine)
        return graph if self.label_counts_ is None else bounded_joint(graph, self.label_counts_)

    # -- reading the model --------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return what the graph is made of, as a text of a few lines and one for each component."""
        check_is_fitted(self)
        return _summary_text(self.graph_, self.space_, self.columns_.names, self.score_)

    def plot(self, *, component: int | None = None, title: str = "", ax: Axes | None = None) -> Axes:
        """Draw the graph of classes and features, each in a colour of its own; see `plot_graph`.

        Parameters
        ----------
        component : int, optional
            Position in `components_` of the only component to draw, for graphs that are too large as a whole.
        title : str
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        """
        check_is_fitted(self)
        graph = self.graph_
        classes, features = tuple(range(graph.n_classes)), tuple(range(graph.n_features))
        if component is not None:
            if component not in range(len(graph.components)):
                raise InputError(
                    f"plot: component must be a position from 0 to {len(graph.components) - 1}, found"
                    f" {component!r}."
                )
            classes, features = graph.components[component]
        shown = (*classes, *(graph.n_classes + f for f in features))
        names = (*self.space_.names, *self.columns_.names)
        return delegate(
            "plot_class_feature_graph", graph.parents, names, graph.n_classes, shown=shown, title=title, ax=ax
        )

    def to_network(self) -> Network:
        """Return the model as a Bayesian network with named states, the classes first."""
        check_is_fitted(self)
        return to_network(self.space_, self.columns_, self.graph_, self.tables_, self.label_counts_)

    def to_bif(self, path: str | Path) -> None:
        """Write the model to a file in the Bayesian interchange format, compressed if it ends in .gz.

        Roles, types of labels and edges of bins are kept as properties, so that `from_bif` gives a model
        that predicts the same; other programs pass over them.
        """
        write_bif(self.to_network(), path)

    @classmethod
    def from_bif(cls, source: str | Path | Network, classes: Sequence[str] | None = None) -> Self:
        """Return a fitted model with the graph and the tables of a network.

        Parameters
        ----------
        source : Network, or path of a .bif or .bif.gz file
        classes : sequence of str, optional
            Names of the class variables; those that `to_bif` has marked if None. X must be a frame with all
            other variables as columns, in the order of the file.
        """
        network = source if isinstance(source, Network) else read_bif(source)
        space, columns, graph, tables, counts = from_network(network, classes)
        model = cls()
        model.space_, model.columns_, model.encoder_ = space, columns, None
        model.label_counts_ = counts  # type: ignore[assignment]  # None for files of other programs
        model.classes_ = list(space.categories)
        model.n_features_in_ = len(columns.names)
        model.feature_names_in_ = np.array(columns.names, dtype=object)
        model.mixed_features_ = any(not column.is_number for column in columns.columns)
        model.score_ = float("nan")
        model._take(graph, tables)
        return model


def _summary_text(graph: ThreePartGraph, space: ClassSpace, features: Sequence[str], score: float) -> str:
    """Return a text about a graph; names are those of the classes and features.

    Examples
    --------
    >>> import numpy as np
    >>> space = ClassSpace(("rain", "cold"), (np.array([0, 1]),) * 2)
    >>> graph = ThreePartGraph(((), (0,), (0,), (1, 2)), 2)
    >>> print(_summary_text(graph, space, ["sky", "month"], float("nan")))
    2 classes, 2 features; edges: 1 class, 2 bridge, 1 feature
    width of the pruned graph 1 (of the whole graph 2), 6 cells to predict a row
    1 component; largest number of parents 2
      'rain', 'cold' | features 'sky', 'month'
    """
    counts = [
        sum(map(len, part)) for part in (graph.class_parents, graph.bridge_parents, graph.feature_parents)
    ]
    parts = sorted(graph.components, key=lambda part: -len(part.classes))
    size = _several(graph.n_classes, "class", "es"), _several(graph.n_features, "feature")
    widths = f"width of the pruned graph {graph.width} (of the whole graph {graph.full_width})"
    lines = [
        f"{', '.join(size)}; edges: {counts[0]} class, {counts[1]} bridge, {counts[2]} feature",
        f"{widths}, {graph.induced_size(space.cards):,} cells to predict a row",
        f"{_several(len(parts), 'component')}; largest number of parents {max(map(len, graph.parents))}",
    ]
    if not math.isnan(score):
        lines.append(f"score {score:,.2f}")
    for part in parts[:_SHOWN]:
        line = f"  {listing([space.names[c] for c in part.classes], 8)}"
        below = [features[f] for f in part.features]
        lines.append(f"{line} | features {listing(below, 8)}" if below else f"{line} | no features")
    if len(parts) > _SHOWN:
        lines.append(f"  and {len(parts) - _SHOWN} smaller components")
    return "\n".join(lines)


def _several(n: int, noun: str, ending: str = "s") -> str:
    return f"{n} {noun}{ending if n != 1 else ''}"

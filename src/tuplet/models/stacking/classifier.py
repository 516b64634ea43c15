"""Mixtures of models of any kind, with the weights that held-out rows ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from sklearn.utils import Tags, get_tags

from tuplet.core.exceptions import InputError
from tuplet.core.parallel import run_many
from tuplet.core.parameters import Having, declare
from tuplet.core.progress import Progress, Show
from tuplet.core.typing import Codes, Floats, Seed
from tuplet.joint.base import JointDistribution
from tuplet.local.cross_fitting import Fold
from tuplet.models.base import JointClassifier
from tuplet.models.stacking.blend import Blend, find_blend
from tuplet.models.stacking.held_out import HeldOut, Rows, enough_folds, fit_on, folds_of, judge
from tuplet.models.stacking.tempering import n_tables
from tuplet.space.features.encoding import ColumnChoices
from tuplet.space.features.estimators import seeded
from tuplet.space.features.inputs import Features

MODELS = Having("a list or a mapping of models", "__iter__")


@final
class JointStackingClassifier(JointClassifier):
    """A mixture of models of any family: p(y | x) = sum_c w_c p_c(y | x), with the weights of held-out rows.

    Every model returns a joint distribution, so a mixture of any of them is one too: every query and every
    loss works on it. Each model is judged by the log-probabilities of rows that it has not seen, in the
    folds; the weights that maximise the mean log-probability of the mixture are found with a certificate.
    Models without weight are dropped, the others fitted to all rows.

    Parameters
    ----------
    models : list of models, list of (name, model), or mapping of names to models
        Any models of Tuplet.
    cv : int, splitter, or iterable of (train, test)
        How rows are held out. Given a number, the fold of a row follows from the row, or from its group, so
        that neither the order of the rows nor a seed matters; some of the folds do where there are more than
        32,768 rows, or very many class variables and features. Any splitter of scikit-learn: those of
        groups get the `groups` of `fit`, stratified ones the combinations of labels as classes. A splitter
        need not hold out all rows (`TimeSeriesSplit`); models are judged by those that it does.
    gate : bool
        Whether weights may depend on x: a small softmax model of eight directions of the features, with a
        penalty that held-out rows choose, kept where they gain two standard errors by it.
    temperature : bool
        Whether the mixture may be raised to a power, which makes it sharper or flatter, where held-out rows
        gain two standard errors by it. For up to 1,024 combinations of labels, as all of them are needed.
    columns : mapping of names to kinds, or transformer, optional
        What columns of X are if they are not what they seem, such as {"ward": "category"}, or a transformer
        that makes numbers of X; see `FeatureEncoder`. None leaves it to each model inside.
    random_state : int, Generator or None
        For models whose own `random_state` is None.
    n_jobs : int, optional
        Fits that run side by side, by joblib.
    progress : bool or "auto"
        Whether to show how far the fits are; "auto" does so in a terminal.

    Attributes
    ----------
    weights_ : dict of str to float
        Of all models, also of those that were dropped.
    models_ : dict of str to model
        The fitted ones, those with a weight.
    log_likelihoods_ : dict of str to float
        Held-out joint log-likelihood per row of each model.
    log_likelihood_ : float
        That of the mixture with constant weights: at least that of the best model.
    log_likelihood_error_ : float
        Standard error of `log_likelihood_`: rows count as independent, or groups if `fit` gets them.
    gap_ : float
        How much better other constant weights can be at most, in nats per row: a proof of convergence.
    gate_ : Gate or None
    tempering_ : Tempering
        The power and what it gains.
    reliability_ : DataFrame or None
        How often the most probable combination of held-out rows was right, by its probability, for
        `tuplet.surface.plots.plot_calibration`; None beyond 1,024 combinations.

    Notes
    -----
    Ctrl-C ends the comparison and goes on with the models that were judged in all folds; pressed again it
    ends the fit.

    References
    ----------
    D. Wolpert, Stacked generalization, Neural Networks 5, 1992. P. Smyth, D. Wolpert, Linearly combining
    density estimators via stacking, Machine Learning 36, 1999.

    Examples
    --------
    >>> from tuplet import ChainClassifier, PowersetClassifier, load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> model = JointStackingClassifier([ChainClassifier(), PowersetClassifier()], cv=3).fit(X, y)
    >>> model.log_likelihood_ > max(model.log_likelihoods_.values()) - 1e-6
    True
    """

    _parameters = declare("columns cv temperature random_state n_jobs progress", models=MODELS, gate=bool)

    _feature_form = "raw"  # each model has its own view of them
    _keeps_frames = True
    _drops_unweighted = False  # cv may name rows by position

    def __init__(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        *,
        cv: Any = 5,
        gate: bool = False,
        temperature: bool = True,
        columns: ColumnChoices = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        progress: Show = "auto",
    ) -> None:
        self.models = models
        self.cv = cv
        self.gate = gate
        self.temperature = temperature
        self.columns = columns
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _estimators(self, names: tuple[str, ...] | None = None) -> list[Any]:
        return []

    # -- fitting ------------------------------------------------------------------------------------------

    def _fit(self, X: Features, codes: Codes, sample_weight: Floats | None) -> None:
        models = self._seeded(named_models(self.models))
        rows = Rows(X, codes, sample_weight, self.space_, self._groups)
        folds = folds_of(rows, self.cv)
        if isinstance(self.cv, (int, np.integer)):
            # A gate is judged by the folds itself, so one of them would not do.
            folds = enough_folds(folds, rows, at_least=2 if self.gate else 1)
        judged = self._judge_all(models, rows, folds)
        blend = find_blend(rows, folds, judged, gate=self.gate, temperature=self.temperature)
        self._keep(blend)
        self.weights_ = {name: blend.weights.get(name, 0.0) for name in models}
        fitted = run_many(fit_on, [(models[name], rows) for name in blend.names], self.n_jobs)
        self.models_ = dict(zip(blend.names, fitted, strict=True))

    def _seeded(self, models: dict[str, JointClassifier]) -> dict[str, Any]:
        if self.random_state is None:
            return dict(models)
        rng = np.random.default_rng(self.random_state)
        return {name: seeded(model, int(rng.integers(2**31 - 1))) for name, model in models.items()}

    def _judge_all(self, models: dict[str, Any], rows: Rows, folds: list[Fold]) -> dict[str, list[HeldOut]]:
        """Return what each model says of the rows of the folds; after an interrupt, of those done."""
        judged: dict[str, list[HeldOut]] = {}
        with Progress("Stacking", len(models), show=self.progress) as progress:
            try:
                for name, model in models.items():
                    tasks = [
                        (model, rows, fold, n_tables(rows.space.cards, len(fold.test))) for fold in folds
                    ]
                    judged[name] = run_many(judge, tasks, self.n_jobs)
                    progress.advance(name)
            except KeyboardInterrupt:
                if not judged:
                    raise
        return judged

    def _keep(self, blend: Blend) -> None:
        self.log_likelihoods_, self.log_likelihood_ = blend.alone, blend.log_likelihood
        self.log_likelihood_error_ = blend.error
        self.gap_, self.gate_, self.tempering_ = blend.gap, blend.gate, blend.tempering
        self.reliability_ = blend.reliability
        self._blend = blend

    # -- prediction ---------------------------------------------------------------------------------------

    def _predict_joint(self, X: Features) -> JointDistribution:
        return self._blend.joint(X, self.models_, self.label_counts_)

    # -- conventions --------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = all(get_tags(model).input_tags.sparse for model in self._known())
        return tags

    def _known(self) -> list[Any]:
        """Return the models, or none where they are not what they should be: tags are asked before fit."""
        try:
            return list(named_models(self.models).values())
        except InputError:
            return []


def named_models(models: Any) -> dict[str, JointClassifier]:
    """Return models by name, from a mapping, from (name, model) pairs, or from models alone."""
    pairs = list(_pairs(models))
    if not pairs:
        raise InputError("models is empty; pass at least one model, such as ChainClassifier().")
    for name, model in pairs:
        if not isinstance(model, JointClassifier):
            raise InputError(
                f"models must be models of Tuplet, but {name!r} is {model!r}; wrap a scikit-learn classifier"
                " in one, such as ChainClassifier(...)."
            )
    twice = [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]
    if twice:
        raise InputError(f"models: the name {twice[0]!r} comes more than once; give each model its own.")
    return dict(pairs)


def _pairs(models: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(models, Mapping):
        yield from ((str(name), model) for name, model in models.items())
        return
    entries = list(models)
    alone = [entry for entry in entries if not isinstance(entry, tuple)]
    count, seen = Counter(_called(entry) for entry in alone), Counter[str]()
    for entry in entries:
        if isinstance(entry, tuple) and len(entry) == 2:
            yield str(entry[0]), entry[1]
            continue
        name = _called(entry)
        seen[name] += 1
        yield (f"{name}-{seen[name]}" if count[name] > 1 else name), entry


def _called(model: Any) -> str:
    return type(model).__name__.removesuffix("Classifier").lower()

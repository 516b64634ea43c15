"""Growing a mixture: one component at a time, on the rows that the mixture so far explains badly."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np

from tuplet.core.exceptions import TupletWarning
from tuplet.core.progress import Progress, Show
from tuplet.core.typing import Floats
from tuplet.models.mixtures.em import EMInfo, EMSettings, MixtureState, Refit, run_em

PATIENCE = 2
"""Components that may come in vain, one after the other, before a mixture counts as grown: rows held out are
few, and what the paper takes for the end after one of them is often chance."""


class ComponentSource(Protocol):
    """Proposes structures and fits components to weighted rows."""

    def propose(self, weight: Floats, seen: Sequence[Any]) -> Any:
        """Return a structure for rows of these weights (n,), not one of those seen; None if none is left."""

    def fit(self, structure: Any, weight: Floats, start: Any = None) -> Any:
        """Fit a component of this structure; from a `start` its penalised log-likelihood never falls."""


@final
@dataclass(frozen=True)
class Growth:
    """A mixture and how it grew.

    Parameters
    ----------
    state : MixtureState
        The one that explains rows held out best; the last one if none were.
    infos : tuple of EMInfo
        The run after each component that was tried.
    validation : tuple of float
        Mean log-likelihood of the rows held out after each component that was tried; empty if none were.
    """

    state: MixtureState
    infos: tuple[EMInfo, ...]
    validation: tuple[float, ...]


def grow(
    source: ComponentSource,
    weight: Floats,
    held: Floats | None,
    n_components: int,
    settings: EMSettings,
    progress: Show = False,
) -> Growth:
    """Grow a mixture up to some number of components, or until rows held out are explained no better.

    Parameters
    ----------
    source : ComponentSource
    weight : array, shape (n,)
        Weights of the rows to learn from.
    held : array, shape (n,), or None
        Weights of the rows to validate with; None to grow to the end.
    n_components : int
    settings : EMSettings
    progress : bool or "auto"

    Notes
    -----
    An interrupt (Ctrl-C) ends the growth with a warning, once there is one component.
    """
    tried: list[MixtureState] = []
    infos: list[EMInfo] = []
    validation: list[float] = []
    refits = 0
    with Progress("Growing a mixture", n_components, show=progress) as line:
        try:
            while len(tried) < n_components and not _is_settled(validation) and refits < settings.max_refits:
                last = tried[-1] if tried else None
                omega = weight if last is None else _badly_explained(last, weight)
                structure = source.propose(omega, [] if last is None else last.structures)
                if structure is None:
                    break
                start = _extended(last, source.fit(structure, omega))
                state, info = run_em(start, _refit(source), weight, settings)
                infos.append(info)
                refits += info.n_iter * len(state.components)
                tried.append(state)
                if held is not None:
                    validation.append(float(held @ state.log_likelihood() / held.sum()))
                line.advance(f"{len(tried)} in the mixture")
        except KeyboardInterrupt:
            if not tried:
                raise
            _say_interrupted(f"{len(tried)} of at most {n_components} components")
    best = int(np.argmax(validation)) if validation else len(tried) - 1
    return Growth(tried[best], tuple(infos[: len(tried)]), tuple(validation))


def _say_interrupted(after: str) -> None:
    warnings.warn(
        f"fit: interrupted after {after}; the mixture is what it was then.", TupletWarning, stacklevel=3
    )


def _is_settled(validation: list[float]) -> bool:
    """Return whether the last components that were added brought nothing for rows held out."""
    return len(validation) > PATIENCE and max(validation[-PATIENCE:]) <= max(validation[:-PATIENCE])


def refit_all(
    make_source: Callable[[], ComponentSource],
    growth: Growth,
    responsibilities: Floats,
    weight: Floats,
    settings: EMSettings,
) -> tuple[MixtureState, EMInfo]:
    """Fit the parameters of a grown mixture to other rows or other weights of them, the structures fixed.

    EM starts from the responsibilities (n, K) of the mixture that was grown. An interrupt leaves what there
    is: at first the mixture as it was grown.
    """
    state, info = growth.state, growth.infos[-1]
    try:
        source = make_source()
        shares = weight[:, None] * responsibilities
        components = [source.fit(structure, shares[:, k]) for k, structure in enumerate(state.structures)]
        state = MixtureState.of(components, shares.sum(axis=0))
        info = EMInfo((state.objective(weight),), 0, False)
        return run_em(state, _refit(source), weight, settings)
    except KeyboardInterrupt:
        _say_interrupted("growing, while its parameters were fitted to all rows")
        return state, info


def _refit(source: ComponentSource) -> Refit:
    """Return the M step of one component; see `Refit`."""

    def refit(component: Any, weight: Floats) -> Any:
        return source.fit(component.structure, weight, component)

    return refit


def _badly_explained(state: MixtureState, weight: Floats) -> Floats:
    """Weights (n,) proportional to w_n (1 - P(y_n | x_n)), with the same sum."""
    omega = weight * -np.expm1(np.minimum(state.log_likelihood(), 0.0))
    total = omega.sum()
    return omega * (weight.sum() / total) if total > 0 else weight


def _extended(state: MixtureState | None, component: Any) -> MixtureState:
    """Add a component whose weight is the mean of all."""
    if state is None:
        return MixtureState.of([component], np.ones(1))
    weights = np.append(np.exp(state.log_weights), 1 / len(state.components))
    return MixtureState.of([*state.components, component], weights)

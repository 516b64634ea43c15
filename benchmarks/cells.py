"""One model on one table in a process of its own, within limits of time and memory; results are kept."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

TIME_LIMIT = 90
"""Seconds of CPU that a cell may take."""

MEMORY_LIMIT = 10 * 2**30
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def tuplet_model(name: str) -> Callable[[], Any]:
    """Return a maker of a model of the command line's list."""

    def make() -> Any:
        from tuplet.surface.cli.catalogue import MODELS

        return MODELS[name].make()

    return make


def tuplet_class(name: str) -> Callable[[], Any]:
    """Return a maker of a model with its default settings."""

    def make() -> Any:
        import tuplet.models

        return getattr(tuplet.models, name)()

    return make


def single_labels() -> Any:
    """Return the training frequencies of single labels."""
    from tuplet import PriorClassifier

    return PriorClassifier(strategy="marginals")


def stack() -> Any:
    """Return a stack of three."""
    from tuplet import ChainClassifier, IndependentClassifier, JointStackingClassifier, TreeClassifier

    return JointStackingClassifier([IndependentClassifier(), ChainClassifier(), TreeClassifier()])


MODELS: dict[str, Callable[[], Any]] = {
    "prior": tuplet_model("prior"),
    "prior of single labels": single_labels,
    "independent": tuplet_model("independent"),
    "powerset": tuplet_model("powerset"),
    "chain": tuplet_model("chain"),
    "ten chains": tuplet_model("chains"),
    "bayesnet": tuplet_model("bayesnet"),
    "tree": tuplet_model("tree"),
    "tree-mixture": tuplet_model("tree-mixture"),
    "tree ensemble": tuplet_class("TreeEnsembleClassifier"),
    "generative": tuplet_model("generative"),
    "random-field": tuplet_model("random-field"),
    "neighbors": tuplet_model("neighbors"),
    "shared-forest": tuplet_model("shared-forest"),
    "rules": tuplet_model("rules"),
    "probit": tuplet_model("probit"),
    "probit-forest": tuplet_model("probit-forest"),
    "stack of three": stack,
    "stacked features": tuplet_class("StackedFeaturesClassifier"),
    "weighted stacking": tuplet_class("WeightedStackingClassifier"),
    "instance logistic": tuplet_class("InstanceLogisticClassifier"),
    "output coding": tuplet_class("OutputCodingClassifier"),
}
"""All models with their default settings, but the automatic one, whose time is set by its budget."""


def measured(script: str, arguments: list[str], path: Path) -> dict[str, Any]:
    """Return the figures in a file; if there is none, `script` is called with the arguments and makes it."""
    path = path.with_name(path.name.replace(" ", "_"))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_run(script, arguments)))
        print(path.stem, path.read_text(), file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def _run(script: str, arguments: list[str]) -> dict[str, Any]:
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        command = [sys.executable, script, *arguments, str(path)]
        code = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode
        answer = json.loads(path.read_text()) if path.exists() else {}
    return {**answer, **reason_of(code, TIME_LIMIT)}  # what was measured before the end is kept


def reason_of(code: int | None, seconds: int) -> dict[str, str]:
    """Return why a process ended before its work did, by its exit code; nothing if it did not."""
    if not code:
        return {}
    return {"reason": f"over {seconds} CPU s" if code in (-24, -9) else f"exit code {code}"}


def work_within_limits(steps: Iterable[dict[str, Any]], path: Path, seconds: int = TIME_LIMIT) -> None:
    """Write what each step yields to a file, within the limits; an error is kept as the reason of the end."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    warnings.simplefilter("ignore")
    answer: dict[str, Any] = {}
    try:
        for answer in steps:
            path.write_text(json.dumps(answer))
    except MemoryError:
        answer = {**answer, "reason": "out of memory"}
    except Exception as error:
        answer = {**answer, "reason": f"{type(error).__name__}: {error}"}
    path.write_text(json.dumps(answer))


def peak() -> float:
    """Return the largest memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0

"""Workers of clusters: tasks of Dask and Ray, chosen with `joblib.parallel_config`.

Time limits, and stops, use the means of the engine. Neither engine reports steps from inside of a task.
"""

from __future__ import annotations

import os
import signal
import threading
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from joblib import parallel_config
from joblib.parallel import get_active_backend

from tuplet.core.processes import (
    LOOK,
    CrashedError,
    Message,
    Monitor,
    OverTimeError,
    StoppedError,
    answer,
    prepare,
    unpacked,
)


def cluster_workers() -> Callable[[], ClusterTask] | None:
    """Return a maker of workers on the cluster that joblib's backend stands for; None if it is no cluster."""
    backend = get_active_backend()[0]
    if type(backend).__name__ == "DaskDistributedBackend":
        return partial(ClusterTask, Dask(backend.client), {})
    if type(backend).__name__ == "RayBackend":
        return partial(ClusterTask, Ray(), {})
    return None


class Dask:
    """Tasks of Dask, which repeats those of a worker that is lost.

    A task cannot be ended alone: its worker is killed, and Dask starts it again and repeats its other tasks.
    """

    def __init__(self, client: Any) -> None:
        from distributed import Event

        self._client, self._event = client, Event

    def share(self, array: Any) -> Any:
        """Send an array to all workers: what only one had would be lost with it."""
        return self._client.scatter(array, broadcast=True, hash=False)

    def submit(self, data: bytes, shared: list[Any]) -> Any:
        """Hand in a task that calls `answer`, and sets an event before."""
        started = self._event(client=self._client)
        return self._client.submit(_dask_task, started.name, data, *shared, pure=False), started

    def is_started(self, task: Any) -> bool:
        """Wait a moment for the start of a task."""
        future, started = task
        if not started.wait(LOOK) and future.status == "pending":
            return False
        started.clear()
        return True

    def result(self, task: Any, time_limit: float | None) -> bytes:
        """Return the result of a task."""
        try:
            return task[0].result(timeout=time_limit)
        except TimeoutError:
            raise OverTimeError from None
        except (Exception, CancelledError) as error:
            raise CrashedError(f"Dask: {error}") from None

    def cancel(self, task: Any) -> None:
        """Kill the worker of a task, through the process that watches the worker and starts it again."""
        future, _ = task
        where = [address for address, keys in self._client.processing().items() if future.key in keys]
        future.cancel()
        if where:
            self._client.run(_kill_worker, workers=where, nanny=True, on_error="ignore")


def _dask_task(started: str, data: bytes, *shared: Any) -> bytes:
    from distributed import Event

    prepare()
    Event(started).set()
    return _answer_in_turn(data, shared)


def _kill_worker(dask_worker: Any) -> None:
    os.kill(dask_worker.pid, getattr(signal, "SIGKILL", signal.SIGTERM))


class Ray:
    """Tasks of Ray, each in a process that can be killed; a task whose process is lost is repeated once."""

    def __init__(self) -> None:
        import ray

        if not ray.is_initialized():
            ray.init()
        self._ray, self._task = ray, ray.remote(num_cpus=1, max_retries=1, num_returns="streaming")(_ray_task)

    def share(self, array: Any) -> Any:
        """Put an array into the object store, which sends it to each machine once."""
        return self._ray.put(array)

    def submit(self, data: bytes, shared: list[Any]) -> Any:
        """Hand in a task that calls `answer`, and has an empty result before."""
        return self._task.remote(data, *shared)

    def is_started(self, task: Any) -> bool:
        """Wait a moment for the start of a task."""
        with suppress(OverTimeError):
            self.result(task, LOOK)
            return True
        return False

    def result(self, task: Any, time_limit: float | None) -> bytes:
        """Return the next result of a task."""
        done, _ = self._ray.wait([task], timeout=time_limit)
        if not done:
            raise OverTimeError
        try:
            return self._ray.get(next(task))
        except (self._ray.exceptions.RayError, StopIteration) as error:
            raise CrashedError(f"Ray: {' '.join(str(error).split())}") from None

    def cancel(self, task: Any) -> None:
        """Kill the process of a task."""
        self._ray.cancel(task, force=True)


def _ray_task(data: bytes, *shared: Any) -> Iterator[bytes]:
    prepare()
    yield b""
    yield _answer_in_turn(data, shared)


def _answer_in_turn(data: bytes, shared: Iterable[Any]) -> bytes:
    """Do a piece of work, with what is parallel in it in turn."""
    with parallel_config(backend="sequential"):
        return answer(data, shared)


class ClusterTask:
    """A worker that hands in one task at a time; it has what `Process` has."""

    _sharing = threading.Lock()

    def __init__(self, engine: Dask | Ray, shared: dict[int, Any]) -> None:
        self._engine, self._shared = engine, shared
        self.used, self.answered, self.is_alive = False, False, True
        self._task: Any = None

    def wait(self, time_limit: float | None) -> None:
        """Return at once: a task is given to whatever worker is free."""

    def request(self, message: Message, time_limit: float | None, monitor: Monitor | None) -> Any:
        """Return the answer to a message, or raise what the work raised."""
        self.answered = False
        self._task = self._engine.submit(message.data, self._arrays(message))
        while not self._engine.is_started(self._task):
            if not self.is_alive:
                raise StoppedError
        reply = self._engine.result(self._task, time_limit) if monitor is None else self._follow(monitor)
        self.answered, self._task = True, None
        return unpacked(reply)

    def _follow(self, monitor: Monitor) -> bytes:
        """Wait for a result, or until the work is to stop: then it is lost."""
        while not monitor.stop:
            try:
                return self._engine.result(self._task, LOOK)
            except OverTimeError:
                continue
        raise StoppedError

    def _arrays(self, message: Message) -> list[Any]:
        """Return references to the large arrays of a message, which are sent once."""
        with self._sharing:
            for key, sent in list(self._shared.items()):
                # Dask loses an array with all workers that had it.
                lost = getattr(sent, "status", "finished") != "finished"
                if lost or key not in message.live:
                    del self._shared[key]
            for key, buffer in message.buffers:
                if key not in self._shared:
                    self._shared[key] = self._engine.share(np.frombuffer(buffer, np.uint8))
            return [self._shared[key] for key in message.keys]

    def kill(self) -> None:
        """End the task that is under way, if there is one."""
        self.is_alive = False
        if self._task is not None:
            self._engine.cancel(self._task)

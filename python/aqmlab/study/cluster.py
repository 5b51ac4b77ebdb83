"""Clusters of dask.distributed: the executor of one, and whether its workers have this aqmlab.

It needs the extra `cluster` (`pip install 'aqmlab[cluster]'`), here, on the scheduler and on
the workers; docs/cluster.md says how to start these.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aqmlab import libraries
from aqmlab.errors import ClusterError, input_error
from aqmlab.study.spread import Build, own_build

TIMEOUT_SECONDS = 10.0
"""Time limit for an answer of the scheduler."""
EXTRA = "dask.distributed is not installed: pip install 'aqmlab[cluster]'"


@dataclass(frozen=True)
class Worker:
    """A worker of a cluster."""

    address: str
    threads: int
    build: Build | None
    """Version of aqmlab; `None` without aqmlab or answer."""
    problem: str = ""
    """Why not."""

    @property
    def fits(self) -> bool:
        """True if its results equal those of this process."""
        return self.build == own_build()

    def to_json(self) -> dict[str, Any]:
        """{"address", "threads", "version", "engine", "fits", "problem"}."""
        return {
            "address": self.address,
            "threads": self.threads,
            "version": self.build.version if self.build else None,
            "engine": self.build.engine if self.build else None,
            "fits": self.fits,
            "problem": self.problem,
        }


@contextmanager
def connect(address: str) -> Iterator[Executor]:
    """An executor on the cluster whose scheduler is at `address`, `tcp://HOST:8786`.

    It may have no workers yet: runs wait for them. Raises `ClusterError` if there is no
    scheduler, if dask.distributed is not installed, or if a worker has another aqmlab.
    """
    with _client(address, "--cluster") as client:
        for worker in _workers(client):
            if not worker.fits:
                has = f"aqmlab {worker.build}" if worker.build else worker.problem
                hint = f"`aqmlab cluster check {address}` shows all"
                problem = f"worker {worker.address} has {has}, and this is {own_build()}"
                raise ClusterError(f"{problem} ({hint})")
        executor = client.get_executor(pure=False)
        executor.slots = lambda: sum(client.nthreads().values())
        executor.waits_for = f"`dask worker {address}` on a machine of the cluster starts one"
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


def workers(address: str) -> list[Worker]:
    """The workers of the cluster whose scheduler is at `address`. Raises `ClusterError`."""
    with _client(address, "ADDRESS") as client:
        return _workers(client)


def _workers(client: Any) -> list[Worker]:
    threads = client.nthreads()
    found = client.run(own_build, on_error="return")
    return [_worker(place, count, found.get(place)) for place, count in sorted(threads.items())]


def _worker(address: str, threads: int, answer: Any) -> Worker:
    if isinstance(answer, Build):
        return Worker(address, threads, answer)
    if isinstance(answer, ModuleNotFoundError):
        return Worker(address, threads, None, "no aqmlab (with its engine)")
    return Worker(address, threads, None, f"no answer ({type(answer).__name__}: {answer})")


@contextmanager
def _client(address: str, key: str) -> Iterator[Any]:
    if "://" not in address:
        problem = "expected the address of a scheduler such as tcp://HOST:8786"
        raise input_error(problem, key=key, given=address)
    try:
        distributed = libraries.distributed
    except ImportError as error:
        raise ClusterError(EXTRA) from error
    # Its destructor would close it once more, and wait for it where connecting was interrupted.
    kind = type("Client", (distributed.Client,), {"__del__": lambda _: None})
    try:
        client = kind(address, timeout=TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        problem = f"there is no scheduler at {address} ({str(error) or type(error).__name__})"
        raise ClusterError(problem) from error
    try:
        yield client
    finally:
        client.close(timeout=TIMEOUT_SECONDS)

"""A run in steps: go on to a moment, look, change something, go on, go back.

What is changed becomes an event of the scenario (`[[changes]]`), so the scenario that a run
leaves gives the same results when it is run from its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import _core
from aqmlab import scenario as typed
from aqmlab.errors import input_error
from aqmlab.scenario.quantities import quantity
from aqmlab.study.single import load

if TYPE_CHECKING:
    from aqmlab.results import RunResult

__all__ = ["Run"]


class Run:
    """A run of a scenario that has begun and not ended.

    `source` is what `aqmlab.run` takes; `set` maps dotted keys to values from the start on, `seed`
    takes the place of the scenario's, `replication` chooses another draw of the same seed. A run
    belongs to the thread that made it.

    Raises `InputError` for whatever is wrong in them.
    """

    def __init__(
        self,
        source: str | Path | Mapping[str, Any] | _core.Scenario | typed.Scenario,
        *,
        set: Mapping[str, Any] | None = None,
        seed: int | None = None,
        replication: int = 0,
    ) -> None:
        overrides = dict(set or {})
        if seed is not None:
            overrides["seed"] = seed
        self._run = _core.Run(load(source, overrides), replication)
        self._digest: str | None = None

    def __repr__(self) -> str:
        if self._digest is not None:
            return f"<Run: over, digest {self._digest}>"
        return f"<Run: at {self.time:g} s>"

    @property
    def time(self) -> float:
        """The virtual time that the run has come to, in seconds."""
        return self._run.time

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens."""
        return self._digest is not None or self._run.next_time is None

    @property
    def scenario(self) -> _core.Scenario:
        """The scenario with all that was changed. `.to_toml()` is a file of it."""
        return self._run.scenario

    def advance(self, until: float | str) -> None:
        """Lets happen all that is before `until`: seconds, or a time such as `"1.5s"`. What is at
        that very moment is still to come. A time that has passed changes nothing."""
        self._run.advance(_seconds(until))

    def step(self) -> float | None:
        """Lets the next event happen; returns its time in seconds, or `None` at the end."""
        return self._run.step()

    def set(self, key: str, value: Any) -> float:
        """Gives a key another value from now on; returns the time of the change in seconds.

        `links.NAME.rate`, `.delay`, `.queue` and the keys below that change a link (`queue` means
        the bottleneck's); `flows.NAME` with a table adds a group of flows, and
        `flows.NAME.active` with `False` stops one. A parameter of a queue is written while the
        queue goes on: packets and the state of its control stay (`tc qdisc change`). A value that
        is the present one does nothing. Costs the same however many changes there were. Raises
        `InputError`, and changes nothing, if the key cannot change or has no such value.
        """
        return self._run.set(key, value)

    def replace(self, key: str, value: Any) -> float:
        """As `set`, of a queue or a key of it: a new queue, with a new state, takes over the
        packets of the old one, also if its parameters are equal."""
        return self._run.replace(key, value)

    def snapshot(self) -> _core.Snapshot:
        """Where the run is: its scenario and how far it has come."""
        return self._run.snapshot()

    def restore(self, snapshot: _core.Snapshot) -> None:
        """Goes back to a snapshot, with the scenario of that time. The run is repeated up to there,
        which takes as long as it did."""
        self._run.restore(snapshot)

    def rewind(self, to: float | str, *, forget: bool = False) -> None:
        """Goes back to a moment. Later changes happen again, unless they are to be forgotten."""
        self._run.rewind(_seconds(to))
        if forget:
            self._run.drop_later_changes()

    def observe(self) -> dict[str, Any]:
        """The state now: `links`, by name, and `flows`, a list of those that are active.

        Of a link there are `backlog_packets`, `backlog_bytes`, the counts `dropped`, `marked`,
        `delivered_packets` and `delivered_bytes`, and what its discipline shows
        (`drop_probability`, `dropping`, ...); of a flow its `group`, `delivered_bytes`, and what
        its sender shows (`cwnd_bytes`, `smoothed_rtt_s`, ...). Times are seconds.
        """
        return self._run.observe()

    def finish(self) -> RunResult:
        """Goes on to the end and returns the tables. The run is over then."""
        from aqmlab.results import RunResult, in_memory, resolved
        from aqmlab.tables import MemoryTables

        scenario = self._run.scenario
        results, self._digest = self._run.finish()
        return RunResult(MemoryTables(in_memory([results])), resolved(scenario.resolved))

    @property
    def digest(self) -> str:
        """A number, in hexadecimal digits, that names all that the tables are made of: the same
        wherever the same scenario has run. Of a run that is finished."""
        if self._digest is None:
            raise input_error("the run is not finished", hint="call finish() first")
        return self._digest


def _seconds(time: float | str) -> float:
    if isinstance(time, str):
        return quantity(time, "delay", "time")
    return float(time)

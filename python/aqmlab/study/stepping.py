"""Runs in steps: advance, observe, change, rewind.

Each change becomes an event of the scenario (`[[changes]]`), so running the final scenario from
its start gives the same results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, SupportsIndex

from aqmlab import _core
from aqmlab import scenario as typed
from aqmlab.errors import input_error
from aqmlab.scenario.parts import plain
from aqmlab.scenario.quantity import quantity
from aqmlab.scenario.settings import mapping_of, whole
from aqmlab.study.single import load

if TYPE_CHECKING:
    from aqmlab.results import RunResult

LATEST = 1e10
"""The engine's largest time in seconds."""


class Run:
    """A run in progress, which can be advanced, observed, changed and rewound.

    It can be used only in the thread that created it. After an error of your own queue, control or
    endpoint, or without progress in virtual time, it is over.

    Parameters
    ----------
    source : path, mapping or Scenario
        As in `aqmlab.run`.
    set : mapping, optional
        Settings by dotted key, in force from the start.
    seed : int, optional
        Seed of all random streams. Default: that of the scenario.
    replication : int, default 0
        Replication number: another draw of the same seed.

    Raises
    ------
    InputError
        If an argument or the scenario is invalid.

    Examples
    --------
    >>> run = aqmlab.Run("scenario.toml")
    >>> run.advance("5s")
    >>> run.set("links.down.rate", "5mbit")
    >>> result = run.finish()
    """

    def __init__(
        self,
        source: str | Path | Mapping[str, Any] | _core.Scenario | typed.Scenario,
        *,
        set: Mapping[str, Any] | None = None,
        seed: SupportsIndex | None = None,
        replication: SupportsIndex = 0,
    ) -> None:
        overrides = mapping_of(set, "set")
        if seed is not None:
            overrides["seed"] = whole(seed, 0, "seed")
        scenario = load(source, overrides)
        self._take(_core.Run(scenario, whole(replication, 0, "replication")))

    def __repr__(self) -> str:
        if self._digest is not None:
            return f"<Run: over, digest {self._digest}>"
        return "<Run: over>" if self.is_over else f"<Run: at {self.time:g} s>"

    @property
    def time(self) -> float:
        """Current virtual time in seconds."""
        return self._run.time

    @property
    def is_over(self) -> bool:
        """True if no event is left, or the run ended with an error."""
        return self._run.next_time is None

    @property
    def scenario(self) -> _core.Scenario:
        """The scenario with all changes so far; `to_toml()` returns it as text."""
        return self._run.scenario

    def advance(self, until: float | str) -> None:
        """Handles all events before a time; events at exactly that time remain pending.

        Parameters
        ----------
        until : float or str
            Virtual time in seconds, or a text such as `"1.5s"`. A past time has no effect.
        """
        self._run.advance(_seconds(until))

    def step(self) -> float | None:
        """Handles the next event and returns its time in seconds, or None at the end."""
        return self._run.step()

    def set(self, key: str, value: Any) -> float:
        """Changes a key of the scenario from now on.

        A changed parameter of a queue keeps its packets and state, as `tc qdisc change` does. An
        equal value has no effect.

        Parameters
        ----------
        key : str
            `links.NAME.rate`, `.delay`, `.loss`, `.queue` or `.queue.PARAMETER` (`queue` is that of
            the bottleneck), `flows.NAME` to add a group, `flows.NAME.active = false` to stop one,
            `flows.NAME.transport.KEY` for congestion control, pacing and ECN of its connections,
            `flows.NAME.INDEX.transport.KEY` for those of one flow, counted from 0.
        value
            Text, number, bool, table, or object of `aqmlab.scenario`.

        Returns
        -------
        float
            Virtual time of the change in seconds.

        Raises
        ------
        InputError
            If the key cannot change during a run, or the value is invalid; nothing is changed.
        """
        return self._run.set(key, plain(value))

    def replace(self, key: str, value: Any) -> float:
        """Starts a new queue, with a new state, that takes over the packets of the old one.

        Arguments, result and errors are those of `set`, for a queue or one of its parameters. An
        equal value also starts a new queue.
        """
        return self._run.replace(key, plain(value))

    def act(
        self,
        flow: str,
        *,
        index: int | None = None,
        cwnd: float | None = None,
        pacing_rate: float | None = None,
    ) -> float:
        """Sets window and rate of TCP flows from now on, for an external controller.

        The flows continue with the congestion control `steered`. `observe` reports its counters:
        `acked_bytes`, `lost_bytes`, `acks`, `marked_acks`, `timeouts`, `rtt_samples`, `rtt_sum_s`,
        `rtt_s` and `min_rtt_s`.

        Parameters
        ----------
        flow : str
            Name of the group.
        index : int, optional
            Flow of the group, from 0. Default: all its flows.
        cwnd : float, optional
            Congestion window of each flow in bytes. Default: none; then `pacing_rate` is required.
        pacing_rate : float, optional
            Rate of each flow in bit/s on the wire. Default: not paced.

        Returns
        -------
        float
            Virtual time of the change in seconds.

        Raises
        ------
        InputError
            If the group has no TCP flows or not this one, or a value is not positive.
        """
        for key, value in (("cwnd", cwnd), ("pacing_rate", pacing_rate)):
            if value is not None and not 0 < value < math.inf:
                raise input_error("expected a number above 0", key=key, given=value)
        if cwnd is None and pacing_rate is None:
            raise input_error("expected this, pacing_rate or both", key="cwnd")
        control: dict[str, Any] = {"algorithm": "steered", "window": "unlimited"}
        if cwnd is not None:
            control["window"] = f"{round(cwnd)}b"
        if pacing_rate is not None:
            control["pacing_rate"] = f"{round(pacing_rate)}bit"
        which = flow if index is None else f"{flow}.{index}"
        return self.set(f"flows.{which}.transport.congestion_control", control)

    def samples(self, flow: str, index: int | None = None) -> dict[str, list[float]]:
        """Returns the acknowledgements that steered senders received since the last call.

        The first call returns none and begins to record; without it nothing is recorded.

        Parameters
        ----------
        flow : str
            Name of a group that `act` has steered.
        index : int, optional
            Flow of the group, from 0. Default: all its flows.

        Returns
        -------
        dict
            Columns, in the order of time, with one value for each acknowledgement that delivers
            data or reports marks: `time_s`; `rtt_s` (NaN without a measurement); the newly
            `acked_bytes` (cumulatively), `delivered_bytes` (also by SACK) and `lost_bytes`;
            `in_flight_bytes` after it; `marked` (1 with ECE), `ce_packets` (accurate ECN);
            `app_limited` (1 if its segment was sent when the application had no more data).

        Raises
        ------
        InputError
            If there is no such flow, or no congestion control is `steered`.
        """
        if index is not None and index < 0:
            raise input_error("expected a number from 0", key="index", given=index)
        return self._run.samples(flow, index)

    def snapshot(self) -> _core.Snapshot:
        """Returns a snapshot of the run, for `restore`: a copy of its state.

        With endpoints of QUIC libraries, which cannot be copied, this and `restore` repeat the run.
        Their controllers `bbr` and `bbr3` draw other random numbers then, so the state differs.

        Raises
        ------
        CustomError
            If a queue or congestion control in Python cannot be copied by `copy.deepcopy`.
        """
        return self._run.snapshot()

    def restore(self, snapshot: _core.Snapshot) -> None:
        """Returns to a snapshot of this run or of another one, with the scenario of that time.

        The cost is that of copying the state, at any time of the run; see `snapshot`.
        """
        self._run.restore(snapshot)

    def fork(self) -> Run:
        """Returns an independent copy of the run in its current state, as `copy.copy` does.

        Errors are those of `snapshot`.
        """
        return Run._of(self._run.fork())

    @classmethod
    def _of(cls, run: _core.Run) -> Run:
        made = cls.__new__(cls)
        made._take(run)
        return made

    def _take(self, run: _core.Run) -> None:
        self._taken, self._thread = run, get_ident()
        self._digest: str | None = None

    @property
    def _run(self) -> _core.Run:
        """The engine's run, which panics in another thread."""
        if get_ident() != self._thread:
            problem = "a run can be used only in the thread that created it"
            raise input_error(problem, hint="a pickle of it can be loaded in another")
        return self._taken

    __copy__ = fork

    def __deepcopy__(self, memo: object) -> Run:
        return self.fork()

    def __reduce__(self) -> tuple[Any, ...]:
        """Stores the scenario with its changes, and the time; loading repeats the run."""
        scenario = self._run.scenario
        return _repeated, (scenario.to_toml(), scenario.folders, self._run.position)

    def rewind(self, to: float | str, *, forget: bool = False) -> None:
        """Returns to an earlier time by repeating the run; `restore` is faster.

        Parameters
        ----------
        to : float or str
            Virtual time in seconds, or a text such as `"1.5s"`.
        forget : bool, default False
            Discards later changes; otherwise they apply again.
        """
        self._run.rewind(_seconds(to))
        if forget:
            self._run.drop_later_changes()

    def observe(self) -> dict[str, Any]:
        """Returns the current state.

        Returns
        -------
        dict
            `links` by name, each with `backlog_packets`, `backlog_bytes`, the counts `dropped`,
            `marked`, `delivered_packets` and `delivered_bytes`, and the state of its discipline
            (`drop_probability`, ...). `flows` is a list of the active flows, each with `group`,
            `index` in the group, `delivered_bytes` and the state of its sender (`cwnd_bytes`,
            `smoothed_rtt_s`, ...). Times are in seconds.
        """
        return self._run.observe()

    def finish(self) -> RunResult:
        """Runs to the end and returns the tables (`RunResult`).

        Afterwards only `is_over` and `digest` remain; others raise `InputError`, as a second call
        does.
        """
        from aqmlab.results import RunResult

        scenario = self._run.scenario
        results, self._digest = self._run.finish()
        return RunResult.of([results], scenario)

    @property
    def digest(self) -> str:
        """Digest of the results in hexadecimal digits, equal on every machine.

        Raises `InputError` before `finish`.
        """
        if self._digest is None:
            raise input_error("the run is not finished", hint="call finish() first")
        return self._digest


def _repeated(toml: str, folders: list[str], position: tuple[int, int, int, int]) -> Run:
    return Run._of(_core.Run.repeat(_core.Scenario(toml, folders=folders), position))


def _seconds(time: float | str) -> float:
    if isinstance(time, str):
        return quantity(time, "delay", "time")
    seconds = float(time)
    if not 0 <= seconds <= LATEST:
        problem = f"expected seconds from 0 to {LATEST:g}, or a text such as 1.5s"
        raise input_error(problem, key="time", given=time)
    return seconds

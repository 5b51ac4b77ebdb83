"""Scenarios with real packets: the kernel's own TCP and UDP, played by the built-in client and
server between hosts of our own, behind the scenario's links. Starts, gaps and sizes are those
of the simulator.

The engine makes a copy of the process, which must have one thread: nothing here, and nothing
that was imported before, may use numpy or polars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import _core
from aqmlab.emulator.recordings import NOTHING, Recordings
from aqmlab.errors import input_error
from aqmlab.scenario.settings import parse_toml, read_text

if TYPE_CHECKING:
    from aqmlab.emulator.parity import Parity

SIMULATOR, EMULATOR = "simulator", "emulator"
CONTROLS = ("cubic", "reno", "bbr")
"""Congestion controls that kernels have."""

Job = tuple[int, _core.Scenario, int]
"""Number of the run, scenario, replication."""


def linux(control: str) -> dict[str, Any]:
    """Settings that make simulated senders those of the kernel."""
    if control not in CONTROLS:
        hint = f"one of {', '.join(CONTROLS)}"
        raise input_error("no such congestion control", key="--control", given=control, hint=hint)
    return {
        "transport.profile": "linux-6.12",
        "transport.congestion_control": control,
        "transport.receive_window": "auto",
    }


def played(
    jobs: Sequence[Job],
    settings: Mapping[str, Any] | None = None,
    told: Callable[[int, int], None] | None = None,
    recorded: Recordings = NOTHING,
) -> Iterator[_core.Emulation]:
    """Runs the jobs with real packets, in sequence and in real time.

    `told` is called with the number of the next and of all.
    """
    for _, scenario, _ in jobs:
        _core.check_playable(scenario)
    for number, (run, scenario, replication) in enumerate(jobs):
        if told:
            told(number, len(jobs))
        yield _core.play(
            scenario,
            run=run,
            replication=replication,
            settings=dict(settings or {}),
            **recorded.of_run(number + 1, scenario),
        )


def states_transport(table: Mapping[str, Any]) -> bool:
    """Whether a scenario says anything of its senders."""
    flows = table.get("flows", {}).values()
    return "transport" in table or any("transport" in flow for flow in flows)


def parity(
    file: Path,
    *,
    settings: Mapping[str, Any],
    control: str | None = None,
    repeat: int = 1,
    out: Path | None = None,
    emulator: Mapping[str, Any] | None = None,
    told: Callable[[int, int], None] | None = None,
    recorded: Recordings = NOTHING,
) -> Parity:
    """Runs a scenario file in the emulator and in the simulator, `repeat` times each.

    Without `control` the congestion control is the scenario's; a scenario that says nothing
    of its senders has Linux's. `settings` are dotted keys of the scenario, `emulator`
    those of the section `emulator` of the reference. With `out`, the tables are kept there.
    `recorded` is of the emulator's runs.

    Raises `InputError` for what is wrong in the scenario, for workloads and congestion
    controls that cannot be had with real sockets, and if the system permits no emulation.
    """
    from aqmlab.study import Study

    table = parse_toml(read_text(file), str(file))
    senders: dict[str, Any] = {}
    if control is not None or not states_transport(table):
        senders = linux(control or "cubic")
    overrides = {"record.level": "series"} | senders | dict(settings)
    axis = {"name": "by", "values": [{"label": by, "set": {}} for by in (SIMULATOR, EMULATOR)]}
    study = Study(
        {
            "name": file.stem,
            "title": f"{file.stem}: simulated and with real packets",
            "replications": repeat,
            "scenario": str(file.resolve()),
            "axes": [axis],
        },
        set=overrides,
    )
    real = study.points[1].scenario
    jobs = [(repeat + number, real, number) for number in range(repeat)]
    done = list(played(jobs, emulator, told, recorded))
    from aqmlab.emulator.parity import put_together

    return put_together(study, done, out)


def lateness(done: Iterable[_core.Emulation]) -> float:
    """The largest of the 99th percentiles."""
    return max((each.lateness["p99_s"] for each in done), default=float("nan"))


def remarks(done: Iterable[_core.Emulation]) -> tuple[str, ...]:
    """What the emulations have to say, each once."""
    return tuple(dict.fromkeys(text for each in done for text in each.remarks))

"""Parity: a scenario in the simulator and in the emulator, side by side (`aqmlab parity`).

Nothing here uses numpy or polars before the real packets have been sent (`aqmlab.emulator`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.emulator import played
from aqmlab.emulator.keep import NOTHING, Recordings
from aqmlab.errors import input_error
from aqmlab.scenario.settings import parse_toml, read_text

if TYPE_CHECKING:
    from aqmlab.packs.parity.pack import Parity

SIMULATOR, EMULATOR = "simulator", "emulator"
CONTROLS = ("cubic", "reno", "bbr")
"""Congestion controls that kernels have."""


def linux(control: str) -> dict[str, Any]:
    """Settings that make simulated senders those of the kernel."""
    if control not in CONTROLS:
        hint = f"one of {', '.join(CONTROLS)}"
        raise input_error("no such congestion control", key="control", given=control, hint=hint)
    return {
        "transport.profile": "linux-6.12",
        "transport.congestion_control": control,
        "transport.receive_window": "auto",
    }


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
    named = "transport" in table or any("transport" in f for f in table.get("flows", {}).values())
    if control is not None or not named:
        senders = linux(control or "cubic")
    overrides = {"record.level": "series"} | senders | dict(settings)
    axis = {"name": "by", "values": [{"label": by, "set": {}} for by in (SIMULATOR, EMULATOR)]}
    study = Study(
        {
            "name": file.stem,
            "title": f"{file.stem}: simulated and with real packets",
            "replications": repeat,
            "scenario": str(file),
            "axes": [axis],
        },
        set=overrides,
    )
    real = study.points[1].scenario
    jobs = [(repeat + number, real, number) for number in range(repeat)]
    done = list(played(jobs, emulator, told, recorded))
    from aqmlab.packs.parity.pack import put_together

    return put_together(study, done, out)

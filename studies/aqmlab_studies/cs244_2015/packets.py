"""The steps with real packets (`--emulate`), beside the same steps simulated.

The emulated runs are shorter than the document's, so they are compared with simulated ones of
their own length: slow start and what a jump costs weigh more in short steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from aqmlab._core import parse_value
from aqmlab.errors import input_error
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.reproduce.verdicts import Criterion
from aqmlab.stats import SHARE
from aqmlab_studies.cs244_2015.curves import CODEL, RATES, TAIL, average, settings, shares, told
from aqmlab_studies.shared import mean_table

POINTS = Criterion(0.03, relative=False)
"""Emulated and simulated shares that differ by no more than this agree: the project's aim."""
DEFAULT_STEP = "5s"
SAMPLES = 100
"""Samples of the series in each step, as in the whole study."""
SIMULATED, REAL = "simulated", "real packets"
COLOURS = {SIMULATED: "#2f6fbb", REAL: "#ef9232"}


def shortened(step: str | None) -> dict[str, Any]:
    """The settings that make every step so long."""
    text = step or DEFAULT_STEP
    seconds = _seconds(text)
    if seconds is None or not 0.5 <= seconds <= 50:
        hint = "from 500ms to 50s, the document's own"
        raise input_error("expected the length of a step", key="step", given=text, hint=hint)
    steps = [[f"{number * seconds:g}s", f"{rate}mbit"] for number, rate in enumerate(RATES)]
    return {
        "duration": f"{len(RATES) * seconds:g}s",
        "links.down.rate": {"steps": steps},
        "record.interval": f"{1e3 * seconds / SAMPLES:g}ms",
    }


def _seconds(text: str) -> float | None:
    for unit, factor in (("ms", 1e-3), ("s", 1.0), ("", 1.0)):
        if text.endswith(unit):
            value = parse_value(text.removesuffix(unit))
            return factor * value if isinstance(value, (int, float)) else None
    return None


def _duration(part: Measurements) -> str:
    return str(part.result.scenarios[0]["duration"])


def tables(measured: Measurements) -> list[CellTable]:
    """The document's shares beside all of ours, and real packets beside simulated ones."""
    real, short = measured.part("emulated"), measured.part("short")
    simulated = [measured.part(name) for name in ("study", "short") if name in measured.parts]
    columns = {f"simulated, {_duration(part)}": part for part in simulated}
    columns[f"{REAL}, {_duration(real)}"] = real
    shown, beside = [], []
    for labels in settings(real):
        for queue, printed in ((TAIL, 0.97), (CODEL, 0.88)):
            row = f"{queue}: {told(labels)}"
            for name, part in columns.items():
                if part.has(queue=queue, **labels):
                    values = shares(part, queue=queue, **labels)
                    shown.append(Cell.mean(row, name, printed, values, POINTS, SHARE))
            ours = float(shares(short, queue=queue, **labels).mean())
            values = shares(real, queue=queue, **labels)
            beside.append(Cell.mean(told(labels), queue, ours, values, POINTS, SHARE))
    share = "Share of the possible bytes"
    return [
        mean_table("packets", f"{share}: the document, simulated, real packets", "share", shown),
        mean_table(
            "packets-simulated",
            f"{share} with real packets, {_duration(real)}",
            "share",
            beside,
            "the simulator, same steps",
        ),
    ]


def causes(measured: Measurements) -> Iterator[Cause]:
    """Precision of the emulator, and its differences to the simulator."""
    real, short = measured.part("emulated"), measured.part("short")
    late = float(real.result.times.filter(quantity="lateness")["p99_s"].max())  # type: ignore[arg-type]
    apart = {
        f"{told(labels)}, {queue}": 100
        * float(
            shares(real, queue=queue, **labels).mean() - shares(short, queue=queue, **labels).mean()
        )
        for labels in settings(real)
        for queue in (TAIL, CODEL)
    }
    listed = "; ".join(f"{name} {points:+.1f}" for name, points in apart.items())
    yield Cause(
        "Real packets and simulated ones",
        f"The same queues, links and requests, the kernel's own TCP instead of ours. Points "
        f"of the share that real packets have more (steps of {_duration(real)} in all): {listed}. "
        f"One packet in a hundred left the emulator more than {1e6 * late:.0f} µs late, in the "
        "worst of the runs. Bulk flows alone go many ways after the first overshoot of slow start: "
        "the study's own page has the range of simulated runs, and the experiments.",
    )


def figures(measured: Measurements) -> Iterator[Figure]:
    """Delay and throughput over time, one over the other."""
    real, short = measured.part("emulated"), measured.part("short")
    parts = {SIMULATED: short, REAL: real}
    for labels in settings(real):
        panels = []
        for queue in (TAIL, CODEL):
            for title, quantity, factor in (
                ("delay (ms)", "sojourn_mean_s", 1e3),
                ("Mbit/s", "throughput_bps", 1e-6),
            ):
                curves = {}
                for name, part in parts.items():
                    times, values = average(part, quantity, queue=queue, **labels)
                    curves[name] = (times, factor * np.nan_to_num(values))
                panels.append((f"{queue}: {title}", curves, COLOURS))
        end = float(max(curves[name][0][-1] for name in parts))
        ident = told(labels).lower().replace(", ", "-").replace(" ", "-")
        yield Figure(
            f"packets-{ident}",
            f"Real packets and simulated ones: {told(labels)}",
            "The same steps, queues and requests; the kernel's TCP instead of the simulated one.",
            f"Simulated: means over {short.replications} replications.",
            charts.panels(panels, "time (s)", x_domain=(0, end)),
        )

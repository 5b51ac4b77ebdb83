"""The parity grid: controls, queues and paths, simulated and with real packets, as a page.

python -m tools.parity PAGE.md [--only LABEL] [--repeat N] [--duration TIME]
                                [--at-once N] [--out DIR]

Each cell is one `aqmlab parity --json`, kept in the folder; a cell that is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import aqmlab
from aqmlab import stats, storage
from aqmlab.metrics.samples import Floats
from aqmlab.packs.parity import EMULATOR, SIMULATOR
from aqmlab.scenario import Duration
from aqmlab_studies.linux2026.recorded import runs
from tools import parity_bursts

SCENARIO = Path(__file__).parent / "parity.toml"
OUT = Path("results/parity-grid")
CONTROLS = {"CUBIC": "cubic", "Reno": "reno", "BBR": "bbr"}
PATHS = {
    "10 Mbit/s, 80 ms": ("10mbit", "40ms"),
    "50 Mbit/s, 40 ms": ("50mbit", "20ms"),
    "100 Mbit/s, 10 ms": ("100mbit", "5ms"),
}
LIMITS = {"10 Mbit/s, 80 ms": "99p", "50 Mbit/s, 40 ms": "249p", "100 Mbit/s, 10 ms": "124p"}
"""Limit of the FIFO in packets."""
QUEUES = ("FIFO", "CoDel", "PIE")
SEGMENT, PACKET = 1448, 1500
FIRST, SECOND = ("first", "goodput"), ("second", "goodput")
ALIKE, DIFFERS, FEW = "alike", "differs", "too few runs"
ENOUGH = 5
"""With fewer runs intervals are too wide to say anything."""


Measures = Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
"""Subject and metric to the values of the runs, by what ran them."""


def measured(result: Mapping[str, Any]) -> Measures:
    """Measures in an output of `aqmlab parity --json`."""
    (question,) = result["questions"]
    found: dict[tuple[str, str], dict[str, Sequence[float]]] = {}
    for each in question["contenders"]:
        for reading in each["readings"]:
            key = reading["subject"], reading["metric"]
            found.setdefault(key, {})[each["name"]] = reading["values"]
    return found


@dataclass(frozen=True)
class Quantity:
    """Something that is compared, one value a run."""

    name: str
    unit: str
    digits: int

    def of(self, measures: Measures, by: str) -> Floats:
        """Values of the simulator's or the emulator's runs."""
        if self.name == "goodput":
            both = [np.asarray(measures[flow][by], dtype=float) for flow in (FIRST, SECOND)]
            total: Floats = 1e-6 * (both[0] + both[1])
            return total
        key, factor = (
            (("down", "sojourn_p50"), 1e3)
            if self.name == "median delay"
            else (("down", "drop_share"), 1e2)
        )
        return factor * np.asarray(measures[key][by], dtype=float)

    def step(self, rate: float, simulated: float) -> float:
        """Within this much two means are the same: 5 % of the goodput, the transmission of a
        packet, a tenth of a percentage point of drops."""
        transmission = 8e-3 * PACKET / rate
        return {"goodput": 0.05 * simulated, "median delay": transmission}.get(self.name, 0.1)


QUANTITIES = (
    Quantity("goodput", "Mbit/s", 2),
    Quantity("median delay", "ms", 2),
    Quantity("drop share", "%", 3),
)


@dataclass(frozen=True)
class Cell:
    """One control, queue and path."""

    control: str
    queue: str
    path: str

    @property
    def label(self) -> str:
        """Name for `--only`, in part or in full."""
        return f"{self.control}, {self.queue}, {self.path}"

    @property
    def file(self) -> str:
        """Name of the file with the results."""
        words = self.label.lower().replace("/", "p").replace(",", "").split()
        return "-".join(words) + ".json"

    @property
    def settings(self) -> dict[str, str]:
        """Settings of the scenario."""
        rate, delay = PATHS[self.path]
        path = {"links.down.rate": rate, "links.down.delay": delay, "links.up.delay": delay}
        if self.queue == "FIFO":
            return {**path, "queue": "droptail", "queue.limit": LIMITS[self.path]}
        return {**path, "queue": self.queue.lower(), "queue.variant": "linux"}

    def command(self, repeat: int, duration: str, folder: Path) -> list[str]:
        """Command that runs it."""
        warmup = {"record.warmup": Duration(duration) / 4}
        settings = (f"{key}={value}" for key, value in {**self.settings, **warmup}.items())
        chosen = [word for each in settings for word in ("--set", each)]
        return [
            *(sys.executable, "-m", "aqmlab", "parity", str(SCENARIO), *chosen),
            *("--control", CONTROLS[self.control], "--repeat", str(repeat)),
            *("--duration", duration, "--out", str(folder / self.file.removesuffix(".json"))),
            "--json",
        ]

    def recorded(self) -> dict[str, Floats] | None:
        """The same recorded in virtual time, if it was (study linux2026)."""
        queue = "pfifo" if self.queue == "FIFO" else self.queue
        rate = self.path.partition(",")[0]
        try:
            kept = runs(self.control, f"{queue}, {rate}")
        except KeyError:
            return None
        drops = np.array([each["drops"] for each in kept], dtype=float)
        sent = [1e6 * sum(map(sum, each["seconds"])) / 8 / SEGMENT for each in kept]
        return {
            "goodput": np.array([sum(each["goodput"]) for each in kept]),
            "median delay": np.array([each["delays"][2] for each in kept]),
            "drop share": 1e2 * drops / (np.array(sent) + drops),
        }


DIFFERED = (
    Cell("CUBIC", "PIE", "50 Mbit/s, 40 ms"),
    Cell("CUBIC", "PIE", "10 Mbit/s, 80 ms"),
    Cell("BBR", "PIE", "10 Mbit/s, 80 ms"),
    Cell("Reno", "CoDel", "10 Mbit/s, 80 ms"),
)
"""Cell in which single runs differed, and a recorded cell of the same control and queue."""


def cells(only: Sequence[str] = ()) -> list[Cell]:
    """All cells, or those whose labels contain every word of `only`."""
    found = [Cell(*each) for each in product(CONTROLS, QUEUES, PATHS)]
    return [cell for cell in found if all(word in cell.label for word in only)]


def measure(cell: Cell, folder: Path, repeat: int, duration: str) -> dict[str, Any]:
    """Runs a cell, or reads its results."""
    file = folder / cell.file
    if not file.exists():
        done = subprocess.run(
            cell.command(repeat, duration, folder), stdout=subprocess.PIPE, text=True, check=True
        )
        folder.mkdir(parents=True, exist_ok=True)
        storage.replace(file, storage.content(done.stdout.encode()))
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def verdict(quantity: Quantity, simulated: Floats, real: Floats, rate: float) -> str:
    """Alike if the intervals of both means overlap, or the means are within the step."""
    apart = abs(float(simulated.mean() - real.mean()))
    if apart <= quantity.step(rate, float(simulated.mean())):
        return ALIKE
    if min(simulated.size, real.size) < ENOUGH:
        return FEW
    one, other = (stats.interval(values, bounds=stats.POSITIVE) for values in (simulated, real))
    if one is None or other is None:
        return FEW
    overlap = one.low <= other.high and other.low <= one.high
    return ALIKE if overlap else DIFFERS


def rows(found: Mapping[Cell, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row a cell and quantity: simulated, real, recorded, the verdict."""
    for cell, result in found.items():
        measures = measured(result)
        rate, recorded = float(cell.path.split()[0]), cell.recorded()
        for quantity in QUANTITIES:
            simulated, real = (quantity.of(measures, by) for by in (SIMULATOR, EMULATOR))
            beside = _told(quantity, recorded[quantity.name]) if recorded else "–"
            yield (
                f"{cell.control}, {cell.queue}",
                cell.path,
                f"{quantity.name}, {quantity.unit}",
                _told(quantity, simulated),
                _told(quantity, real),
                beside,
                verdict(quantity, simulated, real, rate),
            )


def _told(quantity: Quantity, values: Floats) -> str:
    mean = f"{values.mean():.{quantity.digits}f}"
    if values.size < 2:
        return mean
    interval = stats.interval(values, bounds=stats.POSITIVE)
    if interval is None:
        return mean
    return f"{mean} ({interval.low:.{quantity.digits}f}–{interval.high:.{quantity.digits}f})"


TEXT = """# Parity of simulator and emulator

Two endless flows through one queue, the second 0.1 to 1 s after the first: simulated, and with the
kernel's own TCP [in real time](../emulator.md#parity-the-same-scenario-twice) through the same
queue. Beside them, where there are any, [recordings](linux2026.md) of the kernel in virtual time.

Made on {day} with aqmlab {version}, {machine}: {extent} each way.
In the run where it was worst, one packet in a hundred left the emulator more than {late} ms late.

    {command}

Means with 95 % intervals ({method}).
*Alike*: the means are within 5 % (goodput), a packet's transmission (delay) or 0.1 percentage
points (drops), or the intervals overlap; with fewer than {enough} runs intervals do not count. The
recordings last 20 s; their goodput counts from 5 s on.

{alike} rows are alike.
"""
HEAD = ("flows", "path", "", "simulated", "real", "recorded", "verdict")


def page(found: Mapping[Cell, Mapping[str, Any]], command: str) -> Iterator[str]:
    """The lines of the page."""
    table = list(rows(found))
    alike = sum(row[-1] == ALIKE for row in table)
    repeats = sorted({result["replications"] for result in found.values()})
    late = 1e3 * max(result["lateness_p99_s"] for result in found.values())
    yield from TEXT.format(
        day=datetime.now(UTC).date().isoformat(),
        version=aqmlab.__version__,
        machine=f"Linux {platform.release()}, {os.cpu_count()} cores",
        extent=f"{len(found)} of {len(cells())} cells, {' or '.join(map(str, repeats))} runs",
        late=f"{late:.2f}",
        command=command,
        enough=ENOUGH,
        method=stats.MEAN_METHOD,
        alike=f"{alike} of {len(table)}",
    ).split("\n")
    yield _line(HEAD)
    yield _line(["---", "---", "---", "---:", "---:", "---:", "---"])
    yield from map(_line, table)
    yield ""
    differing = list(_differing(found))
    if differing:
        yield from parity_bursts.lines(differing, max(repeats))
    yield from _single_runs(found)


def _differing(
    found: Mapping[Cell, Mapping[str, Any]],
) -> Iterator[tuple[str, str, str, dict[str, str], int, float]]:
    """Rows of delays and drops whose verdict is that they differ."""
    for cell, result in found.items():
        measures = measured(result)
        rate = float(cell.path.split()[0])
        for quantity in QUANTITIES[1:]:
            simulated, real = (quantity.of(measures, by) for by in (SIMULATOR, EMULATOR))
            if verdict(quantity, simulated, real, rate) == DIFFERS:
                label = f"{cell.label}: {quantity.name}, {quantity.unit}"
                control = CONTROLS[cell.control]
                mean = float(real.mean())
                yield label, quantity.name, control, cell.settings, quantity.digits, mean


def _single_runs(found: Mapping[Cell, Mapping[str, Any]]) -> Iterator[str]:
    """Range of single runs of the cells in which single runs differed."""
    told = [_drops_of(cell, result) for cell, result in found.items() if cell in DIFFERED]
    if told:
        yield from ("## Single runs", "")
        yield "Single runs once differed in cells of these controls and queues. Recorded runs"
        yield "of the kernel, which differ only in the second flow's start and in what PIE draws,"
        yield "lie as far apart. Drop shares of single runs, least to most, %:"
        yield from ("", *told, "")


def _drops_of(cell: Cell, result: Mapping[str, Any]) -> str:
    drops = QUANTITIES[2]
    measures = measured(result)
    sides = {"simulated": drops.of(measures, SIMULATOR), "real": drops.of(measures, EMULATOR)}
    recorded = cell.recorded()
    if recorded:
        sides["recorded"] = recorded[drops.name]
    ranges = (f"{side} {each.min():.3f} to {each.max():.3f}" for side, each in sides.items())
    return f"- {cell.control} over {cell.queue}, {cell.path}: {'; '.join(ranges)}"


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def main(arguments: Sequence[str]) -> None:
    """Measures the grid and writes the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="LABEL")
    parser.add_argument("--repeat", type=int, default=10, metavar="N")
    parser.add_argument("--duration", default="20s", metavar="TIME")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="cells side by side")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR")
    chosen = parser.parse_args(arguments)
    wanted = cells(chosen.only)
    if not wanted:
        parser.error(
            f"no cell has {', '.join(chosen.only)} in its label; one is `{cells()[0].label}`"
        )

    def measured(numbered: tuple[int, Cell]) -> dict[str, Any]:
        number, cell = numbered
        print(f"{number} of {len(wanted)}: {cell.label}", file=sys.stderr)
        return measure(cell, chosen.out, chosen.repeat, chosen.duration)

    with ThreadPoolExecutor(chosen.at_once) as pool:
        found = dict(zip(wanted, pool.map(measured, enumerate(wanted, 1)), strict=True))
    more = [word for each in chosen.only for word in ("--only", repr(each))]
    command = ["python -m tools.parity", str(chosen.page), *more]
    if chosen.repeat != parser.get_default("repeat"):
        command += ["--repeat", str(chosen.repeat)]
    if chosen.duration != parser.get_default("duration"):
        command += ["--duration", chosen.duration]
    if chosen.at_once != parser.get_default("at_once"):
        command += ["--at-once", str(chosen.at_once)]
    chosen.page.write_text("\n".join(page(found, " ".join(command))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

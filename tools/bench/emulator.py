"""Speed and precision of the emulator, beside measurements of others.

Senders and receivers are `traffic.py`, the emulator runs in a process of its own
(`emulated.py`), and what others reached stands in `emulators.json`. The sender is behind the
path and the receiver at its far end, or the other way round.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqmlab.emulator.links import UNLIMITED

FOLDER = Path(__file__).parent
TRAFFIC = FOLDER / "traffic.py"
INFINITE = {"discipline": "droptail", "limit": "unlimited"}
FREE: dict[str, Any] = {"rate": UNLIMITED, "delay": "0s", "queue": INFINITE}
DELAY = FREE | {"delay": "20ms"}
RTT = 0.04
SECONDS = 4.0
CONNECTIONS = 8
"""At 40 ms one connection is held back by the kernel's largest buffer."""
PORT = 20_000 + os.getpid() % 10_000
RATES = {"12m": 12e6, "100m": 100e6, "1g": 1e9}
COST_RATES = {"100m": "100mbit", "1g": "1gbit"}
FIGURES = (
    "cpu_per_gbit_100m",
    "cpu_per_gbit_1g",
    "udp_packets_per_second",
    "late_input_p99_s",
    "late_input_max_s",
)
"""Values with a key of their own in `--json`: the worse of both directions."""
LOGGED = "10gbit.trace"
PROGRESS = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    id: str
    what: str
    unit: str
    digits: int
    is_least: bool = False
    """True if more is better."""


ROWS = (
    Row("free", "throughput, no delay, up / down", "Gbit/s", 2, True),
    Row("free_cpu", "its processor time, up / down", "s/Gbit", 3),
    Row("rtt40", "throughput at 40 ms RTT, up / down", "Gbit/s", 2, True),
    Row("nested", "three nested shells, up / down", "Gbit/s", 2, True),
    Row("logged", "10 Gbit/s link with both logs, up", "Gbit/s", 2, True),
    Row("idle", "added RTT of an idle link shell, median", "ms", 3),
    Row("delay_p50", "20 ms in each direction: error of RTT, median", "ms", 3),
    Row("delay_p99", "20 ms in each direction: error of RTT, p99", "ms", 3),
    Row("spacing", "spacing at 100 Mbit/s, p99 (ideal: 120)", "µs", 0),
    Row("cpu_per_gbit_100m", "processor time at 100 Mbit/s, TCP up / down", "s/Gbit", 2),
    Row("cpu_per_gbit_1g", "processor time at 1 Gbit/s, TCP up / down", "s/Gbit", 2),
    Row("udp_packets_per_second", "UDP packets of 1400 bytes, up / down", "1/s", 0, True),
    Row("late_input_p99_s", "wait before a packet is read at 100 Mbit/s, p99", "s", 6),
    Row("late_input_max_s", "wait before a packet is read at 100 Mbit/s, longest", "s", 6),
    Row("rate_12m", "long-run error of 12 Mbit/s", "%", 4),
    Row("rate_100m", "long-run error of 100 Mbit/s", "%", 4),
    Row("rate_1g", "long-run error of 1 Gbit/s", "%", 4),
)


@dataclass
class Found:
    """Measurements on this machine."""

    values: dict[str, list[float]] = field(default_factory=dict)
    """By row: one value, or two, up and down."""
    details: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """What the emulators said, each time."""
    reports: list[dict[str, Any]] = field(default_factory=list)
    """What the emulators said of each transfer."""


def measure(repeat: int, progress: PROGRESS) -> Found:
    """Measures all rows; throughputs are medians of `repeat` runs. Raises `InputError` where
    there can be no emulated path."""
    found = Found()
    with tempfile.TemporaryDirectory(prefix="aqmlab-bench-") as folder:
        here = Path(folder)
        for name, link, connections in (("free", FREE, 1), ("rtt40", DELAY, CONNECTIONS)):
            progress(name)
            both = [_transfer(here, found, [link], way, connections, repeat)
                    for way in ("up", "down")]  # fmt: skip
            found.values[name] = [rate / 1e9 for rate, _ in both]
            if name == "free":
                found.values["free_cpu"] = [cost * 1e9 for _, cost in both]
        progress("nested")
        nested = [_transfer(here, found, [FREE] * 3, way, 1, repeat) for way in ("up", "down")]
        found.values["nested"] = [rate / 1e9 for rate, _ in nested]
        progress("logged")
        # 10,027 Mbit/s: 2,500 opportunities in 3 ms.
        trace = here / LOGGED
        trace.write_text("".join(f"{1 + at * 3 // 2500}\n" for at in range(2500)))
        link = {"rate": {"trace": str(trace)}, "delay": "0s", "overhead": 4, "queue": INFINITE}
        rate, _ = _transfer(here, found, [link], "up", 1, repeat, is_logged=True)
        found.values["logged"] = [rate / 1e9]
        for name, limit in COST_RATES.items():
            progress(f"cost {name}")
            _cost(here, found, name, limit, repeat)
        progress("udp")
        found.values["udp_packets_per_second"] = [
            _packets(here, found, way, repeat) for way in ("up", "down")
        ]
        progress("idle")
        bare = _round_trips(here, None, found, "bare")
        idle = _round_trips(here, FREE | {"rate": "1gbit"}, found, "idle")
        found.values["idle"] = [(idle["p50_s"] - bare["p50_s"]) * 1e3]
        progress("delay")
        delayed = _round_trips(here, DELAY, found, "delay")
        for key in ("p50", "p99"):
            found.values[f"delay_{key}"] = [(delayed[f"{key}_s"] - RTT) * 1e3]
        for name, rate in RATES.items():
            progress(name)
            train = _train(here, found, name, rate)
            found.values[f"rate_{name}"] = [abs(train["bps"] / rate - 1) * 100]
            if name == "100m":
                found.values["spacing"] = [train["gap_us"]["p99"]]
    return found


def _words(*words: object) -> list[str]:
    return [sys.executable, str(TRAFFIC), *map(str, words)]


def _behind(
    folder: Path, links: list[dict[str, Any]], command: list[str], *, is_logged: bool = False
) -> tuple[str, list[dict[str, Any]]]:
    """Runs a command behind paths of these links, one in the other, with a server at the far
    end; what it printed, and what each emulator has to report."""
    reports = [folder / f"emulator-{index}" for index in range(len(links))]
    train = folder / "train"
    train.unlink(missing_ok=True)
    serve = " ".join(_words("serve", PORT, train))
    for index, (link, report) in enumerate(zip(links, reports, strict=True)):
        task = {
            "link": link,
            # The outermost is the last; its far end is where all packets go.
            "far": serve if index == len(links) - 1 else "",
            "command": command,
            "logs": {way: str(folder / f"{way}.log") for way in ("up", "down") if is_logged},
            "report": str(report),
        }
        command = [sys.executable, str(FOLDER / "emulated.py"), json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"a measurement ended with {done.returncode}: {last[0]}")
    return done.stdout, [json.loads(report.read_text()) for report in reports]


def _shell(*words: object) -> list[str]:
    """A client; its host is known in the shell only."""
    text = " ".join(_words(*words)).replace("HOST", "$AQMLAB_FAR")
    return ["sh", "-c", text]


def _transfer(
    folder: Path,
    found: Found,
    links: list[dict[str, Any]],
    way: str,
    connections: int,
    repeat: int,
    *,
    is_logged: bool = False,
) -> tuple[float, float]:
    """Bits a second over TCP, and the emulators' processor seconds a bit: medians."""
    rates, costs = [], []
    for _ in range(repeat):
        client = _shell("tcp", way, "HOST", PORT, connections, SECONDS)
        printed, reports = _behind(folder, links, client, is_logged=is_logged)
        rate = json.loads(printed)["bps"]
        rates.append(rate)
        carried = 8 * max(report["bytes"] for report in reports)
        costs.append(sum(report["processor_s"] for report in reports) / carried)
        found.reports += reports
        found.remarks += [remark for report in reports for remark in report["remarks"]]
    return statistics.median(rates), statistics.median(costs)


def _cost(folder: Path, found: Found, name: str, rate: str, repeat: int) -> None:
    """Processor seconds a Gbit of one TCP connection over a link with this rate."""
    link = FREE | {"rate": rate, "delay": "10ms", "queue": {"discipline": "fq_codel"}}
    both = [_transfer(folder, found, [link], way, 1, repeat) for way in ("up", "down")]
    found.values[f"cpu_per_gbit_{name}"] = [cost * 1e9 for _, cost in both]
    found.details[f"tcp_{name}"] = {"up_bps": both[0][0], "down_bps": both[1][0]}
    if name == "100m":
        for key in ("p99_s", "max_s"):
            waits = [report["input"][key] for report in found.reports[-2 * repeat :]]
            found.values[f"late_input_{key}"] = [statistics.median(waits)]


def _packets(folder: Path, found: Found, way: str, repeat: int) -> float:
    """Small packets a second that arrive through a link without a rate, one sent a call: the
    median. The sender never waits; what the emulator has no time to read is lost before it.
    Details are shares: `not_read` of what was sent, `received` of what the emulator carried."""
    rates: list[float] = []
    costs, not_read, received = [], [], []
    for _ in range(repeat):
        printed, (report,) = _behind(folder, [FREE], _shell("udp", way, "HOST", PORT, SECONDS))
        rates.append(json.loads(printed)["packets_per_second"])
        costs.append(report["processor_s"] / report["count"])
        received.append(rates[-1] * SECONDS / report["count"])
        not_read.append(report["not_read"] / (report["not_read"] + report["count"]))
    found.details[f"udp_{way}"] = {
        "processor_s_per_packet": statistics.median(costs),
        "not_read": statistics.median(not_read),
        "received": statistics.median(received),
    }
    return statistics.median(rates)


def _round_trips(
    folder: Path, link: dict[str, Any] | None, found: Found, name: str
) -> dict[str, float]:
    """Round trips behind a link, or over loopback without one."""
    words: tuple[object, ...] = ("rtt", "HOST", PORT, 1000, 0.005)
    if link is not None:
        printed, reports = _behind(folder, [link], _shell(*words))
        found.remarks += reports[0]["remarks"]
    else:
        server = subprocess.Popen(_words("serve", PORT, folder / "unused"))
        try:
            bare = ["127.0.0.1" if word == "HOST" else word for word in words]
            done = subprocess.run(_words(*bare), capture_output=True, text=True, check=True)
        finally:
            server.kill()
            server.wait()
        printed = done.stdout
    trips: dict[str, float] = json.loads(printed)
    found.details[name] = trips
    return trips


def _train(folder: Path, found: Found, name: str, rate: float) -> dict[str, Any]:
    """A train of full packets through a link of this rate, faster than the link."""
    link = FREE | {"rate": f"{rate:.0f}bit"}
    report = folder / "train"
    _, reports = _behind(folder, [link], _shell("train", "HOST", PORT, rate, SECONDS, report))
    found.remarks += reports[0]["remarks"]
    if not report.exists():
        raise RuntimeError(f"the train of {name} did not come through")
    train: dict[str, Any] = json.loads(report.read_text())
    found.details[name] = train | {"late_p99_s": reports[0]["p99_s"]}
    return train


# --- showing it --------------------------------------------------------------


def figures(found: Found) -> dict[str, float]:
    """The figures that have a key of their own."""
    is_least = {row.id: row.is_least for row in ROWS}
    worst = {name: min if is_least[name] else max for name in FIGURES}
    return {name: worst[name](found.values[name]) for name in FIGURES}


def peers() -> dict[str, Any]:
    """Measurements of others, with the goals of this emulator."""
    record: dict[str, Any] = json.loads((FOLDER / "emulators.json").read_text())
    return record


def table(found: Found) -> list[dict[str, Any]]:
    """A row for each line: texts of all columns, and whether the goal is met."""
    known = {row["id"]: row for row in peers()["rows"]}
    return [_line(row, known[row.id], found.values[row.id]) for row in ROWS]


def _line(row: Row, record: Mapping[str, Any], values: list[float]) -> dict[str, Any]:
    def text(numbers: list[float] | None, digits: int) -> str:
        return " / ".join(f"{number:.{digits}f}" for number in numbers) if numbers else "–"

    asked = record["asked"]
    is_met = all(value >= asked if row.is_least else value <= asked for value in values)
    bound = "at least" if row.is_least else "at most"
    return {
        "id": row.id,
        "what": f"{row.what} ({row.unit})",
        "mahimahi": text(record["mahimahi"], row.digits),
        "rattan": text(record["rattan"], row.digits),
        "aqmlab": text(values, row.digits),
        "asked": f"{bound} {asked:g}",
        "met": is_met,
    }


NUMBER = re.compile(r"[0-9]+(?:[.][0-9]+)?")


def summary(remarks: list[str]) -> list[str]:
    """Remarks that differ in their numbers only, as one with ranges and how often it was made."""
    alike: dict[str, list[list[str]]] = {}
    for remark in remarks:
        alike.setdefault(NUMBER.sub("{}", remark), []).append(NUMBER.findall(remark))
    return [_ranged(form, numbers) for form, numbers in sorted(alike.items())]


def _ranged(form: str, numbers: list[list[str]]) -> str:
    """`up to {} ms` with the least and the largest of each number."""
    ranges = []
    for each in zip(*numbers, strict=True):
        least, most = min(each, key=float), max(each, key=float)
        ranges.append(least if least == most else f"{least} to {most}")
    parts = form.split("{}")
    text = "".join(part + number for part, number in zip(parts, [*ranges, ""], strict=True))
    return text if len(numbers) == 1 else f"{text} ({len(numbers)} times)"


def machine() -> str:
    """Description of this machine."""
    cores = len(os.sched_getaffinity(0))
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    load = os.getloadavg()[0]
    today = datetime.date.today().isoformat()
    return (
        f"{today}, {cores} cores ({model}), Linux {platform.release()}, load {load:.1f} at the end"
    )


def _bare(found: Found) -> list[str]:
    """Round-trip times without an emulator, which are part of those with one."""
    if "bare" not in found.details:
        return []
    p50, p99 = (found.details["bare"][key] * 1e3 for key in ("p50_s", "p99_s"))
    text = f"{p50:.3f} ms (median) and {p99:.3f} ms (p99)"
    return [
        f"Over loopback, the same programs have {text} of the errors of 20 ms in each direction."
    ]


def markdown(found: Found) -> str:
    """The table for docs/emulator.md."""
    record = peers()
    lines = [
        "| | mahimahi | rattan | aqmlab | asked |",
        "|---|---|---|---|---|",
        *(
            f"| {row['what']} | {row['mahimahi']} | {row['rattan']} | {row['aqmlab']} "
            f"| {row['asked']}{'' if row['met'] else ': missed'} |"
            for row in table(found)
        ),
        "",
        f"aqmlab: {machine()}. mahimahi ({record['mahimahi']}) and rattan ({record['rattan']}): "
        f"recorded {record['recorded']}; {record['machine']}.",
        *_bare(found),
        *(f"Said by the emulator: {remark}." for remark in summary(found.remarks)),
    ]
    return "\n".join(lines)

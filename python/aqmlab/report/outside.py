"""Measurements of flent, iperf3 and irtt: goodput and round-trip times.

Sources: flent's file format 4 (`results` with names such as `TCP download::1`, in Mbit/s, and
`Ping (ms) ...`); iperf3 `--json` (`end.sum_received`, `intervals[].streams[].rtt` in microseconds);
irtt's JSON (`round_trips[].delay.rtt` in nanoseconds).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from aqmlab.errors import input_error
from aqmlab.files import gunzip, read_bytes
from aqmlab.report.exports import base_rtt
from aqmlab.results import StudyResult

KNOWN = "a data file of flent (.flent.gz), or JSON of iperf3 or irtt"
DERIVED = (" avg", " sum", " fairness")
"""Endings of flent's series that are made of others."""


@dataclass(frozen=True)
class OutsideRun:
    """A measurement. Times are in seconds; None if unknown."""

    source: str
    goodput_bps: float | None
    rtt_p50_s: float | None
    rtt_p95_s: float | None


def is_measurement(path: Path) -> bool:
    """True for a file, False for a folder with results."""
    return path.is_file()


def read(path: Path) -> OutsideRun:
    """The measurement in a file. Raises `InputError` if it is none that is known."""
    try:
        content = read_bytes(path)
        if content[:2] == b"\x1f\x8b":
            content = gunzip(content, path)
        found = json.loads(content)
    except OSError as error:
        raise input_error(str(error.strerror), file=str(path)) from None
    except (ValueError, RecursionError):
        found = None
    try:
        if isinstance(found, dict):
            if "x_values" in found:
                return _flent(found)
            if "round_trips" in found:
                delays = [each["delay"] for each in found["round_trips"]]
                return _measured("irtt", None, [d["rtt"] * 1e-9 for d in delays if "rtt" in d])
            if "end" in found and "intervals" in found:
                return _iperf3(found)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise input_error(f"expected {KNOWN}", file=str(path))


def ours(result: StudyResult) -> OutsideRun:
    """The same of our results: goodput of all groups, and base RTT and sojourn time of the
    bottleneck, as means over the runs."""
    of_groups = result.raw("metrics").filter(pl.col("metric") == "goodput")
    groups = {name for scenario in result.scenarios for name in scenario["flows"]}
    of_groups = of_groups.filter(pl.col("subject").cast(pl.String).is_in(list(groups)))
    runs = result.info.points * result.info.replications
    total = of_groups["value"].sum()
    base = fmean(map(base_rtt, result.scenarios))
    waits = result.bottleneck
    p50, p95 = (waits[f"sojourn_{key}_s"].mean() for key in ("p50", "p95"))
    return OutsideRun(
        "aqmlab",
        float(total) / runs if total else None,
        None if p50 is None else base + float(p50),  # type: ignore[arg-type]
        None if p95 is None else base + float(p95),  # type: ignore[arg-type]
    )


def _flent(found: Mapping[str, Any]) -> OutsideRun:
    results = found["results"]
    loads = [
        values
        for name, values in results.items()
        if ("download" in name or "upload" in name) and not name.endswith(DERIVED)
    ]
    # Flows need not last equally long: the sum at each moment, over the time that any was there.
    sums = [sum(there) for row in zip(*loads, strict=False) if (there := _there(row))]
    pings = [
        value
        for name, values in results.items()
        if name.startswith("Ping (ms)") and not name.endswith(DERIVED)
        for value in _there(values)
    ]
    return _measured("flent", fmean(sums) * 1e6 if sums else None, [v * 1e-3 for v in pings])


def _iperf3(found: Mapping[str, Any]) -> OutsideRun:
    end = found["end"]
    total = end.get("sum_received") or end.get("sum") or {}
    rtts = [
        stream["rtt"] * 1e-6
        for interval in found["intervals"]
        for stream in interval.get("streams", ())
        if stream.get("rtt")
    ]
    return _measured("iperf3", total.get("bits_per_second"), rtts)


def _there(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _measured(source: str, goodput: float | None, rtts: list[float]) -> OutsideRun:
    if not rtts:
        return OutsideRun(source, goodput, None, None)
    series = pl.Series(rtts)
    p50, p95 = (series.quantile(share, "linear") for share in (0.5, 0.95))
    return OutsideRun(source, goodput, p50, p95)

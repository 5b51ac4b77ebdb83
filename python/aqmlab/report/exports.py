"""Results in the formats of other programs: CSV, Arrow, Parquet, flent's and mahimahi's; and
goodput and round-trip times that flent, iperf3 and irtt measured.

Sources: flent's `resultset.py`, file format 4 (what a data file has to have; `results` with names
such as `TCP download::1`, in Mbit/s, and `Ping (ms) ...`); mahimahi's `link_queue.cc` (what a log
of mm-link says); iperf3 `--json` (`end.sum_received`, `intervals[].streams[].rtt` in microseconds);
irtt's JSON (`round_trips[].delay.rtt` in nanoseconds).

# Differences
1. flent's ping is what a packet of no size would see: the delays of both directions without
   queues and jitter, and the mean sojourn time of their links in each sampling interval. Access
   delays that are drawn for each flow are left out. If a file has a link's delays, there is none.
2. A log has one opportunity for each packet that leaves, of its size: the simulator keeps no list
   of those that were not used.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from aqmlab import plain
from aqmlab.errors import input_error, stored, unknown
from aqmlab.files import read_bytes, unpack
from aqmlab.results import RunResult, StudyResult, groups_of, run_of
from aqmlab.results.tables import PART
from aqmlab.scenario.quantity import canonical
from aqmlab.storage import Fill, replace
from aqmlab.storage import content as bytes_of

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Start of a simulation, for formats that need a date."""
LIFE = ("group", "index", "start_s", "finish_s")
HEADER = 4
"""Bytes that mahimahi adds to those of the IP packet."""
WRITERS = {".csv": "write_csv", ".arrow": "write_ipc", ".parquet": "write_parquet"}
FLENT = ".flent.gz"
LOG = ".log"
SUFFIXES = (*WRITERS, FLENT, LOG)


def export(result: StudyResult, file: Path, *, table: str = "", run: int | None = None) -> None:
    """Writes `file` in the format that its name ends with.

    `.csv`, `.arrow` and `.parquet` hold the table `table` (`links` unless said) of all runs or of
    `run`; `.flent.gz` and `.log` are about one run, the first unless said, a log about one link of
    it, `table`. Raises `InputError` for what does not exist and `StorageError` if the file cannot
    be written.
    """
    suffix = next((each for each in SUFFIXES if file.name.endswith(each)), None)
    if suffix is None:
        problem = f"expected a file that ends in {', '.join(SUFFIXES)}"
        raise input_error(problem, key="file", given=str(file))
    if suffix in WRITERS:
        if table and table not in result.table_names:
            raise unknown("table", table, result.table_names, key="table")
        frame = result.table(table or "links")
        if run is not None:
            run_of(result, run)  # there is one
            frame = frame.filter(run=run)
        frame = plain_text(frame) if suffix == ".csv" else frame
        write: Fill = getattr(frame, WRITERS[suffix])
    else:
        one = run_of(result, run or 0)
        content = flent(one, file.name) if suffix == FLENT else log(one, table or one.bottleneck)
        write = bytes_of(content)
    with stored(file, "the file was not written"):
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, write)


def plain_text(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before texts that a spreadsheet would run as a formula: names of
    links and labels are anybody's."""
    texts = pl.selectors.by_dtype(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    is_formula = texts.str.contains(plain.FORMULA)
    return frame.with_columns(pl.when(is_formula).then("'" + texts).otherwise(texts).name.keep())


# flent


def flent(run: RunResult, name: str) -> bytes:
    """A data file of flent's test `tcp_ndown`: what flows receive, and a ping. Flows whose
    acknowledgements pass the bottleneck, and not their data, are uploads; those of datagrams are
    apart.

    Raises `InputError` if nothing was sampled, or no flow with goodput was.
    """
    series = run.series.filter(pl.col("value").is_finite())
    goodputs = series.filter(pl.col("quantity") == "goodput_bps")
    flows = goodputs["subject"].unique(maintain_order=True).to_list()
    if not flows:
        hint = "run it with --out, or record.level=series"
        if series.height:
            hint = "set record.flows=true; flows of real programs have no goodput"
        raise input_error("flent's file needs flows that were sampled", key="file", hint=hint)
    times = sorted(series["time_s"].unique().to_list())
    uploads = _uploads(run)
    lives = {f"{group}.{n}": life for group, n, *life in run.flows.select(LIFE).iter_rows()}
    datagrams = run.flows.filter(pl.col("datagrams_received").is_not_null())
    udp = {f"{group}.{index}" for group, index in datagrams.select("group", "index").iter_rows()}
    ways: dict[str, list[str]] = {"TCP download": []}
    for flow in flows:
        way = f"{'UDP' if flow in udp else 'TCP'} {'upload' if flow in uploads else 'download'}"
        ways.setdefault(way, []).append(flow)
    results: dict[str, dict[float, float]] = {}
    totals: dict[str, list[float | None]] = {}
    for way, own in ways.items():
        courses = [_during(lives[flow], _course(goodputs, flow, 1e-6)) for flow in own]
        results |= {f"{way}::{n}": course for n, course in enumerate(courses, 1)}
        there = [[course[time] for course in courses if time in course] for time in times]
        if own and way.startswith("TCP"):
            totals[f"{way} sum"] = [sum(each) if each else None for each in there]
            totals[f"{way} avg"] = [fmean(each) if each else None for each in there]
    results["Ping (ms) ICMP"] = _ping(run, series, times)
    columns = {key: [course.get(time) for time in times] for key, course in results.items()}
    document = {
        "version": 4,
        "metadata": _metadata(run, name, len(ways["TCP download"]), times),
        "x_values": times,
        "results": columns | totals,
        "raw_values": {
            key: [{"t": EPOCH.timestamp() + time, "val": value} for time, value in course.items()]
            for key, course in results.items()
        },
    }
    return gzip.compress(json.dumps(document, allow_nan=False).encode(), mtime=0)


def _uploads(run: RunResult) -> set[str]:
    """The flows of which only the acknowledgements pass the bottleneck."""
    found = set()
    for group, index, direction in run.flows.select("group", "index", "direction").iter_rows():
        paths = [run.scenario["flows"][group][key] for key in ("path", "return_path")]
        data, acks = paths if direction == "forward" else reversed(paths)
        if run.bottleneck in acks and run.bottleneck not in data:
            found.add(f"{group}.{index}")
    return found


def _during(life: list[float | None], course: dict[float, float]) -> dict[float, float]:
    """The values of the sampling intervals in which a flow lived, from its start to its end."""
    start, end = life
    begins = [0.0, *course]
    return {
        time: value
        for begin, (time, value) in zip(begins, course.items(), strict=False)
        if (start is None or start < time) and (end is None or begin < end)
    }


def _course(series: pl.DataFrame, subject: str, scale: float) -> dict[float, float]:
    """Values of a subject by time."""
    rows = series.filter(pl.col("subject") == subject).select("time_s", "value").iter_rows()
    return {time: value * scale for time, value in rows}


def _ping(run: RunResult, series: pl.DataFrame, times: list[float]) -> dict[float, float]:
    """Propagation delay and sojourn times in both directions of the first group of flows, in
    milliseconds; empty if a file has the delays."""
    links = _round_trip(run.scenario)
    sojourns = series.filter(pl.col("quantity") == "sojourn_mean_s")
    waits = [_course(sojourns, link, 1.0) for link in links]
    if (delays := [_delays(run.scenario, link) for link in links]).count([]):
        return {}
    return {
        time: 1e3
        * (
            _access(run.scenario)
            + sum(next(delay for at, delay in reversed(each) if at <= time) for each in delays)
            + sum(each.get(time, 0.0) for each in waits)
        )
        for time in times
    }


def _round_trip(scenario: Mapping[str, Any]) -> list[str]:
    """The links of the first group of flows, in both directions."""
    group = next(iter(scenario["flows"].values()))
    return [*group["path"], *group["return_path"]]


def _access(scenario: Mapping[str, Any]) -> float:
    """What the access delay of the first group of flows adds to its round-trip time, in seconds: 0
    if it is drawn for each flow."""
    text = next(iter(scenario["flows"].values())).get("access_delay", "0s")
    return 0.0 if "(" in text else 2 * canonical(text)


def _delays(scenario: Mapping[str, Any], link: str) -> list[tuple[float, float]]:
    """Times at which the delay of a link changes, from 0 on, and the delays from then on, in
    seconds; empty if a file has them."""
    delay, end = scenario["links"][link]["delay"], canonical(scenario["duration"])
    if isinstance(delay, str):
        changes = [e for e in scenario.get("changes", ()) if e["key"] == f"links.{link}.delay"]
        course = sorted((canonical(each["at"]), canonical(each["value"])) for each in changes)
        return [(0.0, canonical(delay)), *course]
    if "steps" not in delay:
        return []
    steps = [(canonical(at), canonical(to)) for at, to in map(str.split, delay["steps"].split(","))]
    if delay["repeat"] == "false" or len(steps) == 1:
        return steps
    # The last step lasts as long as the one before it.
    period = 2 * steps[-1][0] - steps[-2][0]
    return [(n * period + at, to) for n in range(int(end / period) + 1) for at, to in steps]


def base_rtt(scenario: Mapping[str, Any]) -> float | None:
    """The round-trip time of the first group of flows without queues and jitter, in seconds: the
    mean over the run, or `None` if a file has the delays."""
    end, total = canonical(scenario["duration"]), _access(scenario)
    for link in _round_trip(scenario):
        if not (delays := [each for each in _delays(scenario, link) if each[0] < end]):
            return None
        ends = [*(at for at, _ in delays[1:]), end]
        total += sum(to * (until - at) for (at, to), until in zip(delays, ends, strict=True)) / end
    return total


def _metadata(run: RunResult, name: str, downloads: int, times: list[float]) -> dict[str, object]:
    """flent's description of a test. A simulation begins at `EPOCH`."""
    start = EPOCH.replace(tzinfo=None)
    queue = run.scenario["links"][run.bottleneck]["queue"]
    step = times[1] - times[0] if len(times) > 1 else 0.1
    return {
        "NAME": "tcp_ndown",
        "TITLE": f"{queue['discipline']} (simulated by aqmlab)",
        "DATA_FILENAME": name,
        "TIME": f"{start.isoformat()}.000000Z",
        "T0": f"{start.isoformat()}.000000Z",
        "BATCH_TIME": None,
        "END_TIME": f"{(start + timedelta(seconds=times[-1])).isoformat()}Z",
        "LENGTH": times[-1],
        "TOTAL_LENGTH": times[-1],
        "STEP_SIZE": step,
        "HOST": "simulated",
        "HOSTS": ["simulated"],
        "LOCAL_HOST": "simulated",
        "NOTE": None,
        "FLENT_VERSION": "2.0.0",
        "IP_VERSION": 4,
        "TEST_PARAMETERS": {"download_streams": str(downloads)},
        "SERIES_META": {},
    }


# mahimahi


def log(run: RunResult, link: str) -> bytes:
    """The log of mm-link for a link whose packets were recorded.

    Raises `InputError` for another link, and if no packets were recorded.
    """
    links = list(run.scenario["links"])
    if link not in links:
        raise unknown("link", link, links, key="table")
    is_of_link = pl.col("link") == link
    names = ("link", "verdict", "size_bytes", "arrival_s", "end_s")
    parts = [_events(part.filter(is_of_link)) for part in run.parts("packets", *names)]
    events = pl.concat(parts) if parts else pl.DataFrame()
    if events.height == 0:
        hint = "set record.level=packets"
        raise input_error("a log needs recorded packets", key="table", given=link, hint=hint)
    del parts
    content = io.BytesIO(f"# aqmlab ({link})\n# base timestamp: 0\n".encode())
    content.seek(0, io.SEEK_END)
    # Of what happens at one time, an arrival is said before a departure, an opportunity before what
    # it sends; packets keep their order.
    for some in events.sort("time", "kind", maintain_order=True).iter_slices(PART):
        lines = some.select(_line())
        lines.write_csv(content, include_header=False, quote_style="never")
    return content.getvalue()


ARRIVAL, OPPORTUNITY, DEPARTURE = range(3)


def _events(packets: pl.DataFrame) -> pl.DataFrame:
    """Events of packets: `time`, `kind`, `bytes`, and `after`, the milliseconds between the lines
    of a packet that departs; a drop has the time and kind of an opportunity, and 0 there."""
    size = (pl.col("size_bytes") + HEADER).cast(pl.UInt32)
    arrival, end = pl.col("arrival_s"), pl.col("end_s")
    is_sent = pl.col("verdict") == "delivered"

    def events(at: pl.Expr, kind: int, bytes_: pl.Expr, after: pl.Expr) -> list[pl.Expr]:
        return [
            at.alias("time"),
            pl.lit(kind, pl.UInt8).alias("kind"),
            bytes_.alias("bytes"),
            after.cast(pl.Int64).alias("after"),
        ]

    none = pl.lit(None, pl.Int64)
    return pl.concat(
        [
            packets.select(events(arrival, ARRIVAL, size, none)),
            packets.select(events(end, OPPORTUNITY, size, pl.when(~is_sent).then(0))),
            packets.filter(is_sent).select(
                events(end, DEPARTURE, size, _millis(end) - _millis(arrival))
            ),
        ]
    )


def _millis(time: pl.Expr) -> pl.Expr:
    """Whole milliseconds of a time, which is a whole number of nanoseconds."""
    return (time * 1e9).round().cast(pl.Int64) // 1_000_000


def _line() -> pl.Expr:
    """The line of an event."""
    at, size = _millis(pl.col("time")), pl.col("bytes")
    kind, after = pl.col("kind"), pl.col("after")
    return (
        pl.when(kind == ARRIVAL)
        .then(pl.format("{} + {}", at, size))
        .when(kind == DEPARTURE)
        .then(pl.format("{} - {} {}", at, size, after))
        .when(after.is_null())
        .then(pl.format("{} # {}", at, size))
        .otherwise(pl.format("{} d 1 {}", at, size))
    )


# Measurements of other programs

KNOWN = "a data file of flent (.flent, .flent.gz, .flent.bz2), or JSON of iperf3 or irtt"
DERIVED = (" avg", " sum", " fairness")
"""Endings of flent's series that are made of others."""


@dataclass(frozen=True)
class OutsideRun:
    """A measurement. Times are in seconds; None if unknown."""

    source: str
    goodput_bps: float | None
    rtt_p50_s: float | None
    rtt_p95_s: float | None


def read(path: Path) -> OutsideRun:
    """The measurement in a file. Raises `InputError` if it is none that is known."""
    try:
        found = json.loads(unpack(read_bytes(path), path))
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
    groups = {name for scenario in result.scenarios for name in groups_of(scenario)}
    of_groups = of_groups.filter(pl.col("subject").cast(pl.String).is_in(list(groups)))
    runs = result.info.points * result.info.replications
    total = of_groups["value"].sum()
    bases = list(map(base_rtt, result.scenarios))
    known = [base for base in bases if base is not None]
    columns = ("sojourn_p50_s", "sojourn_p95_s")
    waits = [result.bottleneck[each].mean() if known == bases else None for each in columns]
    return OutsideRun(
        "aqmlab",
        float(total) / runs if total else None,
        *(None if each is None else fmean(known) + float(each) for each in waits),  # type: ignore[arg-type]
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

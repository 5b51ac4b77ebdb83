"""One run of one scenario."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from aqmlab import scenario as typed
from aqmlab._core import Scenario
from aqmlab.errors import StorageError, input_error, unknown
from aqmlab.scenario.parts import plain
from aqmlab.scenario.settings import (
    FORMS,
    check_form,
    each_of,
    mapping_of,
    parse_toml,
    path_of,
    read_text,
    whole,
)
from aqmlab.study.runner import Record, finished

if TYPE_CHECKING:
    from aqmlab.results import RunResult

OTHERS = "|".join(
    sorted(key for name, (_, keys) in FORMS.items() if name != "scenario" for key in keys)
)
NO_SCENARIO = re.compile(rf"^\s*\[*\s*(?:{OTHERS})\b", re.MULTILINE)
"""A key or table of the files of other commands; scenarios lack most."""


def run(
    source: str | Path | Mapping[str, Any] | Scenario | typed.Scenario,
    *,
    set: Mapping[str, Any] | None = None,
    seed: SupportsIndex | None = None,
    record: str | Mapping[str, Any] | typed.Part | None = None,
    replication: SupportsIndex = 0,
    pcap: str | Path | None = None,
    pcap_links: str | Sequence[str] = (),
    qlog: str | Path | None = None,
) -> RunResult:
    """Runs a scenario once and returns its tables.

    Parameters
    ----------
    source : path, mapping or Scenario
        Scenario file, its content as a mapping, or a typed scenario.
    set : mapping, optional
        Settings by dotted key, `{"queue.target": "2ms"}`. `queue` is that of the bottleneck. A
        discipline or congestion control may be a class (`Queue`, `CongestionControl`). Values may
        be objects of `aqmlab.scenario`, quantities and numbers of numpy.
    seed : int, optional
        Seed of all random streams. Default: that of the scenario.
    record : str, mapping or Record, optional
        Recording level (`"summary"`, `"series"` or `"packets"`), or keys of the table `record`.
    replication : int, default 0
        Replication number: another draw of the same seed.
    pcap : path, optional
        Capture file for Wireshark (pcapng) with each packet once, as its sender sends it.
    pcap_links : str or sequence of str, optional
        Links; the capture then has the packets that reach them.
    qlog : path, optional
        Log of each TCP sender's packets, windows and round-trip times (JSON text sequences). QUIC
        stacks write their own: `run.sqlog` gets a file for each end of each connection beside it,
        such as `run-web.0-client.sqlog`.

    Returns
    -------
    RunResult
        Tables of the run. Times are in seconds, rates in bit/s, sizes in bytes.

    Raises
    ------
    InputError
        If an argument or the scenario is invalid.
    CustomError
        If a queue or congestion control written in Python fails.
    StuckError
        If the run makes no progress in virtual time.
    StorageError
        If a file cannot be written.

    Examples
    --------
    >>> result = aqmlab.run("scenario.toml", set={"queue": "codel"}, seed=7)
    >>> result.links.select("link", "sojourn_p95_s")
    """
    overrides = mapping_of(set, "set")
    if seed is not None:
        overrides["seed"] = whole(seed, 0, "seed")
    keys = {"level": record} if isinstance(record, str) else mapping_of(plain(record), "record")
    number = whole(replication, 0, "replication")
    scenario = load(source, overrides, {f"record.{key}": value for key, value in keys.items()})
    return run_scenario(scenario, number, recording(scenario, pcap, pcap_links, qlog))


def run_scenario(
    scenario: Scenario, replication: int = 0, record: Record | None = None
) -> RunResult:
    """Runs `scenario` once, recorded to files if `record` is given.

    Raises `StorageError` if one of these files cannot be written.
    """
    # Processes that the emulator copies load this module, and must have one thread.
    from aqmlab.results import RunResult

    try:
        batches = list(finished([(0, scenario, replication)], threads=1, record=record))
    except OSError as error:
        if error.filename is None:
            raise
        file = Path(error.filename)
        kept = "not all of the run is in it"
        if not file.parent.is_dir():
            kept = f"there is no folder {file.parent}"
        elif error.errno == errno.ENXIO:
            kept = "this pipe has no reader"
        raise StorageError(error, file, kept, resumes=False) from error
    return RunResult.of(batches, scenario)


def _kind(group: Mapping[str, Any]) -> str:
    endpoint = group.get("endpoint", "tcp")
    return str(endpoint if isinstance(endpoint, str) else endpoint.get("kind", "tcp"))


def recording(
    scenario: Scenario,
    pcap: str | Path | None,
    pcap_links: str | Sequence[str],
    qlog: str | Path | None,
) -> Record | None:
    """Files to record during a run, checked; None without any."""
    pcap_links = each_of(pcap_links)
    if pcap is None and qlog is None and not pcap_links:
        return None
    names = list(scenario.table["links"])
    if pcap_links and pcap is None:
        raise input_error("needs a capture (pcap)", key="pcap_links", given=pcap_links[0])
    for name in pcap_links:
        if name not in names:
            raise unknown("link", name, names, key="pcap_links")
    kinds = set(map(_kind, scenario.table.get("flows", {}).values()))
    if qlog is not None and not kinds & {"tcp", "quic"}:
        problem = "no flow is TCP or QUIC, and only these are logged; a capture has all packets"
        raise input_error(problem, key="qlog", given=str(qlog))
    if qlog is not None and "quic" in kinds and Path(qlog).exists() and not Path(qlog).is_file():
        problem = "expected a file: QUIC stacks write logs beside it, with names that begin like it"
        raise input_error(problem, key="qlog", given=str(qlog))
    return {
        "pcap": None if pcap is None else fspath(pcap),
        "pcap_links": [names.index(name) for name in pcap_links],
        "qlog": None if qlog is None or "tcp" not in kinds else fspath(qlog),
        "connections": (f"{Path(qlog).with_suffix('')}-", Path(qlog).suffix)
        if qlog is not None and "quic" in kinds
        else None,
    }


def recorded(record: Record) -> list[str]:
    """The files of a record, in words."""
    found = [record["pcap"], record["qlog"]]
    if record["connections"]:
        start, end = record["connections"]
        found.append(f"{start}*{end}")
    return [file for file in found if file]


def load(
    source: str | Path | Mapping[str, Any] | Scenario | typed.Scenario,
    settings: Mapping[str, Any],
    own: Mapping[str, Any] | None = None,
) -> Scenario:
    """The checked scenario in a file, a mapping, or another scenario, with settings, which errors
    call `--set`, and other overrides, of the program's `own`."""
    own = plain(own or {})
    given = {key: value for key, value in plain(settings).items() if key not in own}
    if isinstance(source, Scenario):
        if not (given or own):
            return source
        table = json.loads(source.resolved)
        return Scenario(table, overrides=own, settings=given, folders=source.folders)
    if isinstance(source, typed.Scenario):
        return Scenario(source.table(), overrides={**given, **own}, folders=list(source.folders))
    if isinstance(source, Mapping):
        return Scenario(plain(source), overrides=own, settings=given)
    path = path_of(source)
    text = read_text(path)
    if NO_SCENARIO.search(text):
        check_form(parse_toml(text, str(path)), "scenario", str(path))
    return Scenario(text, file=str(path), overrides=own, settings=given, folders=[str(path.parent)])

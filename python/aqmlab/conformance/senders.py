"""Replays what senders of real kernels did, segment by segment.

A case is a folder with `case.json` and `events.csv.gz`; docs/conformance.md describes both.
"""

from __future__ import annotations

import lzma
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from aqmlab import _core
from aqmlab.conformance.folder import read, read_object
from aqmlab.conformance.replay import Progress, in_threads
from aqmlab.errors import InputError, input_error, unknown

Made = TypeVar("Made")
SHIPPED = Path(__file__).parent / "recorded" / "senders.xz"
CASE, EVENTS = "case.json", "events.csv.gz"
LAYOUT = f"CASE/{{{CASE},{EVENTS}}}"
GOAL = 0.995
"""The share of segments and of windows that is to be equal."""
STACKS = {"6.1": "linux-6.1", "6.12": "linux-6.12"}
"""The kernels with a sender here, by the first two numbers of their version."""
SWITCHES = {
    "tcp_frto": ("frto", 2),
    "tcp_early_retrans": ("tail_loss_probe", 3),
    "tcp_slow_start_after_idle": ("after_idle", 1),
}
"""Settings of the kernel, their keys in aqmlab, and the kernel's default; 0 is off."""
TAKEN_FROM_THE_EVENTS = ("tcp_ecn", "tcp_timestamps")


@dataclass(frozen=True)
class SenderReport:
    """How a case went; the records of `aqmlab conformance --tcp --json`."""

    case: str
    segments: int
    segments_equal: int
    windows: int
    """Acknowledgements before which the window was recorded."""
    windows_equal: int
    first_difference_ns: int | None
    """When the first segment or window differed."""

    @property
    def equal(self) -> bool:
        """True if all segments and windows are equal."""
        return self.segments == self.segments_equal and self.windows == self.windows_equal


@dataclass(frozen=True)
class ClosedReport:
    """How a connection went with both ends ours; the records of `--tcp --closed --json`."""

    case: str
    all_acknowledged_ns: int | None
    recorded_all_acknowledged_ns: int | None
    retransmitted: int
    recorded_retransmitted: int
    close: bool
    """The time is within 1 %, and the retransmissions within two or 2 %."""


def total(reports: Sequence[SenderReport]) -> SenderReport:
    """All cases together."""
    _, segments, equal, windows, same, firsts = zip(*map(astuple, reports), strict=True)
    first = min((each for each in firsts if each is not None), default=None)
    return SenderReport("total", sum(segments), sum(equal), sum(windows), sum(same), first)


def reaches_goal(reports: Sequence[SenderReport]) -> bool:
    """True if enough segments and windows are equal."""
    all_ = total(reports)
    return all_.segments_equal >= GOAL * all_.segments and all_.windows_equal >= GOAL * all_.windows


def _each(
    work: Callable[[bytes], Made],
    folder: Path | None = None,
    names: Sequence[str] = (),
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Made]:
    found: Mapping[str, Path | bytes] = (
        {case.name: case for case in find_senders(folder)} if folder else read_archive()
    )
    for name in names:
        if name not in found:
            raise unknown("case", name, list(found))
    chosen = [case for name, case in found.items() if not names or name in names]
    packed = (pack_case(case) if isinstance(case, Path) else case for case in chosen)
    return in_threads(work, packed, threads, progress)


def _replay(packed: bytes) -> SenderReport:
    name, equal = _core.replay_sender(packed)
    segments, segments_equal, windows, windows_equal, _, first = equal
    return SenderReport(name, segments, segments_equal, windows, windows_equal, first)


def _close(packed: bytes) -> ClosedReport:
    name, ours, recorded, close = _core.close_sender(packed)
    return ClosedReport(name, ours[0], recorded[0], ours[1], recorded[1], close)


check_senders = partial(_each, _replay)
"""Replays the cases called `names` (all if none is named), sorted by name. Without `folder` those
that come with aqmlab are replayed. Raises `InputError` if a case cannot be read, or if its kernel
or control has no counterpart here."""
close_senders = partial(_each, _close)
"""Plays the same cases with both ends ours."""


def find_senders(folder: Path) -> list[Path]:
    """The folders of the cases in `folder`, sorted; or `folder` itself if it is a case."""
    if not folder.is_dir():
        raise input_error(f"this is not a folder; cases are in {LAYOUT}", file=str(folder))
    if (folder / CASE).exists():
        return [folder]
    cases = sorted(each for each in folder.iterdir() if (each / CASE).exists())
    if not cases:
        raise input_error(f"there are no cases here; they are in {LAYOUT}", file=str(folder))
    return cases


def pack_case(folder: Path) -> bytes:
    """Packs the case in `folder`. Raises `InputError` with the file and the mistake."""
    file = folder / CASE
    settings = _settings(read_object(file), file)
    events = folder / EVENTS
    try:
        text = read(events).decode()
    except UnicodeDecodeError as error:
        raise input_error(f"cannot be read: {error}", file=str(events)) from error
    try:
        return _core.pack_sender(folder.name, text, **settings)
    except InputError as error:
        raise input_error(str(error), file=str(events)) from error


def _settings(facts: dict[str, Any], file: Path) -> dict[str, Any]:
    """Arguments of `_core.pack_sender` for a case."""
    kernel = str(facts.get("reference", ""))
    version = kernel.removeprefix("Linux ").split(",")[0].split(" ")[0]
    stack = STACKS.get(".".join(version.split(".")[:2]))
    if stack is None:
        allowed = " or ".join(f"Linux {version}" for version in STACKS)
        raise input_error(f"`{kernel}` has no sender here; allowed: {allowed}", file=str(file))
    control = facts.get("control")
    if not isinstance(control, str):
        raise input_error("`control` is missing: the name of a congestion control", file=str(file))
    sender = {key: int(value) for key, value in dict(facts.get("sysctl_sender", {})).items()}
    receiver = dict(facts.get("sysctl_receiver", {}))
    known = [*SWITCHES, *TAKEN_FROM_THE_EVENTS, "tcp_sack", "tcp_recovery"]
    for key in sender:
        if key not in known:
            raise unknown("setting of the kernel", key, known)
    without_sack = sender.get("tcp_sack") == 0 or str(receiver.get("tcp_sack")) == "0"
    rack = sender.get("tcp_recovery", 1) & 1
    return {
        "control": control,
        "stack": stack,
        "recovery": "newreno" if without_sack else "rack" if rack else "sack",
        "offload": facts.get("offload") is True,
        "path": facts.get("path", {}),
        "receive_buffer": int(str(receiver["tcp_rmem"]).split()[1])
        if "tcp_rmem" in receiver
        else None,
        "all_acknowledged_ns": int(facts.get("all_acknowledged_ns", 0)),
        "retransmitted": int(facts.get("retransmitted", 0)),
        **{name: sender.get(key, default) != 0 for key, (name, default) in SWITCHES.items()},
    }


def read_archive() -> dict[str, bytes]:
    """The cases that come with aqmlab by name, packed."""
    packed = lzma.decompress(SHIPPED.read_bytes())
    cases = {}
    begin = 0
    while begin < len(packed):
        name, end = _core.next_sender(packed, begin)
        cases[name] = packed[begin:end]
        begin = end
    return cases

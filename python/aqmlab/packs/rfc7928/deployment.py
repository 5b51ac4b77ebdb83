"""Sections without simulations: the set-up (4.1), cost (11), and parameters (12)."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aqmlab
from aqmlab._core import reference
from aqmlab.numbers import NONE, count
from aqmlab.packs.rfc7928.dumbbell import STEPS
from aqmlab.packs.rfc7928.environment import Environment
from aqmlab.report.document import Block, Column, Facts, Items, Section, Table, Text

if TYPE_CHECKING:
    from aqmlab.campaign import Campaign

CONTROL = {"time", "size", "limit", "number", "whole number", "rate"}
"""Kinds of parameters with a value; the others choose between variants."""


NOT_RUN = (
    "8.3: the theory of the control law; how steady the queue is was measured instead.",
    "11: the cost in hardware, and the information that a device has to provide.",
)
"""Topics of the RFC that the report lacks."""


def arranged(place: Environment, of: Campaign, sections: list[Section]) -> Sequence[Block]:
    """The sections of the questions with the others, in the order of the RFC."""
    is_run = any(each.id == "s8.3" for each in sections)
    stability = "[8.3](#s8.3)" if is_run else "8.3 (not run)"
    comparison = Text(
        f"Parameter sensitivity and stability are in {stability}, the cost of an implementation in "
        "[11](#s11), the parameters of an operator in [12](#s12)."
    )
    every = [
        Section("4.1 Set-up", (_setup(place, of),), id="s4.1"),
        Section("4.3.2 Deployment comparison", (comparison,), id="s4.3.2"),
        Section("11 Implementation cost", tuple(_cost(of)), id="s11"),
        Section("12 Operator control and auto-tuning", tuple(_control(place, of)), id="s12"),
        *sections,
    ]
    every.sort(key=lambda each: [int(part) for part in each.title.split()[0].split(".")])
    parameters = Facts(
        tuple(
            (each.name, ", ".join(f"{k} {v}" for k, v in each.params.items() if k != "limit"))
            for each in of.plan.contenders.values()
        )
    )
    missing = (Items(tuple(map(Text, NOT_RUN))),)
    return [
        *every,
        Section("Not in this report", missing, id="missing"),
        Section("Parameters of the disciplines", (parameters,), id="parameters"),
    ]


def _setup(place: Environment, of: Campaign) -> Facts:
    """Section 4.1."""
    info = of.result.info
    return Facts(
        (
            ("program", f"aqmlab {aqmlab.__version__}, a packet-level simulator"),
            ("machine", machine()),
            ("system", f"{platform.system()}, Python {platform.python_version()}"),
            ("path", f"{place.words}; sections that need another path name it"),
            ("bulk flows", place.senders),
            (
                "samples",
                f"goodput every {STEPS * place.rtt:g} s (K = {STEPS}), delays of every packet; "
                f"{count(info.replications, 'replication')}, seed {info.seed}, "
                f"{count(of.runs, 'simulation')}",
            ),
        )
    )


def machine() -> str:
    """The processor and its model."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{platform.machine()}, {len(models)} × {models[0]}" if models else platform.machine()


def _cost(of: Campaign) -> Iterator[Block]:
    known = costs()
    rows = []
    for each in of.plan.contenders.values():
        entry, nanoseconds = described(each.name), known["nanoseconds"].get(_origin(each.name))
        names = {param["name"] for param in entry["params"]} if entry else set(each.params)
        rows.append(
            (
                each.name,
                nanoseconds[0] if nanoseconds else None,
                nanoseconds[1] if nanoseconds else None,
                _where(of, each.name),
                "yes" if "hashing" in names else "no",
                "every update" if "tupdate" in names else "no",
                "yes" if "ecn" in names else "no",
            )
        )
    yield Text(
        "Time for a packet: one enqueue and one dequeue in a standing queue, with the counting of "
        f"every run, in nanoseconds, with 1 and with 1000 flows (measured {known['measured']} on "
        f"one core of {known['machine']}). It is that of aqmlab's own code and compares "
        "disciplines; hardware has other costs. Disciplines written in Python are not measured."
    )
    columns = (
        Column("queue", label=True),
        Column("1 flow", unit="ns", show=str),
        Column("1000 flows", unit="ns", show=str),
        Column("drops"),
        Column("queues for flows"),
        Column("timer"),
        Column("marks (ECN)"),
    )
    yield Table(columns, tuple(rows))
    pages = [
        f"`docs/disciplines/{_origin(each.name)}.md`"
        for each in of.plan.contenders.values()
        if described(each.name)
    ]
    if pages:
        yield Text(f"Models, sources and known differences from them: {', '.join(pages)}.")


def _where(of: Campaign, name: str) -> str:
    """Where a discipline drops, as section 4.6 measured it."""
    share = of.at("4.6", name).mean("", "queued_drop_share", "down")
    if share != share:
        return NONE
    return "from the queue" if share > 0.98 else "on arrival" if share < 0.02 else "both"


def _control(place: Environment, of: Campaign) -> Iterator[Block]:
    own = of.plan.contenders[of.subject]
    entry = described(own.name)
    if entry is None:
        yield Text(f"`{own.name}` is a custom discipline; its parameters:")
        yield Facts(tuple(own.params.items()) or (("parameters", "none"),))
        return
    knob = own.knob(place.limit())
    control = [each for each in entry["params"] if each["kind"] in CONTROL]
    found = of.findings.get("8.3", {}).get(of.others[0])
    told = f" Section 8.3 measures its effect: {found.text}." if found else ""
    yield Text(
        f"`{own.name}` has {len(control)} parameters with a value and "
        f"{len(entry['params']) - len(control)} that choose between variants. All have "
        f"defaults that fit a usual path; the main one is `{knob}`.{told} "
        "The limit is that of each case."
    )
    columns = (
        Column("parameter", label=True),
        Column("here"),
        Column("default"),
        Column("allowed", prose=True),
        Column("meaning", prose=True),
        Column("source", prose=True),
    )
    rows = []
    for each in entry["params"]:
        here = own.params.get(each["name"], NONE)
        shown = "of each case" if each["name"] == "limit" else here
        if each["name"] in own.settings:
            shown = f"{here} (set)"
        span = " to ".join(each["range"]) if each["range"] else ", ".join(each["choices"])
        allowed, source = span or each["kind"], each["source"] or NONE
        default = str(each["default"] or NONE)
        meaning = each["meaning"].replace("`", "")
        rows.append((each["name"], shown, default, allowed, meaning, source))
    yield Table(columns, tuple(rows))
    tuned = ", ".join(f"{key} = {value}" for key, value in own.settings.items())
    yield Text(
        "RFC 7567, section 4: AQM algorithms should not require tuning in common use cases. "
        + (f"Tuned for this page: {tuned}." if tuned else "Nothing was tuned for this page.")
    )


@cache
def costs() -> dict[str, Any]:
    """Nanoseconds for a packet by discipline, and where they were measured."""
    text = (Path(__file__).parent / "costs.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def described(name: str) -> dict[str, Any] | None:
    """The declaration of a discipline; None for a custom one."""
    for each in reference():
        if each["section"] == "queue" and each["name"] == name:
            entry: dict[str, Any] = dict(each)
            return described(each["preset_of"]) if each["preset_of"] else entry
    return None


def _origin(name: str) -> str:
    """The discipline of a preset; otherwise the name."""
    found = described(name)
    return str(found["name"]) if found else name

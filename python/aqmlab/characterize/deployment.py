"""What RFC 7928 wants said of a discipline besides what is measured: the set-up (4.1), and what
deployment takes (4.3.2) - cost (11), and the parameters that an operator meets (12)."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aqmlab
from aqmlab._core import reference
from aqmlab.characterize.environment import Contender
from aqmlab.numbers import NONE
from aqmlab.report.document import Block, Code, Column, Facts, Section, Table, Text

if TYPE_CHECKING:
    from aqmlab.characterize import Characterization

CONTROL = {"time", "size", "limit", "number", "whole number", "rate"}
"""Kinds of parameters that move something; the others choose between forms."""


def setup(of: Characterization, commands: Sequence[str]) -> Section:
    """Section 4.1: how the results were made, for whoever wants to have them again."""
    place, info = of.plan.environment, of.result.info
    facts = (
        ("program", f"aqmlab {aqmlab.__version__}, a packet-level simulator"),
        ("machine", machine()),
        ("system", f"{platform.system()} {platform.release()}, Python {platform.python_version()}"),
        (
            "path",
            f"{place.rate / 1e6:g} Mbit/s, {1e3 * place.rtt:g} ms there and back, buffer "
            f"{place.limit()} packets; sections that need another say so",
        ),
        (
            "samples",
            f"goodput every {10 * place.rtt:g} s (K = 10), delays of every packet; "
            f"{info.replications} replications, seed {info.seed}, {of.runs:,} simulations",
        ),
    )
    text = (
        "The results are the same on every machine; this is the one on which this page was "
        "written. The command that makes them again:"
    )
    return Section("4.1 Set-up", (Facts(facts), Text(text), *map(Code, commands)), id="s4.1")


def machine() -> str:
    """The processor and what it is called."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{platform.machine()}, {len(models)} × {models[0]}" if models else platform.machine()


def comparison() -> Section:
    """Section 4.3.2: where to find it."""
    text = (
        "Parameter sensitivity and stability are in [8.3](#s8.3), the cost of an implementation in "
        "[11](#s11), what an operator has to set in [12](#s12)."
    )
    return Section("4.3.2 Deployment comparison", (Text(text),), id="s4.3.2")


def deployment(of: Characterization) -> Iterator[Section]:
    """Sections 11 and 12."""
    yield Section("11 Implementation cost", tuple(_cost(of)), id="s11")
    yield Section("12 Operator control and auto-tuning", tuple(_control(of)), id="s12")


def _cost(of: Characterization) -> Iterator[Block]:
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


def _where(of: Characterization, name: str) -> str:
    """Where a discipline drops, as section 4.6 measured it."""
    share = of.measures.mean("4.6", "", name, "down", "drops_from_queue")
    if share != share:
        return NONE
    return "from the queue" if share > 0.98 else "on arrival" if share < 0.02 else "both"


def _control(of: Characterization) -> Iterator[Block]:
    own = of.plan.contenders[of.discipline]
    entry = described(own.name)
    if entry is None:
        yield Text(f"`{own.name}` is no discipline of aqmlab; its parameters:")
        yield Facts(tuple(own.params.items()) or (("parameters", "none"),))
        return
    knob = own.knob(of.plan.environment.limit())
    control = [each for each in entry["params"] if each["kind"] in CONTROL]
    outcome = next((each for each in of.verdict.lines if each.section.number == "8.3"), None)
    told = f" Section 8.3 measures what it moves: {outcome.main.text}." if outcome else ""
    yield Text(
        f"`{own.name}` has {len(control)} parameters with a value and "
        f"{len(entry['params']) - len(control)} that choose between forms. All have defaults that "
        f"fit a usual path; the main one is `{knob}`.{told} "
        "The limit is that of each case."
    )
    columns = (
        Column("parameter", label=True),
        Column("here"),
        Column("default"),
        Column("allowed"),
        Column("meaning", prose=True),
        Column("source", prose=True),
    )
    yield Table(columns, tuple(_parameters(own, entry)))
    yield Text(
        "RFC 7567, section 4: AQM algorithms should not require tuning in common use cases. "
        + _tuned(own)
    )


def _parameters(own: Contender, entry: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for each in entry["params"]:
        here = own.params.get(each["name"], NONE)
        shown = "of each case" if each["name"] == "limit" else here
        if each["name"] in own.settings:
            shown = f"{here} (set)"
        span = " to ".join(each["range"]) if each["range"] else ", ".join(each["choices"])
        yield (
            each["name"], shown, str(each["default"] or NONE), span or each["kind"],
            each["meaning"], each["source"] or NONE,
        )  # fmt: skip


def _tuned(own: Contender) -> str:
    if own.settings:
        return f"Tuned for this page: {', '.join(f'{k} = {v}' for k, v in own.settings.items())}."
    return "Nothing was tuned for this page."


@cache
def costs() -> dict[str, Any]:
    """Nanoseconds for a packet by discipline, and where they were measured."""
    text = (Path(__file__).parent / "costs.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def described(name: str) -> dict[str, Any] | None:
    """The declaration of a discipline; None of one's own."""
    for each in reference():
        if each["section"] == "queue" and each["name"] == name:
            entry: dict[str, Any] = dict(each)
            return described(each["preset_of"]) if each["preset_of"] else entry
    return None


def _origin(name: str) -> str:
    """The discipline that a preset is of; otherwise the name."""
    found = described(name)
    return str(found["name"]) if found else name

"""Results of `aqmlab try`: answer, picture, table, commands, simulated set-up."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from aqmlab.campaign.page import TONES
from aqmlab.packs.access_line.choice import (
    Choice,
    PairedDifference,
    comparisons,
    recommended,
    sentences,
)
from aqmlab.packs.access_line.commands import SetupCommands, commands
from aqmlab.packs.access_line.setup import BASELINE, PATHS, is_shaping
from aqmlab.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Figure,
    Items,
    Section,
    Table,
    Text,
    Verdict,
    write_text,
)
from aqmlab.report.document import panels as draw

if TYPE_CHECKING:
    from aqmlab.campaign import Answer
    from aqmlab.packs.access_line.trial import LineTrial

PICTURED = ("web.page_load", "call.mos", "game.delay", "ping.rtt", "download.goodput",
            "upload.goodput")  # fmt: skip
SCALES = {"call.mos": (1.0, 4.5)}
"""Ends of an axis that does not begin at zero (ITU-T G.107, Annex B)."""
CHOSEN, OTHER = "#2f6fbb", "#8a9099"


def called(queue: str) -> str:
    """The queue's name on the page."""
    return f"{queue} (as it is)" if queue == BASELINE else queue


def table(trial: LineTrial, choice: Choice | None = None) -> Table:
    """A row a measure, a column a queue: means of the replications, with intervals."""
    rows: list[tuple[Cell, ...]] = []
    for what in trial.noticed:
        title = f"{what.heading} ({what.unit})" if what.unit else what.heading
        rows.append((title, *(trial.shown(what, queue) for queue in trial.queues)))
    best = choice and choice.queue
    columns = [Column(called(queue), chosen=queue == best) for queue in trial.queues]
    number = trial.result.info.replications
    caption = f"Means of {number} replications; with the 95 % interval, if any."
    return Table((Column("", label=True), *columns), tuple(rows), id="noticed", caption=caption)


def figure(trial: LineTrial, choice: Choice | None) -> Figure:
    """Means of the measures that users notice, a panel each."""
    best = choice and choice.queue
    palette = {called(queue): CHOSEN if queue == best else OTHER for queue in trial.queues}
    panels = {
        what.heading: draw.Means(
            what.unit or what.title,
            {called(queue): trial.shown(what, queue) for queue in trial.queues},
            SCALES.get(what.short),
        )
        for what in trial.noticed
        if what.short in PICTURED
    }
    return Figure(
        "queues",
        "What each queue means for its users",
        "More MOS and goodput are better, and less of everything else.",
        "Points are means of the replications, lines their 95 % intervals.",
        draw.estimates(panels, palette),
    )


def document(trial: LineTrial, command: str = "") -> Document:
    """The page."""
    compared = comparisons(trial)
    first, *rest = sentences(trial, compared)
    choice = recommended(trial, compared)
    blocks: list[Block] = [figure(trial, choice), table(trial, choice)]
    blocks.append(Items(tuple(Text(each) for each in rest)))
    if asserted := assertions(trial):
        words = (
            Verdict(each.verdict, TONES[each.verdict], each.evidence, f"{queue}: {each.text}")
            for queue, each in asserted
        )
        blocks.append(Items(tuple(words), "claims"))
    if choice is not None:
        blocks.append(_set_up(trial, choice.queue))
    blocks.append(_simulated(trial, choice.queue if choice else trial.queues[-1], command))
    return Document("Which queue?", tuple(blocks), head=(Text(first, "lead"),))


def assertions(trial: LineTrial) -> list[tuple[str, Answer]]:
    """Queues and statements about them."""
    return [(queue, each) for (_, queue), found in trial.answers.items() for each in found]


def set_up(trial: LineTrial, queue: str) -> SetupCommands:
    """Commands for the simulated set-up of a queue."""
    return commands(trial.links(queue), trial.device or trial.access.kind.device)


def _set_up(trial: LineTrial, queue: str) -> Section:
    """The commands for a queue."""
    usual = trial.access.kind.device
    found = set_up(trial, queue)
    if found.problem:
        return Section(f"Set {queue} up", (Text(found.problem),), id="set-up")
    blocks: list[Block] = []
    if trial.device is None:
        blocks.append(
            Text(
                f"{usual} stands for the device of your router that leads to the line: `ip route "
                "get 1.1.1.1` names it, and `--device` puts it into the commands."
            )
        )
    for title, lines in (("Up", found.up), ("Down", found.down), ("To undo it", found.undo)):
        if lines:
            blocks += [Text(f"{title}:"), Code("\n".join(lines))]
    return Section(f"Set {queue} up", tuple(blocks), id="set-up")


def _simulated(trial: LineTrial, queue: str, command: str) -> Section:
    """Line and load, and what packets pass in each direction, in order."""
    links, line = trial.links(queue), trial.access
    facts = [("line and load", trial.about)]
    for way, path in PATHS.items():
        stages = [
            _carrier(getattr(line.kind, way).owner, links[name], getattr(line, way))
            if name == way
            else _shaper(links[name])
            for name in path
        ]
        ends = ("servers", "home") if way == "down" else ("home", "servers")
        facts.append((way, " → ".join([ends[0], *filter(None, stages), ends[1]])))
    facts.append(("sizes of the FIFOs", line.kind.buffers))
    facts += [("made by", command)] if command else []
    return Section(f"Simulated set-up of {queue}", (Facts(tuple(facts)),))


def _carrier(owner: str, link: Mapping[str, Any], rate: str) -> str:
    """The buffer that the user cannot configure, and the line behind it."""
    sizes = {"overhead": "+ {} a packet", "mpu": "at least {}", "framing": "in {}"}
    framing = ", ".join(text.format(link[key]) for key, text in sizes.items() if key in link)
    return f"FIFO of {owner}, {link['queue']['limit']} → line, {rate}" + (
        f" ({framing})" if framing else ""
    )


def _shaper(link: Mapping[str, Any]) -> str:
    """The router's shaper and queue; nothing if it has none."""
    queue = link["queue"]
    if "shaper" in link:
        return f"HTB, {link['shaper']['rate']}, with {queue['discipline']}"
    return f"{queue['discipline']}, {queue['bandwidth']}" if is_shaping(queue) else ""


def answer(trial: LineTrial) -> dict[str, Any]:
    """The part of `--json` that packs lack."""
    compared = comparisons(trial)
    choice = recommended(trial, compared)
    found = {queue: set_up(trial, queue) for queue in trial.queues}
    return {
        "queues": {
            queue: {
                what.short: trial.shown(what, queue).to_json()
                | {"unit": what.unit, "why": trial.estimate(what, queue).why}
                for what in trial.noticed
            }
            for queue in trial.queues
        },
        "recommended": choice and choice.queue,
        "best_in_everything": choice is not None and choice.is_best,
        "as_good": list(choice.as_good) if choice else [],
        "sentences": sentences(trial, compared),
        "comparisons": [_compared(each) for each in compared],
        "tc": found[choice.queue].lines if choice else [],
        "commands": {queue: vars(each) for queue, each in found.items()},
        "assertions": [{"queue": queue} | each.to_json() for queue, each in assertions(trial)],
    }


def _compared(each: PairedDifference) -> dict[str, Any]:
    value, low, high = (None if isnan(end) else end for end in each.difference)
    return {
        "measure": each.what.short,
        "queues": [each.one, each.other],
        "better": each.better,
        "value": value,
        "low": low,
        "high": high,
        "unit": each.what.unit,
        "why": each.found.why,
    }


def write_study(study: Mapping[str, Any], folder: Path) -> Path:
    """Writes the study to `folder`/study.toml; its path. Raises `StorageError`."""
    path = folder / "study.toml"
    head = "# Made by `aqmlab try`; edit it, then: aqmlab study study.toml\n\n"
    named = {**study, "name": "try_study"}  # its results go to a folder of their own
    write_text(path, head + tomli_w.dumps(named), "the study was not written")
    return path

"""`python -m tools.since`: the pages docs/studies/since-NAME.md, *What changed since* a study.

The file `since.toml` of a study lists topics: the paper's scenario with the queues and senders of
today, and what its authors left for later. A topic is a study over the axes `queue`, `control` and
its own; the page has its findings, overview and table, as the report of that study has them.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

import aqmlab
from aqmlab.cli.common import EXAMPLES, reported
from aqmlab.cli.options import THREADS
from aqmlab.report.document import (
    Block,
    Code,
    Document,
    Figure,
    Note,
    Section,
    Table,
    Text,
)
from aqmlab.report.document.model import walk
from aqmlab.report.study_page import document as document_of
from aqmlab.reproduce.catalogue import place, places
from aqmlab.scenario.settings import check_keys

EXAMPLE = EXAMPLES.format("python -m tools.since docs\n\npython -m tools.since docs kuhn2014")
FILE = "since.toml"
RESULTS = Path("results/since")
QUEUES = {
    "DropTail": {"discipline": "droptail"},
    "CoDel": {"discipline": "codel", "ecn": True},
    "PIE": {"discipline": "pie", "ecn": True},
    "FQ-CoDel": {"discipline": "fq_codel"},
    "CAKE": {"discipline": "cake"},
    "DualPI2": {"discipline": "dualpi2"},
}
UNLIMITED = ("cake",)
"""Disciplines without the key `limit`."""
CONTROLS = {
    "CUBIC": {"profile": "linux-6.12", "congestion_control": "cubic"},
    "BBR": {"profile": "linux-6.12", "congestion_control": "bbr3"},
    "Prague": {"profile": "linux-l4s", "congestion_control": "prague"},
}
KEYS = (
    "id", "title", "text", "measures", "replications", "set", "limit", "queues", "controls",
    "places", "transports", "axes",
)  # fmt: skip
SHOWN_NOTES = 4


@reported
def since(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the documents.")],
    wanted: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...")] = None,
    threads: int | None = THREADS,
) -> None:
    """Run the topics of each study and write its page and pictures.

    The results are kept in results/since: after an interruption the same command resumes.
    """
    for name in wanted or [each for each, at in places().items() if (at.folder / FILE).is_file()]:
        began = time.process_time()
        write(name, folder / "studies", threads)
        print(f"{name}: {time.process_time() - began:.0f} s of processor time", file=sys.stderr)


def write(name: str, folder: Path, threads: int | None) -> None:
    """Writes the page of a study and its pictures."""
    pictures = folder / f"since-{name}"
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    page = document(name, threads)
    for section in page.blocks:
        assert isinstance(section, Section)
        for figure in walk(section.blocks):
            if isinstance(figure, Figure):
                replace(figure, title=section.title).save(pictures / f"{figure.id}.svg")
    text = page.to_markdown().replace("](figures/", f"](since-{name}/")
    (folder / f"since-{name}.md").write_text(text, encoding="utf-8")


def read(name: str) -> tuple[dict[str, Any], str | Mapping[str, Any]]:
    """The content of `since.toml` of a study, and the scenario of the study."""
    at = place(name).folder
    paper = tomllib.loads((at / "study.toml").read_text(encoding="utf-8"))
    base = paper["scenario"]
    given = tomllib.loads((at / FILE).read_text(encoding="utf-8"))
    return given, str(at / base) if isinstance(base, str) else base


def document(name: str, threads: int | None = None) -> Document:
    """The page of a study."""
    given, scenario = read(name)
    results = RESULTS / name
    topics = [_topic(scenario, each, results, threads) for each in given["topics"]]
    runs = sum(count for _, count in topics)
    made = (
        f"Made on {datetime.now(UTC).date()} with aqmlab {aqmlab.__version__}: {runs:,} "
        f"simulations. The study itself: [{name}]({name}.md). Every sentence under *Findings* and "
        "every number is chosen by the data."
    )
    head = (Text(given["text"]), Text(made), Code(f"python -m tools.since docs {name}"))
    return Document(given["title"], tuple(section for section, _ in topics), head=head)


def study_of(scenario: str | Mapping[str, Any], topic: Mapping[str, Any]) -> aqmlab.Study:
    """The study of a topic: axes with one value are settings of all points."""
    check_keys(topic, KEYS, FILE)
    axes = [*_axes(topic)]
    fixed = {key: value for axis in axes if len(axis["values"]) == 1
             for key, value in axis["values"][0]["set"].items()}  # fmt: skip
    varied = [axis for axis in axes if len(axis["values"]) > 1]
    # Settings are applied after axes, so those of the topic are part of the first axis.
    fixed |= topic.get("set", {})
    for value in varied[0]["values"]:
        value["set"] = fixed | value["set"]
    return aqmlab.Study(
        {"name": topic["id"], "title": topic["title"], "scenario": scenario, "axes": varied},
        replications=topic["replications"],
    )


def _topic(
    scenario: str | Mapping[str, Any], topic: Mapping[str, Any], results: Path, threads: int | None
) -> tuple[Section, int]:
    """The section of a topic, and its number of runs."""
    study = study_of(scenario, topic)
    result = study.run(results / topic["id"], threads=threads)
    report = document_of(result, titles=topic["measures"])
    blocks = (Text(topic["text"]), *_chosen(report, topic["id"]))
    return Section(topic["title"], blocks, id=topic["id"]), study.total


def _axes(topic: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The axes of a topic: queue, control, and its own."""
    yield {"name": "queue", "values": [
        {"label": label, "set": dict.fromkeys(topic.get("places", ["queue"]), _queue(label, topic))}
        for label in topic.get("queues", QUEUES)
    ]}  # fmt: skip
    keys = topic.get("transports", ["transport"])
    controls = topic.get("controls", CONTROLS)
    yield {"name": "control", "values": [
        {"label": label, "set": dict.fromkeys(keys, _named(controls, CONTROLS, label))}
        for label in controls
    ]}  # fmt: skip
    yield from topic.get("axes", ())


def _queue(label: str, topic: Mapping[str, Any]) -> dict[str, Any]:
    queue = dict(_named(topic.get("queues", QUEUES), QUEUES, label))
    if queue["discipline"] not in UNLIMITED:
        queue.setdefault("limit", topic["limit"])
    return queue


def _named(given: Sequence[str] | Mapping[str, Any], known: Mapping[str, Any], label: str) -> Any:
    """The value of a label: the topic's own, or the one of that name here."""
    own = given.get(label) if isinstance(given, Mapping) else None
    return own or known[label]


def _chosen(report: Document, topic: str) -> Iterator[Block]:
    """Overview, findings, first table and notes of a study's report."""
    by_id = {each.id: each for each in report.blocks if isinstance(each, Section)}
    yield replace(report.figures[0], id=topic, title="")
    if "findings" in by_id:
        yield by_id["findings"]
    yield from (each for each in by_id["points"].blocks if isinstance(each, Table | Text))
    yield from [each for each in report.blocks if isinstance(each, Note)][:SHOWN_NOTES]


if __name__ == "__main__":
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.command(epilog=EXAMPLE)(since)
    app(prog_name="python -m tools.since")

"""Pages of studies that were misread before: false winners, wrong goodputs,
measures that were left out."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import aqmlab
from aqmlab.metrics.shown import everything, headlines
from aqmlab.report.findings import findings

BOTH: dict[str, Any] = {"path": "down", "return_path": "up"}
LINKS = {
    "down": {"rate": "10mbit", "delay": "10ms", "queue": "codel"},
    "up": {"rate": "10mbit", "delay": "10ms"},
}


def study(flows: dict[str, Any], axis: list[dict[str, Any]], duration: str) -> aqmlab.StudyResult:
    scenario = {"duration": duration, "bottleneck": "down", "links": LINKS, "flows": flows}
    axes = [{"name": "queue", "values": axis}]
    table = {"name": "answers", "replications": 10, "scenario": scenario, "axes": axes}
    return aqmlab.Study(table).run()


def test_labels_that_differ_in_the_seed_alone_have_no_best_and_worst() -> None:
    """Twenty of forty sentences named some. Five studies of eight labels; 20 had one finding."""
    flows = {
        "bulk": {**BOTH, "count": 3, "start": {"uniform": ["0s", "1s"]}},
        "call": {**BOTH, "workload": "voip"},
    }
    tested = shown = 0
    for number in range(5):
        seeds = [{"label": f"q{n}", "set": {"seed": 100 * number + n}} for n in range(8)]
        found = findings(study(flows, seeds, "3s"))
        tested += sum(not each.why for each in found)
        shown += sum(each.shown for each in found)
    assert tested >= 10
    assert shown <= 1


QUEUES = [
    {"label": name, "set": {"queue": queue, "links.up.queue": queue}}
    for name, queue in (("DropTail", "droptail"), ("FQ-CoDel", "fq_codel"))
]


@pytest.fixture(scope="module")
def mixed() -> aqmlab.StudyResult:
    """Flows in sequence, the web, an upload and a call."""
    flows = {
        "first": {**BOTH, "size": "3mb"},
        "second": {**BOTH, "start": {"uniform": ["4s", "5s"]}, "size": "3mb"},
        "upload": {"path": "up", "return_path": "down", "start": {"uniform": ["0s", "1s"]}},
        "download": {**BOTH, "start": {"uniform": ["0s", "1s"]}},
        "web": {**BOTH, "workload": "page"},
        "call": {**BOTH, "workload": "voip"},
    }
    return study(flows, QUEUES, "8s")


def test_goodputs_of_groups_add_up_to_less_than_the_link(mixed: aqmlab.StudyResult) -> None:
    """Goodputs of flows over their own lives were summed: more than the link carries."""
    metrics = mixed.metrics.filter(metric="goodput", direction="forward")
    of_link = metrics.filter(pl.col("subject") != "upload")
    assert of_link.group_by("run").agg(pl.col("value").sum())["value"].max() < 10e6
    lives = mixed.flows.filter(pl.col("group").is_in(["first", "second", "download"]))
    assert lives.group_by("run").agg(pl.col("goodput_bps").sum())["goodput_bps"].max() > 10e6
    # What a page shows is that metric, also of groups whose flows come and go.
    shown = {each.subject: each for each in everything(mixed) if each.metric.name == "goodput"}
    assert {"web", "first", "download", "upload"} <= set(shown)
    for name, each in shown.items():
        own = metrics.filter(pl.col("subject") == name).sort("run")
        assert each.values.sort("run")["value"].to_list() == pytest.approx(
            (own["value"] * each.factor).to_list()
        )


def test_what_answers_stands_in_front_however_many_groups_there_are(
    mixed: aqmlab.StudyResult,
) -> None:
    """The sixth measure was the last: the score of the call appeared nowhere."""
    titles = [each.title for each in headlines(mixed)]
    assert len(titles) > 6
    assert any("MOS" in each for each in titles)
    assert any("page load" in each for each in titles)
    shown = [each for each in findings(mixed) if each.shown]
    calls = [each for each in shown if "MOS" in each.measure]
    assert [each.best for each in calls] == [("FQ-CoDel",)]
    assert "MOS" in mixed.report().to_markdown()

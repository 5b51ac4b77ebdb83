"""Pages *What changed since* a study: topics are valid, and the data choose what a page says."""

from __future__ import annotations

import re

import polars as pl
import pytest

from aqmlab import InputError, StudyResult
from aqmlab.report.document import Document
from aqmlab.report.study_page import document
from tools.since import CONTROLS, QUEUES, _chosen, read, study_of

SEEDS = ("jarvinen2014", "cs244_2015", "kuhn2014", "monga2016")


@pytest.mark.parametrize("name", SEEDS)
def test_every_point_of_a_topic_is_valid(name: str) -> None:
    given, scenario = read(name)
    topics = given["topics"]
    assert len({each["id"] for each in topics}) == len(topics) >= 3
    today = study_of(scenario, topics[0])
    labels = {axis.name: axis.labels for axis in today.axes}
    assert labels["queue"] == list(QUEUES)
    assert labels["control"] == list(CONTROLS)
    for topic in topics:
        study = study_of(scenario, topic)
        assert study.replications >= 5, "an interval needs five"
        for place in range(len(study.points)):
            assert study.points[place].scenario.resolved


def test_a_topic_keeps_the_buffer_of_the_paper_and_fixes_single_values() -> None:
    given, scenario = read("jarvinen2014")
    pie = study_of(scenario, given["topics"][1])
    assert [axis.name for axis in pie.axes] == ["queue"]
    table = pie.points[1].scenario.table
    assert table["links"]["down"]["queue"]["limit"] == "100p"
    assert table["flows"]["first"]["count"] == "4"
    assert table["flows"]["first"]["transport"]["congestion_control"]["algorithm"] == "cubic"


@pytest.fixture(scope="module")
def result() -> StudyResult:
    given, scenario = read("jarvinen2014")
    topic = {**given["topics"][1], "replications": 6}
    return study_of(scenario, topic).run(threads=1)


def test_the_page_says_what_the_data_show(result: StudyResult) -> None:
    title = "second: completion time, mean"
    report = document(result, titles=[title])
    page = Document("page", tuple(_chosen(report, "pie")))
    assert [each.id for each in page.figures] == ["pie"]
    text = page.to_markdown()
    times = result.times.filter(group="second", quantity="completion")
    assert f"| queue | {title} (s) |" in text
    found = re.search(r"best with (.*?) \(.*?worst with (.*?) \(", text)
    assert found
    means = dict(times.group_by("queue").agg(pl.col("mean_s").mean()).iter_rows())
    ordered = sorted(means, key=lambda name: means[name])
    assert str(ordered[0]) in found[1]
    assert str(ordered[-1]) in found[2]
    assert "no intervals" not in text


def test_an_unknown_measure_is_named(result: StudyResult) -> None:
    with pytest.raises(InputError, match=r"link bussy.*did you mean `link busy`"):
        document(result, titles=["link bussy"])

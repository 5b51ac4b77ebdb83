"""Pages and terminals say what they show: one statistic, its interval, and what would be needed."""

import io
import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from scipy import stats

import aqmlab
from aqmlab.metrics import headlines
from aqmlab.report.findings import (
    MOST_REPLICATIONS,
    QUESTIONS,
    findings,
    needed,
    of_measures,
    replications_for,
    sentences,
    spread_of,
)
from aqmlab.report.measures import Layout, answering, by_point, estimates
from aqmlab.report.study_page import document, show
from aqmlab.stats import Contest, compare
from aqmlab.stats.comparisons import typical_reach

BOTH = {"path": "down", "return_path": "up"}
STUDY = {
    "name": "household",
    "replications": 8,
    "scenario": {
        "duration": "10s",
        "links": {"down": {"rate": "5mbit", "delay": "20ms"}, "up": {"rate": "2mbit"}},
        "flows": {
            "bulk": BOTH | {"count": 2},
            "ping": BOTH | {"workload": "probe"},
            "call": BOTH | {"workload": "voip"},
        },
    },
    "axes": [
        {"key": "queue", "values": ["droptail", "codel"]},
        {"name": "rtt", "key": "links.down.delay", "values": ["10ms", "40ms"]},
    ],
}


@pytest.fixture(scope="module")
def result() -> aqmlab.StudyResult:
    return aqmlab.study(STUDY)


def test_goodput_is_compared_only_where_it_is_what_a_group_is_for(
    result: aqmlab.StudyResult,
) -> None:
    titles = [each.title for each in headlines(result)]
    assert "bulk: goodput" in titles and "ping: goodput" not in titles
    assert any(each.startswith("ping: round trip") for each in titles)
    assert not any(each.measure == "ping: goodput" for each in findings(result))


def test_a_difference_is_the_interval_also_of_several_places(result: aqmlab.StudyResult) -> None:
    own = [each for each in findings(result) if each.measure.startswith("time in the queue")]
    assert len(own) == 2 and all(each.shown for each in own)
    ends = sorted(abs(end) for each in own for end in (each.low, each.high))
    [line] = re.findall(r"Time in the queue.*?difference ([\d,.]+) to ([\d,.]+) ms", page(result))[
        :1
    ]
    shown = [float(each.replace(",", "")) for each in line]
    assert shown == pytest.approx([ends[0], ends[-1]], rel=0.005)


def page(result: aqmlab.StudyResult) -> str:
    return result.report().to_markdown()


def test_the_page_answers_first_and_groups_by_question(result: aqmlab.StudyResult) -> None:
    text = page(result)
    places = [
        text.index(each) for each in ("Time in the queue, 95th", "overview.svg", "## Findings")
    ]
    assert places == sorted(places)
    questions = [text.index(each) for each in QUESTIONS]
    assert questions == sorted(questions) and text.index("### " + QUESTIONS[0]) > places[-1]
    call = text.index("call: MOS", questions[0])
    assert questions[0] < call < questions[1] < text.index("bulk: goodput", questions[1])


def test_a_figure_and_its_sentences_use_the_mean(result: aqmlab.StudyResult) -> None:
    overview = next(each for each in document(result).figures if each.id == "overview")
    assert "means" in overview.message
    goodput = next(each for each in headlines(result) if each.title == "bulk: goodput")
    values = by_point(result, goodput)[0]
    [row] = re.findall(r"droptail,10ms,([\d.]+),([\d.]+),([\d.]+)", json.dumps(overview.spec))[:1]
    within = estimates(result, goodput)[0].interval
    assert within is not None
    drawn = [values.mean(), within.low, within.high]
    assert [float(each) for each in row] == pytest.approx(drawn, rel=1e-3)


def test_both_ends_of_an_interval_are_in_the_terminal(result: aqmlab.StudyResult) -> None:
    out = io.StringIO()
    show(result, Console(file=out, width=200))
    assert "±" not in out.getvalue()
    found = re.findall(r" ([\d.]+) \(([\d.]+)–([\d.]+)\)", out.getvalue())
    sides = [(float(v) - float(low), float(high) - float(v)) for v, low, high in found]
    assert sides and any(below != pytest.approx(above, rel=0.2) for below, above in sides)


def test_replications_needed_show_the_difference() -> None:
    for spread, difference in ((1.0, 1.0), (1.0, 0.25), (0.2, 1.0)):
        count = replications_for(spread, difference)
        reached = [power_of(n, spread, difference) for n in (count - 1, count) if n > 1]
        assert reached[-1] >= 0.8 and (count == 2 or reached[0] < 0.8)
    assert replications_for(1.0, 1e-6) == MOST_REPLICATIONS
    many = [replications_for(1.0, difference) for difference in np.geomspace(0.5, 100, 200)]
    assert many == sorted(many, reverse=True), "larger differences need fewer"
    rng = np.random.default_rng(2)
    common = rng.normal(size=400)
    samples = [common + rng.normal(size=400), 3 + common + rng.normal(size=400)]
    assert spread_of(samples, paired=True) == pytest.approx(2**0.5, rel=0.1)
    assert spread_of(samples, paired=False) == pytest.approx(2.0, rel=0.1)


def power_of(count: int, spread: float, difference: float) -> float:
    shift = difference / spread * count**0.5
    return float(stats.nct.sf(typical_reach(count, 0.05), count - 1, shift))


def test_a_typical_interval_has_the_power_of_the_test() -> None:
    rng = np.random.default_rng(4)
    for difference in (2.0, 1.0, 0.6):
        count = replications_for(2**0.5, difference)
        tables = rng.normal(size=(400, 2, count)) + np.array([[difference], [0.0]])
        pairs = ({"a": one, "b": two} for one, two in tables)
        shown = [compare([Contest("delay", "ms", each)])[0].shown for each in pairs]
        assert 0.74 < np.mean(shown) < 0.92


def test_the_page_says_what_a_tenth_would_need(result: aqmlab.StudyResult) -> None:
    told = needed(result, answering(headlines(result)), Layout.of(result.info.axes))
    assert told in page(result).replace("\n", " ")
    assert re.search(r"difference of 10 % .*bulk: goodput \d", told)
    once = aqmlab.study(STUDY | {"replications": 1})
    assert "Replications that would show" not in page(once)


def test_too_few_runs_detect_no_difference_that_exists() -> None:
    """No difference of two MOS is larger than 3.5."""
    two = aqmlab.study(STUDY | {"replications": 2})
    lines = sentences(two, headlines(two), Layout.of(two.info.axes))
    told = [text for each, text in lines if each.title == "call: MOS"]
    assert any("so few replications could not have shown any)." in text for text in told)


def test_a_replication_without_any_value_is_left_out(result: aqmlab.StudyResult) -> None:
    """A silent call has no delay behind any queue."""
    measure, layout = headlines(result)[0], Layout.of(result.info.axes)
    without = replace(measure, values=measure.values.filter(pl.col("run") % 8 != 3))
    for found in of_measures(result, [without], layout):
        assert (found.why, found.missing) == ("", {})
    one = replace(measure, values=measure.values.filter(pl.col("run") != 3))
    named = [found.missing for found in of_measures(result, [one], layout)]
    assert named == [{"droptail": 1}, {}]


def test_labels_that_are_not_compared_are_named() -> None:
    """A page that loads in no or in few runs behind a queue has no mean to compare."""
    pages = BOTH | {"workload": {"kind": "page", "objects": 20}, "start": {"uniform": ["0s", "2s"]}}
    links = {"down": {"rate": "3mbit", "delay": "20ms"}, "up": {"rate": "3mbit"}}
    study = {
        "name": "pages",
        "replications": 6,
        "scenario": {
            "duration": "10s",
            "links": links,
            "flows": {"bulk": BOTH | {"count": 3}, "web": pages},
        },
        "axes": [{"key": "queue", "values": ["droptail limit 900", "codel", "fq_codel"]}],
    }
    result = aqmlab.study(study)
    [found] = (each for each in findings(result) if each.measure.startswith("web: page load"))
    [(label, runs)] = found.missing.items()
    assert label == "droptail limit 900" and 0 < runs <= 6 and label not in found.means
    layout = Layout.of(result.info.axes)
    told = [
        text for each, text in sentences(result, headlines(result), layout) if "web" in each.title
    ]
    assert told[0].endswith(f" Not compared: {label} (no value in {runs} of 6 runs).")

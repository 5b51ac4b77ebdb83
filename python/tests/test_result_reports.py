"""Reports of runs and studies agree with the tables."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import SCENARIO, Aqmlab, assert_refused

import aqmlab as package
from aqmlab.metrics import Metric, Shown, headlines
from aqmlab.metrics.registry import LESS
from aqmlab.report.findings import sentences
from aqmlab.report.measures import Layout, estimates
from aqmlab.results import StudyResult

QUEUES = ["droptail", "codel"]
STUDY: dict[str, Any] = {
    "name": "calls",
    "title": "Calls <beside> downloads",
    "replications": 3,
    "scenario": SCENARIO
    | {
        "flows": {"bulk": SCENARIO["flows"]["bulk"] | {"start": "0s"}}
        | {"call": {"path": "down", "return_path": "up", "workload": "voip"}}
    },
    "axes": [
        {"key": "queue", "values": QUEUES},
        {"name": "flows", "key": "flows.bulk.count", "values": [1, 8]},
    ],
}


@pytest.fixture(scope="module")
def result() -> StudyResult:
    return package.Study(STUDY).run()


def test_measures_are_those_of_the_tables(result: StudyResult) -> None:
    found = {each.title: each for each in headlines(result)}
    assert list(found) == [
        "time in the queue, 95th percentile", "link busy", "bulk: goodput", "call: MOS",
        "call: one-way delay, p95",
    ]  # fmt: skip
    p95 = result.bottleneck.filter(pl.col("point") == 3)["sojourn_p95_s"].mean()
    assert estimates(result, found["time in the queue, 95th percentile"])[3].value == pytest.approx(
        1e3 * p95
    )
    goodput = result.flows.filter(pl.col("point") == 1, pl.col("group") == "bulk")
    total = goodput["goodput_bps"].sum() / 3 / 1e6
    assert estimates(result, found["bulk: goodput"])[1].value == pytest.approx(total)


def test_the_finding_names_the_best_and_the_worst(result: StudyResult) -> None:
    told = sentences(result, headlines(result), Layout.of(result.info.axes))
    lines = [line for _, line in told]
    assert re.fullmatch(
        r"Time in the queue, 95th percentile, in both cases: best with codel, worst with "
        r"droptail; difference [\d.,]+ to [\d.,]+ ms\.",
        lines[0],
    )
    assert any(re.match("call: MOS", each) for each in lines)


def of_two(first: list[float], second: list[float], *others: list[float]) -> list[str]:
    """Findings for two queues, or more, with these values in the replications."""
    scenario = {key: value for key, value in STUDY.items() if key != "axes"}
    axes = [{"key": "queue", "values": [*QUEUES, "pie"][: 2 + len(others)]}]
    varied = {"duration": "1s", "flows.bulk.start": {"each": ["0s", "500ms"]}}
    result = package.Study(scenario | {"axes": axes}, set=varied).run()
    every = list(itertools.chain(first, second, *others))
    values = pl.DataFrame({"run": range(len(every)), "value": every})
    metric = Metric("what", "link", "s", "", "", "", LESS, title="what")
    found, layout = [Shown(metric, "", "", "ms", 1e3, values)], Layout.of(result.info.axes)
    return [line for _, line in sentences(result, found, layout)]


def test_means_of_different_cases_are_not_a_difference(result: StudyResult) -> None:
    """1 or 100 s with the number of flows; the queues differ by up to 0.2 s."""
    runs = result.links.filter(pl.col("link") == "down")
    noise = pl.col("replication") * pl.when(pl.col("queue") == "codel").then(0.1).otherwise(-0.1)
    base = pl.when(pl.col("flows") == "8").then(100.0).otherwise(1.0)
    values = runs.select("run", value=base + (noise + 0.1 * (pl.col("replication") == 1)))
    metric = Metric("what", "link", "s", "", "", "", LESS, title="what")
    shown = Shown(metric, "", "", "s", 1.0, values)
    ((_, text),) = sentences(result, [shown], Layout.of(result.info.axes))
    assert text.startswith("What, in both cases: no significant difference (differences up to 0.2")
    assert "100" not in text
    values = runs.select("run", value=base + pl.col("replication"))
    shown = Shown(metric, "", "", "s", 1.0, values)
    ((_, text),) = sentences(result, [shown], Layout.of(result.info.axes))
    assert text == (
        "What, in both cases: equal in each replication (means of the cases 2.00 s to 101 s)."
    )


def test_chance_is_no_finding() -> None:
    (text,) = of_two([1.0, 5.0, 3.0], [2.0, 3.0, 5.0])
    assert "no significant difference (means 3.00 ms to 3.33 ms; a measured difference of " in text
    (text,) = of_two([1.0, 5.0, 3.0], [1.0, 5.0, 3.0])
    assert text == "What: equal in each replication (means 3.00 ms)."
    # The same spread, but one is lower under the same arrivals each time.
    (text,) = of_two([1.0, 5.0, 3.0], [2.0, 6.01, 4.02])
    assert text == (
        "What: best with droptail (3.00 ms), worst with codel (4.01 ms); "
        "difference 0.980 to 1.04 ms."
    )
    (text,) = of_two([2.0, 2.0, 2.0], [2.0, 2.0, 2.0])
    assert text == "What: 2.00 ms with every queue."
    # Labels like the best one have means of their own.
    (text,) = of_two([3.0, 5.0, 4.0], [3.3, 5.1, 4.2], [60.0, 61.5, 61.0])
    assert "best with droptail and codel (4.00 ms to 4.20 ms), worst with pie (60.8 ms); " in text


def test_a_study_says_what_was_shown_and_what_was_not(study: Path, aqmlab: Aqmlab) -> None:
    told = aqmlab.json("study", study, "--replications", "5", "--set", "duration=5s", "--json")
    for each in told["findings"]:
        away = each["low"] is not None and (each["low"] > 0 or each["high"] < 0)
        assert each["verdict"] == ("shown" if away else "not shown")
        assert bool(each["best"]) == bool(each["worst"]) == (each["verdict"] == "shown")
        assert set(each["where"]) == {"flows"} and each["level"] == 0.95
    delays = [each for each in told["findings"] if each["measure"].startswith("time in")]
    assert len(delays) == 3 and any(each["verdict"] == "shown" for each in delays)
    for point in told["points"]:
        for each in point["measures"]:
            assert each["low"] is None or each["low"] <= each["mean"] <= each["high"]
        assert sum(each["low"] is not None for each in point["measures"]) >= 2


def test_the_layout_keeps_what_can_be_read() -> None:
    few = [("queue", ["a", "b"]), ("rate", ["1", "2", "3"]), ("rtt", ["x", "y"])]
    layout = Layout.of(few)
    assert (layout.compared, layout.colour, layout.across) == ("queue", "queue", ("rate", "rtt"))
    many = [("queue", [str(n) for n in range(9)]), ("rate", ["1", "2"]), ("rtt", list("abc"))]
    layout = Layout.of(many)
    assert (layout.compared, layout.colour, layout.across) == ("queue", "rate", ("queue",))
    assert layout.left_out == {"rtt": "c"}
    assert Layout.of([]).compared is None


def test_numbers_are_along_an_axis_and_names_have_colours() -> None:
    rates, queues = ["1mbit", "2mbit", "10mbit"], ["codel", "pie"]
    layout = Layout.of([("rate", rates), ("queue", queues)])
    assert (layout.compared, layout.colour, layout.across) == ("rate", "queue", ("rate",))
    layout = Layout.of([("rate", rates)])
    assert (layout.colour, layout.across) == (None, ("rate",))
    assert Layout.of([("rate", rates), ("rtt", ["1ms", "2ms", "4ms"])]).colour == "rate"


def test_the_report_of_a_study(result: StudyResult, tmp_path: Path) -> None:
    path = result.write_report(tmp_path)
    text = path.read_text()
    assert "Calls &lt;beside&gt; downloads" in text and "<beside>" not in text.split("<script")[0]
    specs = json.loads(re.findall(r'id="specs">(.*?)</script>', text)[0])
    assert set(specs) == {"overview", "sojourn", "tradeoff"}
    names = {f"{each}.{ending}" for each in specs for ending in ("svg", "png", "pdf")}
    assert {each.name for each in (tmp_path / "figures").iterdir()} == names
    table = re.findall(r'<table class="points">.*?</table>', text, re.DOTALL)[0]
    assert table.count("<tr>") == 1 + 4
    with pytest.raises(ValueError, match="pass the folder"):
        result.write_report()


def test_run_and_study_write_their_reports(study: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    done = aqmlab("run", "scenario.toml", "--set", "duration=5s", "--out", "one", "--figures")
    assert "Report: one/report.html" in done.stdout, done.stderr
    text = (tmp_path / "one" / "report.html").read_text()
    assert "aqmlab run scenario.toml --set duration=5s --out one --figures" in text
    assert (tmp_path / "one" / "figures" / "course.svg").exists()
    done = aqmlab("study", study, "--replications", "1", "--out", "two")
    assert "Report: two/report.html" in done.stdout, done.stderr
    assert "best with" not in done.stdout and "; only one run each" in done.stdout


def test_what_is_recorded_is_the_scenarios_to_say(
    study: Path, aqmlab: Aqmlab, tmp_path: Path
) -> None:
    for name, settings, some in (
        ("one", [], True),
        ("two", ["--set", "record.level=summary"], False),
    ):
        aqmlab.ok("run", "scenario.toml", *settings, "--out", name, "--json")
        assert not (tmp_path / name / "report.html").exists()
        assert pl.read_parquet(tmp_path / name / "series.parquet").is_empty() != some


def test_a_run_without_packets_has_a_report(tmp_path: Path) -> None:
    late = {"flows.bulk.start": "4s", "duration": "1s"}
    path = package.run(SCENARIO, set=late, record="series").write_report(tmp_path)
    assert "No packet passed down." in path.read_text()


def test_results_of_several_folders_side_by_side(aqmlab: Aqmlab, tmp_path: Path) -> None:
    small = {"name": "small", "replications": 8, "scenario": SCENARIO}
    for name in ("droptail", "codel"):
        package.Study(small, set={"queue": name, "flows.bulk.start": "0s"}).run(tmp_path / name)
    both = package.compare({"before": tmp_path / "droptail", "after": tmp_path / "codel"})
    assert both.info.axes == (("result", ("before", "after")),)
    assert both.runs["run"].to_list() == list(range(16))
    alone = StudyResult.open(tmp_path / "codel").bottleneck["sojourn_p95_s"].to_list()
    after = both.bottleneck.filter(pl.col("result").cast(pl.String) == "after")
    assert after["sojourn_p95_s"].to_list() == alone
    for wrong in ({"a": "droptail", "": "codel"}, {"a": "droptail", "b\u2028": "codel"}, {1: "a"}):
        with pytest.raises(package.InputError, match=r"label: .*expected text"):
            package.compare(wrong)  # type: ignore[arg-type]
    done = aqmlab("compare", "droptail", "codel", "--out", "both")
    # Nothing in this scenario is random: one result, eight times.
    assert "all replications of droptail and codel are identical" in " ".join(done.stdout.split())
    assert "best with" not in done.stdout
    assert (tmp_path / "both" / "report.html").exists()
    assert "Parquet" not in (tmp_path / "both" / "report.html").read_text().split("<script")[0]


def test_what_cannot_be_compared_is_refused(aqmlab: Aqmlab, tmp_path: Path) -> None:
    small = {"name": "small", "scenario": SCENARIO | {"duration": "1s"}}
    axes = {"axes": [{"key": "queue", "values": ["codel"]}]}
    package.Study(small).run(tmp_path / "one")
    package.Study(small, replications=2).run(tmp_path / "two")
    package.Study(small | axes).run(tmp_path / "axis")
    for folders, words in (
        (["one"], ["two folders"]),
        (["one", "two"], ["two", "as many replications", "`2`"]),
        (["one", "axis"], ["axis", "axes here: queue; there: none"]),
        (["one", "none"], ["none", "no results of aqmlab"]),
        (["a=one", "a=two"], ["`a`", "same name"]),
    ):
        assert_refused(aqmlab("compare", *folders), *words)


def test_a_name_ends_at_the_first_equals_sign(aqmlab: Aqmlab, tmp_path: Path) -> None:
    small = {"name": "small", "scenario": SCENARIO | {"duration": "1s"}}
    for folder in ("rate=5", "rate=6"):
        package.Study(small).run(tmp_path / folder)
    for given, names in (
        (["rate=5", "rate=6"], ["rate=5", "rate=6"]),
        (["ours=rate=5", "rate=6"], ["ours", "rate=6"]),
    ):
        points = aqmlab.json("compare", *given, "--json")["points"]
        assert [each["result"] for each in points] == names

"""`result.plot`: figures show the values of the tables, with numbers as numbers."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

import aqmlab
from aqmlab import InputError
from aqmlab.report import run_console
from aqmlab.report.document import Figure, Section, Table
from aqmlab.report.document.colours import RAMP, by_label
from aqmlab.report.plot import behaviour
from aqmlab.report.run_page import figures
from aqmlab.scenario import CoDel, Rate, Scenario, Voip
from tools import controls

PATH = {"path": "down", "return_path": "up"}
SCENARIO: dict[str, Any] = {
    "duration": "8s",
    "links": {"down": {"rate": "5mbit", "delay": "20ms"}, "up": {"rate": "5mbit"}},
    "flows": {"bulk": PATH | {"count": 2, "start": {"uniform": ["0s", "1s"]}}},
    "record": {"level": "series", "interval": "100ms"},
}


NINE = ["droptail", "codel", "fq_codel", "pie", "cake", "red", "dualpi2", "sfq", "fq_pie"]


@pytest.fixture(scope="module")
def run() -> aqmlab.RunResult:
    return aqmlab.run(SCENARIO, set={"queue.limit": "20p"}, record="packets")


@pytest.fixture(scope="module")
def study() -> aqmlab.StudyResult:
    axes = {"queue": ["droptail", "codel"], "links.down.rate": ["500kbit", "5mbit", "40mbit"]}
    return aqmlab.study({"scenario": SCENARIO, "axes": axes, "replications": 5})


def rows(chart: dict[str, Any]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(chart["data"]["values"])))


def panels(figure: Figure) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = figure.spec.get("vconcat") or figure.spec["concat"]
    return found


def test_the_report_of_a_run_shows_windows_drops_and_marks(run: aqmlab.RunResult) -> None:
    course = next(each for each in figures(run) if each.id == "course")
    drawn = {each["encoding"]["y"]["title"]: each for each in panels(course)}
    assert set(drawn) == {"time in queue (ms)", "goodput (Mbit/s)", "window (kB)",
                          "queue (packets)", "dropped (packets/s)"}  # fmt: skip
    assert {row["name"] for row in rows(drawn["window (kB)"])} == {"bulk.0", "bulk.1"}
    total = sum(float(row["y"]) for row in rows(drawn["dropped (packets/s)"])) * 0.1
    dropped = run.links.filter(link="down")["dropped"].item()
    assert dropped > 5 and total == pytest.approx(dropped, rel=0.01)
    marking = {"queue": {"discipline": "codel", "ecn": True}, "transport.ecn": "classic"}
    marked = next(
        each for each in figures(aqmlab.run(SCENARIO, set=marking)) if each.id == "course"
    )
    assert {row["name"] for row in rows(panels(marked)[-1])} == {"marked"}


@pytest.mark.parametrize("flows", [3, 60])
def test_few_flows_are_shown_and_the_others_on_demand(flows: int) -> None:
    result = aqmlab.run(SCENARIO, set={"flows.bulk.count": flows, "duration": "1s"})
    (section,) = (each for each in result.report().blocks if getattr(each, "id", "") == "flows")
    assert isinstance(section, Section) and isinstance(section.blocks[0], Table)
    assert len(section.blocks[0].rows) == min(flows, 12)
    folded = [each for each in section.blocks if isinstance(each, Section)]
    assert [each.title for each in folded] == ["All 60 flows"] * (flows > 12)
    assert [len(each.blocks[0].rows) for each in folded if isinstance(each.blocks[0], Table)] == [
        50
    ] * (flows > 12)


def test_another_busy_link_is_named() -> None:
    upload = {"upload": {"path": "up", "return_path": "down"}}
    flows = SCENARIO["flows"] | upload
    slow = SCENARIO["links"] | {"up": {"rate": "1mbit", "delay": "5ms"}}
    result = aqmlab.run(SCENARIO | {"flows": flows, "links": slow, "bottleneck": "down"})
    course = next(each for each in figures(result) if each.id == "course")
    (panel,) = (each for each in panels(course)
                if each["encoding"]["y"]["title"] == "mean time in queue (ms)")  # fmt: skip
    assert panel["encoding"]["color"]["legend"]["orient"] == "top"
    assert {row["name"] for row in rows(panel)} == {"up"}


@pytest.mark.parametrize("axis", [{"queue": NINE}, {"queue.limit": ["5p", "9p", "50p"]}])
def test_all_labels_that_a_page_compares_have_a_distribution(axis: dict[str, list[str]]) -> None:
    short = SCENARIO | {"duration": "1s"}
    study = aqmlab.study({"scenario": short, "axes": axis, "replications": 2})
    (figure,) = (each for each in study.report().figures if each.id == "sojourn")
    (labels,) = axis.values()
    assert figure.title == "Time in the queue"
    assert {row["name"] for row in rows(figure.spec)} == set(labels)


def test_the_distribution_is_that_of_the_link_in_the_summary() -> None:
    flows = {"bulk": {"path": "up", "return_path": "down"}}
    result = aqmlab.run(SCENARIO | {"flows": flows, "bottleneck": "down"})
    assert result.shown == "up"
    sojourn = next(each for each in figures(result) if each.id == "sojourn")
    assert sojourn.title == "Time in the queue of up"
    longest = result.links.filter(link="up")["sojourn_max_s"].item() * 1e3
    assert float(rows(sojourn.spec)[-1]["x"]) == pytest.approx(longest, abs=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"duration": "1ms"},
        {"flows.bulk": PATH | {"size": "1b"}},
        {"flows.bulk.size": "5kb", "until": "bulk"},
    ],
)
def test_a_run_of_one_sample_has_a_report(settings: dict[str, Any]) -> None:
    for level in ("series", "packets"):
        result = aqmlab.run(SCENARIO, set=settings, record=level)
        assert result.links.height and result.report().to_html()


def test_a_group_that_a_change_adds_is_in_every_report() -> None:
    scenario = SCENARIO | {"changes": [{"at": "3s", "key": "flows.late", "value": PATH}]}
    result = aqmlab.run(scenario)
    page = result.report().to_markdown()
    assert re.search(r"^\| late\.0 \|.*cubic", page, re.MULTILINE)
    console = run_console.text(result.to_json(), result.scenario)
    assert "(bulk, late)" in console and re.search(r"^late +[\d.]+ .bit/s", console, re.MULTILINE)
    study = aqmlab.study({"scenario": scenario, "axes": {"queue": ["droptail", "codel"]}})
    assert "late" in study.group_names and "late: goodput" in study.report().to_markdown()
    only = aqmlab.study({"scenario": SCENARIO, "axes": {"queue": ["droptail", "codel"]}})
    assert study.tradeoff["goodput_bps"].mean() > 0.9 * only.tradeoff["goodput_bps"].mean()


def test_a_group_may_have_the_name_of_a_link() -> None:
    result = aqmlab.run(SCENARIO | {"flows": {"down": PATH | {"count": 2}}})
    sojourn = next(each for each in figures(result) if each.id == "sojourn")
    down = result.links.filter(link="down")
    bits = down["delivered_bytes"].item() * 8 / result.runs["end_s"].item()
    assert f"; {bits / 1e6:.2f} Mbit/s on average" in sojourn.message


def test_lines_have_intervals_shapes_and_the_swept_numbers(study: aqmlab.StudyResult) -> None:
    figure = study.plot.against("sojourn_p95", "utilisation")
    assert [each["title"]["text"] for each in panels(figure)] == [
        "time in the queue, 95th percentile", "link busy"
    ]  # fmt: skip
    for panel in panels(figure):
        x = panel["encoding"]["x"]
        assert x["title"] == "rate (Mbit/s)" and x["axis"]["values"] == [0.5, 5.0, 40.0]
        assert x["scale"]["type"] == "log"
        _, rule, points = panel["layer"]
        assert points["encoding"]["shape"]["scale"]["range"] == ["circle", "square"]
        assert panel["encoding"]["color"]["legend"]["title"] == "queue"
        means = {(row["name"], row["x"]): float(row["y"]) for row in rows(panel)}
        assert len(means) == 6
        assert rule["transform"] == [{"filter": "isValid(datum.low)"}]
        for row in rows(panel):
            if row["low"]:
                assert float(row["low"]) <= means[row["name"], row["x"]] <= float(row["high"])
    waits = study.bottleneck.filter(queue="codel", rate_value=5e6)["sojourn_p95_s"].mean()
    assert isinstance(waits, float)
    (drawn,) = [
        float(row["y"])
        for row in rows(panels(figure)[0])
        if (row["name"], float(row["x"])) == ("codel", 5.0)
    ]
    assert drawn == pytest.approx(1e3 * waits, rel=1e-4)
    assert any(row["low"] for row in rows(panels(figure)[0])), "five replications have intervals"


def test_colours_of_numbers_are_ordered() -> None:
    found = by_label(["10mbit", "1mbit", "100mbit"])
    assert found["1mbit"] == "#" + "".join(f"{part:02x}" for part in RAMP[0])
    assert found["100mbit"] == "#" + "".join(f"{part:02x}" for part in RAMP[-1])
    assert len(set(found.values())) == 3
    assert by_label(["codel", "pie", "red"])["codel"] != found["1mbit"]
    many = [f"queue {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert len(set(by_label(many).values())) == len(many)


def test_series_distributions_grids_and_heatmaps(
    run: aqmlab.RunResult, study: aqmlab.StudyResult
) -> None:
    both = panels(run.plot.over_time(("ingress_bps", "throughput_bps"), "smoothed_rtt_s"))
    titles = [each["encoding"]["y"]["title"] for each in both]
    assert titles == ["Mbit/s", "smoothed RTT (ms)"]
    assert {row["name"] for row in rows(both[0])} == {"ingress", "throughput"}
    labels = {row["name"] for row in rows(panels(study.plot.over_time("backlog_packets"))[0])}
    assert labels == {
        f"{q}, {r}" for q in ("droptail", "codel") for r in ("500kbit", "5mbit", "40mbit")
    }
    for rate in ("5mbit", 5e6, Rate("5mbit")):
        spec = study.plot.cdf(rate=rate).spec
        assert {row["name"] for row in rows(spec)} == {"droptail", "codel"}
    (grid,) = panels(study.plot.grid("utilisation", middle=50))
    assert len(rows(grid)) == 6
    assert grid["layer"][0]["encoding"]["color"]["scale"]["scheme"] == "purpleorange"
    packets = sum(int(row["packets"]) for row in rows(run.plot.heatmap().spec))
    assert packets == run.packets.filter(link="down", verdict="delivered").height
    assert study.plot.tradeoff().id == "tradeoff" and run.plot.cdf().id == "sojourn"


@pytest.mark.parametrize(
    "axes",
    [
        {"links.down.rate": ["2mbit", "5mbit", "9mbit"]},
        {"queue": [f"codel target {n}ms" for n in range(1, 11)]},
        {},
    ],
)
def test_a_figure_without_colours_has_one(axes: dict[str, list[str]]) -> None:
    short = SCENARIO | {"duration": "1s"}
    result = aqmlab.study({"scenario": short, "axes": axes, "replications": 2})
    drawn = result.plot.against("sojourn_p95").svg()
    points = max(len(each) for each in [[""], *axes.values()])
    marks = [each for each in drawn.split("<path ") if 'roledescription="point"' in each]
    assert [f'fill="{next(iter(by_label([""]).values()))}"' in each for each in marks] == [
        True
    ] * points


def test_measures_of_few_points_are_rows(study: aqmlab.StudyResult) -> None:
    text = study.report().to_markdown()
    header = "| measure | droptail, 500kbit | droptail, 5mbit | droptail, 40mbit | codel, 500kbit |"
    lines = [line for line in text.splitlines() if line.startswith("| measure |")]
    assert len(lines) > 2 and all(line.startswith(header) for line in lines)
    assert "#### Bottleneck" in text and "#### Link up" in text and "#### Flows bulk" in text
    waits = study.links.filter(link="down", point=1)["sojourn_mean_s"].to_numpy().mean()
    row = next(line for line in text.splitlines() if line.startswith("| time in the queue, mean "))
    assert float(row.split("|")[3].split()[0]) == pytest.approx(1e3 * waits, rel=0.01)


def test_one_run_each_has_no_mean() -> None:
    axes = {"queue": ["codel", "pie"]}
    one = aqmlab.study({"scenario": SCENARIO | {"duration": "1s"}, "axes": axes})
    assert one.plot.against("sojourn_p95").message == "Points: one run each."


def test_a_state_is_drawn_of_the_disciplines_that_have_it() -> None:
    axes = {"queue": ["codel", "pie", "pi2"]}
    result = aqmlab.study({"scenario": SCENARIO | {"duration": "1s"}, "axes": axes})
    figure = result.plot.over_time("drop_probability")
    assert {row["name"] for row in rows(figure.spec["vconcat"][0])} == {"pie", "pi2"}


def test_a_window_is_drawn_while_there_is_one() -> None:
    flows = {
        "short": PATH | {"size": "50kb", "count": 2},
        "flood": PATH | {"transport": {"congestion_control": {"algorithm": "cbr"}}},
    }
    result = aqmlab.run(SCENARIO | {"flows": flows})
    ends = dict(zip(("short.0", "short.1"), result.flows["finish_s"], strict=False))
    assert all(0.1 < end < 3 for end in ends.values())
    windows = rows(panels(result.plot.over_time("cwnd_bytes"))[0])
    assert {row["name"] for row in windows} == ends.keys()
    assert all(float(row["x"]) <= ends[row["name"]] for row in windows)
    rates = rows(panels(result.plot.over_time("goodput_bps"))[0])
    assert max(float(row["x"]) for row in rates if row["name"] == "short.0") == 8


def test_long_curves_keep_their_maxima_and_short_ones_all_samples() -> None:
    every = aqmlab.run(SCENARIO | {"duration": "60s"})
    fine = aqmlab.run(SCENARIO, record={"level": "series", "interval": "10ms"})
    for result, points in ((every, 601), (fine, 401)):
        (panel,) = panels(result.plot.over_time("sojourn_max_s"))
        assert 0 < len(rows(panel)) <= points
        longest = 1e3 * result.links.filter(link="down")["sojourn_max_s"].item()
        assert max(float(row["y"]) for row in rows(panel)) == pytest.approx(longest, rel=1e-3)
    (panel,) = panels(every.plot.over_time("backlog_packets"))
    assert len(rows(panel)) == 601
    told = [
        next(each.caption for each in figures(of) if each.id == "course") for of in (every, fine)
    ]
    assert told[0].startswith("Values over 100ms each. Of")
    assert told[1].startswith("Values over 10ms each, means of 2 (the longest: the largest of")


@pytest.mark.parametrize(
    ("name", "settings", "unit"),
    [("choke", {}, "packets"), ("red_linux", {}, "bytes"), ("red", {}, "packets"),
     ("red", {"min_threshold": "auto", "max_threshold": "auto"}, "bytes")],
)  # fmt: skip
def test_an_average_queue_has_the_unit_of_its_thresholds(
    name: str, settings: dict[str, str], unit: str
) -> None:
    last = panels(behaviour(name, settings))[-1]
    assert last["encoding"]["y"]["title"] == f"average queue ({unit})"
    most = max(float(row["y"]) for row in rows(last))
    assert (most > 1500) == (unit == "bytes")


@pytest.mark.parametrize("control", ["cubic", "vegas"])
def test_the_pictures_of_controls_are_what_these_do_now(control: str) -> None:
    kept = Path(__file__).parents[2] / "docs" / "images" / controls.file_name(control)
    assert controls.picture(control).svg() == kept.read_text(), "make reference"


def test_curves_that_are_left_out_are_mentioned() -> None:
    axes = {"queue.limit": [f"{size}p" for size in range(10, 20)]}
    result = aqmlab.study({"scenario": SCENARIO | {"duration": "1s"}, "axes": axes})
    figure = result.plot.over_time("backlog_packets")
    assert len({row["name"] for row in rows(panels(figure)[0])}) == 8
    assert figure.message.endswith("The first 8 of 10 points are drawn.")


def test_what_cannot_be_drawn_is_refused(run: aqmlab.RunResult, study: aqmlab.StudyResult) -> None:
    figure = run.plot.cdf()
    assert len(repr(figure)) < 300
    summary, one = aqmlab.run(SCENARIO, record="summary"), aqmlab.study({"scenario": SCENARIO})
    for expected, draw, *given in (
        ("cwnd_bytes", run.plot.over_time, "cwnd_byte"),
        ("record", summary.plot.over_time, "cwnd_bytes"),
        ("record", aqmlab.run(SCENARIO).plot.heatmap),
        ("bulk", study.plot.against, "goodput", {"of": "bulky"}),
        ("no run has a value", study.plot.against, "mos"),
        ("500kbit", study.plot.cdf, {"rate": "6mbit"}),
        ("unknown label", study.plot.cdf, {"rate": 6}),
        ("expected at least one", run.plot.over_time),
        ("expected at least one", study.plot.over_time),
        ("expected at least one", study.plot.against),
        ("different units", run.plot.over_time, ("cwnd_bytes", "smoothed_rtt_s")),
        ("svg, png, pdf", figure.save, "figure.jpg"),
        ("two axes", one.plot.grid, "jain"),
    ):
        named = given.pop() if given and isinstance(given[-1], dict) else {}
        with pytest.raises(InputError, match=expected):
            draw(*given, **named)
    with pytest.raises(aqmlab.StorageError, match="the figure was not written"):
        figure.save("no-folder/figure.svg")


def test_a_dumbbell_and_an_axis_of_labels() -> None:
    made = Scenario.dumbbell(
        "8mbit", "30ms", queue=CoDel(), bulk=3, call=Voip(), late={"start": "2s"}
    )
    table = made.resolved.table()
    assert [table["links"][name]["delay"] for name in ("down", "up")] == ["15ms", "15ms"]
    assert table["links"]["down"]["queue"]["discipline"] == "codel"
    assert {name: each["start"] for name, each in table["flows"].items()} == {
        "bulk": {"each": ["0s", "1s"]}, "call": {"each": ["0s", "1s"]}, "late": "2s"
    }  # fmt: skip
    assert table["flows"]["bulk"]["count"] == "3"
    assert table["flows"]["call"]["workload"]["kind"] == "voip"
    axes = {"late": {"2 s": {"flows.late.start": "2s"}, "9 s": {"flows.late.start": "9s"}}}
    study = aqmlab.Study({"scenario": made, "axes": axes})
    assert [each.labels for each in study.axes] == [["2 s", "9 s"]]
    assert study.points[1].scenario.table["flows"]["late"]["start"] == "9s"

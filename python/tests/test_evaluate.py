"""RFC 9743: planted faults are found, and the evidence comes from the runs."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from helpers import Aqmlab
from rich.console import Console

from aqmlab.campaign import Campaign, Question, Reading
from aqmlab.campaign.beside import BETTER, WORSE, QuestionRows, ReadingRow, rows_of
from aqmlab.packs.rfc9743 import GROUPS, UNTESTED, ControlSetup, criteria, evaluate, plan_of
from aqmlab.packs.rfc9743.mixed import of_less, of_more
from aqmlab.packs.rfc9743.scene import Path as Route
from aqmlab.report.document import Estimate
from aqmlab.stats.intervals import limits

DEAF = '''"""Reno that does not hear marks."""


class Deaf:
    def __init__(self, setup):
        self.mss = setup.mss
        self.window = setup.initial_window
        self.ssthresh = setup.initial_ssthresh

    def on_ack(self, ack):
        if self.window < self.ssthresh:
            self.window += ack.acked
        else:
            self.window += self.mss * ack.acked // self.window

    def on_congestion(self, event):
        if event.kind != "ecn":
            self.ssthresh = max(event.flight_size // 2, 2 * self.mss)
            self.window = self.mss if event.kind == "timeout" else self.ssthresh
'''


@pytest.fixture(scope="module")
def bbr() -> Campaign:
    return evaluate("bbr", only=["loss"], replications=5)


def test_bbr_v1_has_sustained_loss_below_one_and_a_half_bdp(bbr: Campaign) -> None:
    """The RFC's own example."""
    rows = {row.own.case: row for row in bbr.line("loss").rows}
    for buffer in ("0.25", "0.5", "1"):
        row = rows[f"10 Mbit/s, 40 ms, {buffer} BDP"]
        assert row.value > 2 and row.value > 5 * max(row.others.values()), row
    assert bbr.line("loss").worst.words == "worse than both"
    deep = rows["10 Mbit/s, 40 ms, 4 BDP"]
    shallow = rows["10 Mbit/s, 40 ms, 1 BDP"]
    assert deep.value < 0.1 * shallow.value and deep.excess == 0
    assert bbr.line("loss").worst.own.case != deep.own.case


def test_a_constant_rate_fails_collapse_and_fairness() -> None:
    flood = evaluate(
        {"algorithm": "cbr", "rate": "9mbit"}, only=["collapse", "fairness"], replications=5
    )
    collapse = {(row.own.case, row.own.metric): row for row in flood.line("collapse").rows}
    silent = collapse["a path that goes silent", "sent while nothing is acknowledged"]
    assert silent.value == pytest.approx(9000, rel=0.02) and silent.words == "worse than both"
    assert max(silent.others.values()) < 50
    lossy = collapse["random loss of 50 %", "packets sent"]
    assert lossy.value > 20 * max(lossy.others.values()) and lossy.words == "worse than both"
    assert flood.line("collapse").worst.excess > 0.9
    assert flood.line("fairness").worst.words == "worse than both"


def test_a_control_that_ignores_ecn_fails_with_l4s(tmp_path: Path) -> None:
    file = tmp_path / "deaf.py"
    file.write_text(DEAF)
    marked = {"ecn": "accurate", "ecn_codepoint": "ect1"}
    deaf = evaluate(f"{file}:Deaf", transport=marked, only=["l4s"], replications=5)
    honest = evaluate("prague", only=["l4s"], replications=5)
    rows = {
        result.subject: {
            (row.own.case, row.own.metric): row.value for row in result.line("l4s").rows
        }
        for result in (deaf, honest)
    }
    waited = ("beside Prague", "queuing delay of Prague's packets, p95")
    got = ("beside Prague", "goodput of Prague")
    assert rows["prague"][waited] < 3 and 40 < rows["prague"][got] < 60
    # In some runs none of Prague's packets arrives after the warm-up: they wait for all of it.
    assert rows["Deaf"][waited] > 3 * rows["prague"][waited]
    assert rows["Deaf"][got] < 0.5 * rows["prague"][got]
    assert deaf.line("l4s").worst.words == "worse than both"


@pytest.fixture(scope="module")
def vegas() -> Campaign:
    """Vegas by all criteria, one replication."""
    return evaluate("vegas", replications=1)


def test_every_criterion_gives_rows_with_numbers(vegas: Campaign) -> None:
    """No case, group or quantity is misnamed."""
    result = vegas
    assert [line.question.id for line in result.lines] == [each.id for each in criteria()]
    for line in result.lines:
        assert line.rows and line.question.group in GROUPS
        for row in line.rows:
            values = [row.value, *row.others.values()]
            assert np.isfinite(values).all(), (line.question.id, row)
            assert set(row.others) == {"reno", "cubic"}
        assert any(row.value != 0 for row in line.rows), line.question.id
    form = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert len(form["questions"]) == len(result.lines) == 25
    assert all(each["why"] for each in form["untested"])
    stream = io.StringIO()
    result.print(Console(file=stream, width=150))
    for line in result.lines:
        assert line.question.title.split()[0] in stream.getvalue()


ASKED = {
    "congestion collapse": ["collapse"],
    "bufferbloat": ["bufferbloat"],
    "high packet loss": ["loss"],
    "fairness": ["fairness"],
    "short flows": ["short"],
    "existing controls": ["existing", "deployed", "quic"],
    "starvation": ["starvation"],
    "real-time": ["real-time", "Real-time congestion controls"],
    "short and long flows": ["short-long"],
    "principles": ["Differences from RFC 2914 and RFC 7141"],
    "deployment": ["Incremental deployment"],
    "criteria on every path": ["All criteria of section 5 on every path"],
    "tail-drop FIFO": ["tail-drop"],
    "tunnels": ["Tunnels"],
    "wired, wireless": ["wireless"],
    "AQM, ECN": ["aqm", "ecn", "l4s"],
    "circuit breakers": ["breaker"],
    "varying delay": ["varying-delay"],
    "constrained nodes": ["constrained"],
    "high delay": ["high-delay"],
    "misbehaving nodes": ["misbehaving", "Receivers that do not comply"],
    "extreme reordering": ["reordering"],
    "transients": ["transients"],
    "changing paths": ["changing-paths"],
    "multipath": ["Multipath"],
    "data centres": ["data-centre"],
}
"""Each criterion of RFC 9743 with the ids that answer it, or listed as not tested."""


def test_each_criterion_of_the_rfc_is_run_or_listed_as_not_tested() -> None:
    answers = [each for names in ASKED.values() for each in names]
    known = [each.id for each in criteria()] + [each["criterion"] for each in UNTESTED]
    assert sorted(answers) == sorted(known)
    guide = (Path(__file__).parents[2] / "docs" / "evaluate.md").read_text(encoding="utf-8")
    for each in criteria():
        assert f"| `{each.id}` |" in guide, each.id


def test_paths_are_evaluated_by_goodput_delay_and_loss(vegas: Campaign) -> None:
    """Section 5 in the scenarios of sections 6 and 7; fairness where there are several flows."""
    for name in ("wireless", "reordering", "misbehaving"):
        measures = {row.own.metric for row in vegas.line(name).rows}
        assert {"goodput, share of the capacity", "queuing delay, p95", "loss"} <= measures
        assert ("Jain's index" in measures) == (name == "misbehaving")


def test_equal_scenarios_are_run_once() -> None:
    plan = plan_of(ControlSetup("cubic", "cubic"), ["existing"])
    assert list(plan.contenders) == ["cubic", "reno"]
    points = set(plan.points.values())
    # Two victims over eleven paths: alone (the same for every control), and beside each control.
    assert len(points) == 22 + 2 * 22 and len(plan.points) == 2 * 44


def test_a_victim_alone_loses_packets_in_the_measured_time(vegas: Campaign) -> None:
    """Otherwise its harm depends on when the run ends."""
    filled = vegas.at("existing", "reno")
    solo = [case for case in filled if case.startswith("solo")]
    assert len(solo) == 22
    for case in solo:
        assert filled[case].total("flows", "dropped", group="victim") > 1, case


def test_notes_on_runs_that_are_too_short_are_told(vegas: Campaign) -> None:
    (question,) = (each for each in vegas.to_json()["questions"] if each["id"] == "existing")
    (note,) = (each for each in question["notes"] if each["id"] == "run-too-short")
    assert "solo | reno, 5 Mbit/s, 100 ms, 4 BDP" in note["cases"]
    assert note["text"] in vegas.document().to_markdown()


def test_cases_differ_and_have_the_buffer_that_they_name() -> None:
    plan = plan_of(ControlSetup("reno", "reno"))
    for question in plan.pack.questions:
        points = [plan.points[question.id, "reno", each.name] for each in question.cases]
        assert len(set(points)) == len(points), question.id
    for label, scenario in plan.scenarios:
        down = scenario["links"]["down"]
        named = re.search(r"([\d.]+) ([kM])bit/s, ([\d.]+) ms, ([\d.]+) BDP", label)
        if named and "limit" in down["queue"]:
            rate, unit, rtt, buffer = named.groups()
            product = float(rate) * {"k": 1e3, "M": 1e6}[unit] * float(rtt) / 8e3
            limit = down["queue"]["limit"]
            size = float(limit[:-1]) * {"p": 1500, "b": 1}[limit[-1]]
            assert size == pytest.approx(float(buffer) * product, abs=750), label
            assert size >= 4 * (576 if "kbit" in label else 1500), label


def test_harm_is_what_is_lost() -> None:
    solo, beside = np.array([10.0, 10.0]), np.array([2.5, 12.0])
    assert of_more(solo, beside).mean() == of_less(beside, solo).mean() == pytest.approx(0.275)
    assert Route(10e6, 0.04, 0.5).packets == 17


def test_chance_is_no_harm() -> None:
    """Replications that gain by chance make up for those that lose."""
    draw = np.random.default_rng(1)
    solo, beside = draw.normal(100, 5, (2, 20))
    assert abs(of_more(solo, beside).mean()) < 0.01, "clipped in each replication it is 0.03"
    rare = np.where(np.arange(20) < 2, 0.0, 0.02)
    harm = of_less(np.full(20, 0.01), rare, 1e-4)
    assert harm.mean() == pytest.approx(1 - 0.01 / rare.clip(1e-4).mean())
    ratios = [of_less(np.full(19, 0.01), np.delete(rare, each), 1e-4).mean() for each in range(20)]
    jackknife = 19 / 20**0.5 * np.std(ratios)
    assert harm.std(ddof=1) / 20**0.5 == pytest.approx(jackknife, rel=0.1)


def test_where_nothing_is_lost_nothing_is_harmed() -> None:
    case = SimpleNamespace(waiting=np.ones(5), goodput=lambda _: np.ones(5))
    case.loss = lambda _: np.zeros(5)
    (question,) = criteria(["existing"])
    read = question.read(dict.fromkeys((each.name for each in question.cases), case))
    assert read and all(each.estimate.value == 0 for each in read)
    assert any("loss" in each.metric for each in read)


def test_a_mean_and_its_interval_are_within_the_bounds_of_the_measure() -> None:
    values = np.array([-80.0, 90, 20, 95, 60])
    wide = Reading("case", "harm", "", "%", -1, values, 5.0, bounds=(0.0, 100.0))
    none = replace(wide, values=np.linspace(-7, -3, 5))
    row = row_of({"x": [wide], "reno": [none], "cubic": [none]})
    assert row.own.estimate == Estimate(37.0, 0.0, 100.0)
    assert row.others["reno"] == 0, "its mean is negative"
    apart = row.differences["reno"]
    assert apart is not None and apart.low < 0 and apart.high == 100


NOTHING = Question("", "", "", ())


def reading(values: list[float], *, direction: int = -1) -> list[Reading]:
    return [Reading("case", "loss", "", "%", direction, np.array(values), 0.5)]


def row_of(read: dict[str, list[Reading]]) -> ReadingRow:
    (((row,)),) = rows_of([read], "x")
    return row


def test_the_same_control_under_another_name_is_found_no_different() -> None:
    """A page of 60 rows whose values have one distribution, 100 times: at most 5 % of the pages say
    that anything is better or worse, up to chance; row by row nearly all would."""
    draw = np.random.default_rng(9743)
    said = alone = 0
    for _ in range(100):
        values = {name: draw.lognormal(0, 0.5, (60, 10)) for name in ("x", "reno", "cubic")}
        read = {name: [reading(list(row))[0] for row in rows] for name, rows in values.items()}
        (rows,) = rows_of([read], "x")
        said += any(row.word(other) in (BETTER, WORSE) for row in rows for other in row.others)
        low, high = limits(values["x"] - values["reno"], 0.05)
        alone += bool(np.any((low > 0) | (high < 0)))
    assert said <= 9, "5 % and two standard errors"
    assert alone > 75


def compared(*values: list[float], direction: int = -1) -> ReadingRow:
    """The row of `x`, beside `reno` and `cubic` if there are so many."""
    read = [reading(each, direction=direction) for each in values]
    return row_of(dict(zip(("x", "reno", "cubic"), read, strict=False)))


def test_rows_compare_pairs() -> None:
    noise = [1.0, 5.0, 3.0, 4.0, 2.0]
    more = [each + 2 for each in noise]
    row = compared(more, noise, noise)
    assert row.words == "worse than both", "each pair differs by 2, with any noise"
    assert row.excess == pytest.approx(2 / 10), "the larger number is 5, twenty grains are 10"
    row = compared(more, noise, [9.0, 0.0, 9.0, 1.0, 7.0], direction=1)
    assert row.word("reno") == BETTER and row.word("cubic") not in (BETTER, WORSE)
    assert row.words == "better than reno, not shown to differ from cubic"
    assert row.excess == 0 and QuestionRows(NOTHING, (row,)).worst is row
    row = compared([each + 0.4 for each in noise], noise, noise)
    assert row.words == "not shown to differ from both", "0.5 % of loss is the margin"
    about = [each + apart for each, apart in zip(noise, (0.4, 0.5, 0.6, 0.5, 0.6), strict=True)]
    row = compared(about, noise, noise)
    assert row.words == "worse than both", "the interval reaches beyond the margin"
    row = compared(more[:2], noise[:2], noise[:2])
    assert row.words == "not compared with both" and row.excess == 0


SLOW = """class Slow:
    def __init__(self, setup):
        self.window = self.ssthresh = setup.mss

    def on_ack(self, ack): ...

    def on_congestion(self, event): ...
"""


def test_flows_that_do_not_complete_take_all_the_time(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    slow = evaluate(f"{file}:Slow", transport={"mss": "20b"}, only=["short"], replications=5)
    rows = [row for row in slow.line("short").rows if "completion" in row.own.metric]
    assert len(rows) == 3 and all(row.value == 30e3 for row in rows)
    assert all(row.words == "worse than both" for row in rows)


def test_what_is_not_measured_is_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = np.full(5, np.nan)
    monkeypatch.setattr("aqmlab.campaign.readings.CaseResults.loss", lambda at, group: nothing)
    result = evaluate("reno", only=["loss"], replications=5)
    line = result.line("loss")
    assert line.worst.words == "not compared with cubic" and line.behind == 0
    result.write_report(tmp_path, figures=False)
    answers = json.loads((tmp_path / "answers.json").read_text("utf-8"), parse_constant=pytest.fail)
    row = answers["questions"][0]["worst"]
    assert row["value"] is None and row["others"] == {"cubic": None}
    assert row["differences"] == {"cubic": None}
    stream = io.StringIO()
    result.print(Console(file=stream, width=150))
    assert "not measured" in stream.getvalue()


def test_pairs_without_a_value_of_both_are_left_out_and_of_one_decide_nothing() -> None:
    values = [1.0, 5.0, 3.0, 4.0, 2.0]
    row = compared([*values, np.nan], [*values, np.nan])
    assert row.differences["reno"] is not None and row.word("reno") == "not shown to differ"
    row = compared([*(each - 0.9 for each in values), 100.0], [*values, np.nan])
    assert row.word("reno") == "not compared", "the slowest run of the other has no value"
    row = compared(values, [*values[:4], np.nan])
    assert row.word("reno") == "not compared" and row.others["reno"] == 3.25
    none = compared([np.nan] * 5, values)
    assert none.word("reno") == "not compared" and QuestionRows(NOTHING, (row, none)).worst is none
    harm = of_more(np.array([10.0, 10.0, np.nan]), np.array([5.0, 6.0, 7.0]))
    assert np.nanmean(harm) == pytest.approx(0.45) and np.isnan(harm[2])
    assert np.isnan(of_more(np.array([np.nan]), np.array([1.0]))).all()


def test_from_the_command_line(tmp_path: Path, aqmlab: Aqmlab) -> None:
    command = ["evaluate", "reno", "--only", "constrained", "--replications", "2", "--json"]
    done = aqmlab.ok(*command, "--out", "r")
    form = json.loads(done.stdout)
    assert form["contenders"] == ["reno", "cubic"] and [
        each["id"] for each in form["questions"]
    ] == ["constrained"]
    assert (tmp_path / "r" / "links.parquet").exists()
    assert json.loads((tmp_path / "r" / "answers.json").read_text("utf-8")) == form
    readings = (tmp_path / "r" / "readings.csv").read_text("utf-8").splitlines()
    assert readings[0].startswith("question,contender,case,metric,subject,unit,mean")
    assert len(readings) == 1 + 2 * 4
    again = aqmlab(*command, "--out", "r")
    assert again.stdout == done.stdout, "the same bytes each time"


def test_a_controller_of_a_quic_stack_is_evaluated() -> None:
    """QUIC's packets have 1200 bytes, TCP's segments 536. One in seven is lost here."""
    result = evaluate("noq:cubic", only=["loss", "constrained"], replications=1)
    assert result.subject == "noq:cubic"
    assert all(set(row.others) == {"reno", "cubic"} for row in result.line("loss").rows)
    flows = result.result.flows.filter(pl.col("group") == "own")
    waste = {row.own.metric: row for row in result.line("constrained").rows}
    own = flows.filter(case="constrained | 50 kbit/s, 200 ms, 4 BDP | noq:cubic")
    lost = 100 * (own["dropped"] / own["segments_sent"]).mean()
    wasted = waste["segments that delivered no new data"]
    assert wasted.value == pytest.approx(lost, abs=0.5) and lost > 10
    assert wasted.value > max(wasted.others.values())
    assert waste["control packets"].value > max(waste["control packets"].others.values())
    quinn = ControlSetup("quinn:bbr", "quinn:bbr", {"segments": 1})
    endpoint = {"kind": "quic", "stack": "quinn", "controller": "bbr", "segments": 1}
    assert quinn.flow(ecn="classic") == {"endpoint": endpoint}
    assert quinn.flow(mss="536b") == {"endpoint": endpoint | {"max_mtu": "none"}}
    assert quinn.sets_ecn

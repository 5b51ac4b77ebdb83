"""Packs in files: the rules, their answers and exit status, and mistakes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest
from helpers import Aqmlab, assert_refused

from aqmlab import InputError, metric
from aqmlab.campaign import FAILS, HOLDS, UNDECIDED, Pack, Plan, packfile
from aqmlab.campaign.packfile import load, parse
from aqmlab.campaign.page import readings
from aqmlab.campaign.rule import Comparison, Decided
from aqmlab.metrics.registry import _REGISTRY
from aqmlab.metrics.runs import Runs
from aqmlab.report.document.model import Estimate
from aqmlab.scenario.settings import parse_toml
from aqmlab.stats import SHARE

PACK = """
replications = 5
[contenders]
fifo = { discipline = "droptail", limit = "100p" }
codel = "codel"
[scenario]
duration = "6s"
bottleneck = "down"
[scenario.links.down]
rate = "5mbit"
delay = "10ms"
[scenario.links.up]
rate = "5mbit"
delay = "10ms"
[scenario.flows.bulk]
path = "down"
return_path = "up"
start = { each = ["0s", "1s"] }
[scenario.record]
warmup = "2s"
[cases.one]
[cases.two]
"flows.bulk.count" = 2
[[questions]]
id = "delay"
source = "RFC 8289"
[questions.expect]
low = "down.sojourn_p95 <= 60ms"
lower = { rule = "sojourn_p95 < 0.5 * fifo", text = "Less than half.", cases = ["two"] }
[[questions]]
id = "use"
cases = ["two"]
[questions.expect]
busy = "bulk.goodput >= 0.8 * capacity"
some = "goodput >= 1mbit"
full = "down.utilisation >= 0.9"
"""


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str, str], dict[str, Any]]:
    """(question, contender, rule) to the answer."""
    pack = parse(parse_toml(PACK, "mine.toml"), "mine.toml", "mine")
    form = Plan(pack, pack.contenders).run().to_json()
    assert (form["pack"], form["replications"], form["runs"]) == ("mine", 5, 20)
    return {
        (question["id"], each["name"], answer["id"]): answer
        for question in form["questions"]
        for each in question["contenders"]
        for answer in each["answers"]
    }


def test_rules_are_answered(found: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    words = {key: answer["verdict"] for key, answer in found.items()}
    assert words["delay", "fifo", "low"] == FAILS
    assert words["delay", "codel", "low"] == words["delay", "codel", "lower"] == HOLDS
    assert words["use", "codel", "busy"] == words["use", "codel", "some"] == HOLDS
    assert ("delay", "fifo", "lower") not in words, "it is the one that others are beside"
    low = found["delay", "codel", "low"]["comparisons"]
    assert [each["name"] for each in low] == ["one", "two"]
    for each in low:
        assert each["low"] <= each["number"] <= each["high"] < each["limit"] == 0.06
    (lower,) = found["delay", "codel", "lower"]["comparisons"]
    assert lower["limit"] == 0.5 and lower["wanted"] == "below" and 0 < lower["number"] < 0.5
    assert found["delay", "codel", "lower"]["text"] == "Less than half."
    (busy,) = found["use", "codel", "busy"]["comparisons"]
    assert busy["limit"] == 0.8 * 5e6
    number = r"\d+\.?\d*"
    (full,) = found["use", "codel", "full"]["comparisons"]
    assert full["low"] < full["number"] < full["high"] == 1, "the interval ends at 1"
    for key, end in (
        (("delay", "codel", "low"), f"{number} to {number} ms\\), wanted: at most 60 ms."),
        (("use", "codel", "busy"), f"{number} to {number} Mbit/s\\), wanted: at least 4 Mbit/s."),
        (("delay", "codel", "lower"), f"{number} to {number}\\), wanted: below 0.5."),
    ):
        assert re.search(end, found[key]["evidence"]), found[key]["evidence"]


def test_rules_may_name_a_group_that_a_change_adds(tmp_path: Path) -> None:
    text = """
[scenario]
duration = "2s"
links.a = { rate = "5mbit" }
flows.first = { path = "a", return_path = "a" }
[[scenario.changes]]
at = "1s"
key = "flows.late"
value = { path = "a", return_path = "a" }
[expect]
there = "late.goodput >= 1kbit"
"""
    (tmp_path / "late.toml").write_text(text)
    found = Plan(pack := load(str(tmp_path / "late.toml")), pack.contenders).run(5)
    (answer,) = next(iter(found.answers.values()))
    assert answer.verdict == "holds"


@pytest.mark.parametrize("key", ["queue.limit", "links.down.queue.limit"])
def test_a_case_may_set_a_parameter_of_every_contender(key: str) -> None:
    text = PACK.replace('"flows.bulk.count" = 2', f'"{key}" = "30p"')
    pack = parse(parse_toml(text, "mine.toml"), "mine.toml")
    found = Plan(pack, pack.contenders).study().points
    queues = [json.loads(each.scenario.resolved)["links"]["down"]["queue"] for each in found]
    limits = [(each["discipline"], each["limit"]) for each in queues]
    assert limits == [
        ("droptail", "100p"), ("droptail", "30p"), ("codel", "1000p"), ("codel", "30p"),
    ]  # fmt: skip


def test_zero_is_any_multiple_of_zero() -> None:
    text = PACK.replace("sojourn_p95 < 0.5 * fifo", "up.sojourn_p95 <= 0.5 * fifo")
    pack = parse(parse_toml(text, "mine.toml"), "mine.toml")
    lower = Plan(pack, pack.contenders).run().answers["delay", "codel"][1]
    assert lower.verdict == HOLDS
    assert lower.comparisons[0].to_json()["number"] == 0.5


def test_a_metric_below_zero_is_compared_by_differences() -> None:
    """Minus the delay, of which more is better: twice a delay is less, and no multiple above 1."""

    def minus(runs: Runs) -> pl.DataFrame:
        links = runs.table("links").filter(pl.col("link") == "down")
        return links.select("run", subject="link", value=-pl.col("sojourn_mean_s"))

    with mock.patch.dict(_REGISTRY):
        metric("minus_delay", of="link", unit="s", direction=1)(minus)
        text = PACK.replace("sojourn_p95 < 0.5 * fifo", "minus_delay >= 0.5 * fifo")
        text = text.replace("goodput >= 1mbit", "down.minus_delay >= 1.1 * fifo")
        text = text.replace("utilisation >= 0.9", "minus_delay no worse than fifo by 5%")
        pack = parse(parse_toml(text, "mine.toml"), "mine.toml")
        campaign = Plan(pack, pack.contenders).run()
        rows = readings(campaign, campaign.plan.pack.questions[1]).rows
    (below,) = [row for row in rows if "minus_delay" in str(row[0])]
    _, unit, fifo, codel, apart = below
    assert isinstance(fifo, Estimate) and isinstance(codel, Estimate)
    assert fifo.value < codel.value < 0
    assert apart == f"{codel.value - fifo.value:+.3g} {unit}"
    use = {each.id: each for each in campaign.answers["use", "codel"]}
    for answer, factor in (
        (campaign.answers["delay", "codel"][1], 0.5),
        (use["some"], 1.1),
        (use["full"], 1.05),
    ):
        assert answer.verdict == HOLDS
        (made,) = answer.comparisons
        assert isinstance(made, Decided) and made.comparison.limit == 0
        number = (codel.value - factor * fifo.value) / 1e3
        assert made.comparison.number == pytest.approx(number)


def test_the_capacity_of_a_link_that_varies_is_its_mean() -> None:
    steps = 'rate = { steps = [["0s", "5mbit"], ["4s", "3mbit"]] }'
    text = PACK.replace('rate = "5mbit"', steps, 1)
    pack = parse(parse_toml(text, "mine.toml"), "mine.toml")
    campaign = Plan(pack, pack.contenders).run()
    (busy, *_) = campaign.answers["use", "fifo"]
    # The warm-up of 2 s is followed by 2 s of each rate.
    assert busy.comparisons[0].to_json()["limit"] == pytest.approx(0.8 * 4e6, rel=1e-3)


def test_a_pack_without_a_title_has_its_name() -> None:
    table = {**parse_toml(PACK, "mine.toml"), "name": "ours"}
    table.pop("title", None)
    assert parse(table, "mine.toml", "mine").title == "ours"


def test_an_interval_ends_where_the_quantity_does() -> None:
    """The interval that decides may reach beyond a share of 1; the one that is printed does not."""
    share = Comparison(0.999, 0.95, True, True, unit="share", bounds=SHARE)
    made = Decided(share, (0.036, 0.036), HOLDS)
    assert made.text == "99.9 % (96.3 to 100 %), wanted: at least 95 %"
    assert (made.to_json()["low"], made.to_json()["high"]) == (pytest.approx(0.963), 1.0)


@pytest.mark.parametrize(
    ("unit", "words"), [("1 to 4.5", "3.5"), ("number", "3.5"), ("packets", "3.5 packets")]
)
def test_a_scale_is_no_unit(unit: str, words: str) -> None:
    assert Comparison(3.5, 4, True, True, unit=unit).told(3.5) == words


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("down.sojourn_p95", "down.sojourn_p59", ("metric", "sojourn_p95")),
        ("<= 60ms", "<= 60", ("questions.1.expect.low", "a time such as 30ms")),
        ("0.5 * fifo", "0.5 * fifi", ("questions.1.expect.lower", "a contender (fifo, codel)")),
        ("<= 60ms", "= 60ms", ("questions.1.expect.low", "SUBJECT.METRIC <= LIMIT")),
        ('cases = ["two"]\n[questions', 'cases = ["tow"]\n[questions', ("case", "two")),
        ("source =", "sauce =", ("questions.1", "source")),
        ("replications = 5", "replications = 0", ("replications", "from 1")),
        ('id = "use"', 'id = "delay"', ("two questions", "delay")),
        ("bulk.goodput", "bilk.goodput", ("did you mean `bulk`",)),
        (">= 0.9", ">= 90", ("questions.2.expect.full", "utilisation is from 0 to 1 (5% is 0.05)")),
        (">= 0.9", "no worse than fifo by 5", ("below 1 (5 points are 0.05)",)),
        (">= 1mbit", "no worse than fifo by 100%", ("questions.2.expect.some", "below 100")),
        ("0.8 * cap", "0.8.1 * cap", ("questions.2.expect.busy", "0.8.1", "a number")),
        ('codel = "codel"', 'capacity = "codel"', ("contenders", "capacity")),
        ('"flows.bulk.count" = 2', 'queue = "pie"', ("cases.two", "the contenders fill `queue`")),
        ('"flows.bulk.count" = 2', '"down.queue" = "pie"', ("cases.two", "fill `queue`")),
    ],
)
def test_a_mistake_is_one_error(old: str, new: str, parts: tuple[str, ...]) -> None:
    text = PACK.replace(old, new, 1)
    assert text != PACK
    with pytest.raises(InputError) as error:
        parse(parse_toml(text, "mine.toml"), "mine.toml")
    for part in parts:
        assert part in str(error.value)


def test_from_the_command_line(tmp_path: Path, aqmlab: Aqmlab) -> None:
    """What `aqmlab new pack` writes runs; the exit status says whether a rule fails."""
    aqmlab.ok("new", "pack", "goals")
    done = aqmlab("check", "goals.toml", "--replications", "5")
    assert done.returncode == 1, done.stderr
    assert "droptail: down.sojourn_p95 <= 40ms ✗ does not hold" in done.stdout
    assert "Rule: down.sojourn_p95 <= 40ms. Found:" in done.stdout and HOLDS in done.stdout
    assert (tmp_path / "results/goals-r5/report.html").exists()
    text = (tmp_path / "goals.toml").read_text().replace('low = "down.sojourn_p95 <= 40ms"\n', "")
    (tmp_path / "goals.toml").write_text(text)
    again = ("check", "goals.toml", "--no-report", "--replications")
    form = aqmlab.json(*again, "5", "--with", "mine=pie", "--json")
    assert form["contenders"] == ["droptail", "codel", "fq_codel", "mine"]
    few = aqmlab.ok(*again, "2")
    assert UNDECIDED in few.stdout
    assert aqmlab(*again, "2", "--strict").returncode == 1
    assert aqmlab("check", "gaols.toml").returncode == 2
    (tmp_path / "empty.toml").write_text("title = 'x'\n")
    assert aqmlab("check", "empty.toml").returncode == 2


class Point:
    """An entry point."""

    name = "mine"

    def load(self) -> Pack:
        return parse(parse_toml(PACK, "mine.toml"), "mine.toml", "mine")


def test_files_are_looked_up_beside_the_pack(aqmlab: Aqmlab, tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    folder.mkdir()
    text = PACK.replace('codel = "codel"', 'mine = "my_queue.py:MyQueue"')
    (folder / "beside.toml").write_text(text)
    shutil.copy(Path(__file__).parents[2] / "examples" / "my_queue.py", folder)
    words = ("check", "packs/beside.toml", "--replications", "1", "--no-report")
    done = aqmlab(*words)
    assert done.returncode in (0, 1), done.stderr
    (folder / "my_queue.py").unlink()
    assert_refused(aqmlab(*words, "--out", "again"), "packs/beside.toml at case=", "MyQueue")
    assert_refused(aqmlab(*words, "--with", "codel"), "--with: `codel`", "a contender such as")


def test_rules_on_own_metrics(aqmlab: Aqmlab, tmp_path: Path) -> None:
    metric = Path(__file__).parents[2] / "examples" / "my_metric.py"
    (tmp_path / "own.toml").write_text(
        PACK.replace("down.utilisation >= 0.9", "waiting_share <= 1")
    )
    assert_refused(aqmlab("check", "own.toml"), "unknown metric", "waiting_share")
    done = aqmlab("check", "own.toml", "--with", metric, "--with", "mine=pie", "--json")
    form = json.loads(done.stdout)
    assert form["contenders"] == ["fifo", "codel", "mine"]
    answers = [each["answers"][-1] for each in form["questions"][1]["contenders"]]
    assert [each["verdict"] for each in answers] == [HOLDS] * 3


def test_packages_bring_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packfile, "entry_points", lambda group: [Point()])
    assert load("mine").name == "mine"
    with pytest.raises(InputError, match="did you mean `mine`"):
        load("mien")

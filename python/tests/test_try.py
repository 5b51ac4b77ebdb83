"""`aqmlab try`: which queue suits the line that somebody has."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers import Aqmlab, assert_refused

from aqmlab.campaign import Plan
from aqmlab.numbers import short
from aqmlab.packs.access_line import LineTrial, loads, pack_of
from aqmlab.packs.access_line import trial as run
from aqmlab.packs.access_line.choice import comparisons, recommended, sentences
from aqmlab.packs.access_line.page import document, table
from aqmlab.report.document import Estimate, Figure
from aqmlab.scenario.access import KINDS, PROFILES, Line, line_of
from aqmlab.study import Study

EFFORT = import_module("aqmlab.packs.access_line.trial")
WORK = EFFORT.WORK
WEB = EFFORT.NOTICED[0]
LINE = ["--down", "10mbit", "--up", "2mbit", "--rtt", "20ms"]


@pytest.fixture(scope="module", autouse=True)
def less_work() -> Iterator[None]:
    """A twelfth of the packets of all runs that `try` itself simulates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EFFORT, "WORK", WORK / 12)
        yield


@pytest.fixture(scope="module")
def trial() -> LineTrial:
    line = Line("10mbit", "2mbit", "20ms")
    return run(pack_of(line, "home", ["fq_codel"]), line, device="wan0")


def test_flow_queues_are_recommended_before_a_deep_buffer(trial: LineTrial) -> None:
    assert trial.queues == ["droptail", "fq_codel"], "the line as it is comes first"
    compared = comparisons(trial)
    choice = recommended(trial, compared)
    assert choice is not None and choice.queue == "fq_codel"
    shown = {each.what.short for each in compared if each.better == "fq_codel"}
    assert {"call.mos", "game.delay"} <= shown
    first, *rest = sentences(trial, compared)
    assert first.startswith("Use fq_codel: web page load ") and " less)" in first
    assert "call MOS" in rest[0] and "is worse than the line as it is: " in rest[1]
    assert "upload goodput" in first.partition("; shown to be worse: ")[2]
    (mos,) = (each for each in compared if each.what.short == "call.mos")
    assert trial.reading(mos.what, "fq_codel").event == 3.5, "flows that meet in one queue"
    few = replace(trial.reading(mos.what, "fq_codel"), values=np.arange(4.3, 4.35, 0.01))
    assert few.estimate.low is None and replace(few, event=0.0).estimate.low is not None
    (alone, *_) = sentences(trial, [mos])
    assert ", compared with the line as it is; nothing is shown" in alone


def test_the_page_answers_first_and_marks_the_winner(trial: LineTrial) -> None:
    page = document(trial, "aqmlab try")
    (lead,) = page.head
    assert lead.to_json()["text"].startswith("Use fq_codel")
    assert isinstance(page.blocks[0], Figure)
    rows = page.blocks[0].spec["concat"]
    assert [each["title"]["text"] for each in rows] == [
        "web: page load", "call: MOS", "game: delay p95", "download: goodput", "upload: goodput",
    ]  # fmt: skip
    assert [each.name for each in page.tables[0].columns if each.chosen] == ["fq_codel"]
    html = page.to_html()
    assert '<td class="chosen">' in html and "ifb4wan0" in html and "stands for" not in html
    assert "FIFO of the fibre modem, 62500b → line, 2mbit" in html


def test_the_answer_counts_what_the_comparison_lists(trial: LineTrial) -> None:
    compared = comparisons(trial)
    cost = next(each for each in compared if each.what.is_cost and each.better == "droptail")
    # As if the other queue had the larger goodput.
    names = {"droptail": "fq_codel", "fq_codel": "droptail"}
    means = {names[each]: mean for each, mean in cost.found.means.items()}
    won = replace(cost, found=replace(cost.found, means=means, best=("fq_codel",)))
    answer, *rest = sentences(trial, [won if each is cost else each for each in compared])
    (queue, more), *_ = re.findall(r"Use (\w+).*?, and (\d+) more measures are better", answer)
    listed = next(each for each in rest if each.startswith(f"{queue} is better than the line"))
    assert listed.count(";") == int(more)


def test_a_difference_that_nobody_would_notice_does_not_count(trial: LineTrial) -> None:
    each = next(each for each in comparisons(trial) if each.better)
    _, low, high = each.difference
    far = max(abs(low), abs(high))
    assert type(each)(each.what, each.one, each.other, each.found, far).better is None


def test_runs_without_a_value_count_against_a_queue(trial: LineTrial) -> None:
    """A queue behind which fewer pages load is worse, also if these load faster."""
    trial = copy.copy(trial)
    of = {queue: trial.measured(WEB, queue) for queue in trial.queues}
    of["fq_codel"] = np.where(np.arange(of["fq_codel"].size) < 3, np.nan, of["fq_codel"])
    trial.measured = lambda what, queue: (  # type: ignore[method-assign]
        of[queue] if what == WEB else LineTrial.measured(trial, what, queue)
    )
    compared = comparisons(trial)
    web = next(each for each in compared if each.what == WEB)
    assert web.better is None and web.ahead == "droptail"
    assert recommended(trial, compared) is None
    count = of["droptail"].size
    told = (
        f"worse in the mean, not shown: web page load without a value in 3 instead of 0 of {count}"
    )
    assert any(told in each for each in sentences(trial, compared))
    (cell,) = (row[2] for row in table(trial).rows if row[0] == "web: page load (s)")
    assert isinstance(cell, Estimate) and cell.runs == f"in {count - 3} of {count} runs"
    of["fq_codel"] = np.full(count, np.nan)
    answer = json.loads(json.dumps(trial.to_json(), allow_nan=False))
    assert answer["queues"]["fq_codel"]["web.page_load"]["value"] is None


def test_a_large_number_has_no_exponent() -> None:
    assert [short(each) for each in (12.34, 123.4, 999.7)] == ["12.3", "123", "1000"]


def test_the_same_queue_twice_by_another_name_shows_no_difference() -> None:
    line = Line("10mbit", "2mbit", "20ms")
    trial = run(pack_of(line, "gaming", ["codel", "up: codel down: codel"]), line)
    choice = recommended(trial, comparisons(trial))
    assert choice is not None and choice.is_best
    assert (choice.queue, choice.as_good) == ("codel", ("up: codel down: codel",))
    (first, *_) = sentences(trial, comparisons(trial))
    assert first.startswith("Use codel (up: codel down: codel: no difference shown): ")


def test_one_queue_that_is_better_and_worse_does_not_speak_for_all(trial: LineTrial) -> None:
    """Other queues may be neither."""
    by_name = {each.what.short: each for each in comparisons(trial) if each.better == "fq_codel"}
    mos, game = by_name["call.mos"], by_name["game.delay"]
    turned = replace(game.found, means=dict(zip(game.found.means, (9.0, 1.0), strict=True)))
    best, worst = game.found.best, game.found.worst
    shown = replace(turned, best=worst, worst=best)
    for found, word in ((shown, "is"), (replace(shown, verdict="not shown"), "may be")):
        told = sentences(trial, [mos, replace(game, found=found)])[0]
        text = f"No recommendation: each queue that is better in a measure {word} worse in another."
        assert told == text


def test_an_interval_on_both_sides_of_zero_has_both_directions(trial: LineTrial) -> None:
    each = next(each for each in comparisons(trial) if each.what.short == "call.mos")
    found = replace(each.found, effect=-0.2, low=-0.7, high=0.3, verdict="not shown")
    found = replace(found, means={"fq_codel": 4.0, "droptail": 3.8})
    open_one = replace(each, found=found)
    assert open_one.told("fq_codel") == "call MOS 4 instead of 3.8 (0.3 less to 0.7 more)"
    assert open_one.told("droptail") == "call MOS 3.8 instead of 4 (0.7 less to 0.3 more)"


def test_what_only_costs_is_not_recommended() -> None:
    """The line as it is has no queue to speak of, and a shaper takes half of its rate."""
    line = Line("1gbit", "1gbit", "4ms", "ethernet")
    trial = run(replace(pack_of(line, "home", ["cake"], 0.02), replications=5), line)
    compared = comparisons(trial)
    assert recommended(trial, compared) is None
    first, *rest = sentences(trial, compared)
    assert first.startswith(("Leave", "No recommendation")), first
    assert any("cake is worse than the line as it is" in each for each in rest)


def test_the_command_prints_json_and_writes_a_study_that_runs(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    found = aqmlab.json(
        "try", *LINE, "--json", "codel", "cake", "--load", "gaming", "--out", "here"
    )
    assert set(found["queues"]) == {"droptail", "codel", "cake"}
    mos = found["queues"]["cake"]["call.mos"]
    assert 4 < mos["value"] < 4.5
    measured = [each for own in found["queues"].values() for each in own.values()]
    within = [each for each in measured if each["low"] is not None]
    assert within and all(each["low"] <= each["value"] <= each["high"] for each in within)
    assert found["recommended"] == "cake"
    assert found["tc"][0] == (
        "tc qdisc replace dev eth0 root cake bandwidth 1.9mbit overhead 0 nat"
    )
    assert found["commands"]["cake"]["down"] == found["tc"][1:]
    assert found["commands"]["droptail"] == {"up": [], "down": [], "undo": [], "problem": ""}
    text = (tmp_path / "here/study.toml").read_text()
    again = json.loads(Study(tomllib.loads(text)).points[0].scenario.resolved)
    assert again["flows"]["game"]["workload"]["kind"] == "game"
    words = ("--replications", 1, "--json", "--out", "again")
    assert aqmlab.json("study", "here/study.toml", *words)["runs"] == 3


def test_a_queue_in_the_words_of_tc_is_tried_and_printed(aqmlab: Aqmlab, tmp_path: Path) -> None:
    words = "fq_codel target 3ms"
    own = ["--load", "gaming", "--json", "--no-report", "--device", "ppp0"]
    found = aqmlab.json("try", *LINE, "droptail", words, *own)
    assert found["recommended"] == words
    assert found["tc"][2] == ("tc qdisc replace dev ppp0 parent 1:1 handle 11: fq_codel target 3ms")
    table = tomllib.loads((tmp_path / "results/try/study.toml").read_text())
    queue = table["axes"][0]["values"][1]["set"]["links.egress.queue"]
    assert queue == f"{words} variant=linux"


def test_the_study_keeps_results_for_a_bundle(aqmlab: Aqmlab) -> None:
    aqmlab.ok("try", *LINE, "codel", "--load", "gaming", "--no-report")
    assert_refused(aqmlab("bundle", "results/try"), "`aqmlab study results/try/study.toml`")
    aqmlab.ok("study", "results/try/study.toml", "--no-report", "--replications", 1)
    aqmlab.ok("bundle", "results/try_study-r1")


def test_no_interval_reaches_below_zero(aqmlab: Aqmlab) -> None:
    slow = ["--down", "500kbit", "--up", "100kbit", "--rtt", "20ms"]
    found = aqmlab.json("try", *slow, "codel", "--json", "--no-report")
    lows = {name: each["low"] for name, each in found["queues"]["codel"].items()}
    assert all(low is None or low >= 0 for low in lows.values()), lows


def test_assertions_decide_the_exit_status(aqmlab: Aqmlab) -> None:
    words = ["try", *LINE, "--load", "gaming", "--no-report"]
    good = aqmlab.ok(
        *words, "fq_codel", "--assert", "call.mos > 4", "--assert", "game.delay < 100ms"
    )
    assert good.stdout.count("holds") == 2 and "does not hold" not in good.stdout
    bad = aqmlab(*words, "droptail", "--assert", "call.mos > 4")
    assert bad.returncode == 1
    assert "droptail: call.mos > 4 does not hold" in bad.stderr


def test_a_profile_is_a_whole_line_that_options_change(aqmlab: Aqmlab) -> None:
    assert line_of("cable", None, None, None, None) == PROFILES["cable"].line
    assert line_of("cable", None, "5mbit", None, "dsl") == Line("100mbit", "5mbit", "20ms", "dsl")
    words = ["--profile", "dsl", "--load", "gaming", "codel", "--json", "--no-report"]
    assert aqmlab.json("try", *words)["recommended"] == "codel"


def test_the_buffer_of_a_slow_line_holds_a_packet() -> None:
    line = Line("64kbit", "40kbit", "30ms")
    assert (line.buffer("down"), line.buffer("up")) == ("2000b", "1500b")
    trial = run(replace(pack_of(line, "gaming", []), replications=2), line)
    (upload,) = (each for each in trial.noticed if each.short == "upload.goodput")
    assert (trial.values(upload, "droptail") > 0).all()


def test_satellites_in_low_orbits_are_no_fibre() -> None:
    line = PROFILES["satellite"].line
    assert (line.access, line.kind.up.owner) == ("leo", "the terminal")
    fibre = replace(line, access="fibre")
    assert line.links() == fibre.links() and line.buffer("up") == fibre.buffer("up")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_line_carries_every_load(kind: str) -> None:
    for load in loads.KINDS:
        pack = pack_of(Line("20mbit", "5mbit", "30ms", kind), load, ["fq_codel"])
        short = {"duration": "4s", "record.warmup": "1s"}
        result = Study(Plan(pack, pack.contenders).table(), replications=1, set=short).run()
        found = result.flows.filter(result.flows["goodput_bps"] > 0)["group"]
        assert {"download", "upload"} <= set(found.cast(pl.String)) <= set(loads.KINDS[load].flows)
        assert (result.links["utilisation"] <= 1).all()


def test_runs_are_shorter_on_fast_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EFFORT, "WORK", WORK)
    slow = pack_of(Line("10mbit", "1mbit", "20ms"), "home", ["codel"])
    fast = pack_of(Line("1gbit", "1gbit", "20ms"), "home", ["codel", "pie", "cake"])
    assert slow.scenario and (slow.scenario["duration"], slow.replications) == ("30s", 30)
    assert fast.scenario and (fast.scenario["duration"], fast.replications) == ("10s", 10)

"""`aqmlab try`: which queue suits the line that somebody has."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab, assert_refused

from aqmlab.advice import Trial, loads, study_of
from aqmlab.advice.page import commands, comparisons, recommended, sentences
from aqmlab.scenarios.access import KINDS, PROFILES, Line, line_of
from aqmlab.study import Study

LINE = ["--down", "10mbit", "--up", "2mbit", "--rtt", "20ms"]


@pytest.fixture(scope="module")
def trial() -> Trial:
    line = Line("10mbit", "2mbit", "20ms")
    return Trial(Study(study_of(line, "home", ["droptail", "fq_codel"])).run(), line)


def test_flow_queues_are_recommended_before_a_deep_buffer(trial: Trial) -> None:
    compared = comparisons(trial)
    choice = recommended(trial, compared)
    assert choice is not None and choice.queue == "fq_codel"
    shown = {each.what.short for each in compared if each.better == "fq_codel"}
    assert {"call.mos", "game.delay"} <= shown
    text = " ".join(sentences(trial, compared))
    assert "fq_codel" in text and "call: MOS" in text


def test_a_difference_that_nobody_would_notice_does_not_count(trial: Trial) -> None:
    each = next(each for each in comparisons(trial) if each.better)
    _, low, high = each.difference
    far = max(abs(low), abs(high))
    assert type(each)(each.what, each.one, each.other, each.found, far).better is None


def test_the_same_queue_twice_by_another_name_shows_no_difference() -> None:
    line = Line("10mbit", "2mbit", "20ms")
    study = study_of(line, "gaming", ["codel", "twin"])
    twin = {"links.down.queue": "codel", "links.up.queue": "codel"}
    study["axes"][0]["values"][1]["set"] = twin
    trial = Trial(Study(study).run(), line)
    compared = comparisons(trial)
    assert compared and recommended(trial, compared) is None
    assert "No difference" in sentences(trial, compared)[0]


def test_the_command_prints_json_and_writes_a_study_that_runs(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    done = aqmlab("try", *LINE, "--json", "codel", "cake", "--load", "gaming", "--out", "here")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["queues"]) == {"codel", "cake"}
    mos = found["queues"]["cake"]["call.mos"]
    assert 4 < mos["value"] < 4.5 and mos["low"] <= mos["value"] <= mos["high"]
    assert found["recommended"] == "cake"
    assert found["tc"] == ["tc qdisc replace dev eth0 root cake bandwidth 1900kbit"]
    text = (tmp_path / "here/study.toml").read_text()
    again = aqmlab_study(tomllib.loads(text))
    assert again["flows"]["game"]["workload"]["kind"] == "game"
    done = aqmlab("study", "here/study.toml", "--replications", 1, "--json", "--out", "again")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"] == 2


def test_a_queue_in_the_words_of_tc_is_tried_and_printed(aqmlab: Aqmlab, tmp_path: Path) -> None:
    words = "fq_codel target 3ms"
    done = aqmlab("try", *LINE, "droptail", words, "--load", "gaming", "--json", "--no-report")
    found = json.loads(done.stdout)
    assert found["recommended"] == words
    assert found["tc"][-1] == "tc qdisc replace dev eth0 parent 1:1 fq_codel target 3ms"
    table = tomllib.loads((tmp_path / "results/try/study.toml").read_text())
    queue = table["axes"][0]["values"][1]["set"]["links.up.queue"]
    assert queue == {"discipline": "fq_codel", "target": "3ms"}


def test_no_interval_reaches_below_zero(aqmlab: Aqmlab) -> None:
    slow = ["--down", "500kbit", "--up", "100kbit", "--rtt", "20ms"]
    found = json.loads(aqmlab("try", *slow, "codel", "--json", "--no-report").stdout)
    lows = {name: each["low"] for name, each in found["queues"]["codel"].items()}
    assert all(low is None or low >= 0 for low in lows.values()), lows


def aqmlab_study(table: dict[str, Any]) -> dict[str, Any]:
    return json.loads(Study(table).points[0].scenario.resolved)


def test_assertions_decide_the_exit_status(aqmlab: Aqmlab) -> None:
    words = ["try", *LINE, "--load", "gaming", "--no-report"]
    good = aqmlab(*words, "fq_codel", "--assert", "call.mos > 4", "--assert", "game.delay < 100ms")
    assert good.returncode == 0, good.stderr
    assert good.stdout.count("holds") == 2 and "does not hold" not in good.stdout
    bad = aqmlab(*words, "droptail", "--assert", "call.mos > 4")
    assert bad.returncode == 1
    assert "droptail: call.mos > 4 does not hold" in bad.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--assert", "call.mos"], ["--assert", "call.mos > 4"]),
        (["--assert", "cal.mos > 4"], ["cal.mos", "call.mos"]),
        (["--assert", "game.delay < 3s"], ["ms", "`s`"]),
        (["--down", "fast"], ["--down", "fast"]),
        (["--rtt", "20"], ["--rtt", "20", "ms"]),
        (["--access", "dls"], ["dls", "dsl"]),
        (["--load", "hom"], ["hom", "home"]),
        (["--profile", "dls"], ["--profile", "dls", "dsl"]),
        (["fq_codle"], ["error: QUEUE: `fq_codle`", "fq_codel"]),
        (["fq_codel trget 3ms"], ["error: QUEUE: `trget`", "target"]),
        (["codel", "codel"], ["twice"]),
    ],
)
def test_mistakes_are_named(aqmlab: Aqmlab, words: list[str], told: list[str]) -> None:
    queue = [] if words[-1].startswith(("fq", "codel")) else ["codel"]
    assert_refused(aqmlab("try", *LINE, *words, *queue), *told)


def test_a_profile_is_a_whole_line_that_options_change(aqmlab: Aqmlab) -> None:
    assert line_of("cable", None, None, None, None) == PROFILES["cable"].line
    assert line_of("cable", None, "5mbit", None, "dsl") == Line("100mbit", "5mbit", "20ms", "dsl")
    words = ["--profile", "dsl", "--load", "gaming", "codel", "--json", "--no-report"]
    assert json.loads(aqmlab("try", *words).stdout)["recommended"] is None
    missing = aqmlab("try", "--down", "10mbit", "--up", "2mbit", "codel")
    assert_refused(missing, "--rtt", "missing", "--profile")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_line_carries_every_load(kind: str) -> None:
    for load in loads.KINDS:
        study = study_of(Line("20mbit", "5mbit", "30ms", kind), load, ["fq_codel"])
        study["scenario"]["duration"] = "4s"
        study["scenario"]["record"]["warmup"] = "1s"
        result = Study(study, replications=1).run()
        found = result.flows.filter(result.flows["goodput_bps"] > 0)["group"]
        assert {"download", "upload"} <= set(found.cast(pl.String)) <= set(loads.KINDS[load].flows)
        assert (result.links["utilisation"] <= 1).all()


def test_queues_with_a_shaper_of_their_own_need_no_other() -> None:
    assert len(commands("fq_codel", "10mbit")) == 3
    assert commands("cake", "10mbit") == ["tc qdisc replace dev eth0 root cake bandwidth 9500kbit"]
    assert commands("pi2", "10mbit") == []


def test_runs_are_shorter_on_fast_lines() -> None:
    slow = study_of(Line("10mbit", "1mbit", "20ms"), "home", ["codel"])
    fast = study_of(Line("1gbit", "1gbit", "20ms"), "home", ["codel", "pie", "cake"])
    assert slow["scenario"]["duration"] == "30s"
    assert fast["scenario"]["duration"] == "10s"

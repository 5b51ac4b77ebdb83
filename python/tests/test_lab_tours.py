"""The tours of the live lab, in Chromium: their steps, and their texts beside the page."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import LAB, Browser
from test_lab import SAVED, play

import aqmlab as lab

FAST = "lab.speed = 100"
"""The engine's own speed, with few frames to draw."""


def tours(page: Browser) -> list[dict[str, Any]]:
    """The tours that the page has."""
    return list(json.loads(page.text("tours")))


def test_every_tour_is_walked_through_by_clicks(opened: Browser) -> None:
    for number, tour in reversed(list(enumerate(tours(opened)))):
        opened.choose("#tour", str(number))
        texts = []
        while not opened.run("document.getElementById('guide').hidden"):
            texts.append(opened.text("guide-text"))
            opened.click("#guide-next")
        # Backticks become an element for code.
        assert texts == [step["text"].replace("`", "") for step in tour["steps"]]
        assert len(set(texts)) == len(texts)
        assert opened.text("message") == ""
        assert opened.problems == []
    assert opened.run("document.querySelectorAll('#tour option').length - 1") == 11
    assert len(texts) == 5
    assert opened.run("lab.sides[0].groups") == [
        *("call-1", "web-1", "video-1", "download-1", "download-2")
    ]
    waits = opened.run(
        "lab.sides.map((side) => Math.max(...side.bins.slice(600, 1200).map((b) => b.sojourn)))"
    )
    assert waits[0] > 0.3, "the buffer of A is bloated"
    assert waits[1] < waits[0]


# A tour, a step, where to go from there while it plays, and the tour and step in which that ends.
TRANSITIONS: list[tuple[int, int, str | int, int | None, int | None]] = [
    (0, 0, "next", 0, 1),
    (0, 1, "back", 0, 0),
    (0, 2, "back", 0, 1),
    (0, 4, "back", 0, 3),
    (0, 0, 5, 5, 0),
    (0, 4, 5, 5, 0),
    (5, 2, 0, 0, 0),
    (3, 1, 2, 2, 0),
    (2, 1, "end", None, None),
]


def test_a_tour_goes_on_back_and_to_another_from_any_step(opened: Browser) -> None:
    all_tours = tours(opened)
    for (tour, step, way, to, place), paused in itertools.product(TRANSITIONS, (False, True)):
        opened.choose("#speed", "1")
        opened.choose("#tour", str(tour))
        for _ in range(step):
            opened.click("#guide-next")
        opened.wait_for("lab.playing && lab.time > 0")
        if paused:
            opened.click("#play")
        # The page is asked in the same turn, before another frame plays on.
        target = f"document.getElementById('guide-{way}').click()"
        if isinstance(way, int):
            target = f"""{{ const tour = document.getElementById('tour'); tour.value = '{way}';
                tour.dispatchEvent(new Event('change')); }}"""
        time, text, playing = opened.run(
            f"(() => {{ {target}; return [lab.time,"
            " document.getElementById('guide-text').textContent, lab.playing]; })()"
        )
        which = (tour, step, way, paused)
        assert opened.problems == [], which
        assert opened.text("message") == "", which
        assert opened.run("document.getElementById('guide').hidden") == (to is None), which
        if to is None or place is None:
            continue
        steps = all_tours[to]["steps"]
        assert time == pytest.approx(steps[place - 1]["until"] if place else 0), which
        assert text == steps[place]["text"], which
        assert playing, which
        assert opened.run("document.getElementById('tour').value") == str(to), which
        opened.run(FAST)
        opened.wait_for(f"!lab.playing && Math.abs(lab.time - {steps[place]['until']}) < 1e-6")


def test_the_first_tour_plays_at_once_unless_motion_is_not_wanted(page: Browser) -> None:
    for motion in ("no-preference", "reduce"):
        page.problems.clear()
        page.look(1200, 900, "light", motion)
        page.open("about:blank")
        page.open(LAB.as_uri())
        page.wait_for("window.meter && meter.ready")
        assert page.text("guide-place") == "1 of 5"
        if motion == "reduce":
            assert not page.run("lab.playing || lab.time > 0")
            page.click("#play")
        page.wait_for("lab.time > 0.5")
        assert page.problems == []
    page.look(1200, 900)


# What a side's users felt, in a span of time: times and values by quantity and group.
FELT = """((number, from, until) => {
    const bins = lab.sides[number].bins.slice(Math.round(from / 0.02), Math.round(until / 0.02));
    const found = {};
    for (const { t, felt } of bins)
        for (const key in felt) (found[key] ??= []).push([t, felt[key]]);
    return found;
})"""
SPOKEN = "document.getElementById('felt').ariaLabel"


def test_what_users_feel_is_what_the_engine_measures(opened: Browser, tmp_path: Path) -> None:
    """Scores of the first second are results of a run of a second; going back measures the same."""
    opened.choose("#tour", "0")
    opened.click("#guide-end")
    opened.click("#play")
    play(opened, 6)
    opened.choose("#time", "6000")
    spoken = opened.run(SPOKEN)
    felt = [opened.run(f"{FELT}({side}, 0, 6)") for side in (0, 1)]
    opened.choose("#time", "1000")
    assert opened.run(SPOKEN) != spoken
    opened.click("#save")
    text = opened.run("document.getElementById('dialog-value').value")
    opened.run("document.getElementById('dialog').close()")
    for of_side, saved in zip(felt, text.split("# ------"), strict=True):
        (tmp_path / "saved.toml").write_text(f"# {saved}")
        native = lab.run(tmp_path / "saved.toml")
        for quantity, group in (("mos", "call-1"), ("missed", "video-1")):
            scores = native.scores.filter(group=group, quantity=quantity)
            score = next(row["value"] for row in scores.to_dicts() if row["direction"] != "reverse")
            place = ["call-1", "web-1", "video-1"].index(group)
            assert of_side[f"{quantity} {place}"][0] == [1, pytest.approx(score, abs=1e-12)]
        pages = native.times.filter(group="web-1", quantity="page_load").to_dicts()[0]
        [first, second, *_] = of_side["page_load 1"]
        assert pages["count"] == 1 and first[0] < 1 < second[0]
        assert first[1] == pytest.approx(pages["mean_s"], rel=1e-9)
    # To the same time in steps of other lengths, with empty charts: all is measured again.
    opened.run("lab.sides.forEach((side) => { side.bins.length = 50; })")
    opened.click("#step")
    for time in ("3510", "4000", "6000"):
        opened.choose("#time", time)
    assert opened.run("lab.time") == 6
    assert [opened.run(f"{FELT}({side}, 0, 6)") for side in (0, 1)] == felt
    assert opened.run(SPOKEN) == spoken
    assert opened.problems == []


def pages_drawn(page: Browser, svg: str) -> list[int]:
    """The number of lines of pages, the third chart, of each side."""
    style = "getComputedStyle(document.documentElement)"
    colours = [page.run(f"{style}.getPropertyValue('--{side}').trim()") for side in "ab"]
    nodes = list(ElementTree.fromstring(svg).iter())
    lines = [[node for node in nodes if node.get("stroke") == colour] for colour in colours]
    return [of_side[2].get("d", "").count("M") for of_side in lines]


def test_what_users_feel_is_drawn_for_both_queues(opened: Browser) -> None:
    opened.choose("#tour", "0")
    opened.click("#guide-next")
    opened.click("#guide-next")
    opened.run(FAST)
    opened.wait_for("!lab.playing && lab.time >= 18 - 1e-6")
    words = re.findall(r"([^.,:]+): A ([\d.]+) (\S+), B ([\d.]+) (\S+)\.", opened.run(SPOKEN))
    values = {name.strip(): (float(a), float(b), unit) for name, a, unit, b, _ in words}
    (_, delay), (_, quality), (_, pages), (_, frames) = values.items()
    assert [*values] == [
        *("One-way delay of call-1", "Quality of call-1"),
        *("Load times of pages of web-1", "Late or lost frames of video-1"),
    ]
    assert delay[0] > 400 > 50 > delay[1] > 20 and quality[0] < 3 < 4 < quality[1]
    assert pages[0] > 4 > 1.5 > pages[1] and frames[0] == 100 > 20 > frames[1]
    assert [value[2] for value in values.values()] == ["ms", "MOS", "s", "%"]
    svg, table, _ = opened.run(SAVED)
    texts = [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    titles = [next(text for text in texts if text and text.startswith(name)) for name in values]
    assert titles[1:] == [
        "Quality of call-1, MOS of each second",
        "Load times of pages of web-1, s",
        "Late or lost frames of video-1, % of each second",
    ]
    assert "good 4" in texts
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["frames_missed"]]
    assert {row["group"] for row in rows} == {"video-1"} and len(rows) == 2 * 18
    # Each page is a line from its start to its end; that of A goes on to this moment.
    ended = [len(opened.run(f"{FELT}({side}, 9.5, 18)")["page_load 1"]) for side in (0, 1)]
    assert pages_drawn(opened, svg) == [ended[0] + 1, ended[1]]
    opened.choose("#flow-list select", "bbr")  # Another flow takes the place of web-1.
    assert "pages of web-2: A no value" in opened.run(SPOKEN)
    opened.click("[aria-label='Stop web-2']")
    assert "pages of web-1: A 4.63 s" in opened.run(SPOKEN)
    svg, *_ = opened.run(SAVED)
    assert pages_drawn(opened, svg) == ended, "a stopped flow loads nothing"
    opened.choose("#tour", "2")  # Only downloads.
    opened.wait_for("lab.time > 0")
    opened.wait_for("document.getElementById('felt-box').hidden")
    assert opened.problems == []


# Of one side in a span of time: the longest wait of each 20 ms (ms), drops by reason and by
# group, goodputs.
SHOWN = """((number, from, until) => {
    const side = lab.sides[number];
    const bins = side.bins.slice(Math.round(from / 0.02), Math.round(until / 0.02)).filter(Boolean);
    const drops = {};
    for (const { reason } of bins)
        for (const name in reason) drops[name] = (drops[name] ?? 0) + reason[name];
    const waits = bins.map((bin) => 1000 * (bin.sojourn ?? 0)).sort((a, b) => a - b);
    const mean = (of) => bins.reduce((sum, bin) => sum + (of(bin) ?? 0), 0) / bins.length;
    const rates = side.groups.map((_, group) => mean((bin) => bin.goodput[group]));
    const words = document.getElementById(`words-${number}`).textContent;
    const lost = side.groups.map((_, group) => bins.length * mean((bin) => bin.lost[group]));
    return { waits, drops, lost, rates, words };
})"""


# What each 20 ms of a side had, in a span of time.
BINS = """((number, from, until) =>
    lab.sides[number].bins.slice(Math.round(from / 0.02), Math.round(until / 0.02)))"""


def shown(page: Browser, tour: int) -> list[list[dict[str, Any]]]:
    """What a tour shows in the second half of each step, by step and side."""
    steps = tours(page)[tour]["steps"]
    page.choose("#tour", str(tour))
    for _ in steps[1:]:
        page.click("#guide-next")
    page.run(FAST)
    page.wait_for(f"!lab.playing && lab.time >= {steps[-1]['until']} - 1e-6")
    times = itertools.pairwise([0.0, *(step["until"] for step in steps)])
    spans = [((start + end) / 2, end) for start, end in times]
    return [
        [page.run(f"{SHOWN}({side}, {start}, {end})") for side in (0, 1)] for start, end in spans
    ]


def test_the_texts_of_tours_say_what_the_page_shows(opened: Browser) -> None:
    def middle(side: dict[str, Any]) -> float:
        return float(side["waits"][len(side["waits"]) // 2])

    # CoDel drops in the second step first, from ever shorter distances.
    bursts, standing, short, (tail, codel), (_, patient) = shown(opened, 2)
    assert bursts[1]["drops"] == {} and standing[1]["drops"]["codel"] >= 4
    first = opened.run(f"{BINS}(1, 0, 0.6).filter((bin) => bin.drops).map((bin) => bin.t)")
    gaps = [late - early for early, late in itertools.pairwise(first)]
    assert first[0] + 0.05 > 0.26 and gaps[0] > 1.5 * gaps[-1], first
    assert short[1]["waits"][-1] < 10
    assert sum(codel["rates"]) / sum(tail["rates"]) == pytest.approx(0.94, abs=0.01)
    assert middle(codel) < 5 < 230 < middle(tail) < 270
    assert sum(patient["rates"]) > 0.99 * sum(tail["rates"]) and middle(patient) > 5 * middle(codel)
    calm, (filling, _), alone, (long, apart), small_buffer = shown(opened, 0)
    felt = [opened.run(f"{FELT}({side}, 0, 26)") for side in (0, 1)]
    for side, of_side in zip(calm, felt, strict=True):
        assert 20 < side["waits"][-1] < 60 and side["waits"][len(side["waits"]) // 4] < 7, "bursts"
        assert min(value for time, value in of_side["mos 0"] if time <= 4) > 4.3
        assert max(value for time, value in of_side["page_load 1"] if time <= 4) < 1
        assert max(value for time, value in of_side["missed 2"] if time <= 4) == 0
    assert filling["drops"] == {}
    (tail, codel) = ([value for time, value in side["missed 2"] if time > 8] for side in felt)
    assert min(tail) == 1 and max(codel) < 0.25
    (tail, codel) = ([value for time, value in side["page_load 1"] if time > 8] for side in felt)
    assert min(tail) > 4 and max(codel) < 1.2
    waits = [opened.run(f"{BINS}({side}, 12, 26).map((bin) => bin.waits[0])") for side in (0, 1)]
    assert min(filter(None, waits[0])) > 0.2 > 0.02 > max(filter(None, waits[1]))
    assert middle(long) > 400 and max(filter(None, waits[1][:300])) < 0.005
    (idle, full) = (sum(b["rates"]) / sum(a["rates"]) for a, b in (alone, (long, apart)))
    assert idle == pytest.approx(0.8, abs=0.01) and full == pytest.approx(0.97, abs=0.005)
    assert 10 < middle(small_buffer[0]) < small_buffer[0]["waits"][-1] <= 24
    (_, (_, flood), (last, apart)) = shown(opened, 3)
    waits = opened.run(f"{BINS}(1, 0, 8).map((bin) => bin.waits[1] ?? 0)")
    assert 0.0012 < max(waits) <= 0.0024, "a packet takes 1.2 ms"
    assert flood["rates"][0] > 4e6 and flood["drops"]["codel"] > 10 * flood["drops"].get(
        "overlimit", 0
    )
    assert middle(apart) > 200 and last["drops"]["codel"] > 20
    # One queue drops everybody's packets alike, so most are the flood's, which sends 80 % of all.
    download, call, flood_1 = last["lost"]
    assert 0 < download < flood_1 and call + download + flood_1 == last["drops"]["codel"]
    assert apart["lost"][2] > 0.95 * sum(apart["lost"]) > 0
    assert apart["words"].startswith("Packets of flood-1 wait up to ")
    assert "those of call-1 up to " in apart["words"]
    (_, (before, _), (pie, codel)) = shown(opened, 4)
    chances = opened.run(f"{BINS}(0, 10, 24).map((bin) => bin.state.drop_probability)")
    assert max(chances[:50]) > 0.99 and min(chances[50:]) > 0.7
    assert max(opened.run(f"{BINS}(0, 10, 12).map((bin) => bin.sojourn)")) > 0.38
    assert pie["waits"][-1] > 2 * 60 and codel["waits"][-1] < 100
    assert pie["drops"]["pie"] / 8 < 0.8 * before["drops"]["pie"] / 7  # steps of 16 and 14 s
    (_, (_, two), (_, five)) = shown(opened, 5)
    assert 1.1 < two["rates"][1] / two["rates"][0] < 2
    assert 1.1 < five["rates"][1] * 4 / (sum(five["rates"]) - five["rates"][1]) < 2
    base, l4s, classic = (
        float(share) / 100 for share in re.findall(r"([\d.]+)\xa0%", five["words"])
    )
    assert l4s == pytest.approx(2 * base, rel=0.1) and classic == pytest.approx(base**2, rel=0.1)
    (_, cubic, vegas) = shown(opened, 7)
    for was, now in zip(cubic, vegas, strict=True):
        assert sum(now["drops"].values()) < 25 > sum(was["drops"].values()) > 0
        assert sum(now["drops"].values()) < 1.5 * sum(was["drops"].values())
    assert sum(cubic[1]["rates"]) < 0.95 * sum(cubic[0]["rates"])
    # The queues after the rate has fallen: when was the last long wait?
    shown(opened, 8)
    long = "filter((bin) => bin.sojourn > 0.06).map((bin) => bin.t - 10)"
    red, codel = (opened.run(f"{BINS}({side}, 10, 25).{long}") for side in (0, 1))
    assert max(codel) == pytest.approx(3, abs=0.5) and max(red) == pytest.approx(4, abs=0.5)
    (deep, browser), (alone, flows), _ = shown(opened, 10)
    assert middle(alone) == pytest.approx(15, abs=2) == middle(flows)
    assert middle(deep) == pytest.approx(200, rel=0.1)
    assert browser["rates"][3] / deep["rates"][3] == pytest.approx(3, rel=0.2)

"""The tours of the live lab, in Chromium: their steps, and their texts beside the page."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from browser import LAB, Browser


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
    assert opened.run("lab.sides[0].groups") == ["call-1", "game-1", "download-1", "download-2"]
    waits = opened.run(
        "lab.sides.map((side) => Math.max(...side.bins.slice(600, 1200).map((b) => b.sojourn)))"
    )
    assert waits[0] > 0.3, "the buffer of A is bloated"
    assert waits[1] < waits[0]


# A tour, a step, where to go from there while it plays, and the tour and step in which that ends.
TRANSITIONS = [
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


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize(("tour", "step", "way", "to", "place"), TRANSITIONS)
def test_a_tour_goes_on_back_and_to_another_from_any_step(
    opened: Browser,
    tour: int,
    step: int,
    way: str | int,
    to: int | None,
    place: int | None,
    paused: bool,
) -> None:
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
    assert opened.problems == []
    assert opened.text("message") == ""
    assert opened.run("document.getElementById('guide').hidden") == (to is None)
    if to is None or place is None:
        return
    steps = tours(opened)[to]["steps"]
    assert time == pytest.approx(steps[place - 1]["until"] if place else 0)
    assert text == steps[place]["text"]
    assert playing
    assert opened.run("document.getElementById('tour').value") == str(to)
    opened.choose("#speed", "10")
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


def test_users_of_both_queues_are_compared(opened: Browser) -> None:
    opened.choose("#tour", "0")
    opened.click("#guide-next")
    opened.click("#guide-next")
    rows = opened.wait_for(
        "[...document.querySelectorAll('#users tbody tr')].map((row) =>"
        " [...row.children].map((cell) => cell.textContent))"
    )
    quality = {row[0]: [float(value.split()[0]) for value in row[1:]] for row in rows}
    scores = quality["call-1: call quality (MOS, 1 to 4.5)"]
    assert scores[0] < 3 < 4 < scores[1]
    waits = opened.run(
        "lab.sides.map((side) => Math.max(...side.bins.map((bin) => bin.delays[0] ?? 0)))"
    )
    assert waits[0] > 0.4 > 0.1 > waits[1] > 0.02


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
    page.choose("#speed", "10")
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
    *_, (long, apart), small_buffer = shown(opened, 0)
    assert middle(long) > 400 > 20 > apart["waits"][-1]
    assert sum(apart["rates"][2:]) > 0.99 * sum(long["rates"][2:])
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

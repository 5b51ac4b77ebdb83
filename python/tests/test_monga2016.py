"""The study monga2016: its files, its rules, and its scenario against computed values."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers import Aqmlab

import aqmlab
import aqmlab_studies
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.published import Published
from aqmlab_studies.monga2016.claims import RULES
from aqmlab_studies.monga2016.sweeps import (
    AQMS,
    BANDWIDTH,
    BASE,
    DROPS,
    FILL,
    FLOWS,
    QUEUE,
    QUEUES,
    RTT,
    SFQ,
    SWEEPS,
    UTILISATION,
    Metric,
    Points,
)

FOLDER = Path(aqmlab_studies.__path__[0]) / "monga2016"
Law = Callable[[Metric, str, str], float]


class World(Points):
    """Points whose values follow a law."""

    def __init__(self, law: Law) -> None:
        self.law = law

    def has(self, queue: str, place: str) -> bool:
        return True

    def runs(self, metric: Metric, queue: str, place: str) -> Floats:
        return np.array([self.law(metric, queue, place)])


def flat(metric: Metric, queue: str, place: str) -> float:
    """All queues alike, everywhere."""
    return {UTILISATION: 90.0, QUEUE: 5.0, FILL: 5.0, DROPS: 0.5}[metric]


def as_printed(metric: Metric, queue: str, place: str) -> float:
    """What the captions of the figures say, one sweep at a time."""
    own = queue == SFQ
    if place in BANDWIDTH.places and place != BASE:
        i = list(BANDWIDTH.places).index(place)
        droptail = (30, 60, 50, 40, 30, 20, 10, 5, 2, 1)[i]
        queues = droptail if queue == "DropTail" else (10 - i) / (3 if own else 1)
        return {
            UTILISATION: 100 - 9 * i + 2 * own * (i > 0),
            DROPS: 2 - 0.1 * i - 0.05 * (queue in ("CoDel", SFQ)),
        }.get(metric, queues)
    if place in FLOWS.places and place != BASE:
        i = list(FLOWS.places).index(place)
        if metric is UTILISATION:
            return 60 if queue == "DropTail" else 90
        if metric is DROPS:
            return 0.1 if i < 2 else 5.0
        return 30 * (i + 1) if queue == "DropTail" else 6.0 - 4 * own
    if place in RTT.places and place != BASE:
        i = list(RTT.places).index(place)
        drops = {"DropTail": 0.5, "CoDel": 3.0, "CoDel-DT": 3.0, SFQ: 2.0}[queue]
        queues = (2 if own else 4) / (i + 1)
        return {UTILISATION: 95 if i < 4 else 100 - 10 * i, DROPS: drops}.get(metric, queues)
    return {
        UTILISATION: {"DropTail": 70, SFQ: 92}.get(queue, 90),
        DROPS: {"DropTail": 1.0, SFQ: 1.01}.get(queue, 1.05),
    }.get(metric, {"DropTail": 90, SFQ: 0.7}.get(queue, 1.5))


def holding(law: Law) -> set[str]:
    """The statements that hold in a world."""
    return {rule.id for rule in RULES if rule.holds(rule.measure(World(law)))}


def test_the_claims_of_the_figures_and_the_conclusion_are_checked() -> None:
    assert len(RULES) == 31
    for number in range(2, 11):
        assert any(f"Figure {number}:" in rule.text for rule in RULES)
    assert sum(rule.text.startswith("Conclusion") for rule in RULES) == 3


def test_rules_see_that_nothing_happens() -> None:
    """With equal queues everywhere, only statements of equality hold."""
    assert holding(flat) == {
        "drops-similar",
        "ftp-aqms-alike",
        *(f"ftp-queue-constant-{queue.lower()}" for queue in AQMS),
        "ftp-drops-low",
        "rtt-utilisation-good",
    }


def test_rules_see_what_the_paper_says() -> None:
    # The base is a point of every sweep, and cannot be made to fit all orders at once; and a
    # statement of figure 10 excludes one of the conclusion.
    assert holding(as_printed) >= {
        "sfq-queue-at-low-bandwidth",
        "drops-similar",
        "drops-codel-lower",
        "ftp-aqms-alike",
        "ftp-droptail-degraded",
        "ftp-drops-low",
        "rtt-utilisation-falls",
        *(f"rtt-drops-more-{queue.lower()}" for queue in AQMS),
        "rtt-sfq-drops-less-codel",
        "rtt-sfq-drops-less-codel-dt",
        "rtt-sfq-lowest",
        "rtt-sfq-much-lower",
        "drops-fall-with-bandwidth",
    }


def test_one_queue_out_of_order_is_seen() -> None:
    def swapped(metric: Metric, queue: str, place: str) -> float:
        turn = {SFQ: "DropTail", "DropTail": SFQ}
        return as_printed(metric, turn.get(queue, queue), place)

    found = holding(swapped)
    assert not found & {"rtt-drops-more-sfqcodel", "rtt-sfq-lowest", "ftp-droptail-degraded"}


@pytest.mark.parametrize("part", ["study", "window", "intervals"])
def test_every_place_is_the_paper_s(part: str) -> None:
    """8 BDP in packets of 1000 bytes, and one thing varied at a time."""
    text = (FOLDER / f"{part}.toml").read_text(encoding="utf-8")
    (axis,) = [each for each in tomllib.loads(text)["axes"] if each["name"] == "where"]
    known = {place for sweep in SWEEPS for place in sweep.places}
    for value in axis["values"]:
        label, settings = value["label"], value["set"]
        assert label in known
        rate = float(settings.get("links.down.rate", "10mbit").removesuffix("mbit"))
        delay = float(settings.get("links.down.delay", "16ms").removesuffix("ms"))
        limit = int(settings.get("links.down.queue.limit", "320p").removesuffix("p"))
        flows = settings.get("flows.ftp.count", 5)
        assert limit == round(8 * rate * 2 * delay / 8)
        assert BANDWIDTH.places.get(label, 10) == rate
        assert label in FLOWS.places or flows == 5
        assert label not in FLOWS.places or FLOWS.places[label] == flows
        assert RTT.places.get(label, 32) == 2 * delay
        for key, value in settings.items():
            if key.startswith("links.down"):
                assert settings[key.replace("down", "up")] == value


def test_the_main_part_has_all_places() -> None:
    text = (FOLDER / "study.toml").read_text(encoding="utf-8")
    axes = {
        axis["name"]: [v["label"] for v in axis["values"]] for axis in tomllib.loads(text)["axes"]
    }
    assert axes["queue"] == list(QUEUES)
    assert set(axes["where"]) == {place for sweep in SWEEPS for place in sweep.places}


def at(queue: str, place: str, **settings: object) -> aqmlab.RunResult:
    (study,) = Published.load("monga2016").studies(("paper",)).values()
    found = [point for point in study.points if point.labels == {"queue": queue, "where": place}]
    return aqmlab.run(found[0].scenario, set=settings)


def utilisation(result: aqmlab.RunResult) -> float:
    return float(result.links.row(0, named=True)["utilisation"])


LOAD = 5 * (640e3 + 64e3)
"""Streams and voice, bit/s."""
WINDOW = 20 * 1040 * 8
"""A sender's window on the wire, in bits."""


def test_a_fast_link_carries_what_the_windows_allow() -> None:
    # Five windows in each round trip of 32 ms, and what does not respond; acknowledgements of the
    # and five flows backwards, 40 bytes for each 1040.
    expected = (5 * WINDOW / 0.032 * (1 + 40 / 1040) + LOAD) / 1e9
    assert utilisation(at("DropTail", "1000 Mbit/s")) == pytest.approx(expected, rel=0.02)


def test_drop_tail_backwards_takes_half_of_a_flow_s_rate() -> None:
    """What the causes say of figure 5: the acknowledgements wait."""
    never = dict.fromkeys(
        (f"flows.{each}.start" for each in ("ftp_back", "stream_back", "web")), "200s"
    )
    alone = {queue: utilisation(at(queue, "1 FTP", **never)) for queue in ("DropTail", SFQ)}
    # One window in a round trip of 32 ms and the transmission of a packet, and the rest.
    expected = (WINDOW / (0.032 + 1080 * 8 / 10e6) + LOAD) / 10e6
    assert alone["DropTail"] == pytest.approx(expected, rel=0.02)
    assert alone[SFQ] == pytest.approx(expected, rel=0.02)
    assert utilisation(at(SFQ, "1 FTP")) - utilisation(at("DropTail", "1 FTP")) > 0.2


def test_what_waits_in_sfqcodel_is_what_comes_between_two_turns() -> None:
    """What the causes say of figure 3: in each of ten queues one packet and half of these."""
    result = at(SFQ, "1 Mbit/s")
    expected = 0.0
    for group in ("stream", "voice"):
        rows = result.flows.filter(result.flows["group"] == group)
        sent, received = (rows[name].sum() for name in ("segments_sent", "datagrams_received"))
        expected += 5 * (1 + sent / received / 2)
    mean = float(result.links.row(0, named=True)["backlog_mean_packets"])
    assert mean == pytest.approx(expected, rel=0.15)


def test_from_the_command_line(tmp_path: Path, aqmlab: Aqmlab) -> None:
    """A part of it: missing runs are omitted, the rest is complete."""
    command = ["reproduce", "monga2016", "--replications", "1", "--json", "--out", str(tmp_path)]
    command += ["--only", "where=RTT 1 ms", "--only", "queue=DropTail"]
    command += ["--only", "experiment=two packets a flow, RTT 1 ms"]
    form = aqmlab.json(*command)
    assert form["claims"] == []
    assert len(form["contradictions"]) == 5
    names = {table["name"] for table in form["tables"]}
    assert names == {
        f"{what} by round-trip time" for what in ("Utilisation", "Mean queue", "Drop rate")
    }
    assert {cell["row"] for table in form["tables"] for cell in table["cells"]} == {"1 ms"}
    assert not set(AQMS) & {cell["column"] for table in form["tables"] for cell in table["cells"]}

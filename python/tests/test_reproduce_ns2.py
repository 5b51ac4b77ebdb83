"""The acceptance of the load-transient study: beside ns-2, and beside the paper.

The paper's queues are simulated once, with 100 replications (seconds). What ns-2 gave is
in the study's folder.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from helpers import Aqmlab

from aqmlab.metrics.samples import Histograms
from aqmlab.reproduce import Measurements, Reproduction, reproduce
from aqmlab.reproduce.published import Published
from aqmlab.study import Study
from aqmlab_studies.jarvinen2014 import ns2
from aqmlab_studies.jarvinen2014.study import PIE_EXPERIMENTS

REST = "11 ms"
LOADS = ("1+1", "2+2", "4+4")
PACKET = 0.006
"""Transmission time of a packet at 2 Mbit/s, the step of all delays, in seconds."""
PRINTED = tuple(
    f"HRED{weight} in packets{wait}"
    for weight in ("", " (aggressive)")
    for wait in ("", ", wait off")
)
FITTED = tuple(
    f"HRED{weight} fitted: {setting}"
    for weight in ("", " (aggressive)")
    for setting in ("th_max 50", "max_p 0.5")
)


@pytest.fixture(scope="module")
def result() -> Reproduction:
    varied = [f"{queue}, {name}" for queue, each in PIE_EXPERIMENTS.items() for name in each]
    queues = [*WITHIN, *PIE_EXPERIMENTS, *varied, "PIE (default)"]
    only = ["short", *(f"queue={each}" for each in queues)]
    return reproduce("jarvinen2014", only=only, replications=100)


WITHIN: dict[str, tuple[tuple[str, ...], tuple[str, ...], float, float]] = {
    "CoDel": (("p95", "maximum"), (*LOADS, "6+6"), 0.08, 0.0),
    "SFQ CoDel": (("p95",), (*LOADS, "6+6"), 0.12, PACKET),
    **dict.fromkeys((*PRINTED, *FITTED), (("p95",), LOADS, 0.06, 0.0)),
    "DropTail": (("p95", "maximum"), LOADS, 0.03, 0.0),
}
"""Queue to quantities and loads, and how far they may be off: a share of ns-2's, or seconds."""


@pytest.mark.parametrize(
    ("queue", "kind", "flows"),
    [
        (queue, *each)
        for queue, (kinds, loads, *_) in WITHIN.items()
        for each in product(kinds, loads)
    ],
)
def test_a_queue_is_as_close_to_ns2_as_it_was(
    result: Reproduction, queue: str, kind: str, flows: str
) -> None:
    *_, share, span = WITHIN[queue]
    cell = result.table(f"ns2-{kind}").cell(queue, flows)
    assert cell and cell.published is not None
    assert abs(cell.measured - cell.published) <= max(share * cell.published, span), cell


def test_pie_is_within_10_percent_of_the_paper_or_an_experiment_shows_why(
    result: Reproduction,
) -> None:
    """A cell that misses is met by another choice of what the papers leave open."""
    printed = result.table("table-2")
    varied = result.table("table-2-more")
    for queue, experiments in PIE_EXPERIMENTS.items():
        for flows in (*LOADS, "6+6"):
            cell = printed.cell(queue, flows)
            assert cell and cell.published
            others = [varied.cell(f"{queue}, {name}", flows) for name in experiments]
            found = [cell.measured, *(other.measured for other in others if other)]
            assert len(found) == 1 + len(experiments)
            assert min(abs(value / cell.published - 1) for value in found) <= 0.10, (queue, flows)
    (cause,) = [each for each in result.causes if each.title.startswith("PIE")]
    assert "Every printed cell is within 10 %" in cause.text


def test_the_engine_itself_warns_of_the_inert_pie(result: Reproduction) -> None:
    (warning,) = [each for each in result.warnings if each.id == "pie-no-rate-sample"]
    assert "PIE (default)" in warning.where
    (claim,) = [each for each in result.claims if each.id == "pie-inert"]
    assert claim.verdict == "holds"


def with_offsets_of_ns2(queue: str, flows: str, ties: int = 0) -> Measurements:
    """100 runs whose second groups start when ns-2's did.

    With `ties` as many sets of them, in each of which a nanosecond of jitter orders what ns-2 has
    at one moment at random.
    """
    published = Published.load("jarvinen2014")
    table = dict(published.study)
    if ties:
        links = dict(table["scenario"]["links"])
        jitter = {"spread": "1ns", "distribution": "uniform"}
        links["core_down"] = {**links["core_down"], "jitter": jitter}
        table["scenario"] = {**table["scenario"], "links": links}
    offsets = [
        {
            "label": str(number),
            "set": {"flows.second.start": f"{round(1e6 * offset)}us"},
        }
        for number, offset in enumerate(ns2.offsets())
    ]
    table["axes"] = [*table["axes"], {"name": "offset", "values": offsets}]
    only = {"queue": [queue], "flows": [flows], "rest": [REST]}
    return Measurements(Study(table, only=only, replications=max(ties, 1)).run(), "down")


def delays(measured: Measurements, queue: str, flows: str, of_set: int = 0) -> list[np.ndarray]:
    """Offset, delay and number of packets with it, over the 100 offsets of a set."""
    labels = {"queue": queue, "flows": flows, "rest": REST}
    parts = [measured.histograms(**labels, offset=str(number)) for number in range(100)]
    return [
        np.repeat(np.arange(100), [part.values.size for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.counts[of_set] for part in parts]),
    ]


def pooled(measured: Measurements, queue: str, flows: str) -> Histograms:
    return Histograms.from_columns(*delays(measured, queue, flows), 100)


def largest_gap(histograms: Histograms, queue: str, flows: str) -> float:
    """The largest difference to ns-2's of the percentiles 5 to 99, in seconds."""
    theirs = ns2.reference(queue, flows)
    assert theirs
    percentiles = range(5, 100)
    ours = np.array(histograms.quantiles([number / 100 for number in percentiles]))
    return float(np.abs(ours - [theirs.percentile(number) for number in percentiles]).max())


# One step is 6 ms, and ours are upper edges of buckets of 0.1 %.
WITHIN_A_PACKET = PACKET + 0.0002


@pytest.mark.parametrize("flows", LOADS)
def test_codels_whole_distribution_is_within_a_packet_of_ns2s(
    result: Reproduction, flows: str
) -> None:
    with_ours = result.measured.histograms(queue="CoDel", flows=flows, rest=REST)
    assert largest_gap(with_ours, "CoDel", flows) <= WITHIN_A_PACKET
    with_theirs = pooled(with_offsets_of_ns2("CoDel", flows), "CoDel", flows)
    assert largest_gap(with_theirs, "CoDel", flows) <= WITHIN_A_PACKET


@pytest.mark.parametrize("flows", LOADS)
def test_sfq_codels_is_too_in_one_of_the_orders_of_simultaneous_events(flows: str) -> None:
    gaps = [
        largest_gap(pooled(with_offsets_of_ns2(queue, flows), queue, flows), "SFQ CoDel", flows)
        for queue in ("SFQ CoDel", "SFQ CoDel, departures first")
    ]
    assert min(gaps) <= WITHIN_A_PACKET
    assert max(gaps) <= 2 * WITHIN_A_PACKET


@pytest.mark.parametrize("flows", LOADS)
def test_ns2s_tail_is_one_of_those_that_ties_broken_at_random_give(flows: str) -> None:
    """ns-2 has times in floating point: how sums are rounded decides its ties."""
    sets = 5
    measured = with_offsets_of_ns2("SFQ CoDel", flows, ties=sets)
    tails = []
    for each in range(sets):
        _, values, counts = delays(measured, "SFQ CoDel", flows, each)
        of_set = np.repeat(values, counts.astype(int))
        tails.append([np.percentile(of_set, number, method="higher") for number in (50, 95, 99)])
    theirs = ns2.reference("SFQ CoDel", flows)
    assert theirs
    for column, number in zip(np.array(tails).T, (50, 95, 99), strict=True):
        least, most = column.min() - 0.0005, column.max() + 0.0005
        assert least <= theirs.percentile(number) <= most, (number, column)


@pytest.mark.parametrize("flows", LOADS)
def test_droptail_delivers_exactly_as_many_packets_as_in_ns2(flows: str) -> None:
    measured = with_offsets_of_ns2("DropTail", flows)
    theirs = ns2.reference("DropTail", flows)
    assert theirs
    assert pooled(measured, "DropTail", flows).observations == theirs.packets


def test_the_command_line_reproduces_the_study(aqmlab: Aqmlab, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["reproduce", "jarvinen2014", "--only", "paper", "--replications", "2"]
    done = aqmlab.ok(*arguments, "--out", out, "--figures")
    assert "Table II: 95th percentile" in done.stdout
    assert (out / "report.html").exists()
    assert (out / "figures" / "figure-2.pdf").exists()
    form = aqmlab.json(*arguments, "--out", out, "--json")
    assert form["study"] == "jarvinen2014"
    assert len(form["tables"][0]["cells"]) == 24

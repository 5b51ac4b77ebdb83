"""The benchmark scenarios beside ns-3: quantities inside its bands, and causes of the rest."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import Aqmlab

from aqmlab.reproduce import Reproduction, reproduce
from aqmlab.reproduce.published import Published
from aqmlab.reproduce.verdicts import DIFFERS
from aqmlab_studies.ns3.study import (
    BUILDS,
    JOBS,
    QUANTITIES,
    Window,
    outcome,
    superfluous,
    window,
)


@pytest.fixture(scope="module")
def result() -> Reproduction:
    return reproduce("ns3", only="jobs", replications=5)


@pytest.fixture(scope="module")
def experiments() -> Reproduction:
    labels = ("b Reno", "b Reno, acknowledgements counted", "b Reno, RACK")
    return reproduce("ns3", only=[f"job={label}" for label in labels], replications=2)


def mean(window: Window | None, key: str) -> float:
    assert window
    return float(window.values(key).mean())


@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda each: each.key)
def test_what_is_measured_lies_in_the_bands_of_ns3(result: Reproduction, quantity) -> None:
    table = result.table(quantity.key)
    assert table.rows == list(JOBS)
    for cell in table.cells:
        assert cell.published == outcome(cell.column, cell.row)[quantity.key]
        if cell.low is not None and cell.high is not None:
            assert cell.low <= cell.measured <= cell.high
        assert cell.verdict != DIFFERS, cell


def test_drops_are_ns3s_because_the_end_of_a_recovery_counts(result: Reproduction) -> None:
    """All five were below both builds without it."""
    table = result.table("loss")
    for job in JOBS:
        (ours,) = {cell.measured for cell in table.cells if cell.row == job}
        least = min(outcome(build, job)["loss"] for build in BUILDS)
        assert ours > 0.85 * least, job
    measured = reproduce("ns3", only=["job=b CUBIC, once"], replications=2).measured
    once = mean(window(measured, "b CUBIC, once"), "loss")
    counted = mean(window(result.measured, "b CUBIC"), "loss")
    assert counted > 1.1 * once


def test_bands_are_those_of_the_reference() -> None:
    bands = {each.key: each for each in QUANTITIES}
    assert bands["p95"].band("c CoDel").low == pytest.approx(0.75 * 14.399)
    assert bands["p95"].band("c CoDel").high == pytest.approx(1.25 * 32.767)
    assert bands["jain"].band("d").low == pytest.approx(0.8985)
    for build in BUILDS:
        theirs = outcome(build, "b Reno")["utilisation"]
        band = bands["utilisation"].band("b Reno")
        assert band.low <= theirs - 0.02 + 1e-9 or band.high >= theirs + 0.02 - 1e-9


def test_ns3_sends_more_in_vain(result: Reproduction) -> None:
    for job in ("b CUBIC", "b Reno"):
        ours = mean(window(result.measured, job), "superfluous")
        assert 0 <= ours < 0.01 < 0.02 < min(superfluous(build, job) for build in BUILDS)


def test_counting_acknowledgements_halves_queue_and_losses(experiments: Reproduction) -> None:
    measured = experiments.measured
    linux = window(measured, "b Reno")
    counted = window(measured, "b Reno, acknowledgements counted")
    for key in ("p50", "p95", "loss"):
        assert mean(counted, key) < 0.75 * mean(linux, key)
    # RACK finds what RFC 6675 leaves to the timer.
    assert mean(window(measured, "b Reno, RACK"), "timeouts") < 0.6 * mean(linux, "timeouts")


def test_the_queues_of_flows_are_as_long_as_ns3s_if_each_is_compared_by_itself() -> None:
    labels = ("c FQ-CoDel", "c FQ-CoDel, all queues compared")
    measured = reproduce("ns3", only=[f"job={label}" for label in labels], replications=1).measured
    alone, together = (window(measured, label) for label in labels)
    assert mean(together, "p50") < 4.5 < 7 < mean(alone, "p50")
    # The edge: a third packet in the queue of a flow waits three rounds, a fourth is rare.
    assert mean(alone, "p95") < 28


def test_a_run_begins_as_its_beginning(result: Reproduction) -> None:
    """The measured time is a difference, which is never negative."""
    for job in JOBS:
        whole, before = (result.parts[part] for part in ("study", "beginning"))
        one, other = whole.histograms(job=job), before.histograms(job=job)
        counts = np.zeros_like(one.counts)
        counts[:, np.searchsorted(one.values, other.values)] = other.counts
        assert (counts <= one.counts).all()
        assert counts.sum() == other.counts.sum() > 0


def test_a_part_of_it_says_so_on_the_command_line(aqmlab: Aqmlab) -> None:
    one = ("--only", "job=b CUBIC", "--replications", "1")
    form = aqmlab.json("reproduce", "ns3", *one, "--json")
    assert {table["cells"][0]["row"] for table in form["tables"]} == {"b CUBIC"}
    assert [claim["id"] for claim in form["claims"]] == [
        f"b-cubic-{quantity}" for quantity in ("utilisation", "p50", "p95", "loss", "jain")
    ]


def test_the_outcomes_are_complete() -> None:
    assert list(Published.load("ns3").form.subsets) == ["jobs"]
    for build in BUILDS:
        for job in JOBS:
            assert 0.9 < outcome(build, job)["utilisation"] <= 1

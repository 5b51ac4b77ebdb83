"""The acceptance of the study of CoDel and RED: beside ns-2, and its own figures."""

from __future__ import annotations

import numpy as np
import pytest

from aqmlab.reproduce import Reproduction, reproduce
from aqmlab_studies.kuhn2014.measure import seconds
from aqmlab_studies.kuhn2014.study import DEFAULT

UDP = "UDP, 12 kbit/s, 210 b"
QUEUES = ("DropTail", "RED", "CoDel")


@pytest.fixture(scope="module")
def readings() -> Reproduction:
    only = ["parts=readings", f"reading={DEFAULT}", f"reading={UDP}"]
    return reproduce("kuhn2014", only=[*only, *(f"queue={queue}" for queue in QUEUES)])


@pytest.fixture(scope="module")
def quick() -> Reproduction:
    return reproduce("kuhn2014", only="quick", replications=3)


@pytest.mark.parametrize(
    ("table", "background", "queues"),
    [
        ("ns2-packet", DEFAULT, QUEUES),
        ("ns2-ratio", DEFAULT, ("RED", "CoDel")),
        ("ns2-packet", UDP, ("DropTail", "CoDel")),
        ("ns2-transfer", UDP, ("DropTail", "CoDel")),
    ],
)
def test_times_are_within_10_percent_of_ns2_and_ratios_within_a_tenth(
    readings: Reproduction, table: str, background: str, queues: tuple[str, ...]
) -> None:
    for queue in queues:
        cell = readings.table(table).cell(background, queue)
        assert cell and cell.published and cell.difference is not None
        off = cell.measured - cell.published if table == "ns2-ratio" else cell.difference
        assert abs(off) <= 0.1, cell


def test_the_papers_own_reductions(quick: Reproduction) -> None:
    """CoDel by 87 %, RED by 75 %; the time for the 10 MB longer with CoDel alone."""
    table = quick.table("reduction")
    assert [table.cell("CUBIC", queue).published for queue in ("RED", "CoDel")] == [0.75, 0.87]
    for queue in ("RED", "CoDel"):
        cell = table.cell("CUBIC", queue)
        assert cell and cell.published and abs(cell.measured - cell.published) < 0.05, cell
    longer = quick.table("increase")
    assert longer.cell("CUBIC", "CoDel").measured > 0.2 > abs(longer.cell("CUBIC", "RED").measured)


def test_statements_figures_and_contradictions(quick: Reproduction) -> None:
    assert {figure.id for figure in quick.figures} >= {"figure-5", "figure-6"}
    verdicts = {claim.id: claim.verdict for claim in quick.claims}
    assert set(verdicts.values()) == {"not decided"}, "two replications have no intervals"
    held = {each.rule.id for each in quick.published.claims(quick.measured) if each.holds}
    assert {"reduces-red", "reduces-codel", "vegas-least"} <= held
    assert "vegas-44" not in held, "far more than the published 44 %"
    assert "fairer-red" in verdicts and "drops-red" not in verdicts, "that needs all buffers"
    assert len(quick.contradictions) == 6


def test_seconds_add_up_to_the_transfer(quick: Reproduction) -> None:
    """Arrivals by second add up to 10 MB in packets of 1050 bytes, and duplicates."""
    study = quick.measured.part("study")
    labels = {"buffer": "125", "control": "Vegas", "queue": "DropTail"}
    each = seconds(study, **labels)[0]
    arrived = each.throughput.sum() / 8
    assert 0.99 < arrived / 10_500_000 < 1.01, "Vegas with DropTail loses next to nothing"
    assert each.throughput.max() <= 1.05e6
    assert np.nanmin(each.drops) >= 0.0
    assert np.nanmax(each.drops) <= 1.0
    mean = study.times("transfer", "delay", "mean_s", **labels)[0]
    way = 0.075 + 8 * 1050 * (1e-6 + 2e-7)
    busy = each.throughput > 0
    weighted = np.average(np.nan_to_num(each.delay[busy]), weights=each.throughput[busy])
    assert abs(weighted + way - mean) < 0.01, (weighted, mean)

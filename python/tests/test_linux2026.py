"""Recorded connections through the kernel's queues: comparisons, and a part of them."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from aqmlab.campaign import FAILS
from aqmlab.reproduce import Reproduction, reproduce
from aqmlab.reproduce.published import Published
from aqmlab.reproduce.verdicts import AGREES
from aqmlab_studies.linux2026 import cake, study
from aqmlab_studies.linux2026.recorded import (
    CONTROLS,
    FILE,
    PATHS,
    QUANTITIES,
    QUEUES,
    SHARES,
    Quantity,
    case_of,
    is_inside,
    is_late,
    recorded,
    recorded_seconds,
    runs,
    seconds,
    transmission,
)
from tools.linux2026_pack import packed

LABELS = [f"{queue}, {path}" for path in PATHS for queue in QUEUES]


@pytest.fixture(scope="module")
def result() -> Reproduction:
    return reproduce("linux2026", only=["queue=CoDel, 10 Mbit/s"], replications=6)


def test_five_runs_of_every_case_are_packed() -> None:
    cases = json.loads(FILE.read_text())
    through_cake = {name: cases.pop(name) for name in list(cases) if name.startswith("cake-")}
    assert len(through_cake) == 14 and {len(each) for each in through_cake.values()} == {3}
    named = {case_of(control, queue) for control in CONTROLS for queue in LABELS}
    assert set(cases) == named
    assert {len(each) for each in cases.values()} == {5}
    late = Counter(case for case, each in cases.items() for run in each if is_late(run))
    assert sum(late.values()) == 5 and late["bbr_fq_codel_10mbit_80ms"] == 2
    assert recorded_seconds("BBR", "FQ-CoDel, 10 Mbit/s", "first").shape == (3, 20)


def test_a_recorded_run_is_packed_with_its_units() -> None:
    share = {"5": 0.001, "25": 0.002, "50": 0.003, "75": 0.004, "95": 0.005, "99": 0.006}
    run = {
        "case": "a",
        "goodput_mbit": [1.23456, 2.0],
        "per_second_mbit": [[1.0], [2.0]],
        "sojourn_s": share,
        "sojourn_mean_s": 0.0035,
        "dropped_in_all": 7,
    }
    assert packed(json.dumps(run)) == {
        "a": [
            {
                "goodput": [1.2346, 2.0],
                "seconds": [[1.0], [2.0]],
                "delays": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 3.5],
                "drops": 7,
            }
        ]
    }


def test_drops_of_acknowledgements_are_packed() -> None:
    run = {
        "case": "a",
        "goodput_mbit": [1.0],
        "per_second_mbit": [[1.0]],
        "sojourn_s": dict.fromkeys(("5", "25", "50", "75", "95", "99"), 0.0),
        "sojourn_mean_s": 0.0,
        "dropped_in_all": 7,
        "back": [{"packets": 10, "drops": 9, "ack_drops": 9}],
    }
    assert packed(json.dumps(run))["a"][0]["back"] == 9


def test_inside_is_the_range_or_five_per_cent_of_the_mean_or_the_step() -> None:
    simulated = np.array([9.0, 10.0, 14.0])
    assert is_inside(9.0, simulated, 0.0) and is_inside(14.0, simulated, 0.0)
    assert not is_inside(8.9, simulated, 0.0) and not is_inside(14.1, simulated, 0.0)
    narrow = np.array([10.0, 10.0])
    assert is_inside(10.5, narrow, 0.0) and not is_inside(10.6, narrow, 0.0)
    assert is_inside(11.2, narrow, 1.2) and not is_inside(11.3, narrow, 1.2)
    assert transmission("CoDel, 10 Mbit/s") == pytest.approx(1.2)


def test_codel_at_ten_megabits_is_as_recorded(result: Reproduction) -> None:
    assert [each.id for each in result.tables] == [each.key for each in QUANTITIES]
    cells = [cell for table in result.tables for cell in table.cells]
    assert len(cells) == 3 * len(QUANTITIES)
    for table in result.tables:
        for cell in table.cells:
            recorded = [quantity for quantity in QUANTITIES if quantity.key == table.id]
            assert cell.published == recorded[0].recorded(cell.column, cell.row).mean()
    agree = sum(cell.verdict == AGREES for cell in cells)
    assert agree >= 0.9 * len(cells), [cell for cell in cells if cell.verdict != AGREES]
    cubic = result.table("drops").cell("CoDel, 10 Mbit/s", "CUBIC")
    assert cubic and 24 <= cubic.measured <= 29
    own = {figure.id for figure in result.figures if not figure.id.startswith("setup")}
    assert own == {
        f"{kind}-{control}-10" for kind in ("delay", "course") for control in CONTROLS.values()
    }


def test_seconds_are_those_of_the_recordings(result: Reproduction) -> None:
    whole = result.measured.part("study")
    assert whole
    labels = {"control": "CUBIC", "queue": "CoDel, 10 Mbit/s"}
    first, second = (seconds(whole, flow, **labels) for flow in ("first", "second"))
    assert first.shape == second.shape == (6, 20)
    # Two flows fill the link, and not more.
    both = (first + second)[:, 5:].mean()
    assert 8.9 < both < 10 * 1448 / 1500
    assert abs(both - np.mean([sum(run["goodput"]) for run in runs(**labels)])) < 0.15


def test_a_case_that_is_elsewhere_fails(
    result: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recordings of another queue instead."""
    whole = result.measured.part("study")
    assert whole
    rule = study._case("Reno", "CoDel, 10 Mbit/s")
    answer, inside = rule.answer(whole), rule.measure(whole)
    assert answer and inside and answer.verdict != FAILS and inside[0] >= 8
    pfifo = QUEUES | {"CoDel": "pfifo"}
    monkeypatch.setattr("aqmlab_studies.linux2026.recorded.QUEUES", pfifo)
    answer, inside = rule.answer(whole), rule.measure(whole)
    assert answer and inside and answer.verdict == FAILS and inside[0] <= 3


def test_every_statement_fails_where_nothing_is_as_recorded(
    result: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = result.measured.part("study")
    assert whole
    found = result.claims
    idents = [claim.id for claim in found]
    assert all(claim.own for claim in found)
    assert len(idents) == len(set(idents)) == 1 + 2 * len(CONTROLS)
    assert found[0].verdict != FAILS
    assert result.published.claims(result.measured)[0].holds
    monkeypatch.setattr(Quantity, "simulated", lambda *_, **__: np.array([1e6, 1e6]))
    monkeypatch.setattr(
        "aqmlab_studies.linux2026.recorded.seconds", lambda *_, **__: np.full((6, 20), 1e6)
    )
    for each in result.published.claims(result.measured):
        assert each.answer().verdict == FAILS, each.rule.id


@pytest.fixture(scope="module")
def through_cake() -> Reproduction:
    named = [f"queue={case}" for case in json.loads(FILE.read_text()) if case.startswith("cake-")]
    # Two of three recorded runs of Reno at 10 Mbit/s begin at 0.18 to 0.21 s: few draws do.
    return reproduce("linux2026", only=["cake", *named], replications=30)


def test_every_recorded_case_of_cake_fits(through_cake: Reproduction) -> None:
    found = {claim.id: claim for claim in through_cake.claims}
    assert len(found) == 14
    assert [claim.id for claim in found.values() if claim.verdict == FAILS] == [study.IN_STEP]
    asked = through_cake.published.claims(through_cake.measured)
    assert [each.rule.id for each in asked if not each.holds] == [study.IN_STEP]
    measured = through_cake.measured.part("cake")
    assert measured
    readings = [each for _, all_ in cake.compared(measured) for each in all_]
    apart = [abs(each.theirs.mean() - each.ours.mean()) / each.tolerance for each in readings]
    # Few means are apart: where the second flow's start decides, and of BBR the 95th percentile.
    assert sum(each > 1 for each in apart) <= 0.1 * len(readings)


@pytest.mark.parametrize(
    ("case", "other"),
    [
        ("cake-ack-filter_20mbit-250kbit", "cake-no-ack-filter_20mbit-250kbit"),
        ("cake-diffserv3_tos-ef-be-cs1", "cake-besteffort_tos-ef-be-cs1"),
        ("cake-flows_hosts-1-4", "cake-dual-srchost_hosts-1-4"),
        ("cake-besteffort_cubic_10mbit_80ms", "cake-besteffort_bbr_10mbit_80ms"),
    ],
)
def test_the_recordings_of_another_case_of_cake_do_not_fit(
    case: str, other: str, through_cake: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = through_cake.measured.part("cake")
    assert measured
    theirs = cake.recorded(other)
    monkeypatch.setattr(cake, "recorded", lambda _: theirs)
    outside = [each.key for each in cake.readings(measured, case) if not each.fits]
    assert len(outside) >= 2


def test_what_shapes_has_a_transmission_less() -> None:
    shaped = {"cake-shaped_bbr_10mbit_80ms", "cake-flows_hosts-1-4", "cake-atm-overhead-32_20mbit"}
    below = {"cake-besteffort_bbr_10mbit_80ms", "cake-ack-filter_20mbit-250kbit",
             "cake-no-ack-filter_20mbit-250kbit"}  # fmt: skip
    assert all(cake.is_shaped(case) for case in [*shaped, "cake-besteffort_tos-ef-be-cs1"])
    assert not any(cake.is_shaped(case) for case in below)
    assert cake.rate_of("cake-shaped_cubic_50mbit_40ms") == 50.0
    assert cake.rate_of("cake-flows_hosts-1-4") == 20.0


def test_with_the_recorded_start_both_flows_are_in_step() -> None:
    """Few of the random starts above have the flows of a recorded run in step: its own does."""
    published = Published.load("linux2026")
    label = f"experiment={study.IN_STEP}, start 0.2342 s"
    part = published.studies([label], replications=10)["experiments"]
    medians, off = study.in_step(Reproduction(published, {"experiments": part.run()}).measured)
    theirs = recorded(study.IN_STEP)[study.IN_STEP_RUN]["delays"][SHARES.index(50)]
    assert medians == pytest.approx(theirs, abs=0.15)
    assert np.median(off) < 0.25

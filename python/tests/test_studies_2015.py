"""The studies cs244_2015 and nichols2012: parts, traces, and the bounds that they have to keep."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from aqmlab.campaign.rule import VERDICTS
from aqmlab.errors import InputError
from aqmlab.reproduce import Reproduction, reproduce
from aqmlab.reproduce.published import Published
from aqmlab_studies.cs244_2015 import curves
from aqmlab_studies.cs244_2015 import study as cs244
from tools.study_pages import page


@pytest.fixture(scope="module")
def steps() -> Reproduction:
    return reproduce("cs244_2015", only=["steps", "sender=CUBIC"], replications=1)


@pytest.fixture(scope="module")
def lte() -> Reproduction:
    return reproduce("cs244_2015", only="lte", replications=2)


@pytest.fixture(scope="module")
def dynamic() -> Reproduction:
    return reproduce("nichols2012", only="dynamic", replications=1)


def test_the_shares_are_within_three_points_of_the_recorded_runs(steps: Reproduction) -> None:
    table = steps.table("mahimahi-share")
    assert len(table.cells) == 4
    assert len(steps.table("mahimahi-steps-codel").cells) == 12
    for cell in table.cells:
        assert cell.published and abs(cell.measured - cell.published) <= 0.03, cell
    scored = [c for t in steps.tables if t.reference == "published" for c in t.cells if c.published]
    assert len(scored) == 3, "the document's own load and sender alone"


def test_bytes_and_capacity_are_those_of_the_schedule(steps: Reproduction) -> None:
    part = steps.parts["study"]
    labels = {"sender": "CUBIC", "load": "bulk", "queue": "tail drop"}
    assert part.count("capacity_bytes", **labels)[0] == pytest.approx(curves.POSSIBLE)
    total = part.count("delivered_bytes", **labels)[0]
    carried = [curves.carried(part, 50.0 * s, 50.0 * s + 50, **labels)[0] for s in range(6)]
    assert sum(carried) == pytest.approx(total, rel=1e-3)
    for step, rate in enumerate(curves.RATES):
        assert carried[step] <= (rate * 1e6 * 50 / 8 + 1500) * 1.001
        share = curves.of_step(part, step, **labels)[0]
        assert share == pytest.approx(carried[step] * 8 / (rate * 1e6 * 50))
    # A full buffer at 1 Mbit/s takes 830 x 12 ms.
    assert 9.0 < part.maxima(**labels)[0] <= 830 * 0.012 + 0.012


def test_every_statement_of_the_steps_has_numbers(steps: Reproduction) -> None:
    assert len(steps.claims) == 13
    for claim in steps.claims:
        assert claim.verdict in VERDICTS
        assert claim.evidence.startswith("Rule: ") and re.search(r"\d", claim.evidence)
    assert len({claim.id for claim in steps.claims}) == len(steps.claims)
    assert len(steps.contradictions) == 7


def test_no_two_things_of_a_report_have_one_id(steps: Reproduction, dynamic: Reproduction) -> None:
    for result in (steps, dynamic):
        html = result.document().to_html()
        ids = re.findall(r"id=['\"]([\w.-]+)['\"]", html)
        assert len(ids) == len(set(ids)), sorted(each for each in ids if ids.count(each) > 1)
        assert "<b>0 of 0</b>" not in html


def test_only_some_parts_are_run(steps: Reproduction, lte: Reproduction) -> None:
    assert list(steps.parts) == ["study"] and list(lte.parts) == ["lte"]
    assert lte.runs == 6 * 2
    assert [claim.id for claim in lte.claims] == ["lte-12-percent", "codel-below-lte", "lte-spikes"]
    assert not any(table.id.startswith("mahimahi") for table in lte.tables)
    published = Published.load("cs244_2015")
    assert list(published.studies(["load=bulk and small pages"])) == ["lte"]
    assert list(published.studies()) == ["study", "lte", "small-print"]
    linux = Published.load("linux2026")
    for only, parts in {
        "experiment=1790 segments": ["experiments"],
        "control=BBR": ["study"],
        "10mbit": ["study"],
        "cake": ["cake"],
    }.items():
        assert list(linux.studies([only])) == parts
    with pytest.raises(InputError, match="did you mean `CUBIC`"):
        published.studies(["sender=CUBICC"])
    with pytest.raises(InputError, match="did you mean `sender`"):
        published.studies(["sendr=CUBIC"])


def test_a_trace_takes_the_place_of_the_synthetic_link(tmp_path: Path) -> None:
    trace = tmp_path / "steady.trace"
    trace.write_text("".join(f"{time}\n" for time in range(2, 1001, 2)))
    result = reproduce(
        "cs244_2015", only=["lte", "load=bulk"], replications=1, trace=trace, out=tmp_path / "out"
    )
    part = result.parts["lte"]
    labels = {"load": "bulk", "queue": "tail drop"}
    # An opportunity of 1504 bytes each 2 ms; headers count, so the share is nearly all.
    assert part.count("capacity_bytes", **labels)[0] == pytest.approx(140 * 500 * 1504, rel=1e-3)
    assert 0.98 < curves.shares(part, **labels)[0] <= 1
    assert (tmp_path / "out" / "lte" / "links.parquet").exists()
    assert f"--trace {trace}" in result.command
    with pytest.raises(InputError, match="no such file"):
        reproduce("cs244_2015", trace=tmp_path / "none")


def test_the_recorded_trace_is_known_by_its_capacity(lte: Reproduction) -> None:
    part = lte.parts["lte"]
    assert not cs244.is_recorded_trace(part)
    (capacity,) = {each["capacity_bytes"] for each in curves.recorded()["lte"]}
    part._kept["links", "capacity_bytes"] = np.full((6, 2), float(capacity))
    try:
        assert cs244.is_recorded_trace(part)
    finally:
        del part._kept["links", "capacity_bytes"]


def test_figure_7_has_the_articles_bytes(dynamic: Reproduction) -> None:
    held = {e.rule.id: e.holds for e in dynamic.published.claims(dynamic.measured)}
    # "About 10 % less" is decided by the seed: 7.7 % here, where the rule begins at 8 %.
    for ident in ("tail-drop-full", "more-than-red"):
        assert held[ident], ident
    assert not held["almost-the-same"]
    assert {claim.verdict for claim in dynamic.claims} == {"not decided"}, "one replication"
    worst = dynamic.table("figure-7").cell("tail drop, 10 packets: largest delay (ms)", "figure 7")
    assert worst and worst.measured <= 120 + 12
    share = dynamic.table("figure-7").cell(
        "tail drop, 10 packets: of CoDel's throughput (%)", "figure 7"
    )
    assert share and 20 < share.measured < 30
    text = "\n".join(page(dynamic))
    assert (
        "Where the paper contradicts itself" in text and "At 250 s it rises".lower() in text.lower()
    )


def test_static_links_give_tables_without_statements_if_some_are_missing() -> None:
    only = ["static", "rate=3 Mbit/s", "rtt=100 ms"]
    result = reproduce("nichols2012", only=only, replications=2)
    assert result.claims == []
    table = result.table("delay-rate")
    assert table.rows == ["CoDel", "tail drop", "RED"] and table.columns == ["3 Mbit/s"]
    codel, tail = table.cell("CoDel", "3 Mbit/s"), table.cell("tail drop", "3 Mbit/s")
    assert codel and tail and 3 < codel.measured < 25 < tail.measured <= 26 * 4
    for queue in table.rows:
        fair = result.table("fairness-rate").cell(queue, "3 Mbit/s")
        assert fair and 0.05 <= fair.measured <= 1
    assert {"figure-5a", "figure-9"} <= {figure.id for figure in result.figures}

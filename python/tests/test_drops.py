"""Why a queue dropped: episodes, reasons and laws."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import SCENARIO_TEXT, Aqmlab

import aqmlab as package
from aqmlab.report import drops
from aqmlab.results import tables

RECORD = {"record.level": "packets"}


def packets_of(result: package.RunResult) -> pl.DataFrame:
    """All packets of the bottleneck at once."""
    return pl.concat(drops.in_parts(result))


def test_codel_drops_after_an_interval_above_its_target(mapping: dict[str, Any]) -> None:
    result = package.run(mapping, set=RECORD)
    found = drops.episodes(result)
    assert found and sum(each.total for each in found) == result.links["dropped"][0]
    for each in found:
        assert set(each.drops) == {"codel"}
        assert each.first_s <= each.last_s
        # RFC 8289: the first drop comes when the delay was above the target for an interval.
        assert each.above_s is not None and each.above_s >= 0.1
        assert each.sojourn_max_s > 0.005
    # Between two episodes a packet has waited less than the target: RFC 8289's dropping state.
    sent = packets_of(result).filter(pl.col("verdict") == "delivered")
    for one, other in pairwise(found):
        between = sent.filter(pl.col("end_s").is_between(one.last_s, other.first_s))
        assert between["sojourn_s"].to_numpy().min() < 0.005
    assert "(5ms)" in drops.why(result, "codel")


def test_a_full_buffer_is_the_reason_of_drop_tail(mapping: dict[str, Any]) -> None:
    queue = {"discipline": "droptail", "limit": "20p"}
    result = package.run(mapping, set=RECORD | {"queue": queue})
    found = drops.episodes(result)
    assert found
    assert {reason for each in found for reason in each.drops} == {"overlimit"}
    assert all(each.above_s is None for each in found)
    assert drops.why(result, "overlimit") == "the buffer was full (limit 20p)"
    # Without a target, time alone parts them.
    for one, other in pairwise(found):
        assert other.first_s - one.last_s > drops.APART


@pytest.mark.parametrize("queue", ["codel", "pie", "fq_codel", "dualpi2", "droptail"])
def test_packets_that_are_read_in_parts_say_the_same(
    queue: str, mapping: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Episodes and drawn packets, from parts that end anywhere."""
    limit = {"queue.limit": "20p"} if queue == "droptail" else {}
    more = {"flows.bulk.count": 30, "links.down.rate": "2mbit"}
    result = package.run(mapping, set=RECORD | {"queue": queue} | limit | more)
    whole = drops.episodes(result)
    monkeypatch.setattr(drops, "MOST_POINTS", 100)
    monkeypatch.setattr(drops, "MOST_DROPS", 20)
    page = list(drops.sections(result))
    assert whole and "are drawn" in str(page)
    for rows in (17, 500):
        monkeypatch.setattr(tables, "PART", rows)
        assert drops.episodes(result) == whole
        assert list(drops.sections(result)) == page


def test_drops_at_random_are_not_parted_by_the_target(mapping: dict[str, Any]) -> None:
    """PIE has no dropping state: its delay is often below the target between two drops."""
    more = {"queue": "pie", "flows.bulk.count": 10}
    result = package.run(mapping, set=RECORD | more)
    found = drops.episodes(result)
    assert found and "pie" in found[-1].drops
    for one, other in pairwise(found):
        assert other.first_s - one.last_s > drops.APART


def test_episodes_of_one_drop_share_a_row() -> None:
    def episode(at: float, **drops_: int) -> drops.Episode:
        return drops.Episode(at, at, drops_, None, 0.0)

    found = [episode(1, pie=3), *(episode(at, pie=1) for at in (2, 3, 5)), episode(6, overlimit=1)]
    rows = drops.table(found).rows
    assert [row[:4] for row in rows] == [
        (1, 0, 3, "pie"),
        (2, 3, 3, "pie, one at a time"),
        (6, 0, 1, "overlimit"),
    ]
    many = [episode(at, **{f"reason{at}": 1}) for at in range(drops.SHOWN + 2)]
    assert "2 episodes more are not shown" in drops.table(many).caption


def test_a_queue_that_drops_nothing_has_no_episodes(mapping: dict[str, Any]) -> None:
    result = package.run(mapping, set=RECORD | {"flows.bulk.size": "3000b"})
    assert drops.episodes(result) == []


def test_every_reason_of_the_engine_has_a_law(mapping: dict[str, Any]) -> None:
    columns = package.run(mapping).links.columns
    reasons = {name.removeprefix("drop_") for name in columns if name.startswith("drop_")}
    assert reasons - {"user"} == set(drops.LAWS)


def test_without_recorded_packets_there_are_no_episodes(mapping: dict[str, Any]) -> None:
    result = package.run(mapping)
    assert drops.episodes(result) is None
    recorded = package.run(mapping, set=RECORD)
    assert not packets_of(recorded).is_empty()


def test_the_command_explains_and_draws_the_drops(aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO_TEXT)
    words = ["run", "scenario.toml", "--set", "queue=codel", "--explain-drops"]
    done = aqmlab.ok(*words, "--out", "out", "--figures")
    assert "CoDel dropped at the head" in done.stdout and "(5ms)" in done.stdout
    page = (tmp_path / "out/report.html").read_text()
    assert "Why down dropped" in page
    # The script of the page draws a chart into the element that has its name.
    ids = re.findall(r' id="([^"]+)"', re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert "drops" in ids and len(ids) == len(set(ids)), ids
    picture = (tmp_path / "out/figures/drops.svg").read_text()
    assert "time in queue (ms)" in picture and "codel" in picture
    # Nothing about single drops without their record.
    plain = aqmlab("run", "scenario.toml", "--set", "queue=codel")
    assert "Why down dropped" not in plain.stdout

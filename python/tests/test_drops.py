"""Why a queue dropped: episodes, reasons and laws."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
import pytest

import aqmlab
from aqmlab import drops

RECORD = {"record.level": "packets"}


def test_codel_drops_after_an_interval_above_its_target(mapping: dict[str, Any]) -> None:
    result = aqmlab.run(mapping, set=RECORD)
    found = drops.episodes(result)
    assert found and sum(each.total for each in found) == result.links["dropped"][0]
    for each in found:
        assert set(each.drops) == {"codel"}
        assert each.first_s <= each.last_s
        # RFC 8289: the first drop comes when the delay was above the target for an interval;
        # a packet of 1500 bytes takes 6 ms at 2 Mbit/s.
        assert each.above_s is not None and 0.1 <= each.above_s < 0.1 + 0.02
        assert each.sojourn_max_s > 0.005
    assert "(5ms)" in drops.why(result, "codel")


def test_a_full_buffer_is_the_reason_of_drop_tail(mapping: dict[str, Any]) -> None:
    queue = {"discipline": "droptail", "limit": "20p"}
    result = aqmlab.run(mapping, set=RECORD | {"queue": queue})
    found = drops.episodes(result)
    assert found
    assert {reason for each in found for reason in each.drops} == {"overlimit"}
    assert all(each.above_s is None for each in found)
    assert drops.why(result, "overlimit") == "the buffer was full (limit 20p)"
    # Episodes do not overlap and are apart.
    for one, other in pairwise(found):
        assert other.first_s - one.last_s > drops.APART


def test_a_queue_that_drops_nothing_has_no_episodes(mapping: dict[str, Any]) -> None:
    result = aqmlab.run(mapping, set=RECORD | {"flows.bulk.size": "3000b"})
    assert drops.episodes(result) == []


def test_every_reason_of_the_engine_has_a_law(mapping: dict[str, Any]) -> None:
    columns = aqmlab.run(mapping).links.columns
    reasons = {name.removeprefix("drop_") for name in columns if name.startswith("drop_")}
    assert reasons - {"user"} == set(drops.LAWS)


def test_without_packets_or_a_link_it_says_so(mapping: dict[str, Any]) -> None:
    result = aqmlab.run(mapping)
    with pytest.raises(aqmlab.InputError, match="packets of this run were not recorded"):
        drops.episodes(result)
    with pytest.raises(aqmlab.InputError, match="no such link"):
        drops.episodes(result, "sideways")
    recorded = aqmlab.run(mapping, set=RECORD)
    assert isinstance(drops.packets_of(recorded, "down"), pl.DataFrame)

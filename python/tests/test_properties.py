"""Any input gives a readable `InputError` or a run, never a panic."""

from __future__ import annotations

import math
from typing import Any

import pytest
from helpers import SCENARIO
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import aqmlab
from aqmlab import _core
from aqmlab.scenario.settings import parse_settings

NAMES = """
links flows down up rate delay queue discipline codel pie red limit target interval path
return_path size start uniform count duration seed record level series thresholds transport
bottleneck 0s 1ms -1ms 2mbit 1e400mbit 0b 1500b 100p 1bdp none x
"""
WORDS = st.sampled_from(["", *NAMES.split()])
VALUES = st.recursive(
    WORDS | st.integers() | st.floats() | st.booleans() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
QUEUES = [entry["name"] for entry in aqmlab.reference() if entry["section"] == "queue"]
KEYS = st.lists(WORDS.filter(bool), min_size=1, max_size=4).map(".".join)
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200)


def readable(error: aqmlab.InputError) -> None:
    text = str(error)
    assert text
    assert "\n" not in text.removeprefix(error.file or "")
    assert "panicked" not in text


@SLOW
@given(st.dictionaries(WORDS, VALUES, max_size=5))
def test_any_mapping_is_a_scenario_or_an_input_error(table: dict[str, Any]) -> None:
    try:
        _core.Scenario(table)
    except aqmlab.InputError as error:
        readable(error)


@SLOW
@given(st.text(max_size=60))
def test_any_text_is_a_scenario_or_an_input_error(text: str) -> None:
    try:
        _core.Scenario(text)
    except aqmlab.InputError as error:
        assert str(error)


@SLOW
@given(KEYS, VALUES)
def test_any_setting_gives_a_run_or_an_input_error(key: str, value: Any) -> None:
    small = {"duration": "200ms", "flows.bulk.size": "20000b"}
    try:
        scenario = _core.Scenario(SCENARIO, overrides=small | {key: value})
    except aqmlab.InputError as error:
        readable(error)
        return
    count = sum(int(group["count"]) for group in parsed(scenario)["flows"].values())
    if count > 100 or not parsed(scenario)["duration"].endswith("ms"):
        return
    links = aqmlab.run(scenario).links
    assert (links["delivered"] + links["dropped"] <= links["arrived"]).all()


def parsed(scenario: _core.Scenario) -> dict[str, Any]:
    import json

    table: dict[str, Any] = json.loads(scenario.resolved)
    return table


@SLOW
@given(
    rate=st.integers(1, 10**12),
    delay=st.integers(0, 200_000),
    flows=st.integers(1, 5),
    limit=st.integers(1, 300),
    queue=st.sampled_from(QUEUES),
    size=st.integers(1, 60_000),
)
@example(rate=840_000_000_001, delay=0, flows=1, limit=1, queue="droptail", size=1)
def test_runs_conserve_packets_and_stay_within_bounds(
    rate: int, delay: int, flows: int, limit: int, queue: str, size: int
) -> None:
    link = {"rate": f"{rate}bit", "delay": f"{delay}us"}
    result = aqmlab.run(
        {
            "duration": "3s",
            "links": {
                "down": link | {"queue": {"discipline": queue, "limit": f"{limit}p"}},
                "up": link,
            },
            "flows": {
                "a": {"count": flows, "size": f"{size}b", "path": "down", "return_path": "up"}
            },
        }
    )
    for row in result.links.to_dicts():
        queued = row["arrived"] - row["delivered"] - row["dropped"]
        assert 0 <= queued <= 1 + row["backlog_max_packets"] <= max(limit, 1000)
        assert row["dropped"] == sum(row[key] for key in row if key.startswith("drop_"))
        assert row["utilisation"] is None or 0 <= row["utilisation"] <= 1
        quantiles = [row[f"sojourn_{key}_s"] or 0.0 for key in ("p50", "p75", "p90", "p95", "p99")]
        assert quantiles == sorted(quantiles)
    for flow in result.flows.to_dicts():
        if flow["finish_s"] is not None:
            took = flow["completion_s"]
            assert took <= flow["finish_s"] - flow["start_s"] + 1e-12  # rounding of the difference
            assert took >= 2 * delay * 1e-6
            # A transfer takes at least a nanosecond, the resolution of times.
            assert flow["goodput_bps"] == pytest.approx(size * 8 / max(took, 1e-9), rel=1e-6)


QUANTITIES = st.from_regex(r"[0-9]{1,4}(ms|s|us|b|p|mbit|kbit)", fullmatch=True)


@settings(max_examples=300)
@given(KEYS, st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | QUANTITIES)
def test_numbers_and_quantities_come_through_a_setting(key: str, value: float | str) -> None:
    found = parse_settings([f"{key}={value}"])
    is_close = isinstance(value, float) and math.isclose(found[key], value)
    assert found == {key: value} or is_close


@given(st.text(max_size=30))
def test_any_setting_is_read_or_refused(pair: str) -> None:
    try:
        settings = parse_settings([pair])
    except aqmlab.InputError as error:
        assert "--set" in str(error)
    else:
        assert list(settings) == [pair.partition("=")[0].strip()]


LABELS = st.lists(st.sampled_from(["2ms", "5ms", "7ms", "9ms"]), min_size=1, max_size=4)


@SLOW
@given(LABELS, LABELS, st.integers(1, 3))
def test_points_are_the_cross_product_in_order(
    targets: list[str], delays: list[str], replications: int
) -> None:
    axes = [
        {"key": "queue.target", "values": targets},
        {"key": "links.down.delay", "values": delays},
    ]
    try:
        study = aqmlab.Study({"scenario": SCENARIO, "axes": axes, "replications": replications})
    except aqmlab.InputError as error:
        assert "one label" in str(error)
        assert len(set(targets)) < len(targets) or len(set(delays)) < len(delays)
        return
    pairs = [(target, delay) for target in targets for delay in delays]
    assert [(p.labels["target"], p.labels["delay"]) for p in study.points] == pairs
    assert [p.index for p in study.points] == list(range(len(pairs)))
    assert study.total == len(pairs) * replications


@SLOW
@example({"scenario": [], "axes": "a\nb"})
@given(st.dictionaries(st.sampled_from(["name", "scenario", "axes", "seed"]), VALUES))
def test_any_study_is_checked(table: dict[str, Any]) -> None:
    try:
        aqmlab.Study(table)
    except aqmlab.InputError as error:
        readable(error)

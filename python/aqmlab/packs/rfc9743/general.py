"""General use: tail-drop paths over ranges of rate, delay and buffer; wireless links."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.campaign import Filled, Reading
from aqmlab.metrics.registry import MORE
from aqmlab.packs.rfc9743.readings import criterion, delay, path_readings, reading
from aqmlab.packs.rfc9743.scene import ControlSetup, Path, Table, bulk, scenario

GRID = [
    Path(rate, rtt, buffer)
    for rate in (1e6, 10e6, 100e6)
    for rtt in (0.01, 0.1)
    for buffer in (0.5, 1.0, 4.0)
]
FLOWS = 2
LASTS: Mapping[float, float] = {1e6: 60.0, 10e6: 30.0, 100e6: 20.0}
"""Seconds of a run, by rate."""


def _grid(control: ControlSetup) -> Mapping[str, Table]:
    return {
        path.name: scenario(
            path.links(),
            {"own": bulk(control, FLOWS)},
            duration=LASTS[path.rate],
            warmup=LASTS[path.rate] / 3,
        )
        for path in GRID
    }


def _read_grid(results: Filled) -> list[Reading]:
    return [each for path in GRID for each in path_readings(path, path.name, results[path.name])]


RADIO = Path(10e6, 0.05, 2.0)
RADIOS: Mapping[str, Mapping[str, object]] = {
    "random loss of 0.1 %": {"loss": 0.001},
    "random loss of 1 %": {"loss": 0.01},
    "losses in bursts (1 %)": {"loss": {"p": 0.0025, "r": 0.25}},
    "LTE of 6 Mbit/s": {"rate": {"process": "lte", "mean": "6mbit"}},
    "Wi-Fi": {"rate": {"process": "wifi", "phy": "65mbit", "others": 2.0}},
    "jitter of 5 ms by retransmission": {"jitter": {"spread": "5ms", "distribution": "pareto"}},
}


def _radio(control: ControlSetup) -> Mapping[str, Table]:
    return {
        name: scenario(RADIO.links(**keys), {"own": bulk(control)}, duration=40, warmup=10)
        for name, keys in RADIOS.items()
    }


def _read_radio(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        at = results[case]
        share = 100 * at.goodput("own") / at.offered
        made.append(reading(case, "goodput, share of the capacity", "%", MORE, share, 5.0))
        made.append(delay(case, at))
    return made


CRITERIA = (
    criterion(
        "tail-drop", "6.1", "Paths with tail-drop queues", "general", "MUST",
        "Goodput, delay, loss and fairness over rates of 1 to 100 Mbit/s, round trips of 10 and "
        "100 ms, buffers of 0.5 to 4 BDP.",
        _grid, _read_grid,
    ),
    criterion(
        "wireless", "6.3, 6.4", "Wired and wireless paths", "general", "evaluated",
        "How much capacity is used where a radio loses packets, changes its rate, or delays?",
        _radio, _read_radio,
    ),
)  # fmt: skip

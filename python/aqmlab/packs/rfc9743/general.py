"""General use: tail-drop paths over ranges of rate, delay and buffer; wireless links."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.packs.rfc9743.readings import DELAY, FAIRNESS, LOSS, SHARE, USED, criterion
from aqmlab.packs.rfc9743.scene import OWN, Path, bulk, scenario

LASTS: Mapping[float, float] = {1e6: 60.0, 10e6: 30.0, 100e6: 20.0}
"""Seconds of a run, by rate."""
GRID = [
    Path(rate, rtt, buffer) for rate in LASTS for rtt in (0.01, 0.1) for buffer in (0.5, 1.0, 4.0)
]
FLOWS = 2
RADIO = Path(10e6, 0.05, 2.0)
RADIOS: Mapping[str, Mapping[str, object]] = {
    "random loss of 0.1 %": {"loss": 0.001},
    "random loss of 1 %": {"loss": 0.01},
    "losses in bursts (1 %)": {"loss": {"p": 0.0025, "r": 0.25}},
    "LTE of 6 Mbit/s": {"rate": {"process": "lte", "mean": "6mbit"}},
    "Wi-Fi": {"rate": {"process": "wifi", "phy": "65mbit", "others": 2.0}},
    "jitter of 5 ms by retransmission": {"jitter": {"spread": "5ms", "distribution": "pareto"}},
}
CRITERIA = (
    criterion(
        "tail-drop", "6.1", "Paths with tail-drop queues", "general", "MUST",
        "Goodput, delay, loss and fairness over rates of 1 to 100 Mbit/s, round trips of 10 and "
        "100 ms, buffers of 0.5 to 4 BDP.",
        {
            path.name: scenario(
                path.links(), {"own": bulk(OWN, FLOWS)}, LASTS[path.rate], LASTS[path.rate] / 3
            )
            for path in GRID
        },
        (USED, DELAY, LOSS, FAIRNESS),
    ),
    criterion(
        "wireless", "6.3, 6.4", "Wired and wireless paths", "general", "evaluated",
        "How much capacity is used where a radio loses packets, changes its rate, or delays?",
        {
            name: scenario(RADIO.links(**keys), {"own": bulk(OWN)}, 40, 10)
            for name, keys in RADIOS.items()
        },
        (SHARE, DELAY),
    ),
)  # fmt: skip

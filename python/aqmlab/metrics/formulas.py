"""The formulas of the metrics of links and groups, for numbers and for columns of numbers alike.

`of` gives a quantity by the name of its column, NaN where there is none; `over` divides.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def of_link(of: Callable[[str], Any], over: Callable[[Any, Any], Any]) -> dict[str, Any]:
    """The metrics of a link; `lasted_s` is the time after the warm-up."""
    return {
        "throughput": over(of("delivered_bytes") * 8, of("lasted_s")),
        "possible_share": over(of("delivered_bytes"), of("capacity_bytes")),
        "drop_share": over(of("dropped"), of("arrived")),
        "mark_share": over(of("marked"), of("arrived")),
        # The global synchronisation ratio (RFC 7928, section 2.4).
        "loss_synchronisation": over(of("loss_event_flows"), of("bulk_flows")),
    }


def of_group(
    of: Callable[[str], Any],
    over: Callable[[Any, Any], Any],
    or_zero: Callable[[Any], Any],
) -> dict[str, Any]:
    """Metrics of a group of flows in one direction; `or_zero` returns its argument, or 0 where
    that is not finite. Packets (`arrived`, `dropped`, `lost`) are those that ended their way in
    the measured time, so that a share of them is at most 1."""
    goodput = over(of("delivered_bytes") * 8, of("lasted_s"))
    ended = of("arrived") + of("dropped") + of("lost")
    return {
        "goodput": goodput,
        "throughput": over(of("sent_bytes") * 8, of("lasted_s")),
        "goodput_share": over(of("delivered_bytes"), of("total_bytes")),
        "loss_share": over(of("dropped") + of("lost"), ended),
        "loss_share_queue": over(of("dropped"), ended),
        "loss_share_link": over(of("lost"), ended),
        "delay_variation": of("p999_s") - of("min_s"),
        "delay_variation_p95": of("p95_s") - of("min_s"),
        # Kleinrock 1979. The mean is infinite where nothing arrived.
        "power": over(or_zero(goodput), of("mean_s")),
    }


WORSE = {
    "loss_share": 1.0,
    "loss_share_queue": 1.0,
    "loss_share_link": 1.0,
    "delay_variation": 1.0,
    "delay_variation_p95": 1.0,
    "power": -1.0,
}
"""Metrics of which the worse direction comes first: 1 if more is worse, -1 if less is. Of others
the forward direction comes first: less goodput is no worse where the directions carry different
things."""
WORST_WITHOUT = ("delay_variation", "delay_variation_p95")
"""Metrics that a direction in which nothing arrives lacks: it is the worse one then."""

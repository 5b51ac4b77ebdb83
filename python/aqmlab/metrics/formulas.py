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
    """The metrics of a group of flows; `or_zero` is its argument, and 0 where that is not
    finite. `dropped` and `segments_sent` are those of the flows in the table `flows`."""
    goodput = over(of("delivered_bytes") * 8, of("lasted_s"))
    return {
        "goodput": goodput,
        "throughput": over(of("sent_bytes") * 8, of("lasted_s")),
        "goodput_share": over(of("delivered_bytes"), of("total_bytes")),
        "loss_share": over(of("dropped"), of("segments_sent")),
        "delay_variation": of("p999_s") - of("min_s"),
        "delay_variation_p95": of("p95_s") - of("min_s"),
        # Kleinrock 1979.
        "power": over(or_zero(goodput), of("mean_s")),
    }

"""All criteria, in the RFC's order, and what cannot be simulated."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.campaign import Question
from aqmlab.packs.rfc9743 import alone, general, mixed, paths, queues


def all_criteria() -> list[Question]:
    """One file a group, one entry a criterion."""
    return [
        *alone.CRITERIA,
        *mixed.CRITERIA,
        *general.CRITERIA,
        *queues.CRITERIA,
        *paths.CRITERIA,
    ]


UNTESTED: tuple[Mapping[str, str], ...] = (
    {
        "criterion": "Differences from RFC 2914 and RFC 7141",
        "source": "RFC 9743, section 5.3.1",
        "level": "MUST explain",
        "why": "an explanation by the authors, not a measurement",
    },
    {
        "criterion": "Incremental deployment",
        "source": "RFC 9743, section 5.3.2",
        "level": "MUST discuss",
        "why": "a discussion by the authors, not a measurement",
    },
    {
        "criterion": "Tunnels",
        "source": "RFC 9743, section 6.2",
        "level": "MUST consider",
        "why": "links do not encapsulate packets, so no marks are lost at the ends of a tunnel",
    },
    {
        "criterion": "Multipath",
        "source": "RFC 9743, section 7.10",
        "level": "MUST if used",
        "why": "an endpoint has one path: no coupled windows, no fail-over between paths",
    },
    {
        "criterion": "Receivers that do not comply",
        "source": "RFC 9743, section 7.6",
        "level": "SHOULD",
        "why": "receivers comply: no divided or optimistic acknowledgements, no hidden marks",
    },
)
"""Criteria that simulations cannot answer."""
GROUPS = {
    "alone": "The control alone",
    "mixed": "Mixed with other controls and traffic",
    "general": "General use",
    "special": "Special paths and situations",
}
LEAD = (
    "RFC 9743 sets no thresholds: every row is evidence. Each line of the overview shows the "
    "measure in which the control is furthest behind **both** Reno and CUBIC, or the first "
    "measure of the criterion if it is behind in none; *behind* counts the measures in which it "
    "is. The three run under the same arrivals, and a difference is reported if 0 is outside its "
    "interval, whose level of 95 % is that of all comparisons of this page together "
    "(Holm). Harm is the loss of another flow beside the control, as a share of its value alone "
    "(Ware et al. 2019)."
)

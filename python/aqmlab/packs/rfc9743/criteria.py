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
        "level": "MUST explain",
        "why": "an explanation by the authors, not a measurement",
    },
    {
        "criterion": "Incremental deployment",
        "level": "MUST discuss",
        "why": "a discussion by the authors, not a measurement",
    },
    {
        "criterion": "Tunnels",
        "level": "MUST consider",
        "why": "no link here encapsulates packets, so marks cannot get lost on the way in or out",
    },
    {
        "criterion": "Multipath",
        "level": "MUST if used",
        "why": "an endpoint has one path: no coupled windows, no fail-over between paths",
    },
    {
        "criterion": "Receivers that do not comply",
        "level": "SHOULD",
        "why": "receivers here always comply: no divided or optimistic acknowledgements, no hidden "
        "marks",
    },
)
"""What the RFC asks for and simulations here cannot answer."""
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
    "is. The three run under the same arrivals, and a difference is told if 0 lies outside its "
    "interval, whose level of 95 % is that of all comparisons of this page together "
    "(Holm). Harm is what another flow loses beside the control, as a share of what it has alone "
    "(Ware et al. 2019)."
)

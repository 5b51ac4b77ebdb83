"""All criteria, in the RFC's order, and what cannot be simulated."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.campaign import Question
from aqmlab.packs.rfc9743 import alone, mixed, special

CRITERIA: tuple[Question, ...] = (*alone.CRITERIA, *mixed.CRITERIA, *special.CRITERIA)
UNTESTED: tuple[Mapping[str, str], ...] = tuple(
    {"criterion": name, "source": f"RFC 9743, section {section}", "level": level, "why": why}
    for name, section, level, why in (
        (
            "Differences from RFC 2914 and RFC 7141", "5.3.1", "MUST explain",
            "an explanation by the authors, not a measurement",
        ),
        (
            "Incremental deployment", "5.3.2", "MUST discuss",
            "a discussion by the authors, not a measurement",
        ),
        (
            "Real-time congestion controls", "5.2.2", "SHOULD",
            "calls and video keep their rate: no control of real-time media is simulated, as the "
            "test cases of RFC 8867 need",
        ),
        (
            "All criteria of section 5 on every path", "6, 7", "evaluated",
            "paths of sections 6 and 7 are measured by some of goodput, delay, loss and fairness, "
            "not by harm, starvation or short flows",
        ),
        (
            "Tunnels", "6.2", "MUST consider",
            "links do not encapsulate packets, so no marks are lost at the ends of a tunnel",
        ),
        (
            "Multipath", "7.10", "MUST if used",
            "an endpoint has one path: no coupled windows, no fail-over between paths",
        ),
        (
            "Receivers that do not comply", "7.6", "SHOULD",
            "receivers comply: no divided or optimistic acknowledgements, no hidden marks",
        ),
    )
)  # fmt: skip
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

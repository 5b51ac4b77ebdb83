"""All criteria, in the RFC's order, and what cannot be simulated."""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.evaluate import alone, general, mixed, paths, queues
from aqmlab.evaluate.criterion import Criterion


def all_criteria() -> list[Criterion]:
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
        "criterion": "QUIC's recovery (RFC 9002) beside it",
        "level": "MUST",
        "why": "the endpoints are TCP's; Reno and CUBIC have TCP's recovery",
    },
    {
        "criterion": "Receivers that do not comply",
        "level": "SHOULD",
        "why": "receivers here always comply: no divided or optimistic acknowledgements, no hidden "
        "marks",
    },
)
"""What the RFC asks for and simulations here cannot answer."""

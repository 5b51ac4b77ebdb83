"""Numbers in words, for documents: see `aqmlab.numbers`."""

from aqmlab.numbers import (
    NONE,
    count,
    digits,
    is_none,
    percent,
    plain,
    rate,
    reasons,
    seconds,
    whole,
)

__all__ = [
    "NONE",
    "count",
    "digits",
    "is_none",
    "percent",
    "plain",
    "rate",
    "reasons",
    "seconds",
    "whole",
]

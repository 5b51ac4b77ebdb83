"""Rates and times from their texts, read as scenarios read them."""

from __future__ import annotations

from aqmlab._core import InputError
from aqmlab.errors import input_error
from aqmlab.scenario.quantity import Duration, Rate


def quantity(text: str, key: str, option: str) -> float:
    """A rate in bit/s (`key` is "rate") or a time in seconds ("delay") above 0.

    `option` is what the user gave it for. Raises `InputError` as scenarios do.
    """
    try:
        value = float((Rate if key == "rate" else Duration)(text))
    except InputError as error:
        raise input_error(error.problem, key=option, given=text, hint=error.hint) from None
    if value <= 0:
        raise input_error("expected more than 0", key=option, given=text)
    return value


def canonical(text: str) -> float:
    """The value of a rate or time in the text that a resolved scenario has for it."""
    if text.endswith("bit"):
        return float(Rate(text))
    return float(Duration(text))

"""Quantities with units: rates, durations and sizes, exact and comparable.

    from aqmlab.scenario import Duration, Rate, Size

    Rate("10mbit") == Rate(10e6)                # bit/s
    Duration("5ms") < Duration(0.1)             # seconds
    Rate("10mbit") * Duration("100ms")          # Size('125000b'): a bandwidth-delay product
    float(Rate("10mbit"))                       # 1e7

Wherever a scenario takes a quantity it also takes its text (`"10mbit"`), as in scenario files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import total_ordering
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, overload

from aqmlab._core import InputError, parse_quantity
from aqmlab.errors import input_error

Number = int | float


@total_ordering
class Quantity:
    """Base of the quantities: a whole number of the smallest unit."""

    kind: ClassVar[Literal["rate", "time", "size"]]
    unit: ClassVar[str]
    """Unit of `float(quantity)` and of numbers given to the constructor."""
    scale: ClassVar[int] = 1
    """Smallest units in one `unit`."""
    suffix: ClassVar[str]
    """Text of the smallest unit."""
    __slots__ = ("_count",)
    _count: int

    def __init__(self, value: str | Number | Self) -> None:
        """Takes a text with unit, or a number in `unit`.

        Raises `InputError` for a text that is not a quantity of this kind and for a number below 0
        or not finite, `TypeError` for another type.
        """
        if isinstance(value, Quantity):
            if type(value) is not type(self):
                raise TypeError(f"expected a {type(self).__name__}, not {value!r}")
            self._count = value._count
        elif isinstance(value, str):
            self._count = parse_quantity(self.kind, value)[0]
        elif isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"expected text such as {self.example!r}, or a number ({self.unit})")
        else:
            exact = int(value) if isinstance(value, Integral) else float(value)
            self._count = self._whole(exact * self.scale)

    def _whole(self, count: Number) -> int:
        """A number of smallest units. Raises `InputError` if no quantity has it."""
        if not 0 <= count < float("inf"):
            problem = f"expected a number from 0 ({self.unit})"
            raise input_error(problem, given=f"{count / self.scale:g}")
        return parse_quantity(self.kind, f"{round(count)}{self.suffix}")[0]

    @property
    def example(self) -> str:
        """Text of a quantity of this kind."""
        return {"rate": "10mbit", "time": "5ms", "size": "1500b"}[self.kind]

    def __str__(self) -> str:
        """Text as scenario files have it: `10mbit`."""
        return parse_quantity(self.kind, f"{self._count}{self.suffix}")[1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __float__(self) -> float:
        return self._count / self.scale

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._count == other._count

    def __lt__(self, other: Self) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._count < other._count

    def __hash__(self) -> int:
        return hash((self.kind, self._count))

    def _with(self, count: Number) -> Self:
        made = type(self)(0)
        made._count = self._whole(count)
        return made

    def __add__(self, other: Self) -> Self:
        if type(self) is not type(other):
            return NotImplemented
        return self._with(self._count + other._count)

    def __truediv__(self, by: Number) -> Self:
        return self._with(self._count / by)

    def __mul__(self, factor: Number) -> Self:
        if isinstance(factor, Quantity):
            return NotImplemented
        return self._with(self._count * factor)

    __rmul__ = __mul__


class Duration(Quantity):
    """Length of time, in whole nanoseconds; `float(duration)` is in seconds."""

    kind, unit, scale, suffix = "time", "s", 1_000_000_000, "ns"
    __slots__ = ()

    def __init__(self, value: str | Number | timedelta | Duration) -> None:
        value = getattr(value, "tolist", lambda: value)()  # a time of numpy
        if isinstance(value, timedelta):
            value = f"{value // timedelta(microseconds=1)}us"
        super().__init__(value)


class Size(Quantity):
    """Number of bytes."""

    kind, unit, suffix = "size", "bytes", "b"
    __slots__ = ()


class Rate(Quantity):
    """Rate in whole bit/s."""

    kind, unit, suffix = "rate", "bit/s", "bit"
    __slots__ = ()

    @overload  # type: ignore[override]
    def __mul__(self, factor: Number) -> Rate: ...
    @overload
    def __mul__(self, factor: Duration) -> Size: ...
    def __mul__(self, factor: Number | Duration) -> Rate | Size:
        """Scaled by a number; times a duration, the bytes that pass in it."""
        if isinstance(factor, Duration):
            return Size(self._count * factor._count // (8 * factor.scale))
        return super().__mul__(factor)

    __rmul__ = __mul__


COUNTED = re.compile(r"(\d+(?:\.\d+)?) ?(p|bdp|%|)")
COUNTED_UNITS = {"p": "packets", "bdp": "BDP", "%": "%", "": ""}


def numbers(texts: Sequence[str]) -> tuple[list[float], str] | None:
    """The texts as numbers with their unit, if all of them are quantities of one kind.

    Times are in seconds, rates in bit/s, sizes in bytes; limits in packets or bandwidth-delay
    products, numbers and percentages are what they are.
    """
    found = [_number(text.strip()) for text in texts]
    units = {each[1] for each in found if each is not None}
    if not found or None in found or len(units) != 1:
        return None
    return [each[0] for each in found if each is not None], units.pop()


def _number(text: str) -> tuple[float, str] | None:
    counted = COUNTED.fullmatch(text)
    if counted:
        return float(counted[1]), COUNTED_UNITS[counted[2]]
    quantity: type[Quantity]
    for quantity in (Duration, Rate, Size):
        try:
            return float(quantity(text.replace(" ", ""))), quantity.unit
        except InputError:
            continue
    return None


def in_unit(value: float, unit: str) -> float | str:
    """A value in a unit of `numbers` as scenarios have it: a text, or the number without a unit."""
    for quantity in (Duration, Rate, Size):
        if unit == quantity.unit:
            return str(quantity(value))
    suffix = next(suffix for suffix, known in COUNTED_UNITS.items() if known == unit)
    if unit == "packets":
        value = round(value)
    return f"{Decimal(str(value)).normalize():f}{suffix}" if suffix else value


RateLike = Rate | str
"""A rate, or its text."""
DurationLike = Duration | timedelta | str
"""A duration, or its text."""
SizeLike = Size | str
"""A size, or its text."""
LimitLike = Size | str
"""A size, or the text of a limit: `100p`, `150000b`, `2bdp` (bandwidth-delay products)."""
DistributionLike = Quantity | float | str | Mapping[str, Any]
"""A distribution: a fixed value, a text such as `exponential(1s)`, or a table."""


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
    return float((Rate if text.endswith("bit") else Duration)(text))

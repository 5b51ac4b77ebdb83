"""Numbers in words, the same on every page and in every terminal."""

from __future__ import annotations

import re
from math import floor, isfinite, isnan, log10

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

NONE = "–"
"""Text for a missing value."""


def plain(value: object) -> str:
    """A value as it is; a float with four digits."""
    if is_none(value):
        return NONE
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def short(value: float) -> str:
    """A number with three digits; a large one with all of them, and without an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def capital(text: str) -> str:
    """A title at the start of a sentence; the names of groups stay as they are."""
    return text if ":" in text else text[:1].upper() + text[1:]


def is_none(value: object) -> bool:
    """True for a missing value: None or NaN."""
    return value is None or (isinstance(value, float) and isnan(value))


def finite(value: float) -> float | None:
    """The number, or None if it is infinite or NaN, which JSON lacks."""
    return value if isfinite(value) else None


def seconds(value: float | None) -> str:
    """A time for people: `12.3 ms`, `1.20 s`."""
    if value is None or isnan(value):
        return NONE
    if 5e-7 <= abs(value) < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if abs(value) >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if abs(value) < 0.1 else f"{value * 1e3:.0f} ms"


def rate(value: float | None, digits: str = ".2f") -> str:
    """A rate for people: `1.94 Mbit/s`; from 1 kbit/s on its number has the format `digits`."""
    if value is None or isnan(value):
        return NONE
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if value >= size:
            return f"{value / size:{digits}} {unit}"
    return f"{value:.0f} bit/s"


def percent(share: float | None) -> str:
    """A share for people: `12.3%`."""
    return NONE if share is None or isnan(share) else f"{share:.1%}"


def count(number: int, what: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def whole(value: float | None) -> str:
    """A count with separators: `12,345`."""
    return NONE if value is None or isnan(value) else f"{value:,.0f}"


def reasons(row: Mapping[str, Any], kind: str) -> str:
    """The counts of a row of `links` that are not zero, by reason: `12 codel, 3 overlimit`."""
    found = {key.removeprefix(kind): row[key] for key in row if key.startswith(kind)}
    return ", ".join(f"{number:,} {name}" for name, number in found.items() if number)


def signalled(link: Mapping[str, Any]) -> Iterator[str]:
    """Shares of the packets that a link dropped and marked, by reason, and packets lost on it."""
    for word, prefix in (("dropped", "drop_"), ("marked", "mark_")):
        if link[word]:
            share = link[word] / link["arrived"]
            yield f"{share:.2%} of the packets were {word} ({reasons(link, prefix)})"
    if link["lost"]:
        yield f"{link['lost']:,} packets were lost on the link (`loss`)"


def digits(value: float, low: float, high: float) -> int:
    """The decimals that an interval leaves to its value: its half width has two digits, and the
    value at most four."""
    half = (high - low) / 2
    if value == low == high and value == round(value):
        return 0
    most = 3 - floor(log10(abs(value))) if value else 3
    return max(0, min(most, 1 - floor(log10(half)) if half > 0 else 3))


def sender(scenario: Mapping[str, Any], of: Mapping[str, Any], group: str, stack: str) -> str:
    """The TCP senders of a group: `cubic, reno from 2s, stack linux-6.12`. `of` is the group in the
    scenario, whose changes name controls that flows had later."""
    last = of["transport"]["congestion_control"]["algorithm"]
    controls = [last]
    key = re.compile(rf"flows\.{re.escape(group)}(\.\d+)?\.transport\.congestion_control")
    for change in scenario.get("changes", ()):
        if found := key.fullmatch(change["key"]):
            name, one = change["value"]["algorithm"], found[1]
            if one or name != last:
                controls.append(f"{name} from {change['at']}{f' ({group}{one})' if one else ''}")
            last = last if one else name
    return f"{', '.join(controls)}, stack {stack}"

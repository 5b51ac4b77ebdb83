"""Colours that people who see few of them can tell apart, on white paper and on a dark screen.

After M. Okabe and K. Ito, Color Universal Design (2008); black and yellow, which vanish on one
of the two, are a grey and a brown. The last two, a purple and a crimson, are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aqmlab.scenario.quantity import numbers

ONE = "#0072b2"
PALETTE = (
    ONE, "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a8f98", "#8c6d31", "#8457b8",
    "#b3124a",
)  # fmt: skip
SHADES = ((255, 0.45), (0, 0.35))
"""Towards white and towards black, and how far."""
RAMP = ((94, 79, 192), (181, 73, 156), (232, 112, 79), (239, 177, 58))
"""Red, green and blue along the colours of numbers, from the smallest to the largest."""
FEWEST_ORDERED = 3
"""So many numbers have an order that is drawn: colours along the ramp, places on an axis."""


def by_label(labels: Sequence[str]) -> dict[str, str]:
    """A colour for each label: of three or more numbers in the order of their size; of others in
    their order, after ten in lighter and darker shades."""
    found = numbers(labels)
    if found and len(labels) >= FEWEST_ORDERED:
        order = sorted(labels, key=dict(zip(labels, found[0], strict=True)).__getitem__)
        return {label: _along(order.index(label) / (len(order) - 1)) for label in labels}
    return {label: nth(PALETTE, place) for place, label in enumerate(labels)}


def nth(palette: Sequence[str], place: int) -> str:
    """The colour at a place; after the last of the palette its lighter and then its darker shades,
    and these again."""
    turn, place = divmod(place, len(palette))
    if turn == 0:
        return palette[place]
    towards, share = SHADES[(turn - 1) % len(SHADES)]
    parts = (int(palette[place][at : at + 2], 16) for at in (1, 3, 5))
    return _hex(round(part + share * (towards - part)) for part in parts)


def _along(share: float) -> str:
    """The colour at this share of the ramp."""
    place = share * (len(RAMP) - 1)
    first = min(int(place), len(RAMP) - 2)
    return _hex(
        round(a + (place - first) * (b - a))
        for a, b in zip(RAMP[first], RAMP[first + 1], strict=True)
    )


def _hex(parts: Iterable[int]) -> str:
    return "#" + "".join(f"{each:02x}" for each in parts)

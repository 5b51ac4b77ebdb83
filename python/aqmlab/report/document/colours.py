"""Colours that people who see few of them can tell apart, on white paper and on a dark screen.

After M. Okabe and K. Ito, Color Universal Design (2008); black and yellow, which vanish on one
of the two, are a grey and a brown.
"""

from __future__ import annotations

from collections.abc import Sequence

ONE = "#0072b2"
PALETTE = (ONE, "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a8f98", "#8c6d31")


def by_label(labels: Sequence[str]) -> dict[str, str]:
    """A colour for each label, in order; more than eight begin again."""
    return {label: PALETTE[place % len(PALETTE)] for place, label in enumerate(labels)}

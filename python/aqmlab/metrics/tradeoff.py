"""Delay against goodput: the ellipse of the runs (RFC 7928, section 2.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from aqmlab.metrics.samples import Floats

ONE_SIGMA = exp(-0.5)
"""The epsilon whose contour is the 1-sigma ellipse (see `ellipse`)."""


@dataclass(frozen=True)
class Ellipse:
    """The contour of a two-dimensional normal distribution."""

    centre: tuple[float, float]
    """The mean, drawn as a circle."""
    axes: tuple[float, float]
    """Half axes, the longer first."""
    angle: float
    """Angle of the longer one against the x axis, in radians."""

    def outline(self, points: int = 60) -> tuple[Floats, Floats]:
        """x and y of the closed contour."""
        turn = np.linspace(0, 2 * np.pi, points + 1)
        along, across = self.axes[0] * np.cos(turn), self.axes[1] * np.sin(turn)
        cos, sin = np.cos(self.angle), np.sin(self.angle)
        x = self.centre[0] + along * cos - across * sin
        y = self.centre[1] + along * sin + across * cos
        return x, y


def ellipse(
    x: Sequence[float] | Floats, y: Sequence[float] | Floats, epsilon: float = ONE_SIGMA
) -> Ellipse:
    """The 1 - epsilon contour of the most likely normal distribution of points (x, y), one a run.

    Most likely: mean and covariance with the divisor n (RFC 7928, section 2.7, after Winstein
    2014). Inside the contour lies 1 - epsilon of the distribution: the squared Mahalanobis
    distance is -2 ln epsilon, which is 1 at the default, Winstein's 1-sigma contour.
    """
    data = np.vstack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    centre = data.mean(axis=1)
    covariance = np.cov(data, bias=True) if data.shape[1] > 1 else np.zeros((2, 2))
    values, vectors = np.linalg.eigh(covariance)
    scale = np.sqrt(-2 * log(epsilon))
    small, large = (float(scale * np.sqrt(max(each, 0.0))) for each in values)
    along = vectors[:, 1]
    return Ellipse(
        (float(centre[0]), float(centre[1])),
        (large, small),
        float(np.arctan2(along[1], along[0])),
    )

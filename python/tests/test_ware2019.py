"""BBR beside CUBIC and Reno: the model with computed values, and one point of the study."""

from __future__ import annotations

import numpy as np
import pytest

from aqmlab.reproduce import reproduce
from aqmlab_studies.ware2019.study import PATH, Point


def test_the_model_by_hand() -> None:
    # Two products are 333 packets: 1/2 - 1/4 - 4/333.3; ProbeRTT takes 0.08 + 0.2 + 0.04 s of 10.
    assert PATH.others(2) == pytest.approx(0.238)
    assert PATH.share(2) == pytest.approx(0.762 * 0.968)
    assert PATH.others(0.5) == PATH.others(1) == 0
    assert PATH.share(1) == pytest.approx(0.972)
    assert PATH.share(32) == pytest.approx(
        (1 - 0.5 + 1 / 64 + 4 / 5333.333) * (1 - 0.152), rel=1e-6
    )
    half = np.array([0.4, 0.6])
    assert Point(2, half, half, half, half).limited == pytest.approx(PATH.share(2) / 2)


def test_bbr_in_a_shallow_buffer_takes_nearly_all() -> None:
    result = reproduce("ware2019", only=["buffer=1 BDP", "beside=CUBIC"], replications=1)
    (cell,) = result.table("shares").cells
    assert cell.published == pytest.approx(0.972) and 0.8 < cell.measured < 0.95
    assert [table.id for table in result.tables] == ["shares", "validation-cubic"]
    assert result.claims == [], "one point decides nothing"

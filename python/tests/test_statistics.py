"""Statistics: against definitions and against simulated coverage."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqmlab import statistics as stats
from aqmlab.statistics import Histograms, Interval

samples = st.lists(st.integers(0, 30), min_size=1, max_size=60)
shares = st.floats(0, 1)


def grouped(sample: list[int]) -> tuple[np.ndarray, np.ndarray]:
    values, counts = np.unique(np.array(sample, dtype=float), return_counts=True)
    return values, counts


@given(samples, shares)
def test_weighted_quantile_meets_its_definition(sample: list[int], share: float) -> None:
    values, counts = grouped(sample)
    found = stats.weighted_quantile(values, counts, share)
    needed = share * len(sample) - 1e-9 * max(1.0, share * len(sample))
    assert found in sample
    assert sum(each <= found for each in sample) >= needed
    below = [each for each in sample if each < found]
    assert not below or sum(each <= max(below) for each in sample) < max(needed, 1)


@given(samples, shares)
def test_plain_and_weighted_quantiles_agree(sample: list[int], share: float) -> None:
    assert stats.quantile(sample, share) == stats.weighted_quantile(*grouped(sample), share)


@given(samples, shares, shares)
def test_quantiles_rise_with_the_share(sample: list[int], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert stats.quantile(sample, low) <= stats.quantile(sample, high)


def test_rounding_of_the_share_does_not_move_the_quantile() -> None:
    hundred = [float(each) for each in range(1, 101)]
    for percent in range(1, 101):
        assert stats.quantile(hundred, percent / 100) == percent


def test_quantile_without_observations_is_not_a_number() -> None:
    empty = np.array([], dtype=float)
    assert math.isnan(stats.weighted_quantile(empty, empty.astype(int), 0.5))
    with pytest.raises(ValueError, match="between 0 and 1"):
        stats.quantile([1.0], 1.5)


@given(st.lists(samples, min_size=1, max_size=5), shares)
def test_pooling_is_the_same_as_one_long_sample(runs: list[list[int]], share: float) -> None:
    frame = pl.DataFrame(
        [
            {"replication": index, "sojourn_s": value, "count": int(count)}
            for index, run in enumerate(runs)
            for value, count in zip(*grouped(run), strict=True)
        ]
    )
    histograms = Histograms.from_frame(frame, len(runs))
    everything = [each for run in runs for each in run]
    assert histograms.observations == len(everything)
    assert histograms.quantile(share) == stats.quantile(everything, share)
    values, cdf = histograms.cdf()
    assert cdf[-1] == pytest.approx(1)
    assert set(values) == set(everything)
    interval = histograms.quantile_interval(share, resamples=50)
    assert min(everything) <= interval.low <= interval.high <= max(everything)


def test_bootstrap_intervals_are_deterministic_and_cover() -> None:
    rng = np.random.default_rng(1)
    truth, inside = -math.log(0.05), 0
    for _ in range(100):
        # Runs of a common exponential with their own scale: packets of a run depend on each other.
        scale = rng.uniform(0.9, 1.1, size=40)
        data = np.round(rng.exponential(scale[:, None], size=(40, 200)), 2)
        replication = np.repeat(np.arange(40), 200)
        histograms = Histograms.from_columns(
            replication, data.ravel(), np.ones(data.size, dtype=np.int64), 40
        )
        interval = histograms.quantile_interval(0.95, resamples=200)
        assert interval == histograms.quantile_interval(0.95, resamples=200)
        inside += truth + 0.005 in interval
    assert 85 <= inside <= 100


@pytest.mark.parametrize("law", ["uniform", "normal", "exponential"])
def test_maximum_interval_holds_the_maximum_of_other_replications(law: str) -> None:
    rng = np.random.default_rng(7)
    draw = getattr(rng, law)
    held = below = 0
    for _ in range(2000):
        interval = stats.maximum_interval(draw(size=100))
        other = draw(size=100).max()
        held += other in interval
        below += other < interval.low
    assert below / 2000 <= 0.025
    assert held / 2000 >= 0.93


@given(st.lists(st.floats(0, 10), min_size=1, max_size=150))
def test_maximum_interval_holds_the_maximum_seen(maxima: list[float]) -> None:
    interval = stats.maximum_interval(maxima)
    assert interval.low <= max(maxima) <= interval.high


def test_equal_maxima_leave_no_doubt() -> None:
    assert stats.maximum_interval([0.594] * 100) == Interval(0.594, 0.594)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30), st.floats(0.1, 10))
def test_jain_index_bounds_and_scale(values: list[float], factor: float) -> None:
    index = stats.jain_index(values)
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert index == pytest.approx(stats.jain_index([factor * each for each in values]))


def test_jain_index_of_known_cases() -> None:
    assert stats.jain_index([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert stats.jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert stats.jain_index([1.0, 2.0]) == pytest.approx(0.9)
    assert math.isnan(stats.jain_index([0.0, 0.0]))


def test_quartiles_and_the_interval_of_the_median() -> None:
    found = stats.quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.median, found.high) == (2.0, 3.0, 4.0)
    assert math.isnan(stats.quartiles([]).median)
    interval = stats.median_interval(list(np.arange(101.0)))
    assert 50.0 in interval
    assert 30 < interval.low < 50 < interval.high < 70
    assert stats.median_interval([4.0]) == Interval(4.0, 4.0)


@pytest.mark.parametrize(
    ("reference", "measured", "interval", "step", "expected"),
    [
        (None, 1.0, None, 0.0, stats.UNPUBLISHED),
        (0.100, 0.105, None, 0.0, stats.AGREES),
        (0.060, 0.066, None, 0.006, stats.AGREES),
        (0.060, 0.066, None, 0.0, stats.CLOSE),
        (0.100, 0.120, Interval(0.09, 0.13), 0.0, stats.CLOSE),
        (0.100, 0.120, Interval(0.11, 0.13), 0.0, stats.DIFFERS),
        (0.0, 0.0, None, 0.0, stats.AGREES),
    ],
)
def test_verdicts(
    reference: float | None,
    measured: float,
    interval: Interval | None,
    step: float,
    expected: str,
) -> None:
    assert stats.verdict(reference, measured, interval, step) == expected


def test_every_verdict_is_documented() -> None:
    assert set(stats.VERDICTS) == {"agrees", "close", "differs", "unpublished"}
    assert set(stats.CLAIM_VERDICTS) == {"holds", "holds in part", "does not hold"}


def test_the_interval_of_a_mean_is_students() -> None:
    # By hand: mean 3, deviation sqrt(2.5), t(4) = 2.776: 3 -+ 2.776 sqrt(2.5 / 5).
    interval = stats.mean_interval([1, 2, 3, 4, 5])
    assert (interval.low, interval.high) == pytest.approx((3 - 1.96293, 3 + 1.96293), abs=1e-4)
    rng = np.random.default_rng(4)
    for size in (3, 10, 40):
        rows = (stats.mean_interval(rng.normal(size=size)) for _ in range(2000))
        covered = np.mean([0.0 in each for each in rows])
        assert 0.935 < covered < 0.965, size
    assert stats.mean_interval([7.0]).low == 7.0


def test_without_relative_only_the_step_counts() -> None:
    exact = Interval(0.96, 0.97)
    assert stats.verdict(0.93, 0.965, exact) == "agrees"
    assert stats.verdict(0.93, 0.965, exact, 0.03, relative=False) == "differs"
    assert stats.verdict(0.94, 0.965, exact, 0.03, relative=False) == "agrees"
    assert stats.verdict(0.90, 0.965, Interval(0.89, 1.0), 0.03, relative=False) == "close"

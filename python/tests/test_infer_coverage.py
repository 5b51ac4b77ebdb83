"""Coverage of intervals by simulation: .93 to .97, or no interval. 8,000 samples of values have a
standard error of .0024, 2,000 of pooled replications one of .005: .95 is told from .92."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from aqmlab.errors import InputError
from aqmlab.metrics.samples import Histograms
from aqmlab.stats import Interval, estimate, interval
from aqmlab.stats.intervals import (
    MOST_ALIKE,
    TAIL_COUNT,
    caution,
    correlation,
    limits,
    low_ends,
    two_clusters,
)

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
SHAPES: dict[str, tuple[Draw, float, float]] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0, 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0, float(np.log(2))),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5)), 1.0),
    "clustered": (
        lambda rng, shape: rng.normal(size=shape) + 10 * (rng.random(shape) < 0.5), 5.0, 5.0,
    ),
}  # fmt: skip
COUNTS = (3, 5, 10, 30)
SAMPLES, POOLS = 8000, 2000


def kept(covered: Truths, given: Truths) -> None:
    """Asserts .93 to .97 where an interval is given in most cases. Without one in most,
    those that slip through are wrong in fewer than 5 % of all cases."""
    if given.mean() >= 0.5:
        assert 0.93 <= covered[given].mean() <= 0.97, f"{covered[given].mean():.3f}"
    else:
        assert (given & ~covered).mean() < 0.05


def same(samples: list[Floats] | Floats, statistic: str, truth: float, low_high: Floats) -> None:
    """Asserts that `interval` gives these limits (NaN: none); so what holds of them holds of it."""
    for sample, (low, high) in zip(samples, low_high, strict=True):
        found = interval(sample, statistic)
        assert (found is None) == bool(np.isnan(low)), (found, low)
        if found is not None:
            assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("count", COUNTS)
def test_mean_keeps_its_promise(shape: str, count: int) -> None:
    draw, mean, _ = SHAPES[shape]
    rows = draw(np.random.default_rng(count), (SAMPLES, count))
    if count < 5:
        assert not any(map(interval, rows[:100]))
        return
    low, high = limits(rows, 0.05)
    kept((low <= mean) & (mean <= high), np.ones(SAMPLES, dtype=bool))
    same(rows[:100], "mean", mean, np.column_stack((low, high))[:100])


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("count", COUNTS)
def test_median_keeps_its_promise(shape: str, count: int) -> None:
    draw, _, median = SHAPES[shape]
    rows = np.sort(draw(np.random.default_rng(count), (SAMPLES, count)), axis=1)
    low, high = low_ends(rows, 0.5, 0.025), low_ends(-rows[:, ::-1], 0.5, 0.025)
    if low is None or high is None:
        assert count == 3
        assert not any(interval(each, "median") for each in rows[:100])
        return
    place = np.diff(rows, axis=1).argmax(axis=1)
    below, above = (rows[np.arange(SAMPLES), each] for each in (place, place + 1))
    split = two_clusters(rows, rows.mean(axis=1), rows.var(axis=1))
    given = ~(split & (low < above) & (-high > below))
    kept((low <= median) & (median <= -high), given)
    ends = np.where(given[:, None], np.column_stack((low, -high)), np.nan)
    same(rows[:100], "median", median, ends[:100])


def pooled(samples: Floats, share: float, truth: float) -> tuple[Truths, Truths]:
    """Samples of shape (samples, replications, values) that have an interval of the pooled
    quantile, and in which it holds the truth: where the shares up to the truth are not refuted."""
    _, runs, size = samples.shape
    ordered = np.sort(samples.reshape(len(samples), -1), axis=1)
    alike = np.zeros(len(samples))
    for each in (0.25, 0.5, 0.75, share):
        quantile = ordered[:, int(np.ceil(each * runs * size)) - 1]
        apart = (samples <= quantile[:, None, None]).mean(axis=2) - each
        alike = np.maximum(alike, correlation(apart, each, size))
    enough = runs >= 5 and min(share, 1 - share) * runs * size >= TAIL_COUNT
    apart = (samples <= truth).mean(axis=2) - share
    if runs < 2:
        return np.zeros(len(samples), dtype=bool), np.zeros(len(samples), dtype=bool)
    low, high = limits(apart, caution(alike, share, 0.05)) if enough else (alike, alike)
    return (low <= 0) & (high >= 0), (alike <= MOST_ALIKE) & enough


@pytest.mark.parametrize("spread", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("statistic", ["median", "p95"])
@pytest.mark.parametrize("count", COUNTS)
def test_pooled_quantiles_keep_their_promise(count: int, statistic: str, spread: float) -> None:
    """With levels of the replications `spread` times as far apart as their values."""
    share = 0.5 if statistic == "median" else 0.95
    rng = np.random.default_rng([count, int(100 * share), int(100 * spread)])
    samples = rng.normal(size=(POOLS, count, 2400 // count))
    samples += spread * rng.normal(size=(POOLS, count, 1))
    truth = float(stats.norm.ppf(share)) * (1 + spread**2) ** 0.5
    covered, given = pooled(samples, share, truth)
    assert given.mean() > 0.9 or count == 3
    kept(covered, given)
    for sample, holds, gives in zip(samples[:40], covered, given, strict=False):
        found = interval(list(sample), statistic)
        assert (found is not None) == gives
        assert found is None or (truth in found) >= holds
        if found is not None:
            # Ends are values that were observed: what holds here holds of any shape.
            skewed = interval(list(np.exp(sample)), statistic)
            assert skewed is not None
            assert (skewed.low, skewed.high) == pytest.approx(np.exp((found.low, found.high)))


def coverage(found: list[Interval | None], truth: float) -> float:
    given = [each for each in found if each is not None]
    return sum(truth in each for each in given) / len(given)


def test_student_alone_would_not_do() -> None:
    # What the test above tells apart: even tails cover the lognormal mean in 84 of 100 cases.
    rows = np.random.default_rng(10).lognormal(size=(4000, 10))
    low, high = stats.t.interval(0.95, 9, rows.mean(axis=1), stats.sem(rows, axis=1))
    assert np.mean((low <= np.exp(0.5)) & (np.exp(0.5) <= high)) < 0.86


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("statistic", ["mean", "median", "p95", "max"])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_values_have_no_interval(shape: str, statistic: str, count: int) -> None:
    sample = SHAPES[shape][0](np.random.default_rng(3), (count,))
    found = estimate(sample, statistic)
    assert found.interval is None and found.why


@pytest.mark.parametrize("count", [3, 5, 10, 30])
def test_no_95th_percentile_of_thirty_values_and_never_of_a_maximum(count: int) -> None:
    values = np.random.default_rng(3).normal(size=count)
    assert "needs 66" in estimate(values, "p95").why
    most = estimate(values, "max")
    assert most.interval is None and most.why.startswith(f"largest of {count} runs")
    assert most.value == values.max()


@pytest.mark.parametrize(
    ("statistic", "value"), [("mean", np.inf), ("median", 5.5), ("max", np.inf)]
)
def test_an_infinite_value_counts_and_has_no_interval(statistic: str, value: float) -> None:
    found = estimate([*range(1, 10), np.inf], statistic)
    assert (found.value, found.interval, found.why) == (value, None, "a value is infinite")


def test_95th_percentile_of_a_hundred() -> None:
    samples = np.random.default_rng(4).lognormal(size=(4000, 100))
    covered = coverage([interval(each, "p95") for each in samples], float(np.exp(1.6448536)))
    assert 0.93 <= covered <= 0.97


def test_no_pooled_percentile_where_the_runs_have_little_in_common() -> None:
    # Ten levels four times as far apart as the packets: the percentile lies in one or two runs.
    rng = np.random.default_rng(7)
    samples = rng.normal(size=(100, 10, 300)) + 4 * rng.normal(size=(100, 10, 1))
    found = [estimate(list(each), "p95") for each in samples]
    assert sum(each.interval is None for each in found) > 95
    assert "the replications differ more than their packets" in found[0].why


def test_pooled_values_are_the_same_from_histograms() -> None:
    rng = np.random.default_rng(8)
    runs = [rng.integers(0, 40, size=500).astype(float) for _ in range(8)]
    label = np.repeat(np.arange(8), 500)
    counts = Histograms.from_columns(label, np.concatenate(runs), np.ones(4000, dtype=int), 8)
    for statistic in ("mean", "p90"):
        one, other = estimate(runs, statistic), estimate(counts, statistic)
        assert one.value == pytest.approx(other.value)
        assert one.interval and other.interval
        assert one.interval.low == pytest.approx(other.interval.low)
        assert one.interval.high == pytest.approx(other.interval.high)


def test_the_mean_moves_and_scales_with_its_sample() -> None:
    sample = np.random.default_rng(9).exponential(size=12)
    plain, moved, mirrored = (interval(each) for each in (sample, 3 * sample + 7, -sample))
    assert plain and moved and mirrored
    assert moved.low == pytest.approx(3 * plain.low + 7)
    assert (mirrored.low, mirrored.high) == pytest.approx((-plain.high, -plain.low))
    assert plain.high - sample.mean() > sample.mean() - plain.low, "the long side is above"


@pytest.mark.parametrize("statistic", ["middle", "p", "p0", "p100", "pp"])
def test_unknown_statistic(statistic: str) -> None:
    with pytest.raises(InputError, match="statistic"):
        interval([1.0, 2.0], statistic)


def test_wrong_level() -> None:
    with pytest.raises(InputError, match="level"):
        interval([1.0, 2.0], level=1.0)

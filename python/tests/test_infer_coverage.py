"""Coverage of intervals by simulation: .93 to .97, or no interval. 4,000 samples have a standard
error of .0035: .95 is told from .92."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from aqmlab.errors import InputError
from aqmlab.infer import Interval, estimate, interval
from aqmlab.statistics import Histograms

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
SHAPES: dict[str, tuple[Draw, float, float]] = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0, 0.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0, float(np.log(2))),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5)), 1.0),
    "clustered": (
        lambda rng, shape: rng.normal(size=shape) + 10 * (rng.random(shape) < 0.5), 5.0, 5.0,
    ),
}  # fmt: skip


def coverage(found: list[Interval | None], truth: float) -> float:
    given = [each for each in found if each is not None]
    return sum(truth in each for each in given) / len(given)


@pytest.mark.parametrize("shape", ["normal", "exponential", "lognormal"])
@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("count", [5, 10, 30])
def test_mean_and_median_keep_their_promise(shape: str, statistic: str, count: int) -> None:
    draw, mean, median = SHAPES[shape]
    samples = draw(np.random.default_rng(count), (4000, count))
    found = [interval(each, statistic) for each in samples]
    assert all(found), "such a sample has an interval"
    covered = coverage(found, mean if statistic == "mean" else median)
    assert 0.93 <= covered <= 0.97, f"{covered:.3f}"


@pytest.mark.parametrize("count", [10, 30])
def test_mean_of_two_clusters(count: int) -> None:
    draw, mean, _ = SHAPES["clustered"]
    samples = draw(np.random.default_rng(1), (4000, count))
    assert 0.93 <= coverage([interval(each) for each in samples], mean) <= 0.97


def test_student_alone_would_not_do() -> None:
    # What the test above tells apart: even tails cover the lognormal mean in 83 of 100 cases.
    from aqmlab.infer.intervals import even_limits

    samples = np.random.default_rng(10).lognormal(size=(4000, 10))
    ends = [even_limits(each, 0.9375) for each in samples]
    assert np.mean([low <= np.exp(0.5) <= high for low, high in ends]) < 0.87


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


def test_95th_percentile_of_a_hundred() -> None:
    samples = np.random.default_rng(4).lognormal(size=(4000, 100))
    covered = coverage([interval(each, "p95") for each in samples], float(np.exp(1.6448536)))
    assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize(
    ("shape", "count", "statistic"),
    [("normal", 10, "p95"), ("lognormal", 5, "p95"), ("lognormal", 10, "median")],
)
def test_pooled_quantiles(shape: str, count: int, statistic: str) -> None:
    draw, _, median = SHAPES[shape]
    rng = np.random.default_rng(count)
    truth = {"normal": 1.6448536, "lognormal": float(np.exp(1.6448536))}[shape]
    samples = draw(rng, (1000, count, 300))
    found = [interval(list(each), statistic) for each in samples]
    assert sum(each is not None for each in found) > 900
    covered = coverage(found, truth if statistic == "p95" else median)
    assert 0.93 <= covered <= 0.97, f"{covered:.3f}"


def test_pooled_quantile_of_runs_that_differ() -> None:
    # The replications have levels of their own, a tenth as far apart as their packets.
    rng = np.random.default_rng(6)
    samples = rng.normal(size=(1000, 10, 300)) + 0.1 * rng.normal(size=(1000, 10, 1))
    truth = 1.6448536 * (1.01**0.5)
    covered = coverage([interval(list(each), "p95") for each in samples], truth)
    assert 0.93 <= covered <= 0.97, f"{covered:.3f}"


def test_no_pooled_percentile_where_the_runs_have_little_in_common() -> None:
    # Ten levels as far apart as the packets: the percentile lies in one or two of the runs.
    rng = np.random.default_rng(7)
    samples = rng.normal(size=(300, 10, 300)) + rng.normal(size=(300, 10, 1))
    found = [estimate(list(each), "p95") for each in samples]
    assert not any(each.interval for each in found)
    assert "replications differ more than their packets" in found[0].why


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


def test_equal_values_have_an_interval_of_no_length() -> None:
    found = interval([0.3] * 10)
    assert found and (found.low, found.high) == pytest.approx((0.3, 0.3), abs=1e-12)


@pytest.mark.parametrize("statistic", ["middle", "p", "p0", "p100", "pp"])
def test_unknown_statistic(statistic: str) -> None:
    with pytest.raises(InputError, match="statistic"):
        interval([1.0, 2.0], statistic)


def test_wrong_level() -> None:
    with pytest.raises(InputError, match="level"):
        interval([1.0, 2.0], level=1.0)

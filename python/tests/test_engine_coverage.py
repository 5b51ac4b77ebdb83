"""Coverage of the intervals of means on runs of the engine: .93 to .97, or no interval.

80 series of 3,000 runs (`tools.engine_coverage`), 700 samples each of 5, 10 and 20 runs. The
standard error of a coverage of .95 is .0082; a series fails beyond three of these, as 240 are
judged.
"""

from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest

from aqmlab.stats import Contest, compare, estimate, estimate_means
from tools.engine_coverage import COUNTS, DATA, KEPT, RUNS, WORLDS, Series, coverage, read

SAMPLES = 700
SERIES = read()
MOSTLY = 0.97
"""Where fewer samples than these have an interval, the others are chosen by what they show."""
SHORT = ("CoDel", "web: page load time, mean", 5)
LEAST_SHORT = 0.9
"""Does not keep the promise (docs/statistics.md): five runs seldom show its long tail."""
LEAST_OF_DIFFERENCES = {"web: page load time, mean": 0.89, "call: one-way delay, p95": 0.88}
"""Coverage of measures whose differences do not keep it (docs/statistics.md)."""
PAIRS = 300


def error(share: float, samples: float) -> float:
    return (share * (1 - share) / max(samples, 1)) ** 0.5


@pytest.mark.parametrize("series", SERIES, ids=lambda each: f"{each.world} {each.title}")
def test_intervals_keep_their_promise_on_runs_of_the_engine(series: Series) -> None:
    for count in COUNTS:
        found = coverage(series, count, SAMPLES)
        about = f"n = {count}: {found}"
        assert found.given > 0.995 or found.why, about
        least = LEAST_SHORT if (series.world, series.title, count) == SHORT else 0.93
        assert found.missed < 1 - least + 3 * error(least, SAMPLES), about
        if found.given >= MOSTLY:
            given = found.given * SAMPLES
            assert least - 3 * error(least, given) <= found.covered, about
            assert found.covered <= 0.97 + 3 * error(0.97, given), about
            # The few values of a skewed quantity lack the large ones; five cost a factor of 2.
            assert 0.5 <= found.width <= (2.4 if count == 5 else 1.5), about


def test_the_data_have_what_they_are_for() -> None:
    assert DATA.stat().st_size < 400_000
    assert {each.world for each in SERIES} == set(WORLDS)
    assert {each.title for each in SERIES} == set(KEPT) and len(KEPT) >= 15
    assert all(each.values.size > 0.99 * RUNS for each in SERIES)


@pytest.mark.parametrize(
    ("world", "title", "why"),
    [
        ("FQ-CoDel", "call: lost", "runs gave the same value"),
        ("light", "short: start-up time, p95", "the largest of the few values of each run"),
        ("FQ-CoDel", "bulk: start-up time, mean", "a rare event"),
        ("FQ-CoDel", "call: MOS", "a rare event"),
        ("FQ-CoDel", "bulk: Jain's index", "a rare event"),
    ],
)
def test_what_rare_events_decide_has_no_interval(world: str, title: str, why: str) -> None:
    [series] = [each for each in SERIES if (each.world, each.title) == (world, title)]
    for count in COUNTS:
        found = coverage(series, count, 200)
        assert found.given < 0.35, found
        assert count > 5 or why in found.why, found


def test_student_alone_would_miss_most() -> None:
    # What the tests above tell apart: without the rules, .40 instead of .95.
    [series] = [each for each in SERIES if (each.world, each.title) == ("FQ-CoDel", "call: MOS")]
    plain = Series(series.world, series.title, "", series.bounds, 0.0, series.values)
    assert coverage(plain, 10, 300).covered < 0.6


@pytest.mark.parametrize("title", sorted({each.title for each in SERIES if each.event < inf}))
def test_intervals_of_differences_and_winners(title: str) -> None:
    """With equal tails intervals cover .83 of page load times, .85 of Jain's index; without
    allowing for a rare event, up to 12 of 100 comparisons of start-up times name a wrong winner."""
    queues = [each for each in SERIES if each.title == title and each.world != "light"]
    least = LEAST_OF_DIFFERENCES.get(title, 0.93)
    for one, two in combinations(queues, 2):
        per = [1e3 if each.unit == "s" else 1.0 for each in (one, two)]
        own = {one.world: per[0] * one.values, two.world: per[1] * two.values}
        truth = own[two.world].mean() - own[one.world].mean()
        # Reports allow for lost SYNs, not for flows that meet in one queue.
        event = per[0] * one.event if title.endswith("time, mean") else 0.0
        size = min(map(len, own.values()))
        for count in COUNTS:
            rng = np.random.default_rng(count)
            wrong, covered = 0, 0
            for _ in range(PAIRS):
                runs = rng.choice(size, count, replace=False)
                samples = {name: values[runs] for name, values in own.items()}
                (found,) = compare([Contest(title, "", samples, event=event)])
                low, high = found.difference_of(two.world)
                wrong += found.shown and (low > 0) != (truth > 0)
                covered += bool(found.why) or low <= truth <= high
            about = f"{one.world}, {two.world}, n = {count}: {wrong}, {covered} of {PAIRS}"
            assert wrong <= (0.02 + 3 * error(0.02, PAIRS)) * PAIRS, about
            assert covered >= (least - 3 * error(least, PAIRS)) * PAIRS, about


def test_copies_have_no_interval() -> None:
    found = estimate(np.full(10, 0.3))
    assert found.interval is None and found.why == "all 10 runs gave the same value"
    almost = estimate([0.1 + 0.2] * 5 + [0.3] * 5)
    assert almost.why == "all 10 runs gave the same value", "rounding is no spread"


@pytest.mark.parametrize("count", [10, 20, 50, 100])
def test_counts_with_many_equal_values_have_an_interval(count: int) -> None:
    """Most samples of small counts, as of lost packets; these cover."""
    rng = np.random.default_rng(count)
    samples = [estimate(rng.poisson(1.0, count).astype(float)).interval for _ in range(SAMPLES)]
    given = [1.0 in each for each in samples if each]
    assert len(given) > 0.95 * SAMPLES
    assert 0.93 - 3 * error(0.93, SAMPLES) <= np.mean(given) <= 0.97 + 3 * error(0.97, SAMPLES)


@pytest.mark.parametrize("how", [{}, {"bounds": (0.0, 1.0)}, {"looked": True}])
def test_means_at_once_are_the_estimates_of_each(how: Any) -> None:
    rng = np.random.default_rng(1)
    samples = [rng.exponential(size=count) for count in (0, 1, 4, 10, 5, 10, 20)]
    samples += [np.full(10, 0.3), np.array([1.0, np.nan] * 5), np.array([1.0, np.inf] * 5)]
    events = np.linspace(0.0, 3.0, len(samples)).tolist()
    each = [estimate(own, event=event, **how) for own, event in zip(samples, events, strict=True)]
    assert [repr(one) for one in estimate_means(samples, events=events, **how)] == [
        *map(repr, each)
    ]
    assert sum(one.interval is not None for one in each) >= 3


def test_one_or_two_values_decide_no_interval() -> None:
    found = estimate([0.0] * 8 + [1.0, 3.0])
    assert found.why == "8 of 10 runs gave the same value: the others decide the mean"
    assert estimate([0.0] * 7 + [1.0, 2.0, 3.0]).interval
    crowd = np.random.default_rng(1).normal(0.05, 0.001, size=9)
    assert 0.1 in (estimate([*crowd, 1.05]).interval or ()), "one value far off has its weight"

"""False winners and found ones, by simulation: pages of several measures, labels and places."""

from itertools import chain

import numpy as np
import pytest
from scipy import stats

from aqmlab.stats import Contest, ContestResult, compare
from aqmlab.stats.comparisons import pooled_variance, range_quantile, range_tail


def page(
    rng: np.random.Generator,
    labels: int,
    measures: int,
    replications: int = 10,
    *,
    shift: float = 0.0,
    spread: float = 1.0,
    shape: str = "normal",
    paired: bool = True,
) -> list[ContestResult]:
    """A page whose first label is `shift` standard deviations worse in every measure."""
    size = (measures, replications, labels)
    table = rng.normal(size=size) if shape == "normal" else rng.lognormal(size=size) / 2.16
    table[..., 0] *= spread
    table[..., 0] += shift
    if paired:
        table += 5 * rng.normal(size=(measures, replications, 1))
    return compare(
        [
            Contest(
                f"m{place}",
                "ms",
                {f"q{label}": values[:, label] for label in range(labels)},
                paired=paired,
                first=place == 0,
            )
            for place, values in enumerate(table)
        ]
    )


def rate(found: list[list[ContestResult]]) -> float:
    return float(np.mean([any(each.shown for each in findings) for findings in found]))


@pytest.mark.parametrize(("labels", "measures"), [(2, 1), (2, 6), (5, 4), (8, 6)])
@pytest.mark.parametrize("paired", [True, False])
def test_five_pages_of_a_hundred_have_a_false_winner(
    labels: int, measures: int, paired: bool
) -> None:
    rng = np.random.default_rng(10 + labels)
    found = [page(rng, labels, measures, paired=paired) for _ in range(1000)]
    assert 0.02 <= rate(found) <= 0.066


def test_a_label_that_varies_more_is_no_winner() -> None:
    # The variance of all would make its mean look far from the others': 11 % of the pages.
    rng = np.random.default_rng(5)
    assert rate([page(rng, 8, 1, spread=10.0, paired=False) for _ in range(600)]) <= 0.075


def test_skewed_values_have_no_more_false_winners() -> None:
    rng = np.random.default_rng(6)
    assert rate([page(rng, 8, 4, shape="lognormal", paired=False) for _ in range(600)]) <= 0.065


@pytest.mark.parametrize("replications", [5, 10, 40])
def test_one_skewed_label_among_steady_ones_is_a_false_winner_too_often(
    replications: int,
) -> None:
    """A limit that the guide states (docs/statistics.md): most samples lack the large values."""
    rng = np.random.default_rng(8)
    spreads = np.array([10.0, 1.0, 1.0, 1.0])

    def skewed() -> list[ContestResult]:
        tables = (rng.lognormal(size=(3, replications, 4)) - np.exp(0.5)) * spreads
        return compare(
            [
                Contest(f"m{at}", "ms", dict(zip("abcd", t.T, strict=True)))
                for at, t in enumerate(tables)
            ]
        )

    assert 0.07 < rate([skewed() for _ in range(300)]) < 0.22


@pytest.mark.parametrize(("labels", "measures"), [(2, 1), (2, 4), (8, 1), (8, 6)])
def test_a_difference_of_one_and_a_half_standard_deviations_is_shown(
    labels: int, measures: int
) -> None:
    rng = np.random.default_rng(labels)
    found = [page(rng, labels, measures, shift=1.5) for _ in range(200)]
    assert rate(found) >= 0.7
    right = [each for each in chain.from_iterable(found) if each.shown]
    assert np.mean(["q0" in each.worst for each in right]) > 0.95


def test_intervals_hold_the_effect_and_follow_the_verdict() -> None:
    rng = np.random.default_rng(9)
    found = [page(rng, 2, 1, shift=1.0)[0] for _ in range(1500)]
    truth = [1.0 if next(iter(each.means)) == "q1" else -1.0 for each in found]
    assert (
        0.93 <= np.mean([f.low <= t <= f.high for f, t in zip(found, truth, strict=True)]) <= 0.97
    )
    assert all((each.low > 0) == each.shown for each in found)
    assert all(each.shown == (each.effect >= each.detectable) for each in found)


def test_a_reversal_is_told_at_both_places() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(4, 10)) * 0.1
    few = {"codel": 1 + noise[0], "droptail": 3 + noise[1]}
    many = {"codel": 4 + noise[2], "droptail": 2 + noise[3]}
    found = compare(
        [Contest("frames missed", "%", each, where={"downloads": name})
         for name, each in (("1", few), ("4", many))]
    )  # fmt: skip
    assert [each.best for each in found] == [("codel",), ("droptail",)]
    assert [dict(each.where) for each in found] == [{"downloads": "1"}, {"downloads": "4"}]


def test_the_same_best_and_worst_stand_once() -> None:
    rng = np.random.default_rng(3)
    level = {"a": 0.0, "b": 0.0, "c": 5.0, "d": 10.0, "e": 10.0}
    samples = {name: value + 0.1 * rng.normal(size=10) for name, value in level.items()}
    [found] = compare([Contest("goodput", "Mbit/s", samples, direction=1)])
    assert (set(found.best), set(found.worst)) == ({"d", "e"}, {"a", "b"})


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ({"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 2.0]}, "a label have the same value"),
        ({"a": [1.0, 1.0, 1.0], "b": [1.0, 1.0, 1.0]}, "every run gave the same"),
        ({"a": [1.0], "b": [2.0]}, "only one run each"),
        ({"a": [1.0, 2.0], "b": [2.0]}, "only one run each"),
        ({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0]}, "some replications have no value"),
        ({"a": [1.0, 2.0, 3.0]}, "nothing to compare with"),
    ],
)
def test_what_cannot_be_tested_is_not_shown(samples: dict[str, list[float]], why: str) -> None:
    arrays = {name: np.array(each) for name, each in samples.items()}
    [found] = compare([Contest("delay", "ms", arrays)])
    assert not found.shown
    assert why in found.why
    assert found.to_json()["low"] is None


@pytest.mark.parametrize("labels", [2, 3, 8, 20])
@pytest.mark.parametrize("freedom", [2, 9, 63, 2000])
def test_studentized_range_is_that_of_scipy(labels: int, freedom: int) -> None:
    for value in (2.0, 4.0, 7.0):
        expected = float(stats.studentized_range.sf(value, labels, freedom))
        assert range_tail(value, labels, freedom) == pytest.approx(expected, rel=0.01, abs=1e-6)
    assert range_tail(range_quantile(0.003, labels, freedom), labels, freedom) == pytest.approx(
        0.003, rel=1e-3
    )


def test_no_difference_is_larger_than_the_quantity_allows() -> None:
    values = {"good": np.array([4.4, 4.3, 4.4]), "bad": np.array([1.0, 2.5, 3.0])}
    free, bound = (compare([Contest("MOS", "", values, span=span)])[0] for span in (np.inf, 3.5))
    assert free.high > 4.8 and (bound.low, bound.high) == (free.low, 3.5)
    assert (bound.verdict, bound.detectable) == (free.verdict, free.detectable)


def test_rounding_is_no_spread() -> None:
    rates = np.random.default_rng(1).normal(size=7)
    assert pooled_variance([rates] * 3, paired=True)[0] == 0


def test_a_difference_is_larger_than_what_unseen_events_would_make() -> None:
    values = {"a": np.array([1.0, 1.1, 1.0, 1.1]), "b": np.array([2.0, 2.0, 2.1, 2.1])}

    def found(event: float) -> ContestResult:
        return compare([Contest("start-up", "s", values, event=event)])[0]

    assert found(0.0).shown and found(1.3).shown and not found(1.4).shown
    assert (found(1.4).low, found(1.4).detectable) == pytest.approx((1 - 1.05, 1.05))
    assert "rare events decide" in found(np.inf).why

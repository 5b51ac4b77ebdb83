"""Samples and verdicts: against definitions."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqmlab.campaign.rule import VERDICTS as STATEMENTS
from aqmlab.metrics import samples as stats
from aqmlab.metrics.samples import Histograms
from aqmlab.reproduce import verdicts
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.reproduce.page import table as paper_table
from aqmlab.stats import Interval
from tools.study_pages import _table

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
    columns = (frame[name].to_numpy() for name in ("replication", "sojourn_s", "count"))
    histograms = Histograms.from_columns(*columns, len(runs))
    everything = [each for run in runs for each in run]
    assert histograms.observations == len(everything)
    assert histograms.quantile(share) == stats.quantile(everything, share)
    values, cdf = histograms.cdf()
    assert cdf[-1] == pytest.approx(1)
    assert set(values) == set(everything)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30), st.floats(0.1, 10))
def test_jain_index_bounds_and_scale(values: list[float], factor: float) -> None:
    index, scaled = stats.jain_indices(np.array([values, [factor * each for each in values]]))
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert index == pytest.approx(scaled)


def test_jain_index_of_known_cases() -> None:
    rows = np.array([[3.0, 3.0], [1.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
    assert stats.jain_indices(rows) == pytest.approx([1, 0.5, 0.9, np.nan], nan_ok=True)


def test_quartiles() -> None:
    found = stats.quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.median, found.high) == (2.0, 3.0, 4.0)
    assert math.isnan(stats.quartiles([]).median)


@pytest.mark.parametrize(
    ("reference", "interval", "step", "expected"),
    [
        (None, None, 0.0, verdicts.UNPUBLISHED),
        (0.100, Interval(0.091, 0.109), 0.0, verdicts.AGREES),
        (0.060, Interval(0.055, 0.067), 0.0, verdicts.UNDECIDED),
        (0.060, Interval(0.055, 0.067), 0.008, verdicts.AGREES),
        (0.100, Interval(0.09, 0.13), 0.0, verdicts.UNDECIDED),
        (0.100, Interval(0.05, 0.15), 0.0, verdicts.UNDECIDED),
        (0.100, Interval(0.12, 0.13), 0.0, verdicts.DIFFERS),
        (0.100, Interval(0.05, 0.08), 0.0, verdicts.DIFFERS),
        (0.100, None, 0.0, verdicts.UNDECIDED),
        (0.0, Interval(0.0, 0.0), 0.0, verdicts.AGREES),
    ],
)
def test_verdicts(
    reference: float | None,
    interval: Interval | None,
    step: float,
    expected: str,
) -> None:
    criterion = verdicts.Criterion(step)
    assert criterion.verdict(reference, interval) == expected


def test_every_verdict_is_documented() -> None:
    assert set(verdicts.VERDICTS) == {"agrees", "not decided", "differs", "unpublished"}
    assert set(STATEMENTS) == {"holds", "does not hold", "not decided"}


def test_without_relative_only_the_step_counts() -> None:
    exact, three_points = Interval(0.96, 0.97), verdicts.Criterion(0.03, relative=False)
    assert verdicts.Criterion().verdict(0.93, exact) == "agrees"
    assert three_points.verdict(0.92, exact) == "differs"
    assert three_points.verdict(0.94, exact) == "agrees"
    assert three_points.verdict(0.935, exact) == "not decided"


def test_a_table_says_what_agrees_means() -> None:
    kinds = {
        verdicts.Criterion(): "10 % of the reference",
        verdicts.Criterion(0.006): "a step of the quantity, 0.006 s",
        verdicts.Criterion(0.03, relative=False): "margin: 0.03 s",
        verdicts.Criterion(text="in a band of 25 %"): "in a band of 25 %",
    }
    for criterion, words in kinds.items():
        cell = Cell("a", "b", 1.0, 1.0, None, None, "agrees", criterion)
        table = CellTable("t", "delay", "s", (cell,), method="none")
        assert words.lower() in table.caption.lower() and table.caption.startswith("Margin: ")
        assert table.criteria == [criterion]
        assert words.lower() in "\n".join(_table(table)).lower()
        assert words.lower() in paper_table(table).caption.lower()


def test_a_table_says_why_cells_have_no_interval() -> None:
    some = np.array([0.98] * 18 + [0.9, 0.95])
    cells = [
        Cell.mean("a", "b", 1.0, np.full(20, 1.0)),
        Cell.mean("a", "c", 1.0, np.full(20, 1.2)),
        Cell.mean("a", "d", 1.0, np.array([1.0, 1.1])),
        Cell.mean("a", "e", 1.0, some),
        Cell.mean("a", "f", 1.09, some),
        Cell.mean("a", "g", 1.0, np.linspace(0.9, 1.1, 20)),
    ]
    words = ["agrees", "differs", "not decided", "agrees", "not decided", "agrees"]
    assert [each.verdict for each in cells] == words
    table = CellTable("t", "delay", "s", tuple(cells), method="none")
    same = "all 20 runs gave the same value (2 cells)"
    few = "18 of 20 runs gave the same value: the others decide the mean (2 cells)"
    assert table.caption.endswith(f"No interval: {same}; {few}.")
    assert Cell.mean("a", "b", 9.0, np.full(5, 1.0), band=(0.9, 1.1)).verdict == "agrees"
    assert Cell.mean("a", "b", 1.0, np.full(4, 1.0)).verdict == "not decided"

"""The benchmark of a study on more and more workers: its chart."""

from __future__ import annotations

import csv

from tools.bench.scaling import chart


def test_the_chart_has_the_rates_beside_those_of_one_thread() -> None:
    alone = {"0.1s": 2000.0, "10s": 50.0}
    found = {1: {"0.1s": 500.0, "10s": 40.0}, 2: {"0.1s": 1000.0, "10s": 80.0}}
    figure = chart(alone, found)
    rows = csv.DictReader(figure.spec["data"]["values"].splitlines())
    assert {(row["name"], row["place"]): float(row["value"]) for row in rows} == {
        ("as many times as workers", "1 worker"): 1,
        ("as many times as workers", "2 workers"): 2,
        ("runs of 0.5 ms", "1 worker"): 0.25,
        ("runs of 0.5 ms", "2 workers"): 0.5,
        ("runs of 20.0 ms", "1 worker"): 0.8,
        ("runs of 20.0 ms", "2 workers"): 1.6,
    }

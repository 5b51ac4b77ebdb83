"""Groups taken together, windows of time, and that no other layer computes metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers import STUDY_TEXT, Aqmlab, assert_refused

import aqmlab as package
from aqmlab.metrics import find, windows
from aqmlab.metrics.pools import BOTH, Pools
from aqmlab.metrics.samples import jain_indices, quantile
from aqmlab.metrics.values import runs_of

PACKAGE = Path(package.__file__).parent
LINKS = {name: {"rate": "10mbit", "delay": "20ms", "queue": "codel"} for name in ("down", "up")}


@pytest.fixture(scope="module")
def result() -> package.RunResult:
    """Two groups of a class that wait differently, and a third group."""
    back = {"path": "down", "return_path": "up", "delays": True}
    groups = {
        "bulk_near": back | {"count": 2, "start": "2.5s"},
        "bulk_far": back | {"access_delay": "60ms", "start": "3s"},
        "web": back | {"workload": {"kind": "requests", "response": "20kb", "gap": "200ms"}},
    }
    record = {"warmup": "2s", "level": "series", "interval": "500ms"}
    return package.run(
        {"duration": "12s", "links": LINKS, "bottleneck": "down", "flows": groups, "record": record}
    )


def class_of(group: str) -> str:
    return group.partition("_")[0]


def pooled(result: package.RunResult, name: str, subject: str = "bulk", **more: Any) -> float:
    metric, statistic = find(name)
    runs = Pools(runs_of(result), class_of, **more).runs
    return float(metric.values(runs, statistic).filter(subject=subject)["value"].item())


def test_percentiles_of_a_pool_are_those_of_all_packets(result: package.RunResult) -> None:
    rows = result.delays.filter(pl.col("group").str.starts_with("bulk"))
    delays = np.repeat(rows["delay_s"].to_numpy(), rows["count"].cast(int).to_numpy())
    times = result.times.filter(quantity="delay").filter(pl.col("group").str.starts_with("bulk"))
    weight = times["count"] / times["count"].sum()
    for name, share in (("delay_p50", 0.5), ("delay_p95", 0.95), ("delay_p99", 0.99)):
        found = pooled(result, name)
        assert found == quantile(delays, share)
        # The mean of percentiles, which this was, is another number.
        assert found != pytest.approx((times[f"p{name[-2:]}_s"] * weight).sum(), rel=1e-3)
    assert pooled(result, "delay_mean") == pytest.approx((times["mean_s"] * weight).sum())
    variation = quantile(delays, 0.999) - times["min_s"].min()
    assert pooled(result, "delay_variation") == pytest.approx(variation)


def test_counts_of_a_pool_add_up(result: package.RunResult) -> None:
    rows = result.traffic.filter(pl.col("group").str.starts_with("bulk"), direction="forward")
    sums = {name: rows[name].sum() for name in ("delivered_bytes", "arrived", "dropped", "lost")}
    assert pooled(result, "goodput") == 8 * sums["delivered_bytes"] / 10
    ended = sums["arrived"] + sums["dropped"] + sums["lost"]
    assert pooled(result, "loss_share") == (sums["dropped"] + sums["lost"]) / ended > 0
    flows = result.flows.filter(pl.col("group").str.starts_with("bulk"))
    assert flows.height == 3
    (jain,) = jain_indices(flows["goodput_bps"].to_numpy()[None, :])
    assert pooled(result, "jain") == pytest.approx(jain)


def test_both_directions_of_a_pool_are_counted_together(result: package.RunResult) -> None:
    rows = result.traffic.filter(group="web")
    assert rows["direction"].n_unique() == 2
    both = pooled(result, "goodput", "web", directions=BOTH)
    assert both == pytest.approx(8 * rows["delivered_bytes"].sum() / 10)
    assert both > pooled(result, "goodput", "web")


def test_a_single_group_keeps_its_times(result: package.RunResult) -> None:
    for name in ("delay_p99", "response_p95"):
        metric, statistic = find(name)
        alone = metric.values(runs_of(result), statistic).filter(subject="web")["value"].item()
        assert pooled(result, name, "web") == alone


def test_times_without_a_histogram_have_no_pooled_percentile(result: package.RunResult) -> None:
    assert pooled(result, "startup_mean") > 0
    with pytest.raises(ValueError, match="length 0"):
        pooled(result, "startup_p95")


def test_a_window_is_about_its_samples(result: package.RunResult) -> None:
    rows = windows.samples(runs_of(result), "throughput_bps", "sojourn_mean_s", "sojourn_max_s")
    inside = rows.filter(windows.between(rows, 0.0, 4.0), subject="down")
    assert inside["time_s"].unique().sort().to_list() == [2.5 + 0.5 * step for step in range(8)]
    found = windows.of_links(inside).row(0, named=True)
    series = {
        quantity: part["value"].to_numpy() for (quantity,), part in inside.group_by("quantity")
    }
    assert found["throughput"] == pytest.approx(series["throughput_bps"].mean())
    weighted = np.average(series["sojourn_mean_s"], weights=series["throughput_bps"])
    assert found["sojourn_mean"] == pytest.approx(weighted)
    assert found["sojourn_max"] == series["sojourn_max_s"].max()


NULL = """import aqmlab
import polars as pl

@aqmlab.metric("busy_share", of="link", unit="{unit}", title="own share")
def busy_share(runs):
    links = runs.table("links").with_columns(pl.col("link").cast(pl.String))
    value = pl.when(pl.col("link") == "{link}").then(pl.col("utilisation") * {factor})
    return links.select("run", subject="link", value=value)
"""


def test_a_metric_of_ones_own_may_lack_values_and_says_its_unit(
    aqmlab: Aqmlab, tmp_path: Path, scenario: Path
) -> None:
    (tmp_path / "study.toml").write_text(STUDY_TEXT.format(replications=2))

    def told(**own: Any) -> Any:
        (tmp_path / "own.py").write_text(NULL.format(**own))
        line = ("study", "study.toml", "--set", "duration=2s", "--out", "out", "--with", "own.py")
        return aqmlab(*line)

    done = told(unit="share", link="down", factor=1)
    assert done.returncode == 0, done.stderr
    assert "down: own share" in done.stdout and "up: own share" not in done.stdout
    assert "own share" in (tmp_path / "out" / "report.html").read_text()
    # A metric without any value is no reason to fail either.
    done = told(unit="share", link="nowhere", factor=1)
    assert done.returncode == 0 and "own share" not in done.stdout, done.stderr
    # Ratios are not percentages.
    shown = told(unit="ratio", link="down", factor=12).stdout
    (row,) = [line for line in shown.splitlines() if "own share" in line][:1]
    assert "%" not in row, row
    assert_refused(told(unit="1", link="down", factor=1), "unit", "share", "ratio")


FORBIDDEN = {
    "goodput": r"\* *8 */|8 *\* *pl\.col\(\"delivered_bytes|8 \* .*delivered_bytes",
    "loss": r"pl\.col\(\"(dropped|lost|arrived|marked)\"\).*/|\"lost\"\]\) */",
    "fairness": r"\.sum\(.*\) *\*\* *2 */|\*\* ?2\)\.sum\(.*\) \* ",
    "delay": r"p999?5?_s\"\).* - |p999?5?_s\"\] - ",
    "power": r"goodput.* / .*delay",
}
"""Expressions that only `aqmlab.metrics` may contain."""
LIVE = (Path("emulator/view.py"), Path("gym.py"))
"""Rates of running links, from two readings of their counters: there are no tables yet."""


def test_metrics_are_computed_in_one_layer() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{number}: {name}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.relative_to(PACKAGE).parts[0] != "metrics" and file.relative_to(PACKAGE) not in LIVE
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        for name, pattern in FORBIDDEN.items()
        if re.search(pattern, line)
    ]
    assert found == []

"""Results for pandas, Arrow and xarray, which aqmlab works without."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aqmlab

LINK = {"rate": "2mbit", "delay": "5ms"}
STUDY = {
    "name": "s",
    "replications": 2,
    "scenario": {
        "duration": "1s",
        "links": {"down": LINK, "up": LINK},
        "flows": {"a": {"path": "down", "return_path": "up"}},
    },
    "axes": [{"key": "queue", "values": ["droptail", "codel", "pie"]}],
}
ABSENT = {name: importlib.util.find_spec(name) is None for name in ("pandas", "pyarrow", "xarray")}


@pytest.fixture(scope="module")
def result() -> aqmlab.StudyResult:
    return aqmlab.study(STUDY)


def needs(*names: str) -> Callable[[Any], Any]:
    missing = [name for name in names if ABSENT[name]]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@needs("pandas", "pyarrow")
def test_tables_for_pandas(result: aqmlab.StudyResult) -> None:
    frame = result.to_pandas("links")
    assert list(frame.columns) == result.links.columns
    assert frame["sojourn_p95_s"].tolist() == result.links["sojourn_p95_s"].to_list()
    assert frame["queue"].tolist() == result.links["queue"].to_list()


@needs("pyarrow")
def test_tables_for_arrow(result: aqmlab.StudyResult) -> None:
    table = result.to_arrow("runs")
    assert table.column_names == result.runs.columns
    assert table.num_rows == result.runs.height == 6


@needs("xarray")
def test_metrics_for_xarray(result: aqmlab.StudyResult) -> None:
    data = result.to_xarray("goodput", "sojourn_p95")
    assert data["goodput"].dims == ("queue", "replication", "group")
    assert data["goodput"].attrs["unit"] == "bit/s"
    rows = aqmlab.metrics.values(result, "sojourn_p95")
    for run, subject, value in rows.iter_rows():
        point = {"queue": ("droptail", "codel", "pie")[run // 2], "replication": run % 2}
        assert float(data["sojourn_p95"].sel(link=subject, **point)) == value
    assert set(result.to_xarray().data_vars) == set(result.metrics["metric"])


@needs("xarray")
def test_numeric_axes_are_numbers(scenario: Path) -> None:
    axis = {"key": "queue.target", "values": ["2ms", "10ms"]}
    settings = {"scenario": str(scenario), "axes": [axis]}
    data = aqmlab.study(settings, set={"queue.discipline": "codel"}).to_xarray("goodput")
    assert data["target"].values.tolist() == [0.002, 0.01] and data["target"].attrs["unit"] == "s"
    middle = data["goodput"].interp(target=0.006)
    assert float(middle.mean()) == pytest.approx(float(data["goodput"].mean()))


@pytest.mark.skipif(not ABSENT["xarray"], reason="xarray is installed")
def test_xarray_is_named_where_it_is_missing(result: aqmlab.StudyResult) -> None:
    with pytest.raises(aqmlab.InputError, match="pip install xarray"):
        result.to_xarray("goodput")


@pytest.mark.skipif(not ABSENT["pyarrow"], reason="pyarrow is installed")
@pytest.mark.parametrize("method", ["to_pandas", "to_arrow"])
def test_arrow_is_named_where_it_is_missing(result: aqmlab.StudyResult, method: str) -> None:
    with pytest.raises(aqmlab.InputError, match="pip install p"):
        getattr(result, method)("runs")

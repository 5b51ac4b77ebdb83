"""Results for pandas, Arrow and xarray, which aqmlab works without."""

import importlib.util
from collections.abc import Callable
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
    assert data["goodput"].dims == ("queue", "replication", "subject")
    assert data["goodput"].attrs["unit"] == "bit/s"
    rows = aqmlab.measure.values(result, "sojourn_p95")
    for run, subject, value in rows.iter_rows():
        point = {"queue": ("droptail", "codel", "pie")[run // 2], "replication": run % 2}
        assert float(data["sojourn_p95"].sel(subject=subject, **point)) == value
    assert set(result.to_xarray().data_vars) == set(result.metrics["metric"])


def test_arrays_of_metrics_are_laid_out_by_axis(
    result: aqmlab.StudyResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with a stand-in for xarray, which runs where it is not installed."""

    class Arrays:
        @staticmethod
        def DataArray(values: Any, **about: Any) -> Any:
            return values, about

        @staticmethod
        def Dataset(found: dict[str, Any]) -> dict[str, Any]:
            return found

    monkeypatch.setattr("aqmlab.measure.grid.late", lambda name: Arrays)
    found: Any = result.to_xarray("goodput")
    values, about = found["goodput"]
    assert values.shape == (3, 2, 1) and about["dims"] == ["queue", "replication", "subject"]
    expected = result.metrics.filter(metric="goodput").sort("run")["value"].to_list()
    assert values.ravel().tolist() == expected


@pytest.mark.skipif(not ABSENT["xarray"], reason="xarray is installed")
def test_xarray_is_named_where_it_is_missing(result: aqmlab.StudyResult) -> None:
    with pytest.raises(aqmlab.InputError, match="pip install xarray"):
        result.to_xarray("goodput")


@pytest.mark.skipif(not ABSENT["pyarrow"], reason="pyarrow is installed")
@pytest.mark.parametrize("method", ["to_pandas", "to_arrow"])
def test_arrow_is_named_where_it_is_missing(result: aqmlab.StudyResult, method: str) -> None:
    with pytest.raises(aqmlab.InputError, match="pip install p"):
        getattr(result, method)("runs")

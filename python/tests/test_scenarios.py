"""Scenarios as objects equal scenario files, in both directions."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aqmlab
from aqmlab import _core
from aqmlab import scenario as scenarios
from aqmlab.scenario import Cubic, Duration, Part, Rate, Scenario, Size, classes
from aqmlab.scenario.parts import BASES, argument, class_name

EXAMPLES = Path(__file__).parents[2] / "examples"
TOOLS = Path(__file__).parents[2] / "tools"
texts = st.text(st.characters(blacklist_categories=("Cs",)), max_size=8)
plain = st.one_of(st.booleans(), st.integers(-9, 10**6), texts, st.floats(0, 9, width=16))
names = st.text("abcxyz_0", min_size=1, max_size=5)


@st.composite
def scenario_tables(draw: st.DrawFn) -> dict[str, Any]:
    """Tables as scenario files have them: every queue, workload and control with parameters."""
    by_section: dict[str, list[dict[str, Any]]] = {}
    for entry in aqmlab.reference():
        by_section.setdefault(entry["section"], []).append(entry)

    def part(section: str, key: str) -> Any:
        entry = draw(st.sampled_from(by_section[section]))
        some = (
            draw(st.lists(st.sampled_from(entry["params"]), max_size=2)) if entry["params"] else []
        )
        given = {each["name"]: draw(plain) for each in some}
        return draw(st.sampled_from([entry["name"], {key: entry["name"], **given}]))

    more = draw(st.dictionaries(st.sampled_from(["loss", "delay", "overhead"]), plain))
    link = {"rate": "10mbit", "queue": part("queue", "discipline"), **more}
    transport = {"congestion_control": part("congestion_control", "algorithm")}
    flow = {"path": ["a"], "workload": part("workload", "kind"), "transport": transport}
    return {
        "duration": "1s",
        "links": {"a": link, draw(st.one_of(names, texts)): {"rate": "1mbit"}},
        "flows": {"f": flow},
        "transport": transport,
        "record": {"level": "series"},
    }


@given(scenario_tables())
@settings(max_examples=150, deadline=None)
def test_objects_and_toml_are_the_same_both_ways(table: dict[str, Any]) -> None:
    scenario = Scenario.from_table(table)
    assert scenario.table() == table
    assert tomllib.loads(scenario.to_toml()) == table
    assert Scenario.from_toml(scenario.to_toml()) == scenario


@pytest.mark.parametrize("name", ["scenario", "lte"])
def test_examples_resolve_alike(name: str) -> None:
    text = (EXAMPLES / f"{name}.toml").read_text()
    theirs = _core.Scenario(text, folders=[str(EXAMPLES)]).resolved
    made = Scenario.from_toml(text)
    again = _core.Scenario(made.to_toml(), folders=[str(EXAMPLES)]).resolved
    assert json.loads(again) == json.loads(theirs)
    assert all(type(link).__name__ == "Link" for link in made.links.values())


def test_a_scenario_of_objects_runs_as_its_file() -> None:
    link = scenarios.Link(rate="10mbit", delay="10ms", queue=scenarios.CoDel(target="2ms"))
    flow = scenarios.Flow(path="a", return_path="b", count=2)
    links = {"a": link, "b": scenarios.Link(rate="1mbit", delay="1ms")}
    made = Scenario(duration="2s", bottleneck="a", links=links, flows={"f": flow})
    assert json.loads(made.check().resolved)["links"]["a"]["queue"]["target"] == "2ms"
    assert aqmlab.run(made).links.equals(aqmlab.run(tomllib.loads(made.to_toml())).links)
    assert repr(link).startswith("Link(rate='10mbit', delay='10ms', queue=CoDel(target='2ms')")
    assert pickle.loads(pickle.dumps(made)) == made
    assert pickle.loads(pickle.dumps(made.check())).resolved == made.check().resolved
    assert made.resolved.resolved == made.resolved != made


class Mine(aqmlab.Queue):
    """A queue without a limit."""

    def __init__(self, link: Any) -> None:
        self.packets: list[Any] = []

    def enqueue(self, packet: Any, cx: Any) -> None:
        self.packets.append(packet)

    def dequeue(self, cx: Any) -> Any:
        return self.packets.pop(0) if self.packets else None


def test_a_scenario_with_a_class_of_the_user_is_written_with_its_name() -> None:
    made = Scenario.dumbbell("10mbit", "20ms", queue=Mine, duration="1s", bulk=2)
    written = Scenario.from_toml(made.to_toml())
    assert written.table()["links"]["down"]["queue"] == f"{__name__}:Mine"
    assert aqmlab.run(written).links.equals(aqmlab.run(made).links)


def test_every_entry_has_a_class_with_its_parameters() -> None:
    entries = [each for each in aqmlab.reference() if each["section"] in BASES]
    assert len({class_name(each) for each in entries}) == len(entries)
    for entry in entries:
        text = classes()[class_name(entry)].__doc__ or ""
        for param in entry["params"]:
            assert f"\n{argument(param['name'])} : " in text and param["source"] in text


def test_the_module_of_the_classes_hides_nothing() -> None:
    """An editor may import from it; it was called like the function `classes`."""
    generated = importlib.import_module("aqmlab.scenario.generated")
    assert {each: getattr(generated, each) for each in classes()} == scenarios.classes()
    assert scenarios.Link is generated.Link


def test_the_stub_is_up_to_date() -> None:
    command = [sys.executable, str(TOOLS / "scenario_stub.py"), "--check"]
    subprocess.run(command, check=True)


def test_mistakes_are_named() -> None:
    with pytest.raises(TypeError, match="targt"):
        classes()["CoDel"](targt="2ms")
    with pytest.raises(aqmlab.InputError, match="did you mean `target`"):
        scenarios.parts.part("queue", {"discipline": "codel", "targt": "2ms"})
    link: dict[str, Any] = {"rate": "1mbit", "queue": {"discipline": "codel", "targt": "2ms"}}
    with pytest.raises(aqmlab.InputError, match=r"links\.a\.queue\.targt: unknown key"):
        Scenario.from_table({"links": {"a": link}, "flows": {"f": {"path": "a"}}})
    with pytest.raises(aqmlab.InputError, match="links"):
        Scenario.from_table({"flows": {}})
    with pytest.raises(aqmlab.InputError, match="did you mean `duration`"):
        Scenario.from_table({"links": {}, "flows": {}, "duratoin": "1s"})


def test_a_parameter_that_is_none_cannot_be_set() -> None:
    codel = scenarios.CoDel()
    codel.target = "2ms"
    with pytest.raises(aqmlab.InputError, match=r"^CoDel: `targt`: unknown .* `target`\?"):
        codel.targt = "3ms"  # type: ignore[attr-defined]
    assert codel == scenarios.CoDel(target="2ms")


def test_quantities() -> None:
    assert Rate("10mbit") == Rate(10e6) and str(Rate(10e6)) == "10mbit"
    assert Duration(timedelta(milliseconds=5)) == Duration("5ms") < Duration(0.1)
    rate, time = Rate("10mbit"), Duration("100ms")
    assert rate * time == time * rate == Size(125_000)  # type: ignore[operator]
    assert 2 * Size("750b") == Size("1500b") == Size(3000) / 2
    assert float(Duration("5ms") + Duration("1s")) == 1.005
    assert len({Rate("1mbit"), Rate(1e6), Size(1_000_000)}) == 2
    with pytest.raises(aqmlab.InputError, match="not mbps"):
        Rate("10mbps")
    for wrong, error in ((True, TypeError), (Size(1), TypeError), (-1, aqmlab.InputError)):
        with pytest.raises(error):
            Rate(wrong)  # type: ignore[arg-type]
    assert Rate(np.int64(10)) == Rate(np.float32(10)) == Rate(10)  # type: ignore[arg-type]
    assert Duration(np.timedelta64(5, "ms")) == Duration("5ms")  # type: ignore[arg-type]
    for factor in (-1, float("nan"), 1e30):
        with pytest.raises(aqmlab.InputError, match="expected a"):
            Rate(1) * factor
    with pytest.raises(TypeError):
        Rate(1) < Size(2)  # type: ignore[operator]  # noqa: B015


@given(st.integers(0, 2**53))
def test_the_text_of_a_quantity_reads_back(count: int) -> None:
    for kind in (Rate, Size, Duration):
        exact = kind(f"{count}{kind.suffix}")
        assert kind(str(exact)) == exact == pickle.loads(pickle.dumps(exact))


def test_studies_take_objects_quantities_and_numbers() -> None:
    link = scenarios.Link(rate="1mbit", delay="5ms", queue="codel")
    flow = scenarios.Flow(path="a", return_path="a", transport={"congestion_control": Cubic()})
    base = Scenario(duration="1s", links={"a": link}, flows={"f": flow})
    queues: list[Part] = [scenarios.CoDel(target=Duration("2ms")), scenarios.Pie()]
    axes = {
        "queue": queues,
        "links.a.rate": [Rate("1mbit"), Rate("2mbit")],
        "links.a.queue.limit": [Size(30000), "60kb"],
        "duration": ["1s", "500ms"],
    }
    result = aqmlab.study({"scenario": base, "axes": axes})
    assert dict(result.info.axes)["queue"] == ("codel target=2ms", "pie")
    assert result.scenarios[0]["links"]["a"]["queue"]["target"] == "2ms"
    assert result.numeric_axes == {
        "rate": ([1e6, 2e6], "bit/s"),
        "limit": ([30000.0, 61440.0], "bytes"),
        "duration": ([1.0, 0.5], "s"),
    }
    first = result.runs.row(2, named=True)
    assert (first["rate_value"], first["limit_value"], first["duration_value"]) == (
        1e6,
        61440.0,
        1.0,
    )
    alone = aqmlab.study(base)
    assert alone.info.points == 1 and alone.runs.height == 1


def test_values_may_be_objects_and_arrays(tmp_path: Path) -> None:
    some = scenarios.Flow(count=2, path="down", return_path="up")
    base = Scenario.dumbbell("1mbit", "10ms", duration="1s", some=some)
    queue = scenarios.CoDel(target=Duration("2ms"))
    settings = {"queue": queue, "up.rate": Rate(2e6), "flows.some.count": np.int64(3)}
    record = scenarios.Record(level="series", interval=timedelta(milliseconds=500))
    run = aqmlab.run(base, set=settings, seed=np.int64(7), record=record)
    assert run.scenario["links"]["down"]["queue"]["target"] == "2ms"
    assert (run.scenario["links"]["up"]["rate"], run.flows.height) == ("2mbit", 3)
    assert (int(run.scenario["seed"]), run.scenario["record"]["interval"]) == (7, "500ms")
    table = {"links": dict(base.links), "flows": base.flows, "duration": Duration(1)}
    assert aqmlab.run(table).flows.height == 2
    stepped = aqmlab.Run(base)
    stepped.set("links.down.rate", Rate("2mbit"))
    stepped.replace("queue", queue)
    for number in (-1, 1 << 64):
        for take in (aqmlab.run, aqmlab.Run):
            with pytest.raises(aqmlab.InputError, match="expected a whole number from 0"):
                take(base, replication=number)

    base.write(tmp_path / "base.toml")
    for values in (np.arange(1, 3), pl.Series([1, 2]), range(1, 3)):
        axis = {"name": "n", "key": "flows.some.count", "values": values}
        given = {"scenario": tmp_path / "base.toml", "axes": (axis,), "replications": np.int64(2)}
        study = aqmlab.Study(given, set={"up.rate": Rate(2e6)}, only={"n": [2]}, seed=np.int64(7))
        assert [point.labels for point in study.points] == [{"n": "2"}] and study.total == 2


def test_values_are_kept_of_axes_and_added_to_them() -> None:
    base = Scenario.dumbbell("1mbit", "10ms", duration="1s", some=1)
    queues = {"scenario": base, "axes": {"queue": [scenarios.CoDel(), scenarios.Pie()]}}
    for only in ("pie", ["pie"], [scenarios.Pie()]):
        kept = aqmlab.Study(queues, only={"queue": only})
        assert kept.axes[0].labels == ["pie"]
    added = aqmlab.Study(queues, add={"queue": ["red"]})
    assert added.axes[0].labels == ["codel", "pie", "red"]
    with pytest.raises(aqmlab.InputError, match="did you mean `queue`"):
        aqmlab.Study(queues, add={"quue": ["red"]})
    with pytest.raises(aqmlab.InputError, match="at least one label"):
        aqmlab.Study(queues, only={"queue": []})
    with pytest.raises(aqmlab.InputError, match=r'name = "my_count", key = "flows.some.count"'):
        aqmlab.Study({"scenario": base, "axes": {"flows.some.count": [1, 2]}})

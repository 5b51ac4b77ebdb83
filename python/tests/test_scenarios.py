"""Scenarios as objects are the same as scenario files, both ways."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aqmlab
from aqmlab import scenarios
from aqmlab.scenarios import Scenario, classes

EXAMPLES = Path(__file__).parents[2] / "examples"
texts = st.text(st.characters(blacklist_categories=("Cs",)), max_size=8)
plain = st.one_of(st.booleans(), st.integers(-9, 10**6), texts, st.floats(0, 9, width=16))
names = st.text("abcxyz_0", min_size=1, max_size=5)
values = st.one_of(plain, st.lists(plain, max_size=2))
tables = st.dictionaries(st.one_of(names, texts), values, max_size=3)


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

    link = {"rate": "10mbit", "queue": part("queue", "discipline"), **draw(tables)}
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
    theirs = aqmlab.Scenario(text, folders=[str(EXAMPLES)]).resolved
    made = Scenario.from_toml(text)
    again = aqmlab.Scenario(made.to_toml(), folders=[str(EXAMPLES)]).resolved
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


def test_every_entry_has_a_class_with_its_parameters() -> None:
    found = {(each.section, each.entry): each for each in scenarios._entries().values()}
    for entry in aqmlab.reference():
        if entry["section"] in scenarios.KINDS:
            text = found[entry["section"], entry["name"]].__doc__ or ""
            for param in entry["params"]:
                assert f"{param['name']}: " in text and param["source"] in text
    assert len({made.__name__ for made in found.values()}) == len(found)
    assert "source" in (classes()["Link"].__doc__ or "")
    with pytest.raises(aqmlab.InputError, match="did you mean `beta_ecn`"):
        scenarios.Reno(beta_ecm=0.5)
    with pytest.raises(aqmlab.InputError, match="target"):
        queue = scenarios.CoDel(targt="2ms")
        link = scenarios.Link(rate="1mbit", delay="1ms", queue=queue)
        Scenario(links={"a": link}, flows={}).check()

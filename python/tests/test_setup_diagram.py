"""The picture of a set-up follows from the paths of the flows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aqmlab._core import Scenario
from aqmlab.report.setup_diagram import DiagramLayout, caption, diagram, hosts
from aqmlab.reproduce.published import Published


def resolved(name: str, *only: str) -> dict[str, Any]:
    study = next(iter(Published.load(name).studies(only).values()))
    table: dict[str, Any] = json.loads(study.points[0].scenario.resolved)
    return table


def edges(layout: DiagramLayout) -> dict[str, tuple[int, int]]:
    return {edge.name: (edge.begin, edge.end) for edge in layout.edges}


def test_a_link_and_the_way_back_join_the_same_nodes() -> None:
    layout = DiagramLayout(resolved("jarvinen2014", "rest=11 ms", "queue=CoDel", "flows=4+4"))
    found = edges(layout)
    assert found["core_down"][1] == found["down"][0] and found["up"] == found["down"][::-1]
    assert len(layout.places) == 3 and not layout.apart
    columns = [layout.places[node][0] for node in (*found["core_down"], found["down"][1])]
    assert columns == [0.0, 1.0, 2.0]


def test_figure_1_of_the_dumbbell() -> None:
    """Two wings on either side, and a shared return path that is named, not drawn."""
    scenario = resolved("kuhn2014", "quick", "queue=CoDel", "control=CUBIC")
    layout = DiagramLayout(scenario)
    found = edges(layout)
    assert found["wing_transfer"][1] == found["wing_background"][1] == found["centre"][0]
    assert found["centre"][1] == found["far_transfer"][0] == found["far_background"][0]
    assert len(layout.places) == 6
    assert [edge.name for edge in layout.apart] == ["back_centre", "back_wings"]
    assert "back_centre, 1mbit, 25ms" in caption(scenario)
    said = hosts(layout)
    assert said[found["wing_background"][0]] == ["80 × background (pareto-onoff, cubic) →"]
    assert said[found["far_background"][1]] == ["→ background"]


def test_flows_both_ways_begin_on_both_sides() -> None:
    layout = DiagramLayout(resolved("monga2016", "paper", "queue=CoDel", "where=10 Mbit/s"))
    begin, end = edges(layout)["down"]
    said = hosts(layout)
    assert "5 × ftp (bulk, reno) →" in said[begin] and "→ ftp" in said[end]
    assert "5 × ftp_back (bulk, reno) →" in said[end] and "→ ftp_back" in said[begin]


@pytest.mark.parametrize("path", [["a"], ["a", "b"], ["a", "b", "c"]])
def test_a_parking_lot_keeps_its_order(path: list[str]) -> None:
    link = {"rate": "10mbit", "delay": "5ms"}
    flows = {name: {"path": [name], "return_path": ["up"]} for name in path}
    flows["all"] = {"path": path, "return_path": ["up"]}
    table = {"duration": "1s", "links": dict.fromkeys((*path, "up"), link), "flows": flows}
    scenario = json.loads(Scenario(table).resolved)
    layout = DiagramLayout(scenario)
    columns = [layout.places[edges(layout)[name][0]][0] for name in path]
    assert columns == [float(number) for number in range(len(path))]
    spec = diagram(scenario)
    drawn = {each["text"][0] for layer in spec["layer"] for each in layer["data"]["values"]
             if isinstance(each.get("text"), list)}  # fmt: skip
    assert set(path) <= drawn
    (red,) = {each["text"][0] for each in spec["layer"][0]["data"]["values"]
              if each["colour"] == "#c0392b"}  # fmt: skip
    assert red == scenario["bottleneck"]


def test_a_bottleneck_that_is_not_drawn_is_not_called_red() -> None:
    link = {"rate": "10mbit", "delay": "5ms"}
    flows = {name: {"path": [name], "return_path": ["up"]} for name in "ab"}
    table = {"duration": "1s", "links": dict.fromkeys(("a", "b", "up"), link), "flows": flows}
    told = [caption(json.loads(Scenario(table | {"bottleneck": name}).resolved))
            for name in ("a", "up")]  # fmt: skip
    assert ["red is" in each for each in told] == [True, False]
    assert all("Not drawn, on the return path: up, 10mbit" in each for each in told)

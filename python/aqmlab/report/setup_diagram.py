"""The set-up of a scenario as a picture: nodes, links with rate, delay and queue, groups of flows.

A scenario names links and the paths of its flows; the nodes follow from these. Where one link
follows another in a path, the end of the one is the beginning of the other; a link and the link
back beside it join the same two nodes. The picture is a Vega-Lite specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Scenario = Mapping[str, Any]
"""With every default filled in, as `Scenario.resolved` has it."""
End = tuple[str, int]
"""A link and which end of it: 0 where packets enter, 1 where they leave."""

WIDTH, ROW = 760, 120
ACCENT, PLAIN, HOST = "#c0392b", "#5b7083", "#2f6fbb"
APART = 0.16
"""Distance of a link and the one in reverse direction, in rows."""
MOST_HOSTS = 9
WORDS = {"fontSize": 11, "lineHeight": 14}


@dataclass(frozen=True)
class Edge:
    """A link between two nodes."""

    name: str
    begin: int
    end: int
    label: tuple[str, ...]
    bottleneck: bool


class DiagramLayout:
    """Nodes with places, and links between them."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.flows: Mapping[str, Any] = scenario["flows"]
        paths = [flow[key] for flow in self.flows.values() for key in ("path", "return_path")]
        on = {name for path in paths for name in path}
        self.used = [name for name in scenario["links"] if name in on]
        """The links on any path, in the scenario's order."""
        ends = [(name, side) for name in self.used for side in (0, 1)]
        self._parent: dict[End, End] = dict(zip(ends, ends, strict=True))
        for path in paths:
            for one, other in pairwise(path):
                self._join((one, 1), (other, 0))
        for flow in self.flows.values():
            self._join_back(flow["path"], flow["return_path"])
        roots = list(dict.fromkeys(self._root(end) for end in self._parent))
        self.nodes = {root: number for number, root in enumerate(roots)}
        edges = [self._edge(name) for name in self.used]
        there = {name for flow in self.flows.values() for name in flow["path"]}
        on_way = {node for e in edges if e.name in there for node in (e.begin, e.end)}
        self.edges = [edge for edge in edges if {edge.begin, edge.end} <= on_way]
        self.apart = [edge for edge in edges if edge not in self.edges]
        """Links of a return path that joins the hosts of several groups: named, not drawn."""
        self.places = self._places()
        self.columns = max((column for column, _ in self.places.values()), default=0.0)

    def side(self, node: int) -> int:
        """Where the words of a node stand: 0 left of it, 1 right, 2 below."""
        column = self.places[node][0]
        return 0 if column == 0 else 1 if column == self.columns else 2

    def node(self, link: str, side: int) -> int:
        """The node at an end of a link."""
        return self.nodes[self._root((link, side))]

    def _root(self, end: End) -> End:
        while self._parent[end] != end:
            end = self._parent[end]
        return end

    def _join(self, one: End, other: End) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parent[second] = first

    def _join_back(self, path: Sequence[str], back: Sequence[str]) -> None:
        """Joins the return path to the hosts of the forward path.

        Nodes that links or hosts of the forward path keep apart are not joined."""
        pairs = [((path[-1], 1), (back[0], 0)), ((path[0], 0), (back[-1], 1))]
        if len(path) == len(back):
            for there, here in zip(path, reversed(back), strict=True):
                pairs += [((there, 0), (here, 1)), ((there, 1), (here, 0))]
        for one, other in pairs:
            if self._root(one) != self._root(other) and not self._parts(one, other):
                self._join(one, other)

    def _parts(self, one: End, other: End) -> bool:
        """True if two groups of flows begin, or end, at different ones of these nodes; or a link
        would begin where it ends."""
        roots = self._root(one), self._root(other)
        for side, place in ((0, 0), (1, -1)):
            known = {self._root((f["path"][place], side)) for f in self.flows.values()}
            if known >= set(roots):
                return True
        return any({self._root((n, 0)), self._root((n, 1))} == set(roots) for n in self.used)

    def _edge(self, name: str) -> Edge:
        link = self.scenario["links"][name]
        own = name == self.scenario["bottleneck"]
        delay = link["delay"] if isinstance(link["delay"], str) else "delay that changes"
        label = (name, f"{_rate(link['rate'])}, {delay}", _queue(link["queue"]))
        return Edge(name, self.node(name, 0), self.node(name, 1), label, own)

    def _forwards(self) -> list[Edge]:
        """Links of the forward paths of the flows over the bottleneck, or of all flows."""
        first = [f["path"] for f in self.flows.values() if self.scenario["bottleneck"] in f["path"]]
        on = {name for path in first or [f["path"] for f in self.flows.values()] for name in path}
        return [edge for edge in self.edges if edge.name in on]

    def _places(self) -> dict[int, tuple[float, float]]:
        """Node to column and row: as many columns from the left as links lead to it."""
        forwards = self._forwards()
        column = {edge.begin: 0 for edge in forwards}
        for _ in self.edges:
            for edge in forwards:
                if edge.begin in column and edge.begin != edge.end:
                    column[edge.end] = max(column.get(edge.end, 0), column[edge.begin] + 1)
            if max(column.values(), default=0) > len(self.edges):
                break
        for edge in self.edges:
            for node in (edge.begin, edge.end):
                column.setdefault(node, 0)
        columns: dict[int, list[int]] = {}
        for node in sorted(column):
            columns.setdefault(column[node], []).append(node)
        rows = max(map(len, columns.values()))
        return {
            node: (float(place), (row + 0.5) * rows / len(nodes) - 0.5)
            for place, nodes in columns.items()
            for row, node in enumerate(nodes)
        }


def _rate(rate: Any) -> str:
    if isinstance(rate, str):
        return rate
    if "steps" in rate:
        rates = [each.split()[-1] for each in str(rate["steps"]).split(", ")]
        return "/".join(rates).replace("mbit/", "/") if len(rates) <= 6 else f"{len(rates)} rates"
    return str(rate.get("process", "a trace" if "trace" in rate else "a file"))


def _queue(queue: Mapping[str, Any]) -> str:
    limit = str(queue.get("limit", ""))
    shown = f" {limit}" if limit not in ("", "none") else ""
    return f"{queue['discipline']}{shown}"


def _kind(flow: Mapping[str, Any]) -> str:
    """`5 x bulk (reno)`, with the workload and the control where it uses one."""
    kind = flow["workload"]["kind"]
    control = flow.get("transport", {}).get("congestion_control", {}).get("algorithm", "")
    control = flow.get("endpoint", {}).get("kind", control)
    datagrams = kind in ("cbr", "voip", "probe", "game") or flow["workload"].get("over") == "udp"
    rate = f" {flow['workload']['rate']}" if kind == "cbr" else ""
    return f"{kind}{rate}" if datagrams or not control else f"{kind}, {control}"


def hosts(layout: DiagramLayout) -> dict[int, list[str]]:
    """What the hosts at each node do: a line a group, with an arrow away or towards it."""
    said: dict[int, list[str]] = {}
    for name, flow in layout.flows.items():
        count = "" if str(flow["count"]) == "1" else f"{flow['count']} × "
        begin, end = layout.node(flow["path"][0], 0), layout.node(flow["path"][-1], 1)
        said.setdefault(begin, []).append(f"{count}{name} ({_kind(flow)}) →")
        said.setdefault(end, []).append(f"→ {name}")
    return {
        node: lines if len(lines) <= MOST_HOSTS else [*lines[: MOST_HOSTS - 1], "and others"]
        for node, lines in said.items()
    }


def diagram(scenario: Scenario) -> dict[str, Any]:
    """The picture of a scenario with every default filled in."""
    layout = DiagramLayout(scenario)
    rows = max((row for _, row in layout.places.values()), default=0.0) + 1
    said = hosts(layout)
    short = {node: [part for line in lines for part in re.split(r" (?=\()", line)]
             for node, lines in said.items()}  # fmt: skip
    (domain, least), narrow = _across(layout, said), _across(layout, short)
    x = {"field": "x", "type": "quantitative", "axis": None,
         "scale": {"domain": domain, "nice": False, "zero": False}}  # fmt: skip
    y = {"field": "y", "type": "quantitative", "axis": None,
         "scale": {"domain": [rows - 0.25, -0.75], "nice": False, "zero": False}}  # fmt: skip
    edges = list(_edges(layout))
    place = {"x": x, "y": y}
    colour = {"color": {"field": "colour", "type": "nominal", "scale": None}}
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    angle = {"angle": {"field": "angle", "type": "quantitative", "scale": None}}
    words = place | {"text": {"field": "text"}} | colour
    tips = [each | {"x": each["tip"], "y": each["tip_y"]} for each in edges]
    labels = [each | {"x": each["middle"], "y": each["middle_y"]} for each in edges]
    over, under = ([each for each in labels if each["over"] == side] for side in (True, False))
    nodes = [{"x": a, "y": b, "colour": HOST} for a, b in layout.places.values()]
    marks: list[dict[str, Any]] = [
        _marks("rule", edges, place | ends | colour, strokeWidth=2.5),
        _marks("point", tips, place | colour | angle, shape="triangle-right", filled=True, size=90,
               opacity=1),
        _marks("text", over, words, **WORDS, align="center", baseline="bottom", dy=-34),
        _marks("text", under, words, **WORDS, align="center", baseline="top", dy=8),
        _marks("circle", nodes, place | colour, size=260, opacity=1),
    ]  # fmt: skip
    for align, dx, side in (("right", -14, 0), ("left", 14, 1), ("center", 0, 2)):
        values = [
            {"x": layout.places[node][0], "y": layout.places[node][1],
             "text": lines, "colour": HOST}
            for node, lines in said.items() if layout.side(node) == side
        ]  # fmt: skip
        # Vega puts the first of several lines there.
        first = {"expr": f"{-WORDS['lineHeight'] / 2} * (length(datum.text) - 1)"}
        below = {"baseline": "top", "dy": 14} if side == 2 else {"baseline": "middle", "dy": first}
        marks.append(_marks("text", values, words, **WORDS, align=align, dx=dx, **below))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": WIDTH,
        "height": _height(layout, said, rows),
        "view": {"stroke": None},
        # On a narrow page, the words in parentheses have lines of their own.
        "usermeta": {"least": least,
                     "narrow": {"domain": narrow[0], "least": narrow[1],
                                "height": _height(layout, short, rows)}},
        "layer": marks,
    }  # fmt: skip


LETTER = 6.4
"""Pixels of a letter of the words beside nodes, in a wide font."""
SIDE = 0.18
"""Least share of the width on either side of the outer nodes."""
LINK = 110
"""Least length of a link in pixels: its words fit above it."""


def _across(layout: DiagramLayout, said: Mapping[int, Sequence[str]]) -> tuple[Any, int]:
    """The domain of x, with room for the words on both sides, and the least width in pixels."""
    columns = layout.columns
    if columns == 0:
        return [-0.55, 0.55], 0
    left, right = (
        24 + LETTER * max(
            (len(line) for node, lines in said.items() if layout.side(node) == side
             for line in lines),
            default=0,
        )
        for side in (0, 1)
    )  # fmt: skip
    before, after = (f"max({words:.0f}, {SIDE} * width)" for words in (left, right))
    unit = f"{columns} / max(width - {before} - {after}, 0.3 * width)"
    domain = {"expr": f"[-{before} * {unit}, {columns} + {after} * {unit}]"}
    return domain, int(left + right + LINK * columns)


def _height(layout: DiagramLayout, said: Mapping[int, Sequence[str]], rows: float) -> int:
    """The height in pixels, with room for the words of every node."""
    heights = [ROW * rows + 60]
    for node, lines in said.items():
        row, words = layout.places[node][1], WORDS["lineHeight"] * len(lines) + 8
        below = words + 14 if layout.side(node) == 2 else words / 2
        heights += [below * (rows + 0.5) / (rows - 0.25 - row)]
        if layout.side(node) != 2:
            heights += [below * (rows + 0.5) / (row + 0.75)]
    return int(max(heights)) + 1


def _marks(kind: str, values: list[dict[str, Any]], encoding: Any, **style: Any) -> dict[str, Any]:
    """Marks whose values have lists, which `vega.layer` cannot write."""
    return {"data": {"values": values}, "mark": {"type": kind, **style}, "encoding": encoding}


def _edges(layout: DiagramLayout) -> Iterator[dict[str, Any]]:
    """The links as lines; those between the same two nodes lie beside each other."""
    between: dict[frozenset[int], list[Edge]] = {}
    for edge in layout.edges:
        between.setdefault(frozenset((edge.begin, edge.end)), []).append(edge)
    centre = sum(row for _, row in layout.places.values()) / len(layout.places)
    for group in between.values():
        for number, edge in enumerate(group):
            shift = (number - (len(group) - 1) / 2) * 2 * APART
            (x, y), (x2, y2) = layout.places[edge.begin], layout.places[edge.end]
            rightwards = x2 >= x
            over = shift < 0 or (len(group) == 1 and (y + y2) / 2 <= centre)
            # The words of a slanted line stand further out.
            out = (-0.1 if over else 0.1) if y != y2 else 0.0
            yield {
                "x": x, "y": y + shift, "x2": x2, "y2": y2 + shift,
                "tip": x + 0.8 * (x2 - x), "tip_y": y + shift + 0.8 * (y2 - y),
                "middle": (x + x2) / 2, "middle_y": (y + y2) / 2 + shift + out,
                "angle": 0 if rightwards else 180,
                "over": over,
                "text": list(edge.label),
                "colour": ACCENT if edge.bottleneck else PLAIN,
            }  # fmt: skip


def caption(scenario: Scenario) -> str:
    """Explanation of the picture of a scenario."""
    apart = [", ".join(edge.label) for edge in DiagramLayout(scenario).apart]
    back = f" Not drawn, on the return path: {'; '.join(apart)}." if apart else ""
    return (
        "Lines are links, with rate, one-way delay, queue and its limit; red is the bottleneck, "
        f"{scenario['bottleneck']}. Words beside the nodes are the groups of flows that begin (→ "
        "after the name) and end there. Nodes follow from the paths of the flows."
        f"{back}"
    )

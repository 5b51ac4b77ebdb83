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
"""Half of the distance of a link and the one in reverse direction, in rows."""
BESIDE = 0.5
"""Distance of further links below these, with room for the words between, in rows."""
BEND = 0.25
"""Share of a link between two rows that is not level."""
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
        shared = {name for flow in self.flows.values() if not self._returns(flow)
                  for name in flow["return_path"]}  # fmt: skip
        self.edges = [edge for edge in edges if edge.name in there or edge.name not in shared]
        self.apart = [edge for edge in edges if edge not in self.edges]
        """Links of a return path that joins the hosts of several groups: named, not drawn."""
        self.between: dict[frozenset[int], list[Edge]] = {}
        """The links between the same two nodes, by these."""
        for edge in self.edges:
            self.between.setdefault(frozenset((edge.begin, edge.end)), []).append(edge)
        self.places = self._places()
        self.columns = max((column for column, _ in self.places.values()), default=0.0)

    def side(self, node: int) -> int:
        """Where the words of a node stand: 0 left of it, 1 right, 2 below all links, 3 above."""
        column, row = self.places[node]
        if column in (0, self.columns):
            return 0 if column == 0 else 1
        return 3 if any(c == column and r > row for c, r in self.places.values()) else 2

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

    def _returns(self, flow: Mapping[str, Any]) -> bool:
        """True if the return path of a group joins the ends of its path."""
        path, back = flow["path"], flow["return_path"]
        begin, end = self.node(path[0], 0), self.node(path[-1], 1)
        return (self.node(back[-1], 1), self.node(back[0], 0)) == (begin, end)

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
        for edge in [each for each in self.edges for _ in self.edges]:
            if edge.end in column:
                column.setdefault(edge.begin, max(column[edge.end] - 1, 0))
            column.setdefault(edge.end, column.setdefault(edge.begin, 0) + 1)
        columns: dict[int, list[int]] = {}
        for node in sorted(column):
            columns.setdefault(column[node], []).append(node)
        rows = max(map(len, columns.values()))
        apart = 1.0 + BESIDE * (max(map(len, self.between.values()), default=1) - 1)
        return {
            node: (float(place), ((row + 0.5) * rows / len(nodes) - 0.5) * apart)
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
    said, edges = hosts(layout), list(_edges(layout))
    short = {node: [part for line in lines for part in re.split(r" (?=\()", line)]
             for node, lines in said.items()}  # fmt: skip
    (domain, least), narrow = _across(layout, said), _across(layout, short)
    down, narrow_down = _down(layout, edges, said), _down(layout, edges, short)
    above, below = _beyond(layout, edges)
    x = {"field": "x", "type": "quantitative", "axis": None,
         "scale": {"domain": domain, "nice": False, "zero": False}}  # fmt: skip
    y = {"field": "y", "type": "quantitative", "axis": None,
         "scale": {"domain": down, "nice": False, "zero": False}}  # fmt: skip
    place = {"x": x, "y": y}
    colour = {"color": {"field": "colour", "type": "nominal", "scale": None}}
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    angle = {"angle": {"field": "angle", "type": "quantitative", "scale": None}}
    words = place | {"text": {"field": "text"}} | colour
    parts = [each | {"x2": each["bend"], "y2": each["level"]} for each in edges]
    parts += [each | {"x": each["bend"], "y": each["level"]} for each in edges]
    tips = [each | {"x": each["tip"], "y": each["level"]} for each in edges]
    labels = [each | {"x": each["middle"], "y": each["level"]} for each in edges]
    over, under = ([each for each in labels if each["over"] == side] for side in (True, False))
    nodes = [{"x": a, "y": b, "colour": HOST} for a, b in layout.places.values()]
    marks: list[dict[str, Any]] = [
        _marks("rule", parts, place | ends | colour, strokeWidth=2.5),
        _marks("point", tips, place | colour | angle, shape="triangle-right", filled=True, size=90,
               opacity=1),
        _marks("text", over, words, **WORDS, align="center", baseline="bottom", dy=-38),
        _marks("text", under, words, **WORDS, align="center", baseline="top", dy=8),
        _marks("circle", nodes, place | colour, size=260, opacity=1),
    ]  # fmt: skip
    # Vega puts the first of several lines there.
    first = {"expr": f"{-WORDS['lineHeight'] / 2} * (length(datum.text) - 1)"}
    last = {"expr": f"{-WORDS['lineHeight']} * (length(datum.text) - 1) - 4"}
    styles: tuple[dict[str, Any], ...] = (
        {"align": "right", "dx": -14, "baseline": "middle", "dy": first},
        {"align": "left", "dx": 14, "baseline": "middle", "dy": first},
        {"align": "center", "baseline": "top", "dy": 4},
        {"align": "center", "baseline": "bottom", "dy": last},
    )
    for side, style in enumerate(styles):
        values = [
            {"x": x, "y": (y, y, below, above)[side], "y2": y, "text": said[node], "colour": HOST}
            for node, (x, y) in layout.places.items()
            if node in said and layout.side(node) == side
        ]
        marks.append(_marks("text", values, words, **WORDS, **style))
        if side > 1:
            leader = place | {"y2": {"field": "y2"}} | colour
            marks.append(_marks("rule", values, leader, strokeWidth=1, strokeDash=[2, 3]))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": max(WIDTH, least),
        "height": round(ROW * (down[0] - down[1])),
        "view": {"stroke": None},
        # On a narrow page, the words in parentheses have lines of their own.
        "usermeta": {"least": least,
                     "narrow": {"x": narrow[0], "y": narrow_down, "least": narrow[1],
                                "height": round(ROW * (narrow_down[0] - narrow_down[1]))}},
        "layer": marks,
    }  # fmt: skip


LETTER = 6.4
"""Pixels of a letter of the words beside nodes, in a wide font."""
SIDE = 0.18
"""Least share of the width on either side of the outer nodes."""
SMALL = 5.6
"""Pixels of a letter of the words of links, which have many narrow ones."""
WORDS_OF_LINK = 57
"""Pixels from a link to the far end of its words."""


def _beyond(layout: DiagramLayout, edges: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The rows above and below all nodes, links and words of links."""
    rows = [row + side for _, row in layout.places.values() for side in (-0.15, 0.15)]
    rows += [each[end] + side for each in edges for end in ("y", "y2") for side in (-0.08, 0.08)]
    words = {True: -WORDS_OF_LINK / ROW, False: WORDS_OF_LINK / ROW}
    rows += [each["level"] + words[each["over"]] for each in edges]
    return min(rows), max(rows)


def _down(
    layout: DiagramLayout, edges: Sequence[Mapping[str, Any]], said: Mapping[int, Sequence[str]]
) -> list[float]:
    """The domain of y, the lower end first, with room for the words of every node."""
    above, below = _beyond(layout, edges)
    rows = [above, below]
    for node, lines in said.items():
        row, words = layout.places[node][1], WORDS["lineHeight"] * len(lines) / ROW
        rows += {2: (below + words,), 3: (above - words,)}.get(
            layout.side(node), (row - words / 2, row + words / 2)
        )
    return [round(max(rows) + 0.1, 3), round(min(rows) - 0.1, 3)]


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
    # Words of middle nodes next to each other are in one line.
    middle = [line for node, lines in said.items() if layout.side(node) > 1 for line in lines]
    inner = [(LETTER * len(line) + 12) / (1 if columns > 2 else 2) for line in middle]
    inner += [
        (SMALL * max(map(len, edge.label)) + 24) / (1 - BEND * (one != other))
        for edge in layout.edges
        for one, other in [(layout.places[edge.begin][1], layout.places[edge.end][1])]
    ]
    return domain, int(left + right + max(inner, default=0) * columns)


def _marks(kind: str, values: list[dict[str, Any]], encoding: Any, **style: Any) -> dict[str, Any]:
    """Marks whose values have lists, which `vega.layer` cannot write."""
    return {"data": {"values": values}, "mark": {"type": kind, **style}, "encoding": encoding}


def _edges(layout: DiagramLayout) -> Iterator[dict[str, Any]]:
    """The links as lines: level, except near the end where lines of several rows meet. Those
    between the same two nodes lie beside each other."""
    between = layout.between
    ends = [node for pair in between for node in pair]
    most = max(map(len, between.values()), default=1)
    for group in between.values():
        for number, edge in enumerate(group):
            (x, y), (x2, y2) = layout.places[edge.begin], layout.places[edge.end]
            passes = y == y2 and abs(x2 - x) > 1  # below the nodes and links between its own
            shift = APART + BESIDE * (number - 1) if number else -APART * (len(group) > 1)
            shift = APART + BESIDE * (most - 1 + number) if passes else shift
            meets = ends.count(edge.begin) > ends.count(edge.end)
            fork, leaf, level = (x, x2, y2) if meets else (x2, x, y)
            bend = fork + BEND * (leaf - fork) * (y != y2)
            yield {
                "x": x, "y": y + shift, "x2": x2, "y2": y2 + shift,
                "bend": bend, "level": level + shift,
                "tip": bend + 0.75 * (leaf - bend) if meets else leaf + 0.75 * (bend - leaf),
                "middle": min(x, x2) + 0.5 if passes else (leaf + bend) / 2,
                "angle": 0 if x2 >= x else 180,
                "over": not (number or passes),
                "text": list(edge.label),
                "colour": ACCENT if edge.bottleneck else PLAIN,
            }  # fmt: skip


def caption(scenario: Scenario) -> str:
    """Explanation of the picture of a scenario."""
    apart = DiagramLayout(scenario).apart
    labels = "; ".join(", ".join(edge.label) for edge in apart)
    back = f" Not drawn, on the return path: {labels}." if apart else ""
    is_drawn = not any(edge.bottleneck for edge in apart)
    red = f"; red is the bottleneck, {scenario['bottleneck']}" if is_drawn else ""
    return (
        f"Lines are links, with rate, one-way delay, queue and its limit{red}. Words at the nodes "
        "are the groups of flows that begin (→ after the name) and end there. Nodes follow from "
        f"the paths of the flows.{back}"
    )

"""The report of a search: statements, pictures of the trials, the best of them, the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aqmlab.metrics import scale
from aqmlab.metrics.registry import LESS
from aqmlab.numbers import count
from aqmlab.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Estimate,
    Figure,
    Finding,
    Items,
    Section,
    Table,
    Text,
)
from aqmlab.report.document.vega import Spec, colour, layer, number, spec, tip
from aqmlab.report.made import made
from aqmlab.scenario.quantity import numbers
from aqmlab.search.trials import TRIALS

if TYPE_CHECKING:
    from aqmlab.search.engine import SearchResult
    from aqmlab.search.trials import Measure, Trial

BEYOND, WITHIN, BEST, START = "beyond the constraints", "trial", "best", "start"
COLOURS = {WITHIN: "#8a8f98", BEYOND: "#e69f00", BEST: "#0072b2", START: "#d55e00"}
WIDTH, HEIGHT = 220, 170
MOST_PANELS = 9
SHOWN_UNITS = {"s": ("ms", 1e3), "bit/s": ("Mbit/s", 1e-6)}


def document(found: SearchResult, command: str = "") -> Document:
    """The page of a search."""
    what = "Attack" if found.kind == "attack" else "Tuning"
    name = found.study.info.name if found.study else "scenario"
    tried = f"{count(len(found.trials) - 1, 'trial')} of {', '.join(k.name for k in found.keys)}"
    return Document(
        f"{what}: {name}",
        tuple(_body(found, command)),
        soft=tried,
        head=tuple(Text(line, "lead") for line in found.statements[:1]),
    )


def _body(found: SearchResult, command: str) -> Iterator[Block]:
    yield from figures(found)
    if len(found.statements) > 1:
        lines = tuple(Finding(line) for line in found.statements)
        yield Section("Findings", (Items(lines),), id="findings")
    note = Text(
        "Values are means over the seeds that were searched on: those of the best are too good.",
        "soft",
    )
    yield Section("The best", (note, best(found)) if found.best else (best(found),), id="best")
    if found.confirmed:
        yield Section("With fresh seeds", (_confirmed(found),), id="confirmed")
    if found.findings:
        files = tuple(Code(each.text) for each in found.findings)
        yield Section("Scenario files", files, id="files")
    folder = None if found.folder is None else found.folder / TRIALS
    yield Section("How this was made", tuple(made(command, folder)), id="how")


def best(found: SearchResult) -> Table:
    """A row for the start and for each best trial: settings and values."""
    keys = [key.name for key in found.keys]
    units = [(each, *scale(each.metric.unit, _largest(found, place)))
             for place, each in enumerate(found.measures)]  # fmt: skip
    columns = (
        Column("trial", label=True),
        *(Column(name) for name in keys),
        *(Column(measure.text, _short, unit=unit) for measure, unit, _ in units),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            START if each is found.start else str(each.number),
            *(_told(each.settings.get(name)) for name in keys),
            *(value * factor for value, (_, _, factor) in zip(each.values, units, strict=True)),
        )
        for each in (found.start, *found.best)
    )
    return Table(columns, rows, kind="best")


def _short(value: float) -> str:
    return f"{value:.4g}"


def _told(value: Any) -> str:
    if isinstance(value, dict) and "steps" in value:
        return f"{len(value['steps'])} steps"
    return "as it was" if value is None else str(value)


def _largest(found: SearchResult, place: int) -> float:
    return max(abs(each.values[place]) for each in (found.start, *found.trials) if each.values)


def _confirmed(found: SearchResult) -> Table:
    columns = (
        Column("measure", label=True),
        Column("trial", label=True),
        Column("start"),
        Column("found"),
        Column("verdict"),
    )
    rows: list[tuple[Cell, ...]] = []
    for each in found.confirmed:
        unit, factor = scale(each.measure.metric.unit, max(each.start.value, each.found.value))
        cells = [Estimate.of(one, one.count) for one in (each.start, each.found)]
        name = f"{each.measure.text} ({unit})"
        rows.append((name, str(each.trial.number), *(c.times(factor) for c in cells), each.verdict))
    return Table(columns, tuple(rows), kind="confirmed")


def figures(found: SearchResult) -> list[Figure]:
    """The front of two goals, or the progress of one; then the first goal over each key."""
    first = _front(found) if len(found.measures) > 1 else _progress(found)
    panels = _panels(found)
    return [first, *([panels] if panels else [])]


def _kind(found: SearchResult, trial: Trial) -> str:
    if trial.number == 0:
        return START
    if trial.excess:
        return BEYOND
    return BEST if any(trial.number == each.number for each in found.best) else WITHIN


def _axis(found: SearchResult, place: int) -> tuple[str, float]:
    measure = found.measures[place]
    unit, factor = scale(measure.metric.unit, _largest(found, place))
    return f"{measure.text} ({unit})" if unit else measure.text, factor


def _row(found: SearchResult, trial: Trial, x: float, y: float) -> dict[str, Any]:
    return {"name": _kind(found, trial), "trial": trial.number, "x": x, "y": y}


def _known(found: SearchResult) -> list[Trial]:
    trials = {each.number: each for each in (*found.trials, *found.best) if each.values}
    return list(trials.values())


def _points(rows: list[dict[str, Any]], x: Spec, y: Spec, titles: tuple[str, str]) -> Spec:
    names = [name for name in COLOURS if any(row["name"] == name for row in rows)]
    rows = sorted(rows, key=lambda row: names.index(row["name"]))  # the start above the others
    tooltip = [tip("name", "kind"), tip("trial", "trial", "d"), tip("x", titles[0], ".4~g"),
               tip("y", titles[1], ".4~g")]  # fmt: skip
    key = colour(names, COLOURS, "circle", columns=4)
    encoding = {"x": x, "y": y, "color": key, "tooltip": tooltip}
    return layer("circle", encoding, rows=rows, size=44, opacity=0.8)


def _beats(measures: Sequence[Measure], one: Trial, other: Trial) -> bool:
    """True if a trial is at least as good in each goal."""
    pairs = zip(measures, one.values, other.values, strict=True)
    return all(measure.direction * (a - b) >= 0 for measure, a, b in pairs)


def _front(found: SearchResult) -> Figure:
    (x_title, across), (y_title, up) = _axis(found, 0), _axis(found, 1)
    rows = [_row(found, t, t.values[0] * across, t.values[1] * up) for t in _known(found)]
    scaled = {"scale": {"zero": False}}
    x, y = number("x", x_title, **scaled), number("y", y_title, **scaled)
    is_on = not any(_beats(found.measures, each, found.start) for each in found.best)
    ends = [*found.best, found.start] if is_on else found.best
    line = [{"x": t.values[0] * across, "y": t.values[1] * up} for t in ends]
    step = "step-after" if found.measures[0].direction == LESS else "step-before"
    encoding = {"x": x, "y": y, "order": number("x")}
    front = layer("line", encoding, rows=line, color=COLOURS[BEST], interpolate=step)
    chart = spec({"layer": [front, _points(rows, x, y, (x_title, y_title))]})
    message = f"{count(len(found.best), 'trial')} of {len(found.trials) - 1} are on the front"
    message += ", and so is the start." if is_on else "."
    caption = "Means over the replications that were searched on; the findings have fresh seeds."
    return Figure("front", "Pareto front", message, caption, chart)


def _progress(found: SearchResult) -> Figure:
    title, factor = _axis(found, 0)
    measure = found.measures[0]
    better = max if (measure.direction > 0) != (found.kind == "attack") else min
    known = sorted(_known(found), key=lambda each: each.number)
    rows = [_row(found, each, each.number, each.values[0] * factor) for each in known]
    line: list[dict[str, float]] = []
    for trial in known:
        own = [trial.values[0] * factor] if trial.counts else []
        if reached := [*(each["y"] for each in line[-1:]), *own]:
            line.append({"x": trial.number, "y": better(reached)})
    x, y = number("x", "trial"), number("y", title, scale={"zero": True})
    step = {"color": COLOURS[BEST], "interpolate": "step-after"}
    so_far = layer("line", {"x": x, "y": y}, rows=line, **step)
    chart = spec({"layer": [so_far, _points(rows, x, y, ("trial", title))]})
    message = f"From {measure.shown(found.start.values[0])} at the start"
    if found.best:
        message += f" to {measure.shown(found.best[0].values[0])} in trial {found.best[0].number}"
    caption = "The line is the best so far; the last trials make the scenario smaller."
    return Figure("progress", f"{measure.text} over the trials", f"{message}.", caption, chart)


def _panels(found: SearchResult) -> Figure | None:
    """The first measure over each key with a range."""
    title, factor = _axis(found, 0)
    charts = []
    for key in [each for each in found.keys if not each.choices and not each.steps][:MOST_PANELS]:
        unit, times = SHOWN_UNITS.get(key.unit, (key.unit, 1.0))
        rows = [
            _row(found, each, _number(each.settings[key.name]) * times, each.values[0] * factor)
            for each in _known(found)
            if key.name in each.settings
        ]
        name = f"{key.name} ({unit})" if unit else key.name
        x = number("x", name, scale={"type": "log"} if key.log else {"zero": False})
        x["axis"] = {"format": "~g", "tickCount": 5}
        chart = _points(rows, x, number("y", title, scale={"zero": False}), (name, title))
        charts.append({"height": HEIGHT, "width": WIDTH, **chart})
    if not charts:
        return None
    resolve = {"scale": {"color": "shared", "x": "independent", "y": "shared"}}
    chart = spec({"concat": charts, "columns": 3, "spacing": 20, "resolve": resolve})
    text = "A point is a trial, with the mean over its replications."
    return Figure("keys", "Each key", f"{found.measures[0].text} over the keys.", text, chart)


def _number(value: Any) -> float:
    known = numbers([value]) if isinstance(value, str) else None
    return known[0][0] if known else float(value)

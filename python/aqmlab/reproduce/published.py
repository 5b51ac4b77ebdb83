"""What a study folder says of its paper: `published.toml`, and the hooks of `study.py`.

The format is described in docs/reproductions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from aqmlab.campaign import Asked, made
from aqmlab.errors import input_error, unknown
from aqmlab.metrics import Metric, registered
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.additions import Addition, parse, with_additions
from aqmlab.reproduce.catalogue import place, places
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cell, CellTable, Replicates, Value
from aqmlab.reproduce.schema import GivenTable, Paper, all_labels, check, labels_of
from aqmlab.reproduce.verdicts import Criterion
from aqmlab.scenario.settings import check_form, parse_selection, parse_toml, read_text
from aqmlab.stats import MEAN_METHOD, POOLED_METHOD, POSITIVE, SHARE, Bounds
from aqmlab.study import Study
from aqmlab.study.sweep import axis_name, check_labels

__all__ = ["MAIN", "METRICS", "Published", "names"]

MAIN = "study"
"""The part of a reproduction that is in `study.toml`."""


def _delay_quantile(measured: Measurements, labels: dict[str, str], share: float) -> Value:
    value = measured.delay_quantile(share, **labels)
    return value, measured.delay_quantile_interval(share, **labels)


def _delay_maximum(measured: Measurements, labels: dict[str, str], of: int = 0) -> Value:
    """The largest of so many replications (all, if it is 0)."""
    within = measured.largest_interval(of, **labels) if of else None
    return measured.largest(of, **labels), within


def _link_column(
    measured: Measurements, labels: dict[str, str], column: str, scale: float = 1.0
) -> Replicates:
    """A column of `links`."""
    bounds = SHARE if column == "utilisation" else POSITIVE
    return _scaled(measured.count(column, **labels), scale, bounds)


def _time_column(
    measured: Measurements,
    labels: dict[str, str],
    group: str,
    quantity: str,
    column: str = "mean_s",
    scale: float = 1.0,
) -> Replicates:
    """A column of `times`."""
    return _scaled(measured.times(group, quantity, column, **labels), scale, POSITIVE)


def _scaled(values: Floats, scale: float, bounds: Bounds) -> Replicates:
    low, high = bounds
    return Replicates(scale * values, (scale * low, scale * high))


LARGEST_METHOD = (
    "a lower end only, above which 97.5 % of the largest of so many further runs lie (order "
    "statistics); an upper end would need 39 times as many runs"
)
Measure = Callable[..., Value | Replicates]
METRICS: dict[str, tuple[Measure, str]] = {
    "delay_quantile": (_delay_quantile, POOLED_METHOD),
    "delay_maximum": (_delay_maximum, LARGEST_METHOD),
    "link": (_link_column, MEAN_METHOD),
    "time": (_time_column, MEAN_METHOD),
}
"""The metrics that a table may name: function, and how its interval is made. `METRICS` in
a study's own `study.py` adds to them."""


@dataclass(frozen=True)
class Published:
    """A study folder: the study as a mapping, and what its paper published."""

    name: str
    folder: Path
    parts: Mapping[str, Mapping[str, Any]]
    """The studies of which it consists, as mappings: `study.toml`, and what `parts` names."""
    paper: Mapping[str, Any]
    """`published.toml` as it is, for the study's own code."""
    form: Paper
    """The same, checked."""
    hooks: ModuleType | None
    file: Path | None = None
    """The file, where all of it is in one."""
    additions: tuple[Addition, ...] = ()
    """Labels beside the paper's."""

    @staticmethod
    def load(name: str) -> Published:
        """The study called `name`, or in the folder of this path; its files are checked.

        Raises `InputError` if there is none, and for whatever is wrong in its files;
        `CustomError` if its code fails.
        """
        found = place(name)
        file = found.file or found.folder / "published.toml"
        paper = _toml(file)
        check_form(paper, "published study", str(file))
        if found.file is None:
            parts = {MAIN: _toml(found.folder / f"{MAIN}.toml")}
        else:
            parts = {MAIN: _inside(paper, file)}
        given = paper.get("parts")
        for part in given if isinstance(given, list) else ():
            parts[str(part)] = _toml(found.folder / f"{part}.toml")
        hooks = found.hooks()
        form = check(file, paper, parts, hooks, known_metrics(hooks))
        return Published(found.name, found.folder, parts, paper, form, hooks, found.file)

    def beside(self, given: Sequence[str]) -> Published:
        """The same with the labels `AXIS=VALUE` beside the paper's. Raises `InputError`."""
        return replace(self, additions=tuple(parse(given, all_labels(self.parts))))

    @property
    def added(self) -> dict[str, list[str]]:
        """Axis to the labels beside the paper's."""
        found: dict[str, list[str]] = {}
        for each in self.additions:
            found.setdefault(each.axis, []).append(each.label)
        return found

    @property
    def study(self) -> Mapping[str, Any]:
        """The main part."""
        return self.parts[MAIN]

    def main_rows(self, table: str) -> list[str]:
        """The rows of a table that are the paper's own, not other settings beside them."""
        given = (each for each in self.form.tables if each.id == table)
        rows = (row for each in given for row in each.values)
        return [row.row for row in rows if row.published is not None and row.paper is None]

    def selection(self, only: Sequence[str]) -> dict[str, list[str]]:
        """Axes and the labels to keep of them, from names of subsets and `AXIS=LABEL`.

        Labels win over those of a subset. The names of whole parts stand under `parts`.
        Raises `InputError` for a subset that there is not.
        """
        kept: dict[str, list[str]] = {}
        for name in (each for each in only if "=" not in each):
            if name not in self.form.subsets:
                raise unknown("subset of the study", name, self.form.subsets, key="only")
            kept |= self.form.subsets[name]
        return kept | parse_selection([each for each in only if "=" in each])

    def studies(
        self,
        only: Sequence[str] = (),
        *,
        seed: int | None = None,
        replications: int | None = None,
        trace: Path | None = None,
    ) -> dict[str, Study]:
        """The parts to run. Labels of an axis hold for every part that has the axis. A part without
        any of these labels is not run, nor is one without any of the axes, unless parts are named.

        Raises `InputError` for an axis or label that no part has, and for a trace where
        none can be given.
        """
        kept = self.selection(only)
        are_named = "parts" in kept
        wanted = kept.pop("parts", list(self.parts))
        chosen: dict[str, dict[str, list[str]]] = {
            name: {} for name in self.parts if name in wanted
        }
        check_labels(kept, all_labels(self.parts), str(self.folder / "study.toml"))
        for axis, labels in kept.items():
            for name in list(chosen):
                known = labels_of(self.parts[name]).get(axis, [])
                here = [label for label in labels if label in known]
                if here:
                    chosen[name][axis] = here
                elif known:
                    del chosen[name]
        if kept and not are_named:
            chosen = {name: axes for name, axes in chosen.items() if axes}
        if not chosen:
            raise input_error("no part of the study has all of these", key="only", given=only)
        settings, added = self._traced(trace), self.added
        return {
            name: Study(
                self._source(name),
                set=settings.get(name),
                seed=seed,
                replications=replications,
                only={axis: [*labels, *added.get(axis, ())] for axis, labels in axes.items()},
                add=self._entries(name),
            )
            for name, axes in chosen.items()
        }

    def _entries(self, part: str) -> dict[str, list[Any]]:
        """Values beside the paper's for the axes of a part."""
        known = {axis_name(axis): axis for axis in self.parts[part].get("axes", ())}
        found: dict[str, list[Any]] = {}
        for each in self.additions:
            if each.axis in known:
                found.setdefault(each.axis, []).append(each.entry(known[each.axis]))
        return found

    @property
    def readme(self) -> str:
        """What the study says of itself, in Markdown; nothing if it does not."""
        path = self.folder / "README.md"
        there = self.file is None and path.exists()
        return path.read_text(encoding="utf-8") if there else ""

    def _source(self, part: str) -> Path | Mapping[str, Any]:
        return self.folder / f"{part}.toml" if self.file is None else self.parts[part]

    def emulation(
        self, only: Sequence[str], step: str | None
    ) -> tuple[str, dict[str, Any], dict[str, list[str]]]:
        """What is run with real packets: the file of the main part, what makes it shorter
        (the study's own `shortened`), and the labels to keep.

        Raises `InputError` if this study cannot run with real packets.
        """
        shortened = getattr(self.hooks, "shortened", None)
        if shortened is None:
            problem = "this study cannot run with real packets"
            raise input_error(problem, key="emulate", given=self.name)
        kept = self.selection(only)
        if MAIN not in kept.pop("parts", [MAIN]):
            problem = "the part that runs with real packets is not selected"
            raise input_error(problem, key="only", given=list(only))
        axes = {axis: labels for axis, labels in kept.items() if axis in labels_of(self.study)}
        return str(self.folder / f"{MAIN}.toml"), shortened(step), axes

    def _traced(self, trace: Path | None) -> dict[str, dict[str, Any]]:
        """Part to the settings that a trace given by the user makes there."""
        if trace is None:
            return {}
        place = self.form.trace
        if place is None:
            problem = f"no link of {self.name} takes a trace"
            raise input_error(problem, key="trace", given=str(trace))
        if not trace.is_file():
            raise input_error("there is no such file", key="trace", given=str(trace))
        return {place.part: {place.key: {"trace": str(trace.resolve())}}}

    def tables(self, measured: Measurements) -> list[CellTable]:
        """The tables of `published.toml` and of the hook `tables`, as far as they were run."""
        return with_additions(self._tables, measured, self.additions)

    def _tables(self, measured: Measurements) -> list[CellTable]:
        found = made([partial(self._table, each) for each in self.form.tables], measured)
        return [each for each in (*found, *self.hook("tables", measured)) if each.cells]

    def claims(self, measured: Measurements) -> list[Asked]:
        """The statements of the paper, each with the results that it is asked of."""
        return self.hook("claims", measured)

    def hook(self, name: str, measured: Measurements) -> list[Any]:
        """What a function of `study.py` returns, or each of a tuple of them."""
        hook = getattr(self.hooks, name, ())
        return made((hook,) if callable(hook) else hook, measured)

    def _table(self, given: GivenTable, measured: Measurements) -> CellTable:
        function, method = known_metrics(self.hooks)[given.metric.name]
        measured, keys = measured.part(given.part), given.metric.model_extra or {}
        cells = tuple(
            self._cells(given, measured, lambda labels: function(measured, labels, **keys))
        )
        notes = {row.row: f"beside the paper's {row.paper}" for row in given.values if row.paper}
        notes |= {row.row: row.note for row in given.values if row.note}
        return CellTable(given.id, given.name, given.unit, cells, method=method, notes=notes)

    def _cells(
        self,
        given: GivenTable,
        measured: Measurements,
        measure: Measure,
    ) -> Iterator[Cell]:
        columns = labels_of(self.parts[given.part])[given.columns]
        step = self.form.step if given.step is None else given.step
        criterion = Criterion(step, relative=given.relative)
        for row in given.values:
            published: Sequence[float | None] = row.published or [None] * len(columns)
            for column, reference in zip(columns, published, strict=True):
                labels = {**given.where, given.rows: row.row, given.columns: column}
                if not measured.has(**labels):
                    continue
                yield Cell.of(row.row, column, reference, measure(labels), criterion)


def known_metrics(hooks: ModuleType | None) -> dict[str, tuple[Measure, str]]:
    """What a table may name: those above, the study's own, and every metric of the registry."""
    found = {
        name: (_registered(metric, name), MEAN_METHOD)
        for metric in registered()
        if metric.compute is not None
        for name in (metric.name, *metric.names)
    }
    own = getattr(hooks, "METRICS", {})
    return {**found, **METRICS, **(own if isinstance(own, Mapping) else {})}


def _registered(metric: Metric, name: str) -> Measure:
    """A metric of the registry at a point."""

    def measure(
        measured: Measurements, labels: dict[str, str], subject: str = "", scale: float = 1.0
    ) -> Replicates:
        values = measured.metric(name, subject or measured.link, **labels)
        return _scaled(values, scale, metric.bounds)

    return measure


def names() -> list[str]:
    """The names of the studies that can be reproduced."""
    return list(places())


def _inside(paper: dict[str, Any], file: Path) -> dict[str, Any]:
    """The study that is in the file of its paper; it is taken out there."""
    study = paper.pop("study", None)
    if not isinstance(study, dict):
        hint = "a study of one file has [study], [study.scenario], [[study.axes]]"
        raise input_error("expected a table", file=str(file), key="study", hint=hint)
    return {"name": file.stem, **study}


def _toml(path: Path) -> dict[str, Any]:
    return parse_toml(read_text(path), str(path))

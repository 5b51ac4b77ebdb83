"""The form of `published.toml`, checked before anything is simulated.

Every mistake is one error that names the file, the key, what was given and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from aqmlab.errors import input_error, nearest, unknown
from aqmlab.scenario.form import checked
from aqmlab.study.sweep import axis_name, check_labels, label_of

HOOKS = ("tables", "claims", "causes", "figures", "shortened")
"""The functions that `study.py` may have."""


class TableRow(BaseModel, extra="forbid", strict=True):
    """A row of a table."""

    row: str
    published: list[float] | None = None
    paper: str | None = None
    note: str | None = None


class MetricName(BaseModel, extra="allow", strict=True):
    """What a table measures; the other keys are its function's."""

    name: str


class GivenTable(BaseModel, extra="forbid", strict=True):
    """A table."""

    id: str
    name: str
    unit: str
    metric: MetricName
    rows: str
    columns: str
    where: dict[str, str] = {}
    part: str = "study"
    step: float | None = None
    relative: bool = True
    values: list[TableRow]


class Remark(BaseModel, extra="forbid", strict=True):
    """Where a paper contradicts itself."""

    title: str
    text: str


class Trace(BaseModel, extra="forbid", strict=True):
    """What `--trace` sets."""

    part: str
    key: str


class Paper(BaseModel, extra="forbid", strict=True):
    """`published.toml`."""

    citation: str
    link: str
    step: float = 0.0
    most: dict[str, int] = {}
    """To these parts replications are added until every statement is decided, up to so many."""
    subject: str = "queue"
    """The axis whose labels the statements compare."""
    parts: list[str] = []
    tables: list[GivenTable] = []
    subsets: dict[str, dict[str, list[str]]] = {}
    contradictions: list[Remark] = []
    trace: Trace | None = None
    numbers: dict[str, Any] = {}
    """Whatever the study's own code reads."""


def check(
    file: Path,
    given: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    hooks: ModuleType | None,
    metrics: Mapping[str, Any],
) -> Paper:
    """The content of `published.toml`, which goes with the study's axes and code.

    `parts` are the studies by name, `metrics` the functions that a table may name.
    Raises `InputError`.
    """
    paper = checked(Paper, given, str(file))
    for table in paper.tables:
        _check_table(table, file, parts, metrics)
    axes = {**all_labels(parts), "parts": list(parts)}
    for name, kept in paper.subsets.items():
        check_labels(kept, axes, str(file), f"subsets.{name}")
    if hooks is not None:
        _check_hooks(hooks, file.with_name("study.py"))
    return paper


def labels_of(part: Mapping[str, Any]) -> dict[str, list[str]]:
    """The axes of a study given as a mapping, each with its labels."""
    return {
        axis_name(axis): [label_of(value) for value in axis["values"]]
        for axis in part.get("axes", ())
    }


def all_labels(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The axes of all parts, each with all of its labels."""
    found: dict[str, dict[str, None]] = {}
    for part in parts.values():
        for axis, labels in labels_of(part).items():
            found.setdefault(axis, {}).update(dict.fromkeys(labels))
    return {axis: list(labels) for axis, labels in found.items()}


def printed(paper: Mapping[str, Any], table: str, row: str) -> list[float]:
    """The numbers that a paper prints in a row of a table, in the order of its columns."""
    (given,) = [each for each in paper["tables"] if each["id"] == table]
    (values,) = [each["published"] for each in given["values"] if each["row"] == row]
    return [float(value) for value in values]


def _check_table(
    table: GivenTable,
    file: Path,
    parts: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Any],
) -> None:
    place = f"tables.{table.id}"
    if table.part not in parts:
        raise unknown("part", table.part, list(parts), file=str(file), key=f"{place}.part")
    axes = labels_of(parts[table.part])
    for key in ("rows", "columns"):
        name = getattr(table, key)
        if name not in axes:
            raise unknown("axis", name, list(axes), file=str(file), key=f"{place}.{key}")
    check_labels({axis: [label] for axis, label in table.where.items()}, axes, str(file),
                 f"{place}.where")  # fmt: skip
    missing = [each for each in axes if each not in (table.rows, table.columns, *table.where)]
    if missing:
        hint = f'where = {{ {missing[0]} = "{axes[missing[0]][0]}" }}'
        problem = f"the table must name a label of the axis `{missing[0]}` it is about"
        raise input_error(problem, file=str(file), key=f"{place}.where", hint=hint)
    rows = {table.rows: [row.row for row in table.values]}
    check_labels(rows, axes, str(file), f"{place}.values")
    for row in table.values:
        many = len(axes[table.columns])
        if row.published is not None and len(row.published) != many:
            problem = f"expected {many} numbers, one a label of the axis `{table.columns}`"
            key = f"{place}.values.{row.row}.published"
            raise input_error(problem, file=str(file), key=key, given=row.published)
    _check_metric(table, file, metrics)


def _check_metric(table: GivenTable, file: Path, metrics: Mapping[str, Any]) -> None:
    """The metric is known, and its function takes the other keys."""
    place = f"tables.{table.id}.metric"
    if table.metric.name not in metrics:
        raise unknown("metric", table.metric.name, metrics, file=str(file), key=place)
    given = table.metric.model_extra or {}
    takes = list(signature(metrics[table.metric.name][0]).parameters.values())[2:]
    if any(each.kind is Parameter.VAR_KEYWORD for each in takes):
        return
    for key in given:
        if key not in (each.name for each in takes):
            known = [each.name for each in takes]
            raise unknown("key", key, known or ["none"], file=str(file), key=place)
    for each in takes:
        if each.default is Parameter.empty and each.name not in given:
            raise input_error("this key is missing", file=str(file), key=f"{place}.{each.name}")


def _check_hooks(hooks: ModuleType, file: Path) -> None:
    """A function of `study.py` with nearly the name of a hook is a slip of the pen."""
    for name, value in vars(hooks).items():
        if not callable(value) or name.startswith("_") or value.__module__ != hooks.__name__:
            continue
        meant = nearest(name, HOOKS)
        if meant is not None and name not in HOOKS and not hasattr(hooks, meant):
            raise unknown("hook", name, HOOKS, file=str(file))
    for name in HOOKS:
        hook = getattr(hooks, name, ())
        if not (callable(hook) or (isinstance(hook, tuple) and all(map(callable, hook)))):
            problem = "expected a function, or a tuple of functions"
            raise input_error(problem, file=str(file), key=name)

"""Studies: one scenario, axes along which it varies, and replications.

The points of a study are the cross product of its axes, in the order in which
they are written (the last axis varies fastest). Run number = point index x
replications + replication. Replication `r` of every point draws from the same
random streams, so points are compared under the same arrivals.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from aqmlab import _core
from aqmlab.errors import input_error, unknown
from aqmlab.metrics import find
from aqmlab.numbers import count
from aqmlab.scenario.parts import Part, plain
from aqmlab.scenario.scenario import Scenario
from aqmlab.scenario.settings import (
    check_form,
    check_keys,
    each_of,
    mapping_of,
    parse_toml,
    path_of,
    read_text,
    whole,
)
from aqmlab.study.points import Axis, AxisValue, Points
from aqmlab.study.precision import KEY, Precision
from aqmlab.study.sources import SCENARIO, STUDY, Source, Sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from aqmlab.results import StudyResult
    from aqmlab.study.shards import Shard

    Progress = Callable[[int, int], None]
    """Called with the number of finished runs and of all runs, about ten times a second."""

MOST_RUNS = 10_000_000
KEYS = (
    "name", "title", "description", "replications", "precision", "seed", "scenario", "axes",
)  # fmt: skip
SHORT_KEYS = ("queue", "duration", "until", "simultaneous", "bottleneck")
"""Keys of scenarios without a dot, which may also name an axis."""
AXIS_KEYS = ("name", "key", "values")
VALUE_KEYS = ("label", "set")
AXIS_NAME = re.compile(r"[a-z][a-z0-9_]*")
COLUMNS = """
run point replication seed events link arrived delivered dropped marked lost duplicated reordered
utilisation group index
segments_sent retransmissions timeouts fast_retransmits
tail_probes undone ecn_reductions count id text subject quantity value flow
is_ack verdict ce started completed datagrams_received loss_events loss_event_flows
loss_event_bulk_flows
arrived_acks dropped_acks lost_acks dropped_syns lost_syns dropped_queued direction metric tcp_stack
"""
TAKEN = frozenset(COLUMNS.split())
UNITS = ("_s", "_bytes", "_packets", "_bps")
"""Columns of the result tables have these names, or end so: an axis may not."""


class Study:
    """A scenario with axes, replications and paired seeds.

    Parameters
    ----------
    source : path, mapping or Scenario
        Study file, its content as a mapping, or a scenario (a study of one point). In a mapping,
        values of axes may be objects of `aqmlab.scenario`, quantities and numbers, in lists
        or arrays, and a scenario given by file name is looked up in the working directory.
    set : mapping, optional
        Settings by dotted key for every point, applied after the axes; values as in `run`.
    seed : int, optional
        Seed of all random streams. Default: that of the study or scenario.
    replications : int, optional
        Replications of each point. Default: that of the study, or 1.
    only : mapping of str to sequence, optional
        Labels or values to keep, by axis: `{"queue": ["CoDel", "DropTail"]}`.
    precision : str, mapping or Precision, optional
        Adds replications until an interval is as narrow: `"5%"`, `"goodput=5%"`.
    add : mapping of str to sequence, optional
        More values of axes, by axis.

    Raises
    ------
    InputError
        If the study, or the scenario of a point, is invalid. In studies of more than 2,048 points,
        each value of each axis is tried; the points themselves are checked when they are due.

    Examples
    --------
    >>> study = aqmlab.Study("study.toml", replications=20)
    >>> result = study.run("results/mine")
    """

    def __init__(
        self,
        source: str | Path | Mapping[str, Any] | _core.Scenario | Scenario,
        *,
        set: Mapping[str, Any] | None = None,
        seed: SupportsIndex | None = None,
        replications: SupportsIndex | None = None,
        only: Mapping[str, Sequence[Any]] | None = None,
        precision: Precision | Mapping[str, Any] | str | None = None,
        add: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        if isinstance(source, _core.Scenario):
            source = Scenario.from_toml(source.to_toml(), folders=source.folders)
        if isinstance(source, Scenario):
            source = {"scenario": source}
        if isinstance(source, Mapping):
            self.file, folder, table = "<study>", Path(), dict(source)
            self._text_of_file = None
        else:
            path = path_of(source)
            self.file, folder = str(source), path.parent
            self._text_of_file = read_text(path)
            table = parse_toml(self._text_of_file, self.file)
        self._check(table)
        self.name: str = self._text(table, "name", Path(self.file).stem.strip("<>"))
        self.title: str = self._text(table, "title", self.name)
        more = {axis: each_of(values) for axis, values in mapping_of(add, "add").items()}
        axes = tuple(_axes(table.get("axes", []), more, self.file))
        self.axes: tuple[Axis, ...] = _kept(axes, mapping_of(only, "only"), self.file)
        own = whole(table.get("replications", 1), 1, "replications", self.file)
        self.replications: int = (
            own if replications is None else whole(replications, 1, "replications")
        )
        self.precision = self._precision(table, precision)
        """Precision to reach, starting with `replications`; None for a fixed number."""
        if isinstance(table["scenario"], PathLike):
            table["scenario"] = fspath(table["scenario"])
        base, base_file = _base(table["scenario"], folder, self.file)
        folders = [str(folder)]
        if isinstance(table["scenario"], str):
            folders.insert(0, str((folder / table["scenario"]).parent))
        elif isinstance(table["scenario"], Scenario):
            folders = [*table["scenario"].folders, *folders]
        chosen = seed if seed is not None else table.get("seed")
        given = self._checked_settings(mapping_of(set, "set"))
        settings, file = given, None if seed is not None else self.file
        if chosen is not None:
            settings = {"seed": whole(chosen, 0, "seed", file), **given}
        self._check_size()
        self.points = Points(base, base_file, folders, self.axes, settings)
        self.points.check()
        self._check_covered(given, file)

    def __repr__(self) -> str:
        axes = " × ".join(f"{axis.name} ({len(axis.values)})" for axis in self.axes) or "one point"
        return f"<Study {self.name!r}: {axes}, {count(self.replications, 'replication')}>"

    @property
    def total(self) -> int:
        """Number of runs, points times replications."""
        return len(self.points) * self.replications

    @property
    def base(self) -> dict[str, Any]:
        """The scenario as a mapping, before axes and settings."""
        if isinstance(self.points.base, str):
            return parse_toml(self.points.base, self.points.file)
        return copy.deepcopy(dict(self.points.base))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of every point, by dotted key."""
        return self.points.settings

    def with_replications(self, replications: int) -> Study:
        """The same study with this number of replications."""
        other = copy.copy(self)
        other.replications = replications
        other.__dict__.pop("digest", None)
        return other

    def with_axis(self, axis: Axis, *, seed: int | None = None) -> Study:
        """The same study with one more axis, which varies fastest and sets its keys after all
        others; with a seed, for other random streams. Raises `InputError` for an invalid point."""
        other = copy.copy(self)
        for name in ("digest", "seed"):
            other.__dict__.pop(name, None)
        own = self.settings if seed is None else {**self.settings, "seed": seed}
        values = tuple(AxisValue(each.label, {**own, **each.settings}) for each in axis.values)
        other.axes = (*self.axes, Axis(axis.name, values))
        other.points = replace(self.points, axes=other.axes, settings={})
        other._check_size()
        other.points.check()
        return other

    def documents(self) -> list[Source]:
        """The study file and the scenario file, if any."""
        files = [(STUDY, self.file, self._text_of_file),
                 (SCENARIO, self.points.file, self.points.base)]  # fmt: skip
        return [Source(kind, name, text.encode()) for kind, name, text in files
                if isinstance(text, str)]  # fmt: skip

    def sources(self, *, emulated: bool = False) -> Sources:
        """What a results folder keeps of the files and the command that made it."""
        return Sources.of(self, emulated=emulated)

    def is_in(self, folder: Path) -> bool:
        """Whether this folder has results of this study, with as many replications."""
        from aqmlab.study.sequential import there

        return there(folder) == (self.replications, self.digest)

    @cached_property
    def seed(self) -> int:
        """The seed of the random streams."""
        return int(json.loads(self.points[0].scenario.resolved)["seed"])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the scenarios (with defaults and seed), axes and number of replications.

        Results depend on these and on the version of aqmlab only.
        """
        state = hashlib.sha256(b'{"scenarios": [')
        for place, text in enumerate(self.points.scenarios.texts()):
            state.update(f"{', ' if place else ''}{json.dumps(text)}".encode())
        axes = [[axis.name, axis.labels] for axis in self.axes]
        rest = f'], "axes": {json.dumps(axes)}, "replications": {self.replications}}}'
        state.update(rest.encode())
        return state.hexdigest()

    def run(
        self,
        out: str | Path | None = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> StudyResult:
        """Runs the missing runs of the study.

        Parameters
        ----------
        out : path, optional
            Results folder. An interrupted study resumes there; a finished one is only opened. To
            the same study with fewer replications the others are added. Without it, results stay
            in memory.
        threads : int, optional
            Number of cores. Default: all.
        progress : callable, optional
            Called with (finished runs, all runs), about ten times a second.
        executor : concurrent.futures.Executor, optional
            Runs the study in other processes or on other machines (docs/cluster.md).

        Returns
        -------
        StudyResult
            Tables of all runs.

        Raises
        ------
        FolderError
            If `out` has other contents; nothing is changed.
        StorageError
            If results cannot be written; earlier results are kept.
        StuckError
            If runs made no progress in virtual time; the others are kept.
        ClusterError
            If the executor ends, or its workers have another version of aqmlab.
        """
        from aqmlab.study.execute import Backend, execute

        means = Backend(threads, executor, progress)
        return execute(self, None if out is None else Path(out), means)

    def run_shard(
        self,
        shard: Shard,
        out: str | Path,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> int:
        """Runs one part of the study into a folder; `aqmlab.merge` joins the parts.

        Parameters
        ----------
        shard : Shard
            Part to run: `Shard(3, 16)` is the third of sixteen.
        out : path
            Folder for this part.
        threads, progress, executor
            As in `run`.

        Returns
        -------
        int
            Number of runs computed now.

        Raises
        ------
        InputError
            If the study has a `precision`, which depends on the results of all parts.
        FolderError, StorageError, StuckError, ClusterError
            As in `run`.
        """
        from aqmlab.study.execute import Backend, execute_shard

        if self.precision is not None:
            problem = "how many replications it takes depends on the results of all parts"
            raise input_error(problem, key="precision", hint="run it as a whole")
        return execute_shard(self, Path(out), shard, Backend(threads, executor, progress))

    def _check(self, table: Mapping[str, Any]) -> None:
        check_form(table, "study", self.file)
        check_keys(table, KEYS, self.file)
        if "scenario" not in table:
            hint = 'a file, as in scenario = "scenario.toml", or a table [scenario]'
            raise input_error("a study needs a scenario", file=self.file, key="scenario", hint=hint)

    def _precision(self, table: Mapping[str, Any], given: Any) -> Precision | None:
        found = Precision.parse(table[KEY], self.file) if KEY in table else None
        if given is not None:
            found = Precision.parse(given, key="precision", own=found)
        if found is not None:
            find(found.metric)
        return found

    def _text(self, table: Mapping[str, Any], key: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or not value.strip():
            raise input_error("expected text", file=self.file, key=key, given=value)
        return value

    def _checked_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Refuses the name of an axis as a key."""
        for key in settings:
            for axis in self.axes:
                if key == axis.name and key not in SHORT_KEYS:
                    hint = f"`only` (`--only`) takes one of its values: {key}={axis.labels[0]}"
                    problem = "this is an axis of the study, not a key of its scenario"
                    raise input_error(problem, key="set", given=key, hint=hint)
        return dict(plain(settings))

    def _check_size(self) -> None:
        runs = self.replications * math.prod(len(axis.values) for axis in self.axes)
        if runs > MOST_RUNS:
            problem = f"expected at most {MOST_RUNS:,} runs: points times replications"
            raise input_error(problem, file=self.file, given=f"{runs:,} runs")

    def _check_covered(self, given: Mapping[str, Any], seed_file: str | None) -> None:
        """Refuses a setting or a later axis that would make the values of an axis all alike. Of the
        settings, `given` are of `set`; a seed may be of `seed`, or of `seed_file`."""
        if not self.axes:
            return
        link = json.loads(self.points[0].scenario.resolved)["bottleneck"]
        for place, axis in enumerate(self.axes):
            for key in self.settings:
                if all(
                    any(_covers([key], each, link) for each in value.settings)
                    for value in axis.values
                ):
                    problem = f"the axis `{axis.name}` of this study sets it"
                    if key in given:
                        raise input_error(problem, key="set", given=key)
                    raise input_error(problem, file=seed_file, key=key, given=self.settings[key])
            own = {key for value in axis.values for key in value.settings}
            for later in self.axes[place + 1 :] if own else ():
                if all(
                    _covers(value.settings, each, link) for value in later.values for each in own
                ):
                    problem = f"the axis `{later.name}` after it sets all that it sets"
                    raise input_error(problem, file=self.file, key="axes", given=axis.name)


def study(
    source: str | Path | Mapping[str, Any] | Scenario,
    out: str | Path | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    seed: SupportsIndex | None = None,
    replications: SupportsIndex | None = None,
    only: Mapping[str, Sequence[Any]] | None = None,
    precision: Precision | Mapping[str, Any] | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> StudyResult:
    """Runs a study: `Study(source, ...).run(out, ...)`.

    Parameters
    ----------
    source : path, mapping or Scenario
        Study file, its content as a mapping, or a scenario (a study of one point).
    out : path, optional
        Results folder, from which an interrupted study resumes. Without it, results stay in memory.
    set, seed, replications, only, precision
        As in `Study`.
    threads, progress, executor
        As in `Study.run`.

    Returns
    -------
    StudyResult
        Tables of all runs.

    Raises
    ------
    InputError, FolderError, StorageError, StuckError, ClusterError
        As in `Study` and `Study.run`.

    Examples
    --------
    >>> result = aqmlab.study("study.toml", "results/mine", threads=2)
    >>> result.write_report()
    """
    plan = Study(
        source, set=set, seed=seed, replications=replications, only=only, precision=precision
    )
    return plan.run(out, threads=threads, progress=progress, executor=executor)


def _base(given: Any, folder: Path, file: str) -> tuple[str | Mapping[str, Any], str]:
    """Text or mapping of the scenario, and its name in errors."""
    if isinstance(given, Scenario):
        given = given.table()
    if isinstance(given, Mapping):
        return plain(given), f"{file}: scenario" if file != "<study>" else file
    if isinstance(given, str):
        path = folder / given
        return read_text(path), str(path)
    raise input_error(
        'expected a table, or the name of a file such as "scenario.toml"',
        file=file,
        key="scenario",
        given=given,
    )


def _axes(given: Any, add: Mapping[str, Sequence[Any]], file: str) -> Iterator[Axis]:
    if isinstance(given, Mapping):
        given = [_named(key, values) for key, values in given.items()]
    if not isinstance(given, (list, tuple)):
        problem = "expected tables [[axes]], or keys with lists of values"
        raise input_error(problem, file=file, key="axes", given=given)
    seen: set[str] = set()
    for number, table in enumerate(given, start=1):
        place = f"axes {number}"
        axis = _axis(table, add, file, place)
        if axis.name in seen:
            raise input_error("two axes of one name", file=file, key=place, given=axis.name)
        seen.add(axis.name)
        yield axis
    for name in add:
        if name not in seen:
            raise unknown("axis", name, seen, file=file, key="add")


def _named(key: str, values: Any) -> dict[str, Any]:
    """An axis as a table: a key with its values, or a name with the settings of each label."""
    if not isinstance(values, Mapping):
        return {"key": key, "values": values}
    labelled = [{"label": label, "set": settings} for label, settings in values.items()]
    return {"name": key, "values": labelled}


def axis_name(table: Mapping[str, Any]) -> str:
    """The name of an axis of a study file: that of its key, if it says no other."""
    return str(table.get("name", str(table.get("key")).rpartition(".")[2]))


def _axis(table: Any, add: Mapping[str, Sequence[Any]], file: str, place: str) -> Axis:
    if not isinstance(table, Mapping):
        raise input_error("expected a table", file=file, key=place, given=table)
    check_keys(table, AXIS_KEYS, file, place)
    key = table.get("key")
    if key is not None and not isinstance(key, str):
        raise input_error("expected a dotted key", file=file, key=f"{place}.key", given=key)
    name = table.get("name", key.rpartition(".")[2] if key else None)
    if not isinstance(name, str) or not AXIS_NAME.fullmatch(name):
        problem = "expected a name of small letters, digits and _"
        raise input_error(problem, file=file, key=f"{place}.name", given=name)
    if name in TAKEN or name.startswith(("drop_", "mark_")) or name.endswith(UNITS):
        problem = "the result tables have such a column; choose another name"
        hint = f'{{ name = "my_{name}", key = "{key}", values = [...] }}' if key else None
        raise input_error(problem, file=file, key=f"{place}.name", given=name, hint=hint)
    given = table.get("values")
    given = given if isinstance(given, (list, tuple)) else plain(given)
    if not isinstance(given, (list, tuple)) or not given:
        problem = "an axis needs a list of values"
        raise input_error(problem, file=file, key=f"{place}.values", given=given)
    values = [_value(each, key, file, f"{place} ({name}) value {i}") for i, each in
              enumerate([*given, *add.get(name, ())], start=1)]  # fmt: skip
    seen = set()
    for value in values:
        if value.label in seen:
            problem, hint = "two values of one label", '{ label = "...", set = { ... } } names one'
            key = f"{place}.values"
            raise input_error(problem, file=file, key=key, given=value.label, hint=hint)
        seen.add(value.label)
    return Axis(name, tuple(values))


def check_labels(
    kept: Mapping[str, Sequence[str]], axes: Mapping[str, Sequence[str]], file: str, place: str = ""
) -> None:
    """Raises `InputError` unless all axes and labels are known."""
    for axis, wanted in kept.items():
        if axis not in axes:
            raise unknown("axis", axis, axes, file=file, key=place)
        if not wanted:
            problem = "expected at least one label"
            raise input_error(problem, file=file, key=f"axis {axis}", given=wanted)
        known = set(axes[axis])
        for label in wanted:
            if label not in known:
                key = f"{place}.{axis}" if place else f"axis {axis}"
                raise unknown("label", label, axes[axis], file=file, key=key)


def _kept(axes: tuple[Axis, ...], only: Mapping[str, Sequence[Any]], file: str) -> tuple[Axis, ...]:
    """The axes with those values alone that `only` names; in the study's order."""
    kept = {name: [given] if isinstance(given, str) else [label_of(each) for each in given]
            for name, given in only.items()}  # fmt: skip
    check_labels(kept, {axis.name: axis.labels for axis in axes}, file)
    wanted = {axis.name: set(kept.get(axis.name, axis.labels)) for axis in axes}
    return tuple(
        Axis(axis.name, tuple(each for each in axis.values if each.label in wanted[axis.name]))
        for axis in axes
    )


def _value(given: Any, key: str | None, file: str, place: str) -> AxisValue:
    if isinstance(given, Part):
        given = {"label": given.label, "set": {key: given.table()}}
    given = plain(given)
    if key is not None and not (isinstance(given, Mapping) and "set" in given):
        return AxisValue(_label(given), {key: given})
    if not isinstance(given, Mapping):
        problem = "expected { label = ..., set = { ... } }, as the axis has no `key`"
        raise input_error(problem, file=file, key=place, given=given)
    check_keys(given, VALUE_KEYS, file, place)
    label, settings = check_label(given.get("label"), file, f"{place}.label"), given.get("set")
    if not isinstance(settings, Mapping):
        problem = "expected a table of dotted keys and values"
        raise input_error(problem, file=file, key=f"{place}.set", given=settings)
    return AxisValue(label, dict(settings))


def check_label(label: Any, file: str | None, key: str) -> str:
    """The label. Raises `InputError` for one that tables and charts cannot show."""
    if not isinstance(label, str) or not label:
        raise input_error("expected text", file=file, key=key, given=label)
    if not label.isprintable():  # charts cannot be drawn with line separators in names
        problem = "expected text in one line, without control characters"
        raise input_error(problem, file=file, key=key, given=ascii(label))
    return label


def label_of(value: Any) -> str:
    """How a value of an axis is called in tables."""
    if isinstance(value, Part):
        return value.label
    value = plain(value)
    if isinstance(value, Mapping) and "set" in value:
        return str(value["label"])
    return _label(value)


def _label(value: Any) -> str:
    """How a value given in short form is called in tables."""
    if isinstance(value, Mapping):
        for key in ("discipline", "algorithm"):
            if isinstance(value.get(key), (str, type)):
                return _label(value[key])
    if isinstance(value, type):
        return value.__name__
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _covers(settings: Iterable[str], own: str, link: str) -> bool:
    """Returns whether settings replace what an axis sets with its key `own`; `links.` is optional,
    and so is the name of the bottleneck, `link`."""

    def short(key: str) -> str:
        return key.removeprefix("links.").removeprefix(f"{link}.") + "."

    return any(short(own).startswith(short(key)) for key in settings)

"""A scenario: links, flows, and how long they run."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aqmlab import _core
from aqmlab.errors import InputError, input_error, renamed
from aqmlab.scenario import parts
from aqmlab.scenario.parts import Part, Workload
from aqmlab.scenario.quantity import Duration
from aqmlab.scenario.settings import check_form, check_keys, parse_toml, read_text
from aqmlab.scenario.toml import toml

if TYPE_CHECKING:
    from aqmlab.scenario.generated import Change, Flow, Link, Record, Transport
    from aqmlab.scenario.quantity import DurationLike


class Scenario(Part):
    """Links, groups of flows, and how long they run.

    Parameters
    ----------
    links : mapping of name to Link
        The links; a mapping with the keys of a scenario file is accepted as well.
    flows : mapping of name to Flow
        The groups of flows.
    duration : Duration or text, default 60s
        Virtual time at which the run ends, unless all flows are finite and end before.
    seed : int, default 1
        Seed of all random streams.
    bottleneck : str, default: the slowest link on a `path`
        Link that results are about.
    until : str, optional
        Group of flows whose end ends the run.
    simultaneous : "arrivals-first" or "departures-first"
        Order of an arrival at a queue and a departure from it at the same time.
    transport : Transport, optional
        Transport of the groups that have none of their own.
    record : Record, optional
        Recording level and interval.
    changes : sequence of Change, optional
        Changes during the run.
    folders : sequence of str, optional
        Folders in which files named by the scenario are looked up.
    """

    links: Mapping[str, Link | Mapping[str, Any]]
    flows: Mapping[str, Flow | Mapping[str, Any]]
    duration: DurationLike | None = None
    seed: int | None = None
    bottleneck: str | None = None
    until: str | None = None
    simultaneous: Literal["arrivals-first", "departures-first"] | None = None
    transport: Transport | Mapping[str, Any] | None = None
    record: Record | Mapping[str, Any] | None = None
    changes: Sequence[Change | Mapping[str, Any]] | None = None
    folders: Sequence[str] = ()

    def _given(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in super()._given() if name != "folders"]

    @staticmethod
    def read(path: str | Path) -> Scenario:
        """Reads a scenario file; relative names of files in it are looked up in its folder.

        Raises `InputError` if the file cannot be read or is not a scenario.
        """
        path = Path(path)
        table = parse_toml(read_text(path), str(path))
        check_form(table, "scenario", str(path))
        return Scenario.from_table(table, folders=[str(path.parent)], file=str(path))

    @staticmethod
    def from_toml(text: str, *, folders: Sequence[str] = ()) -> Scenario:
        """Parses TOML text. Raises `InputError` if it is not a scenario."""
        return Scenario.from_table(parse_toml(text, "<scenario>"), folders=folders)

    @staticmethod
    def from_table(
        table: Mapping[str, Any], *, folders: Sequence[str] = (), file: str = "<scenario>"
    ) -> Scenario:
        """Makes a scenario of a mapping with the keys of a scenario file.

        Raises `InputError` for unknown keys.
        """
        read = dict(table)
        check_keys(read, [each.name for each in fields(Scenario) if each.name != "folders"], file)
        for name in ("links", "flows"):
            if not isinstance(read.get(name), Mapping):
                raise input_error("expected a table of tables", file=file, key=name)
        try:
            for name in ("links", "flows"):
                read[name] = {own: parts.part(name, each) for own, each in read[name].items()}
            for name in ("transport", "record", "changes"):
                if name in read:
                    read[name] = parts.part(name, read[name])
        except InputError:
            _core.Scenario(table, file=file, folders=list(folders))  # its error says where
            raise
        return Scenario(**read, folders=list(folders))

    @staticmethod
    def dumbbell(
        rate: Any, rtt: DurationLike, *, queue: Any = None, duration: DurationLike = "30s",
        **flows: int | Workload | Flow | Mapping[str, Any],
    ) -> Scenario:  # fmt: skip
        """Makes a scenario of the links `down`, the bottleneck, and `up`, its reverse direction.

        Parameters
        ----------
        rate : Rate, text or RateProcess
            Rate of both links.
        rtt : Duration or text
            Round-trip time without queues.
        queue : QueueDiscipline, text or mapping, optional
            Queue discipline of `down`.
        duration : Duration or text, default 30s
            Virtual time at which the run ends.
        **flows : int, Workload, Flow or mapping
            Groups of flows: a number of endless downloads, a workload, or a `Flow` or its keys.
            They start at random times in the first second unless they have a `start`.
        """
        try:
            half = Duration(rtt) / 2
        except InputError as error:
            raise renamed(error, "rtt") from None
        groups = {}
        for name, each in flows.items():
            if isinstance(each, Part) and not isinstance(each, Workload):
                each = each.table()
            keys = each if isinstance(each, Mapping) else {"workload": each}
            keys = {"count": each} if isinstance(each, Integral) else keys
            usual = {"path": "down", "return_path": "up", "start": {"each": ["0s", "1s"]}}
            groups[name] = parts.part("flows", usual | dict(keys))
        down = {"rate": rate, "delay": half} | ({"queue": queue} if queue is not None else {})
        links = {
            "down": parts.part("links", down),
            "up": parts.part("links", {"rate": rate, "delay": half}),
        }
        return Scenario(links=links, flows=groups, duration=duration)

    def to_toml(self) -> str:
        """Returns the scenario as TOML text."""
        return toml(self.table())

    def write(self, path: str | Path) -> None:
        """Writes the scenario to a file. Raises `OSError` if it cannot be written."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def check(self) -> _core.Scenario:
        """Checks the scenario and returns the engine's form of it.

        Raises `InputError` if the scenario is invalid.
        """
        return _core.Scenario(self.table(), folders=list(self.folders))

    @property
    def resolved(self) -> Scenario:
        """The scenario with every default filled in. Raises `InputError` as `check` does."""
        return Scenario.from_toml(self.check().to_toml(), folders=self.folders)


def _again(toml: str, folders: Sequence[str]) -> _core.Scenario:
    return _core.Scenario(toml, folders=list(folders))


copyreg.pickle(_core.Scenario, lambda scenario: (_again, (scenario.to_toml(), scenario.folders)))

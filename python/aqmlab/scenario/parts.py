"""Parts of a scenario: the base class, and the classes made from the engine's declarations.

The engine declares every queue, congestion control, workload, link and transport once: name,
parameters, kinds, defaults, ranges, meanings, sources. Each declaration becomes a dataclass with
one optional keyword argument a parameter; `generated.pyi` has the same classes for type checkers
and editors (`tools/scenario_stub.py` writes it).
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, dataclass_transform

from aqmlab import _core
from aqmlab.errors import unknown
from aqmlab.scenario.quantity import Duration, Quantity


@dataclass_transform(kw_only_default=True, eq_default=False)
class Part:
    """Table of a scenario. Arguments that are not given have the engine's defaults."""

    entry: ClassVar[str] = ""
    """Name in `aqmlab list` and `aqmlab explain`."""
    name_key: ClassVar[str] = ""
    """Key that holds the name in the table; empty where none does."""

    def __init_subclass__(cls) -> None:
        dataclass(kw_only=True, repr=False, eq=False)(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets a parameter. Raises `InputError` for another name, which would have no effect."""
        if name not in self.__dataclass_fields__:  # type: ignore[attr-defined]
            names = [each.name for each in fields(self)]  # type: ignore[arg-type]
            raise unknown("parameter", name, names, key=type(self).__name__)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given())
        return f"{type(self).__name__}({given})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.table() == other.table()

    def __hash__(self) -> int:
        return hash(json.dumps(self.table(), sort_keys=True, default=str))

    @property
    def label(self) -> str:
        """Name and arguments in words, as axes of studies show them: `codel target=2ms`."""
        given = [f"{name}={plain(value)}" for name, value in self._given()]
        return " ".join([self.entry or type(self).__name__, *given])

    def table(self) -> dict[str, Any]:
        """The part as a mapping, as in a scenario file."""
        named = {self.name_key: self.entry} if self.name_key else {}
        return named | {name.removesuffix("_"): plain(value) for name, value in self._given()}

    def _given(self) -> list[tuple[str, Any]]:
        every = ((each.name, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return [(name, value) for name, value in every if value is not None]


class QueueDiscipline(Part):
    """Queue discipline of a link."""

    name_key = "discipline"


class Control(Part):
    """Congestion control of a transport."""

    name_key = "algorithm"


class Workload(Part):
    """Application that drives the flows of a group."""

    name_key = "kind"


class Endpoint(Part):
    """Transport other than TCP."""

    name_key = "kind"


class RateProcess(Part):
    """Rate of a link that changes during the run."""


class DelayProcess(Part):
    """Delay of a link that changes during the run."""


class LossModel(Part):
    """Losses on a link behind its queue."""


BASES: Mapping[str, type[Part]] = {
    "queue": QueueDiscipline,
    "congestion_control": Control,
    "workload": Workload,
    "endpoint": Endpoint,
}
"""Sections of the reference whose entries are alternatives, chosen by name."""
KEYS = {
    "rate": {"steps": "rate-steps", "trace": "rate-trace", "csv": "rate-csv"},
    "delay": {"steps": "delay-steps", "csv": "delay-csv"},
    "loss": {"chance": "loss", "p": "gilbert-elliott", "packets": "loss-list", "on": "outages"},
}
"""Key that tells the kind of a table under `rate`, `delay` and `loss`."""
PROCESSES = ("markov", "ornstein-uhlenbeck", "lte", "wifi")
"""Rate processes that a table names by its key `process`."""
MODELS: Mapping[str, type[Part]] = {
    **dict.fromkeys([*KEYS["rate"].values(), *PROCESSES], RateProcess),
    **dict.fromkeys(KEYS["delay"].values(), DelayProcess),
    **dict.fromkeys(KEYS["loss"].values(), LossModel),
}
DEEP = 100
"""Tables and lists that are deeper stay as they are: the engine refuses them."""
SPELLING = {
    "codel": "CoDel",
    "codel_dt": "CoDelDt",
    "fq_codel": "FqCoDel",
    "sfq_codel": "SfqCoDel",
    "droptail": "DropTail",
    "dualpi2": "DualPi2",
    "loss": "RandomLoss",
    "tcp": "Transport",
}
WORKLOAD_NAMES = {"cbr": "ConstantRate"}
"""Workloads with the name of a congestion control."""


def class_name(entry: Mapping[str, Any]) -> str:
    """Name of the class of an entry of the reference."""
    name = str(entry["name"])
    if entry["section"] == "workload" and name in WORKLOAD_NAMES:
        return WORKLOAD_NAMES[name]
    words = name.replace("+", "_plus").replace("-", "_").split("_")
    return SPELLING.get(name) or "".join(word[:1].upper() + word[1:] for word in words)


def base_of(entry: Mapping[str, Any]) -> type[Part] | None:
    """Base class of an entry of the reference; None if it is not part of a scenario."""
    section, name = entry["section"], entry["name"]
    if section in BASES:
        return BASES[section]
    if section == "link" and name in MODELS:
        return MODELS[name]
    return Part if section == "transport" or (section, name) in ENTRIES.values() else None


def argument(name: str) -> str:
    """Name of a parameter as a keyword argument: `class` is `class_`."""
    return f"{name}_" if keyword.iskeyword(name) else name


@cache
def classes() -> dict[str, type[Part]]:
    """All classes made from the declarations, by name."""
    return {made.__name__: made for made in _by_entry().values()}


@cache
def _by_entry() -> dict[tuple[str, str], type[Part]]:
    found: dict[tuple[str, str], type[Part]] = {}
    for entry in _core.reference():
        base = base_of(entry)
        if base is None:
            continue
        names = [argument(each["name"]) for each in entry["params"]]
        body = {
            "__doc__": docstring(entry),
            "__module__": "aqmlab.scenario",
            "__annotations__": dict.fromkeys(names, Any),
            "entry": entry["name"],
            **({"name_key": "process"} if entry["name"] in PROCESSES else {}),
            **dict.fromkeys(names),
        }
        found[entry["section"], entry["name"]] = type(class_name(entry), (base,), body)
    return found


def docstring(entry: Mapping[str, Any]) -> str:
    """Summary and parameters of an entry, with kinds, defaults, ranges, meanings and sources."""
    summary = str(entry["summary"])
    lines = [f"{summary[:1].upper()}{summary[1:]}."]
    if entry["params"]:
        lines += ["", "Parameters", "----------"]
    for param in entry["params"]:
        allowed = ", ".join(param["choices"]) or param["kind"]
        if param["range"]:
            allowed += f" from {param['range'][0]} to {param['range'][1]}"
        default = "required" if param["default"] is None else f"default {param['default']}"
        lines.append(f"{argument(param['name'])} : {allowed}, {default}")
        lines.append(f"    {param['meaning']} Source: {param['source']}.")
    return "\n".join(lines)


PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types of values that stay as they are; those of numpy are subclasses."""


def plain(value: Any, depth: int = 0) -> Any:
    """A value as scenario files have it; classes of the user's own stay as they are."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, Part):
        return value.table()
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, timedelta):
        return str(Duration(value))
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping) and depth < DEEP:
        return {str(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, range)) and depth < DEEP:
        return [plain(each, depth + 1) for each in value]
    for name in ("tolist", "to_list"):  # numbers and arrays of numpy, series of pandas and polars
        if callable(convert := getattr(value, name, None)) and not isinstance(value, type):
            return plain(convert())
    return value


def made(section: str, name: str, table: Mapping[str, Any]) -> Part:
    """The object of a table with the keys of an entry. Raises `InputError` for unknown keys."""
    found = _by_entry()[section, name]
    names = [each.name for each in fields(found)]  # type: ignore[arg-type]
    given = {argument(key): value for key, value in table.items() if key != found.name_key}
    for key in given:
        if key not in names:
            raise unknown("key", key, names, key=name)
    return found(**given)


ENTRIES = {
    "links": ("link", "link"),
    "flows": ("flow", "flow"),
    "transport": ("transport", "tcp"),
    "record": ("record", "record"),
    "changes": ("scenario", "change"),
    "reroutes": ("flow", "reroute"),
    "shaper": ("shaper", "shaper"),
    "driver": ("driver", "driver"),
    "jitter": ("link", "jitter"),
    "slot": ("link", "slot"),
}
"""Entry of the reference, by its section and name, of the tables under a key of scenario files."""
INNER: Mapping[str, Collection[str]] = {
    "links": ("queue", *KEYS, "shaper", "driver", "jitter", "slot"),
    "flows": ("workload", "endpoint", "transport", "reroutes"),
    "transport": ("congestion_control",),
}
"""Keys of such a table that hold tables themselves."""
LISTS = ("changes", "reroutes")


def part(key: str, value: Any) -> Any:
    """The table under a key of a scenario file as an object, or the list of tables; other values
    stay as they are, as do tables of what the user brings. Raises `InputError` for unknown keys."""
    if key in LISTS and isinstance(value, list):
        return [part(key, each) for each in value]
    if not isinstance(value, Mapping):
        return value
    inner = INNER.get(key, ())
    read = {own: part(own, each) if own in inner else each for own, each in value.items()}
    section, name = _entry_of(key, value)
    is_known = isinstance(name, str) and (section, name) in _by_entry()
    return made(section, name, read) if is_known else value


def _entry_of(key: str, value: Mapping[str, Any]) -> tuple[str, Any]:
    """Entry of the reference, by its section and name, of the table under a key."""
    if key in BASES:
        return key, value.get(BASES[key].name_key)
    if key in KEYS:
        kinds = (entry for own, entry in KEYS[key].items() if own in value)
        return "link", (key == "rate" and value.get("process")) or next(kinds, None)
    return ENTRIES[key]

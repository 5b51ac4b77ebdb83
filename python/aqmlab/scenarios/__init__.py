"""Scenarios as objects, with a class for everything that is declared in the engine.

    from aqmlab.scenarios import CoDel, Flow, Link, Scenario, Voip

    scenario = Scenario(
        duration="30s",
        links={"down": Link(rate="20mbit", delay="15ms", queue=CoDel(target="2ms")),
               "up": Link(rate="5mbit", delay="15ms")},
        flows={"call": Flow(path="down", return_path="up", workload=Voip())},
    )
    aqmlab.run(scenario)
    scenario.to_toml()

Of every queue discipline, congestion control and workload there is a class (`classes()`), named
like it in capitals: `FqCodel`, `Cubic`, `ParetoOnoff`. Its docstring has the parameters with
default, range, meaning and source, from the same declarations as the reference. What is given is
checked when the scenario is run, or by `Scenario.check()`; names of parameters at once.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from aqmlab import _core
from aqmlab.errors import unknown

KINDS = {"queue": "discipline", "congestion_control": "algorithm", "workload": "kind"}
"""Sections with many entries, and the key that names the entry."""
PARTS = {"link": "Link", "flow": "Flow", "transport": "Transport", "record": "Record"}
"""Sections that are tables of a scenario themselves."""
CASES = {"codel": "CoDel", "fq_codel": "FqCodel", "pie": "Pie", "droptail": "DropTail"}


class Part:
    """A table of a scenario."""

    section: ClassVar[str] = ""
    entry: ClassVar[str] = ""
    declared: ClassVar[tuple[str, ...]] = ()
    """The parameters, if no other key is allowed."""

    def __init__(self, **settings: Any) -> None:
        if self.declared:
            for name in settings:
                if name not in self.declared:
                    raise unknown(f"parameter of {self.entry}", name, self.declared)
        self.settings = settings
        """What was given, by key."""

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return f"{type(self).__name__}({given})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.table() == other.table()

    def __hash__(self) -> int:
        return hash(json.dumps(self.table(), sort_keys=True, default=str))

    def table(self) -> dict[str, Any]:
        """The same as a mapping, as in a scenario file."""
        named = {KINDS[self.section]: self.entry} if self.section in KINDS else {}
        return named | {key: _plain(value) for key, value in self.settings.items()}


class Scenario(Part):
    """A scenario: `links` and `flows` by name, `duration`, `seed`, `bottleneck`, ..."""

    section = "scenario"

    def __init__(
        self, *, links: Mapping[str, Any], flows: Mapping[str, Any], **settings: Any
    ) -> None:
        super().__init__(**settings, links=dict(links), flows=dict(flows))

    @property
    def links(self) -> dict[str, Any]:
        """The links by name."""
        found: dict[str, Any] = self.settings["links"]
        return found

    @property
    def flows(self) -> dict[str, Any]:
        """The groups of flows by name."""
        found: dict[str, Any] = self.settings["flows"]
        return found

    @staticmethod
    def from_toml(text: str) -> Scenario:
        """The scenario in a TOML text. Raises `tomllib.TOMLDecodeError` if it is none."""
        return Scenario.from_table(tomllib.loads(text))

    @staticmethod
    def from_table(table: Mapping[str, Any]) -> Scenario:
        """The scenario in a mapping such as a scenario file has."""
        rest = {key: value for key, value in table.items() if key not in ("links", "flows")}
        if isinstance(rest.get("transport"), Mapping):
            rest["transport"] = _transport(rest["transport"])
        if isinstance(rest.get("record"), Mapping):
            rest["record"] = classes()["Record"](**rest["record"])
        links = {name: _link(each) for name, each in table.get("links", {}).items()}
        flows = {name: _flow(each) for name, each in table.get("flows", {}).items()}
        return Scenario(links=links, flows=flows, **rest)

    def to_toml(self) -> str:
        """The scenario as the text of a file."""
        return toml(self.table())

    def check(self) -> _core.Scenario:
        """The scenario with every default filled in (`.resolved`).

        Raises `InputError` for whatever is wrong in it.
        """
        return _core.Scenario(self.table())


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.table()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _named(section: str, value: Any) -> Any:
    """A queue, control or workload as an object, if it is an entry of the reference."""
    key = KINDS[section]
    name = value.get(key) if isinstance(value, Mapping) else None
    found = _entries().get((section, name)) if isinstance(name, str) else None
    if found is None:
        return value
    return found(**{each: given for each, given in value.items() if each != key})


def _replaced(table: Mapping[str, Any], **makers: Any) -> dict[str, Any]:
    return {key: makers[key](value) if key in makers else value for key, value in table.items()}


def _link(table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    return classes()["Link"](**_replaced(table, queue=lambda each: _named("queue", each)))


def _flow(table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    made = _replaced(table, workload=lambda each: _named("workload", each), transport=_transport)
    return classes()["Flow"](**made)


def _transport(table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    control = {"congestion_control": lambda each: _named("congestion_control", each)}
    return classes()["Transport"](**_replaced(table, **control))


def _case(name: str) -> str:
    words = name.replace("+", "_plus").replace("-", "_").split("_")
    return CASES.get(name) or "".join(word[:1].upper() + word[1:] for word in words)


def _docstring(entry: Mapping[str, Any]) -> str:
    summary = str(entry["summary"])
    lines = [f"{summary[:1].upper()}{summary[1:]}.", ""]
    for param in entry["params"]:
        allowed = ", ".join(param["choices"]) or param["kind"]
        if param["range"]:
            allowed += f", {param['range'][0]} to {param['range'][1]}"
        told = f"{param['meaning']} " if param["meaning"] else ""
        lines.append(f"{param['name']}: {told}({allowed}; default {param['default']};")
        lines.append(f"    source: {param['source']})")
    return "\n".join(lines)


@cache
def _entries() -> dict[tuple[str, str], type[Part]]:
    """The classes of queues, controls and workloads, by section and name."""
    found: dict[tuple[str, str], type[Part]] = {}
    for entry in _core.reference():
        if entry["section"] in KINDS:
            names = tuple(param["name"] for param in entry["params"])
            body = {
                "__doc__": _docstring(entry),
                "__module__": __name__,
                "section": entry["section"],
                "entry": entry["name"],
                # A queue of queues takes more than its own parameters: the engine checks them.
                "declared": names if entry["section"] == "congestion_control" else (),
            }
            name = _case(entry["name"])
            if name in {each.__name__ for each in found.values()}:
                name += _case(entry["section"])
            found[entry["section"], entry["name"]] = type(name, (Part,), body)
    return found


@cache
def classes() -> dict[str, type[Part]]:
    """All classes by name."""
    found: dict[str, type[Part]] = {"Scenario": Scenario}
    for entry in _core.reference():
        name = PARTS.get(entry["section"])
        if name is not None and name not in found:
            body = {"__doc__": _docstring(entry), "__module__": __name__,
                    "section": entry["section"], "entry": entry["section"]}  # fmt: skip
            found[name] = type(name, (Part,), body)
    for made in _entries().values():
        found.setdefault(made.__name__, made)
    return found


def __getattr__(name: str) -> Any:
    """The class of this name."""
    if name.startswith("__") or name not in classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return classes()[name]


def __dir__() -> list[str]:
    return sorted([*classes(), "Part", "classes", "toml", "toml_value"])


def toml(table: Mapping[str, Any]) -> str:
    """A mapping as TOML: tables of the first two levels under headings, the others inline."""
    lines = [f"{_key(key)} = {toml_value(value)}" for key, value in table.items()
             if not isinstance(value, Mapping)]  # fmt: skip
    for name, part in table.items():
        if not isinstance(part, Mapping):
            continue
        below = {key: value for key, value in part.items() if isinstance(value, Mapping)}
        if name not in ("links", "flows"):
            below = {}
        own = {key: value for key, value in part.items() if key not in below}
        if own or not below:
            lines += [
                "",
                f"[{_key(name)}]",
                *(f"{_key(k)} = {toml_value(v)}" for k, v in own.items()),
            ]
        for key, value in below.items():
            lines += ["", f"[{_key(name)}.{_key(key)}]"]
            lines += [f"{_key(k)} = {toml_value(v)}" for k, v in value.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def _key(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isascii() and plain.isalnum() else toml_value(name)


def toml_value(value: Any) -> str:
    """A value as it is written in TOML, tables inline."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)

"""Scenarios as TOML text: links and flows under headings, their content inline."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any


def toml(table: Mapping[str, Any]) -> str:
    """A mapping as TOML: tables of the first two levels under headings, the others inline."""
    tables = {name: part for name, part in table.items() if isinstance(part, Mapping)}
    lines = _pairs(table, without=tables)
    for name, part in tables.items():
        has_parts = name in ("links", "flows")
        below = {k: v for k, v in part.items() if has_parts and isinstance(v, Mapping)}
        own = _pairs(part, without=below)
        if own or not below:
            lines += ["", f"[{_key(name)}]", *own]
        for key, value in below.items():
            lines += ["", f"[{_key(name)}.{_key(key)}]", *_pairs(value)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _pairs(table: Mapping[str, Any], without: Collection[str] = ()) -> list[str]:
    return [f"{_key(k)} = {toml_value(v)}" for k, v in table.items() if k not in without]


def _key(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isascii() and plain.isalnum() else toml_value(name)


def shown(value: Any) -> str:
    """A value as an option has it: text without quotes."""
    return value if isinstance(value, str) else toml_value(value)


def toml_value(value: Any) -> str:
    """A value as it is written in TOML, tables inline."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, type):  # the name by which the engine finds a class of the user
        value = f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)

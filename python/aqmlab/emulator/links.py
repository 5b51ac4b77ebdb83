"""The links of a path as options of the command line give them.

They become a scenario like any other: one reader, one set of keys, one kind of message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab._core import InputError, Scenario, parse_value
from aqmlab.errors import input_error, renamed, unknown
from aqmlab.scenario.access import profile as named
from aqmlab.scenario.parts import plain

UNLIMITED = "1000000gbit"
"""The rate of a link that is to have none: a packet takes no time."""
FLOW = "traffic"
OPTIONS_FILE = "<options>"
OPTIONS = ("rate", "trace", "delay", "queue", "loss", "jitter", "slot", "duplicate", "overhead")
"""Options with the name of a link's key, except `trace`."""
SLOT_LIMITS = ("packets", "bytes")


@dataclass(frozen=True)
class EmulatedPath:
    """A scenario, and which of its links lead to the command and away from it."""

    scenario: Scenario
    down: list[str]
    up: list[str]


def from_scenario(
    file: Path, down: Sequence[str], up: Sequence[str], settings: Mapping[str, Any]
) -> EmulatedPath:
    """The links of a scenario file: those named, or the path of its first group of flows.

    The command stands where the receivers are: `down` is their path. Raises `InputError`
    for whatever is wrong in the file or in the names.
    """
    from aqmlab.study.single import load

    scenario = load(file, settings)
    table = json.loads(scenario.resolved)
    names = list(table["links"])
    for key, given in (("down", down), ("up", up)):
        for name in given:
            if name not in names:
                raise unknown("link", name, names, key=key)
    flow = next(iter(table["flows"].values()))
    return EmulatedPath(scenario, list(down) or flow["path"], list(up) or flow["return_path"])


def from_options(
    common: Mapping[str, Any],
    down: Sequence[str],
    up: Sequence[str],
    settings: Mapping[str, Any],
    profile: str | None = None,
) -> EmulatedPath:
    """The links of options: `common` in both directions, and texts such as
    `"rate=12mbit queue=codel queue.target=5ms"`, one a link, in each.

    What a text says counts; what it leaves open is as in `common`, and what that leaves open as in
    the access line `profile`. Raises `InputError` with the name of the option.
    """
    line = named(profile).line.links() if profile is not None else {}
    links: dict[str, dict[str, Any]] = {}
    own: dict[str, dict[str, Any]] = {}
    names: dict[str, list[str]] = {}
    for direction, texts in (("down", down), ("up", up)):
        if len(texts) > 1 and (common or line):
            option = next(iter(common), "profile")
            problem = f"`{direction}` gives more than one link: set this in each of them"
            raise input_error(problem, key=option)
        numbers = range(1, len(texts) + 1) if len(texts) > 1 else [""]
        names[direction] = [f"{direction}{number}" for number in numbers]
        for name, text in zip(names[direction], texts or [""], strict=True):
            pairs = _pairs(text, direction)
            try:
                own[name] = link(pairs)
            except InputError as error:
                raise renamed(error, f"{direction} ({error.key})") from None
            given = link(common) | own[name]
            links[name] = {"rate": UNLIMITED, "delay": "0s"} | line.get(direction, {}) | given
    try:
        return from_tables(links, names["down"], names["up"], settings)
    except InputError as error:
        raise _about_options(error, own, settings) from None


def from_tables(
    links: Mapping[str, Mapping[str, Any]],
    down: Sequence[str],
    up: Sequence[str],
    settings: Mapping[str, Any],
) -> EmulatedPath:
    """A path of links as a scenario has them, by name. Raises `InputError` with their keys."""
    table = {
        # Without a rate, transmission takes no time.
        "simultaneous": "departures-first",
        "links": dict(links),
        "flows": {FLOW: {"path": list(down), "return_path": list(up)}},
    }
    settings = plain(settings)
    scenario = Scenario(plain(table), file=OPTIONS_FILE, settings=settings, folders=[])
    return EmulatedPath(scenario, list(down), list(up))


def link(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a link, of options with their short forms."""
    if {"rate", "trace"} <= settings.keys():
        problem = "a link has a rate or a trace, not both"
        raise input_error(problem, key="trace", given=str(settings["trace"]))
    table: dict[str, Any] = {}
    for key, value in settings.items():
        outer, dot, inner = key.partition(".")
        if dot:
            table.setdefault(outer, {})[inner] = value
        elif key == "trace":
            table["rate"] = {"trace": value}
        elif key in SHORT_FORMS and isinstance(value, str):
            table[key] = SHORT_FORMS[key](value, key)
        else:
            table[key] = value
    return table


def _chance(text: str, option: str) -> Any:
    """`1%`, or with netem's correlation `1% 25%` (with a comma where spaces part settings)."""
    words = _words(text)
    if len(words) > 2:
        raise input_error("expected a share and a correlation: 1% 25%", key=option, given=text)
    values = [
        _share(*each) for each in zip(words, (option, f"{option} (correlation)"), strict=False)
    ]
    return values[0] if len(values) == 1 else {"chance": values[0], "correlation": values[1]}


def _loss(text: str, option: str) -> Any:
    """A chance, `random 1% 25%`, or netem's Gilbert-Elliott model, `gemodel 1% 10% 70% 0.1%`."""
    model, *words = _words(text)
    if model == "random":
        return _chance(" ".join(words), option)
    if model == "gemodel" and 1 <= len(words) <= 4:
        keys = ("p", "r", "bad", "good")
        return {key: _share(word, option) for key, word in zip(keys, words, strict=False)}
    if words and model[:1].isalpha():
        problem = "expected a share, random 1% 25%, or gemodel 1% 10% 70% 0.1%"
        raise input_error(problem, key=option, given=text)
    return _chance(text, option)


def _jitter(text: str, option: str) -> dict[str, Any]:
    """`2ms`, and what netem's delay takes after that: `2ms 25% distribution pareto`."""
    spread, *words = (word for word in _words(text) if word != "distribution")
    table: dict[str, Any] = {"spread": spread}
    for word in words:
        is_share = word.endswith("%") or word[0].isdigit()
        key = "correlation" if is_share else "distribution"
        if key in table:
            problem = "expected a spread, a correlation and a distribution: 2ms 25% normal"
            raise input_error(problem, key=option, given=text)
        table[key] = _share(word, f"{option} (correlation)") if is_share else word
    return table


def _slot(text: str, option: str) -> dict[str, Any]:
    """Slots as netem takes them: `2ms`, `2ms 8ms packets 16 bytes 40000`."""
    problem = "expected the shortest and longest time until a slot: 2ms 8ms packets 16 bytes 40000"
    words = _words(text)
    limits = next((at for at, word in enumerate(words) if word in SLOT_LIMITS), len(words))
    times, limited = words[:limits], words[limits:]
    names, values = limited[::2], limited[1::2]
    is_known = len(set(names)) == len(names) == len(values) and set(names) <= set(SLOT_LIMITS)
    if not 1 <= len(times) <= 2 or not is_known:
        raise input_error(problem, key=option, given=text)
    table: dict[str, Any] = dict(zip(("min", "max"), times, strict=False))
    for name, value in zip(names, values, strict=True):
        # netem's numbers are bytes.
        table[name] = f"{value}b" if name == "bytes" and value.isdigit() else parse_value(value)
    return table


SHORT_FORMS: Mapping[str, Callable[[str, str], Any]] = {
    "queue": lambda text, _: {"discipline": text},
    "jitter": _jitter,
    "slot": _slot,
    "loss": _loss,
    "duplicate": _chance,
}
"""Keys of a link whose values may be texts as netem has them; the option is for errors."""


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word] or [""]


def _share(text: str, option: str) -> Any:
    """`1%` or `0.01` as a number."""
    if not text.endswith("%"):
        return parse_value(text)
    with suppress(ValueError):
        if 0 <= (percent := float(text[:-1])) <= 100:
            return percent / 100
    problem = "expected a share from 0% to 100%, such as 1% or 0.01"
    raise input_error(problem, key=option, given=text)


def _pairs(text: str, option: str) -> dict[str, Any]:
    """`"a=1 b.c={ x = 2 } queue='codel ecn'"` as keys and values; braces, brackets and quotes may
    hold spaces."""
    settings: dict[str, Any] = {}
    for word in re.findall(
        r"""(?:[^\s{\["']|\{[^}]*\}|\[[^\]]*\]|"[^"]*"|'[^']*'|["'{\[])+""", text
    ):
        key, equals, value = word.partition("=")
        if not equals or not key:
            problem = "expected settings such as rate=12mbit or queue='codel target 2ms'"
            raise input_error(problem, key=option, given=word)
        settings[key] = parse_value(value)
    return settings


def _about_options(
    error: InputError, own: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]
) -> InputError:
    """The error with the option instead of the key: `links.down.rate` is `rate`, or `down (rate)`
    if that is in the link's own text. Keys of `--set` remain."""
    key = error.key
    if error.file == "--set":
        return error
    # A file that a value of `--set` names; the short forms are NAME.KEY and queue.
    inner = key.removeprefix("links.")
    if any(f"{form}.".startswith(f"{each}.") for each in settings for form in (key, inner)):
        return error
    found = re.match(r"links\.((down|up)\d*)\.?(.*)", key)
    if found:
        name, direction, rest = found.groups()
        rest = rest.replace("queue.discipline", "queue", 1)
        option = rest.partition(".")[0]
        is_common = option in OPTIONS and option not in own[name]
        if rest == "rate.trace":
            option = rest = "trace"
        key = option if is_common else direction
        if rest and not (is_common and rest == option):
            key += f" ({rest})"
    if error.file == OPTIONS_FILE:
        return renamed(error, key, None)
    return renamed(error, f"--{key}", error.file)  # in a trace, where no command names its options

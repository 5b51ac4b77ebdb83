"""mahimahi's command lines, as links.

What the arguments mean is mahimahi's; queues and links are ours. Where the two differ is
said in docs/emulator.md, "Coming from mahimahi".
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aqmlab._core import InputError
from aqmlab.emulator.links import UNLIMITED, EmulatedPath, from_tables
from aqmlab.errors import input_error, renamed, unknown

HEADER = 4
"""Bytes that mahimahi counts with every packet: its device's."""
USAGE = {
    "delay": "delay MILLISECONDS [COMMAND...]",
    "link": "link UPLINK DOWNLINK [OPTION...] [COMMAND...]",
    "loss": "loss uplink|downlink RATE [COMMAND...]",
    "onoff": "onoff uplink|downlink MEAN-ON-TIME MEAN-OFF-TIME [COMMAND...]",
}
"""The tools and their arguments."""
DIRECTIONS = ("uplink", "downlink")
VALUES = tuple(
    f"{direction}-{what}" for what in ("log", "queue", "queue-args") for direction in DIRECTIONS
)
METERS = ("meter-uplink", "meter-uplink-delay", "meter-downlink", "meter-downlink-delay",
          "meter-all")  # fmt: skip
FLAGS = ("once", *METERS)
SHORT = {"-u": "uplink-log", "-d": "downlink-log"}
INFINITE = {"discipline": "droptail", "limit": "unlimited"}
PIE = {
    "discipline": "pie",
    "delay": "rate",
    "dq_threshold": "16384b",
    "tupdate": "30ms",
    "alpha": 7.8125,
    "beta": 78.125,
    "tuning": "draft",
    "derandomize": False,
    "cap": False,
}
"""mahimahi's PIE is that of a draft of RFC 8033, before drops were kept apart and steps
limited. It counts in milliseconds and divides by 128, 32 or 16 where the draft counts in
seconds and divides by 8, 2 or 1: its weights 0.125 and 1.25 are 62.5 times those of the draft."""
QUEUES: dict[str, dict[str, Any]] = {
    "infinite": {},
    "droptail": {"drop": "tail"},
    "drophead": {"drop": "head"},
    "codel": {"discipline": "codel"},
    "pie": PIE,
}
"""mahimahi's queues, as changes of one without a limit."""
TIMES = {
    "codel": {"target": "target", "interval": "interval"},
    "pie": {"qdelay_ref": "target", "max_burst": "max_burst"},
}
"""Further parameters of a queue, in milliseconds, with our names."""
ARGUMENTS = ("packets", "bytes", *TIMES["codel"], *TIMES["pie"])


@dataclass(frozen=True)
class Emulated:
    """What a command line asks for."""

    path: EmulatedPath
    command: list[str]
    prefix: str
    """What a shell's prompt begins with."""
    logs: list[tuple[str, str, list[str]]] = field(default_factory=list)
    until: float | None = None
    """When the links end, in seconds."""
    remarks: list[str] = field(default_factory=list)
    is_random: bool = False
    """True if the seed affects packets."""


def read(tool: str, words: Sequence[str], settings: dict[str, Any], prefix: str) -> Emulated:
    """The arguments of one of mahimahi's tools. Raises `InputError` with the argument's name.

    `prefix` is that of the shells around this one.
    """
    tools: dict[str, Callable[[list[str], dict[str, Any]], Emulated]] = {
        "delay": delay,
        "link": partial(link, prefix=prefix),
        "loss": loss,
        "onoff": onoff,
    }
    if tool not in tools:
        raise unknown("tool", tool, tools)
    return tools[tool](list(words), settings)


def delay(words: list[str], settings: dict[str, Any]) -> Emulated:
    """mm-delay: the same delay in both directions."""
    (given,), command = _positional("delay", words, 1)
    if not re.fullmatch(r"\d+", given):
        raise _wrong("MILLISECONDS", given, "a whole number")
    table = {"rate": UNLIMITED, "delay": f"{given}ms", "queue": INFINITE}
    path = _path({"up": table, "down": table}, settings, {r"\.delay": "MILLISECONDS"})
    return Emulated(path, command, f"[delay {int(given)} ms] ")


def loss(words: list[str], settings: dict[str, Any]) -> Emulated:
    """mm-loss: each packet of one direction is lost with the same chance."""
    (direction, given), command = _positional("loss", words, 2)
    share = _number("RATE", given)
    if share > 1:
        raise _wrong("RATE", given, "a share from 0 to 1")
    short = _direction(direction)
    tables = _free()
    tables[short]["loss"] = share
    path = _path(tables, settings, {})
    return Emulated(path, command, f"[loss {short}={given}] ", is_random=True)


def onoff(words: list[str], settings: dict[str, Any]) -> Emulated:
    """mm-onoff: one direction is off and on in turn and loses packets that arrive while off."""
    (direction, on, off), command = _positional("onoff", words, 3)
    short = _direction(direction)
    on_time, off_time = _number("MEAN-ON-TIME", on), _number("MEAN-OFF-TIME", off)
    tables = _free()
    tables[short]["loss"] = {"on": f"{on_time:f}s", "off": f"{off_time:f}s"}
    names = {r"loss\.on": "MEAN-ON-TIME", r"loss\.off": "MEAN-OFF-TIME"}
    path = _path(tables, settings, names)
    return Emulated(path, command, f"[onoff ({short}) on={on}s off={off}s] ", is_random=True)


def link(words: list[str], settings: dict[str, Any], prefix: str) -> Emulated:
    """mm-link: delivery opportunities from a file in each direction."""
    (uplink, downlink), options, command = _options(words)
    tables: dict[str, dict[str, Any]] = {}
    logs: list[tuple[str, str, list[str]]] = []
    line = shlex.join(["aqmlab", "mahimahi", "link", *words])
    for direction, short, file in (("uplink", "up", uplink), ("downlink", "down", downlink)):
        name = options.get(f"{direction}-queue", "infinite")
        arguments = options.get(f"{direction}-queue-args", "")
        queue, described = _queue(f"--{direction}-queue", name, arguments)
        tables[short] = {
            "rate": {"trace": file},
            "delay": "0s",
            "overhead": HEADER,
            "queue": queue,
        }
        log = options.get(f"{direction}-log")
        if log:
            head = [
                f"mahimahi mm-link ({direction.capitalize()}) [{file}] > {log}",
                f"command line: {line}",
                f"queue: {described}",
                *([f"mahimahi config: {prefix}"] if prefix else []),
            ]
            logs.append((short, log, head))
    names = {
        r"up\.rate": "UPLINK",
        r"down\.rate": "DOWNLINK",
        r"up\.queue": "--uplink-queue-args",
        r"down\.queue": "--downlink-queue-args",
    }
    path = _path(tables, settings, names)
    remarks, until = [], None
    if "once" in options:
        # It ends with the trace that is over first.
        periods = (path.scenario.trace_period(direction) for direction in ("up", "down"))
        until = min(period for period in periods if period is not None)
    if any(meter in options for meter in METERS):
        remarks.append("aqmlab has no meter windows: use `aqmlab top` in a terminal")
    is_random = any(table["queue"]["discipline"] == "pie" for table in tables.values())
    return Emulated(path, command, "[link] ", logs, until, remarks, is_random)


def _free() -> dict[str, dict[str, Any]]:
    """Links that do nothing."""
    return {name: {"rate": UNLIMITED, "delay": "0s", "queue": INFINITE} for name in ("up", "down")}


def _path(
    tables: dict[str, dict[str, Any]], settings: dict[str, Any], names: dict[str, str]
) -> EmulatedPath:
    """The path; `names` maps keys of a scenario to arguments."""
    try:
        return from_tables(tables, ["down"], ["up"], settings)
    except InputError as error:
        key = next((name for part, name in names.items() if re.search(part, error.key)), error.key)
        file = error.file if error.file and not error.file.startswith("<") else None
        raise renamed(error, key, file) from None


def _positional(tool: str, words: list[str], count: int) -> tuple[list[str], list[str]]:
    """The arguments, and the command behind them."""
    if len(words) < count:
        problem = f"expected: aqmlab mahimahi {USAGE[tool]}"
        raise input_error(problem, key=tool)
    command = words[count:]
    return words[:count], command[1:] if command[:1] == ["--"] else command


def _options(given: list[str]) -> tuple[tuple[str, str], dict[str, str], list[str]]:
    """The two files, the options and the command. As for mm-link, its options may stand
    anywhere before `--`, among the words of the command too."""
    options: dict[str, str] = {}
    words: list[str] = []
    rest = list(given)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        try:
            option, value = _option(word)
        except InputError:
            if len(words) < 3:
                raise
            # mm-link would refuse it: it is meant for the command, with all behind it.
            words += [word, *rest]
            break
        if option in FLAGS and value is not None:
            raise input_error("this option has no value", key=f"--{option}", given=value)
        if option not in FLAGS and value is None:
            if not rest:
                raise input_error("this option needs a value", key=f"--{option}")
            value = rest.pop(0)
        options[option] = value or ""
    if len(words) < 2:
        problem = f"expected: aqmlab mahimahi {USAGE['link']}"
        raise input_error(problem, key="link")
    return (words[0], words[1]), options, words[2:]


def _option(word: str) -> tuple[str, str | None]:
    """An option, which may be abbreviated as in mahimahi, and the value that is written with it."""
    if word[:2] in SHORT:
        return SHORT[word[:2]], word[2:] or None
    name, equals, value = word.partition("=")
    known = [f"--{option}" for option in (*VALUES, *FLAGS)]
    matching = [name] if name in known else [each for each in known if each.startswith(name)]
    if len(matching) != 1 or not name.startswith("--"):
        raise unknown("option", name, known)
    return matching[0].removeprefix("--"), value if equals else None


def _queue(option: str, name: str, text: str) -> tuple[dict[str, Any], str]:
    """A queue of mahimahi's as one of ours, and as mahimahi describes it."""
    if name not in QUEUES:
        raise unknown("queue", name, QUEUES, key=option)
    option = f"{option}-args"
    if name == "infinite":
        if text:
            problem = "the queue `infinite` takes no arguments"
            raise input_error(problem, key=option, given=text)
        return INFINITE, name
    arguments = _arguments(option, text)
    times = TIMES.get(name, {})
    for key in times:
        if key not in arguments:
            problem = f'the queue `{name}` needs {key}, in ms: "packets=1000, {key}=..."'
            raise input_error(problem, key=option, given=text or None)
    limits = {key: arguments[key] for key in ("bytes", "packets") if key in arguments}
    if not limits:
        problem = f'the queue `{name}` needs a limit: "packets=1000", "bytes=1500000" or both'
        raise input_error(problem, key=option, given=text or None)
    described = f"{name} [{', '.join(f'{key}={value}' for key, value in limits.items())}]"
    table = INFINITE | QUEUES[name] | {own: f"{arguments[key]}ms" for key, own in times.items()}
    if "packets" in limits:
        table["limit"] = f"{limits['packets']}p"
    if "bytes" in limits:
        table["byte_limit"] = f"{limits['bytes']}b"
    return table, described


def _arguments(option: str, text: str) -> dict[str, int]:
    """`packets=100, target=5` as numbers. Those of another queue may be there, as in mahimahi,
    and what is 0 is not."""
    arguments: dict[str, int] = {}
    for part in filter(None, re.split(r"[\s,;]+(?!=)(?<!=)", text.strip())):
        found = re.fullmatch(r"(\w+)\s*=\s*(\d+)", part)
        if not found:
            problem = 'expected NAME=NUMBER, separated by commas: "packets=100, target=5"'
            raise input_error(problem, key=option, given=part)
        if found[1] not in ARGUMENTS:
            raise unknown("argument", found[1], ARGUMENTS, key=option)
        arguments.setdefault(found[1], int(found[2]))
    return {name: value for name, value in arguments.items() if value}


def _direction(given: str) -> str:
    if given not in DIRECTIONS:
        raise unknown("direction", given, DIRECTIONS)
    return given.removesuffix("link")


def _number(name: str, given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise _wrong(name, given, "a number from 0")
    return number


def _wrong(name: str, given: str, allowed: str) -> InputError:
    return input_error(f"expected {allowed}", key=name, given=given)

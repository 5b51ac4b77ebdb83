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
from pathlib import Path
from typing import Any

from aqmlab._core import InputError
from aqmlab.emulate.links import UNLIMITED, EmulatedPath, from_tables
from aqmlab.errors import input_error, unknown

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


def read(tool: str, words: Sequence[str], settings: dict[str, Any], prefix: str) -> Emulated:
    """The arguments of one of mahimahi's tools. Raises `InputError` with the argument's name.

    `prefix` is that of the shells around this one.
    """
    tools: dict[str, Callable[[list[str], dict[str, Any], str], Emulated]] = {
        "delay": delay,
        "link": link,
        "loss": loss,
        "onoff": onoff,
    }
    if tool not in tools:
        raise unknown("tool", tool, tools)
    return tools[tool](list(words), settings, prefix)


def delay(words: list[str], settings: dict[str, Any], _prefix: str) -> Emulated:
    """mm-delay: the same delay in both directions."""
    (given,), command = _positional("delay", words, 1)
    if not re.fullmatch(r"\d+", given):
        raise _wrong("MILLISECONDS", given, "a whole number")
    table = {"rate": UNLIMITED, "delay": f"{given}ms", "queue": INFINITE}
    path = _path({"up": table, "down": table}, settings, {r"\.delay": "MILLISECONDS"})
    return Emulated(path, command, f"[delay {given} ms] ")


def loss(words: list[str], settings: dict[str, Any], _prefix: str) -> Emulated:
    """mm-loss: each packet of one direction is lost with the same chance."""
    (direction, given), command = _positional("loss", words, 2)
    share = _number("RATE", given)
    if share > 1:
        raise _wrong("RATE", given, "a share from 0 to 1")
    short = _direction(direction)
    tables = _free()
    tables[short]["loss"] = share
    return Emulated(_path(tables, settings, {}), command, f"[loss {short}={given}] ")


def onoff(words: list[str], settings: dict[str, Any], _prefix: str) -> Emulated:
    """mm-onoff: one direction goes off and on; what comes while it is off is lost."""
    (direction, on, off), command = _positional("onoff", words, 3)
    short = _direction(direction)
    on_time, off_time = _number("MEAN-ON-TIME", on), _number("MEAN-OFF-TIME", off)
    tables = _free()
    if on_time == off_time == 0:
        raise _wrong("MEAN-ON-TIME", on, "a time above 0 if the other is 0")
    if on_time == 0:
        tables[short]["loss"] = 1.0
    elif off_time > 0:
        dwell = [f"{on_time!r}s", f"{off_time!r}s"]
        tables[short]["rate"] = {"process": "markov", "rates": [UNLIMITED, "0bit"], "dwell": dwell}
        # What finds the link off is dropped, but for two packets: on the wire and before it.
        tables[short]["queue"] = {"discipline": "droptail", "limit": "1p"}
    names = {r"\.rate": "MEAN-ON-TIME and MEAN-OFF-TIME"}
    path = _path(tables, settings, names)
    return Emulated(path, command, f"[onoff ({short}) on={on}s off={off}s] ")


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
        until = min(_length(uplink), _length(downlink))
    if any(meter in options for meter in METERS):
        remarks.append("meters are not windows here: `aqmlab top` shows them in a terminal")
    return Emulated(path, command, "[link] ", logs, until, remarks)


def _free() -> dict[str, dict[str, Any]]:
    """Links that do nothing."""
    return {name: {"rate": UNLIMITED, "delay": "0s", "queue": INFINITE} for name in ("up", "down")}


def _path(
    tables: dict[str, dict[str, Any]], settings: dict[str, Any], names: dict[str, str]
) -> EmulatedPath:
    """The path; `names` says which argument a key of a scenario is here."""
    try:
        return from_tables(tables, ["down"], ["up"], settings)
    except InputError as error:
        key = next((name for part, name in names.items() if re.search(part, error.key)), error.key)
        file = error.file if error.file and not error.file.startswith("<") else None
        raise input_error(
            error.problem, file=file, key=key, given=error.given, hint=error.hint
        ) from None


def _positional(tool: str, words: list[str], count: int) -> tuple[list[str], list[str]]:
    """The arguments, and the command behind them."""
    if len(words) < count:
        problem = f"expected: aqmlab mahimahi {USAGE[tool]}"
        raise input_error(problem, key=tool)
    command = words[count:]
    return words[:count], command[1:] if command[:1] == ["--"] else command


def _options(words: list[str]) -> tuple[tuple[str, str], dict[str, str], list[str]]:
    """The two files, the options, which may stand before, between and behind them, and the
    command, which begins with the third word that is no option, or after `--`."""
    files: list[str] = []
    options: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            files += rest[: 2 - len(files)]
            rest = rest[2 - len(files) :] if len(files) < 2 else rest
            break
        if not word.startswith("-") or word == "-":
            if len(files) == 2:
                rest.insert(0, word)
                break
            files.append(word)
            continue
        name, equals, value = word.partition("=")
        option = SHORT.get(name) or _long(name)
        if option in FLAGS:
            if equals:
                raise input_error("this option has no value", key=name, given=value)
            options[option] = ""
        elif equals or rest:
            options[option] = value if equals else rest.pop(0)
        else:
            raise input_error("this option needs a value", key=name)
    if len(files) < 2:
        problem = f"expected: aqmlab mahimahi {USAGE['link']}"
        raise input_error(problem, key="link")
    return (files[0], files[1]), options, rest


def _long(name: str) -> str:
    """A long option; what it begins with is enough, as for mahimahi."""
    known = [*VALUES, *FLAGS]
    given = name.removeprefix("--")
    if not name.startswith("--"):
        raise unknown("option", name, [f"--{option}" for option in known])
    if given in known:
        return given
    matching = [option for option in known if option.startswith(given)]
    if len(matching) != 1:
        raise unknown("option", name, [f"--{option}" for option in known])
    return matching[0]


def _queue(option: str, name: str, text: str) -> tuple[dict[str, Any], str]:
    """A queue of mahimahi's as one of ours, and as mahimahi describes it."""
    known = ("infinite", "droptail", "drophead", "codel", "pie")
    if name not in known:
        raise unknown("queue", name, known, key=option)
    if name == "infinite":
        return INFINITE, name
    arguments = _arguments(f"{option}-args", text)
    needed = {"codel": ("target", "interval"), "pie": ("qdelay_ref", "max_burst")}.get(name, ())
    allowed = ("packets", "bytes", *needed)
    for key in arguments:
        if key not in allowed:
            raise unknown("argument", key, allowed, key=f"{option}-args")
    for key in needed:
        if not arguments.get(key):
            problem = f'the queue `{name}` needs {key}, in ms: "packets=1000, {key}=..."'
            raise input_error(problem, key=f"{option}-args", given=text or None)
    limits = [key for key in ("packets", "bytes") if arguments.get(key)]
    if len(limits) != 1:
        problem = f'the queue `{name}` needs one limit: "packets=1000", or "bytes=1500000"'
        raise input_error(problem, key=f"{option}-args", given=text or None)
    limit = f"{arguments[limits[0]]}{limits[0][0]}"
    described = f"{name} [{limits[0]}={arguments[limits[0]]}]"
    if name == "codel":
        times = {key: f"{arguments[key]}ms" for key in needed}
        return {"discipline": "codel", "limit": limit, **times}, described
    if name == "pie":
        # The PIE of 2013: update time, weights and threshold are those of mahimahi's.
        return {
            "discipline": "pie2013",
            "limit": limit,
            "target": f"{arguments['qdelay_ref']}ms",
            "max_burst": f"{arguments['max_burst']}ms",
            "dq_threshold": "16384b",
        }, described
    drop = "head" if name == "drophead" else "tail"
    return {"discipline": "droptail", "limit": limit, "drop": drop}, described


def _arguments(option: str, text: str) -> dict[str, int]:
    """`packets=100, target=5` as numbers."""
    arguments: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.fullmatch(r"(\w+)\s*=\s*(\d+)", part)
        if not found:
            problem = 'expected NAME=NUMBER, with commas between: "packets=100, target=5"'
            raise input_error(problem, key=option, given=part)
        arguments[found[1]] = int(found[2])
    return arguments


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


def _length(trace: str) -> float:
    """The time of the last opportunity, in seconds. The file has been read before."""
    lines = [line.strip() for line in Path(trace).read_bytes().splitlines()]
    return max(int(line) for line in lines if line and not line.startswith(b"#")) / 1000

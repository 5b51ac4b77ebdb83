"""`aqmlab --complete WORDS`: completions of the last word of a command line.

Options come from the command itself; names, keys and values from the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aqmlab import plain
from aqmlab._core import reference
from aqmlab.cli import COMMANDS, loaded
from aqmlab.cli.completion import SCRIPTS
from aqmlab.cli.listing import catalogue, metrics, profiles
from aqmlab.cli.new import KINDS

TOP_KEYS = ("duration=", "warmup=", "seed=", "bottleneck=", "queue=", "queue.", "transport.",
            "links.", "flows.", "record.level=")  # fmt: skip
PRECISIONS = ("low-cpu", "balanced", "exact")


def show(words: Sequence[str]) -> None:
    """Prints the completions, a line each."""
    plain.flush("".join(f"{each}\n" for each in complete(words)))


def complete(words: Sequence[str]) -> list[str]:
    """Completions of the last of `words`, which follow `aqmlab`; it may be empty."""
    *before, last = _joined(words) or [""]
    if not before:
        return _beginning(last, [*COMMANDS, "--help", "--version"])
    command = before[0]
    if "--" in before:
        return []
    options = _options(command) if command in COMMANDS else {}
    if before[-1] in options and options[before[-1]] and len(before) > 1:
        return _beginning(last, _values(before[-1], last, before))
    if last.startswith("-"):
        return _beginning(last, [*options, "--help"])
    return _beginning(last, _arguments(command, before[1:], last))


def _joined(words: Sequence[str]) -> list[str]:
    """The words with those in quotes in one piece, without the quotes; the last may be open."""
    found: list[str] = []
    quote = ""
    for word in words:
        if quote:
            found[-1] += f" {word}"
        elif word[:1] in ("'", '"'):
            quote = word[0]
            found.append(word[1:])
        else:
            found.append(word)
            continue
        if found[-1].endswith(quote):
            found[-1], quote = found[-1].removesuffix(quote), ""
    return found


def _options(command: str) -> dict[str, bool]:
    """The options of a command, and whether each takes a value."""
    return {
        option: not param.is_flag
        for param in loaded(command).params
        if param.param_type_name == "option"
        for option in param.opts
    }


def _beginning(word: str, known: Iterable[str]) -> list[str]:
    return [each for each in dict.fromkeys(known) if each.startswith(word)]


def _values(option: str, last: str, before: Sequence[str]) -> Iterable[str]:
    """The values of an option."""
    if option == "--set":
        return _settings(last, before)
    if option == "--profile":
        return _names("profiles")
    if option == "--queue":
        return _queues(last)
    if option == "--access":
        from aqmlab.scenario.access import KINDS as lines

        return lines
    if option == "--load":
        from aqmlab.packs.access_line.loads import KINDS as loads

        return loads
    return PRECISIONS if option == "--precision" else ()


def _arguments(command: str, given: Sequence[str], last: str) -> Iterable[str]:
    """The arguments of a command."""
    if command == "explain":
        return _explained()
    if command in ("try", "characterize"):
        return _queues(last)
    if command == "evaluate":
        return _names("congestion_controls")
    if command == "reproduce":
        return (*_names("studies"), "all")
    if command == "list":
        return catalogue()
    if command == "new":
        return KINDS if not given else ()
    if command == "completion":
        return SCRIPTS
    return ()


def _names(*kinds: str) -> list[str]:
    lists = catalogue()
    return [each["name"] for kind in kinds for each in lists[kind]]


def _explained() -> list[str]:
    """Everything that can be explained, and its parameters."""
    entries = [*reference(), *metrics()]
    params = [f"{each['name']}.{param['name']}" for each in entries for param in each["params"]]
    return [each["name"] for each in (*entries, *profiles())] + params


def _settings(last: str, before: Sequence[str]) -> list[str]:
    """Keys of a scenario, or the values of the key that is there already."""
    key, equals, _ = last.partition("=")
    if equals:
        text = last.partition("=")[2]
        return [f"{key}={value}" for value in _of_key(key, before, text)]
    keys = list(TOP_KEYS)
    if last.startswith("queue."):
        keys += [f"queue.{param['name']}=" for param in _params_of_queue(before)]
    for section, prefix in (("transport", "transport."), ("record", "record.")):
        if last.startswith(prefix):
            named = (each for each in reference() if each["section"] == section)
            keys += [f"{prefix}{param['name']}=" for each in named for param in each["params"]]
    return keys


def _params_of_queue(before: Sequence[str]) -> list[dict[str, Any]]:
    """The parameters of the discipline that an earlier `--set queue=NAME` names, or of all."""
    named = [word.partition("=")[2] for word in before if word.startswith("queue=")]
    queues = [each for each in reference() if each["section"] == "queue"]
    chosen = [each for each in queues if each["name"] in named[-1:]] or queues
    return [param for each in chosen for param in each["params"]]


def _queues(text: str) -> list[str]:
    """Disciplines; after a name, its words and parameters."""
    name, *given = text.split(" ")
    queues = [each for each in reference() if each["section"] == "queue"]
    of_tc = {str(each["tc"]).split(" ")[0]: each for each in queues if each["tc"]}
    if not given:
        return [each["name"] for each in queues] + list(of_tc)
    own = {each["name"]: each for each in queues}
    found = [each for each in (own.get(name), of_tc.get(name)) if each is not None]
    before = " ".join([name, *given[:-1]])
    return [f"{before} {word}" for each in found for word in _words(each, given)]


def _words(entry: dict[str, Any], given: Sequence[str]) -> list[str]:
    """Settings of a discipline that may follow the given ones; the last is incomplete."""
    words = [each for each in entry["words"] if not each["is_refused"]]
    key, equals, _ = given[-1].partition("=")
    if equals:
        return [f"{key}={value}" for value in _choices(entry, key)]
    if any(each["word"] in given[-2:-1] and each["has_value"] for each in words):
        return []
    # One of several words for the same, and no parameter that has a word of its name.
    names = {(each["key"] or each["word"], each["sets"]): each["word"] for each in words[::-1]}
    params = (each["name"] for each in entry["params"])
    return [
        *reversed(names.values()),
        *(f"{name}=" for name in params if name not in names.values()),
    ]


def _choices(entry: dict[str, Any], key: str) -> list[str]:
    return [
        value for param in entry["params"] if param["name"] == key for value in param["choices"]
    ]


def _of_key(key: str, before: Sequence[str], text: str) -> list[str]:
    """The values of a key that are known by name."""
    if key.rpartition(".")[2] in ("queue", "discipline"):
        return _queues(text)
    if key.endswith("congestion_control"):
        return _names("congestion_controls")
    if key.endswith("workload"):
        return _names("workloads")
    if key.startswith("queue."):
        params = _params_of_queue(before)
    else:
        params = [param for each in reference() for param in each["params"]]
    name = key.rpartition(".")[2]
    return [value for param in params if param["name"] == name for value in param["choices"]]

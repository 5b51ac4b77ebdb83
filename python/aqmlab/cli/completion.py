"""`aqmlab completion`: scripts for bash, zsh and fish, which ask `aqmlab --complete WORDS` for
completions of the last word of a command line.

Options come from the command itself; names, keys and values from the reference. Where there is no
answer, the shell completes names of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from aqmlab import plain
from aqmlab._core import reference
from aqmlab.cli import COMMANDS, loaded
from aqmlab.cli.listing import catalogue, entries
from aqmlab.cli.new import KINDS
from aqmlab.cli.options import argument
from aqmlab.errors import unknown

EXAMPLE = (
    "aqmlab completion bash > ~/.local/share/bash-completion/completions/aqmlab\n\n"
    "aqmlab completion zsh > ~/.zfunc/_aqmlab\n\n"
    "aqmlab completion fish > ~/.config/fish/completions/aqmlab.fish"
)
BASH = """# aqmlab completion bash > ~/.local/share/bash-completion/completions/aqmlab
_aqmlab() {
  local line=${COMP_LINE:0:COMP_POINT} words found cur
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  cur=${words[-1]}
  mapfile -t found < <(aqmlab --complete "${words[@]:1}" 2>/dev/null)
  # Readline begins a new word after `=` and `:`.
  local known=${cur%"${cur##*[=:]}"} quotes=${line//[!\\"\\']}
  # It does not within quotes.
  (( ${#quotes} % 2 )) && known=
  COMPREPLY=("${found[@]#"$known"}")
  [[ ${#found[@]} == 1 && ${found[0]} == *[=.] ]] && compopt -o nospace
}
complete -o default -F _aqmlab aqmlab
"""
ZSH = """#compdef aqmlab
# aqmlab completion zsh > ~/.zfunc/_aqmlab  (with fpath=(~/.zfunc $fpath) before compinit)
_aqmlab() {
  local -a found more
  found=("${(@f)$(aqmlab --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  more=(${(M)found:#*[=.]})
  found=(${found:#*[=.]})
  if (( $#found + $#more )); then
    compadd -Q -- $found
    compadd -Q -S '' -- $more
  else
    _files
  fi
}
if [[ $funcstack[1] == _aqmlab ]]; then _aqmlab "$@"; else compdef _aqmlab aqmlab; fi
"""
FISH = """# aqmlab completion fish > ~/.config/fish/completions/aqmlab.fish
function __aqmlab_complete
    set -l found (aqmlab --complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if test -n "$found"
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c aqmlab -f -a '(__aqmlab_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(
    shell: str = argument("SHELL", "bash, zsh or fish."),
) -> None:
    """Print a script that completes commands, options, names, keys and values."""
    if shell not in SCRIPTS:
        raise unknown("shell", shell, SCRIPTS, key="SHELL")
    print(SCRIPTS[shell], end="")


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
        known = VALUES.get(before[-1])
        return _beginning(last, known(last, before) if known else ())
    if last.startswith("-"):
        return _beginning(last, [*options, "--help"])
    known = ARGUMENTS.get(command)
    return _beginning(last, known(last, before[1:]) if known else ())


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


VALUES: Mapping[str, Callable[[str, Sequence[str]], Iterable[str]]] = {
    "--set": lambda last, before: _settings(last, before),
    "--profile": lambda *_: _names("profiles"),
    "--queue": lambda last, _: _queues(last),
    "--access": lambda *_: import_module("aqmlab.scenario.access").KINDS,
    "--load": lambda *_: import_module("aqmlab.packs.access_line.loads").KINDS,
    "--precision": lambda *_: PRECISIONS,
}
"""The values of an option."""
ARGUMENTS: Mapping[str, Callable[[str, Sequence[str]], Iterable[str]]] = {
    "explain": lambda *_: _explained(),
    "try": lambda last, _: _queues(last),
    "characterize": lambda last, _: _queues(last),
    "evaluate": lambda *_: _names("congestion_controls"),
    "reproduce": lambda *_: (*_names("studies"), "all"),
    "list": lambda *_: catalogue(),
    "new": lambda _, given: KINDS if not given else (),
    "completion": lambda *_: SCRIPTS,
}
"""The arguments of a command."""


def _names(kind: str) -> list[str]:
    return [each["name"] for each in catalogue()[kind]]


def _explained() -> list[str]:
    """Everything that can be explained, and its parameters."""
    every = entries()
    params = [f"{each['name']}.{param['name']}" for each in every for param in each["params"]]
    return [each["name"] for each in every] + params


def _settings(last: str, before: Sequence[str]) -> list[str]:
    """Keys of a scenario, or the values of the key that is there already."""
    key, equals, text = last.partition("=")
    if equals:
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
        return [f"{key}={value}" for value in _choices(entry["params"], key)]
    if any(each["word"] in given[-2:-1] and each["has_value"] for each in words):
        return []
    # One of several words for the same, and no parameter that has a word of its name.
    names = {(each["key"] or each["word"], each["sets"]): each["word"] for each in words[::-1]}
    params = (each["name"] for each in entry["params"])
    return [
        *reversed(names.values()),
        *(f"{name}=" for name in params if name not in names.values()),
    ]


def _choices(params: Sequence[dict[str, Any]], name: str) -> list[str]:
    return [value for each in params if each["name"] == name for value in each["choices"]]


def _of_key(key: str, before: Sequence[str], text: str) -> list[str]:
    """The values of a key that are known by name."""
    if key.rpartition(".")[2] in ("queue", "discipline"):
        return _queues(text)
    if key.endswith("congestion_control"):
        return _names("congestion_controls")
    if key.endswith("workload"):
        return _names("workloads")
    every = (param for each in reference() for param in each["params"])
    params = _params_of_queue(before) if key.startswith("queue.") else [*every]
    return _choices(params, key.rpartition(".")[2])

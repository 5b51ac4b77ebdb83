"""What may stand at the end of a command line: options, names, keys of `--set` and their values.

`aqmlab completion SHELL` prints a script for bash, zsh or fish that asks `aqmlab --complete`.
Where there is no answer, the shell completes names of files.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

BASH = """# aqmlab completion bash > ~/.local/share/bash-completion/completions/aqmlab
_aqmlab() {
  local line=${COMP_LINE:0:COMP_POINT} words found cur
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  cur=${words[-1]}
  mapfile -t found < <(aqmlab --complete "${words[@]:1}" 2>/dev/null)
  # Readline begins a new word after `=` and `:`.
  local known=${cur%"${cur##*[=:]}"}
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

TOP_KEYS = ("duration=", "warmup=", "seed=", "bottleneck=", "queue=", "queue.", "transport.",
            "links.", "flows.", "record.level=")  # fmt: skip
VALUES = {
    "--access": ("fibre", "dsl", "docsis", "lte", "wifi", "satellite"),
    "--load": ("home", "office", "gaming", "rrul"),
    "--precision": ("low-cpu", "balanced", "exact"),
}
"""The values of options that are known by name."""
KINDS = ("scenario", "study", "queue", "control", "metric", "endpoint")


def complete(words: Sequence[str]) -> list[str]:
    """What may stand in the place of the last of `words`, which may be empty, after `aqmlab`."""
    from aqmlab.told.options import OPTIONS

    *before, last = words or [""]
    if not before:
        return _beginning(last, [*OPTIONS, "--help", "--version"])
    command, options = before[0], OPTIONS.get(before[0], {})
    if "--" in before:
        return []
    if before[-1] in options and options[before[-1]] and len(before) > 1:
        return _beginning(last, _values(before[-1], last, before))
    if last.startswith("-"):
        return _beginning(last, [*options, "--help"])
    return _beginning(last, _arguments(command, before[1:]))


def _beginning(word: str, known: Iterable[str]) -> list[str]:
    return [each for each in dict.fromkeys(known) if each.startswith(word)]


def _values(option: str, last: str, before: Sequence[str]) -> Iterable[str]:
    """What may follow an option."""
    if option == "--set":
        return _settings(last, before)
    if option == "--profile":
        return _names("profiles")
    if option == "--queue":
        return _names("disciplines", "presets")
    return VALUES.get(option, ())


def _arguments(command: str, given: Sequence[str]) -> Iterable[str]:
    """What a command may be given."""
    if command == "explain":
        return _explained()
    if command in ("try", "characterize"):
        return _names("disciplines", "presets")
    if command == "evaluate":
        return _names("congestion_controls")
    if command == "reproduce":
        return (*_names("studies"), "all")
    if command == "list":
        from aqmlab.told.catalogue import LISTS

        return LISTS
    if command == "new":
        return KINDS if not given else ()
    if command == "completion":
        return SCRIPTS
    return ()


def _names(*kinds: str) -> list[str]:
    from aqmlab.told.catalogue import LISTS

    lists: dict[str, Any] = LISTS
    return [each["name"] for kind in kinds for each in lists[kind]]


def _explained() -> list[str]:
    """Everything that can be explained, and its parameters."""
    found = [each["name"] for each in _entries()]
    params = [f"{each['name']}.{param['name']}" for each in _entries() for param in each["params"]]
    return found + params


def _entries() -> list[dict[str, Any]]:
    from aqmlab.told.reference import ENTRIES

    entries: Any = ENTRIES
    return list(entries)


def _settings(last: str, before: Sequence[str]) -> list[str]:
    """Keys of a scenario, or the values of the key that is there already."""
    key, equals, _ = last.partition("=")
    if equals:
        return [f"{key}={value}" for value in _of_key(key, before)]
    keys = list(TOP_KEYS)
    if last.startswith("queue."):
        keys += [f"queue.{param['name']}=" for param in _params_of_queue(before)]
    for section, prefix in (("transport", "transport."), ("record", "record.")):
        if last.startswith(prefix):
            named = (each for each in _entries() if each["section"] == section)
            keys += [f"{prefix}{param['name']}=" for each in named for param in each["params"]]
    return keys


def _params_of_queue(before: Sequence[str]) -> list[dict[str, Any]]:
    """The parameters of the discipline that an earlier `--set queue=NAME` names, or of all."""
    named = [word.partition("=")[2] for word in before if word.startswith("queue=")]
    queues = [each for each in _entries() if each["section"] == "queue"]
    chosen = [each for each in queues if each["name"] in named[-1:]] or queues
    return [param for each in chosen for param in each["params"]]


def _of_key(key: str, before: Sequence[str]) -> list[str]:
    """The values of a key that are known by name."""
    if key.rpartition(".")[2] in ("queue", "discipline"):
        return _names("disciplines", "presets")
    if key.endswith("congestion_control"):
        return _names("congestion_controls")
    if key.endswith("workload"):
        return _names("workloads")
    if key.startswith("queue."):
        params = _params_of_queue(before)
    else:
        params = [param for each in _entries() for param in each["params"]]
    name = key.rpartition(".")[2]
    return [value for param in params if param["name"] == name for value in param["choices"]]

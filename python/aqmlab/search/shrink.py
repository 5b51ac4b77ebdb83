"""The smallest scenario file that still shows what a search found."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab._core import Scenario
from aqmlab.errors import InputError, input_error
from aqmlab.scenario.settings import parse_settings, parse_toml, read_text
from aqmlab.scenario.toml import shown, toml
from aqmlab.search.keys import DIGITS, Key, shared_out
from aqmlab.search.trials import Measure, Settings, Trial, Trials, identity, with_settings
from aqmlab.study.single import run_scenario
from aqmlab.study.sweep import Study

MEASURED = re.compile(r"^# measured: (\S+) = (\S+), was (\S+)$", re.MULTILINE)
UNDO = re.compile(r"^# undo: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """The keys of a finding with their positions and digits."""

    keys: tuple[tuple[Key, tuple[float, ...], int], ...]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings."""
        return {key.name: key.value(places, digits) for key, places, digits in self.keys}

    def smaller(self) -> Iterator[State]:
        """States that are simpler in one respect, the simplest first."""
        for at in range(len(self.keys)):
            yield State((*self.keys[:at], *self.keys[at + 1 :]))
        for at, (key, places, digits) in enumerate(self.keys):
            for step in range(1, len(places)):
                if places[step] != places[step - 1]:
                    merged = (*places[:step], places[step - 1], *places[step + 1 :])
                    yield self._with(at, (key, merged, digits))
        for at, (key, places, digits) in enumerate(self.keys):
            if not key.choices:
                for fewer in range(1, digits):
                    yield self._with(at, (key, places, fewer))

    def _with(self, at: int, changed: tuple[Key, tuple[float, ...], int]) -> State:
        return State((*self.keys[:at], changed, *self.keys[at + 1 :]))


def shrink(
    trials: Trials, keys: Sequence[Key], places: Sequence[float], holds: Callable[[Trial], bool]
) -> Trial:
    """The simplest trial for which `holds`: keys dropped, steps of courses merged, values rounded;
    one after another, as long as something can be left out."""
    parts = tuple((key, own, DIGITS) for key, own in shared_out(keys, places))
    state, seen = State(parts), set[str]()
    best = trials.evaluate([state.settings], keep=False)[0]
    while True:
        for each in state.smaller():
            text = identity(each.settings)
            if text in seen or each.settings == state.settings:
                continue
            seen.add(text)
            trial = trials.evaluate([each.settings], keep=False)[0]
            if holds(trial):
                state, best = each, trial
                break
        else:
            return best


@dataclass(frozen=True)
class Attack:
    """A scenario file, and its damage at its own seed."""

    text: str
    """TOML with a comment on cause, damage and how to play it."""
    measure: Measure
    value: float
    """Value of the measure in `aqmlab run`."""
    start: float
    """Value with the settings of `undo`."""
    undo: Settings
    """Settings that turn the file into the scenario that the search began with."""

    @staticmethod
    def read(path: str | Path) -> Attack:
        """The finding in a file. Raises `InputError` if its comment has no measured values."""
        text = read_text(Path(path))
        measured, undo = MEASURED.search(text), UNDO.search(text)
        if not measured or not undo:
            raise input_error("no comment `# measured:` or `# undo:`", file=str(path))
        settings = parse_settings(shlex.split(undo[1]))
        measure = Measure.parse(f"min:{measured[1]}", "measured")
        return Attack(text, measure, float(measured[2]), float(measured[3]), settings)


def finding(study: Study, trial: Trial, measure: Measure, told: Sequence[str]) -> Attack:
    """The file of a trial of a study with one point; its comment begins with some lines."""
    start = study.points[0].scenario
    wanted = with_settings(study, [("", trial.settings)]).points[0].scenario
    source, resolved = _pruned(start), start.table
    undo = {name: value for key in trial.settings for name, value in _was(source, resolved, key)}
    values = [float(measure.of(run_scenario(each))[0]) for each in (wanted, start)]
    text = f"{_comment(measure, values, undo, told)}{toml(_pruned(wanted))}"
    return Attack(text, measure, values[0], values[1], undo)


def _comment(measure: Measure, values: Sequence[float], undo: Settings, told: Sequence[str]) -> str:
    """Damage, the settings that undo it, and how to run the file."""
    pairs = [f"{key}={shown(v)}" for key, v in undo.items()]
    return "\n".join(
        [
            *(f"# {line}" for line in told if line),
            "# aqmlab run FILE; aqmlab shell --scenario FILE -- COMMAND",
            f"# measured: {measure.text} = {values[0]!r}, was {values[1]!r}",
            f"# undo: {shlex.join(pairs)}",
            "",
        ]
    )


def _path(table: Mapping[str, Any], key: str) -> list[str]:
    """The tables that a dotted key leads through, written in full."""
    parts = key.split(".")
    if parts[0] == "queue":
        return ["links", table["bottleneck"], *parts]
    return ["links", *parts] if parts[0] in table["links"] else parts


def _was(
    source: Mapping[str, Any], resolved: Mapping[str, Any], key: str
) -> Iterator[tuple[str, Any]]:
    """Settings that give a key its value in the file, or its default, again."""
    if key.startswith("transport."):
        for group in resolved["flows"]:
            yield from _was(source, resolved, f"flows.{group}.{key}")
        return
    for table in (source, resolved):
        value: Any = table
        full = _path(resolved, key)
        while full and isinstance(value, Mapping) and full[0] in value:
            value = value[full.pop(0)]
        if not full or not isinstance(value, Mapping):
            break
    yield key.removesuffix("." + ".".join(full)) if full else key, value


def _pruned(scenario: Scenario) -> dict[str, Any]:
    """The table of a scenario without keys that only repeat a default."""
    table = parse_toml(scenario.to_toml(), "<finding>")

    def is_same() -> bool:
        try:
            return Scenario(table, folders=scenario.folders).resolved == scenario.resolved
        except InputError:
            return False

    _prune(table, is_same)
    return table


def _prune(inner: dict[str, Any], is_same: Callable[[], bool]) -> None:
    """Removes keys that only repeat a default."""
    for key in list(inner):
        before = dict(inner)
        del inner[key]
        if is_same():
            continue
        inner.clear()
        inner.update(before)  # in the same order
        if isinstance(inner[key], dict):
            _prune(inner[key], is_same)

"""Keys that a search varies: ranges, choices, and courses over time.

A text after the key, as in `--key queue.target=1ms..50ms,log`, is one of

1. a range `LOW..HIGH` of rates, times, sizes, packets or numbers, with `,log` for a logarithmic
   scale (whole numbers if both ends are whole);
2. choices `codel,pie,red`;
3. a range with `,steps=N,every=TIME` for the rate or delay of a link: a course of N values, each in
   force for a time; `,repeat` starts it again.

An optimiser sees each value as a position from 0 to 1 (`Key.size` of them, one for a range).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab._core import parse_value
from aqmlab.errors import InputError, input_error
from aqmlab.scenario.quantity import Duration, in_unit, numbers
from aqmlab.scenario.settings import each_of

DIGITS = 3
"""Significant digits of a value."""
MOST_STEPS = 1000
FORM = "expected LOW..HIGH such as 1ms..50ms,log, or choices such as codel,pie"
COURSES = ("rate", "delay")


@dataclass(frozen=True)
class Key:
    """A key of the scenario and its allowed values."""

    name: str
    low: float = 0.0
    """Ends of the range, in s, bit/s, bytes, packets, or without a unit."""
    high: float = 0.0
    unit: str = ""
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()
    steps: int = 0
    """Number of values of a course; 0: one constant value."""
    every: float = 0.0
    """Time that each value of a course is in force, in seconds."""
    repeat: bool = False

    @property
    def size(self) -> int:
        """Number of positions that an optimiser chooses."""
        return self.steps or 1

    def value(self, places: Sequence[float], digits: int = DIGITS) -> Any:
        """The value at positions from 0 to 1, as a scenario has it, with so many digits."""
        if self.choices:
            return self.choices[min(int(places[0] * len(self.choices)), len(self.choices) - 1)]
        values = [self._text(place, digits) for place in places]
        if not self.steps:
            return values[0]
        steps: list[list[Any]] = []
        for number, value in enumerate(values):
            if self.repeat or not steps or steps[-1][1] != value:
                steps.append([str(Duration(number * self.every)), value])
        return {"steps": steps, "repeat": self.repeat}

    def _text(self, place: float, digits: int) -> Any:
        if self.log:
            number = self.low * (self.high / self.low) ** place
        else:
            number = self.low + (self.high - self.low) * place
        number = float(f"{number:.{digits}g}")
        number = min(max(number, self.low), self.high)
        if self.whole:
            return round(number)
        if self.unit == "packets":
            number = max(round(number), math.ceil(self.low))
        return in_unit(number, self.unit)

    @staticmethod
    def parse(name: str, given: str | Sequence[Any]) -> Key:
        """The key with a text as `--key` has it, or a list of choices.

        Raises `InputError` for anything else.
        """
        place = f"keys.{name}"
        if not isinstance(given, str):
            if not isinstance(given, Sequence):
                raise input_error(FORM, key=place, given=given)
            return _chosen(name, list(given), place)
        first, *more = [part.strip() for part in given.split(",")]
        if ".." not in first:
            return _chosen(name, [parse_value(each) for each in (first, *more) if each], place)
        options = dict(part.partition("=")[::2] for part in more)
        wrong = options.keys() - {"log", "steps", "every", "repeat"}
        wrong |= {word for word in ("log", "repeat") if options.get(word)}  # these have no value
        if wrong:
            raise input_error(FORM, key=place, given=f"{given} ({min(wrong)})")
        low, high, unit, whole = _ends(first, place)
        if not low < high:
            raise input_error("expected a smaller and a larger value", key=place, given=first)
        if "log" in options and low <= 0:
            problem = "a logarithmic range begins above 0"
            raise input_error(problem, key=place, given=given)
        key = Key(name, low, high, unit, "log" in options, whole)
        return _course(key, options, place) if options.keys() - {"log"} else key


def _chosen(name: str, choices: Sequence[Any], place: str) -> Key:
    if len(choices) < 2:
        given = ",".join(map(str, choices))
        problem = f"a single value leaves nothing to search: {FORM}"
        raise input_error(problem, key=place, given=given)
    return Key(name, choices=tuple(choices))


def _ends(text: str, place: str) -> tuple[float, float, str, bool]:
    ends = [each.strip() for each in text.split("..")]
    if len(ends) != 2:
        raise input_error(FORM, key=place, given=text)
    if found := numbers(ends):
        (low, high), unit = found
    else:
        try:
            low, high, unit = float(ends[0]), float(ends[1]), ""
        except ValueError:
            problem = f"{FORM}; both ends have the same kind of unit"
            raise input_error(problem, key=place, given=text) from None
    return low, high, unit, all(each.isdigit() for each in ends)


def _course(key: Key, options: Mapping[str, str], place: str) -> Key:
    form = "a course has steps=N and every=TIME, such as 10ms..200ms,steps=10,every=1s"
    if key.name.rpartition(".")[2] not in COURSES or "queue" in key.name:
        problem = "only the rate and the delay of a link can follow a course"
        raise input_error(problem, key=place, given=key.name)
    steps = options.get("steps", "")
    if not steps.isdigit() or not 2 <= int(steps) <= MOST_STEPS:
        raise input_error(f"{form}; N is from 2 to {MOST_STEPS}", key=place, given=steps)
    try:
        every = float(Duration(options.get("every", "")))
    except InputError:
        every = 0.0
    if every <= 0:
        raise input_error(form, key=place, given=options.get("every", ""))
    return replace(key, steps=int(steps), every=every, repeat="repeat" in options)


def parse_keys(given: Mapping[str, str | Sequence[Any]] | Iterable[str]) -> tuple[Key, ...]:
    """The keys of a mapping, or of texts `KEY=RANGE`.

    Raises `InputError` for one that is malformed or named twice, and if there is none.
    """
    if not isinstance(given, Mapping):
        pairs = [text.partition("=") for text in each_of(given)]
        for name, equals, _ in pairs:
            if not equals or not name.strip():
                raise input_error(f"{FORM} after KEY=", key="keys", given=name)
        names = [name.strip() for name, _, _ in pairs]
        if twice := {name for name in names if names.count(name) > 1}:
            raise input_error("this key is there twice", key="keys", given=min(twice))
        given = {name.strip(): text.strip() for name, _, text in pairs}
    if not given:
        problem = "there is nothing to search: name a key, such as queue.target=1ms..50ms,log"
        raise input_error(problem, key="keys")
    return tuple(Key.parse(name, each) for name, each in given.items())


def settings(keys: Sequence[Key], places: Sequence[float], digits: int = DIGITS) -> dict[str, Any]:
    """The settings at the positions of all keys, one after another."""
    return {key.name: key.value(own, digits) for key, own in shared_out(keys, places)}


def shared_out(
    keys: Sequence[Key], places: Sequence[float]
) -> Iterator[tuple[Key, tuple[float, ...]]]:
    """Each key with its own positions, of the positions of all keys one after another."""
    at = 0
    for key in keys:
        yield key, tuple(places[at : at + key.size])
        at += key.size

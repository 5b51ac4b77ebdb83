"""`--assert "call.mos > 4"`: a statement about what users notice, for continuous integration."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aqmlab.advice.trial import Noticed, Trial
from aqmlab.errors import input_error, unknown

FORM = re.compile(r"\s*([\w.]+)\s*(<=|>=|<|>)\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(\S*)\s*", re.ASCII)
SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Outcome of an assertion for one queue."""

    text: str
    queue: str
    holds: bool
    why: str


@dataclass(frozen=True)
class Assertion:
    """A limit on what users notice."""

    text: str
    what: Noticed
    sign: str
    limit: float

    def outcome(self, trial: Trial, queue: str) -> Outcome:
        """Holds if the whole interval is on the right side, or, where no interval can be
        given, every replication."""
        values = trial.values(self.what, queue)
        found = trial.estimate(self.what, queue)
        ends: Sequence[float] = values.tolist()
        range_ = f"{values.min():.4g} to {values.max():.4g} in {values.size} replications"
        if found.interval is not None:
            ends = (found.interval.low, found.interval.high)
            range_ = f"95 %: {found.interval.low:.4g} to {found.interval.high:.4g}"
        holds = bool(values.size) and all(SIGNS[self.sign](end, self.limit) for end in ends)
        mean = float(np.mean(values)) if values.size else float("nan")
        unit = f" {self.what.unit}" if self.what.unit else ""
        return Outcome(self.text, queue, holds, f"{self.what.name} = {mean:.4g}{unit} ({range_})")


def parse(text: str, noticed: Sequence[Noticed]) -> Assertion:
    """The assertion in `text`. Raises `InputError` for another form, name or unit."""
    matched = FORM.fullmatch(text)
    if matched is None:
        problem = "expected NAME, a sign (<, <=, >, >=) and a number, such as call.mos > 4"
        raise input_error(problem, key="--assert", given=text)
    name, sign, number, unit = matched.groups()
    names = {short: each for each in noticed for short in (each.name, each.short)}
    if name not in names:
        raise unknown("measure", name, sorted({each.short for each in noticed}), key="--assert")
    what = names[name]
    if unit not in ("", what.unit):
        problem = f"expected the unit {what.unit or 'none'}"
        raise input_error(problem, key="--assert", given=unit)
    try:
        limit = float(number)
    except ValueError:
        raise input_error("expected a number", key="--assert", given=number) from None
    return Assertion(text.strip(), what, sign, limit)

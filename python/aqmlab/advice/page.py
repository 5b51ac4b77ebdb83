"""What `aqmlab try` prints: the table, the recommendation, the command for Linux."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

import tomli_w

from aqmlab import infer
from aqmlab.advice import tc
from aqmlab.advice.assertion import Outcome
from aqmlab.advice.trial import Noticed, Trial
from aqmlab.document import (
    Cell,
    Code,
    Column,
    Document,
    Estimate,
    Items,
    Section,
    Table,
    Text,
    Verdict,
)
from aqmlab.errors import StorageError
from aqmlab.scenarios.quantities import quantity

NOTICEABLE = 0.05
"""The least difference that counts, as a share of the smaller mean: 0.1 ms of delay between two
queues may well be shown, and nobody would notice it."""
LEAST = f"{NOTICEABLE * 100:.0f} %"


@dataclass(frozen=True)
class Comparison:
    """Two queues by one measure, replication by replication: they met the same arrivals."""

    what: Noticed
    one: str
    other: str
    found: infer.Finding
    least: float
    """The difference that somebody would notice."""

    @property
    def difference(self) -> tuple[float, float, float]:
        """One less the other, in the measure's unit, and the ends of its interval; NaN without."""
        found = self.found
        if next(iter(found.means)) == self.one:  # the best stands first
            return -found.effect, -found.high, -found.low
        return found.effect, found.low, found.high

    @property
    def better(self) -> str | None:
        """The queue that is shown to be noticeably better, if one is."""
        _, low, high = self.difference
        if not self.found.shown or (low <= self.least and high >= -self.least):
            return None
        return self.found.best[0]


def comparisons(trial: Trial) -> list[Comparison]:
    """All pairs of queues by all measures, held to the level for all of them together."""
    cases, contests = [], []
    for what in trial.noticed:
        for one, other in itertools.combinations(trial.queues, 2):
            samples = {queue: trial.values(what, queue) for queue in (one, other)}
            if samples[one].size and samples[one].size == samples[other].size:
                cases.append((what, one, other, samples))
                better = "less" if what.is_low_better else "more"
                contests.append(infer.Contest(what.name, what.unit, samples, better))
    return [
        Comparison(
            what,
            one,
            other,
            found,
            NOTICEABLE * min(abs(float(each.mean())) for each in samples.values()),
        )
        for (what, one, other, samples), found in zip(cases, infer.compare(contests), strict=True)
    ]


@dataclass(frozen=True)
class Choice:
    """The queue to take."""

    queue: str
    is_best: bool
    """Whether no other is shown to be better in anything."""


def recommended(trial: Trial, compared: Sequence[Comparison]) -> Choice | None:
    """The queue than which none is shown to be better in anything; of several the one that is
    better than others most often, and the first named of equals. If there is none: the one with
    most comparisons won less those lost. `None` if nothing is shown."""
    balance = dict.fromkeys(trial.queues, 0)
    lost = dict.fromkeys(trial.queues, 0)
    for each in compared:
        if each.better is not None:
            worse = each.other if each.better == each.one else each.one
            balance[each.better] += 1
            balance[worse] -= 1
            lost[worse] += 1
    if not any(lost.values()):
        return None
    unbeaten = [queue for queue in trial.queues if not lost[queue]]
    best = max(unbeaten or trial.queues, key=lambda queue: balance[queue])
    return Choice(best, bool(unbeaten))


def sentences(trial: Trial, compared: Sequence[Comparison]) -> list[str]:
    """The recommendation, and what it rests on."""
    if len(trial.queues) == 1:
        return [f"Only one queue was tried: {trial.queues[0]}. Name others to compare it with."]
    choice = recommended(trial, compared)
    if choice is None:
        return [f"No difference of more than {LEAST} is shown between {_list(trial.queues)}."]
    name = choice.queue
    found = [
        f"Use {name}: no other queue is noticeably better in any measure."
        if choice.is_best
        else f"No queue is best in every measure; {name} is the best compromise."
    ]
    for queue in trial.queues:
        if queue != name:
            found += _against(trial, name, queue, compared)
    return found


def _against(trial: Trial, name: str, other: str, compared: Sequence[Comparison]) -> list[str]:
    """How the queue `name` compares with another one."""
    own = [each for each in compared if {each.one, each.other} == {name, other}]
    told = {
        word: "; ".join(
            _told(trial, each.what, name, other) for each in own if each.better == which
        )
        for word, which in (("Better", name), ("Worse", other))
    }
    if not any(told.values()):
        return [f"{other} is as good as {name}: no difference of more than {LEAST} is shown."]
    return [f"{word} than {other}: {text}." for word, text in told.items() if text]


def _told(trial: Trial, what: Noticed, choice: str, other: str) -> str:
    one, two = (trial.estimate(what, queue).value for queue in (choice, other))
    unit = f" {what.unit}" if what.unit else ""
    return f"{what.heading} {one:.3g}{unit} instead of {two:.3g}{unit}"


def _list(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def table(trial: Trial) -> Table:
    """A row a measure, a column a queue: means of the replications, with intervals."""
    rows: list[tuple[Cell, ...]] = []
    for what in trial.noticed:
        found = (trial.estimate(what, queue) for queue in trial.queues)
        title = f"{what.heading} ({what.unit})" if what.unit else what.heading
        rows.append((title, *(_cell(each) for each in found)))
    columns = [Column("", label=True), *(Column(queue) for queue in trial.queues)]
    number = trial.result.info.replications
    caption = f"Means of {number} replications; in brackets the 95 % interval, if there is one."
    return Table(tuple(columns), tuple(rows), id="noticed", caption=caption)


def _cell(found: infer.Estimate) -> Estimate:
    if found.interval is None:
        return Estimate(found.value)
    return Estimate(found.value, found.interval.low, found.interval.high)


def commands(queue: str, up: str) -> list[str]:
    """The commands that set a queue up on a Linux router whose device to the line is eth0: a
    shaper of 95 % of the rate up, so that the queue is here and not in the modem, and the queue
    in it; empty if Linux has no such queue. CAKE shapes by itself."""
    line = tc.line(queue)
    if line is None:
        return []
    rate = f"{0.95 * quantity(up, 'rate', '--up') / 1e3:.0f}kbit"
    if line.kind == "cake":
        return [f"tc qdisc replace dev eth0 root cake bandwidth {rate} {line.options}".strip()]
    return [
        "tc qdisc replace dev eth0 root handle 1: htb default 1",
        f"tc class replace dev eth0 parent 1: classid 1:1 htb rate {rate}",
        f"tc qdisc replace dev eth0 parent 1:1 {line.words}",
    ]


def document(trial: Trial, outcomes: Sequence[Outcome], command: str) -> Document:
    """The page."""
    compared = comparisons(trial)
    first, *rest = sentences(trial, compared)
    choice = recommended(trial, compared)
    blocks: list[Any] = [table(trial), Items(tuple(Text(each) for each in rest))]
    if outcomes:
        blocks.append(Items(tuple(_verdict(each) for each in outcomes), "claims"))
    if choice is not None:
        name = choice.queue
        lines = _set_up(name, commands(name, trial.line.up))
        blocks.append(Section(f"Set {name} up", tuple(lines), id="set-up"))
    soft = f"{trial.about}. Made by: {command}" if command else trial.about
    return Document("Which queue?", tuple(blocks), soft, (Text(first, "lead"),))


def _set_up(queue: str, lines: Sequence[str]) -> list[Any]:
    if not lines:
        return [Text(f"Linux has no {queue}.")]
    return [
        Text("On a Linux router, for the way up; eth0 leads to the line:"),
        *(Code(line) for line in lines),
        Text("For the way down the same on an ifb device to which eth0's ingress is redirected."),
    ]


def _verdict(outcome: Outcome) -> Verdict:
    word, tone = ("holds", "good") if outcome.holds else ("does not hold", "bad")
    return Verdict(word, tone, text=f"{outcome.queue}: {outcome.text} ({outcome.why})")


def answer(trial: Trial, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What `--json` prints."""
    compared = comparisons(trial)
    choice = recommended(trial, compared)
    return {
        "queues": {
            queue: {what.short: _json(trial.estimate(what, queue), what) for what in trial.noticed}
            for queue in trial.queues
        },
        "recommended": choice and choice.queue,
        "best_in_everything": choice is not None and choice.is_best,
        "sentences": sentences(trial, compared),
        "comparisons": [_compared(each) for each in compared],
        "tc": commands(choice.queue, trial.line.up) if choice else [],
        "assertions": [vars(each) for each in outcomes],
    }


def _json(found: infer.Estimate, what: Noticed) -> dict[str, Any]:
    low, high = (
        (None, None) if found.interval is None else (found.interval.low, found.interval.high)
    )
    return {"value": found.value, "low": low, "high": high, "unit": what.unit, "why": found.why}


def _compared(each: Comparison) -> dict[str, Any]:
    value, low, high = (None if isnan(end) else end for end in each.difference)
    return {
        "measure": each.what.short,
        "queues": [each.one, each.other],
        "better": each.better,
        "value": value,
        "low": low,
        "high": high,
        "unit": each.what.unit,
        "why": each.found.why,
    }


def write_study(study: Mapping[str, Any], folder: Path) -> Path:
    """Writes the study to `folder`/study.toml; its path. Raises `StorageError`."""
    path = folder / "study.toml"
    head = "# Made by `aqmlab try`; edit it, then: aqmlab study study.toml\n\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(head + tomli_w.dumps(study), encoding="utf-8")
    except OSError as error:
        raise StorageError(error, folder, "the study was not written", resumes=False) from error
    return path

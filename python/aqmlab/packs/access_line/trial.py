"""The pack of `aqmlab try`, and what the users of a line notice."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aqmlab import metrics, stats
from aqmlab.campaign import Campaign, Case, Filled, Pack, Plan, Question, Reading, Rule
from aqmlab.campaign.packfile import rule
from aqmlab.errors import input_error, unknown
from aqmlab.metrics.samples import Floats
from aqmlab.packs.access_line import loads, page, setup
from aqmlab.packs.access_line.commands import check_device
from aqmlab.packs.access_line.setup import BASELINE, PATHS, PORT, PORTS
from aqmlab.report.document import Document, Estimate
from aqmlab.results import StudyResult
from aqmlab.scenario.access import Line, line_of
from aqmlab.scenario.settings import each_of

AXIS = "queue"
SECONDS = 30.0
WARMUP = 5.0
REPLICATIONS = (10, 30)
"""Minimum, and what there are at most where a replication costs little."""
WORK = 12e6
"""Packets of all runs together, limited so that an answer takes seconds."""
MOST_WORK = 100 * WORK
"""Packets of all runs together that are refused: ten minutes and more of processor time."""
SHORTEST = 10.0


@dataclass(frozen=True)
class Noticed:
    """Something that a user notices."""

    group: str
    title: str
    metric: str
    """The metric of `aqmlab.metrics`."""
    unit: str
    factor: float = 1.0
    """From the metric's unit to that of the table."""
    least: float = 0.0
    """Minimum difference that a user notices, in the unit."""
    is_cost: bool = False
    """True for goodput and throughput, which shapers reduce and queues share out: they do not
    decide whether a queue is recommended."""

    @property
    def direction(self) -> int:
        """Of the metric: 1 if more is better, -1 if less is."""
        return metrics.find(self.metric)[0].direction

    @property
    def name(self) -> str:
        """Full name: `web.page_load_mean`."""
        return f"{self.group}.{self.metric}"

    @property
    def short(self) -> str:
        """The name without the statistic: `web.page_load`."""
        return self.name.removesuffix("_mean").removesuffix("_p95")

    @property
    def heading(self) -> str:
        """Label of its row and panel."""
        return f"{self.group}: {self.title}"

    @property
    def words(self) -> str:
        """Name in a sentence: `web page load`."""
        return f"{self.group} {self.title}"


MBIT: Mapping[str, Any] = {"unit": "Mbit/s", "factor": 1e-6}
COST: Mapping[str, Any] = {**MBIT, "is_cost": True}
NOTICED = (
    Noticed("web", "page load", "page_load_mean", "s"),
    Noticed("call", "MOS", "mos", ""),
    Noticed("video", "stalls", "stalls", "", least=0.1),
    Noticed("video", "bitrate", "bitrate", **MBIT),
    Noticed("game", "delay p95", "delay_p95", "ms", 1e3),
    Noticed("ping", "round trip p95", "rtt_p95", "ms", 1e3),
    Noticed("download", "goodput", "goodput", **COST),
    Noticed("upload", "goodput", "goodput", **COST),
    Noticed("down", "throughput of the line", "throughput", **COST),
    Noticed("up", "throughput of the line", "throughput", **COST),
)
"""In the order in which people complain. The group is a group of flows or a link."""


def _noticed(flows: Mapping[str, Any]) -> tuple[Noticed, ...]:
    return tuple(each for each in NOTICED if each.group in flows or each.group in PATHS)


def pack_of(
    line: Line,
    load: str,
    queues: Sequence[str],
    share: float | None = None,
    wanted: Sequence[str] = (),
) -> Pack:
    """The line as it is, and each queue behind shapers that send `share` of the line's rate, as
    contenders; `wanted` are statements about the given queues.

    Raises `InputError` for what is not known.
    """
    if load not in loads.KINDS:
        raise unknown("load", load, loads.KINDS, key="load")
    noticed = _noticed(loads.KINDS[load].flows)
    if len(set(queues)) < len(queues):
        raise input_error("a queue is named twice", key="queues", given=" ".join(queues))
    as_it_is = {f"links.{port}.queue": PORT["queue"] for port in PORTS.values()}
    cases = {BASELINE: as_it_is} | {
        words: as_it_is | setup.settings(words, line, share) for words in queues
    }
    seconds, replications = _effort(line, len(cases))
    rules = tuple(_rule(text, noticed, queues) for text in wanted)
    scenario = {
        "duration": f"{seconds:g}s",
        "bottleneck": "down",
        "links": setup.links(line),
        "transport": {"profile": "linux-6.12"},
        "flows": {
            name: {**flow, **{key: PATHS[flow[key]] for key in ("path", "return_path")}}
            for name, flow in loads.KINDS[load].flows.items()
        },
        "record": {"warmup": f"{WARMUP * seconds / SECONDS:g}s"},
    }
    question = Question("", "Noticed by users", "", (Case("", dict),), rules, _read)
    return Pack(
        "try",
        loads.KINDS[load].summary,
        (question,),
        replications=replications,
        contenders=cases,
        scenario=scenario,
        axis=AXIS,
    )


def _rule(text: str, noticed: Sequence[Noticed], queues: Sequence[str]) -> Rule[Filled, Any]:
    """A statement about the given queues, such as `call.mos > 4` or `game.delay < 30ms`."""
    name, rest = re.fullmatch(r"\s*([\w.]*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    names = {short: each for each in noticed for short in (each.name, each.short)}
    if not re.match(r"\s*[<>]", rest):
        problem = "expected NAME, a sign (<, <=, >, >=) and a number, such as call.mos > 4"
        raise input_error(problem, key="rules", given=text)
    if name not in names:
        raise unknown("measure", name, sorted({each.short for each in noticed}), key="rules")
    what, unit = names[name], names[name].unit.replace("Mbit/s", "mbit")
    limit = rest.replace("Mbit/s", "mbit").strip()
    made = rule(f"{what.name} {limit}{unit if limit[-1:].isdigit() else ''}", "rules")

    def measure(filled: Filled) -> Any:
        return made.measure(filled) if filled.contender in queues else None

    return replace(made, id=text, text=text, measure=measure)


def _read(filled: Filled) -> list[Reading]:
    """The measures of a queue, in the units of the table."""
    found = []
    for each in _noticed(filled.scenario("")["flows"]):
        own = filled.reading("", each.metric, each.group)
        scaled = each.factor * own.values, each.factor * own.event
        own = replace(own, unit=each.unit, values=scaled[0], grain=each.least, event=scaled[1])
        found.append(own)
    return found


def _effort(line: Line, cases: int) -> tuple[float, int]:
    """Seconds of a run, and replications: what `WORK` allows.

    Raises `InputError` for a line of which even the fewest and shortest runs are too much.
    """
    fewest, most = REPLICATIONS
    rates = {"down": line.rate("down"), "up": line.rate("up")}
    both = sum(rates.values())
    packets = fewest * SHORTEST * both * cases / 12_000
    if packets > MOST_WORK:
        way = max(rates, key=rates.__getitem__)
        problem = (
            f"expected a slower line or fewer queues: {fewest} replications of {SHORTEST:g} s for "
            f"{cases} queues have up to {packets:.2g} packets (at most {MOST_WORK:.2g})"
        )
        hint = "`aqmlab new study` writes a study to start from, with any duration"
        raise input_error(problem, key=way, given=getattr(line, way), hint=hint)
    allowed = WORK * 12_000 / both / cases
    seconds = min(SECONDS, max(SHORTEST, math.floor(allowed / fewest)))
    return seconds, min(most, max(fewest, math.floor(allowed / seconds)))


class LineTrial(Campaign):
    """What the users of a line notice, by queue; the first is the line as it is."""

    def __init__(
        self, plan: Plan, result: StudyResult, line: Line, device: str | None = None
    ) -> None:
        super().__init__(plan, result)
        self.access = line
        self.device = device
        """The Linux device that leads to the line; None: the usual one, see `Access`."""
        self.queues: list[str] = list(plan.contenders)
        self.noticed = _noticed(result.scenarios[0]["flows"])

    @property
    def about(self) -> str:
        """Line and load in words."""
        line = self.access
        return (
            f"{line.down} down, {line.up} up, {line.rtt} there and back ({line.access}: "
            f"{line.kind.summary}); {self.result.info.title}"
        )

    def links(self, queue: str) -> Mapping[str, Mapping[str, Any]]:
        """The simulated links of a queue, every default filled in."""
        links: Mapping[str, Mapping[str, Any]] = self.at("", queue).scenario("")["links"]
        return links

    def reading(self, what: Noticed, queue: str) -> Reading:
        """The reading of a queue."""
        (question,) = self.plan.pack.questions
        return self.readings_of(question, queue)[self.noticed.index(what)]

    def measured(self, what: Noticed, queue: str) -> Floats:
        """One value a replication in the unit of `what`, NaN for those without."""
        return self.reading(what, queue).values

    def values(self, what: Noticed, queue: str) -> Floats:
        """The values of the replications that have one."""
        found = self.measured(what, queue)
        return found[np.isfinite(found)]

    def estimate(self, what: Noticed, queue: str) -> stats.Statistic:
        """The mean over the replications, with its interval where it has one."""
        event = self.reading(what, queue).event
        return stats.estimate(self.values(what, queue), bounds=stats.POSITIVE, event=event)

    def shown(self, what: Noticed, queue: str) -> Estimate:
        """The same as a cell of a table."""
        return Estimate.of(self.estimate(what, queue), self.measured(what, queue).size)

    def document(self, command: str = "") -> Document:
        """The answer, a picture and a table of what users notice, the commands."""
        return page.document(self, command)

    def to_json(self) -> dict[str, Any]:
        """The JSON of a campaign, with the answer and the commands."""
        return super().to_json() | page.answer(self)


def trial(
    pack: Pack,
    line: Line,
    *,
    device: str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LineTrial:
    """Runs a pack of `pack_of` for this line."""
    if device is not None:
        check_device(device)
    plan = Plan(pack, pack.contenders)
    result = plan.study(seed=seed).run(threads=threads, progress=progress)
    return LineTrial(plan, result, line, device)


def try_line(
    queues: str | Sequence[str],
    *,
    profile: str | None = None,
    down: str | None = None,
    up: str | None = None,
    rtt: str | None = None,
    access: str | None = None,
    load: str = "home",
    device: str | None = None,
    shape: float | None = None,
    rules: str | Sequence[str] = (),
    seed: int | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LineTrial:
    """Compares queues on an access line by what each user would notice.

    Simulates the line as it is and with each queue behind shapers of a Linux router, in both
    directions, and recommends one if it is better than the line as it is.

    Parameters
    ----------
    queues : str or sequence of str
        Queues of the router in the words of `tc`: `"cake ack-filter"`, `"up: cake down: fq_codel"`.
    profile : str, optional
        Name of an access line (`aqmlab list profiles`).
    down, up, rtt, access : str, optional
        Rates (`"50mbit"`), round-trip time of the idle line (`"20ms"`) and kind of the line
        (`"docsis"`); needed without `profile` except `access`, in place of its values with it.
    load : str, default "home"
        Traffic: `"home"`, `"office"`, `"gaming"` or `"rrul"`.
    device : str, optional
        Linux device that leads to the line, for the commands: `"eth0"`.
    shape : float, optional
        Share of the line's rate that shapers send. Default: 0.95, or 0.7 where the rate varies.
    rules : str or sequence of str, optional
        Statements to be judged for every queue: `"call.mos > 4"`.
    seed, threads, progress
        As in `Study.run`.

    Returns
    -------
    LineTrial
        Measures with intervals, recommendation, commands, verdicts on `rules`, report.

    Raises
    ------
    InputError
        If a queue, line, load, device, share or rule is unknown or invalid.
    """
    line = line_of(profile, down, up, rtt, access)
    pack = pack_of(line, load, each_of(queues), shape, each_of(rules))
    return trial(pack, line, device=device, seed=seed, threads=threads, progress=progress)

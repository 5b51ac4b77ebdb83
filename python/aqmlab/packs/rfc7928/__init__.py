"""A queue discipline by the scenarios of RFC 7928, beside drop-tail and others.

    from aqmlab import characterize

    result = characterize("codel", against=["pie"], out="results/characterize-codel")
    result.write_report("results/characterize-codel")

docs/characterize.md describes the cases, and the choices where the RFC is open.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.campaign import Campaign, Pack, Plan
from aqmlab.errors import InputError, WorkWarning, input_error, renamed
from aqmlab.numbers import count, rate
from aqmlab.packs.rfc7928.deployment import arranged
from aqmlab.packs.rfc7928.dumbbell import class_of
from aqmlab.packs.rfc7928.environment import PACKET, Contender, Environment
from aqmlab.packs.rfc7928.metrics import METRICS
from aqmlab.packs.rfc7928.questions import sections
from aqmlab.scenario.quantity import Duration
from aqmlab.scenario.settings import each_of, mapping_of
from aqmlab.study.sequential import there

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["Contender", "Environment", "characterize", "plan_of", "sections"]

BASELINE = "droptail"
"""Always compared with: RFC 7928, section 8.2.6."""
REPLICATIONS = 10
SEED = 7928
SECONDS_A_PACKET, LONG = 104 / 270e6, 600.0
"""Processor time of the default characterisation (docs/characterize.md) for each packet that its
bottlenecks can send, and from where on a `WorkWarning` names the time."""
CONTROL = re.compile(r"flows\.\w+\.(transport\.congestion_control|endpoint\.(stack|controller))")
"""Keys of a scenario that `Environment.control` fills."""
LEAD = (
    "Each outcome follows from a rule with fixed thresholds (docs/characterize.md names those that "
    "were changed after first results), and is given only if the 99 % intervals of all its numbers "
    "lead to it."
)
Discipline = str | type


def characterize(
    discipline: Discipline,
    *,
    against: Sequence[Discipline] = (),
    set: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    environment: Environment | None = None,
    replications: int = REPLICATIONS,
    seed: int = SEED,
    scale: float = 1.0,
    out: str | Path | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Campaign:
    """Characterises a queue discipline by the scenarios of RFC 7928, beside drop-tail and others.

    Parameters
    ----------
    discipline : str or class
        Name (`aqmlab list`), `"FILE:CLASS"`, or a class (`aqmlab.Queue`).
    against : sequence of str or class, optional
        Disciplines to compare with, besides drop-tail.
    set : mapping, optional
        Parameters of the discipline.
    only : sequence of str, optional
        Section numbers of the RFC to run, such as `"8.2"`.
    environment : Environment, optional
        Rate, round-trip time, buffer and senders.
    replications : int, default 10
        Replications of each case. Verdicts need at least five.
    seed : int, default 7928
        Seed of all random streams.
    scale : float, default 1
        Factor for the duration of every case.
    out : path, optional
        Results folder, from which an interrupted characterisation resumes.
    threads, executor, progress
        As in `Study.run`.

    Returns
    -------
    Campaign
        Verdicts, readings, report and tables.

    Raises
    ------
    InputError
        If an argument is invalid.
    FolderError, StorageError, StuckError, ClusterError
        As in `Study.run`.
    """
    if not 0 < scale < math.inf:
        raise input_error("expected a factor above 0", key="scale", given=scale)
    place = replace(environment or Environment(), scale=scale)
    try:
        plan = plan_of(discipline, against, mapping_of(set, "set"), only, place)
        if there(Path(out) if out else None) is None:
            _warn_of_work(plan, place, replications)
        return plan.run(
            replications, seed, out=out, threads=threads, executor=executor, progress=progress
        )
    except InputError as error:
        if CONTROL.fullmatch(error.key):
            raise renamed(error, "control") from None
        raise


def _warn_of_work(plan: Plan, place: Environment, replications: int) -> None:
    lasting = sum(float(Duration(table["duration"])) for _, table in plan.scenarios)
    work = SECONDS_A_PACKET * place.rate * lasting / (8 * PACKET) * replications
    if work > LONG:
        time = f"{work / 60:,.0f} minutes" if work < 7200 else f"{work / 3600:,.0f} hours"
        reason = (
            f"{count(replications * len(plan.scenarios), 'run')} at {rate(place.rate, 'g')} take "
            f"about {time} of processor time, in proportion to the rate; one section, fewer "
            "replications or shorter cases (--quick, scale) take less"
        )
        warnings.warn(WorkWarning(reason), stacklevel=3)


def plan_of(
    discipline: Discipline,
    against: Sequence[Discipline] = (),
    settings: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    environment: Environment | None = None,
) -> Plan:
    """The cases of the sections with a discipline, drop-tail and others.

    Raises `InputError` if an argument is invalid.
    """
    everyone = [Contender.of(discipline, settings)]
    for other in [BASELINE, *each_of(against)]:
        contender = Contender.of(other, given_as="against")
        if contender.name not in [each.name for each in everyone]:
            everyone.append(contender)
    if len(everyone) == 1:
        problem = "every discipline is compared with drop-tail; name another one"
        raise input_error(problem, key="against", given=everyone[0].name)
    name, place = everyone[0].name, environment or Environment()
    pack = Pack(
        f"characterize-{name}",
        f"{name}, characterised by RFC 7928",
        tuple(each.asked(place, everyone) for each in sections(only)),
        "RFC 7928",
        REPLICATIONS,
        SEED,
        beside=tuple(each.name for each in everyone[1:]),
        lead=LEAD,
        pool=class_of,
        metrics=METRICS,
        where=place.words,
        arrange=partial(arranged, place),
    )
    return Plan(pack, {each.name: each for each in everyone})

"""A congestion control evaluated by the criteria of RFC 9743, beside Reno and CUBIC.

    from aqmlab.packs.rfc9743 import evaluate

    result = evaluate("bbr", out="results/evaluate-bbr")
    result.write_report("results/evaluate-bbr")

docs/evaluate.md says what is run for each criterion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.campaign import Campaign, Pack, Plan, Question
from aqmlab.errors import InputError, renamed, unknown
from aqmlab.packs.rfc9743 import alone, mixed, special
from aqmlab.packs.rfc9743.scene import STANDARD, ControlSetup
from aqmlab.scenario.quic import quic_endpoint
from aqmlab.scenario.settings import each_of, mapping_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["GROUPS", "STANDARD", "ControlSetup", "criteria", "evaluate", "name_of", "plan_of"]

REPLICATIONS = 20
QUICK_REPLICATIONS = 5
SEED = 9743
SLOT = re.compile(
    r"flows\.\w+\.((?P<control>transport\.congestion_control|endpoint\.(stack|controller))"
    r"|transport|endpoint)(?P<rest>.*)"
)
"""Keys of a scenario that the arguments `control` and `transport` fill."""
CRITERIA = (*alone.CRITERIA, *mixed.CRITERIA, *special.CRITERIA)
"""All criteria, in the RFC's order."""
UNTESTED: tuple[Mapping[str, str], ...] = tuple(
    {"criterion": name, "source": f"RFC 9743, {section}", "level": level, "why": why}
    for name, section, level, why in (
        (
            "Differences from RFC 2914 and RFC 7141", "section 5.3.1", "MUST explain",
            "an explanation by the authors, not a measurement",
        ),
        (
            "Incremental deployment", "section 5.3.2", "MUST discuss",
            "a discussion by the authors, not a measurement",
        ),
        (
            "Real-time congestion controls", "section 5.2.2", "SHOULD",
            "calls and video keep their rate: no control of real-time media is simulated, as the "
            "test cases of RFC 8867 need",
        ),
        (
            "All criteria of section 5 on every path", "sections 6 and 7", "evaluated",
            "paths of sections 6 and 7 are measured by some of goodput, delay, loss and fairness, "
            "not by harm, starvation or short flows",
        ),
        (
            "Tunnels", "section 6.2", "MUST consider",
            "links do not encapsulate packets, so no marks are lost at the ends of a tunnel",
        ),
        (
            "Multipath", "section 7.10", "MUST if used",
            "an endpoint has one path: no coupled windows, no fail-over between paths",
        ),
        (
            "Receivers that do not comply", "section 7.6", "SHOULD",
            "receivers comply: no divided or optimistic acknowledgements, no hidden marks",
        ),
    )
)  # fmt: skip
"""Criteria that simulations cannot answer."""
GROUPS = {
    "alone": "The control alone",
    "mixed": "Mixed with other controls and traffic",
    "general": "General use",
    "special": "Special paths and situations",
}
LEAD = (
    "RFC 9743 sets no thresholds: every row is evidence. Each line of the overview shows the "
    "measure in which the control is furthest behind **both** Reno and CUBIC, or the first "
    "measure of the criterion if it is behind in none; *behind* counts the measures in which it "
    "is. The three run under the same arrivals, and a difference is reported if 0 is outside its "
    "interval, whose level of 95 % is that of all comparisons of this page together "
    "(Holm). Harm is the loss of another flow beside the control, as a share of its value alone "
    "(Ware et al. 2019)."
)


def criteria(wanted: Sequence[str] = ()) -> list[Question]:
    """The criteria with these ids, or of these groups; all if none is wanted.

    Raises `InputError` for an id that is none.
    """
    names, wanted = [*GROUPS, *(each.id for each in CRITERIA)], each_of(wanted)
    for name in wanted:
        if name not in names:
            raise unknown("criterion", name, names, key="only")
    return [each for each in CRITERIA if not wanted or {each.id, each.group} & set(wanted)]


def evaluate(
    control: Any,
    *,
    name: str | None = None,
    transport: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    replications: int = REPLICATIONS,
    seed: int = SEED,
    out: str | Path | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Campaign:
    """Evaluates a congestion control by the criteria of RFC 9743, beside Reno and CUBIC.

    Parameters
    ----------
    control : str, mapping or class
        Name (`aqmlab list`), table with `algorithm` and parameters, `"FILE:CLASS"`, a class
        (`aqmlab.CongestionControl`), or `"STACK:CONTROLLER"` of a QUIC stack (`"noq:cubic"`).
    name : str, optional
        Name of the control in tables.
    transport : mapping, optional
        Keys of its transport, such as `ecn`; of the endpoint `quic` for a QUIC stack.
    only : sequence of str, optional
        Criteria, or groups of criteria, to run.
    replications : int, default 20
        Replications of each case.
    seed : int, default 9743
        Seed of all random streams.
    out : path, optional
        Results folder, from which an interrupted evaluation resumes.
    threads, executor, progress
        As in `Study.run`.

    Returns
    -------
    Campaign
        Criteria with their rows, report and tables.

    Raises
    ------
    InputError
        If an argument is invalid.
    FolderError, StorageError, StuckError, ClusterError
        As in `Study.run`.
    """
    subject = ControlSetup(name or name_of(control), control, mapping_of(transport, "transport"))
    try:
        return plan_of(subject, only).run(
            replications, seed, out=out, threads=threads, executor=executor, progress=progress
        )
    except InputError as error:
        if not (found := SLOT.fullmatch(error.key)):
            raise
        argument = "control" if found["control"] else "transport"
        raise renamed(error, f"{argument}{found['rest']}") from None


def name_of(control: Any) -> str:
    """The name of a class, the algorithm of a table, the class of `FILE:CLASS`; other names as they
    are, `STACK:CONTROLLER` too."""
    if isinstance(control, type):
        return control.__name__
    if isinstance(control, Mapping):
        return str(control.get("algorithm", "control"))
    return str(control) if quic_endpoint(control) else str(control).rpartition(":")[2]


def plan_of(subject: ControlSetup, only: Sequence[str] = ()) -> Plan:
    """The cases of the criteria with a control, Reno and CUBIC.

    Raises `InputError` for an unknown criterion.
    """
    pack = Pack(
        f"evaluate-{subject.name}",
        f"{subject.name}, evaluated by the criteria of RFC 9743",
        tuple(criteria(only)),
        "RFC 9743",
        REPLICATIONS,
        SEED,
        beside=STANDARD,
        groups=GROUPS,
        lead=LEAD,
        untested=UNTESTED,
    )
    others = {each: ControlSetup(each, each) for each in STANDARD if each != subject.name}
    return Plan(pack, {subject.name: subject} | others)

"""Mixed with other controls and traffic: harm, starvation, real-time, short and long flows.

A victim runs beside the control. The standard controls run beside the same victim, so that each
harm stands beside the harm that Reno and CUBIC do to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aqmlab.campaign import Filled, Reading
from aqmlab.metrics.registry import LESS, MORE
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.alone import SHORT
from aqmlab.packs.rfc9743.harm import of_less, of_more
from aqmlab.packs.rfc9743.readings import Cases, Read, criterion, milliseconds, percent, reading
from aqmlab.packs.rfc9743.scene import STANDARD, ControlSetup, Path, Table, bulk, load, scenario

VICTIMS = tuple(ControlSetup(name, name) for name in STANDARD)
DEPLOYED = tuple(ControlSetup(name, name) for name in ("bbr", "bbr3"))
"""Widely deployed, and not standard."""
QUIC = tuple(ControlSetup(name, name) for name in ("noq:new_reno", "quinn:new_reno"))
"""RFC 9002, of two published libraries."""
PATHS = [
    Path(rate, rtt, buffer)
    for rate in (5e6, 50e6)
    for rtt in (0.02, 0.1)
    for buffer in (0.5, 1.0, 4.0)
]
FEW_PATHS = [Path(10e6, 0.04, buffer) for buffer in (0.5, 4.0)]
LASTS, WARM = 40.0, 10.0
SLICE = 0.5
"""Seconds between two samples of goodput."""
STARVED = 0.05
"""A flow is starved while it has less than this share of a fair share."""


def _beside(victims: Sequence[ControlSetup], paths: Sequence[Path]) -> Cases:
    """Each victim alone, and one flow of the control beside it, over each path."""

    def cases(control: ControlSetup) -> Mapping[str, Table]:
        made: dict[str, Table] = {}
        for victim in victims:
            for path in paths:
                for name, flows in (
                    ("solo", {"victim": bulk(victim)}),
                    ("beside", {"victim": bulk(victim), "own": bulk(control)}),
                ):
                    made[f"{name} | {victim.name}, {path.name}"] = scenario(
                        path.links(), flows, duration=LASTS, warmup=WARM
                    )
        return made

    return cases


def _read_beside(victims: Sequence[ControlSetup], paths: Sequence[Path]) -> Read:
    """The harm to each victim."""

    def read(results: Filled) -> list[Reading]:
        made = []
        for victim in victims:
            for path in paths:
                case = f"{victim.name}, {path.name}"
                solo, beside = results[f"solo | {case}"], results[f"beside | {case}"]
                goodput = of_more(solo.goodput("victim"), beside.goodput("victim"))
                delays = of_less(solo.waiting, beside.waiting)
                losses = of_less(solo.loss("victim"), np.maximum(beside.loss("victim"), 1e-4))
                where = f"one flow beside one of {case}"
                made += [
                    percent(where, f"harm to {victim.name}'s goodput", LESS, goodput),
                    percent(where, f"harm to {victim.name}'s queuing delay", LESS, delays),
                    percent(where, f"harm to {victim.name}'s loss", LESS, losses),
                ]
        return made

    return read


MANY = 10


def _starvation(control: ControlSetup) -> Mapping[str, Table]:
    made: dict[str, Table] = {}
    path = Path(10e6, 0.04, 1.0)
    for victim in VICTIMS:
        for count in (1, MANY):
            flows = {"victim": bulk(victim), "own": bulk(control, count)}
            made[f"{victim.name} beside {count}"] = scenario(
                path.links(), flows, duration=LASTS, warmup=WARM, sampled=SLICE
            )
    return made


def _longest_starved(samples: list[tuple[Floats, Floats]], fair: float) -> Floats:
    """The longest time after the warm-up for which the rate is below a share of the fair one."""
    found = []
    for times, rates in samples:
        longest = here = 0
        for low in (rates[times > WARM] < STARVED * fair).tolist():
            here = here + 1 if low else 0
            longest = max(longest, here)
        found.append(longest * SLICE)
    return np.array(found)


def _read_starvation(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        count = int(case.rpartition(" ")[2])
        fair = 10e6 / (count + 1)
        at = results[case]
        share = at.between("goodput_bps", "victim.0", WARM, LASTS) / fair
        starved = _longest_starved(at.samples("goodput_bps", "victim.0"), fair)
        made += [
            reading(case, "longest time below 5 % of a fair share", "s", LESS, starved, 0.5),
            percent(case, "share of a fair share", MORE, share),
        ]
    return made


FLOWS = 4


def _real_time(control: ControlSetup) -> Mapping[str, Table]:
    path = Path(10e6, 0.04, 1.0)
    calls = {"call": load("voip", count=2), "video": load(VIDEO)}
    return {
        "calls and a video call alone": scenario(path.links(), calls, duration=LASTS, warmup=WARM),
        f"beside {FLOWS} flows": scenario(
            path.links(), calls | {"own": bulk(control, FLOWS)}, duration=LASTS, warmup=WARM
        ),
    }


VIDEO = {"kind": "cbr", "rate": "2mbit", "packet": "1200b"}
"""A video call of a constant rate that responds to nothing."""


def _read_real_time(results: Filled) -> list[Reading]:
    alone, case = results
    solo, at = results[alone], results[case]
    return [
        milliseconds(case, "video packets' delay, p95", at.metric("delay_p95", "video")),
        percent(case, "video packets lost", LESS, at.loss("video"), 0.5),
        reading(case, "mean opinion score of calls", "", MORE, at.metric("mos", "call"), 0.1),
        percent(
            case,
            "harm to the video packets' delay",
            LESS,
            of_less(solo.metric("delay_p95", "video"), at.metric("delay_p95", "video")),
        ),
    ]


def _short_beside(control: ControlSetup) -> Mapping[str, Table]:
    path = Path(10e6, 0.04, 1.0)
    made: dict[str, Table] = {}
    for victim in VICTIMS:
        short = {"short": load(SHORT, victim)}
        made[f"solo | {victim.name}"] = scenario(path.links(), short, duration=LASTS, warmup=WARM)
        made[f"beside | {victim.name}"] = scenario(
            path.links(), short | {"own": bulk(control, 2)}, duration=LASTS, warmup=WARM
        )
        made[f"long | {victim.name}"] = scenario(
            path.links(),
            {"own": load(SHORT, control), "victim": bulk(victim, 2)},
            duration=LASTS,
            warmup=WARM,
        )
    return made


def _read_short_beside(results: Filled) -> list[Reading]:
    made = []
    for victim in VICTIMS:
        solo, beside = (
            results[f"{kind} | {victim.name}"].metric("completion_p95", "short")
            for kind in ("solo", "beside")
        )
        short = f"short flows of {victim.name} beside 2 long ones"
        long = f"short flows beside 2 long ones of {victim.name}"
        at = results[f"long | {victim.name}"]
        made += [
            milliseconds(short, "completion of 30 kB, p95", beside),
            percent(short, "harm to the completion", LESS, of_less(solo, beside)),
            milliseconds(long, "completion of 30 kB, p95", at.metric("completion_p95", "own")),
            percent(long, "goodput of the long flows", MORE, at.goodput("victim") / 10e6),
        ]
    return made


CRITERIA = (
    criterion(
        "existing", "5.2.1", "Beside Reno and CUBIC", "mixed", "MUST",
        "How much do Reno and CUBIC lose beside it, against their losses beside themselves?",
        _beside(VICTIMS, PATHS), _read_beside(VICTIMS, PATHS),
    ),
    criterion(
        "deployed", "5.2.1", "Beside BBR and BBRv3", "mixed", "considered",
        "What do widely deployed controls that are no standard lose beside it?",
        _beside(DEPLOYED, FEW_PATHS), _read_beside(DEPLOYED, FEW_PATHS),
    ),
    criterion(
        "quic", "5.2.1", "Beside QUIC", "mixed", "MUST",
        "What do flows with QUIC's recovery and NewReno (RFC 9002) lose beside it?",
        _beside(QUIC, FEW_PATHS), _read_beside(QUIC, FEW_PATHS),
    ),
    criterion(
        "starvation", "5.2.1", "Starvation", "mixed", "MUST",
        "Does a flow of Reno or CUBIC get next to nothing for long?",
        _starvation, _read_starvation,
    ),
    criterion(
        "real-time", "5.2.2", "Real-time traffic", "mixed", "SHOULD",
        "What becomes of calls and video beside it?",
        _real_time, _read_real_time,
    ),
    criterion(
        "short-long", "5.2.3", "Short and long flows of others", "mixed", "MUST",
        "How long do short flows of Reno and CUBIC take beside its long ones, and vice "
        "versa?",
        _short_beside, _read_short_beside,
    ),
)  # fmt: skip

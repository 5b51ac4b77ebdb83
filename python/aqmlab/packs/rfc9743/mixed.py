"""Mixed with other controls and traffic: harm, starvation, real-time, short and long flows.

A victim runs beside the control. The standard controls run beside the same victim, so that each
harm stands beside the harm that Reno and CUBIC do to it.

Harm is that of R. Ware, M. Mukerjee, S. Seshan and J. Sherry, "Beyond Jain's Fairness Index:
Setting the Bar for the Deployment of Congestion Control Algorithms", HotNets 2019. It is 0 if
nothing is lost and 1 if everything is: (solo - beside) / solo of what is better if it is more, and
(beside - solo) / beside of what is better if it is less. The bar is the harm that the victim's
own control does.

The harm is that of the means over the replications. A mean of the ratios would depend on the few
replications with a small denominator, and harm clipped at 0 in each replication would count chance
as harm. The values of the replications are the ratio of the means in linear approximation: their
mean is the harm, and their spread that of the harm. They can be negative; the mean is clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
import polars as pl

from aqmlab.campaign import Filled, Question, Reading
from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.alone import PATH, SHORT
from aqmlab.packs.rfc9743.readings import criterion, reading
from aqmlab.packs.rfc9743.scene import (
    LONGEST,
    OWN,
    STANDARD,
    ControlSetup,
    Flow,
    Path,
    bulk,
    load,
    scenario,
)

VICTIMS = tuple(ControlSetup(name, name) for name in STANDARD)
DEPLOYED = tuple(ControlSetup(name, name) for name in ("bbr", "bbr3"))
"""Widely deployed, and not standard."""
QUIC = tuple(ControlSetup(name, name) for name in ("noq:new_reno", "quinn:new_reno"))
"""RFC 9002, of two published libraries."""
PATHS = [
    path
    for rate in (5e6, 50e6)
    for rtt in (0.02, 0.1)
    for buffer in (0.5, 1.0, 4.0)
    if (path := Path(rate, rtt, buffer)).sawtooth < LONGEST
]
FEW_PATHS = [Path(10e6, 0.04, buffer) for buffer in (0.5, 4.0)]
LASTS, WARM = 40.0, 10.0
SLICE = 0.5
"""Seconds between two samples of goodput."""
STARVED = 0.05
"""A flow is starved while it has less than this share of a fair share."""
MANY = 10
FLOWS = 4
LOSSLESS = 1e-4
"""A lower share of lost packets is none."""
VIDEO = {"kind": "cbr", "rate": "2mbit", "packet": "1200b"}
"""A video call of a constant rate that responds to nothing."""
CALLS = {"call": load("voip", count=2), "video": load(VIDEO)}


def of_more(solo: Floats, beside: Floats, least: float = 1e-12) -> Floats:
    """The harm to a measure that is better if it is more, such as goodput; values below `least`
    count as `least`."""
    solo, beside = np.maximum(solo, least), np.maximum(beside, least)
    both = np.isfinite(solo + beside)
    if not both.any():
        return solo + beside
    whole = solo.mean(where=both)
    kept = beside.mean(where=both) / whole
    harm: Floats = 1 - kept - (beside - kept * solo) / whole
    return harm


def of_less(solo: Floats, beside: Floats, least: float = 1e-12) -> Floats:
    """The harm to a measure that is better if it is less, such as delay; values below `least`
    count as `least`."""
    return of_more(beside, solo, least)


def _run(path: Path, **flows: Flow) -> Flow:
    """A run in which Reno alone loses packets at least twice after the warm-up."""
    return scenario(path.links(), flows, max(LASTS, WARM + round(2.2 * path.sawtooth)), WARM)


def _harm(case: str, to: str, harm: Floats) -> Reading:
    return reading(case, f"harm to {to}", "%", LESS, 100 * harm)


def _beside(
    ident: str, title: str, level: str, text: str, victims: Sequence[ControlSetup],
    paths: Sequence[Path],
) -> Question:  # fmt: skip
    """The harm to each victim: alone, and beside one flow of the control, over each path."""
    where = {f"{each.name}, {path.name}": (each, path) for each in victims for path in paths}
    cases = {
        f"{name} | {case}": _run(path, victim=bulk(victim), **own)
        for case, (victim, path) in where.items()
        for name, own in (("solo", {}), ("beside", {"own": bulk(OWN)}))
    }

    def read(results: Filled) -> list[Reading]:
        made = []
        for case, (victim, _) in where.items():
            solo, beside = results[f"solo | {case}"], results[f"beside | {case}"]
            harms = {
                "goodput": of_more(solo.goodput("victim"), beside.goodput("victim")),
                "queuing delay": of_less(solo.waiting, beside.waiting),
                "loss": of_less(solo.loss("victim"), beside.loss("victim"), LOSSLESS),
            }
            made += [
                _harm(f"one flow beside one of {case}", f"{victim.name}'s {what}", harm)
                for what, harm in harms.items()
            ]
        return made

    return criterion(ident, "5.2.1", title, "mixed", level, text, cases, read)


def _longest_starved(at: CaseResults, fair: float) -> Floats:
    """Seconds after the warm-up for which the rate is longest below a share of the fair one."""
    rows = at.sampled("goodput_bps").filter(pl.col("time_s") > WARM, subject="victim.0")
    spans = (pl.col("value") < STARVED * fair).sort_by("time_s").rle()
    longest = spans.struct["len"].filter(spans.struct["value"]).max()
    return SLICE * np.nan_to_num(at.each(rows, longest))


def _read_starvation(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        fair = 10e6 / (int(case.rpartition(" ")[2]) + 1)
        at = results[case]
        share = at.between("goodput_bps", "victim.0", WARM, LASTS) / fair
        starved = _longest_starved(at, fair)
        made += [
            reading(case, "longest time below 5 % of a fair share", "s", LESS, starved, 0.5),
            reading(case, "share of a fair share", "%", MORE, 100 * share, most=inf),
        ]
    return made


def _read_real_time(results: Filled) -> list[Reading]:
    alone, case = results
    at = results[case]
    solo, delay = (each.time("delay_p95", "video") for each in (results[alone], at))
    return [
        reading(case, "video packets' delay, p95", "ms", LESS, 1e3 * delay),
        reading(case, "video packets lost", "%", LESS, 100 * at.loss("video"), 0.5),
        reading(case, "mean opinion score of calls", "", MORE, at.metric("mos", "call"), 0.1, 4.5),
        _harm(case, "the video packets' delay", of_less(solo, delay)),
    ]


def _read_short(results: Filled) -> list[Reading]:
    made = []
    for victim in (each.name for each in VICTIMS):
        solo, beside = (
            results[f"{kind} | {victim}"].time("completion_p95", "short")
            for kind in ("solo", "beside")
        )
        at = results[f"long | {victim}"]
        short = f"short flows of {victim} beside 2 long ones"
        long = f"short flows beside 2 long ones of {victim}"
        taken, share = at.time("completion_p95", "own"), at.goodput("victim") / PATH.rate
        made += [
            reading(short, "completion of 30 kB, p95", "ms", LESS, 1e3 * beside),
            _harm(short, "the completion", of_less(solo, beside)),
            reading(long, "completion of 30 kB, p95", "ms", LESS, 1e3 * taken),
            reading(long, "goodput of the long flows", "%", MORE, 100 * share),
        ]
    return made


CRITERIA: tuple[Question, ...] = (
    _beside(
        "existing", "Beside Reno and CUBIC", "MUST",
        "How much do Reno and CUBIC lose beside it, against their losses beside themselves? Not "
        "over 50 Mbit/s, 100 ms and 4 BDP: Reno takes more than six minutes from loss to loss.",
        VICTIMS, PATHS,
    ),
    _beside(
        "deployed", "Beside BBR and BBRv3", "considered",
        "What do widely deployed controls that are no standard lose beside it?",
        DEPLOYED, FEW_PATHS,
    ),
    _beside(
        "quic", "Beside QUIC", "MUST",
        "What do flows with QUIC's recovery and NewReno (RFC 9002) lose beside it?",
        QUIC, FEW_PATHS,
    ),
    criterion(
        "starvation", "5.2", "Starvation", "mixed", "MUST",
        "Does a flow of Reno or CUBIC get next to nothing for long?",
        {
            f"{victim.name} beside {count}": scenario(
                PATH.links(), {"victim": bulk(victim), "own": bulk(OWN, count)}, LASTS, WARM, SLICE
            )
            for victim in VICTIMS
            for count in (1, MANY)
        },
        _read_starvation,
    ),
    criterion(
        "real-time", "5.2.2", "Real-time traffic", "mixed", "SHOULD",
        "What becomes of calls and video beside it?",
        {
            "calls and a video call alone": _run(PATH, **CALLS),
            f"beside {FLOWS} flows": _run(PATH, **CALLS, own=bulk(OWN, FLOWS)),
        },
        _read_real_time,
    ),
    criterion(
        "short-long", "5.2.3", "Short and long flows of others", "mixed", "MUST",
        "How long do short flows of Reno and CUBIC take beside its long ones, and vice "
        "versa?",
        {
            f"{kind} | {victim.name}": _run(PATH, **flows)
            for victim in VICTIMS
            for kind, flows in (
                ("solo", {"short": load(SHORT, victim)}),
                ("beside", {"short": load(SHORT, victim), "own": bulk(OWN, 2)}),
                ("long", {"own": load(SHORT, OWN), "victim": bulk(victim, 2)}),
            )
        },
        _read_short,
    ),
)  # fmt: skip

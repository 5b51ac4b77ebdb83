"""The statements of the paper, checked one by one.

Each check is a rule fixed in advance, told in its evidence together with the
numbers, so that a reader can disagree with the rule and still use the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Claim
from aqmlab.statistics import FAILS, HOLDS, PARTLY, graded_share
from aqmlab.studies.jarvinen2014.figures import FLOWS, PAPER, SPIKES, fairness
from aqmlab.studies.jarvinen2014.ns2 import REST

FIT = {
    "HRED": "HRED fitted: th_max 50",
    "HRED (aggressive)": "HRED (aggressive) fitted: th_max 50",
}
"""The printed queue and the setting that comes close to its printed tables."""
FAR = "101 ms"
ENOUGH = 0.9
"""The share of the medians that a statement with "typically" or "around" needs."""
STEP = 0.006
"""One packet at 2 Mbit/s, in seconds: smaller differences are not counted."""

Medians = dict[tuple[str, str], float]


def claims(measured: Measurements) -> list[Claim]:
    """All statements for which the queues and paths were run."""
    checks: tuple[Callable[[Measurements], Claim | None], ...] = (
        _median,
        _inert,
        _long_spikes,
        _longer_spikes,
        _responses,
        _fairness,
        _far,
        _recall,
    )
    return [claim for check in checks if (claim := check(measured))]


def _queues(measured: Measurements, queues: Iterable[str] = PAPER, rest: str = REST) -> list[str]:
    return [q for q in queues if all(measured.has(queue=q, flows=f, rest=rest) for f in FLOWS)]


def _median(measured: Measurements) -> Claim | None:
    queues = _queues(measured)
    if not queues:
        return None
    medians = {
        (q, f): measured.delay_quantile(0.5, queue=q, flows=f, rest=REST)
        for q in queues
        for f in FLOWS
    }
    worst = max(medians, key=medians.__getitem__)
    above = [key for key, each in medians.items() if each > 0.0245]
    return Claim(
        "median-delay",
        "The median queuing delay is at most 24 ms with every queue and workload.",
        HOLDS if not above else PARTLY if len(above) <= len(medians) / 4 else FAILS,
        f"The largest of the {len(medians)} medians (pooled over all packets) is "
        f"{_ms(medians[worst])} ({_at(worst)}). "
        + (f"Above 24 ms: {_listed(medians, above)}." if above else "None is above 24 ms."),
    )


def _inert(measured: Measurements) -> Claim | None:
    pie, fifo = "PIE (default)", "DropTail"
    if len(_queues(measured, (pie, fifo))) < 2:
        return None
    shares = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
    off, early = {}, 0
    for flows in FLOWS:
        one, other = (
            np.array(measured.histograms(queue=q, flows=flows, rest=REST).quantiles(shares))
            for q in (pie, fifo)
        )
        off[flows] = float(np.abs(one - other).max())
        early += int(measured.count("drop_pie", queue=pie, flows=flows, rest=REST).sum())
    worst = max(off, key=off.__getitem__)
    runs = len(FLOWS) * measured.replications
    return Claim(
        "pie-inert",
        "PIE with its default parameters does nothing at 2 Mbit/s: it equals a FIFO.",
        HOLDS if not early and off[worst] <= 1.1 * STEP else FAILS,
        f"In {runs} runs PIE dropped {early} packets early; all its drops are those of the full "
        f"buffer. Percentiles 5 to 100 of the delay differ from DropTail's by at most "
        f"{_ms(off[worst])} ({worst} flows), where one packet is 6 ms.",
    )


def _spike_medians(measured: Measurements, delay: int, queues: Iterable[str]) -> Medians:
    single = [q for q in _queues(measured, queues) if q != "SFQ CoDel"]
    return {
        (q, f): float(np.median(measured.spikes(SPIKES[delay], queue=q, flows=f, rest=REST)))
        for q in single
        for f in FLOWS
    }


def _long_spikes(measured: Measurements) -> Claim | None:
    medians = _spike_medians(measured, 60, PAPER)
    if not medians:
        return None
    short = [key for key, each in medians.items() if each <= 0.200]
    least = min(medians, key=medians.__getitem__)
    fitted = _spike_medians(measured, 60, FIT.values())
    return Claim(
        "spikes-60ms",
        "Delay spikes above 60 ms typically last clearly more than 200 ms.",
        graded_share(len(medians) - len(short), len(medians), holds=ENOUGH),
        f"{len(medians) - len(short)} of {len(medians)} medians of the longest spike of a run are "
        f"above 200 ms; the shortest is {_ms(medians[least])} ({_at(least)})."
        + (f" With HRED as fitted the shortest is {_least(fitted)}." if fitted else ""),
    )


def _longer_spikes(measured: Measurements) -> Claim | None:
    medians = _spike_medians(measured, 100, PAPER)
    if not medians:
        return None
    harsh = "HRED (aggressive)"
    others = {key: each for key, each in medians.items() if key[0] != harsh}
    enough = [key for key, each in others.items() if each >= 0.120]
    short = [key for key in others if key not in enough]
    told = _listed(others, short)
    evidence = (
        f"{len(enough)} of {len(others)} medians without aggressive HRED are at least 120 ms"
        + (f" (not: {told})" if told else "")
        + "."
    )
    printed = _range(medians, harsh)
    verdict = graded_share(len(enough), len(others), holds=ENOUGH)
    exception = printed is not None and printed[1] < 0.130
    if printed:
        evidence += f" Aggressive HRED as printed: {_ms(printed[0])} to {_ms(printed[1])}"
        evidence += ", shorter as said." if exception else ", so it is no exception."
    fitted = _range(_spike_medians(measured, 100, [FIT[harsh]]), FIT[harsh])
    if fitted:
        evidence += f" As fitted: {_ms(fitted[0])} to {_ms(fitted[1])}."
        exception = exception or fitted[1] < 0.130
    if verdict == HOLDS and not (printed and printed[1] < 0.130):
        verdict = PARTLY
    if verdict == PARTLY and not exception and len(enough) < len(others) / 2:
        verdict = FAILS
    return Claim(
        "spikes-100ms",
        "Delay spikes above 100 ms last around 130 ms or longer, except with aggressive HRED.",
        verdict,
        evidence,
    )


def _responses(measured: Measurements) -> Claim | None:
    queues = _queues(measured)
    if len(queues) < 2:
        return None
    medians = {
        group: {
            (q, f): float(np.median(measured.responses(group, queue=q, flows=f, rest=REST)))
            for q in queues
            for f in FLOWS
        }
        for group in ("first", "second")
    }
    spread, where = 0.0, ("", "")
    for group, values in medians.items():
        for flows in FLOWS:
            each = [values[q, flows] for q in queues]
            if max(each) / min(each) > spread:
                spread, where = max(each) / min(each), (group, flows)
    longer = sum(medians["second"][key] > value for key, value in medians["first"].items())
    total = len(medians["first"])
    ratio = float(np.median([medians["second"][k] / v for k, v in medians["first"].items()]))
    alike, later = spread <= 1.5, longer >= 0.9 * total
    return Claim(
        "response-times",
        "Response times are roughly at the same level whatever the queue, and slightly longer in "
        "the second group.",
        HOLDS if alike and later else PARTLY if alike or later else FAILS,
        f"At one load the largest median is at most {spread:.2f} times the smallest ({where[0]} "
        f"group, {where[1]}). The second group's median is longer in {longer} of {total} cases, "
        f"by {100 * (ratio - 1):.0f} % in the middle.",
    )


def _fairness(measured: Measurements) -> Claim | None:
    queues = _queues(measured)
    if "SFQ CoDel" not in queues or len(queues) < 2:
        return None
    told, best = [], 0
    for flows in FLOWS:
        medians = {
            q: float(np.median(fairness(measured, queue=q, flows=flows, rest=REST))) for q in queues
        }
        first = max(medians, key=medians.__getitem__)
        best += first == "SFQ CoDel"
        told.append(f"{flows}: {first} {medians[first]:.3f}, SFQ CoDel {medians['SFQ CoDel']:.3f}")
    return Claim(
        "fairness",
        "SFQ CoDel does not give the best Jain index of response times.",
        HOLDS if best == 0 else PARTLY if best < len(FLOWS) / 2 else FAILS,
        f"Medians, the best and SFQ CoDel's: {'; '.join(told)}. SFQ CoDel is best at {best} of "
        f"{len(FLOWS)} loads.",
    )


def _far(measured: Measurements) -> Claim | None:
    queues = [q for q in _queues(measured) if q in _queues(measured, rest=FAR)]
    if len(queues) < 2:
        return None
    kept, pairs, turned = 0, 0, []
    for flows in FLOWS:
        near, far = (
            {q: float(np.median(measured.maxima(queue=q, flows=flows, rest=rest))) for q in queues}
            for rest in (REST, FAR)
        )
        for one, other in combinations(queues, 2):
            gap, gap_far = near[one] - near[other], far[one] - far[other]
            if abs(gap) <= STEP or abs(gap_far) <= STEP:
                continue
            pairs += 1
            kept += (gap > 0) == (gap_far > 0)
            if (gap > 0) != (gap_far > 0):
                turned.append(f"{one} and {other} at {flows}")
    return Claim(
        "long-path",
        "With 101 ms for the rest of the path the order of the queues stays.",
        graded_share(kept, pairs, holds=ENOUGH),
        f"Medians of the largest delay: of {pairs} pairs of queues (six queues, four loads, pairs "
        f"less than a packet apart left out) {kept} keep their order"
        + (f"; turned: {', '.join(turned)}." if turned else "."),
    )


def _recall(measured: Measurements) -> Claim | None:
    usual, formula, linux = "CoDel", "CoDel, recall of RFC 8289", "CoDel as in Linux"
    if len(_queues(measured, (usual, formula))) < 2:
        return None

    def p95(queue: str) -> list[float]:
        labels = {"queue": queue, "rest": REST}
        return [1e3 * measured.delay_quantile(0.95, flows=f, **labels) for f in FLOWS]

    def told(values: list[float]) -> str:
        return ", ".join(f"{value:.0f}" for value in values)

    one, other = p95(usual), p95(formula)
    off = max(abs(a - b) for a, b in zip(one, other, strict=True))
    evidence = (
        f"95th percentiles of the delay at {', '.join(FLOWS)}: {told(one)} ms with ns-2's recall "
        f"of 2012, {told(other)} ms with Linux's formula, which is also that of RFC 8289."
    )
    if linux in _queues(measured, (linux,)):
        evidence += (
            f" With Linux's arithmetic besides (an inverse square root in small steps) "
            f"{told(p95(linux))} ms: that is no matter of the recall."
        )
    return Claim(
        "recall",
        "The recall variant of Linux's CoDel gives no noticeable change in the delays.",
        HOLDS if off <= 1e3 * STEP * 1.1 else FAILS,
        evidence,
    )


def _range(medians: Medians, queue: str) -> tuple[float, float] | None:
    own = [each for key, each in medians.items() if key[0] == queue]
    return (min(own), max(own)) if own else None


def _least(medians: Medians) -> str:
    key = min(medians, key=medians.__getitem__)
    return f"{_ms(medians[key])} ({_at(key)})"


def _at(key: tuple[str, str]) -> str:
    return f"{key[0]}, {key[1]}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"


def _listed(medians: Medians, keys: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{_ms(medians[key])} ({_at(key)})" for key in keys)

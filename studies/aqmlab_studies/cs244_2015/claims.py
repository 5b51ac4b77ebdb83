"""The statements of the document, checked one by one.

A statement is one row with one rule, judged by the document's own load alone: four bulk flows
and five pages of 800 kB a second. The senders are CUBIC, which Ubuntu 14.04 has by default.
Other loads and senders are told beside it. README.md says which rules were changed and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aqmlab.campaign import Asked, Rule, above, asked, at_least, at_most, within
from aqmlab.campaign.rule import Compared
from aqmlab.metrics.samples import Floats
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.cs244_2015.curves import (
    BUFFER,
    CODEL,
    FALLS,
    POSSIBLE,
    RATES,
    RISES,
    STEP,
    TAIL,
    average,
    both,
    carried,
    inside,
    of_step,
    settings,
    shares,
    told,
)  # fmt: skip
from aqmlab_studies.shared import each, percent

Labels = Mapping[str, str]
Found = TypeVar("Found")
TARGET = 0.005
"""CoDel's target, in seconds: below it one delay is as good as another."""


def own(part: Measurements) -> dict[str, str]:
    """The labels of the document's own load and sender."""
    return {"load": "bulk and web"} | ({"sender": "CUBIC"} if "sender" in part.axes else {})


def claims(measured: Measurements) -> list[Asked]:
    """All statements for which the parts were run."""
    return [*measured.asked(study=STEPS, lte=LTE), *asked((ACROSS,), measured)]


def _statement(
    ident: str,
    text: str,
    rule: str,
    value: Callable[[Measurements, Labels], Found],
    compared: Callable[[Found], Compared],
    words: Callable[[Found], str],
    refuted_by: Found,
) -> Rule[Measurements, Any]:
    """The rule by which `value` decides: measured at the own load, told for all others."""

    def beside(part: Measurements) -> str:
        others = (labels for labels in settings(part) if labels != own(part))
        return "; ".join(f"{told(each)}: {words(value(part, each))}" for each in others)

    def measure(part: Measurements) -> Found:
        return value(part, own(part))

    return Rule(ident, text, rule, measure, compared, words, refuted_by, beside)


def _peaks(steps: Measurements, labels: Labels) -> list[float]:
    """The largest delay after each drop of the rate, as a share of a full buffer's at that rate."""
    times, values = average(steps, "sojourn_max_s", queue=TAIL, **labels)
    return [float(inside(times, values, step).max()) * RATES[step] * 1e6 / BUFFER for step in FALLS]


def _of_peaks(steps: Measurements, labels: Labels) -> list[float]:
    """CoDel's largest mean delay after each drop of the rate, as a share of tail drop's."""
    times, curves = both(steps, "sojourn_mean_s", **labels)
    return [
        float(inside(times, curves[CODEL], s).max() / inside(times, curves[TAIL], s).max())
        for s in FALLS
    ]


def _brought_down(steps: Measurements, labels: Labels) -> list[float]:
    """Seconds after each drop of the rate until CoDel's delay stays below a tenth of tail drop's
    peak."""
    times, curves = both(steps, "sojourn_mean_s", **labels)
    found = []
    for step in FALLS:
        codel = inside(times, curves[CODEL], step)
        after = (inside(times, times, step) - step * STEP)[
            codel > inside(times, curves[TAIL], step).max() / 10
        ]
        found.append(float(after.max()) if after.size else 0.0)
    return found


def _often(
    holds: Callable[[Floats, Floats], NDArray[np.bool_]],
) -> Callable[[Measurements, Labels], float]:
    """The share of the half seconds in which the mean delays with tail drop and CoDel are so."""

    def value(part: Measurements, labels: Labels) -> float:
        _, curves = both(part, "sojourn_mean_s", **labels)
        return float(np.mean(holds(curves[TAIL], curves[CODEL])))

    return value


_below = _often(lambda tail, codel: codel < tail)


def _share(queue: str) -> Callable[[Measurements, Labels], float]:
    return lambda part, labels: float(shares(part, queue=queue, **labels).mean())


def _less(steps: Measurements, labels: Labels) -> float:
    """By which share CoDel carries fewer bytes than tail drop."""
    return 1 - _share(CODEL)(steps, labels) / _share(TAIL)(steps, labels)


def _constant(steps: Measurements, labels: Labels) -> list[float]:
    """By how much CoDel's utilisation is lower in the last 30 s of each of the fast steps."""
    used = {
        queue: [of_step(steps, step, 20.0, queue=queue, **labels).mean() for step in (0, 3, 5)]
        for queue in (TAIL, CODEL)
    }
    return [float(tail - codel) for tail, codel in zip(used[TAIL], used[CODEL], strict=True)]


def _transitions(steps: Measurements, labels: Labels) -> tuple[float, float]:
    """Bytes that CoDel carries less: in the first 10 s of the steps, and in all."""

    def sent(queue: str, start: float, seconds: float) -> float:
        return float(carried(steps, start, start + seconds, queue=queue, **labels).mean())

    def lost(seconds: float) -> float:
        starts = [step * STEP for step in range(len(RATES))]
        return sum(sent(TAIL, each, seconds) - sent(CODEL, each, seconds) for each in starts)

    return lost(10.0), lost(STEP)


def _ingress(queue: str) -> Callable[[Measurements, Labels], tuple[float, float]]:
    """The shares of the half seconds with an ingress of 10 % above and below the capacity."""

    def value(steps: Measurements, labels: Labels) -> tuple[float, float]:
        _, came = average(steps, "ingress_bps", queue=queue, **labels)
        _, capacity = average(steps, "capacity_bps", queue=queue, **labels)
        ratio = came[1:] / capacity[1:]
        return float(np.mean(ratio > 1.1)), float(np.mean(ratio < 0.9))

    return value


def _lags(steps: Measurements, labels: Labels) -> list[tuple[float, float]]:
    """Seconds after each rise of the rate until half a second is 90 % full: CoDel, tail drop."""

    def lag(step: int, queue: str) -> float:
        times, values = average(steps, "throughput_bps", queue=queue, **labels)
        full = np.flatnonzero(inside(times, values, step) >= 0.9e6 * RATES[step])
        after = inside(times, times, step) - step * STEP
        return float(after[full[0]]) if full.size else STEP

    return [(lag(step, CODEL), lag(step, TAIL)) for step in RISES]


def _spiking(lte: Measurements, labels: Labels) -> float:
    """CoDel's largest delay of a run (mean) as a multiple of its median delay."""
    peak = float(lte.maxima(queue=CODEL, **labels).mean())
    return peak / lte.delay_quantile(0.5, queue=CODEL, **labels)


def _listed(form: str, unit: str) -> Callable[[Iterable[float]], str]:
    return lambda found: f"{', '.join(form.format(each) for each in found)} {unit}"


_seconds = _listed("{:.1f}", "s")


def _percents(found: list[float]) -> str:
    return _listed("{:.0f}", "%")(100 * each for each in found)


def _share_rule(queue: str, printed: float, wrong: float) -> Rule[Measurements, Any]:
    low, high = printed - (1 - printed) / 3, printed + (1 - printed) / 3
    return _statement(
        f"share-{queue.replace(' ', '-')}".lower(),
        f"{queue[0].upper()}{queue[1:]} sends {100 * printed:.0f} % of the possible bytes.",
        f"the unused share of the link is within a third of the document's "
        f"({100 * low:.0f} to {100 * high:.0f} % of {POSSIBLE / 1e6:.1f} MB are sent)",
        _share(queue),
        lambda share: within(share, printed, (1 - printed) / 3),
        percent,
        wrong,
    )


STEPS: tuple[Rule[Measurements, Any], ...] = (
    _statement(
        "tail-drop-spikes",
        "Tail drop introduces extremely large delays when the rate drops.",
        "after each drop of the rate (at 50, 100 and 200 s) the largest delay is at least half of "
        "what a full buffer takes at the new rate (1, 10 and 10 s)",
        _peaks, each(at_least, 0.5), _percents, [1.0, 1.0, 0.2]),
    _statement(
        "codel-not-too-high",
        "CoDel's delays do not spike too high.",
        "after each drop of the rate the largest mean delay of half a second is below a third of "
        "tail drop's",
        _of_peaks, each(at_most, 1 / 3), _percents, [0.1, 0.1, 0.5]),
    _statement(
        "codel-quickly-down",
        "CoDel's delays, when they spike, are quickly brought down.",
        "10 s after each drop of the rate and later they are below a tenth of tail drop's peak",
        _brought_down, each(at_most, 10), _seconds, [1.0, 1.0, 30.0]),
    _statement(
        "codel-below",
        "CoDel's delay is consistently less than tail drop's.",
        "in at least 99 % of the half seconds its mean delay is below tail drop's",
        _below, lambda found: at_least(found, 0.99), percent, 0.9),
    _statement(
        "hundredfold",
        "Packet delays are at times 100 times smaller with CoDel.",
        "in at least 1 % of the half seconds tail drop's mean delay is at least 100 times CoDel's "
        "(delays below CoDel's target of 5 ms count as 5 ms)",
        _often(lambda tail, codel: tail >= 100 * np.maximum(codel, TARGET)),
        lambda found: at_least(found, 0.01), percent, 0.0),
    _share_rule(TAIL, 0.97, 0.99),
    _share_rule(CODEL, 0.88, 0.96),
    _statement(
        "ten-percent-less",
        "CoDel transfers about 10 % less than tail drop.",
        "between 8 and 12 %",
        _less, lambda found: within(found, 0.1, 0.02), percent, 0.03),
    _statement(
        "lower-at-constant-rate",
        "Utilisation is clearly lower with CoDel even at a constant bandwidth.",
        "in the last 30 s of each of the three fast steps (100, 50 and 100 Mbit/s) it is lower by "
        "more than one point",
        _constant, each(above, 0.01),
        lambda found: f"by {', '.join(f'{100 * each:.1f}' for each in found)} points",
        [0.05, 0.05, 0.0]),
    _statement(
        "transitions",
        "A significant source of the lost throughput is at the transition points.",
        "CoDel carries less, and of the bytes that it carries less more than 30 % are missing from "
        "the first 10 s of the steps, which are 20 % of the time",
        _transitions, lambda found: [
            above(found[1], 0, "all"), above(found[0] - 0.3 * found[1], 0, "first 10 s")],
        lambda found: f"{found[0] / 1e6:.0f} of {found[1] / 1e6:.0f} MB", (10e6, 100e6)),
    _statement(
        "ingress-codel",
        "With CoDel the arrival rate at the switch almost never exceeds the capacity of the link.",
        "the mean ingress is more than 10 % above the capacity in at most 10 % of the half seconds",
        _ingress(CODEL), lambda found: at_most(found[0], 0.1),
        lambda found: percent(found[0]), (0.3, 0.3)),
    _statement(
        "ingress-tail-drop",
        "With tail drop the arrival rate goes above and below the capacity of the link.",
        "the mean ingress is more than 10 % above the capacity in at least 10 % of the half "
        "seconds, and more than 10 % below it in at least 10 %",
        _ingress(TAIL), each(at_least, 0.1),
        lambda found: f"{percent(found[0])} above, {percent(found[1])} below", (0.6, 0.0)),
    _statement(
        "slower-to-adapt",
        "CoDel is slower than tail drop at adapting to changes.",
        "after both rises of the rate (at 150 and 250 s) it takes CoDel more than a second longer "
        "than tail drop (two samples) until half a second is 90 % full",
        _lags, lambda found: [above(codel - tail, 1, "later") for codel, tail in found],
        lambda found: "CoDel and tail drop "
        + ", ".join(f"{codel:.1f} and {tail:.1f} s" for codel, tail in found),
        [(1.0, 0.5), (1.0, 1.0)]),
)  # fmt: skip

LTE: tuple[Rule[Measurements, Any], ...] = (
    _statement(
        "lte-12-percent",
        "On LTE tail drop transfers around 12 % more than CoDel.",
        "between 9 and 15 %",
        lambda lte, labels: _share(TAIL)(lte, labels) / _share(CODEL)(lte, labels) - 1,
        lambda found: within(found, 0.12, 0.03), percent, 0.003),
    _statement(
        "codel-below-lte",
        "On LTE the delay at any time is more with tail drop than with CoDel.",
        "in at least 99 % of the half seconds CoDel's mean delay is below tail drop's",
        _below, lambda found: at_least(found, 0.99), percent, 0.9),
    _statement(
        "lte-spikes",
        "On LTE CoDel's delay spikes.",
        "the largest delay of a run (mean over the replications) is at least five times the median",
        _spiking, lambda found: at_least(found, 5), lambda found: f"{found:.1f} times", 2.0),
)  # fmt: skip


def _gaps(measured: Measurements) -> tuple[float, float]:
    """By which share CoDel carries fewer bytes than tail drop: LTE, rate steps."""
    lte, steps = measured.part("lte"), measured.part("study")
    return _less(lte, own(lte)), _less(steps, own(steps))


ACROSS: Rule[Measurements, Any] = Rule(
    "lte-a-little-more",
    "The gap between tail drop and CoDel is a little larger on LTE than with the rate steps.",
    "CoDel carries fewer bytes than tail drop by a share that is larger on LTE, by at least half a "
    "point and at most 5 points",
    _gaps,
    lambda found: [at_least(found[0] - found[1], 0.005), at_most(found[0] - found[1], 0.05)],
    lambda found: f"{percent(found[0])} on LTE, {percent(found[1])} with the rate steps",
    (0.02, 0.05),
)

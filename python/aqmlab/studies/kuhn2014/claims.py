"""The statements of the paper, checked one by one.

Each check is a rule fixed in advance, told in its evidence together with the
numbers, so that a reader can disagree with the rule and still use the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Claim
from aqmlab.statistics import FAILS, HOLDS, PARTLY, Floats, graded_share, quantile
from aqmlab.studies.kuhn2014.measure import (
    AQMS,
    BUFFERS,
    CONTROLS,
    MAIN_BUFFER,
    QUEUES,
    increase,
    packet_time,
    reduction,
    transfer_time,
)
from aqmlab.studies.kuhn2014.seconds import seconds

CUBIC = {"control": "CUBIC"}
SHOWN = ("CUBIC", "Vegas")
"""The congestion controls of figures 2 to 4."""
RANGES = {"CoDel": (0.01, 0.1), "RED": (0.1, 0.5)}
MAXIMA = {"CoDel": 0.05, "RED": 0.3}


def claims(measured: Measurements) -> list[Claim]:
    """All statements for which the points were run."""
    study = measured.part("study")
    if study is None:
        return []
    checks = []
    if _has(study, SHOWN, BUFFERS):
        checks += [
            _drops,
            _ranges,
            _maxima,
            _size,
            _vegas_size,
            _cubic_size,
            _vegas_aqm,
            _cubic_aqm,
        ]
    if _has(study, CONTROLS, [MAIN_BUFFER]):
        checks += [_reduce, _published_reductions, _vegas, _red_time, _codel_time, _fairer]
    return [check(study) for check in checks]


def _has(study: Measurements, controls: Iterable[str], buffers: Iterable[str]) -> bool:
    controls, buffers = list(controls), list(buffers)
    return all(
        study.has(queue=q, control=c, buffer=b) for q in QUEUES for c in controls for b in buffers
    )


def _delays(study: Measurements, queue: str, control: str, buffer: str) -> Floats:
    delays = seconds(study, queue=queue, control=control, buffer=buffer).delay
    return delays[np.isfinite(delays)]


def _drops(study: Measurements) -> Claim:
    def share(queue: str, buffer: str) -> float:
        labels = {"queue": queue, "control": "CUBIC", "buffer": buffer}
        return float(
            study.count("dropped", **labels).sum() / study.count("arrived", **labels).sum()
        )

    shares = {(q, b): share(q, b) for q in QUEUES for b in BUFFERS}
    right = [(q, b) for q in AQMS for b in BUFFERS if shares[q, b] > shares["DropTail", b]]
    told = "; ".join(
        f"{q}: " + ", ".join(f"{shares[q, b]:.1%} ({b})" for b in BUFFERS) for q in QUEUES
    )
    return Claim(
        "drops",
        "The introduction of RED and CoDel results in drop events (figure 2).",
        graded_share(len(right), len(AQMS) * len(BUFFERS)),
        f"Share of all packets dropped at node 2 with CUBIC, by buffer: {told}. The rule: more "
        f"than with DropTail and the same buffer; so for {len(right)} of "
        f"{len(AQMS) * len(BUFFERS)}. DropTail itself drops what does not fit.",
    )


def _ranges(study: Measurements) -> Claim:
    told, right = [], 0
    for queue, (low, high) in RANGES.items():
        for control in SHOWN:
            delays = np.concatenate([_delays(study, queue, control, b) for b in BUFFERS])
            inside = float(((delays >= low) & (delays <= high)).mean())
            right += inside >= 0.8
            told.append(
                f"{queue} with {control}: {inside:.0%} of the seconds within {low:g} s to "
                f"{high:g} s, median {_ms(quantile(delays, 0.5))}"
            )
    return Claim(
        "delay-ranges",
        "The queuing delay ranges between 0.01 s and 0.1 s with CoDel, and between 0.1 s and 0.5 s "
        "with RED.",
        graded_share(right, len(told)),
        f"Means over a second, all buffers: {'; '.join(told)}. The rule: at least 80 % inside.",
    )


def _maxima(study: Measurements) -> Claim:
    told, right = [], 0
    for queue, limit in MAXIMA.items():
        delays = np.concatenate([_delays(study, queue, "CUBIC", b) for b in BUFFERS])
        above = float((delays > limit).mean())
        right += above <= 0.05
        told.append(
            f"{queue}: {above:.1%} of the seconds above {_ms(limit)}, at most "
            f"{_ms(float(delays.max()))}"
        )
    return Claim(
        "delay-maxima",
        "RED and CoDel reduce the maximum queuing delay to 300 ms and 50 ms.",
        graded_share(right, len(told)),
        f"Means over a second with CUBIC, all buffers: {'; '.join(told)}. The rule: at most 5 % "
        "above.",
    )


def _size(study: Measurements) -> Claim:
    told, spread = [], {}
    for queue in AQMS:
        medians = [quantile(_delays(study, queue, "CUBIC", b), 0.5) for b in BUFFERS[1:]]
        spread[queue] = max(medians) / min(medians) - 1
        told.append(f"{queue}: {', '.join(map(_ms, medians))} (apart by {spread[queue]:.0%})")
    holds = spread["CoDel"] <= 0.1
    return Claim(
        "buffer-size",
        "With CoDel the size of the queue has no impact; with RED it has a tiny one.",
        HOLDS if holds and spread["RED"] <= 0.25 else PARTLY if holds else FAILS,
        f"Median of the second's mean queuing delay with CUBIC, buffers of {_list(BUFFERS[1:])}: "
        f"{'; '.join(told)}. The rule: CoDel within 10 %, RED within 25 %. With 10 packets neither "
        "has room to act.",
    )


def _by_buffer(study: Measurements, queue: str, control: str) -> tuple[list[float], str]:
    """Throughput of the transfer by buffer, in Mbit/s."""
    rates = [
        80 / transfer_time(study, queue=queue, control=control, buffer=buffer)[0]
        for buffer in BUFFERS
    ]
    return rates, ", ".join(f"{r:.3f} ({b})" for r, b in zip(rates, BUFFERS, strict=True))


def _droptail_size(study: Measurements, control: str, rule: str, text: str) -> Claim:
    rates, told = _by_buffer(study, "DropTail", control)
    right = sum(b > a if rule == "more" else b < a for a, b in pairwise(rates))
    return Claim(
        f"{control.lower()}-buffer",
        text,
        graded_share(right, len(rates) - 1) if right else FAILS,
        f"Mean throughput of the 10 MB in Mbit/s, by buffer: {told}. The rule: {rule} with each "
        "larger buffer.",
    )


def _vegas_size(study: Measurements) -> Claim:
    text = "With DropTail and Vegas the throughput decreases as the queue grows (figure 3)."
    return _droptail_size(study, "Vegas", "less", text)


def _cubic_size(study: Measurements) -> Claim:
    text = "With DropTail and CUBIC the throughput increases with larger queues (figure 4)."
    return _droptail_size(study, "CUBIC", "more", text)


def _vegas_aqm(study: Measurements) -> Claim:
    ratios = [
        transfer_time(study, queue="CoDel", control="Vegas", buffer=b)[0]
        / transfer_time(study, queue="RED", control="Vegas", buffer=b)[0]
        for b in BUFFERS
    ]
    right = sum(abs(each - 1) <= 0.1 for each in ratios)
    told = ", ".join(f"{each:.2f} ({b})" for each, b in zip(ratios, BUFFERS, strict=True))
    return Claim(
        "vegas-aqm",
        "With Vegas the throughput is the same whichever of the two AQMs (figure 3).",
        graded_share(right, len(ratios)),
        f"Throughput with RED as a multiple of that with CoDel, by buffer: {told}. The rule: "
        "within 10 %.",
    )


def _cubic_aqm(study: Measurements) -> Claim:
    labels = {"control": "CUBIC", "buffer": MAIN_BUFFER}
    best = {q: quantile(seconds(study, queue=q, **labels).throughput, 0.95) * 1e-6 for q in AQMS}
    larger = all(
        transfer_time(study, queue="RED", control="CUBIC", buffer=b)[0]
        < transfer_time(study, queue="CoDel", control="CUBIC", buffer=b)[0]
        for b in BUFFERS[1:]
    )
    told = ", ".join(f"{each:.2f} Mbit/s with {q}" for q, each in best.items())
    return Claim(
        "cubic-aqm",
        "With CUBIC the throughput is larger with RED (up to 0.75 Mbit/s) than with CoDel (up to "
        "0.45 Mbit/s) (figure 4).",
        HOLDS if larger and best["RED"] > best["CoDel"] else FAILS,
        f"The 10 MB take less time with RED than with CoDel with buffers of {_list(BUFFERS[1:])}: "
        f"{'yes' if larger else 'no'}. 95 % of the seconds are below {told}; single seconds go "
        "higher with both while the applications have not all begun.",
    )


def _reduce(study: Measurements) -> Claim:
    cells = {
        (q, c): reduction(study, queue=q, control=c, buffer=MAIN_BUFFER)
        for q in AQMS
        for c in CONTROLS
    }
    right = sum(interval.low > 0 for _, interval in cells.values())
    codel = sum(cells["CoDel", c][0] > cells["RED", c][0] for c in CONTROLS)
    told = "; ".join(
        f"{q}: " + ", ".join(f"{cells[q, c][0]:.0%} ({c})" for c in CONTROLS) for q in AQMS
    )
    return Claim(
        "reduction",
        "RED and CoDel reduce the latency for every congestion control, CoDel more than RED.",
        graded_share(right + codel, len(cells) + len(CONTROLS)),
        f"Reduction of the mean packet transmission time against DropTail: {told}. The rule: every "
        "interval above 0, and CoDel's reduction the larger.",
    )


def _published_reductions(study: Measurements) -> Claim:
    labels = {"control": "CUBIC", "buffer": MAIN_BUFFER}
    found = {q: reduction(study, queue=q, **labels)[0] for q in AQMS}
    right = sum(abs(found[q] - p) <= 0.05 for q, p in (("CoDel", 0.87), ("RED", 0.75)))
    means = {q: packet_time(study, queue=q, **labels)[0] for q in QUEUES}
    return Claim(
        "reduction-cubic",
        "With CUBIC, CoDel reduces the packet transmission time by 87 % and RED by 75 %.",
        graded_share(right, 2),
        f"{found['CoDel']:.0%} and {found['RED']:.0%}, from {_ms(means['DropTail'])} to "
        f"{_ms(means['CoDel'])} and {_ms(means['RED'])}. The rule: within 5 percentage points.",
    )


def _vegas(study: Measurements) -> Claim:
    labels = {"queue": "DropTail", "buffer": MAIN_BUFFER}
    means = {c: packet_time(study, control=c, **labels)[0] for c in CONTROLS}
    found, _ = reduction(study, CUBIC, control="Vegas", **labels)
    told = ", ".join(f"{_ms(mean)} ({c})" for c, mean in means.items())
    least = min(means, key=means.__getitem__) == "Vegas"
    close = abs(found - 0.44) <= 0.05
    return Claim(
        "vegas-latency",
        "With DropTail, Vegas introduces less latency than any other, 44 % less than CUBIC.",
        HOLDS if least and close else PARTLY if least else FAILS,
        f"Mean packet transmission times: {told}: {found:.0%} less. The rule: the least, "
        "and within 5 percentage points of 44 %.",
    )


def _red_time(study: Measurements) -> Claim:
    found = {c: increase(study, queue="RED", control=c, buffer=MAIN_BUFFER)[0] for c in CONTROLS}
    right = sum(abs(each) <= 0.1 for each in found.values())
    return Claim(
        "red-time",
        "RED's drops do not impact the transmission time of 10 MB much, whatever the congestion "
        "control: 5 % with CUBIC.",
        graded_share(right, len(found)),
        f"Increase against DropTail: {', '.join(f'{e:+.0%} ({c})' for c, e in found.items())}. The "
        "rule: within 10 %.",
    )


def _codel_time(study: Measurements) -> Claim:
    found, interval = increase(study, queue="CoDel", control="CUBIC", buffer=MAIN_BUFFER)
    return Claim(
        "codel-time",
        "With CUBIC, CoDel increases the transmission time of 10 MB by 42 %.",
        HOLDS if abs(found - 0.42) <= 0.1 else PARTLY if interval.low > 0.1 else FAILS,
        f"By {found:.0%} ({interval.low:.0%} to {interval.high:.0%}). The rule: within 10 "
        "percentage points; in part, if clearly longer.",
    )


def _fairer(study: Measurements) -> Claim:
    ratios = {
        q: transfer_time(study, queue=q, control="Vegas", buffer=MAIN_BUFFER)[0]
        / transfer_time(study, queue=q, control="CUBIC", buffer=MAIN_BUFFER)[0]
        for q in QUEUES
    }
    told = ", ".join(f"{ratio:.2f} ({q})" for q, ratio in ratios.items())
    right = sum(abs(ratios[q] - 1) < abs(ratios["DropTail"] - 1) for q in AQMS)
    return Claim(
        "fairer",
        "Either AQM makes the network fairer to delay-based congestion control (section 6).",
        graded_share(right, len(AQMS)) if right else FAILS,
        "Time for the 10 MB with Vegas as a multiple of that with CUBIC, each among "
        f"applications of its own kind: {told}. The rule: nearer to 1 than "
        "with DropTail. The study never has the two compete.",
    )


def _list(names: Iterable[str]) -> str:
    names = list(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _ms(delay: float) -> str:
    return f"{delay * 1e3:.0f} ms"

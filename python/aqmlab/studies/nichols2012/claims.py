"""The statements of the article, and of Hill and Shah (2015) about it, checked one by one.

Each check is a rule fixed in advance, told in its evidence together with the numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Claim
from aqmlab.statistics import FAILS, HOLDS, PARTLY, graded
from aqmlab.studies.nichols2012.curves import (
    CODEL,
    FALLS,
    LARGE,
    QUEUES,
    RED,
    RISES,
    SINGLE,
    SMALL,
    STEP,
    TAIL,
    drop_fairness,
    has_all,
    median_delay,
    megabytes,
    moments,
    over,
    points,
    sampled,
    utilisation,
    within,
)

Check = Callable[[Measurements], Claim]
FAST = ("10 Mbit/s", "45 Mbit/s", "100 Mbit/s")
SLOW = "3 Mbit/s"
SHORT = ("10 ms", "30 ms", "100 ms", "200 ms")
LONG = "500 ms"


def claims(measured: Measurements) -> list[Claim]:
    """All statements for which everything was run."""
    made = []
    static, dynamic = measured.part("study"), measured.part("dynamic")
    if static and all(
        has_all(static, axis, labels)
        for axis, labels in {"queue": QUEUES, "rate": (SLOW, *FAST), "rtt": (*SHORT, LONG)}.items()
    ):
        made += [check(static) for check in STATIC]
    if dynamic and has_all(dynamic, "queue", QUEUES) and has_all(dynamic, "buffer", (LARGE, SMALL)):
        made += [check(dynamic) for check in DYNAMIC]
    return made


def _medians(static: Measurements, **where: str) -> dict[str, float]:
    """Of each queue the median over runs and places of the median delays there, in ms."""
    return {q: float(np.median(over(static, median_delay, queue=q, **where))) for q in QUEUES}


def _used(static: Measurements, **where: str) -> dict[str, float]:
    """Of each queue the mean utilisation over runs and places."""
    return {q: float(np.mean(over(static, utilisation, queue=q, **where))) for q in QUEUES}


def _similar_when_slow(static: Measurements) -> Claim:
    delay, used = _medians(static, rate=SLOW), _used(static, rate=SLOW)
    kept = (
        abs(delay[RED] / delay[CODEL] - 1) <= 0.3,
        abs(used[RED] - used[CODEL]) <= 0.03,
    )
    return Claim(
        "similar-at-3-mbit",
        "RED's delays and utilisations are similar to CoDel's on links of 3 Mbit/s.",
        graded(kept),
        "Rule: the medians of the median delays within 30 %, the mean utilisations within 3 "
        f"points. Delays {delay[CODEL]:.1f} (CoDel) and {delay[RED]:.1f} ms, utilisations "
        f"{used[CODEL]:.3f} and {used[RED]:.3f}.",
    )


def _red_overcontrols(static: Measurements) -> Claim:
    kept, words = [], []
    for rate in FAST:
        delay, used = _medians(static, rate=rate), _used(static, rate=rate)
        kept.append(delay[RED] < delay[CODEL] and used[RED] < used[CODEL])
        words.append(
            f"{rate}: {delay[RED]:.1f} and {delay[CODEL]:.1f} ms, {used[RED]:.3f} and "
            f"{used[CODEL]:.3f}"
        )
    return Claim(
        "red-overcontrols",
        "From 10 Mbit/s on RED's delays and utilisations are smaller than CoDel's: it "
        "overcontrols.",
        graded(kept),
        "Rule: at each rate both the median of the median delays and the mean utilisation are "
        f"smaller. RED and CoDel at {'; '.join(words)}.",
    )


def _near_target(static: Measurements) -> Claim:
    found = {}
    for labels in points(static, queue=CODEL, load="4 FTPs"):
        if labels["rate"] in FAST and labels["rtt"] in SHORT:
            found[f"{labels['rate']}, {labels['rtt']}"] = float(
                np.mean(median_delay(static, **labels))
            )
    inside = {place: 2.5 <= delay <= 10 for place, delay in found.items()}
    low, high = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    return Claim(
        "near-target",
        "Where a packet takes less than 5 ms and all load is long FTPs, CoDel's median delay "
        "approaches its target of 5 ms.",
        graded(inside.values()),
        "Rule: with four FTPs, 10 Mbit/s or more and round-trip times to 200 ms, within a factor "
        f"of two (2.5 to 10 ms). {sum(inside.values())} of {len(inside)} points; from "
        f"{found[low]:.1f} ms ({low}) to {found[high]:.1f} ms ({high}). Below it are long paths, "
        "on which few flows leave the queue empty for much of the time.",
    )


def _load_matters_less(static: Measurements) -> Claim:
    spread = {}
    for rate in (SLOW, "100 Mbit/s"):
        delays = over(static, median_delay, queue=CODEL, rate=rate, rtt="100 ms").mean(axis=1)
        spread[rate] = float(delays.max() - delays.min())
    return Claim(
        "load-matters-less",
        "The faster the link, the less the load changes CoDel's median delay.",
        HOLDS if spread["100 Mbit/s"] < spread[SLOW] else FAILS,
        "Rule: between the loads, at 100 ms, the median delay differs by less at 100 Mbit/s than "
        f"at 3 Mbit/s. By {spread['100 Mbit/s']:.1f} and {spread[SLOW]:.1f} ms.",
    )


def _ninety_percent(static: Measurements) -> Claim:
    used = {
        rate: float(np.median(over(static, utilisation, queue=CODEL, rate=rate)))
        for rate in (SLOW, *FAST)
    }
    return Claim(
        "utilisation-0.9",
        "CoDel consistently achieves a link utilisation of around 0.9 or more (Hill and Shah).",
        graded(each >= 0.88 for each in used.values()),
        "Rule: the median over round-trip times and loads is at least 0.88 at each rate. "
        + "; ".join(f"{rate} {each:.3f}" for rate, each in used.items())
        + ".",
    )


def _median_low(static: Measurements) -> Claim:
    kept = {
        queue: float(np.mean(over(static, median_delay, queue=queue).mean(axis=1) <= 20))
        for queue in (CODEL, RED)
    }
    return Claim(
        "both-low",
        "Both CoDel and RED keep the median delay low, at all round-trip times.",
        graded(each >= 0.95 for each in kept.values()),
        "Rule: it is at most 20 ms at 95 % of the points. "
        + "; ".join(f"{queue} at {100 * each:.0f} %" for queue, each in kept.items())
        + ".",
    )


def _close_to_tail_drop(static: Measurements) -> Claim:
    kept, words = [], []
    for rtt in SHORT:
        delay, used = _medians(static, rtt=rtt), _used(static, rtt=rtt)
        kept.append(used[TAIL] - used[CODEL] <= 0.05 and delay[CODEL] <= delay[TAIL] / 4)
        words.append(
            f"{rtt} {used[CODEL]:.3f} and {used[TAIL]:.3f}, {delay[CODEL]:.1f} and "
            f"{delay[TAIL]:.0f} ms"
        )
    return Claim(
        "close-to-tail-drop",
        "CoDel's utilisation is very close to tail drop's (except at 500 ms), with much less "
        "delay.",
        graded(kept),
        "Rule: the mean utilisation is lower by at most 5 points, and the median of the median "
        f"delays at most a quarter. CoDel and tail drop at {'; '.join(words)}.",
    )


def _same_from_30_to_200(static: Measurements) -> Claim:
    used = [_used(static, rtt=rtt)[CODEL] for rtt in SHORT[1:]]
    delay = [_medians(static, rtt=rtt)[CODEL] for rtt in SHORT[1:]]
    kept = (max(used) - min(used) <= 0.05, max(delay) <= 2 * min(delay))
    return Claim(
        "same-30-to-200-ms",
        "CoDel's metrics are not significantly different between 30 and 200 ms.",
        graded(kept),
        "Rule: mean utilisations within 5 points, medians of the median delays within a factor "
        f"of two. At 30, 100 and 200 ms {', '.join(f'{each:.3f}' for each in used)}; "
        f"{', '.join(f'{each:.1f}' for each in delay)} ms.",
    )


def _varied_at_500(static: Measurements) -> Claim:
    ranges, lowest = {}, ""
    for rtt in (*SHORT, LONG):
        values = {
            f"{labels['rate']}, {labels['load']}": float(np.mean(utilisation(static, **labels)))
            for labels in points(static, queue=CODEL, rtt=rtt)
        }
        ranges[rtt] = max(values.values()) - min(values.values())
        lowest = min(values, key=values.__getitem__)
    kept = (max(ranges, key=ranges.__getitem__) == LONG, SINGLE in lowest)
    return Claim(
        "varied-at-500-ms",
        "The utilisation at 500 ms varies most; its low end are single FTPs.",
        graded(kept),
        "Rule: CoDel's least and largest utilisation lie furthest apart there, and the least is "
        f"that of a single FTP. Apart by {'; '.join(f'{r} {v:.2f}' for r, v in ranges.items())}; "
        f"the least at 500 ms is at {lowest}.",
    )


def _fairer(static: Measurements) -> Claim:
    index = {
        rtt: {q: float(np.nanmean(over(static, drop_fairness, queue=q, rtt=rtt))) for q in QUEUES}
        for rtt in (*SHORT, LONG)
    }
    words = (f"{rtt} {each[CODEL]:.3f} and {each[RED]:.3f}" for rtt, each in index.items())
    return Claim(
        "fairer-drops",
        "CoDel consistently outperforms RED in the fairness of the drops' shares.",
        graded(each[CODEL] > each[RED] for each in index.values()),
        "Rule: at each round-trip time Jain's index of the FTPs' shares of segments sent again, "
        f"the mean over rates and loads, is larger. CoDel and RED at {'; '.join(words)}.",
    )


def _buffer_full(dynamic: Measurements) -> Claim:
    backlog = sampled(dynamic, "backlog_packets", TAIL)
    portion = float(np.mean(backlog[2:] >= 415))
    largest = float(dynamic.maxima(queue=TAIL, buffer=LARGE).max())
    return Claim(
        "tail-drop-full",
        "Tail drop generally keeps its buffer full; the delay can be as much as 10 s.",
        graded((portion >= 0.8, largest >= 9)),
        "Rule: the buffer is at least half full in 80 % of the half seconds, and the largest "
        f"delay is at least 9 s. {100 * portion:.0f} %, {largest:.2f} s.",
    )


def _red_between(dynamic: Measurements) -> Claim:
    delay = {queue: sampled(dynamic, "sojourn_mean_s", queue) for queue in QUEUES}
    known = ~np.isnan(delay[RED]) & ~np.isnan(delay[TAIL])
    below = float(np.mean(delay[RED][known] <= delay[TAIL][known]))
    slow = {queue: [_calm(dynamic, delay[queue], step) for step in FALLS] for queue in (CODEL, RED)}
    kept = (below >= 0.95, all(r > c for r, c in zip(slow[RED], slow[CODEL], strict=True)))
    words = ", ".join(f"{c:.1f} and {r:.1f} s" for c, r in zip(slow[CODEL], slow[RED], strict=True))
    return Claim(
        "red-slower",
        "RED keeps the delay below tail drop's but does not respond to changes as quickly as "
        "CoDel.",
        graded(kept),
        "Rule: RED's mean delay is below tail drop's in 95 % of the half seconds, and after each "
        "drop of the rate it is longer above 100 ms than CoDel's. "
        f"{100 * below:.0f} %; CoDel and RED after 50, 100 and 200 s: {words}.",
    )


def _calm(dynamic: Measurements, delay: np.ndarray, step: int) -> float:
    """Seconds from the beginning of a step until the delay stays at 100 ms or less."""
    values = within(dynamic, delay, step)
    above = np.flatnonzero(np.nan_to_num(values) > 0.1)
    return float(above[-1] + 1) * float(moments(dynamic)[1]) if above.size else 0.0


def _spikes(dynamic: Measurements) -> Claim:
    largest = sampled(dynamic, "sojourn_max_s", CODEL)
    peaks = {step: float(np.nanmax(within(dynamic, largest, step)[:20])) for step in range(1, 6)}
    kept = [peaks[step] >= 0.1 for step in (*FALLS, 5)]
    words = ", ".join(f"{int(step * STEP)} s {1e3 * peak:.0f} ms" for step, peak in peaks.items())
    return Claim(
        "codel-spikes",
        "CoDel's delays spike when the link rates drop (at 50, 100 and 250 s).",
        PARTLY if all(kept[:3]) and not kept[3] else graded(kept),
        "Rule: the largest delay in the 10 s after it is at least 100 ms. "
        f"{words}. At 250 s the rate rises; it drops at 200 s (see the contradictions).",
    )


def _carried(dynamic: Measurements) -> tuple[float, float, float]:
    """What tail drop and CoDel carry, in MB, and the part that CoDel carries less."""
    tail, codel = (float(megabytes(dynamic, queue, LARGE).mean()) for queue in (TAIL, CODEL))
    return tail, codel, 1 - codel / tail


def _almost_the_same(dynamic: Measurements) -> Claim:
    tail, codel, less = _carried(dynamic)
    return Claim(
        "almost-the-same",
        "CoDel transfers almost the same total kilobytes as tail drop.",
        HOLDS if less <= 0.05 else FAILS,
        f"Rule: at most 5 % less. {codel:.0f} and {tail:.0f} MB: {100 * less:.1f} % less.",
    )


def _ten_percent(dynamic: Measurements) -> Claim:
    less = _carried(dynamic)[2]
    return Claim(
        "ten-percent-less",
        "It was actually about 10 % less (Hill and Shah, by the pixels of the figure).",
        HOLDS if abs(less - 0.1) <= 0.03 else FAILS,
        f"Rule: within 3 points. {100 * less:.1f} %.",
    )


def _at_the_jumps(dynamic: Measurements) -> Claim:
    sent = {queue: sampled(dynamic, "delivered_bytes", queue) for queue in (TAIL, CODEL)}
    gap = sent[TAIL] - sent[CODEL]
    times = moments(dynamic)
    at = {
        int(step * STEP): float(
            np.interp(step * STEP + 15, times, gap) - np.interp(step * STEP, times, gap)
        )
        for step in RISES
    }
    portion = sum(at.values()) / float(gap[-1])
    words = ", ".join(f"{value / 1e6:.0f} MB after {start} s" for start, value in at.items())
    return Claim(
        "at-the-jumps",
        "The differences come at the rate jumps (150 and 250 s), where CoDel's FTPs have to ramp "
        "up.",
        HOLDS if portion >= 0.5 else PARTLY if portion >= 0.25 else FAILS,
        "Rule: at least half of what CoDel carries less is missing from the 15 s after them. "
        f"{words}, of {gap[-1] / 1e6:.0f} MB: {100 * portion:.0f} %.",
    )


def _better_than_red(dynamic: Measurements) -> Claim:
    red, codel = (megabytes(dynamic, queue, LARGE).mean() for queue in (RED, CODEL))
    return Claim(
        "more-than-red",
        "CoDel has better throughput than RED (Hill and Shah).",
        HOLDS if codel > 1.05 * red else FAILS,
        f"Rule: at least 5 % more. {codel:.0f} and {red:.0f} MB.",
    )


def _least_delay(dynamic: Measurements) -> Claim:
    delay = {queue: sampled(dynamic, "sojourn_mean_s", queue) for queue in QUEUES}
    portions = {}
    for queue in (TAIL, RED):
        known = ~np.isnan(delay[CODEL]) & ~np.isnan(delay[queue])
        portions[queue] = float(np.mean(delay[CODEL][known] <= delay[queue][known]))
    return Claim(
        "least-delay",
        "CoDel's delay is consistently less than tail drop's or RED's (Hill and Shah).",
        graded(each >= 0.99 for each in portions.values()),
        "Rule: CoDel's mean delay is not above it in 99 % of the half seconds. "
        + "; ".join(f"{queue} {100 * each:.0f} %" for queue, each in portions.items())
        + ". RED is below CoDel where it empties the queue, at the price of throughput.",
    )


def _small_buffers(dynamic: Measurements) -> Claim:
    reference = float(megabytes(dynamic, CODEL, LARGE).mean())
    small = {queue: float(megabytes(dynamic, queue, SMALL).mean()) for queue in QUEUES}
    less = {queue: 1 - each / reference for queue, each in small.items()}
    kept = [abs(each - 0.75) <= 0.05 for each in less.values()]
    kept.append(abs(small[TAIL] / small[CODEL] - 1) <= 0.02)
    return Claim(
        "small-buffers",
        "With buffers of 10 packets throughput is about 75 % less for all three; tail drop and "
        "CoDel are identical.",
        graded(kept),
        "Rule: less than CoDel's with 830 packets by 70 to 80 %, and tail drop and CoDel within "
        "2 %. " + "; ".join(f"{queue} {100 * each:.0f} % less" for queue, each in less.items())
        + f"; tail drop carries {100 * (small[TAIL] / small[CODEL] - 1):+.1f} % beside CoDel.",
    )  # fmt: skip


STATIC: tuple[Check, ...] = (
    _similar_when_slow, _red_overcontrols, _near_target, _load_matters_less, _ninety_percent,
    _median_low, _close_to_tail_drop, _same_from_30_to_200, _varied_at_500, _fairer,
)  # fmt: skip
DYNAMIC: tuple[Check, ...] = (
    _buffer_full, _red_between, _spikes, _almost_the_same, _ten_percent, _at_the_jumps,
    _better_than_red, _least_delay, _small_buffers,
)  # fmt: skip

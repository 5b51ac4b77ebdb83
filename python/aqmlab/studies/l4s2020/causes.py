"""What explains the cells that differ."""

from __future__ import annotations

from collections.abc import Iterator

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause
from aqmlab.studies.l4s2020.law import by_the_rules, states
from aqmlab.studies.l4s2020.measured import FLOWS, goodput, published

FAR = "Prague 20 ms, Prague 10 ms"
NEAR = "Prague 10 ms, CUBIC 10 ms"
MIDDLE = "Prague 80 ms, CUBIC 80 ms"
LONG = "Prague 160 ms, CUBIC 10 ms"


def causes(measured: Measurements) -> list[Cause]:
    """Those whose runs are there."""
    found: list[Cause] = []
    part, whole = measured.part("experiments"), measured.part("study")
    if part and whole and whole.has(queue="DualPI2") and whole.has(pair=FAR):
        found.extend(_dualpi2(part, whole))
    if part and whole and whole.has(queue="FIFO") and whole.has(pair=LONG):
        found.append(_fifo(part, whole))
    classic, corners = measured.part("classic"), measured.part("corners")
    if classic and classic.has(queue="PIE", beside="Reno with ECN"):
        found.append(_classic(classic))
    if corners and corners.has(rate="200 Mbit/s", rtt="20 ms"):
        found.extend(_corners(corners))
    return found


def _ours(part: Measurements, **labels: str) -> str:
    values = [goodput(part, flow, **labels).mean() for flow in FLOWS]
    return f"{values[0]:.1f} and {values[1]:.1f}"


def _theirs(queue: str, pair: str) -> str:
    values = published("study")[queue][pair]
    return f"{values[0]:.1f} and {values[1]:.1f}"


def _dualpi2(part: Measurements, whole: Measurements) -> Iterator[Cause]:
    far, near = (_ours(whole, queue="DualPI2", pair=pair) for pair in (FAR, NEAR))
    virtual = _ours(part, experiment="virtual RTT, Prague 20, Prague 10")
    beside = _ours(part, experiment="virtual RTT, Prague 10, CUBIC 10")
    yield Cause(
        "Prague of August 2020 had no virtual round-trip time",
        "The study has `rtt_virt = none`. With the 25 ms of today, Prague at 20 and 10 ms through "
        f"DualPI2 have {virtual} Mbit/s (published {_theirs('DualPI2', FAR)}; without it {far}), "
        f"and Prague beside CUBIC at 10 ms {beside} (published {_theirs('DualPI2', NEAR)}; "
        f"without it {near}).",
    )
    jitter = _ours(part, experiment="jitter, Prague 20, Prague 10")
    yield Cause(
        "Two Pragues of unequal round-trip times: marks that come in runs",
        "Two Pragues alone are marked by the step at 1 ms. Marks in runs, in one round trip many "
        "and in others none, give shares that fall with the square of the round-trip time, spread "
        "ones with the round-trip time itself; the published shares are between. Half a "
        f"millisecond of jitter moves Prague at 20 and 10 ms from {far} to {jitter} Mbit/s "
        f"(published {_theirs('DualPI2', FAR)}). The real Prague sends in bursts of up to 0.25 ms "
        "and its hosts add noise; how much of the rest each of them makes is not known.",
    )
    without = _ours(part, experiment="no ECN, Prague 10, CUBIC 10")
    yield Cause(
        "Whether CUBIC uses ECN matters little over DualPI2",
        "It is not published for scenario 1. Prague beside CUBIC at 10 ms has, without ECN, "
        f"{without} Mbit/s; with it {near}.",
    )


def _fifo(part: Measurements, whole: Measurements) -> Cause:
    pairs = (NEAR, MIDDLE, LONG)
    ours = ", ".join(_ours(whole, queue="FIFO", pair=pair) for pair in pairs)
    theirs = ", ".join(_theirs("FIFO", pair) for pair in pairs)
    labels = ("Prague 10, CUBIC 10", "Prague 80, CUBIC 80", "Prague 160, CUBIC 10")
    more = ", ".join(_ours(part, experiment=f"beta 0.7, {label}") for label in labels)
    reno = _ours(part, experiment="Reno, Prague 10, CUBIC 10")
    return Cause(
        "Prague in a FIFO: less than half of the window went at a loss",
        "Prague beside CUBIC at 10 ms, at 80 ms, and at 160 and 10 ms: published "
        f"{theirs} Mbit/s; here {ours}. If 0.7 of the window is kept at a loss, as CUBIC does, and "
        f"not a half: {more}. Linux's Reno, which is the kernel's to the segment, has {reno} at 10 "
        "ms in the place of Prague, so what was published is not Reno's answer to losses, which "
        "RFC 9331 asks for (section 4.3). Two Pragues alone share a FIFO by chance.",
    )


def _classic(classic: Measurements) -> Cause:
    def other(beside: str) -> str:
        ours = goodput(classic, "second", queue="PIE", beside=beside).mean()
        return f"{published('classic')['PIE'][beside][1]:.2f} published, {ours:.2f} here"

    return Cause(
        "Reno beside Prague in a queue of RFC 3168: not explained",
        "The published Reno has about half of the published CUBIC; here it has more than CUBIC. "
        f"Over PIE, in Mbit/s: CUBIC {other('CUBIC with ECN')}; Reno {other('Reno with ECN')}. "
        "Both senders are those of Linux 6 to the segment. What differed in the kernel of 2020 is "
        "not known.",
    )


def _corners(corners: Measurements) -> Iterator[Cause]:
    high = states(corners, "200 Mbit/s", "20 ms")[0]
    queue = 1e3 * (high.rtt_classic - high.rtt)
    yield Cause(
        "Prague beside CUBIC: the highest ratios are just below 25 ms",
        "Prague falls once in its virtual round-trip time of 25 ms, but only at the end of a round "
        "trip: at 20 ms every second time. It then grows for two round trips and until the next "
        f"mark, and CUBIC has {queue:.0f} ms of DualPI2's queue besides. At 200 Mbit/s and 20 ms: "
        f"{high.ratio:.2f}, by the rules {by_the_rules(high):.2f}.",
    )
    slow = states(corners, "12 Mbit/s", "5 ms")[0]
    yield Cause(
        "Prague beside CUBIC: the lowest ratios are where its window is a few segments",
        "Its share falls with the round-trip time below 25 ms by the rule. The rules are for rare "
        "marks and windows of many segments; with few, of which only whole ones are sent, it has "
        f"less than they give. At 12 Mbit/s and 5 ms its window has {slow.windows[0]:.1f} segments "
        f"and one in {1 / slow.alpha:.0f} is marked: {slow.ratio:.2f}, by the rules "
        f"{by_the_rules(slow):.2f}. What the whole segments cost is not separated from the rest.",
    )
    late = states(corners, "200 Mbit/s", "100 ms")[0]
    yield Cause(
        "Prague beside CUBIC: at 100 ms and 120 Mbit/s or more the run is too short",
        "Prague grows by one segment a round trip. At 200 Mbit/s and 100 ms its window has "
        f"{late.windows[0]:.0f} segments in the mean from 20 to 80 s and still grows; p' is not "
        f"steady (the root of its mean square is {late.steadiness:.1f} times its mean).",
    )

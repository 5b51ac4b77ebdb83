"""Scenarios of RFC 7928, in the order of its sections: functions that return the cases of one
discipline. `aqmlab.packs.rfc7928.questions` has them with their rules and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from aqmlab.packs.rfc7928.dumbbell import HEADER, WARMUP, Bench, Dumbbell, Made, bits, seconds
from aqmlab.packs.rfc7928.environment import NEWRENO, PACKET, congestion_flows
from aqmlab.scenario.quic import quic_endpoint

Maker = Callable[[Bench], Iterable[Made]]
UPWARDS: dict[str, Any] = {"path": ("up",), "back": "down"}

# Section 4: comparison at the same targets, packet sizes, ECN and scheduling.

TARGETS = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)
"""Target delays of every discipline, in seconds (section 4.3.1)."""
SMALL = 500
"""Bytes of the packets of category I."""
BOTH_WAYS = "both ways"
"""The case of section 4.4 with traffic in both directions."""
JITTER, PACED = "jitter", "paced"
"""Cases with acknowledgements of varying delay, and with paced senders: the trains of bulk senders
can make a discipline appear to favour a size."""
ACK_JITTER = "5ms"
"""The half width of the uniform jitter of the acknowledgements."""
THIN_RATE, THIN_PACKET = 80e3, 200
"""Rate in bit/s and packets in bytes of the thin flow of section 4.6, those of a call."""


def same_targets(of: Bench) -> Iterator[Made]:
    """Medium congestion with the discipline's main parameter set to each of `TARGETS`."""
    for target, settings in of.contender.matched(TARGETS, of.environment.rate):
        plan = of.plan(more=settings).tcp("bulk", of.environment.medium)
        yield plan.case(f"{1e3 * target:g} ms", place=target)


def packet_sizes(of: Bench) -> Iterator[Made]:
    """Mild congestion, half of the flows with small packets: as bulk senders are, with jitter on
    the acknowledgements, with paced senders; and both ways (RFC 7928, section 9.2) with the
    discipline in both directions."""
    half = max(of.environment.mild // 2, 1)
    if quic_endpoint(of.environment.control):  # has no packets as small (RFC 9000, section 14)
        of = of._replace(environment=replace(of.environment, control=NEWRENO))
    sizes = {"small": SMALL - HEADER, "large": PACKET - HEADER}
    plans = {name: of.plan() for name in ("", JITTER, PACED, BOTH_WAYS)}
    plans[JITTER].links["up"]["jitter"] = {"spread": ACK_JITTER, "distribution": "uniform"}
    both = plans[BOTH_WAYS]
    both.links["up"]["queue"] = both.queue()
    for case, plan in plans.items():
        keys: dict[str, Any] = {"transport": {"pacing": True}} if case == PACED else {}
        for name, mss in sizes.items():
            plan.tcp(name, half, mss=mss, **keys)
    for name, mss in sizes.items():
        # Both directions are alike: their flows are of one class.
        both.tcp(f"{name}_up", half, mss=mss, **UPWARDS)
    yield from (plan.case(name) for name, plan in plans.items())


def ecn(of: Bench) -> Iterator[Made]:
    """The cases of 6.2 with ECN at the senders, and in the queue where it can."""
    yield from fairness(of, {"ecn": True}, {"ecn": "classic"})


def scheduling(of: Bench) -> Iterator[Made]:
    """Mild congestion, and a thin flow beside it."""
    plan = of.plan().tcp("bulk", of.environment.mild)
    yield plan.datagrams("thin", THIN_RATE, packet=f"{THIN_PACKET}b").case()


# Section 5: senders of different kinds.

SHORT_FLOWS, SHORT_PACKETS = 6, 50
"""Packets of an application-limited flow: more than 10, fewer than 100."""
SHORT_FIRST, SHORT_GAP = 24.0, 9.0
"""Seconds: the long flow's goodput is stable, and one short flow is over before the next."""
SHORT = {
    "kind": "transfers",
    "size": f"{SHORT_PACKETS * (PACKET - HEADER)}b",
    "gap": f"{SHORT_GAP:g}s",
    "number": SHORT_FLOWS,
}
LEDBAT = {"algorithm": "ledbat", "target": "5ms", "gain": 10.0}
"""Parameters that section 5.4 recommends."""


def friendly(of: Bench) -> Iterator[Made]:
    """One NewReno flow with an initial window of 3; one TFRC flow."""
    yield of.plan().tcp("bulk").case()
    yield of.plan().tfrc("tfrc").case("TFRC")


def windows(of: Bench) -> Iterator[Made]:
    """A long flow, and short ones with an initial window of 3 or 10."""
    for size in (3, 10):
        plan = of.plan().tcp("bulk")
        plan.tcp("short", start=SHORT_FIRST - SHORT_GAP, window=f"{size}p", workload=SHORT)
        yield plan.case(f"IW {size}")


def aggressive(of: Bench) -> Iterator[Made]:
    """One CUBIC flow."""
    yield of.plan().tcp("cubic", control="cubic").case()


def unresponsive(of: Bench) -> Iterator[Made]:
    """Datagrams above the capacity alone; at three quarters of it beside a NewReno flow."""
    rate = of.environment.rate
    yield of.plan().datagrams("udp", 1.5 * rate).case("UDP 1.5 C")
    yield of.plan().datagrams("udp", 0.75 * rate).tcp("bulk").case("UDP 0.75 C + TCP")


def background(of: Bench) -> Iterator[Made]:
    """A NewReno flow and a LEDBAT flow."""
    yield of.plan().tcp("bulk").tcp("ledbat", control=LEDBAT).case()


# Section 6: flows of different round-trip times.

FIRST = 0.1
"""Round-trip time of category I, in seconds."""
SECOND = (0.005, 0.010, 0.020, 0.050, 0.100, 0.200, 0.350, 0.560)
"""Round-trip times of category II."""
FAIR_FOR = 720.0
"""Seconds: the drop-tail buffer of 560 ms takes up to 231 s from loss to loss, and shares are those
of three such periods. Over 60 s drop-tail's are a factor of 4.66 apart, over 600 s of 1.79."""


def fairness(
    of: Bench, wished: dict[str, Any] | None = None, transport: dict[str, Any] | None = None
) -> Iterator[Made]:
    """Two NewReno flows, one over 100 ms and one over each of `SECOND`. The buffer is the
    product with the longest of them, the same in all cases (RFC 7928, section 3.2). `wished` are
    parameters of the queue, `transport` keys of the senders."""
    limit = of.environment.limit(max(SECOND))
    for rtt in SECOND:
        # The bottleneck is as short as the shortest path; the rest is a link of each class.
        plan = of.plan(rtt=min(SECOND), limit=limit, wished=wished or {})
        for name, own in (("cat1", FIRST), ("cat2", rtt)):
            access = f"access_{name}"
            # Of no rate that matters, and behind the bottleneck: no queue.
            plan.links[access] = {"rate": bits(100e9), "delay": seconds(own - min(SECOND))}
            plan.tcp(name, path=["down", access], transport=transport or {})
        yield plan.case(f"RTT {1e3 * rtt:g} ms", duration=WARMUP + FAIR_FOR, place=rtt)


# Section 7: bursts of web pages and video frames into existing traffic.

WEB = "rfc7928-web"
"""Pages of 50 objects of at least 1 kB over six connections, one page after another."""
CBR_SHARE, VIDEO_SHARE = 0.1, 0.25
"""Shares of the capacity."""
MIXES = {
    "I": ("web", "cbr"),
    "II": ("web", "cbr", "bulk"),
    "III": ("video", "web", "cbr"),
    "IV": ("video", "web", "cbr", "bulk"),
}
"""Figure 2 of the RFC."""
BUFFERS = (0.25, 0.5, 2.0, 4.0)
"""Buffers of section 7.1, as factors of the buffer of 7.2."""


def bursts(of: Bench) -> Iterator[Made]:
    """The four mixes of figure 2."""
    yield from (_burst(of.plan(), classes).case(name) for name, classes in MIXES.items())


def _burst(plan: Dumbbell, classes: Sequence[str]) -> Dumbbell:
    rate = plan.environment.rate
    plan.datagrams("cbr", CBR_SHARE * rate).tcp("web", window="10p", workload=WEB)
    if "video" in classes:
        plan.tcp("video", workload={"kind": "video", "rate": f"{round(VIDEO_SHARE * rate)}bit"})
    return plan.tcp("bulk") if "bulk" in classes else plan


def buffers(of: Bench) -> Iterator[Made]:
    """All of figure 2 at once (mix IV), with smaller and larger buffers."""
    for factor in BUFFERS:
        limit = max(round(factor * of.environment.limit()), 4)
        plan = _burst(of.plan(limit=limit), MIXES["IV"])
        yield plan.case(f"{limit} packets", place=factor)


# Section 8: levels of congestion, changing load, changing capacity, and the parameters of the
# discipline (with section 4.3, which asks for several values of them).

PHASE = 20.0
FAST_PHASE = 0.1
HIGH = 10.0
"""Multiple of the environment's rate: with 10 Mbit/s, the 100 Mbit/s of section 8.2.6."""
CAPACITY_FLOWS = 5
WIRELESS = {"LTE": 1.0, "Wi-Fi": 3.0}
"""Realistic capacities: the mean of LTE, and the rate of the best coding scheme of Wi-Fi, as
factors of the environment's rate. Wi-Fi's overhead and another sender leave about a third."""
CONDITIONS = {
    "a tenth of the rate": (0.1, 1.0, 1.0),
    "four times the rate": (4.0, 1.0, 1.0),
    "a fifth of the round-trip time": (1.0, 0.2, 1.0),
    "three times the round-trip time": (1.0, 3.0, 1.0),
    "a third of the flows": (1.0, 1.0, 1 / 3),
    "three times the flows": (1.0, 1.0, 3.0),
}
"""Conditions for the stability of the control law (section 8.3): factors of rate, round-trip time
and number of flows."""


def level(flows: str) -> Maker:
    """One level of congestion: 8.2.2 to 8.2.4."""
    return lambda of: [of.plan().tcp("bulk", getattr(of.environment, flows)).case()]


def changing_load(of: Bench) -> Iterator[Made]:
    """Mild, medium and heavy congestion in turn, twice."""
    counts = (of.environment.mild, of.environment.medium, of.environment.heavy)
    plan = of.plan().tcp("bulk", counts[0])
    for number, more in ((1, counts[1] - counts[0]), (2, counts[2] - counts[1])):
        if more < 1:
            continue
        on, off = (3 - number) * PHASE, number * PHASE
        sessions = {"kind": "sessions", "on": seconds(on), "off": seconds(off)}
        plan.tcp(f"bulk_{number}", more, start=WARMUP + number * PHASE, workload=sessions)
    yield plan.case(duration=WARMUP + 6 * PHASE, period=3 * PHASE)


def changing_capacity(of: Bench) -> Iterator[Made]:
    """Ten times the rate and the rate itself in turn, for 20 s and for 100 ms each; the same flows
    over synthetic LTE and Wi-Fi (docs/links.md)."""
    own = of.environment.rate
    high = HIGH * own
    # Steps count from the start of the run: the warm-up is a whole number of periods.
    for name, phase, interval, duration, warmup in (
        ("slow", PHASE, 0.2, 6 * PHASE, 2 * PHASE),
        ("fast", FAST_PHASE, FAST_PHASE / 4, 40.0, WARMUP),
    ):
        steps = [["0s", f"{round(high)}bit"], [seconds(phase), f"{round(own)}bit"]]
        plan = of.plan(
            rate={"steps": steps, "repeat": True},
            back_rate=high,
            limit=of.environment.limit(rate=high),
        ).tcp("bulk", CAPACITY_FLOWS)
        yield plan.case(name, duration=duration, warmup=warmup, interval=interval, period=2 * phase)
    for name, factor in WIRELESS.items():
        mean = f"{round(factor * own)}bit"
        rate = (
            {"process": "lte", "mean": mean} if name == "LTE" else {"process": "wifi", "phy": mean}
        )
        yield of.plan(rate=rate).tcp("bulk", CAPACITY_FLOWS).case(name)


def sensitivity(of: Bench) -> Iterator[Made]:
    """Medium congestion with the main parameter from a quarter to four times its value; and with
    the discipline as it is, where something else is different."""
    for factor, settings in of.contender.knob_values(of.environment.limit()):
        # The buffer of the case, unless it is the main parameter itself.
        plan = of.plan(more=settings).tcp("bulk", of.environment.medium)
        knob, value = next(iter(settings.items()))
        yield plan.case(f"{knob} {value}", place=factor)
    for name, (rate, rtt, flows) in CONDITIONS.items():
        # The buffer is the product there.
        path = replace(
            of.environment, rate=of.environment.rate * rate, rtt=of.environment.rtt * rtt
        )
        plan = of._replace(environment=path).plan()
        yield plan.tcp("bulk", max(round(path.medium * flows), 1)).case(name)


# Section 9: a mix of applications, and traffic in both directions.

BROWSERS, BULK = 6, 5
ASYMMETRY = 10
"""Ratio of the rates of both directions."""
MIX = "mix"
"""Prefix of the cases of section 9.2 with the mix."""
UP = "-up"
"""Suffix of the upstream classes of the mix."""


def mix(of: Bench) -> Iterator[Made]:
    """The RFC's example: a call, six web downloads, a constant stream, a video, five bulk flows."""
    yield _mixed(of.plan().tcp("voip", workload="voip"), of.environment.rate).case()


def _mixed(plan: Dumbbell, rate: float, suffix: str = "", **way: Any) -> Dumbbell:
    """Adds the mix without its call, which has both directions; `rate` is that of the direction."""
    plan.tcp(f"web{suffix}", BROWSERS, window="10p", workload=WEB, **way)
    plan.datagrams(f"cbr{suffix}", CBR_SHARE * rate, **way)
    plan.tcp(f"video{suffix}", control="cubic", window="10p", workload="dash", **way)
    return plan.tcp(f"bulk{suffix}", BULK, **way)


def both_ways(of: Bench) -> Iterator[Made]:
    """Mild congestion in both directions, and the mix of 9.1 in both, symmetric and not, with
    the discipline in one direction and in both (RFC 7928, section 3.1)."""
    place, mixes = of.environment, []
    for name, up_rate in (("symmetric", place.rate), ("asymmetric", place.rate / ASYMMETRY)):
        size = place.limit(rate=up_rate)
        up_flows = congestion_flows(0.036, place.bdp(rate=up_rate) + size)
        for where in ("one AQM", "two AQMs"):
            bulk, applications = (of.plan(back_rate=up_rate) for _ in range(2))
            fifo = {"discipline": "droptail", "limit": f"{size}p"}
            for plan in (bulk, applications):
                plan.links["up"]["queue"] = plan.queue(size) if where == "two AQMs" else fifo
            bulk.tcp("down", place.mild).tcp("up", up_flows, **UPWARDS)
            yield bulk.case(f"{name}, {where}")
            _mixed(applications.tcp("voip", workload="voip"), place.rate)
            _mixed(applications, up_rate, UP, **UPWARDS)
            mixes.append(applications.case(f"{MIX}, {name}, {where}"))
    yield from mixes


# Section 10: two disciplines in a row.


def in_series(of: Bench) -> Iterator[Made]:
    """The same twice, the same with another parameter, and each of the others behind it.

    Senders A send over Router L and Router M, senders B over Router M alone. The capacity
    behind L is half of that behind M: the flows are shared equally, so both are full.
    """
    half, limit = max(of.environment.mild // 2, 1), of.environment.limit()
    behind = {"same": of.contender.queue(limit, {})}
    for factor, settings in of.contender.knob_values(limit):
        if factor == 2.0:
            knob, value = next(iter(settings.items()))
            behind[f"M with {knob} {value}"] = of.contender.queue(limit, settings)
    behind |= {
        f"M with {each.name}": each.queue(limit)
        for each in of.everyone
        if each.name != of.contender.name
    }
    for name, queue in behind.items():
        plan = of.plan()
        rate = bits(of.environment.rate / 2)
        plan.links["first"] = {"rate": rate, "delay": "0s", "queue": plan.queue()}
        plan.links["down"]["queue"] = queue
        yield plan.tcp("a", half, path=["first", "down"]).tcp("b", half).case(name)

"""The test cases of draft-ietf-ccwg-bbr, appendix A, for any BBR: `aqmlab check bbr-draft`.

The appendix ("BBR Example Test Cases", 22 sections; state of August 2026) describes transitions of
the state machine. Stacks do not publish their state, so each case is judged by what the bottleneck
sees: its throughput and its queue. Where a control reports its pacing gain, that is judged as well.
For a QUIC stack the gain is its pacing rate over its bandwidth estimate.

Differences from the appendix:
1. What starts "upon entering" a state starts at a time at which BBR is in that state, or repeats.
2. Variables (`BBR.undo_inflight_longterm`, `BBR.extra_acked`) are judged by their effect.
3. The limits are the project's own, except those that the appendix or the draft names.
4. QUIC flows have a stream window of 2.4 MB instead of 1.25 MB, one product of 100 Mbit/s and
   100 ms: a sender that flow control limits is application-limited and does not leave STARTUP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aqmlab.campaign import Case, Filled, Pack, Question, Reading, Rule, at_least, at_most
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.scene import PACKET, ControlSetup, Table

DRAFT = "draft-ietf-ccwg-bbr, appendix A"
RATE, RTT = 10e6, 0.1
WINDOW_OF_STREAMS = "2400kb"
"""Stream window of QUIC flows: nearly two bandwidth-delay products of the fastest case."""
THROUGHPUT, QUEUE, LOSS = "throughput", "queue", "loss"
GAIN, ESTIMATE, WINDOW = "gain", "bandwidth estimate", "window"
KINDS = {
    THROUGHPUT: ("share", 1, "throughput_bps"),
    QUEUE: ("s", -1, "sojourn_mean_s"),
    LOSS: ("share", -1, "dropped"),
    GAIN: ("ratio", 0, "pacing_gain"),
    ESTIMATE: ("share", 0, "bandwidth_bps"),
    WINDOW: ("bytes", 0, "cwnd_bytes"),
}
"""Unit, direction and samples of each quantity; the last three are reported by the control."""


def responses(size: str, think: Any) -> Table:
    """Responses of a size over one connection, with a time between them."""
    kind = {"kind": "requests", "request": "100b", "response": size, "think": think}
    return {"workload": kind}


@dataclass(frozen=True)
class Check:
    """A statistic of a quantity in a window, and its limit."""

    id: str
    text: str
    quantity: str
    how: str
    """`mean`, `max` or `min`, of samples; those of throughput and queue are means of 100 ms."""
    begin: float
    end: float
    sign: str
    limit: float
    rate: float = RATE
    """Rate that throughput and estimate are compared with, bit/s."""

    def values(self, filled: Filled) -> Floats | None:
        """A value for each replication; None if the control does not report the quantity."""
        at = filled[""]
        window = self.begin, self.end
        # Responses are the second flow of a group.
        bulk = filled.scenario("")["flows"]["bulk"]
        flow = "bulk.0" if bulk["workload"]["kind"] == "bulk" else "bulk.1"
        if self.quantity == LOSS:
            before = at.between("dropped", "down", 0, self.begin, "last")
            dropped = at.between("dropped", "down", *window, "last") - before
            sent = at.between("throughput_bps", "down", *window) * (self.end - self.begin)
            return dropped / (dropped + sent / (8 * PACKET))
        _, _, name = KINDS[self.quantity]
        subject = "down" if self.quantity in (THROUGHPUT, QUEUE) else flow
        unit = self.rate if self.quantity in (THROUGHPUT, ESTIMATE) else 1.0
        if subject == "down" or at.has(name, flow):
            return at.between(name, subject, *window, self.how) / unit
        parts = "pacing_rate_bps", "bandwidth_bps"
        if self.quantity == GAIN and all(at.has(each, flow) for each in parts):
            rate, bandwidth = parts
            return at.between(rate, flow, *window, self.how) / at.between(bandwidth, flow, *window)
        return None

    def rule(self) -> Rule[Filled, float]:
        """The rule of the engine."""
        compared = at_least if self.sign == ">=" else at_most
        name = f"{self.how} {self.quantity} from {self.begin:g} to {self.end:g} s"

        def measure(filled: Filled) -> float | None:
            values = self.values(filled)
            return None if values is None else float(values.mean())

        return Rule(
            self.id,
            self.text,
            f"{name} {self.sign} {self.limit:g}",
            measure,
            lambda found: compared(found, self.limit),
            lambda found: f"{found:.4g}",
            own=True,
        )

    def reading(self, filled: Filled) -> Reading | None:
        """The values as a row of the page."""
        values = self.values(filled)
        if values is None:
            return None
        name, window = f"{self.how} {self.quantity}", (self.begin, self.end)
        unit, direction, _ = KINDS[self.quantity]
        return Reading("", name, "", unit, direction, values, window=window)


def case(
    number: int,
    title: str,
    text: str,
    checks: tuple[Check, ...],
    *,
    duration: float = 5.0,
    flow: Table | None = None,
    down: Table | None = None,
    up: Table | None = None,
    changes: tuple[tuple[float, str, Any], ...] = (),
    rate: str = "10mbit",
    rtt: float = RTT,
) -> Question:
    """A case of the appendix; `flow`, `down` and `up` are keys of the flow and of the links."""
    queue = {"discipline": "droptail", "limit": "2000p"}
    link = {"rate": rate, "delay": f"{round(rtt / 2 * 1e9)}ns", "queue": queue}

    def scenario(control: Any) -> Table:
        own = ControlSetup(str(control), control).flow()
        if "endpoint" in own:
            own["endpoint"] = {"stream_window": WINDOW_OF_STREAMS, **own["endpoint"]}
        ways = {"path": "down", "return_path": "up"}
        start = {"each": ["0s", "50ms"]}
        return {
            "duration": f"{duration:g}s",
            "bottleneck": "down",
            "links": {"down": {**link, **(down or {})}, "up": {**link, **(up or {})}},
            "flows": {"bulk": {**ways, **own, "start": start, **(flow or {})}},
            "changes": [{"at": f"{at:g}s", "key": k, "value": v} for at, k, v in changes],
            "record": {"level": "series", "interval": "100ms", "warmup": "0s"},
        }

    return Question(
        f"A.{number}",
        f"{number} {title}",
        text,
        (Case("", scenario),),
        tuple(each.rule() for each in checks),
        lambda filled: [row for each in checks if (row := each.reading(filled)) is not None],
        source=f"{DRAFT}.{number}",
    )


def _use(begin: float, end: float, limit: float, text: str = "", **more: Any) -> Check:
    """The link is used."""
    words = text or f"Uses {100 * limit:g} % of the bandwidth."
    return Check("use", words, THROUGHPUT, "mean", begin, end, ">=", limit, **more)


def _short(begin: float, end: float, limit: float, text: str, how: str = "mean") -> Check:
    """The queue is short."""
    return Check("queue", text, QUEUE, how, begin, end, "<=", limit)


def _gain(ident: str, text: str, how: str, begin: float, end: float, sign: str, at: float) -> Check:
    return Check(ident, text, GAIN, how, begin, end, sign, at)


def _burst(begin: float, end: float, loss: float) -> tuple[tuple[float, str, Any], ...]:
    """Losses for a time."""
    key = "links.down.loss"
    return ((begin, key, loss), (end, key, "none"))


BURSTY: Table = {
    "rate": {
        "steps": [["0ms", "1kbit"], ["39ms", "1kbit"], ["40ms", "100mbit"]],
        "repeat": True,
    }
}
"""Acknowledgements pass for 1 ms in each 41 ms."""
CASES = (
    case(
        1, "Exiting STARTUP on bandwidth plateau",
        "STARTUP ends after three rounds without growth, with the bandwidth known.",
        (
            _use(2, 5, 0.95, "Has found the bandwidth."),
            _short(2, 5, 0.5 * RTT, "Has left STARTUP, which keeps a queue of a round trip."),
            Check("estimate", "Its estimate is within 2 %.", ESTIMATE, "max", 1, 3, ">=", 0.98),
            Check("not-above", "Its estimate is within 2 %.", ESTIMATE, "max", 1, 3, "<=", 1.02),
            _gain("state", "Its gain is that of PROBE_BW.", "mean", 2, 4.5, "<=", 1.3),
        ),
    ),
    case(
        2, "Exiting STARTUP on loss when application-limited",
        "Loss above 2 % over a round trip ends STARTUP although samples are application-limited.",
        (
            _gain("before", "Is in STARTUP before the loss.", "min", 0.8, 1.4, ">=", 2),
            _gain("after", "Has left STARTUP after it.", "mean", 2.5, 4.5, "<=", 1.3),
        ),
        flow=responses("80kb", "0s"),
        changes=_burst(1.5, 1.8, 0.3),
    ),
    case(
        3, "Exiting DRAIN based on inflight",
        "DRAIN sends at half the bandwidth until the data in flight fit the path, then ends.",
        (
            _gain("drain", "Sends below the bandwidth after STARTUP.", "min", 0.4, 2, "<=", 0.6),
            Check("queue", "The queue of STARTUP has drained.", QUEUE, "min", 1.5, 3, "<=", 0.01),
            _use(2, 4.5, 0.9, "Has left DRAIN: sends at the bandwidth."),
        ),
    ),
    case(
        4, "Exiting DRAIN based on time",
        "DRAIN ends after three round trips although the bandwidth has fallen by 10 %.",
        (
            _use(2.5, 4.5, 0.9, "Has left DRAIN: sends at the new bandwidth.", rate=9e6),
            _gain("state", "Its gain is that of PROBE_BW.", "mean", 2.5, 4.5, ">=", 0.85),
        ),
        changes=((1.0, "links.down.rate", "9mbit"),),
    ),
    case(
        5, "Exiting PROBE_UP on bandwidth plateau",
        "PROBE_UP ends when the delivery rate no longer grows.",
        (
            Check("probe", "Probes: fills a queue.", QUEUE, "max", 2.5, 12, ">=", 0.05 * RTT),
            _short(2.5, 12, 0.4 * RTT, "Stops probing: the queue is short on average."),
        ),
        duration=12,
    ),
    case(
        6, "Exiting PROBE_UP on loss when application-limited",
        "Loss above 2 % ends PROBE_UP although samples are application-limited.",
        (_gain("state", "Is not in PROBE_UP during losses.", "mean", 6.5, 11.5, "<=", 1.1),),
        duration=12,
        flow=responses("1mb", "0s"),
        changes=((6.0, "links.down.loss", 0.1),),
    ),
    case(
        7, "Never exiting PROBE_UP (or STARTUP) when application-limited with no loss",
        "Without loss an application-limited flow stays in STARTUP.",
        (_gain("state", "Stays in STARTUP.", "mean", 1, 4.5, ">=", 2),),
        flow=responses("20kb", "0s"),
    ),
    case(
        8, "Exiting PROBE_DOWN on inflight",
        "PROBE_DOWN ends when the data in flight fit the path with headroom.",
        (
            _gain("down", "Is in PROBE_DOWN at times.", "min", 2.5, 12, "<=", 0.95),
            _gain("leaves", "Is in another state most of the time.", "mean", 2.5, 4.5, ">=", 0.93),
            Check("empty", "The queue empties.", QUEUE, "min", 2.5, 12, "<=", 0.01),
        ),
        duration=12,
    ),
    case(
        9, "Exiting PROBE_DOWN after max time",
        "PROBE_DOWN ends after a time although the bandwidth falls by 10 %, here every 2 s.",
        (
            _gain("probe", "Probes again.", "max", 5, 10, ">=", 1.1),
            _use(8, 9.9, 0.9, "Sends at the bandwidth of the moment.", rate=6.561e6),
        ),
        duration=10,
        changes=tuple(
            (2.0 * step, "links.down.rate", f"{round(RATE * 0.9**step)}bit") for step in range(1, 5)
        ),
    ),
    case(
        10, "Entering and exiting PROBE_RTT",
        "Without a new minimum for 5 s (version 1: 10 s) the flow halves its window for 200 ms.",
        (
            Check("enters", "Sends less for 200 ms.", THROUGHPUT, "min", 3, 14, "<=", 0.7),
            _use(3, 14, 0.9, "Resumes sending."),
        ),
        duration=14,
    ),
    case(
        11, "Skipping PROBE_RTT due to application-limited sending",
        "After an idle time of 6 s PROBE_RTT is skipped.",
        (
            Check(
                "skips", "Sends at the bandwidth after the idle time.", THROUGHPUT, "max", 9.5, 13,
                ">=", 0.95,
            ),
            _gain("state", "Its window is not that of PROBE_RTT.", "mean", 9.5, 13, ">=", 0.85),
        ),
        duration=14,
        flow=responses("4mb", "6s"),
    ),
    case(
        12, "Achieving expected STARTUP bandwidth on a link with aggregation",
        "Acknowledgements in bursts do not keep STARTUP from the bandwidth.",
        (_use(1.5, 5, 0.9),),
        up=BURSTY,
    ),
    case(
        13, "Achieving expected cruise bandwidth on a link with aggregation",
        "Acknowledgements in bursts do not stall the flow later.",
        (_use(5, 20, 0.9),),
        duration=20,
        up=BURSTY,
    ),
    case(
        14, "Correctly managing sub-packet BDPs",
        "Four packets in flight suffice for a path that holds less than one.",
        (
            _use(10, 40, 0.9, rate=64e3),
            Check(
                "floor", "The window is four packets or more.", WINDOW, "min", 10, 40, ">=", 4800
            ),
        ),
        duration=40,
        rate="64kbit",
        rtt=0.01,
    ),
    case(
        15, "Increasing bandwidth 10x and ensuring full bandwidth is reached",
        "A flow that knows 10 Mbit/s finds 100 Mbit/s in O(log(BDP)) round trips of probing.",
        (_use(18, 20, 0.9, rate=100e6),),
        duration=20,
        changes=((4.0, "links.down.rate", "100mbit"),),
    ),
    case(
        16, "Decreasing bandwidth 10x and ensuring max bandwidth adapts down",
        "Over a buffer of one bandwidth-delay product, it adapts to a tenth of the bandwidth.",
        (
            _use(14, 20, 0.9),
            Check("estimate", "Its estimate has fallen.", ESTIMATE, "max", 14, 20, "<=", 1.1),
        ),
        duration=20,
        rate="100mbit",
        down={"queue": {"discipline": "droptail", "limit": "833p"}},
        changes=((4.0, "links.down.rate", "10mbit"),),
    ),
    case(
        17, "Handling token bucket policers",
        "A bucket of 10 Mbit/s and 60 kB without a queue: a stable point without continuous loss.",
        (
            _use(8, 20, 0.8, "Uses 80 % of the tokens."),
            Check("loss", "Loses at most 5 % of the packets.", LOSS, "mean", 8, 20, "<=", 0.05),
        ),
        duration=20,
        rate="100mbit",
        down={
            "shaper": "htb rate 10mbit burst 60k",
            "queue": {"discipline": "droptail", "limit": "2p"},
        },
    ),
    case(
        18, "Handling spurious fast recovery",
        "Reordering that looks like loss leaves no trace.",
        (_use(2, 12, 0.9),),
        duration=12,
        down={"jitter": {"spread": "10ms"}, "reordering": True},
    ),
    case(
        19, "Handling spurious RTO recovery",
        "A delay of 1.5 s that looks like a timeout leaves no trace.",
        (_use(8, 12, 0.9),),
        duration=12,
        changes=((5.0, "links.down.delay", "1550ms"), (5.1, "links.down.delay", "50ms")),
    ),
    case(
        20, "Entering and exiting PROBE_RTT during STARTUP",
        "STARTUP that is application-limited for longer than 5 s goes on after PROBE_RTT.",
        (_gain("state", "Is in STARTUP after PROBE_RTT.", "mean", 6.5, 9.5, ">=", 2),),
        duration=10,
        flow=responses("20kb", "0s"),
    ),
    case(
        21, "Handling loss during PROBE_UP after inflight_longterm is set",
        "Over a buffer of a tenth of the product, each probe loses packets and ends.",
        (
            _use(4, 20, 0.85),
            Check("loss", "Loses at most 2 % of the packets.", LOSS, "mean", 4, 20, "<=", 0.02),
        ),
        duration=20,
        down={"queue": {"discipline": "droptail", "limit": "9p"}},
    ),
    case(
        22, "Handling application-limited sending during PROBE_REFILL",
        "Pauses of the application do not lower the estimate: the flow resumes at the bandwidth.",
        (
            Check(
                "resumes", "Reaches the bandwidth after pauses.", THROUGHPUT, "max", 6, 20,
                ">=", 0.97,
            ),
            _gain("state", "Its gain stays that of PROBE_BW.", "mean", 6, 20, "<=", 1.3),
        ),
        duration=20,
        flow=responses("2mb", {"uniform": ["100ms", "400ms"]}),
    ),
)  # fmt: skip
PACK = Pack(
    "bbr-draft",
    "The test cases of draft-ietf-ccwg-bbr",
    CASES,
    DRAFT,
    replications=5,
    contenders={"bbr3": "bbr3", "noq:bbr3": "noq:bbr3", "linux": "bbr"},
)

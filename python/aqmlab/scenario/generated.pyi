"""Made by `tools/scenario_stub.py` from the engine's declarations. Do not edit."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aqmlab.scenario.parts import (
    Control,
    DelayProcess,
    Endpoint,
    LossModel,
    Part,
    QueueDiscipline,
    RateProcess,
    Workload,
)
from aqmlab.scenario.quantity import (
    DistributionLike,
    DurationLike,
    LimitLike,
    RateLike,
    SizeLike,
)

class DropTail(QueueDiscipline):
    """First in, first out; packets that do not fit are dropped."""

    limit: LimitLike | None = None
    byte_limit: SizeLike | Literal["none"] | None = None
    drop: Literal["tail", "head"] | None = None

class Red(QueueDiscipline):
    """Random early detection by the average queue, as in ns-2."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    weight: float | None = None
    target_delay: DurationLike | None = None
    auto_rtt: DurationLike | None = None
    auto_unit: Literal["packets", "bytes"] | None = None
    shape: Literal["linear", "quadratic"] | None = None
    max_p: float | None = None
    gentle: bool | None = None
    wait: bool | None = None
    mean_packet: SizeLike | None = None
    by_size: bool | None = None
    limit: LimitLike | None = None
    victim: Literal["arriving", "front", "random"] | None = None
    ecn: bool | None = None
    mark_p: float | Literal["none"] | None = None
    adaptive: Literal["none", "floyd", "feng"] | None = None
    alpha: float | None = None
    beta: float | None = None
    adapt_interval: DurationLike | None = None
    top: float | None = None
    bottom: float | None = None
    feng_alpha: float | None = None
    feng_beta: float | None = None

class RedLinux(QueueDiscipline):
    """Random early detection in Linux's integers."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    limit: LimitLike | None = None
    wlog: int | None = None
    max_p: float | None = None
    mean_packet: SizeLike | None = None
    bandwidth: RateLike | None = None
    ecn: bool | None = None
    harddrop: bool | None = None
    nodrop: bool | None = None
    adaptive: bool | None = None

class CoDel(QueueDiscipline):
    """Controlled delay: drops at dequeue while the delay stays high."""

    target: DurationLike | None = None
    interval: DurationLike | None = None
    limit: LimitLike | None = None
    byte_limit: SizeLike | Literal["none"] | None = None
    variant: Literal["rfc8289", "linux", "ns2-2012", "ns2-2013", "no-recall"] | None = None
    ecn: bool | None = None
    ce_threshold: DurationLike | Literal["none"] | None = None

class CoDelDt(QueueDiscipline):
    """CoDel at the tail: drops arrivals by their predicted delay."""

    target: DurationLike | None = None
    interval: DurationLike | None = None
    limit: LimitLike | None = None
    delay: Literal["rate", "shaper"] | None = None
    dq_threshold: SizeLike | None = None
    access_delay: DurationLike | None = None
    sustained_rate: RateLike | None = None
    peak_rate: RateLike | None = None
    traffic_burst: SizeLike | None = None

class Cobalt(QueueDiscipline):
    """CoDel and BLUE in one queue, as in each flow of CAKE."""

    target: DurationLike | None = None
    interval: DurationLike | None = None
    limit: LimitLike | None = None
    ecn: bool | None = None
    variant: Literal["linux", "linux-initfix"] | None = None

class Pie(QueueDiscipline):
    """A controller moves the drop probability to keep the delay."""

    target: DurationLike | None = None
    tupdate: DurationLike | None = None
    max_burst: DurationLike | None = None
    alpha: float | None = None
    beta: float | None = None
    limit: LimitLike | None = None
    byte_limit: SizeLike | Literal["none"] | None = None
    delay: Literal["timestamps", "rate"] | None = None
    dq_threshold: SizeLike | None = None
    derandomize: bool | None = None
    prob_low: float | None = None
    prob_high: float | None = None
    cap: bool | None = None
    tuning: Literal["rfc8033", "draft"] | None = None
    decay: Literal["zero", "half-target"] | None = None
    activation: float | Literal["none"] | None = None
    ecn: bool | None = None
    max_ecn: float | None = None
    by_size: bool | None = None
    mean_packet: SizeLike | Literal["none"] | None = None
    variant: Literal["rfc8033", "linux", "linux-clamped"] | None = None

class Pie2013(QueueDiscipline):
    """PIE as of 2013, with its departure rate measurement."""

    target: DurationLike | None = None
    tupdate: DurationLike | None = None
    max_burst: DurationLike | None = None
    alpha: float | None = None
    beta: float | None = None
    dq_threshold: LimitLike | None = None
    rate_weight: float | None = None
    count_first: bool | None = None
    p_during_burst: bool | None = None
    limit: LimitLike | None = None
    ecn: bool | None = None

class DocsisPie(QueueDiscipline):
    """PIE of cable modems: predicted delay, scaled by packet size."""

    target: DurationLike | None = None
    tupdate: DurationLike | None = None
    alpha: float | None = None
    beta: float | None = None
    max_burst: DurationLike | None = None
    burst_reset: DurationLike | None = None
    limit: LimitLike | Literal["none"] | None = None
    sustained_rate: RateLike | None = None
    peak_rate: RateLike | None = None
    traffic_burst: SizeLike | None = None
    mean_packet: SizeLike | None = None
    min_packet: SizeLike | None = None
    prob_low: float | None = None
    prob_high: float | None = None
    latency_low: DurationLike | None = None
    latency_high: DurationLike | None = None

class FqCoDel(QueueDiscipline):
    """A queue for each flow, new flows first, CoDel in each."""

    flows: int | None = None
    quantum: SizeLike | None = None
    limit: LimitLike | None = None
    memory_limit: SizeLike | None = None
    drop_batch: int | None = None
    target: DurationLike | None = None
    interval: DurationLike | None = None
    variant: Literal["rfc8289", "linux", "ns2-2012", "ns2-2013", "no-recall"] | None = None
    small_backlog: Literal["all", "flow"] | None = None
    ecn: bool | None = None
    ce_threshold: DurationLike | Literal["none"] | None = None
    ce_threshold_selector: str | None = None
    isolation: Literal["flow", "src-host", "dst-host"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class FqPie(QueueDiscipline):
    """A queue for each flow, new flows first, PIE in each."""

    flows: int | None = None
    quantum: SizeLike | None = None
    limit: LimitLike | None = None
    target: DurationLike | None = None
    tupdate: DurationLike | None = None
    max_burst: DurationLike | None = None
    delay: Literal["timestamps", "rate"] | None = None
    alpha: float | None = None
    beta: float | None = None
    ecn: bool | None = None
    ecn_prob: int | None = None
    by_size: bool | None = None
    variant: Literal["linux", "linux-clamped"] | None = None
    isolation: Literal["flow", "src-host", "dst-host"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class FqCobalt(QueueDiscipline):
    """A queue for each flow, new flows first, COBALT in each."""

    flows: int | None = None
    quantum: SizeLike | None = None
    limit: LimitLike | None = None
    memory_limit: SizeLike | None = None
    drop_batch: int | None = None
    target: DurationLike | None = None
    interval: DurationLike | None = None
    increment: float | None = None
    decrement: float | None = None
    variant: Literal["linux", "linux-initfix"] | None = None
    ecn: bool | None = None
    ce_threshold: DurationLike | Literal["none"] | None = None
    isolation: Literal["flow", "src-host", "dst-host"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class Cake(QueueDiscipline):
    """A shaper, tins by DSCP, hosts and flows that share, COBALT in each flow: CAKE."""

    bandwidth: RateLike | None = None
    autorate_ingress: bool | None = None
    diffserv: Literal["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"] | None = (
        None
    )
    isolation: (
        Literal[
            "flow-blind",
            "src-host",
            "dst-host",
            "hosts",
            "flow",
            "dual-src-host",
            "dual-dst-host",
            "triple",
        ]
        | None
    ) = None
    interval: DurationLike | None = None
    target: DurationLike | Literal["none"] | None = None
    limit: LimitLike | Literal["none"] | None = None
    flows: int | None = None
    quantum: SizeLike | Literal["none"] | None = None
    ack_filter: Literal["none", "conservative", "aggressive"] | None = None
    wash: bool | None = None
    ingress: bool | None = None
    variant: Literal["linux", "linux-initfix"] | None = None
    link_layer: (
        Literal[
            "raw",
            "conservative",
            "ipoa-vcmux",
            "ipoa-llcsnap",
            "bridged-vcmux",
            "bridged-llcsnap",
            "pppoa-vcmux",
            "pppoa-llc",
            "pppoe-vcmux",
            "pppoe-llcsnap",
            "pppoe-ptm",
            "bridged-ptm",
            "docsis",
            "ethernet",
        ]
        | None
    ) = None
    overhead: Any | None = None
    mpu: Any | None = None
    framing: Literal["none", "atm", "ptm"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class Drr(QueueDiscipline):
    """Deficit round robin: a queue for each flow, turns by bytes."""

    flows: int | None = None
    quantum: SizeLike | Literal["none"] | None = None
    limit: LimitLike | None = None
    headdrop: bool | None = None
    isolation: Literal["flow", "src-host", "dst-host"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class Sfq(QueueDiscipline):
    """A queue for each flow; the longest queue drops packets when full."""

    limit: LimitLike | None = None
    variant: Literal["linux", "mckenney"] | None = None
    depth: int | None = None
    headdrop: bool | None = None
    flows: int | None = None
    divisor: int | None = None
    quantum: SizeLike | Literal["none"] | None = None
    isolation: Literal["flow", "src-host", "dst-host"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class SfqCoDel(QueueDiscipline):
    """Ns-2's stochastic fair queueing with CoDel in every bucket."""

    flows: int | None = None
    limit: LimitLike | None = None
    target: DurationLike | None = None
    interval: DurationLike | None = None
    variant: Literal["rfc8289", "linux", "ns2-2012", "ns2-2013", "no-recall"] | None = None
    isolation: Literal["flow", "src-host", "dst-host"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class SfqPie(QueueDiscipline):
    """Stochastic fair queueing, PIE by the length of the bucket."""

    flows: int | None = None
    limit: LimitLike | None = None
    target: DurationLike | None = None
    tupdate: DurationLike | None = None
    max_burst: DurationLike | None = None
    alpha: float | None = None
    beta: float | None = None
    delay: Literal["timestamps", "rate"] | None = None
    dq_threshold: SizeLike | None = None
    ecn: bool | None = None
    ecn_prob: int | None = None
    by_size: bool | None = None
    variant: Literal["cablelabs", "per-bucket"] | None = None
    isolation: Literal["flow", "src-host", "dst-host"] | None = None
    hashing: Literal["direct", "set-associative"] | None = None
    ways: int | None = None
    perturb: DurationLike | Literal["none"] | None = None

class Pi2(QueueDiscipline):
    """PI squared: a controller moves the root of the drop probability."""

    target: DurationLike | None = None
    tupdate: DurationLike | None = None
    alpha: float | None = None
    beta: float | None = None
    limit: LimitLike | None = None
    ecn: bool | None = None
    coupled: bool | None = None
    coupling: float | None = None
    derandomize: bool | None = None

class DualPi2(QueueDiscipline):
    """A queue for L4S and one for the rest, coupled by PI squared."""

    variant: Literal["rfc9332", "linux"] | None = None
    target: DurationLike | None = None
    rtt_max: DurationLike | None = None
    tupdate: DurationLike | Literal["none"] | None = None
    alpha: float | Literal["none"] | None = None
    beta: float | Literal["none"] | None = None
    limit: LimitLike | Literal["none"] | None = None
    coupling: int | None = None
    min_threshold: DurationLike | None = None
    range: DurationLike | None = None
    th_len: int | None = None
    step: DurationLike | Literal["none"] | None = None
    step_packets: int | Literal["none"] | None = None
    min_qlen_step: int | None = None
    drop_overload: bool | None = None
    drop_early: bool | None = None
    derandomize: bool | None = None
    scheduler: Literal["wrr", "ts-fifo"] | None = None
    c_protection: float | Literal["none"] | None = None
    tshift: DurationLike | None = None
    classifier: Literal["l4s", "any-ect"] | None = None

class Sfb(QueueDiscipline):
    """Stochastic fair BLUE: a filter detects unresponsive flows."""

    limit: LimitLike | None = None
    max: int | None = None
    target: int | None = None
    increment: float | None = None
    decrement: float | None = None
    penalty_rate: int | None = None
    penalty_burst: int | None = None
    rehash: DurationLike | None = None
    warmup: DurationLike | None = None
    ecn: bool | None = None

class Bernoulli(QueueDiscipline):
    """Marks or drops arriving packets with one probability."""

    limit: LimitLike | None = None
    probability: float | None = None
    ecn: bool | None = None

class Blue(QueueDiscipline):
    """One drop probability, raised by overflows, lowered by idle times."""

    limit: LimitLike | None = None
    increment: float | None = None
    decrement: float | None = None
    freeze_time: DurationLike | None = None
    threshold: LimitLike | Literal["none"] | None = None
    idle_repeats: bool | None = None
    ecn: bool | None = None

class Choke(QueueDiscipline):
    """RED that drops an arrival and a random packet of the same flow."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    candidates: int | None = None
    regions: int | None = None
    weight: float | None = None
    max_p: float | None = None
    gentle: bool | None = None
    mean_packet: SizeLike | None = None
    limit: LimitLike | None = None
    ecn: bool | None = None

class Sred(QueueDiscipline):
    """RED stabilized by an estimate of the number of flows."""

    limit: LimitLike | None = None
    variant: Literal["simple", "full"] | None = None
    zombies: int | None = None
    replacement: float | None = None
    alpha: float | None = None
    max_p: float | None = None
    many_flows: float | None = None
    ecn: bool | None = None

class Pi(QueueDiscipline):
    """A proportional integral controller keeps a queue length."""

    reference: LimitLike | None = None
    a: float | None = None
    b: float | None = None
    frequency: float | None = None
    mean_packet: SizeLike | None = None
    by_size: bool | None = None
    limit: LimitLike | None = None
    ecn: bool | None = None

class Step(QueueDiscipline):
    """Marks while the queue is above a threshold, for DCTCP."""

    threshold: LimitLike | DurationLike | None = None
    mark_at: Literal["enqueue", "dequeue"] | None = None
    not_ect: Literal["drop", "pass"] | None = None
    limit: LimitLike | None = None

class Hred(QueueDiscipline):
    """Harsh RED: RED that answers slow start in time on a slow link."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    weight: float | None = None
    target_delay: DurationLike | None = None
    auto_rtt: DurationLike | None = None
    auto_unit: Literal["packets", "bytes"] | None = None
    shape: Literal["linear", "quadratic"] | None = None
    max_p: float | None = None
    gentle: bool | None = None
    wait: bool | None = None
    mean_packet: SizeLike | None = None
    by_size: bool | None = None
    limit: LimitLike | None = None
    victim: Literal["arriving", "front", "random"] | None = None
    ecn: bool | None = None
    mark_p: float | Literal["none"] | None = None
    adaptive: Literal["none", "floyd", "feng"] | None = None
    alpha: float | None = None
    beta: float | None = None
    adapt_interval: DurationLike | None = None
    top: float | None = None
    bottom: float | None = None
    feng_alpha: float | None = None
    feng_beta: float | None = None

class HredAggressive(QueueDiscipline):
    """Harsh RED with twice the weight: shorter queues, less throughput."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    weight: float | None = None
    target_delay: DurationLike | None = None
    auto_rtt: DurationLike | None = None
    auto_unit: Literal["packets", "bytes"] | None = None
    shape: Literal["linear", "quadratic"] | None = None
    max_p: float | None = None
    gentle: bool | None = None
    wait: bool | None = None
    mean_packet: SizeLike | None = None
    by_size: bool | None = None
    limit: LimitLike | None = None
    victim: Literal["arriving", "front", "random"] | None = None
    ecn: bool | None = None
    mark_p: float | Literal["none"] | None = None
    adaptive: Literal["none", "floyd", "feng"] | None = None
    alpha: float | None = None
    beta: float | None = None
    adapt_interval: DurationLike | None = None
    top: float | None = None
    bottom: float | None = None
    feng_alpha: float | None = None
    feng_beta: float | None = None

class RedNs2(QueueDiscipline):
    """RED as ns-2.35 runs it if nothing is set: in bytes, configured by the link's rate."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    weight: float | None = None
    target_delay: DurationLike | None = None
    auto_rtt: DurationLike | None = None
    auto_unit: Literal["packets", "bytes"] | None = None
    shape: Literal["linear", "quadratic"] | None = None
    max_p: float | None = None
    gentle: bool | None = None
    wait: bool | None = None
    mean_packet: SizeLike | None = None
    by_size: bool | None = None
    limit: LimitLike | None = None
    victim: Literal["arriving", "front", "random"] | None = None
    ecn: bool | None = None
    mark_p: float | Literal["none"] | None = None
    adaptive: Literal["none", "floyd", "feng"] | None = None
    alpha: float | None = None
    beta: float | None = None
    adapt_interval: DurationLike | None = None
    top: float | None = None
    bottom: float | None = None
    feng_alpha: float | None = None
    feng_beta: float | None = None

class Ared(QueueDiscipline):
    """Adaptive RED: max_p keeps the average in the middle, the link's rate sets the rest."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    weight: float | None = None
    target_delay: DurationLike | None = None
    auto_rtt: DurationLike | None = None
    auto_unit: Literal["packets", "bytes"] | None = None
    shape: Literal["linear", "quadratic"] | None = None
    max_p: float | None = None
    gentle: bool | None = None
    wait: bool | None = None
    mean_packet: SizeLike | None = None
    by_size: bool | None = None
    limit: LimitLike | None = None
    victim: Literal["arriving", "front", "random"] | None = None
    ecn: bool | None = None
    mark_p: float | Literal["none"] | None = None
    adaptive: Literal["none", "floyd", "feng"] | None = None
    alpha: float | None = None
    beta: float | None = None
    adapt_interval: DurationLike | None = None
    top: float | None = None
    bottom: float | None = None
    feng_alpha: float | None = None
    feng_beta: float | None = None

class Nlred(QueueDiscipline):
    """Nonlinear RED: the drop probability grows with the square."""

    min_threshold: LimitLike | None = None
    max_threshold: LimitLike | None = None
    weight: float | None = None
    target_delay: DurationLike | None = None
    auto_rtt: DurationLike | None = None
    auto_unit: Literal["packets", "bytes"] | None = None
    shape: Literal["linear", "quadratic"] | None = None
    max_p: float | None = None
    gentle: bool | None = None
    wait: bool | None = None
    mean_packet: SizeLike | None = None
    by_size: bool | None = None
    limit: LimitLike | None = None
    victim: Literal["arriving", "front", "random"] | None = None
    ecn: bool | None = None
    mark_p: float | Literal["none"] | None = None
    adaptive: Literal["none", "floyd", "feng"] | None = None
    alpha: float | None = None
    beta: float | None = None
    adapt_interval: DurationLike | None = None
    top: float | None = None
    bottom: float | None = None
    feng_alpha: float | None = None
    feng_beta: float | None = None

class Pi22016(QueueDiscipline):
    """PI2 with the numbers of its first years: 20 ms, gains 5/16 and 50/16."""

    target: DurationLike | None = None
    tupdate: DurationLike | None = None
    alpha: float | None = None
    beta: float | None = None
    limit: LimitLike | None = None
    ecn: bool | None = None
    coupled: bool | None = None
    coupling: float | None = None
    derandomize: bool | None = None

class Reno(Control):
    """Slow start, congestion avoidance, halving (RFC 5681)."""

    beta_ecn: float | Literal["none"] | None = None
    slow_start: Literal["standard", "hystart", "hystart-ns3", "hystart++"] | None = None
    byte_counting: int | None = None
    least_window: int | None = None
    keep_count: bool | None = None

class Cubic(Control):
    """A cubic function of the time since the last loss: Linux's with HyStart, or RFC 9438."""

    c: float | None = None
    beta: float | None = None
    beta_ecn: float | Literal["none"] | None = None
    fast_convergence: bool | None = None
    reno_friendly: bool | None = None
    slow_start: Literal["standard", "hystart", "hystart-ns3", "hystart++"] | None = None
    variant: Literal["auto", "rfc9438", "linux", "ns3"] | None = None

class Vegas(Control):
    """Keeps a few segments in the queue, by round-trip times (Brakmo and Peterson 1995)."""

    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None

class Westwood(Control):
    """Westwood+: Reno that reduces to the estimated bandwidth-delay product (Grieco 2004)."""

    filter: float | None = None
    least_interval: DurationLike | None = None
    slow_start: Literal["standard", "hystart", "hystart-ns3", "hystart++"] | None = None

class Compound(Control):
    """Compound TCP: Reno and a delay window (draft-sridharan-tcpm-ctcp-02)."""

    alpha: float | None = None
    beta: float | None = None
    k: float | None = None
    eta: float | None = None
    gamma: float | None = None
    gamma_tuning: bool | None = None
    lambda_: float | None = None
    gamma_low: float | None = None
    slow_start: Literal["standard", "hystart", "hystart-ns3", "hystart++"] | None = None

class Ledbat(Control):
    """Background traffic that keeps queueing delay at a target (RFC 6817)."""

    target: DurationLike | None = None
    gain: float | None = None
    allowed_increase: int | None = None
    slow_start: bool | None = None

class LedbatPlusPlus(Control):
    """LEDBAT with slowdowns and multiplicative decrease (draft-irtf-iccrg-ledbat-plus-plus)."""

    target: DurationLike | None = None
    constant: float | None = None
    slowdowns: bool | None = None

class Scalable(Control):
    """Windows that grow and shrink by a share of themselves (Kelly 2003)."""

    increase: float | None = None
    decrease: float | None = None
    low_window: float | None = None
    slow_start: Literal["standard", "hystart", "hystart-ns3", "hystart++"] | None = None

class Highspeed(Control):
    """Large windows grow faster and shrink less than Reno's (RFC 3649)."""

    low_window: float | None = None
    low_p: float | None = None
    high_window: float | None = None
    high_p: float | None = None
    high_decrease: float | None = None
    slow_start: Literal["standard", "hystart", "hystart-ns3", "hystart++"] | None = None

class Dctcp(Control):
    """The window falls by the share of marks (RFC 8257)."""

    g: float | None = None
    initial_alpha: float | None = None

class Prague(Control):
    """DCTCP for the Internet: paced, less dependent on the RTT (L4S)."""

    g: float | None = None
    rtt_virt: DurationLike | None = None
    rtt_transition: int | None = None
    rounding: Literal["up", "carry", "none"] | None = None
    classic_fallback: bool | None = None
    beta: float | None = None

class Bbr(Control):
    """Bottleneck bandwidth and round-trip propagation time, version 1."""

    high_gain: float | None = None
    cwnd_gain: float | None = None
    rtprop_window: DurationLike | None = None
    probe_rtt_duration: DurationLike | None = None

class Bbr3(Control):
    """Bandwidth and delay, bounded by losses (draft-ietf-ccwg-bbr)."""

    startup_pacing_gain: float | None = None
    cwnd_gain: float | None = None
    loss_thresh: float | None = None
    beta: float | None = None
    headroom: float | None = None
    probe_rtt_interval: DurationLike | None = None
    probe_rtt_duration: DurationLike | None = None
    probe_rtt_cwnd_gain: float | None = None
    min_rtt_window: DurationLike | None = None
    pacing_margin: float | None = None

class Relentless(Control):
    """Reno's growth; the window shrinks by the number of lost segments (Mathis 2009)."""

    slow_start: Literal["standard", "hystart", "hystart-ns3", "hystart++"] | None = None

class Cbr(Control):
    """A constant rate that responds to nothing."""

    rate: RateLike | None = None

class Steered(Control):
    """A window and a pacing rate that are set from outside."""

    window: LimitLike | None = None
    pacing_rate: RateLike | None = None

class Bulk(Workload):
    """Greedy flows, of the group's `size` or endless."""

class ConstantRate(Workload):
    """Datagrams at a constant bit rate that do not respond to congestion."""

    rate: RateLike | None = None
    packet: SizeLike | None = None
    vary: float | None = None

class ParetoOnoff(Workload):
    """Ns-2's Pareto on/off source, over UDP or TCP."""

    over: Literal["udp", "tcp"] | None = None
    rate: RateLike | None = None
    burst: DurationLike | None = None
    idle: DurationLike | None = None
    shape: float | None = None
    packet: SizeLike | None = None

class Transfers(Workload):
    """Flows that start and end, with sizes from a distribution."""

    size: DistributionLike | None = None
    gap: DistributionLike | None = None
    timing: Literal["open", "closed"] | None = None
    number: int | Literal["none"] | None = None

class Sessions(Workload):
    """Greedy flows that alternately send and pause."""

    on: DistributionLike | None = None
    off: DistributionLike | None = None
    number: int | Literal["none"] | None = None

class Requests(Workload):
    """Requests and responses over persistent connections."""

    request: DistributionLike | None = None
    response: DistributionLike | None = None
    think: DistributionLike | None = None
    server_delay: DistributionLike | None = None
    requests: DistributionLike | None = None
    streams: int | None = None
    gap: DistributionLike | None = None
    number: int | Literal["none"] | None = None

class Packmime(Workload):
    """Web traffic of many clients and servers, after PackMime-HTTP."""

    rate: float | None = None
    persistent: float | None = None

class Probe(Workload):
    """Small packets that are echoed at once: latency under load."""

    gap: DistributionLike | None = None
    packet: SizeLike | None = None

class Voip(Workload):
    """Telephone calls, with their quality by the E-model."""

    codec: Literal["g711", "g729"] | None = None
    talk: DistributionLike | None = None
    silence: DistributionLike | None = None
    two_way: bool | None = None
    playout: DurationLike | None = None

class Page(Workload):
    """Web pages loaded by a browser: page load time."""

    objects: DistributionLike | None = None
    size: DistributionLike | None = None
    document: DistributionLike | None = None
    request: DistributionLike | None = None
    depth: int | None = None
    hosts: int | None = None
    connections: int | None = None
    streams: int | None = None
    keep: Literal["none", "page", "all"] | None = None
    dns: bool | None = None
    tls: int | None = None
    certificates: SizeLike | None = None
    server_delay: DistributionLike | None = None
    think: DistributionLike | None = None
    number: int | Literal["none"] | None = None

class Video(Workload):
    """Live video frames, at a constant or variable rate."""

    over: Literal["udp", "tcp"] | None = None
    rate: RateLike | None = None
    fps: float | None = None
    gop: int | None = None
    intra: float | None = None
    variation: DistributionLike | None = None
    packet: SizeLike | None = None
    buffer: DurationLike | None = None

class Dash(Workload):
    """Adaptive video over HTTP: bit rate, stalls, switches."""

    adaptation: Literal["throughput", "bola", "bba"] | None = None
    ladder: Sequence[Any] | None = None
    segment: DurationLike | None = None
    variation: DistributionLike | None = None
    buffer: DurationLike | None = None
    start_with: DurationLike | None = None
    resume_with: DurationLike | None = None
    window: int | None = None
    safety: float | None = None
    gamma: float | None = None
    reservoir: float | None = None
    cushion_end: float | None = None
    request: SizeLike | None = None
    length: DurationLike | Literal["none"] | None = None

class Game(Workload):
    """Games: small packets in both directions, and their lateness."""

    up: DistributionLike | None = None
    up_gap: DistributionLike | None = None
    down: DistributionLike | None = None
    down_gap: DistributionLike | None = None
    threshold: DurationLike | None = None

class Incast(Workload):
    """Many senders answer one request at once: query times."""

    senders: int | None = None
    request: DistributionLike | None = None
    response: DistributionLike | None = None
    server_delay: DistributionLike | None = None
    think: DistributionLike | None = None
    number: int | Literal["none"] | None = None

class Rrul(Workload):
    """Flent's response under load: bulk flows in both directions, and probes."""

    flows: int | None = None
    classes: Sequence[Any] | None = None
    probes: Sequence[Any] | None = None
    gap: DurationLike | None = None
    packet: SizeLike | None = None
    lead: DurationLike | None = None
    length: DurationLike | None = None

class Rpm(Workload):
    """Responsiveness under load, in round trips per minute (RPM)."""

    load: Literal["both", "down", "up"] | None = None
    distance: int | None = None
    interval: DurationLike | None = None
    trim: float | None = None
    tolerance: float | None = None
    initial: int | None = None
    increment: int | None = None
    most: int | None = None
    probes: float | None = None
    share: float | None = None
    tls: int | None = None
    certificates: SizeLike | None = None
    request: SizeLike | None = None
    response: SizeLike | None = None
    limit: DurationLike | None = None

class Rfc7928Web(Workload):
    """RFC 7928's web: pages of 50 objects over six connections, one after another."""

    objects: DistributionLike | None = None
    size: DistributionLike | None = None
    document: DistributionLike | None = None
    request: DistributionLike | None = None
    depth: int | None = None
    hosts: int | None = None
    connections: int | None = None
    streams: int | None = None
    keep: Literal["none", "page", "all"] | None = None
    dns: bool | None = None
    tls: int | None = None
    certificates: SizeLike | None = None
    server_delay: DistributionLike | None = None
    think: DistributionLike | None = None
    number: int | Literal["none"] | None = None

class RrulBe(Workload):
    """Flent's response under load, all of it best effort."""

    flows: int | None = None
    classes: Sequence[Any] | None = None
    probes: Sequence[Any] | None = None
    gap: DurationLike | None = None
    packet: SizeLike | None = None
    lead: DurationLike | None = None
    length: DurationLike | None = None

class Tfrc(Endpoint):
    """TCP-Friendly Rate Control (RFC 5348), datagrams at a smooth rate."""

    ecn: bool | None = None
    intervals: int | None = None
    discounting: bool | None = None
    damping: bool | None = None

class Quic(Endpoint):
    """QUIC, a published library."""

    stack: Literal["noq", "quinn"] | None = None
    controller: Literal["new_reno", "cubic", "bbr", "bbr3"] | None = None
    initial_window: SizeLike | None = None
    initial_rtt: DurationLike | None = None
    initial_mtu: SizeLike | None = None
    max_mtu: SizeLike | None = None
    header: SizeLike | None = None
    ecn: bool | None = None
    ack_eliciting_threshold: int | Literal["none"] | None = None
    max_ack_delay: DurationLike | Literal["none"] | None = None
    packet_threshold: int | None = None
    time_threshold: float | None = None
    persistent_congestion_threshold: int | None = None
    segments: int | None = None
    stream_window: SizeLike | None = None
    receive_window: SizeLike | Literal["none"] | None = None
    send_window: SizeLike | None = None
    max_streams: int | None = None
    datagrams: bool | None = None
    datagram_buffer: SizeLike | None = None
    idle_timeout: DurationLike | None = None

class Transport(Part):
    """The endpoints of a flow."""

    profile: (
        Literal[
            "rfc",
            "ns2-sack1",
            "rfc-newreno",
            "linux-6",
            "linux-6.12",
            "linux-6.1",
            "windows",
            "linux-l4s",
        ]
        | None
    ) = None
    stack: Literal["rfc", "auto", "linux-5.4", "linux-6.1", "linux-6.12"] | None = None
    mss: SizeLike | None = None
    header: SizeLike | None = None
    congestion_control: Control | type | str | Mapping[str, Any] | None = None
    initial_window: LimitLike | None = None
    initial_ssthresh: SizeLike | Literal["none"] | None = None
    initial_rto: DurationLike | None = None
    min_rto: DurationLike | None = None
    max_rto: DurationLike | None = None
    clock_granularity: DurationLike | None = None
    retransmission_timer: Literal["auto", "rfc6298", "ns-2", "linux"] | None = None
    recovery: Literal["sack", "rack", "sack1", "tcp-linux", "newreno", "reno"] | None = None
    tail_loss_probe: bool | None = None
    max_ack_delay: DurationLike | None = None
    prr: bool | None = None
    frto: bool | None = None
    dsack: bool | None = None
    timestamps: bool | None = None
    limited_transmit: bool | None = None
    recovery_end_counts: bool | None = None
    delayed_ack: int | None = None
    ack_delay: DurationLike | None = None
    quick_acks: int | None = None
    restart_after_idle: bool | None = None
    window_validation: Literal["off", "rfc2861", "rfc7661"] | None = None
    non_validated_period: DurationLike | None = None
    receive_window: LimitLike | None = None
    receive_buffer: SizeLike | None = None
    receive_buffer_max: SizeLike | None = None
    send_buffer: SizeLike | Literal["none"] | None = None
    pacing: bool | None = None
    pacing_slow_start: int | None = None
    pacing_avoidance: int | None = None
    segmentation_offload: bool | None = None
    pacing_quantum: LimitLike | None = None
    ecn: Literal["off", "classic", "dctcp", "accurate"] | None = None
    ecn_codepoint: Literal["ect0", "ect1"] | None = None

class Change(Part):
    """A change during the run."""

    at: DurationLike
    key: str
    value: Any
    replace: bool | None = None

class Link(Part):
    """One direction of a link."""

    rate: RateLike | RateProcess | Mapping[str, Any]
    delay: DurationLike | DelayProcess | Mapping[str, Any] | None = None
    jitter: Jitter | Mapping[str, Any] | None = None
    loss: float | LossModel | Mapping[str, Any] | None = None
    duplicate: float | LossModel | Mapping[str, Any] | None = None
    slot: Slot | Mapping[str, Any] | None = None
    reordering: bool | None = None
    shares: str | None = None
    queue: QueueDiscipline | type | str | Mapping[str, Any] | None = None
    shaper: Shaper | Mapping[str, Any] | None = None
    driver: Driver | Mapping[str, Any] | None = None
    thresholds: Sequence[SizeLike] | None = None
    link_layer: (
        Literal[
            "raw",
            "conservative",
            "ipoa-vcmux",
            "ipoa-llcsnap",
            "bridged-vcmux",
            "bridged-llcsnap",
            "pppoa-vcmux",
            "pppoa-llc",
            "pppoe-vcmux",
            "pppoe-llcsnap",
            "pppoe-ptm",
            "bridged-ptm",
            "docsis",
            "ethernet",
        ]
        | None
    ) = None
    overhead: Any | None = None
    mpu: Any | None = None
    framing: Literal["none", "atm", "ptm"] | None = None

class RateSteps(RateProcess):
    """A rate that changes at set times."""

    steps: Sequence[tuple[DurationLike, DurationLike | RateLike] | list[Any]]
    repeat: bool | None = None

class RateTrace(RateProcess):
    """Delivery opportunities from a file."""

    trace: str
    opportunity: SizeLike | None = None
    content: str | None = None

class RateCsv(RateProcess):
    """Times and rates from a file."""

    csv: str
    unit: RateLike | None = None
    repeat: bool | None = None
    content: str | None = None

class Markov(RateProcess):
    """A rate that jumps between states."""

    rates: Sequence[Any] | None = None
    dwell: Sequence[Any] | None = None
    transitions: Sequence[Any] | None = None

class OrnsteinUhlenbeck(RateProcess):
    """A rate that varies around its mean."""

    mean: RateLike | None = None
    deviation: RateLike | None = None
    correlation_time: DurationLike | None = None
    step: DurationLike | None = None

class Lte(RateProcess):
    """A synthetic LTE link."""

    mean: RateLike | None = None
    share: float | None = None
    slow_deviation: float | None = None
    slow_time: DurationLike | None = None
    fast_deviation: float | None = None
    fast_time: DurationLike | None = None
    outage_interval: DurationLike | None = None
    outage: DurationLike | None = None

class Wifi(RateProcess):
    """A synthetic Wi-Fi link with aggregation."""

    phy: RateLike | None = None
    scheme: float | None = None
    scheme_deviation: float | None = None
    scheme_time: DurationLike | None = None
    txop: DurationLike | None = None
    aggregate: int | None = None
    others: float | None = None
    others_txop: DurationLike | None = None
    collision: float | None = None

class DelaySteps(DelayProcess):
    """A delay that changes at set times."""

    steps: Sequence[tuple[DurationLike, DurationLike | RateLike] | list[Any]]
    repeat: bool | None = None

class DelayCsv(DelayProcess):
    """Times and delays from a file."""

    csv: str
    unit: DurationLike | None = None
    repeat: bool | None = None
    content: str | None = None

class Jitter(Part):
    """A random part of the delay of each packet."""

    spread: DurationLike | None = None
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] | None = None
    correlation: float | None = None
    reorder: float | None = None
    reorder_correlation: float | None = None
    gap: int | None = None

class Slot(Part):
    """Slots: packets arrive in batches."""

    min: DurationLike | None = None
    max: DurationLike | Literal["none"] | None = None
    packets: int | Literal["none"] | None = None
    bytes: SizeLike | Literal["none"] | None = None

class RandomLoss(LossModel):
    """Random losses of single packets."""

    chance: float | None = None
    correlation: float | None = None

class GilbertElliott(LossModel):
    """Losses in bursts."""

    p: float | None = None
    r: float | Literal["none"] | None = None
    bad: float | None = None
    good: float | None = None

class LossList(LossModel):
    """Losses by the number of the packet."""

    packets: Sequence[Any]

class Outages(LossModel):
    """Intervals in which all packets are lost."""

    on: DurationLike | None = None
    off: DurationLike | None = None

class Shaper(Part):
    """A shaper between a queue and its link, one class of HTB or a TBF."""

    kind: Literal["htb", "tbf"] | None = None
    rate: RateLike
    ceil: RateLike | None = None
    burst: SizeLike | Literal["none"] | None = None
    cburst: SizeLike | Literal["none"] | None = None
    stab: bool | None = None
    link_layer: (
        Literal[
            "raw",
            "conservative",
            "ipoa-vcmux",
            "ipoa-llcsnap",
            "bridged-vcmux",
            "bridged-llcsnap",
            "pppoa-vcmux",
            "pppoa-llc",
            "pppoe-vcmux",
            "pppoe-llcsnap",
            "pppoe-ptm",
            "bridged-ptm",
            "docsis",
            "ethernet",
        ]
        | None
    ) = None
    overhead: Any | None = None
    mpu: Any | None = None
    framing: Literal["none", "atm", "ptm"] | None = None

class Driver(Part):
    """A driver with its own FIFO after the queue."""

    limit: LimitLike | None = None
    bql: bool | None = None
    interrupts: DurationLike | None = None

class Flow(Part):
    """A group of identical flows."""

    count: int | None = None
    path: str | Sequence[str]
    return_path: str | Sequence[str]
    workload: Workload | str | Mapping[str, Any] | None = None
    size: SizeLike | Literal["none"] | None = None
    source: str | None = None
    destination: str | None = None
    class_: int | str | None = None
    delays: bool | None = None
    access_delay: DistributionLike | None = None
    start: DistributionLike | DurationLike | None = None
    endpoint: Endpoint | str | Mapping[str, Any] | None = None
    reroutes: Sequence[Reroute | Mapping[str, Any]] | None = None
    transport: Transport | Mapping[str, Any] | None = None

class Reroute(Part):
    """A route change during the run."""

    at: DurationLike
    path: str | Sequence[str] | None = None
    return_path: str | Sequence[str] | None = None

class Record(Part):
    """Data recorded in addition to the summary."""

    level: Literal["summary", "series", "packets"] | None = None
    interval: DurationLike | None = None
    warmup: DurationLike | None = None
    flows: bool | None = None

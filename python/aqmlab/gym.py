"""Gymnasium environments: an agent controls a queue or a sender during simulated runs.

`QueueEnv` sets parameters of a queue in fixed intervals, `SenderEnv` the window or the rate of a
sender. `VectorEnv` steps several of either on all cores. docs/gym.md describes observations,
actions and rewards, and a trained example.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.random import Generator
from numpy.typing import NDArray

from aqmlab import _core
from aqmlab.errors import input_error, unknown
from aqmlab.scenario import Scenario
from aqmlab.scenario.quantity import canonical, in_unit, numbers
from aqmlab.study.single import load
from aqmlab.study.stepping import Run

__all__ = ["REWARDS", "Measured", "QueueEnv", "SenderEnv", "VectorEnv", "random_line"]

Observation = NDArray[np.float32]
Settings = Callable[[Generator], Mapping[str, Any]]
Source = str | Path | Mapping[str, Any] | Scenario

#: Largest absolute value in an observation.
BOUND = 10.0
#: Most that a sender may send, in multiples of the link's rate: it bounds the cost of a step.
EXCESS = 10
#: Bytes of a full packet.
PACKET = 1500

#: One access line with downloads. `random_line` draws its rate, delay and number of flows.
LINE: dict[str, Any] = {
    "links": {
        "down": {"rate": "20mbit", "delay": "10ms", "queue": "bernoulli"},
        "up": {"rate": "200mbit", "delay": "10ms"},
    },
    "flows": {"bulk": {"count": 4, "path": ["down"], "return_path": ["up"], "start": "0s"}},
    "bottleneck": "down",
}
#: The same line with one download whose sender the agent controls.
SENDER_LINE: dict[str, Any] = {
    "links": LINE["links"] | {"down": LINE["links"]["down"] | {"queue": "droptail"}},
    "flows": {"agent": {"path": ["down"], "return_path": ["up"]}},
    "bottleneck": "down",
}


def random_line(rng: Generator) -> dict[str, Any]:
    """Draws settings of an access line: 5 to 50 Mbit/s, 10 to 100 ms, a buffer of 0.25 s.

    Rate and delay are distributed evenly on a logarithmic scale. Scenarios with a group `bulk` get
    1 to 16 flows that start within a second; use `random_sender_line` for others.
    """
    settings = random_sender_line(rng)
    settings["flows.bulk.count"] = int(rng.integers(1, 17))
    settings["flows.bulk.start"] = {"each": ["0s", "1s"]}
    return settings


def random_sender_line(rng: Generator) -> dict[str, Any]:
    """Draws rate, delay and buffer as `random_line` does."""
    rate = int(5e6 * 10 ** rng.uniform())
    delay = 0.005 * 10 ** rng.uniform()
    return {
        "links.down.rate": f"{rate}bit",
        "links.down.delay": f"{round(delay * 1e9)}ns",
        "links.up.delay": f"{round(delay * 1e9)}ns",
        "links.down.queue.limit": f"{max(rate // 32, 10 * PACKET)}b",
    }


@dataclass(frozen=True)
class Measured:
    """Measurements of one interval, the arguments of rewards."""

    #: Length of the interval in seconds.
    interval: float
    #: Rate of the bottleneck in bit/s.
    capacity: float
    #: Delivered data in bit/s.
    throughput: float
    #: Round-trip time in seconds, at the end of the interval before, and without queues.
    rtt: float
    rtt_before: float
    base_rtt: float
    #: Share of lost packets.
    loss: float


def _power(m: Measured) -> float:
    """Throughput over delay, 1 for a full link without a queue.

    Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in computer
    communications" (ICC 1979).
    """
    return m.throughput / m.capacity * m.base_rtt / m.rtt


def _aurora(m: Measured) -> float:
    """10 throughput - 1000 latency - 2000 loss, with packets per second and seconds.

    Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion Control" (ICML
    2019), section 4.2.
    """
    return 10 * m.throughput / (8 * PACKET) - 1000 * m.rtt - 2000 * m.loss


def _orca(m: Measured) -> float:
    """Power, with a penalty for losses, and free of delays up to a quarter above the least.

    Abbasloo et al., "Classic Meets Modern: a Pragmatic Learning-Based Congestion Control for the
    Internet" (SIGCOMM 2020), equation 1. The weight of losses, 5, is this module's choice.
    """
    delay = m.base_rtt if m.rtt <= 1.25 * m.base_rtt else m.rtt
    lost = m.throughput * m.loss
    return (m.throughput - 5 * lost) / m.capacity * m.base_rtt / delay


def _vivace(m: Measured) -> float:
    """x^0.9 - 900 x dRTT/dt - 11.35 x L, with the rate x in Mbit/s.

    Dong et al., "PCC Vivace: Online-Learning Congestion Control" (NSDI 2018), section 4.
    """
    rate = m.throughput / 1e6
    slope = (m.rtt - m.rtt_before) / m.interval
    return float(rate**0.9 - 900 * rate * slope - 11.35 * rate * m.loss)


#: Reward functions by name; their documentation names the source.
REWARDS: dict[str, Callable[[Measured], float]] = {
    "power": _power,
    "aurora": _aurora,
    "orca": _orca,
    "vivace": _vivace,
}


class _Env(gymnasium.Env[Observation, NDArray[np.float32]]):
    """Common part: episodes of a scenario, in intervals."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Source,
        settings: Settings | None,
        reward: str | Callable[[Measured], float],
        interval: float,
        duration: float,
        link: str | None,
    ) -> None:
        if isinstance(reward, str) and reward not in REWARDS:
            raise input_error(f"unknown reward `{reward}`", hint=f"known: {', '.join(REWARDS)}")
        if not 0 < interval <= duration:
            raise input_error(f"interval: {interval}: above 0, and at most the duration")
        self._scenario, self._settings = scenario, settings or (lambda _: {})
        self._reward = REWARDS[reward] if isinstance(reward, str) else reward
        self._interval, self._duration, self._link = interval, duration, link
        self._run: Run | None = None
        self._is_prepared = False
        self._until = self._rtt = 0.0
        """Time of the end of this step; mean round-trip time of the last, which it lasts at
        least."""

    @property
    def run(self) -> Run:
        """The run of the episode, for measurements."""
        if self._run is None:
            raise input_error("the episode has not begun", hint="call reset() first")
        return self._run

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode: a run with drawn settings and a drawn seed of the engine.

        `options["set"]` contains further settings, `options["seed"]` the seed of the engine.
        """
        super().reset(seed=seed)
        options = options or {}
        settings = {**self._settings(self.np_random), **options.get("set", {})}
        settings["duration"] = f"{self._duration + self._interval}s"
        settings["seed"] = options.get("seed", int(self.np_random.integers(1 << 32)))
        self._until, self._is_prepared = 0.0, False
        # A discipline precedes its parameters.
        loaded = load(self._scenario, dict(sorted(settings.items())))
        self._run = Run(loaded)
        self._name, self._capacity, self._base_rtt = _bottleneck(loaded, self._link)
        self._begin()
        rtt = self._base_rtt
        idle = Measured(self._interval, self._capacity, 0.0, rtt, rtt, rtt, 0.0)
        return self._observe(idle), {}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets what the action says, unless `prepare` did, and runs for one interval."""
        if not self._is_prepared:
            self.prepare(action)
        self.run.advance(self._until)
        return self.complete()

    def prepare(self, action: NDArray[np.float32]) -> float:
        """First half of a step: applies the action. Returns the time to advance to.

        Raises `InputError` for an action of another shape or with NaN.
        """
        given, shape = np.asarray(action, dtype=np.float64), self.action_space.shape
        if given.shape != shape or np.isnan(given).any():
            problem = f"expected numbers from -1 to 1 in an array of shape {shape}"
            raise input_error(problem, key="action", given=action)
        self._act(np.clip(given, -1, 1))
        self._is_prepared = True
        self._until += max(self._interval, self._rtt)
        return self._until

    def complete(self) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Second half of a step, after the run has advanced."""
        self._is_prepared = False
        measured = self._measure()
        is_over = self._until >= self._duration - 1e-9 or self.run.is_over
        observed = self._observe(measured)
        return observed, float(self._reward(measured)), False, is_over, {"measured": measured}

    def _begin(self) -> None:
        raise NotImplementedError

    def _act(self, action: NDArray[np.float64]) -> None:
        raise NotImplementedError

    def _measure(self) -> Measured:
        raise NotImplementedError

    def _observe(self, measured: Measured) -> Observation:
        raise NotImplementedError


def _bottleneck(scenario: _core.Scenario, link: str | None) -> tuple[str, float, float]:
    """Name and rate of the controlled link, and the base round-trip time of the scenario."""
    table = json.loads(scenario.resolved)
    name = link or table["bottleneck"]
    if name not in table["links"]:
        raise input_error(f"link: `{name}`: no link of the scenario")
    rate = table["links"][name]["rate"]
    delays = {key: table["links"][key].get("delay", "0s") for key in table["links"]}
    if not all(isinstance(text, str) for text in [rate, *delays.values()]):
        raise input_error("environments need links with constant rate and delay")
    rtts = [
        sum(canonical(delays[hop]) for hop in [*flows["path"], *flows["return_path"]])
        for flows in table["flows"].values()
    ]
    return name, canonical(rate), max(*rtts, 1e-3)


def _bounded(values: Sequence[float]) -> Observation:
    return np.clip(np.nan_to_num(values, nan=0.0), -BOUND, BOUND).astype(np.float32)


class QueueEnv(_Env):
    """An agent sets parameters of the bottleneck's queue.

    Parameters
    ----------
    scenario : path, mapping or Scenario
        As in `aqmlab.run`. Default: an access line with downloads and the queue `bernoulli`.
    actions : mapping
        For each changed parameter of the queue its least and largest value, on a logarithmic scale,
        for example `{"target": (0.001, 0.1)}`: times in seconds, sizes in bytes, limits in packets
        or bytes as the scenario has them, other parameters as numbers. Default: the drop
        probability. Each value of an action is from -1 (least) to 1 (largest); the least
        probability stands for 0.
    settings : callable, optional
        Draws settings of an episode from a NumPy generator. Default: `random_line` for the default
        scenario, otherwise none.
    reward : str or callable
        Name in `REWARDS`, or a function of `Measured`.
    interval, duration : float
        Seconds of a step and of an episode.
    link : str, optional
        Name of the link. Default: the bottleneck.
    """

    def __init__(
        self,
        scenario: Source | None = None,
        *,
        actions: Mapping[str, tuple[float, float]] | None = None,
        settings: Settings | None = None,
        reward: str | Callable[[Measured], float] = "power",
        interval: float = 0.1,
        duration: float = 20.0,
        link: str | None = None,
    ) -> None:
        if scenario is None:
            settings = settings or random_line
        super().__init__(LINE if scenario is None else scenario, settings, reward, interval,
                         duration, link)  # fmt: skip
        self._actions = dict({"probability": (1e-4, 0.5)} if actions is None else actions)
        if any(not 0 < low < high for low, high in self._actions.values()):
            raise input_error("actions: a least and a larger value, both above 0, for each key")
        count = len(self._actions)
        self.action_space = Box(-1, 1, (count,), np.float32)
        self.observation_space = Box(-BOUND, BOUND, (6 + count,), np.float32)

    def _begin(self) -> None:
        self._last = self._before = self._sample()
        self._acted = np.full(len(self._actions), -1.0)
        queue = json.loads(self.run.scenario.resolved)["links"][self._name]["queue"]
        known = {key: numbers([queue.get(key, "none")]) for key in self._actions}
        # A parameter that is off (`none`, `auto`) is a time.
        self._units = {key: found[1] if found else "s" for key, found in known.items()}

    def _act(self, action: NDArray[np.float64]) -> None:
        self._acted = action
        pairs = zip(self._actions.items(), action, strict=True)
        for (key, (low, high)), position in pairs:
            value = float(low * (high / low) ** ((position + 1) / 2))
            if key == "probability" and position <= -1:
                value = 0.0
            self.run.set(f"links.{self._name}.queue.{key}", in_unit(value, self._units[key]))

    def _sample(self) -> dict[str, float]:
        link: dict[str, float] = self.run.observe()["links"][self._name]
        return link

    def _measure(self) -> Measured:
        now, before = self._sample(), self._last
        self._last, self._before = now, before

        def change(key: str) -> float:
            return now[key] - before[key]

        delay = [8 * each["backlog_bytes"] / self._capacity for each in (before, now)]
        dropped = change("dropped")
        return Measured(
            interval=self._interval,
            capacity=self._capacity,
            throughput=8 * change("delivered_bytes") / self._interval,
            rtt=self._base_rtt + delay[1],
            rtt_before=self._base_rtt + delay[0],
            base_rtt=self._base_rtt,
            loss=dropped / max(dropped + change("delivered_packets"), 1),
        )

    def _observe(self, measured: Measured) -> Observation:
        now, before = self._last, self._before
        marked = now["marked"] - before["marked"]
        packets = max(now["delivered_packets"] - before["delivered_packets"], 1)
        kept = 8 * (now["backlog_bytes"] - before["backlog_bytes"]) / measured.interval
        delay = measured.rtt - measured.base_rtt
        return _bounded([
            10 * delay,
            10 * (measured.rtt - measured.rtt_before),
            measured.throughput / measured.capacity,
            (measured.throughput + kept) / measured.capacity,
            10 * measured.loss,
            10 * marked / packets,
            *self._acted,
        ])  # fmt: skip


class SenderEnv(_Env):
    """An agent sets the congestion window or the rate of one group of senders.

    Parameters
    ----------
    scenario : path, mapping or Scenario
        As in `aqmlab.run`, with a group of TCP flows `flow`. Default: an access line with one flow.
    flow : str
        Name of the group. Its flows have the congestion control `steered`.
    control : {"window", "rate"}
        An action a from -1 to 1 multiplies the window by 2^a (Orca), or the rate by 1 + 0.1 a
        (or divides it by 1 - 0.1 a, if a is negative, as in Aurora with another step). Each flow
        sends at most ten times the link's rate.
    interval : float
        Least length of a step in seconds; it lasts at least the mean round-trip time of the last.
    settings, reward, duration, link
        As in `QueueEnv`.
    """

    def __init__(
        self,
        scenario: Source | None = None,
        *,
        flow: str = "agent",
        control: Literal["window", "rate"] = "window",
        settings: Settings | None = None,
        reward: str | Callable[[Measured], float] = "orca",
        interval: float = 0.02,
        duration: float = 20.0,
        link: str | None = None,
    ) -> None:
        if control not in ("window", "rate"):
            raise unknown("action", control, ("window", "rate"), key="control")
        if scenario is None:
            settings = settings or random_sender_line
        super().__init__(SENDER_LINE if scenario is None else scenario, settings, reward, interval,
                         duration, link)  # fmt: skip
        self._flow, self._control = flow, control
        self.action_space = Box(-1, 1, (1,), np.float32)
        self.observation_space = Box(-BOUND, BOUND, (6,), np.float32)

    def _begin(self) -> None:
        self._time = self.run.time
        self._window, self._rate = 10.0 * PACKET, 1e6
        self._best, self._rtt, self._least = 1.0, self._base_rtt, math.inf
        self._slope = self._marked = 0.0
        self._set()
        self.run.samples(self._flow)  # begins to record

    def _set(self) -> None:
        if self._control == "window":
            self.run.act(self._flow, cwnd=self._window)
        else:
            self.run.act(self._flow, pacing_rate=self._rate)

    def _act(self, action: NDArray[np.float64]) -> None:
        a = float(action[0])
        most = EXCESS * self._capacity
        self._window = max(min(self._window * 2**a, most / 8 * self._rtt), 2.0 * PACKET)
        self._rate *= 1 + 0.1 * a if a >= 0 else 1 / (1 - 0.1 * a)
        self._rate = max(min(self._rate, most), 1e5)
        self._set()

    def _measure(self) -> Measured:
        acks = {key: np.array(values) for key, values in self.run.samples(self._flow).items()}
        elapsed = max(self.run.time - self._time, 1e-9)
        self._time = self.run.time
        known = np.isfinite(acks["rtt_s"])
        times, rtts = acks["time_s"][known], acks["rtt_s"][known]
        rtt_before = self._rtt
        if rtts.size:
            self._rtt = float(rtts.mean())
            self._least = min(self._least, float(rtts.min()))
        away = times - times.mean() if times.size else times
        self._slope = float(away @ rtts / max(away @ away, 1e-12))
        self._marked = float(acks["marked"].mean()) if acks["marked"].size else 0.0
        acked, lost = acks["delivered_bytes"].sum(), acks["lost_bytes"].sum()
        return Measured(
            interval=elapsed,
            capacity=self._capacity,
            throughput=8 * acked / elapsed,
            rtt=self._rtt,
            rtt_before=rtt_before,
            base_rtt=min(self._least, self._rtt),
            loss=lost / max(acked + lost, 1),
        )

    def _observe(self, measured: Measured) -> Observation:
        self._best = max(self._best, measured.throughput)
        sent = self._rate if self._control == "rate" else 8 * self._window / measured.rtt
        return _bounded([
            measured.rtt / measured.base_rtt - 1,
            self._slope,
            math.log2(max(sent, 1) / max(measured.throughput, 1e4)),
            10 * measured.loss,
            self._marked,
            measured.throughput / self._best,
        ])  # fmt: skip


class VectorEnv(gymnasium.vector.SyncVectorEnv):
    """Steps several environments at once: their runs advance in threads without the GIL.

    Episodes that ended begin again with the next step, which ignores the action
    (`AutoresetMode.NEXT_STEP`).

    Parameters
    ----------
    make : callable
        Makes one environment: `QueueEnv`, `SenderEnv` or a function that returns one.
    count : int
        Number of environments.
    threads : int, optional
        Number of threads. Default: the number of cores.
    """

    envs: list[QueueEnv | SenderEnv]  # type: ignore[assignment]

    def __init__(
        self, make: Callable[[], QueueEnv | SenderEnv], count: int, *, threads: int | None = None
    ) -> None:
        if count < 1:
            raise input_error(f"count: {count}: at least 1")
        super().__init__([make] * count)
        self._threads = threads or os.cpu_count() or 1

    def reset(
        self,
        *,
        seed: int | np.integer[Any] | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins all episodes; with one seed, environment k has the seed plus k."""
        if isinstance(seed, np.integer):
            seed = int(seed)
        own = seed if seed is None or isinstance(seed, int) else list(seed)
        return super().reset(seed=own, options=options)

    def advance(self, which: Sequence[int], until: Sequence[float]) -> None:
        """Advances the runs of some environments, each to its time, in threads."""
        _core.advance_all([self.envs[k].run._run for k in which], until, self._threads)

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Any]:
        """Makes a step of each environment, or begins its next episode.

        The last value is a dictionary as Gymnasium's vector environments return it: `measured` is
        an array with one `Measured` for each environment, None where an episode begins.
        """
        going = [k for k in range(self.num_envs) if not self._autoreset_envs[k]]
        self.advance(going, [self.envs[k].prepare(actions[k]) for k in going])
        return super().step(actions)


def _vector(make: type[QueueEnv | SenderEnv]) -> Callable[..., VectorEnv]:
    """For `gymnasium.make_vec(..., vectorization_mode="vector_entry_point")`."""
    return lambda num_envs, **settings: VectorEnv(lambda: make(**settings), num_envs)


for _name, _make in {"Queue": QueueEnv, "Sender": SenderEnv}.items():
    gymnasium.register(
        f"aqmlab/{_name}-v0",
        entry_point=f"aqmlab.gym:{_make.__name__}",
        vector_entry_point=_vector(_make),
    )

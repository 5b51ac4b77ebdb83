"""Trains a linear policy for the queue environment by CMA-ES, and compares it with AQMs.

`python -m tools.gym_example` trains on drawn access lines, evaluates the policy and the disciplines
on the same held-out lines, and writes the tables into docs/gym.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import cma
import numpy as np
from numpy.random import Generator

from aqmlab.gym import Measured, QueueEnv, VectorEnv, random_line

PAGE = Path(__file__).parents[1] / "docs" / "gym.md"
BEGIN, END = "<!-- below: made by `python -m tools.gym_example` -->", "<!-- end -->"

DURATION, EPISODES, POPULATION, GENERATIONS = 10.0, 8, 8, 20
HELD_OUT = range(1_000_000, 1_000_040)

Policy = Callable[[Any], Any]


def heavy_line(rng: Generator) -> dict[str, Any]:
    """A line outside of the training distribution: 2 to 5 Mbit/s with 20 to 32 flows."""
    rate = int(rng.uniform(2e6, 5e6))
    more = {
        "links.down.rate": f"{rate}bit",
        "links.down.queue.limit": f"{rate // 32}b",
        "flows.bulk.count": int(rng.integers(20, 33)),
    }
    return random_line(rng) | more


def policy(weights: Any) -> Policy:
    """The linear policy: the tangent of a weighted sum of observations and a constant."""

    def act(observed: Any) -> Any:
        return np.tanh(observed @ weights[:-1] + weights[-1])[..., None]

    return act


def episodes(
    act: Policy | None, seeds: range, settings: Callable[[Generator], Any], more: dict[str, Any]
) -> list[list[Measured]]:
    """The measurements of one episode for each seed, with all but the first two seconds."""
    actions: dict[str, tuple[float, float]] | None = {} if act is None else None
    vector = VectorEnv(
        lambda: QueueEnv(actions=actions, settings=settings, duration=DURATION), len(seeds)
    )
    observed, _ = vector.reset(seed=list(seeds), options={"set": more})
    kept: list[list[Measured]] = [[] for _ in seeds]
    for _ in range(round(DURATION / 0.1)):
        chosen = act(observed) if act else np.zeros((len(seeds), 0), np.float32)
        until = [env.prepare(action) for env, action in zip(vector.envs, chosen, strict=True)]
        vector.advance(list(range(len(seeds))), until)
        done = [env.complete() for env in vector.envs]
        observed = np.stack([each[0] for each in done])
        for measured, each in zip(kept, done, strict=True):
            measured.append(each[4]["measured"])
    return [each[20:] for each in kept]


def power(measured: list[Measured]) -> float:
    """The mean reward of an episode."""
    return float(np.mean([m.throughput / m.capacity * m.base_rtt / m.rtt for m in measured]))


def train() -> Any:
    """The weights of the policy after all generations."""
    search = cma.CMAEvolutionStrategy(
        8 * [0.0], 1.0, {"popsize": POPULATION, "seed": 1, "verbose": -9}
    )
    for generation in range(GENERATIONS):
        seeds = range(generation * EPISODES, (generation + 1) * EPISODES)
        tried = search.ask()
        costs = [
            -np.mean([power(each) for each in episodes(policy(weights), seeds, random_line, {})])
            for weights in tried
        ]
        search.tell(tried, costs)
        print(f"generation {generation + 1}: {-min(costs):.3f}", flush=True)
    return np.round(search.result.xfavorite, 3)


def table(weights: Any, settings: Callable[[Generator], Any]) -> list[str]:
    """The rows of a table: each discipline on the held-out lines, with paired differences."""
    queue = "links.down.queue"
    contestants: list[tuple[str, Policy | None, dict[str, Any]]] = [
        ("linear policy", policy(weights), {}),
        ("constant probability, 1 %", None, {f"{queue}.probability": 0.01}),
        *[(name, None, {queue: name}) for name in ("codel", "pie", "red", "ared", "droptail")],
    ]
    rows, reference = [], np.zeros(len(HELD_OUT))
    for name, act, more in contestants:
        runs = episodes(act, HELD_OUT, settings, more)
        rewards = np.array([power(run) for run in runs])
        if name == "linear policy":
            reference = rewards
        used = np.mean([[m.throughput / m.capacity for m in run] for run in runs])
        delays = np.array([[m.rtt - m.base_rtt for m in run] for run in runs]) * 1e3
        loss = 100 * np.mean([[m.loss for m in run] for run in runs])
        difference = rewards - reference
        wide = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
        against = "-" if act else f"{difference.mean():+.3f} ± {wide:.3f}"
        rows.append(
            f"| {name} | {rewards.mean():.3f} | {against} | {100 * used:.1f} % "
            f"| {delays.mean():.1f} ms | {np.percentile(delays, 95):.1f} ms | {loss:.2f} % |"
        )
    return rows


def main() -> None:
    """Trains, evaluates and writes."""
    text, began = PAGE.read_text(), process_time()
    weights = train()
    trained = process_time() - began
    head = [
        "| queue | mean power | difference to the policy | utilisation | mean delay "
        "| 95th percentile | dropped |",
        "|---|---|---|---|---|---|---|",
    ]
    lines = [
        f"{GENERATIONS} generations of {POPULATION} policies with {EPISODES} episodes each took "
        f"{trained:.0f} s of processor time.",
        f"The weights: `{json.dumps(weights.tolist())}`",
        "",
        f"**Held-out lines of the training distribution** ({len(HELD_OUT)}):",
        "",
        *head,
        *table(weights, random_line),
        "",
        f"**Lines outside of it** (2 to 5 Mbit/s, 20 to 32 flows; {len(HELD_OUT)}):",
        "",
        *head,
        *table(weights, heavy_line),
    ]
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}")


if __name__ == "__main__":
    main()

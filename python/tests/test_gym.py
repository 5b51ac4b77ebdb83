"""Gymnasium environments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import aqmlab
from aqmlab.gym import REWARDS, Measured, QueueEnv, SenderEnv, VectorEnv

Make = Callable[[], QueueEnv | SenderEnv]
MAKES: dict[str, Make] = {
    "queue": lambda: QueueEnv(duration=2.0),
    "target": lambda: QueueEnv(
        actions={"target": (0.001, 0.1)},
        duration=2.0,
        settings=lambda _: {"links.down.queue": "codel"},
    ),
    "window": lambda: SenderEnv(duration=2.0),
    "rate": lambda: SenderEnv(duration=2.0, control="rate", reward="aurora"),
}


@pytest.mark.parametrize("name", MAKES)
def test_an_environment_passes_the_checks_of_gymnasium(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*render.*|.*unwrapped.*|.*passive.*")
        check_env(MAKES[name](), skip_render_check=True)


def test_environments_are_registered() -> None:
    env = gymnasium.make("aqmlab/Queue-v0", duration=1.0)
    env.reset(seed=1)
    assert isinstance(env.unwrapped, QueueEnv)
    many = gymnasium.make_vec(
        "aqmlab/Sender-v0", 2, vectorization_mode="vector_entry_point", control="rate"
    )
    assert isinstance(many.unwrapped, VectorEnv)
    assert many.reset(seed=1)[0].shape == (2, 6)


@pytest.mark.parametrize("name", ["queue", "window"])
def test_several_threads_give_what_single_environments_give(name: str) -> None:
    rng = np.random.default_rng(3)
    vector = VectorEnv(MAKES[name], 5, threads=2)
    actions = rng.uniform(-1, 1, (12, 5, 1)).astype(np.float32)
    begun, _ = vector.reset(seed=np.int64(7))
    steps = [vector.step(action) for action in actions]
    for k in range(5):
        env = MAKES[name]()
        observed, _ = env.reset(seed=7 + k)
        assert np.array_equal(observed, begun[k])
        for action, step in zip(actions, steps, strict=True):
            observed, reward, *_, info = env.step(action[k])
            assert np.array_equal(observed, step[0][k])
            assert reward == step[1][k]
            assert info["measured"] == step[4]["measured"][k]


@pytest.mark.parametrize("name", MAKES)
def test_an_episode_does_not_depend_on_the_one_before(name: str) -> None:
    env = MAKES[name]()

    def episode() -> list[object]:
        seen: list[object] = [env.reset(seed=5)[0].tolist()]
        for step in range(15):
            observed, reward, *_ = env.step(np.full(1, step / 15 - 0.5, np.float32))
            seen.append((observed.tolist(), reward))
        return seen

    assert episode() == episode()


def test_an_episode_that_ended_begins_again() -> None:
    vector = VectorEnv(lambda: QueueEnv(duration=0.3), 2)
    vector.reset(seed=1)
    over = [bool(vector.step(np.zeros((2, 1), np.float32))[3][0]) for _ in range(8)]
    assert over == [False, False, True, False, False, False, True, False]


def test_a_window_and_a_probability_have_their_effects() -> None:
    def mean(env: QueueEnv | SenderEnv, action: float) -> Measured:
        env.reset(seed=4)
        over, all_measured = False, []
        while not over:
            _, _, _, over, info = env.step(np.full(1, action, np.float32))
            all_measured.append(info["measured"])
        last = all_measured[len(all_measured) // 2 :]
        fields = ("throughput", "rtt", "loss")
        means = {key: float(np.mean([getattr(m, key) for m in last])) for key in fields}
        return Measured(interval=1, capacity=last[0].capacity, rtt_before=1,
                        base_rtt=last[0].base_rtt, **means)  # fmt: skip

    never, often = (mean(QueueEnv(duration=6.0), action) for action in (-1, 0.3))
    assert never.rtt > 2 * often.rtt
    assert often.loss > 0.01
    small, large = (mean(SenderEnv(duration=6.0), action) for action in (-1, 1))
    assert small.throughput < 0.5 * large.throughput
    assert small.rtt < 1.2 * small.base_rtt


@pytest.mark.parametrize("control", ["window", "rate"])
def test_a_sender_that_always_increases_does_not_make_steps_endless(
    control: Literal["window", "rate"],
) -> None:
    env = SenderEnv(control=control, duration=9.0)
    env.reset(seed=4)
    over = False
    while not over:
        _, _, _, over, info = env.step(np.ones(1, np.float32))
    assert info["measured"].loss < 0.95, "ten times the link's rate"


def test_rewards_prefer_throughput_without_delay_and_losses() -> None:
    good = Measured(0.1, 1e7, 9e6, 0.05, 0.05, 0.05, 0.0)
    slow = Measured(0.1, 1e7, 3e6, 0.05, 0.05, 0.05, 0.0)
    late = Measured(0.1, 1e7, 9e6, 0.5, 0.4, 0.05, 0.0)
    lossy = Measured(0.1, 1e7, 9e6, 0.05, 0.05, 0.05, 0.2)
    for name, reward in REWARDS.items():
        assert reward(good) > reward(slow), name
        assert reward(good) > reward(late), name
        assert name == "power" or reward(good) > reward(lossy), name
    assert REWARDS["power"](Measured(1, 1e7, 1e7, 0.1, 0.1, 0.05, 0)) == 0.5
    # Vivace, 9 Mbit/s, RTT rising by 0.1 s in 0.1 s.
    assert REWARDS["vivace"](late) == pytest.approx(9**0.9 - 900 * 9 * 1.0)


@pytest.mark.parametrize(
    ("queue", "key", "ends", "value"),
    [
        ("red", "max_p", (0.01, 0.25), "0.05"),
        ("red", "min_threshold", (4, 16), "8p"),
        ("fq_codel", "quantum", (300, 1200), "600b"),
        ("codel", "target", (0.001, 0.1), "10ms"),
        ("pi2", "target", (0.001, 0.1), "10ms"),
    ],
)
def test_an_action_has_the_unit_of_its_parameter(
    queue: str, key: str, ends: tuple[float, float], value: str
) -> None:
    env = QueueEnv(actions={key: ends}, settings=lambda _: {"links.down.queue": queue})
    env.reset(seed=1)
    env.step(np.zeros(1, np.float32))
    assert env.run.scenario.table["changes"][-1]["value"][key] == value


def test_a_wrong_action_changes_nothing() -> None:
    for env in (QueueEnv(), SenderEnv()):
        env.reset(seed=1)
        wrong: list[Any] = [np.zeros(2), 0.3, np.array([np.nan])]
        for action in wrong:
            with pytest.raises(aqmlab.InputError, match=r"action: .*array of shape \(1,\)"):
                env.step(action)
        assert np.isfinite(env.step(np.array([np.inf], np.float32))[0]).all()


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(aqmlab.InputError, match=r"unknown reward `best`.*aurora"):
        QueueEnv(reward="best")
    with pytest.raises(aqmlab.InputError, match=r"control: `pace`: .*window, rate"):
        SenderEnv(control="pace")  # type: ignore[arg-type]
    with pytest.raises(aqmlab.InputError, match="nowhere"):
        QueueEnv(link="nowhere").reset()
    with pytest.raises(aqmlab.InputError, match=r"call reset\(\) first"):
        QueueEnv().step(np.zeros(1, np.float32))
    with pytest.raises(aqmlab.InputError, match="probabilit"):
        env = QueueEnv(settings=lambda _: {"links.down.queue": "codel"})
        env.reset()
        env.step(np.zeros(1, np.float32))

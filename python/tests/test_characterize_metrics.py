"""The metrics and rules of `aqmlab characterize`, with manually computed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from math import exp, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aqmlab.campaign.outcomes import (
    BETTER,
    EVEN,
    OPEN,
    TRADE,
    UNDECIDED,
    VIOLATION,
    WORSE,
    Beside,
    Outcome,
    RuleNumber,
    judged,
)
from aqmlab.campaign.rule import picks
from aqmlab.metrics.samples import unfairness
from aqmlab.packs.rfc7928 import Environment, sections
from aqmlab.packs.rfc7928.environment import (
    Contender,
    congestion_flows,
    scaled,
)
from aqmlab.packs.rfc7928.mixes import mix
from aqmlab.packs.rfc7928.rules import (
    _favours,
    of_all_flows,
    packet_sizes,
    trade,
    unresponsive,
)
from aqmlab.packs.rfc7928.rules import rtt_fairness as rtt_rule
from aqmlab.report.document.panels import ellipse


def test_an_ellipse_has_the_deviations_as_half_axes() -> None:
    # Variances of 1 with the divisor n, no covariance: a circle.
    centre, line = ellipse(np.array([0, 2, 0, 2]), np.array([0, 0, 2, 2]))
    assert centre.T.tolist() == [[1, 1]]
    assert np.hypot(*(line - centre)) == pytest.approx(1)
    # Variances 2/3, covariance 2/3: eigenvalues 4/3 and 0.
    centre, (x, y) = ellipse(np.arange(3), np.arange(3))
    assert x.max() == pytest.approx(1 + sqrt(4 / 3) / sqrt(2))
    assert np.allclose(x, y)
    centre, line = ellipse(np.array([3.0]), np.array([4.0]))
    assert centre.T.tolist() == [[3, 4]] and (line == centre).all()


def test_points_within_the_ellipse_are_as_many_as_it_says() -> None:
    random = np.random.default_rng(1)
    x = random.normal(5, 2, 20000)
    y = 0.7 * x + random.normal(0, 1, 20000)
    centre, line = ellipse(x, y)
    # A circle where distances are those of the distribution.
    inverse = np.linalg.inv(np.cov(x, y))
    apart = [np.einsum("ij,ik,kj->j", each, inverse, each)
             for each in (line - centre, np.array([x, y]) - centre)]  # fmt: skip
    assert apart[0] == pytest.approx(1, abs=1e-3)
    assert np.mean(apart[1] <= 1) == pytest.approx(1 - exp(-0.5), abs=0.01)


def test_shares_and_ratios() -> None:
    # A factor of 2 either way: the mean of |ln| is ln 2.
    assert unfairness([2, 0.5]) == pytest.approx(2)
    assert unfairness([1, 1, 1]) == 1
    assert unfairness([4, 1]) == pytest.approx(2)


def test_congestion_levels_are_those_of_the_rfc() -> None:
    # 10 Mbit/s x 100 ms = 83.3 packets of 1500 bytes; S = 83 + 83.
    place = Environment()
    assert (place.bdp(), place.limit(), place.places) == (83, 83, 166)
    # 0.036 S = 5.98, 0.081 S = 13.4, 0.114 S = 18.9.
    assert (place.mild, place.medium, place.heavy) == (6, 13, 19)
    # The RFC's factors are sqrt(l_r / 0.76) for 0.1, 0.5 and 1 % loss.
    for share, loss in ((0.036, 0.001), (0.081, 0.005), (0.114, 0.01)):
        assert sqrt(loss / 0.76) == pytest.approx(share, abs=0.001)
    assert congestion_flows(0.036, 3) == 1
    assert Environment(buffer=2.0).limit() == 167 - 1


@pytest.mark.parametrize(
    ("text", "factor", "expected"),
    [
        ("5ms", 0.5, "2.5ms"),
        ("15ms", 4, "60ms"),
        ("83p", 0.25, "21p"),
        ("1p", 0.25, "1p"),
        ("400000b", 2, "800000b"),
        ("auto", 2, None),
        ("", 2, None),
    ],
)
def test_quantities_are_scaled(text: str, factor: float, expected: str | None) -> None:
    assert scaled(text, factor) == expected


@pytest.mark.parametrize(
    ("name", "knob"),
    [
        ("codel", "target"),
        ("red", "min_threshold"),
        ("ared", "target_delay"),
        ("droptail", "limit"),
        ("pi", "reference"),
        ("cake", "interval"),
    ],
)
def test_every_discipline_has_its_knob(name: str, knob: str) -> None:
    contender = Contender.of(name)
    assert contender.knob(83) == knob
    assert len(contender.knob_values(83)) == 5


def test_disciplines_with_a_queue_for_each_flow_are_known() -> None:
    with_queues = {
        name
        for name in ("codel", "fq_codel", "fq_pie", "cake", "sfq_codel", "drr", "dualpi2", "sfb")
        if Contender.of(name).has_flow_queues
    }
    assert with_queues == {"fq_codel", "fq_pie", "cake", "sfq_codel", "drr"}


def test_red_moves_both_thresholds() -> None:
    _, most = Contender.of("red").knob_values(83)[-1]
    assert most == {"min_threshold": "20p", "max_threshold": "60p"}


def test_settings_stand_above_what_a_scenario_wishes() -> None:
    contender = Contender.of("codel", {"queue.target": "7ms", "ecn": False})
    queue = contender.queue(83, ecn=True, batch_drop=True)
    assert queue == {"discipline": "codel", "limit": "83p", "target": "7ms", "ecn": False}
    assert contender.queue(83, {"target": "1ms"})["target"] == "1ms"


@pytest.mark.parametrize(
    ("delay", "goodput", "outcome"),
    [
        ((5, 50), (99, 100), BETTER),
        ((5, 50), (95, 100), TRADE),
        ((5, 50), (70, 100), TRADE),
        ((40, 50), (70, 100), WORSE),
        ((45, 50), (100, 100), EVEN),
        ((45, 50), (97, 100), WORSE),
        ((45, 50), (103, 100), BETTER),
        ((80, 50), (100, 100), WORSE),
        ((12, 2), (107, 100), TRADE),
        ((97, 10), (242, 100), TRADE),
        ((1.8, 0.7), (885, 104), BETTER),
    ],
)
def test_the_rule_of_most_sections(
    delay: tuple[float, float], goodput: tuple[float, float], outcome: str
) -> None:
    assert trade(delay[0] / delay[1], goodput[0] / goodput[1] - 1) == outcome
    reverse = {BETTER: WORSE, WORSE: BETTER}.get(outcome, outcome)
    assert trade(delay[1] / delay[0], goodput[1] / goodput[0] - 1) == reverse


def test_of_two_queues_beside_datagrams_only_one_is_better() -> None:
    """A short queue, and a long one in which TCP gets more of the 2.5 Mbit/s that are left."""
    case, numbers = "UDP 0.75 C + TCP", {"own": (0.014, 2e6), "other": (0.037, 3.5e6)}
    values: dict[tuple[str, ...], Any] = {}
    for name, (delay, goodput) in numbers.items():
        values[case, name, "down", "sojourn_mean"] = delay
        values[case, name, "bulk", "goodput"] = goodput
    short = view(values)
    assert unresponsive(short).outcome == BETTER
    assert unresponsive(Beside(short.other, short.own)).outcome == TRADE


def test_an_outcome_holds_over_the_whole_interval() -> None:
    def rule(value: float) -> str:
        return BETTER if value <= 1 else WORSE if value >= 2 else EVEN

    def found(value: float, low: float, high: float) -> tuple[str, tuple[str, ...]]:
        finding = judged(rule, "x", RuleNumber(value, low, high, (1, 2)))
        return finding.outcome, finding.possible

    assert found(0.8, 0.7, 0.9) == (BETTER, ())
    assert found(0.8, 0.7, 1.1) == (UNDECIDED, (BETTER, EVEN))
    # Neither end is even: what lies between the thresholds counts too.
    assert found(0.8, 0.7, 2.5) == (UNDECIDED, (BETTER, EVEN, WORSE))
    nothing = judged(rule, "x", RuleNumber(float("nan"), 0, 0))
    assert nothing.outcome == OPEN
    few = judged(rule, "x", RuleNumber(0.5, 0.5, 0.5, (1, 2), "2 values are too few"))
    assert few.outcome == UNDECIDED
    assert "2 values are too few" in few.text


RUNS = 10


class Numbers:
    """Results with given numbers: one for all runs, or one for each."""

    replications = RUNS

    def __init__(self, values: Mapping[Any, Any], contender: str, slot: Any) -> None:
        self.contender, self.slot = contender, slot
        self.given = {
            (case, metric, subject): np.broadcast_to(np.asarray(given, dtype=float), RUNS)
            for (case, name, subject, metric), given in values.items()
            if name == contender
        }
        self.picked: Any = slice(None)

    def drawn(self, number: int) -> Numbers:
        found = copy(self)
        found.picked = picks(RUNS)[number]
        return found

    def values(self, *key: str) -> np.ndarray:
        found: np.ndarray = self.given.get(key, np.full(RUNS, np.nan))[self.picked]
        return found

    def mean(self, *key: str) -> float:
        values = self.values(*key)
        return float(values[np.isfinite(values)].mean()) if np.isfinite(values).any() else np.nan

    def scenario(self, _: str) -> dict[str, Any]:
        return {"links": {"down": {"rate": "10mbit"}}}

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(case for case, _, _ in self.given))


def view(values: Mapping[Any, Any], *, has_flow_queues: bool = False) -> Beside:
    slot = SimpleNamespace(has_flow_queues=has_flow_queues)
    own, other = (Numbers(values, name, slot) for name in ("own", "other"))
    return Beside(own, other)  # type: ignore[arg-type]


def spread(mean: float, apart: float) -> list[float]:
    """Ten numbers with this mean."""
    return [mean + apart * step for step in (-1.5, -1, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1, 1.5)]


def of_queues(own: Any, other: Any) -> str:
    """The outcome of delays at equal goodput."""
    values = {
        ("", "own", "down", "sojourn_mean"): own,
        ("", "other", "down", "sojourn_mean"): other,
        ("", "own", "all", "goodput"): 1.0,
        ("", "other", "all", "goodput"): 1.0,
    }
    return of_all_flows(view(values)).outcome


@pytest.mark.parametrize(
    ("own", "apart", "outcome"),
    [(0.78, 0.001, BETTER), (0.78, 0.05, UNDECIDED), (0.5, 0.05, BETTER), (0.82, 0.001, EVEN)],
)
def test_a_verdict_near_a_threshold_is_not_decided(own: float, apart: float, outcome: str) -> None:
    assert of_queues(spread(own, apart), 1.0) == outcome


def test_what_disciplines_have_in_common_in_a_replication_cancels() -> None:
    common = np.array(spread(1.0, 0.3))
    assert of_queues(0.7 * common, common) == BETTER
    assert of_queues(0.7 * common, common[::-1]) == UNDECIDED


def test_runs_without_a_value_do_not_decide() -> None:
    """The pages of three runs do not load with the discipline."""
    some = [0.4] * 7 + [np.nan] * 3
    assert of_queues(0.4, 1.0) == BETTER
    assert of_queues(some, 1.0) == of_queues(1.0, some) == UNDECIDED
    # What both lack in the same runs leaves pairs.
    assert of_queues(some, np.array(some) / 0.4) == BETTER
    # All values lead to one outcome.
    unknown = RuleNumber(0.8, 0.8, 0.8, (0.5,), "some replications have no value")
    assert judged(lambda value: WORSE, "x", unknown).outcome == WORSE


SENDERS = ("", "jitter", "paced", "both ways")


@pytest.mark.parametrize(
    ("ratios", "outcome"),
    [
        ((0.3, 0.3, 0.3, 0.3), VIOLATION),
        ((0.3, 0.3, 1.2, 0.3), EVEN),
        ((1.0, 1.0, 1.0, 1.0), EVEN),
        ((0.3, 0.3, 0.8, 0.3), UNDECIDED),
    ],
)
def test_small_packets_may_have_no_advantage(ratios: tuple[float, ...], outcome: str) -> None:
    values: dict[tuple[str, ...], Any] = {}
    for case, ratio in zip(SENDERS, ratios, strict=True):
        for name in ("own", "other"):
            values[case, name, "small", "goodput"] = values[case, name, "large", "goodput"] = 1.0
            values[case, name, "small", "loss_share"] = spread(10 * ratio, 0.2)
            values[case, name, "large", "loss_share"] = 10.0
    found = packet_sizes(view(values))
    assert found.outcome == outcome
    assert f"paced {ratios[2]:.2f}" in found.text
    assert packet_sizes(view(values, has_flow_queues=True)).outcome == OPEN


def of_the_mix(**own: Any) -> str:
    """The outcome with 4 s pages, a call of 4.03, video of 1 and bulk of 6.63 beside these."""
    return the_mix(**own).outcome


def the_mix(**own: Any) -> Outcome:
    """The same with its words."""
    other: dict[str, Any] = {
        "page_load": 4.0,
        "mos": 4.03,
        "bitrate": 1e6,
        "bulk": 6.63e6,
        "all": 9.77e6,
    }
    values: dict[tuple[str, ...], Any] = {}
    for name, numbers in (("own", other | own), ("other", other)):
        for subject, measure, key in (
            ("web", "page_load_mean", "page_load"),
            ("voip", "mos", "mos"),
            ("video", "bitrate", "bitrate"),
            ("bulk", "goodput", "bulk"),
            ("all", "goodput", "all"),
        ):
            values["", name, subject, measure] = numbers[key]
    return mix(view(values))


def test_a_part_of_the_mix_is_worse_only_if_its_interval_is() -> None:
    assert "video at 0.70 Mbit/s against 1.00 Mbit/s (worse); " in the_mix(bitrate=0.7e6).text
    open_one = the_mix(bitrate=spread(0.7e6, 0.3e6), page_load=2.0)
    assert "video at 0.70 Mbit/s against 1.00 Mbit/s (worse, not decided); " in open_one.text
    assert open_one.outcome == UNDECIDED and open_one.possible == (BETTER, TRADE)


def test_the_mix_is_judged_in_terms_of_each_measure() -> None:
    # The web gets what bulk flows lose, and nothing is lost in all.
    assert of_the_mix(page_load=2.0, bulk=4.53e6, all=10.0e6) == BETTER
    assert of_the_mix(bulk=4.53e6) == EVEN
    # A MOS of 4.03 can rise to 4.4, not by a quarter.
    assert of_the_mix(mos=4.38) == BETTER
    assert of_the_mix(mos=3.6) == WORSE
    assert of_the_mix(mos=4.2) == EVEN
    assert of_the_mix(all=9.4e6) == WORSE
    assert of_the_mix(page_load=2.0, all=9.4e6) == TRADE
    assert of_the_mix(page_load=2.0, bitrate=0.7e6) == TRADE
    assert of_the_mix(page_load=6.0, bitrate=0.7e6, mos=4.4) == TRADE
    assert of_the_mix(page_load=6.0, bitrate=0.7e6) == WORSE


def test_a_ratio_that_cannot_be_computed_shows_no_bias() -> None:
    assert _favours(0.1, 0.1) == VIOLATION
    for ratios in ((0.1, float("nan")), (float("nan"), 0.1), (float("nan"),)):
        assert _favours(*ratios) == EVEN


def test_fairness_is_compared_by_its_distance_from_one() -> None:
    values = {}
    for case, own, other in (("5", 2.0, 4.0), ("200", 0.5, 0.25)):
        for name, ratio in (("own", own), ("other", other)):
            values[case, name, "cat1", "goodput"] = 1.0
            values[case, name, "cat2", "goodput"] = ratio
    found = rtt_rule(view(values))
    # (2 - 1) / (4 - 1) = 1/3.
    assert found.outcome == BETTER
    assert "2.00 apart, with other 4.00" in found.text


def test_sections_are_found_by_their_beginning() -> None:
    assert [each.number for each in sections(["8.2"])] == [
        "8.2.2", "8.2.3", "8.2.4", "8.2.5", "8.2.6",
    ]  # fmt: skip
    numbers = [each.number for each in sections()]
    assert numbers == sorted(numbers, key=lambda each: [int(part) for part in each.split(".")])

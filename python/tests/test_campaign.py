"""The campaign engine: rules with intervals, plans that run equal cases once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from aqmlab import InputError
from aqmlab.campaign import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Campaign,
    Case,
    Pack,
    Plan,
    Question,
    Replicated,
    Rule,
    above,
    at_least,
    at_most,
    below,
    page,
)
from aqmlab.campaign.rule import Decided, _deciding, picks, reaches
from aqmlab.metrics.samples import Floats
from aqmlab.report.document import Section


class Sample(Replicated):
    """Two paired quantities, one value a replication."""

    def __init__(self, one: Floats, other: Floats) -> None:
        self.one, self.other = one, other
        self.replications = one.size

    def drawn(self, number: int) -> Sample:
        picked = picks(self.replications)[number]
        return Sample(self.one[picked], self.other[picked])


def _sample(seed: int, count: int = 10, apart: float = 0.0, common: float = 0.0) -> Sample:
    random = np.random.default_rng(seed)
    shared = common * random.normal(size=count)
    return Sample(random.normal(size=count) + shared + apart, random.normal(size=count) + shared)


LOWER: Rule[Sample, float] = Rule(
    "lower",
    "One is lower than the other.",
    "the mean difference is below 0",
    lambda data: float(data.one.mean() - data.other.mean()),
    lambda found: below(found, 0.0),
    lambda found: f"{found:.2f}",
)


def _verdict(data: Sample, rule: Rule[Sample, float] = LOWER) -> str:
    answer = rule.answer(data)
    assert answer is not None
    return answer.verdict


def test_what_the_replications_show_is_decided() -> None:
    assert _verdict(_sample(1, apart=-5.0)) == HOLDS
    assert _verdict(_sample(1, apart=5.0)) == FAILS
    assert _verdict(_sample(1, count=4, apart=-5.0)) == UNDECIDED


class Mean(Replicated):
    """A mean; those of all draws are computed at once."""

    def __init__(self, values: Floats, looks: int, mean: float | None = None) -> None:
        self.values, self.replications, self.looks = values, values.size, looks
        self.mean = float(values.mean()) if mean is None else mean

    @cached_property
    def _means(self) -> Floats:
        return np.asarray(self.values[picks(self.replications)].mean(axis=1))

    def drawn(self, number: int) -> Mean:
        return Mean(self.values, self.looks, float(self._means[number]))


NEGATIVE: Rule[Mean, float] = Rule(
    "negative", "The mean is negative.", "below 0",
    lambda data: data.mean, lambda found: below(found, 0.0), lambda found: f"{found:.2f}",
)  # fmt: skip


def _reaches(studies: Floats, looks: int = 1) -> tuple[Floats, Floats]:
    """Reach of the intervals of the studies' means below and above them: a study a row."""
    count = studies.shape[1]
    drawn = np.transpose([study[picks(count)].mean(axis=1) for study in studies])
    ((below, above),) = reaches(drawn, count, looks)
    return below, above


def _is_decided(studies: Floats, looks: int = 1) -> NDArray[np.bool_]:
    """Whether the mean of each study, a row, is decided to be below or above 0."""
    below, above = _reaches(studies, looks)
    means = studies.mean(axis=1)
    return np.abs(means) > np.where(means < 0, above, below)


@pytest.mark.parametrize("looks", [1, 4])
def test_a_rule_decides_by_the_reach_of_the_interval(looks: int) -> None:
    shifts = np.linspace(-2, 2, 16)[:, np.newaxis]
    studies = np.random.default_rng(1).exponential(size=(16, 20)) - 1 + shifts
    found = [NEGATIVE.answer(Mean(values, looks)) for values in studies]
    (each,) = zip(*(answer.comparisons for answer in found if answer), strict=True)
    reach = np.transpose([one.reach for one in each])
    np.testing.assert_allclose(reach, _reaches(studies, looks))
    words = np.where(studies.mean(axis=1) < 0, HOLDS, FAILS)
    words[~_is_decided(studies, looks)] = UNDECIDED
    assert [one.verdict for one in each] == words.tolist()
    assert set(words) == {HOLDS, FAILS, UNDECIDED}


def test_at_the_limit_the_seed_does_not_decide() -> None:
    """With 99 % intervals a number that lies on its limit is decided in about one of 100 studies.
    A verdict by the mean alone would be `holds` in half of them."""
    for count in (5, 10, 40):
        samples = [_sample(seed, count) for seed in range(400)]
        decided = _is_decided(np.array([each.one - each.other for each in samples]))
        assert np.count_nonzero(decided) <= 0.03 * 400, count


@pytest.mark.parametrize("counts", [(10, 20, 40, 80), (100, 200, 400)])
def test_looks_until_decided_keep_the_error_rate(counts: Sequence[int]) -> None:
    """A number on its limit is decided at some look in 1 of 100 studies, and not in 1 of 100 a
    look. The second half of the test shows that the correction is needed."""
    studies = np.random.default_rng(5).normal(size=(500, counts[-1]))
    rates = {}
    for looks in (1, len(counts)):
        at_each = [_is_decided(studies[:, :count], looks) for count in counts]
        rates[looks] = np.any(at_each, axis=0).mean()
    assert rates[len(counts)] <= 0.018 < rates[1]


@pytest.mark.parametrize("count", [5, 10, 40])
def test_skewed_values_do_not_decide_a_number_on_its_limit(count: int) -> None:
    """With equal tails exponential values decide 5, 5 and 3 of 100 (docs/packs.md)."""
    studies = np.random.default_rng(count).exponential(size=(1500, count)) - 1
    assert _is_decided(studies).mean() <= 0.027


def test_an_open_statement_names_the_replications_that_would_decide_it() -> None:
    values = np.tile([-1.0, 1.0], 20) + 0.2
    open_, closed = (NEGATIVE.answer(Mean(values[:count] - shift, 1))
                     for count, shift in ((40, 0.0), (40, 1.0)))  # fmt: skip
    assert open_ is not None and closed is not None
    # 2.576 standard errors, at a standard deviation of 1.01 and a mean of 0.2
    named = re.search(r"About (\d+) replications would decide it", open_.evidence)
    assert named and 130 <= int(named[1]) <= 220
    assert closed.verdict == HOLDS and "would decide" not in closed.evidence
    enough = np.tile([-1.0, 1.0], 110) + 0.2
    assert NEGATIVE.answer(Mean(enough, 1)).verdict == FAILS  # type: ignore[union-attr]
    on_it = NEGATIVE.answer(Mean(values - 0.2, 1))
    assert on_it is not None
    assert "on its limit, as far as 40 replications tell: more than 4,000" in on_it.evidence


def test_what_both_have_in_common_cancels() -> None:
    words = [_verdict(_sample(seed, 20, apart=-2.0, common=20.0)) for seed in range(20)]
    assert words.count(HOLDS) >= 18


def test_a_median_has_an_interval() -> None:
    """Values in steps, with the limit between two of them: a verdict by the
    number alone would never be `not decided`, and one by the jackknife seldom."""
    rule: Rule[Sample, float] = Rule(
        "median", "The median is below 0.", "below 0",
        lambda data: float(np.median(np.round(2 * data.one) / 2)),
        lambda found: at_most(found, -0.25), str,
    )  # fmt: skip
    words = [_verdict(_sample(seed, 100, apart=-0.25), rule) for seed in range(100)]
    assert words.count(UNDECIDED) >= 85


def test_many_comparisons_do_not_refute_by_chance() -> None:
    """Forty numbers far on the right side do not refute; one on the wrong side does."""
    many: Rule[Sample, Floats] = Rule(
        "many", "All are above 0.", "above 0", lambda data: data.one,
        lambda found: [at_least(np.mean(found) + shift, 0.0) for shift in np.linspace(-1, 1, 40)],
        str,
    )  # fmt: skip
    wrong = many.answer(_sample(3, 30))
    right = many.answer(_sample(3, 30, apart=5.0))
    assert wrong is not None and right is not None
    assert (wrong.verdict, right.verdict) == (FAILS, HOLDS)
    assert re.search(r" Of 40 comparisons \d+ hold, \d+ do not hold, ", wrong.evidence)
    one, two = (
        Decided(at_most(each, 0.0), (1.0, 1.0), UNDECIDED if each else HOLDS, 20)
        for each in (0.5, 0.0)
    )
    evidence = _deciding([one, two], Mean(np.zeros(9), 1))
    assert evidence.startswith("Of 2 comparisons 1 holds, 1 is not decided; decisive, with")
    assert len(wrong.to_json()["comparisons"]) == 40


def test_words_that_cannot_be_computed_leave_the_verdict() -> None:
    rule = replace(
        LOWER, told=lambda _: f"{1 // 0}", beside=lambda data: f"{data.replications // 0}"
    )
    answer = rule.answer(_sample(1, apart=-5.0))
    assert answer is not None and answer.verdict == HOLDS
    assert answer.evidence.startswith("Rule: the mean difference is below 0. Compared, with")
    assert "Beside" not in answer.evidence


def test_limits() -> None:
    assert at_least(2.0, 2.0).slack > 0 > above(2.0, 2.0).slack
    assert at_most(2.0, 2.0).slack > 0 > below(2.0, 2.0).slack
    assert above(float("nan"), 1.0).slack != above(float("nan"), 1.0).slack


LINKS = {"down": {"rate": "2mbit", "delay": "10ms"}, "up": {"rate": "2mbit", "delay": "10ms"}}


def _case(name: str, seconds: int) -> Case:
    def fill(queue: str) -> dict[str, object]:
        down = LINKS["down"] | {"queue": {"discipline": queue}}
        flows = {"own": {"path": "down", "return_path": "up"}}
        return {"duration": f"{seconds}s", "links": LINKS | {"down": down}, "flows": flows}

    return Case(name, fill)


def test_equal_cases_run_once() -> None:
    one = Question("delay", "Delay", "Is it lower?", (_case("short", 3),))
    again = Question("again", "Again", "?", (_case("same", 3), _case("long", 4)))
    plan = Plan(Pack("mine", "Mine", (one, again)), {"codel": "codel", "droptail": "droptail"})
    assert len(plan.scenarios) == 4  # two queues, 3 and 4 s
    assert plan.points["delay", "codel", "short"] == plan.points["again", "codel", "same"]


def _compared(beside: Sequence[str], groups: dict[str, str] | None = None) -> Plan:
    """A question with readings only, in the group `more`, of droptail and four others."""

    question = Question(
        "delay", "Delay", "How high?", (_case("short", 3),), group="more",
        read=lambda data: [data.reading(case, "sojourn_p95", "down") for case in data],
    )  # fmt: skip
    names = ("droptail", "codel", "pie", "fq_codel", "fq_pie")
    pack = Pack("mine", "Mine", (question,), beside=tuple(beside), groups=groups or {})
    return Plan(pack, dict(zip(names, names, strict=True)))


def test_more_than_two_others_have_a_colour_each() -> None:
    campaign = _compared(("codel", "pie", "fq_codel", "fq_pie")).run(5, 1)
    (line,) = campaign.lines
    assert line.worst.words == "worse than all others"
    scale = page.figure(campaign, line).spec["concat"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == list(campaign.plan.contenders)
    assert len(set(scale["range"])) == 5


def test_one_run_has_no_plural() -> None:
    pack = Pack("mine", "Mine", (Question("q", "Q", "?", (_case("short", 3),)),))
    campaign = Plan(pack, {"": "codel"}).run(1, 1)
    assert "1: 1 point, 1 replication" in campaign.document().to_markdown()
    assert campaign.headline == "0 answers: none (1 simulation, 1 replication)."


def test_verbs_of_the_headline_follow_their_numbers() -> None:
    campaign = SimpleNamespace(
        findings={},
        counts=lambda: {HOLDS: 7, FAILS: 1, UNDECIDED: 0},
        result=SimpleNamespace(info=SimpleNamespace(replications=5)),
        runs=30,
    )
    told = Campaign.headline.fget(campaign)  # type: ignore[attr-defined]
    assert told == "8 answers: 7 hold, 1 does not hold (30 simulations, 5 replications)."


def test_a_group_that_the_pack_does_not_list_is_on_the_page() -> None:
    blocks = _compared(("codel",), {"first": "First"}).run(1, 1).document().blocks
    assert "delay" in [each.id for each in blocks if isinstance(each, Section)]


def test_a_pack_is_compared_with_its_contenders() -> None:
    with pytest.raises(InputError, match=r"beside: `codle`: unknown contender; .* `codel`"):
        _compared(("codle",))

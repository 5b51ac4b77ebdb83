"""Verdicts of a study's statements: in its own world, in wrong ones, and with other seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aqmlab.campaign import FAILS, HOLDS, UNDECIDED, asked
from aqmlab.campaign.rule import picks
from aqmlab.reproduce import Reproduction, reproduce
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.published import Published
from aqmlab.reproduce.verdicts import DIFFERS, Criterion
from aqmlab_studies.jarvinen2014 import study
from aqmlab_studies.jarvinen2014.claims import HIGH_END, SPIKES, TIMES
from aqmlab_studies.jarvinen2014.levels import HEADLINE, LEVELS

RULES = {rule.id: rule for rule in (*HEADLINE, *LEVELS, *SPIKES, *TIMES)}
PAPER = {"CoDel", "PIEupdate", "PIEthresh", "HRED", "HRED (aggressive)", "SFQ CoDel"}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """The paper's own queues, with a fifth of the paper's replications."""
    out = tmp_path_factory.mktemp("jarvinen2014")
    return reproduce("jarvinen2014", only=["paper"], replications=20, out=out)


def verdicts(result: Reproduction, names: Mapping[str, str]) -> dict[str, str]:
    """The verdicts in a world in which queues gave what others gave."""
    world = result.measured.relabelled("queue", names)
    asked = [each for each in result.published.claims(world) if each.rule.id in RULES]
    return {each.rule.id: each.answer().verdict for each in asked}


def test_a_wrong_world_is_seen(result: Reproduction) -> None:
    own = verdicts(result, {})
    swapped = verdicts(result, {"CoDel": "HRED", "HRED": "CoDel"})
    for ident in ("codel-does-not-scale", "hred-better-than-codel"):
        assert (own[ident], swapped[ident]) == (HOLDS, FAILS)
    flipped = [each for each in own if {own[each], swapped[each]} == {HOLDS, FAILS}]
    assert len(flipped) >= 4
    alike = verdicts(result, dict.fromkeys(PAPER, "CoDel"))
    assert alike["hred-better-than-codel"] == alike["hred-better-than-pie"] == FAILS
    assert alike["pie-worst"] == alike["hred-keeps-level"] == FAILS


def test_the_base_rate_is_counted(result: Reproduction) -> None:
    claims = result.published.claims(result.measured)
    worlds = [
        result.published.claims(result.measured.relabelled("queue", dict.fromkeys(PAPER, one)))
        for one in PAPER
    ]
    counts = [sum(each.holds for each in world) for world in worlds]
    assert result.held_if_alike == max(counts)
    assert 5 <= max(counts) < 0.6 * len(claims)


def test_replications_are_drawn_as_a_whole(result: Reproduction) -> None:
    """A draw has the same replications at every point, and quantiles of just these."""
    draw = result.measured.draws[3]
    labels = {"flows": "4+4", "rest": "11 ms"}
    for queue in ("CoDel", "HRED"):
        whole = result.measured.maxima(queue=queue, **labels)
        assert np.isin(draw.maxima(queue=queue, **labels), whole).all()
        of_draw = draw.histograms(queue=queue, **labels).quantile(0.95)
        assert draw.delay_quantile(0.95, queue=queue, **labels) == of_draw
    picked = picks(result.measured.replications)[3]
    for queue, group in (("CoDel", "first"), ("HRED", "second")):
        whole = result.measured.responses(group, queue=queue, **labels)
        assert (draw.responses(group, queue=queue, **labels) == whole[picked]).all()


def test_the_largest_of_100_does_not_grow_with_the_replications(result: Reproduction) -> None:
    labels = {"queue": "CoDel", "flows": "1+1", "rest": "11 ms"}
    delays = result.measured.maxima(**labels)
    assert result.measured.largest(0, **labels) == result.measured.largest(100, **labels)
    assert result.measured.largest(1, **labels) == pytest.approx(delays.mean())
    random = np.random.default_rng(1)
    drawn = [random.choice(delays, 5, replace=False).max() for _ in range(20_000)]
    assert result.measured.largest(5, **labels) == pytest.approx(np.mean(drawn), rel=2e-3)
    # The largest of all has no interval: statements about it are not decided.
    with pytest.raises(ArithmeticError):
        result.measured.draws[0].largest(100, **labels)
    (rule,) = [rule for rule in HIGH_END if rule.id == "sfq-worst-with-many"]
    answer = rule.answer(result.measured)
    assert answer is not None and answer.verdict == UNDECIDED


@pytest.mark.parametrize(("count", "place"), [(100, 6), (400, 17)])
def test_the_largest_of_further_runs_is_above_the_lower_end(count: int, place: int) -> None:
    """Whatever the distribution: ranks decide alone."""
    random = np.random.default_rng(1)
    missed = 0
    for _ in range(2000):
        values = random.exponential(size=count)
        known: Any = SimpleNamespace(maxima=lambda values=values: values)
        within = Measurements.largest_interval(known, 100)
        assert within is not None and within.low == np.sort(values)[-place]
        missed += random.exponential(size=100).max() < within.low
        assert Criterion().verdict(within.low / 1.11, within) == DIFFERS
        assert Criterion().verdict(within.low, within) == UNDECIDED
    assert 0.008 < missed / 2000 <= 0.032
    few: Any = SimpleNamespace(maxima=lambda: np.ones(3))
    assert Measurements.largest_interval(few, 1) is None


def test_replications_are_added_until_all_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = ["queue=CoDel", "queue=HRED", "rest=11 ms", "flows=4+4", "flows=6+6"]
    load = Published.load

    def up_to_200(name: str) -> Published:
        published = load(name)
        published.form.most["study"] = 200
        return published

    monkeypatch.setattr(Published, "load", up_to_200)
    monkeypatch.setattr(study, "claims", lambda measured: asked(HEADLINE, measured))
    grown = reproduce("jarvinen2014", only=only, out=tmp_path / "grown")
    count = grown.result.info.replications
    assert count in (100, 200)
    undecided = [each.verdict for each in grown.claims].count(UNDECIDED)
    assert count == 200 or not undecided
    at_once = reproduce("jarvinen2014", only=only, replications=count)
    assert at_once.to_json()["tables"] == grown.to_json()["tables"]
    # One look is less strict than each of two.
    pairs = zip(at_once.claims, grown.claims, strict=True)
    assert all(two.verdict in (one.verdict, UNDECIDED) for one, two in pairs)
    assert "--replications" not in grown.command
    assert f"--replications {count}" in at_once.command
    # The same command again finds them.
    assert reproduce("jarvinen2014", only=only, out=tmp_path / "grown").result.computed == 0
    # Without a folder each run is computed once as well.
    monkeypatch.setattr(Reproduction, "claims", [SimpleNamespace(verdict=UNDECIDED)])
    alone = reproduce("jarvinen2014", only=only)
    assert 2 * alone.result.computed == alone.runs and alone.result.folder is None
    assert alone.result.raw("runs").height == alone.runs


@pytest.mark.slow
def test_no_statement_has_both_verdicts() -> None:
    """With 20 seeds; before, verdicts had no interval, and 9 of 37 statements had both."""
    found: dict[str, set[str]] = defaultdict(set)
    for seed in range(1, 21):
        made = reproduce("jarvinen2014", only=["paper"], replications=20, seed=seed)
        for claim in made.claims:
            found[claim.id].add(claim.verdict)
    assert [each for each, words in found.items() if {HOLDS, FAILS} <= words] == []

"""Notes about replications and links, and the link that is judged."""

from pathlib import Path

import aqmlab
from aqmlab.metrics import headlines
from aqmlab.report.findings import findings
from aqmlab.report.notes import kinds

LINK = {"rate": "2mbit", "delay": "10ms"}
# Linux's sender draws the phases of its clocks: its replications are no copies.
RFC = {"profile": "rfc"}
SCENARIO = {"duration": "4s", "links": {"down": LINK, "up": LINK}, "transport": RFC}
AXES = [{"key": "queue", "values": ["droptail", "codel"]}]
DOWN, UP = {"path": "down", "return_path": "up"}, {"path": "up", "return_path": "down"}
PAIR = DOWN | {"count": 2, "start": "0s"}
RANDOM = {"start": {"uniform": ["0s", "1s"]}}


def study(flows: dict[str, object], **more: object) -> aqmlab.StudyResult:
    table = {"name": "s", "replications": 5, "scenario": SCENARIO | {"flows": flows}, **more}
    return aqmlab.Study(table).run()


def ids(result: aqmlab.StudyResult) -> set[str]:
    return {each["id"] for each in kinds(result)}


def test_copies_are_no_replications() -> None:
    copies = study({"bulk": PAIR}, axes=AXES)
    [note] = [each for each in kinds(copies) if each["id"] == "replications-identical"]
    assert note["runs"] == 10 and "start = { each" in note["text"]
    assert copies.notes.filter(id="replications-identical").height == 10
    assert not any(each.shown for each in findings(copies))
    varied = study({"bulk": PAIR | RANDOM}, axes=AXES)
    assert "replications-identical" not in ids(varied)
    assert any(each.shown for each in findings(varied))


def test_a_label_of_copies_is_not_compared_and_does_not_end_a_study() -> None:
    """Two flows in lockstep over FQ-CoDel, beside PIE, which draws: ten copies are no sample."""
    scenario = {
        "duration": "10s",
        "links": {"down": {"rate": "20mbit", "delay": "20ms"}, "up": {"rate": "1gbit"}},
        "flows": {"bulk": PAIR},
        "transport": RFC,
    }
    axes = [{"key": "queue", "values": ["fq_codel", "pie"]}]
    one = aqmlab.study({"name": "s", "scenario": scenario, "axes": axes, "replications": 10})
    assert one.copied == [0]
    assert one.notes.filter(id="replications-identical")["point"].unique().to_list() == [0]
    told = findings(one)
    assert told and not any(each.shown for each in told)
    assert {each.why for each in told} == {"not tested: all replications of fq_codel are identical"}
    page = one.report().to_markdown()
    assert "best with" not in page and "fq_codel are identical" in page
    lone = {"name": "s", "scenario": scenario | {"links": {**scenario["links"]}}}
    lone["scenario"]["links"]["down"] = {"rate": "20mbit", "queue": "fq_codel"}
    exact = aqmlab.study(
        lone | {"precision": {"metric": "goodput", "relative": 0.01, "at_most": 20}}
    )
    assert exact.info.replications == 20, "copies are not exact"
    assert "precision-not-reached" in ids(exact)
    assert "for example s: all 20 runs gave the same value" in exact.report().to_markdown()


def test_uploads_are_judged_on_the_way_up() -> None:
    for link in ("down", "up"):
        scenario = SCENARIO | {"flows": {"bulk": UP | RANDOM}, "bottleneck": link}
        result = aqmlab.Study({"name": "s", "scenario": scenario}).run()
        assert result.bottlenecks == ["up"], "as the emulator has it, the way down is named"
        assert set(result.bottleneck["link"].cast(str)) == {"up"}
        assert ("idle-link" in ids(result)) == (link == "down")


def test_a_single_run_is_about_the_busy_link_and_shows_both() -> None:
    idle = aqmlab.run(SCENARIO | {"flows": {"bulk": UP}, "bottleneck": "down"}, record="series")
    assert (idle.bottleneck, idle.shown) == ("down", "up")
    page = idle.report().to_markdown()
    assert "the results are for `up`" in page and "in the queue of up" in page
    both = {"a": UP, "b": DOWN}
    two = aqmlab.run(SCENARIO | {"flows": both, "bottleneck": "down"}, record="series")
    page = two.report().to_markdown()
    assert two.shown == "down" and "in the queue of down" in page and "At up (" in page
    result = aqmlab.study({"name": "s", "scenario": SCENARIO | {"flows": both}})
    titles = [each.title for each in headlines(result)]
    assert "time in the queue, 95th percentile" in titles
    other = "up" if result.bottlenecks == ["down"] else "down"
    assert f"{other}: time in the queue, 95th percentile" in titles


def test_no_comparison_mixes_links(tmp_path: Path) -> None:
    both = {"a": DOWN | RANDOM, "b": UP | RANDOM}
    for link in ("down", "up"):
        scenario = SCENARIO | {"flows": both, "bottleneck": link}
        aqmlab.Study({"name": "s", "replications": 2, "scenario": scenario}).run(tmp_path / link)
    result = aqmlab.compare({link: tmp_path / link for link in ("down", "up")})
    assert len(set(result.bottlenecks)) == 1
    assert result.bottleneck["link"].n_unique() == 1

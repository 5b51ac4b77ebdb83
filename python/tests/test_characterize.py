"""`aqmlab characterize`, through the command line and from Python."""

from __future__ import annotations

import json
import re
import warnings
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers import Aqmlab

from aqmlab.campaign import Campaign, Plan
from aqmlab.errors import WorkWarning
from aqmlab.packs.rfc7928 import Environment, characterize, plan_of, sections
from aqmlab.packs.rfc7928.environment import Contender

SHORT = 0.05
"""Share of the time of the cases: 2 or 3 s after the warm-up."""
LOST = pl.col("dropped").sum() + pl.col("lost").sum()
SHARE = (LOST / (LOST + pl.col("arrived").sum())).alias("dropped")
REPORTED = ["4.3.1", "4.4", "4.6", "5.1.2", "5.3", "6.2", "7.1", "8.2.2", "8.3", "10.2"]


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    folder = tmp_path_factory.mktemp("characterize") / "codel"
    return characterize(
        "codel", against=["pie"], only=REPORTED, replications=2, scale=SHORT, out=folder
    )


def test_measures_are_those_of_the_tables(short: Campaign) -> None:
    links = short.result.links.filter(pl.col("case") == "8.2.2 | codel", pl.col("link") == "down")
    delays = short.at("8.2.2", "codel").values("", "sojourn_mean", "down")
    assert delays.tolist() == links["sojourn_mean_s"].to_list()
    flows = short.result.flows.filter(pl.col("case") == "8.2.2 | codel")
    shares = flows.group_by("run", maintain_order=True).agg(SHARE)
    assert short.at("8.2.2", "codel").values("", "loss_share", "bulk").tolist() == pytest.approx(
        shares["dropped"].to_list()
    )


def test_measures_keep_within_physical_bounds(short: Campaign) -> None:
    frame = short.table

    def of(metric: str) -> pl.Series:
        return frame.filter(metric=metric)["mean"]

    other_rate = ("both ways", "four times the rate")
    one_way = frame.filter(pl.col("question") != "8.2.6", ~pl.col("case").is_in(other_rate))
    assert one_way.filter(metric="goodput", subject="all")["mean"].max() <= 10e6  # type: ignore[operator]
    assert of("utilisation").max() <= 1  # type: ignore[operator]
    for share in ("drop_share", "loss_share", "loss_synchronisation", "jain"):
        assert of(share).len() and of(share).is_between(0, 1 + 1e-9).all(), share
    assert of("waiting").min() > -1e-6  # type: ignore[operator]
    assert of("delay_variation").min() >= 0  # type: ignore[operator]


def test_the_ratio_of_the_categories_is_that_of_their_goodputs(short: Campaign) -> None:
    for section, case, first, second in (
        ("6.2", "RTT 20 ms", "cat1", "cat2"),
        ("4.4", "", "small", "large"),
    ):
        one, two = (
            short.at(section, "codel").values(case, "goodput", name) for name in (first, second)
        )
        ratios = short.at(section, "codel").values(case, "goodput_ratio", second)
        assert ratios.size == 2
        assert ratios.tolist() == pytest.approx((two / one).tolist())


def test_packet_sizes_both_ways_are_of_both_directions(short: Campaign) -> None:
    flows = short.result.flows.filter(
        pl.col("case") == "4.4 | both ways | codel",
        pl.col("group").cast(pl.String).str.starts_with("small"),
    )
    assert set(flows["group"].cast(pl.String)) == {"small", "small_up"}
    shares = flows.group_by("run", maintain_order=True).agg(SHARE)
    found = short.at("4.4", "codel").values("both ways", "loss_share", "small")
    assert found.tolist() == pytest.approx(shares["dropped"].to_list())
    assert short.at("4.4", "codel").mean("both ways", "goodput", "all") > 1.1 * 10e6
    finding = short.findings["4.4"]["droptail"]
    assert ", both ways " in finding.text
    assert finding.outcome == "not decided"
    assert "2 values are too few" in finding.text


@pytest.fixture(scope="module")
def two_way() -> Campaign:
    return characterize("codel", only=["9.2"], replications=1, scale=0.25)


def test_the_mix_is_sent_both_ways(two_way: Campaign) -> None:
    rates = {"symmetric": 10e6, "asymmetric": 1e6}
    for name, up_rate in rates.items():
        for where, discipline in (("one AQM", "droptail"), ("two AQMs", "codel")):
            case = f"mix, {name}, {where}"
            links = two_way.at("9.2", "codel").scenario(case)["links"]
            assert links["down"]["queue"]["discipline"] == "codel"
            assert links["up"]["queue"]["discipline"] == discipline
            own = {
                kind: two_way.at("9.2", "codel").mean(case, "goodput", f"{kind}-up")
                for kind in ("bulk", "web", "video", "cbr")
            }
            assert 0.3 * up_rate < sum(own.values()) < up_rate, case
            assert two_way.at("9.2", "codel").mean(case, "goodput", "bulk") > own["bulk"] / 2
            assert 1 <= two_way.at("9.2", "codel").mean(case, "mos", "voip") <= 4.5
    # Drop-tail as the discipline is drop-tail in both directions anyway.
    for measure in ("goodput", "loss_share"):
        one, two = (
            two_way.at("9.2", "droptail").mean(f"mix, symmetric, {where}", measure, "bulk-up")
            for where in ("one AQM", "two AQMs")
        )
        assert one == two
    figures = {figure.id for figure in two_way.document().figures}
    assert {
        "9.2-directions",
        "9.2-acks",
        "9.2-mix-tradeoff",
        "9.2-mix-quality",
        "9.2-distribution",
    } == figures


def test_both_ways_the_directions_are_told_apart(two_way: Campaign) -> None:
    lost = two_way.table.filter(metric="ack_loss")
    # Packets without data are acknowledgements only with bulk flows alone.
    assert not lost["case"].str.starts_with("mix").any()
    assert lost.height and lost["mean"].is_between(0, 1).all()
    case = "symmetric, two AQMs"
    flows = Environment().mild
    links = two_way.result.links.filter(pl.col("case") == f"9.2 | {case} | codel")
    for link in ("down", "up"):
        (events,) = links.filter(link=link)["loss_event_flows"]
        together = two_way.at("9.2", "codel").values(case, "loss_synchronisation", link)
        assert together.tolist() == pytest.approx([events / flows])
    text = two_way.findings["9.2"]["droptail"].text
    assert "; mix: pages in " in text
    assert "nan" not in text


def test_it_is_told_where_packets_are_dropped(short: Campaign) -> None:
    assert short.at("4.6", "codel").mean("", "queued_drop_share", "down") > 0.7
    assert short.at("4.6", "pie").mean("", "queued_drop_share", "down") == 0
    drop_tail = short.at("4.6", "droptail")
    assert drop_tail.mean("", "queued_drop_share", "down") == 0
    # 200 bytes wait as long as 1500 where there is one queue.
    thin, bulk = (drop_tail.mean("", "waiting", name) for name in ("thin", "bulk"))
    assert thin == pytest.approx(bulk, rel=0.05)
    finding = short.findings["4.6"]["droptail"]
    assert finding.outcome == "not judged"
    assert "with a queue for each flow: fq_codel, sfq_codel" in finding.text


def test_every_section_asked_for_is_judged_and_reported(short: Campaign) -> None:
    assert list(short.findings) == REPORTED
    for number, findings in short.findings.items():
        assert list(findings) == ["droptail", "pie"]
        for finding in findings.values():
            assert finding.text and "nan" not in finding.text, number
    folder = short.result.folder
    assert folder is not None
    report = short.write_report(folder, figures=False, command="aqmlab characterize codel")
    page = report.read_text("utf-8")
    for number in REPORTED:
        assert f'id="s{number}"' in page
    for figure in short.document().figures:
        assert f'id="{figure.id}"' in page
        assert figure.spec["concat"], figure.id
    assert escape(short.headline) in page and "aqmlab characterize codel" in page
    short.write_answers(folder)
    saved = json.loads((folder / "answers.json").read_text())
    assert saved == json.loads(json.dumps(short.to_json()))
    found = {each["id"]: each["contenders"][0]["answers"] for each in saved["questions"]}
    assert [each["id"] for each in found["6.2"]] == ["against-droptail", "against-pie"]
    assert pl.read_csv(folder / "readings.csv").height == short.table.height > 500


def test_the_report_is_one_file_in_the_order_of_the_rfc(short: Campaign) -> None:
    text = short.document().to_markdown()
    titles = [line.split()[1] for line in text.splitlines() if line.startswith("## ")]
    numbers = [each for each in titles if each[0].isdigit()]
    assert numbers == sorted(numbers, key=lambda each: [int(part) for part in each.split(".")])
    assert {"4.1", "4.3.1", "4.3.2", "11", "12"} <= set(numbers)
    for figure in short.document().figures:
        assert f"](figures/{figure.id}.svg)\n\n{figure.caption}" in text
    # What there is to set, as the discipline declares it, and what a packet costs.
    assert "| interval | 100ms | 100ms | 1us to 100s |" in text
    assert re.search(r"\| codel \| \d+ \| \d+ \| [\w ]+ \| no \| no \| yes \|", text)
    assert "8.3: the theory of the control law" in text
    assert "limit in bytes; none: no additional limit" in text and "in [8.3](#s8.3)" in text
    part = characterize("codel", only=["4.4"], replications=1, scale=SHORT).document().to_markdown()
    assert "in 8.3 (not run)" in part


def test_notes_on_the_runs_of_the_others_are_told(short: Campaign) -> None:
    """Drop-tail has one buffer of 560 ms for all round-trip times, and takes minutes to fill it."""
    (section,) = (each for each in short.to_json()["questions"] if each["id"] == "6.2")
    (note,) = (each for each in section["notes"] if each["id"] == "run-too-short")
    assert {"RTT 560 ms", "RTT 5 ms, droptail", "RTT 560 ms, pie"} <= set(note["cases"])


def test_every_section_has_its_distributions(short: Campaign) -> None:
    figures = {figure.id: figure for figure in short.document().figures}
    assert {f"{number}-distribution" for number in REPORTED} <= set(figures)
    panels = figures["6.2-distribution"].spec["concat"]
    assert len(panels) == 16
    for number, panel in enumerate(panels):
        rows = pl.read_csv(panel["data"]["values"].encode())
        assert set(rows["name"]) == {"codel", "droptail", "pie"}
        for _, part in rows.group_by("name"):
            # Delays: the share above, from all packets to p99.9; goodput: the share not above.
            ends = (1.0, 0.001) if number % 2 == 0 else (0.0, 1.0)
            part = part.sort("order")
            assert (part["y"][0], part["y"][-1]) == pytest.approx(ends)
            assert part["x"].is_sorted()


def test_a_tail_is_that_of_the_histogram(short: Campaign) -> None:
    times, counts = short.at("8.2.2", "codel")[""].histogram()
    packets = np.repeat(times, counts.astype(int))
    figures = {figure.id: figure for figure in short.document().figures}
    panel = figures["8.2.2-distribution"].spec["concat"][0]
    rows = pl.read_csv(panel["data"]["values"].encode()).filter(name="codel")
    drawn = dict(zip(rows["y"].round(4), rows["x"], strict=True))
    for above in (0.5, 0.05, 0.001):
        quantile = np.quantile(packets, 1 - above, method="inverted_cdf")
        assert drawn[above] == pytest.approx(1e3 * quantile, rel=1e-4)


def test_every_discipline_is_told_to_keep_the_same_delays(short: Campaign) -> None:
    for name in ("codel", "droptail", "pie"):
        cases = list(short.at("4.3.1", name))
        assert cases == ["2.5 ms", "5 ms", "10 ms", "20 ms", "40 ms", "80 ms"]
        delays = [short.at("4.3.1", name).mean(case, "sojourn_mean", "down") for case in cases]
        assert delays[0] < delays[3] < delays[5]
    assert Contender.of("pie").matched([0.02], 10e6) == [(0.02, {"target": "20ms"})]
    # 20 ms of 10 Mbit/s are 25,000 bytes.
    assert Contender.of("droptail").matched([0.02], 10e6) == [(0.02, {"limit": "17p"})]
    assert Contender.of("red").matched([0.02], 10e6) == [
        (0.02, {"min_threshold": "17p", "max_threshold": "51p"})
    ]
    assert Contender.of("cake").matched([0.02], 10e6) == [(0.02, {"interval": "400ms"})]
    assert Contender.of("sfb").matched([0.02], 10e6) == [(0.02, {"target": "17"})]


def test_every_section_makes_cases_that_can_run() -> None:
    """All scenarios of all sections are accepted by the engine, and equal ones are run once."""
    for name in ("fq_codel", "red", "dualpi2", "cake", "blue", "sfb"):
        plan = plan_of(name, ["pie"])
        study = plan.study(1, 1)
        assert len(study.points) == len(set(plan.points.values())) < len(plan.points)
        for key, number in plan.points.items():
            resolved: dict[str, Any] = json.loads(study.points[number].scenario.resolved)
            assert resolved["links"]["down"]["queue"]["discipline"], key
    assert {section.number for section in sections()} == {key[0] for key in plan.points}


@pytest.mark.parametrize("rate", [1e6, 1e9])
def test_other_rates_make_other_numbers_of_flows(rate: float) -> None:
    place = Environment(rate, 0.02)
    plan = plan_of("codel", only=["8.2.4"], environment=place)
    flows = plan.scenarios[0][1]["flows"]["bulk"]["count"]
    assert flows == max(round(0.114 * place.places), 1)


def test_the_time_of_long_runs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """104 s of processor time at 10 Mbit/s, a thousand times as much at 10 Gbit/s."""
    monkeypatch.setattr(Plan, "run", lambda *_, **__: None)
    with pytest.warns(WorkWarning, match=r"1,390 runs at 10 Gbit/s take about 29 hours"):
        characterize("codel", environment=Environment(1e10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        characterize("codel")


def test_bulk_flows_have_the_control_that_is_asked_for() -> None:
    """Also QUIC's, with full packets of the same size; other flows keep theirs."""
    only = ["4.4", "4.5", "5.2", "5.1.2"]
    plan = plan_of("codel", only=only, environment=Environment(control="quinn:bbr"))
    ecn = set()
    for (section, _, _), number in plan.points.items():
        for name, flow in plan.scenarios[number][1]["flows"].items():
            quic = (section, name) in (("5.1.2", "bulk"), ("4.5", "cat1"), ("4.5", "cat2"))
            assert ("endpoint" in flow) == quic, (section, name)
            if quic:
                assert flow["endpoint"]["max_mtu"] == "1472b"
                ecn.add((section, flow["endpoint"]["ecn"]))
    assert ecn == {("4.5", True), ("5.1.2", False)}
    result = characterize(
        "codel",
        only=["8.2.2"],
        environment=Environment(control="cubic"),
        replications=1,
        scale=SHORT,
    )
    text = result.document()
    assert "bulk flows with cubic" in text.soft and "NewReno" not in text.to_markdown()


def test_a_queue_of_your_own_is_characterised() -> None:
    file = Path(__file__).parents[2] / "examples" / "codel.py"
    result = characterize(f"{file}:CoDel", only=["5.1.1"], replications=1, scale=SHORT)
    for name in ("CoDel", "droptail"):
        # TFRC has no sawtooth: it fills the link with a short queue, too.
        assert result.at("5.1.1", name).mean("TFRC", "goodput", "tfrc") > 8e6
    assert result.subject == "CoDel"
    own = result.at("5.1.1", "CoDel").mean("", "sojourn_mean", "down")
    assert 0 < own < result.at("5.1.1", "droptail").mean("", "sojourn_mean", "down") / 2


def test_phases_are_told_apart() -> None:
    result = characterize("codel", only=["8.2.5", "8.2.6"], replications=1, scale=0.5)
    drop_tail = result.at("8.2.5", "droptail")
    delays = [drop_tail.mean("", "phase_delay", name) for name in ("mild", "medium", "heavy")]
    # More flows keep a drop-tail queue fuller.
    assert delays[0] < delays[2]
    flows = result.result.flows.filter(pl.col("case") == "8.2.5 | codel")
    later = flows.filter(pl.col("group") == "bulk_2")["start_s"]
    assert later.is_between(60, 61).all()
    # The goodput of a phase of 20 s is that of its capacity.
    slow = result.at("8.2.6", "droptail")
    high, low = (slow.mean("slow", "phase_goodput", name) for name in ("high", "low"))
    assert 70e6 < high < 100e6 and 9e6 < low < 10.5e6
    titles = [
        panel["title"]["text"]
        for figure in result.document().figures
        if figure.id.endswith("-phases")
        for panel in figure.spec["concat"]
    ]
    assert titles == [
        "mild", "medium", "heavy",
        "slow: high rate", "slow: low rate", "fast: high rate", "fast: low rate",
    ]  # fmt: skip


def test_the_command_prints_a_verdict_or_one_object(tmp_path: Path, aqmlab: Aqmlab) -> None:
    out = tmp_path / "out"
    words = ("characterize", "pie", "--section", "5.1.1", "--quick", "--replications", "1",
             "--set", "target=5ms", "--out", out)  # fmt: skip
    done = aqmlab.ok(*words)
    assert "Of 1 question of RFC 7928, pie is against droptail: 1 " in done.stdout
    assert (out / "report.html").exists()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "--set target=5ms" in page
    scenarios = json.loads((out / "scenarios.json").read_text())
    assert scenarios[0]["links"]["down"]["queue"]["target"] == "5ms"
    found = aqmlab.json(*words, "--json", "--no-report")
    assert (found["schema"], found["contenders"]) == (1, ["pie", "droptail"])
    (question,) = found["questions"]
    assert (question["id"], question["source"]) == ("5.1.1", "RFC 7928, section 5.1.1")
    metrics = {row["metric"] for row in question["contenders"][0]["readings"]}
    assert {"sojourn_mean", "goodput"} <= metrics

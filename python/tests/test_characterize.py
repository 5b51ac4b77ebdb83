"""`aqmlab characterize`, through the command line and from Python."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab

from aqmlab import InputError
from aqmlab.packs.rfc7928 import Characterization, Environment, Plan, characterize, sections
from aqmlab.packs.rfc7928.environment import Contender

SHORT = 0.05
LOST = pl.col("dropped").sum() + pl.col("lost").sum()
SHARE = (LOST / (LOST + pl.col("arrived").sum())).alias("dropped")
"""Share of the time of the cases: 2 or 3 s after the warm-up."""
REPORTED = ["4.3.1", "4.4", "4.6", "5.1.2", "5.3", "6.2", "7.1", "8.2.2", "8.3", "10.2"]


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Characterization:
    folder = tmp_path_factory.mktemp("characterize") / "codel"
    return characterize(
        "codel", against=["pie"], only=REPORTED, replications=2, scale=SHORT, out=folder
    )


def test_measures_are_those_of_the_tables(short: Characterization) -> None:
    measures = short.measures
    links = short.result.links.filter(pl.col("case") == "8.2.2 | codel", pl.col("link") == "down")
    delays = measures.runs("8.2.2", "", "codel", "down", "queue_delay")
    assert delays.tolist() == links["sojourn_mean_s"].to_list()
    flows = short.result.flows.filter(pl.col("case") == "8.2.2 | codel")
    shares = flows.group_by("run", maintain_order=True).agg(SHARE)
    assert measures.runs("8.2.2", "", "codel", "bulk", "loss_share").tolist() == pytest.approx(
        shares["dropped"].to_list()
    )


def test_measures_keep_within_physical_bounds(short: Characterization) -> None:
    frame = short.measures.frame
    rate = short.plan.environment.rate

    def of(measure: str) -> pl.Series:
        return frame.filter(measure=measure)["value"]

    other_rate = ("both ways", "four times the rate")
    one_way = frame.filter(pl.col("section") != "8.2.6", ~pl.col("case").is_in(other_rate))
    goodput = one_way.filter(pl.col("measure") == "goodput", pl.col("subject") == "all")["value"]
    assert goodput.max() <= rate  # type: ignore[operator]
    assert of("utilisation").max() <= 1  # type: ignore[operator]
    for share in ("drop_share", "loss_share", "loss_synchronisation", "jain"):
        assert of(share).is_between(0, 1 + 1e-9).all(), share
    assert of("waiting").min() > -1e-6  # type: ignore[operator]
    assert of("delay_variation").min() >= 0  # type: ignore[operator]


def test_the_ratio_of_the_categories_is_that_of_their_goodputs(short: Characterization) -> None:
    runs = short.measures.runs
    for section, case, first, second in (
        ("6.2", "RTT 20 ms", "cat1", "cat2"),
        ("4.4", "", "small", "large"),
    ):
        one, two = (runs(section, case, "codel", name, "goodput") for name in (first, second))
        ratios = runs(section, case, "codel", second, "goodput_ratio")
        assert ratios.size == 2
        assert ratios.tolist() == pytest.approx((two / one).tolist())


def test_packet_sizes_both_ways_are_of_both_directions(short: Characterization) -> None:
    flows = short.result.flows.filter(
        pl.col("case") == "4.4 | both ways | codel",
        pl.col("group").cast(pl.String).str.starts_with("small"),
    )
    assert set(flows["group"].cast(pl.String)) == {"small", "small_up"}
    shares = flows.group_by("run", maintain_order=True).agg(SHARE)
    found = short.measures.runs("4.4", "both ways", "codel", "small", "loss_share")
    assert found.tolist() == pytest.approx(shares["dropped"].to_list())
    rate = short.plan.environment.rate
    assert short.measures.mean("4.4", "both ways", "codel", "all", "goodput") > 1.1 * rate
    line = next(line for line in short.verdict.lines if line.section.number == "4.4")
    assert ", both ways " in line.main.text
    assert line.main.outcome == "not decided"
    assert "2 values are too few" in line.main.text


@pytest.fixture(scope="module")
def two_way() -> Characterization:
    return characterize("codel", only=["9.2"], replications=1, scale=0.25)


def test_the_mix_is_sent_both_ways(two_way: Characterization) -> None:
    mean = two_way.measures.mean
    rates = {"symmetric": 10e6, "asymmetric": 1e6}
    for name, up_rate in rates.items():
        for where, discipline in (("one AQM", "droptail"), ("two AQMs", "codel")):
            case = f"mix, {name}, {where}"
            links = two_way.measures.case("9.2", case, "codel").scenario["links"]
            assert links["down"]["queue"]["discipline"] == "codel"
            assert links["up"]["queue"]["discipline"] == discipline
            own = {
                kind: mean("9.2", case, "codel", f"{kind}-up", "goodput")
                for kind in ("bulk", "web", "video", "cbr")
            }
            assert 0.3 * up_rate < sum(own.values()) < up_rate, case
            assert mean("9.2", case, "codel", "bulk", "goodput") > own["bulk"] / 2
            assert 1 <= mean("9.2", case, "codel", "voip", "mos") <= 4.5
    # Drop-tail as the discipline is drop-tail in both directions anyway.
    for measure in ("goodput", "loss_share"):
        one, two = (
            mean("9.2", f"mix, symmetric, {where}", "droptail", "bulk-up", measure)
            for where in ("one AQM", "two AQMs")
        )
        assert one == two
    figures = {figure.id for figure in two_way.figures}
    assert {
        "9.2-directions",
        "9.2-acks",
        "9.2-mix-tradeoff",
        "9.2-mix-quality",
        "9.2-cdf",
    } == figures


def test_both_ways_the_directions_are_told_apart(two_way: Characterization) -> None:
    frame = two_way.measures.frame
    lost = frame.filter(measure="ack_loss")
    # Packets without data are acknowledgements only with bulk flows alone.
    assert not lost["case"].str.starts_with("mix").any()
    assert lost["value"].is_between(0, 1).all()
    case = "symmetric, two AQMs"
    flows = two_way.plan.environment.mild
    links = two_way.result.links.filter(pl.col("case") == f"9.2 | {case} | codel")
    for link in ("down", "up"):
        (events,) = links.filter(link=link)["loss_event_flows"]
        together = two_way.measures.runs("9.2", case, "codel", link, "loss_synchronisation")
        assert together.tolist() == pytest.approx([events / flows])
    (line,) = two_way.verdict.lines
    assert "; mix: pages in " in line.main.text
    assert "nan" not in line.main.text


def test_it_is_told_where_packets_are_dropped(short: Characterization) -> None:
    mean = short.measures.mean
    assert mean("4.6", "", "codel", "down", "drops_from_queue") > 0.7
    assert mean("4.6", "", "pie", "down", "drops_from_queue") == 0
    assert mean("4.6", "", "droptail", "down", "drops_from_queue") == 0
    # 200 bytes wait as long as 1500 where there is one queue.
    thin, bulk = (mean("4.6", "", "droptail", name, "waiting") for name in ("thin", "bulk"))
    assert thin == pytest.approx(bulk, rel=0.05)
    line = next(line for line in short.verdict.lines if line.section.number == "4.6")
    assert line.main.outcome == "not judged"
    assert "with a queue for each flow: fq_codel, sfq_codel" in line.main.text


def test_every_section_asked_for_is_judged_and_reported(short: Characterization) -> None:
    verdict = short.verdict
    assert [line.section.number for line in verdict.lines] == REPORTED
    for line in verdict.lines:
        assert set(line.findings) == {"droptail", "pie"}
        assert line.main.text
        assert "nan" not in line.main.text, line
    assert short.result.folder is not None
    page = short.write_report(short.result.folder).read_text(encoding="utf-8")
    for number in REPORTED:
        assert f'id="s{number}"' in page
    for figure in short.figures:
        assert f'id="{figure.id}"' in page
        assert figure.spec["concat"], figure.id
    assert escape(verdict.headline()) in page
    assert (short.result.folder / "report.md").read_text("utf-8") == short.report().to_markdown()
    saved = json.loads((short.result.folder / "verdict.json").read_text())
    assert saved == verdict.to_json()
    table = pl.read_parquet(short.result.folder / "measures.parquet")
    assert table.columns[:5] == ["section", "case", "discipline", "subject", "measure"]
    assert table.equals(short.table)


def test_the_report_is_one_file_in_the_order_of_the_rfc(short: Characterization) -> None:
    text = short.report().to_markdown()
    titles = [line.split()[1] for line in text.splitlines() if line.startswith("## ")]
    numbers = [each for each in titles if each[0].isdigit()]
    assert numbers == sorted(numbers, key=lambda each: [int(part) for part in each.split(".")])
    assert {"4.1", "4.3.1", "4.3.2", "11", "12"} <= set(numbers)
    for figure in short.figures:
        assert f"](figures/{figure.id}.svg)\n\n{figure.caption}" in text
    # What there is to set, as the discipline declares it, and what a packet costs.
    assert "| interval | 100ms | 100ms | 1us to 100s |" in text
    assert re.search(r"\| codel \| \d+ \| \d+ \| [\w ]+ \| no \| no \| yes \|", text)
    assert "--section 4.3.1 --section 4.4" in text
    assert "8.3: the theory of the control law" in text


def test_every_section_has_its_distributions(short: Characterization) -> None:
    figures = {figure.id: figure for figure in short.figures}
    for number in REPORTED:
        assert f"{number}-cdf" in figures or f"{number}-delays" in figures
    panels = figures["6.2-cdf"].spec["concat"]
    assert len(panels) == 16
    for panel in panels:
        rows = pl.read_csv(panel["data"]["values"].encode())
        assert set(rows["name"]) == {"codel", "droptail", "pie"}
        for _, part in rows.group_by("name"):
            assert part["y"].min() == 0
            assert part["y"].max() == 1
            assert part.sort("order")["x"].is_sorted()


def test_every_discipline_is_told_to_keep_the_same_delays(short: Characterization) -> None:
    get = short.measures.mean
    for name in ("codel", "droptail", "pie"):
        cases = short.measures.names("4.3.1", name)
        assert cases == ["2.5 ms", "5 ms", "10 ms", "20 ms", "40 ms", "80 ms"]
        delays = [get("4.3.1", case, name, "down", "queue_delay") for case in cases]
        assert delays[0] < delays[3] < delays[5]
    assert Contender.of("pie").matched([0.02], 10e6) == [(0.02, {"target": "20ms"})]
    # 20 ms of 10 Mbit/s are 25,000 bytes.
    assert Contender.of("droptail").matched([0.02], 10e6) == [(0.02, {"limit": "17p"})]
    assert Contender.of("red").matched([0.02], 10e6) == [
        (0.02, {"min_threshold": "17p", "max_threshold": "51p"})
    ]
    assert Contender.of("cake").matched([0.02], 10e6) == [(0.02, {"interval": "400ms"})]


def test_codel_has_shorter_queues_than_droptail(short: Characterization) -> None:
    # Not a matter of thresholds: an order of magnitude in every replication.
    get = short.measures.runs
    for section, case in (("8.2.2", ""), ("6.2", "RTT 100 ms")):
        own = get(section, case, "codel", "down", "queue_delay")
        other = get(section, case, "droptail", "down", "queue_delay")
        assert (own < other / 2).all()


def test_a_finished_characterisation_is_only_opened(short: Characterization) -> None:
    again = characterize(
        "codel",
        against=["pie"],
        only=REPORTED,
        replications=2,
        scale=SHORT,
        out=short.result.folder,
    )
    assert again.result.computed == 0
    assert again.verdict.to_json() == short.verdict.to_json()


def test_every_section_makes_cases_that_can_run() -> None:
    """All scenarios of all sections are accepted by the engine, and their labels differ."""
    for name in ("fq_codel", "red", "dualpi2", "cake", "blue"):
        plan = Plan.of(name, ["pie"], {}, (), Environment())
        study = plan.study(1, 1)
        assert len(plan.points) == len(plan.cases)
        assert len(study.points) == len(set(plan.points.values())) < len(plan.cases)
        for case in plan.cases:
            point = study.points[plan.points[case.key]]
            resolved: dict[str, Any] = json.loads(point.scenario.resolved)
            assert resolved["links"]["down"]["queue"]["discipline"], case.key
    assert {section.number for section in sections()} == {case.section for case in plan.cases}


@pytest.mark.parametrize("rate", [1e6, 1e9])
def test_other_rates_make_other_numbers_of_flows(rate: float) -> None:
    place = Environment(rate, 0.02)
    plan = Plan.of("codel", [], {}, ["8.2.4"], place)
    flows = plan.cases[0].scenario["flows"]["bulk"]["count"]
    assert flows == max(round(0.114 * place.places), 1)


def test_bulk_flows_have_the_control_that_is_asked_for() -> None:
    """Also QUIC's, with full packets of the same size; other flows keep theirs."""
    only = ["4.4", "4.5", "5.2", "5.1.2"]
    plan = Plan.of("codel", [], {}, only, Environment(control="quinn:bbr"))
    ecn = set()
    for case in plan.cases:
        for name, flow in case.scenario["flows"].items():
            quic = (case.section, name) in (("5.1.2", "bulk"), ("4.5", "cat1"), ("4.5", "cat2"))
            assert ("endpoint" in flow) == quic, (case.key, name)
            if quic:
                assert flow["endpoint"]["max_mtu"] == "1472b"
                ecn.add((case.section, flow["endpoint"]["ecn"]))
    assert ecn == {("4.5", True), ("5.1.2", False)}
    result = characterize(
        "codel",
        only=["8.2.2"],
        environment=Environment(control="cubic"),
        replications=1,
        scale=SHORT,
    )
    assert "--control cubic" in json.dumps(result.report().to_json())


def test_a_queue_of_your_own_is_characterised() -> None:
    file = Path(__file__).parents[2] / "examples" / "codel.py"
    result = characterize(f"{file}:CoDel", only=["5.1.1"], replications=1, scale=SHORT)
    for name in ("CoDel", "droptail"):
        # TFRC has no sawtooth: it fills the link with a short queue, too.
        assert result.measures.mean("5.1.1", "TFRC", name, "tfrc", "goodput") > 8e6
    assert result.discipline == "CoDel"
    own = result.measures.mean("5.1.1", "", "CoDel", "down", "queue_delay")
    assert 0 < own < result.measures.mean("5.1.1", "", "droptail", "down", "queue_delay") / 2


def test_phases_are_told_apart() -> None:
    result = characterize("codel", only=["8.2.5"], replications=1, scale=0.5)
    get = result.measures.mean
    delays = [
        get("8.2.5", "", "droptail", f"down/{phase}", "queue_delay")
        for phase in ("mild", "medium", "heavy")
    ]
    # More flows keep a drop-tail queue fuller.
    assert delays[0] < delays[2]
    flows = result.result.flows.filter(pl.col("case") == "8.2.5 | codel")
    later = flows.filter(pl.col("group") == "bulk_2")["start_s"]
    assert later.is_between(60, 61).all()


def test_the_command_prints_a_verdict(tmp_path: Path, aqmlab: Aqmlab) -> None:
    out = tmp_path / "out"
    done = aqmlab(
        "characterize", "pie", "--section", "5.1.1", "--quick", "--replications", "1",
        "--set", "target=5ms", "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Of 1 section of RFC 7928, pie is against droptail: 1 " in done.stdout
    assert (out / "report.html").exists()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "--set target=5ms" in page
    scenarios = json.loads((out / "scenarios.json").read_text())
    assert scenarios[0]["links"]["down"]["queue"]["target"] == "5ms"


def test_json_is_one_object(tmp_path: Path, aqmlab: Aqmlab) -> None:
    done = aqmlab(
        "characterize", "codel", "--section", "5.2", "--quick", "--replications", "1",
        "--out", tmp_path / "out", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["discipline"] == "codel"
    assert found["against"] == ["droptail"]
    assert found["verdict"][0]["section"] == "5.2"
    assert {"queue_delay", "goodput"} <= {row["measure"] for row in found["measures"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["codle"], "did you mean `codel`?"),
        (["codel", "--section", "8.4"], "8.4"),
        (["codel", "--set", "targte=5ms"], "did you mean `target`?"),
        (["codel", "--set", "target=5"], "expected a time"),
        (["codel", "--against", "droptail,pei"], "--against: `pei`"),
        (["codel", "--rate", "10"], "--rate"),
        (["codel", "--rtt", "-3ms"], "--rtt"),
        (["codel", "--rtt", "0ms"], "--rtt: `0ms`: expected more than 0"),
        (["codel", "--rtt", "7s"], "--rtt: `7s`: the path is too long"),
        (["droptail"], "--against"),
    ],
)
def test_bad_input_is_one_clear_error(
    arguments: list[str], words: str, tmp_path: Path, aqmlab: Aqmlab
) -> None:
    done = aqmlab("characterize", *arguments, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_unknown_section_is_refused_from_python() -> None:
    with pytest.raises(InputError):
        characterize("codel", only=["5.9"])

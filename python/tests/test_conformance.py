"""Queues and senders act as reference implementations did; differences are found and named."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab
from polars.testing import assert_frame_equal

from aqmlab.conformance.archive import Archive
from aqmlab.conformance.folder import RecordedCase, find_cases, read_case
from aqmlab.conformance.replay import check, check_all
from aqmlab.conformance.senders import check_senders, find_senders, pack_case
from aqmlab.conformance.settings import algorithms, queue_of
from aqmlab.conformance.words import remarks
from aqmlab.errors import InputError
from tools.conformance_pack import pack

COPIED = ("codel_linux/f_ecn", "dualpi2_linux/k_drop_early", "sfq_linux/k_depth10_headdrop")


def recorded(path: str) -> RecordedCase:
    """A case that comes with aqmlab."""
    archive = Archive()
    names = [f"{entry['algorithm']}/{entry['name']}" for entry in archive.entries]
    return archive.case(names.index(path))


def write_case(case: RecordedCase, root: Path) -> Path:
    """Puts a case into a folder of cases."""
    folder = root / case.algorithm / case.name
    folder.mkdir(parents=True)
    content = {
        "algorithm": case.algorithm,
        "case": case.name,
        "description": case.description,
        "reference": case.reference,
        "link": {"rate_bps": case.rate_bps, "ns_per_byte": case.ns_per_byte},
        "parameters": case.parameters,
        "timer": case.timer,
        "random_seed": case.random_seed,
    }
    (folder / "case.json").write_text(json.dumps(content))
    write_table(folder / "arrivals.csv.gz", case.arrivals)
    write_table(folder / "outcomes.csv.gz", case.outcomes)
    return folder


def write_table(file: Path, table: pl.DataFrame) -> None:
    file.write_bytes(gzip.compress(table.write_csv().encode(), 1))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three cases, which no test changes."""
    root = tmp_path_factory.mktemp("vectors")
    for path in COPIED:
        write_case(recorded(path), root)
    return root


@pytest.fixture
def vectors(tmp_path: Path, written: Path) -> Path:
    """A folder of three cases."""
    return Path(shutil.copytree(written, tmp_path / "vectors"))


def with_parameters(path: str, **parameters: Any) -> RecordedCase:
    """A recorded case with other parameters."""
    case = recorded(path)
    return RecordedCase(**vars(case) | {"parameters": {**case.parameters, **parameters}})


def test_every_recorded_case_is_equal_packet_by_packet_in_the_emulator(aqmlab: Aqmlab) -> None:
    """Without the emulator they are replayed by `cargo test -p aqmlab-conformance`."""
    reports = aqmlab.json("conformance", "--json", "--emulator")
    assert {report["algorithm"] for report in reports} == set(algorithms())
    assert len(reports) == 130
    for report in reports:
        assert report["passed"] is True and report["status"] == "equal", report
        assert report["equal_verdicts"] == report["equal_packets"] == report["packets"] > 1000
        assert report["worst_offset_ns"] == 0
        assert report["equal_reasons"] == report["drops"], report
    assert sum(report["packets"] for report in reports) == 760_786
    assert sum(report["drops"] for report in reports) == 139_831


def test_the_table_says_what_passed(aqmlab: Aqmlab) -> None:
    done = aqmlab.ok("conformance", "sfq_linux", "codel_rfc8289")
    assert "16 of 16 cases equal" in done.stdout
    assert done.stderr == "", "no progress bar where there is no terminal"
    assert "codel_linux" not in done.stdout


def test_the_results_in_the_guide_are_those_of_the_program(aqmlab: Aqmlab) -> None:
    done = aqmlab("conformance", "--markdown")
    guide = Path(__file__).parents[2] / "docs" / "conformance-results.md"
    assert done.stdout == guide.read_text()


def test_a_folder_is_replayed_like_what_comes_with_aqmlab(vectors: Path, aqmlab: Aqmlab) -> None:
    done = aqmlab("conformance", "--vectors", vectors, "--json")
    assert done.returncode == 0, done.stdout
    reports = json.loads(done.stdout)
    assert [f"{report['algorithm']}/{report['case']}" for report in reports] == list(COPIED)
    assert reports == aqmlab.json("conformance", "--vectors", vectors, "--json")


def changed(case: RecordedCase, row: int, **values: Any) -> RecordedCase:
    """The case with other values in one line of its outcomes."""
    kinds = case.outcomes.schema
    here = pl.int_range(case.outcomes.height) == row
    columns = [
        pl.when(here).then(pl.lit(value, kinds[name])).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    ]
    return RecordedCase(**vars(case) | {"outcomes": case.outcomes.with_columns(columns)})


def a_line(case: RecordedCase, verdict: str) -> tuple[int, dict[str, Any]]:
    """The number and the content of a line in the middle with this verdict."""
    lines = case.outcomes.with_row_index("line").filter(pl.col("verdict") == verdict)
    row = lines.row(lines.height // 2, named=True)
    return row.pop("line"), row


@pytest.mark.parametrize(
    ("verdict", "column", "change"),
    [
        ("delivered", "verdict", lambda _: "dropped_dequeue"),
        ("dropped_dequeue", "verdict", lambda _: "dropped_enqueue"),
        ("delivered", "t_ns", lambda time: time + 1),
        ("delivered", "sojourn_ns", lambda time: time + 1),
        ("marked", "t_mark_ns", lambda time: time - 1),
        ("marked", "t_mark_ns", lambda _: None),
        ("delivered", "t_mark_ns", lambda _: 5),
    ],
)
def test_one_changed_outcome_is_found_and_named(
    verdict: str, column: str, change: Callable[[Any], Any]
) -> None:
    case = recorded("codel_linux/f_ecn")
    line, row = a_line(case, verdict)
    report = check(changed(case, line, **{column: change(row[column])}))
    assert not report.passed
    assert report.status == "different"
    assert report.equal_packets == report.packets - 1
    assert report.equal_verdicts == report.packets - (column == "verdict")
    assert report.worst_offset_ns == (column == "t_ns")
    first = report.first_difference
    assert first is not None
    assert (first["decision"], first["packet"]) == (line, row["id"])
    assert first["expected"][column] == change(row[column])
    assert first["got"][column] == row[column]


def test_another_order_of_the_decisions_is_found() -> None:
    case = recorded("codel_linux/f_ecn")
    place, _ = a_line(case, "dropped_dequeue")
    order = [*range(place), place + 1, place, *range(place + 2, case.outcomes.height)]
    report = check(RecordedCase(**vars(case) | {"outcomes": case.outcomes[order]}))
    assert report.status == "different"
    assert report.equal_verdicts == report.packets
    assert report.first_difference is not None
    assert report.first_difference["decision"] == place


def test_another_reason_is_counted_and_passes() -> None:
    case = recorded("codel_linux/f_ecn")
    line, _ = a_line(case, "dropped_dequeue")
    report = check(changed(case, line, reason="pie"))
    assert report.passed
    assert report.equal_reasons == report.drops - 1


def test_faults_are_in_the_table_and_in_the_exit_status(vectors: Path, aqmlab: Aqmlab) -> None:
    break_gzip(vectors / COPIED[1])
    file = vectors / "codel_linux/f_ecn/outcomes.csv.gz"
    case = recorded("codel_linux/f_ecn")
    line, row = a_line(case, "marked")
    spoilt = changed(case, line, verdict="delivered", t_mark_ns=None)
    write_table(file, spoilt.outcomes)
    done = aqmlab("conformance", "--vectors", vectors)
    assert done.returncode == 1
    assert "1 of 3 cases equal" in done.stdout
    assert "1 different" in done.stdout and "1 unreadable" in done.stdout
    assert f"{COPIED[1]}: {vectors / COPIED[1]}/outcomes.csv.gz: it is a gzip file" in done.stdout
    expected = f"packet {row['id']}: expected delivered at {row['t_ns']:,} ns"
    assert expected in done.stdout
    assert f"got marked at {row['t_ns']:,} ns" in done.stdout
    assert "99.98 %" in done.stdout
    reports = json.loads(aqmlab("conformance", "--vectors", vectors, "--json").stdout)
    assert [report["status"] for report in reports] == ["different", "unreadable", "equal"]


@pytest.mark.parametrize(
    ("path", "parameter", "value"),
    [
        ("codel_linux/f_ecn", "target_us", 5500),
        ("codel_linux/f_ecn", "ecn", 0),
        ("codel_linux/f_ecn", "ce_threshold_us", 1000),
        ("dualpi2_linux/k_drop_early", "drop_early", 0),
        ("sfq_linux/k_depth10_headdrop", "depth", 11),
        ("sfq_linux/k_depth10_headdrop", "perturb_s", 1),
        ("red_ns2/b_onoff", "queue_in_bytes", 1),
        ("red_ns2/f_ecn", "use_mark_p", 1),
        ("pie_linux/f_ecn", "dq_rate_estimator", 1),
        ("fq_pie_linux/f_ecn", "dq_rate_estimator", 1),
        ("sfb_linux/i_fast_increment", "decrement_q16", 12),
    ],
)
def test_a_changed_parameter_makes_a_difference(path: str, parameter: str, value: int) -> None:
    assert check(with_parameters(path, **{parameter: value})).status == "different"


def settings(path: str, **parameters: Any) -> dict[str, Any]:
    return queue_of(with_parameters(path, **parameters))[0]


def test_what_parameters_are_called_here() -> None:
    red = settings("red_ns2/a_cbr110", queue_in_bytes=1, use_mark_p=1, mark_p=0.2, bytes=1)
    assert red["limit"] == "100000b"
    assert red["min_threshold"] == "10000b"
    assert red["mark_p"] == 0.2
    assert red["by_size"] is True
    assert "mark_p" not in settings("red_ns2/a_cbr110")
    assert settings("pie_linux/a_cbr110", dq_rate_estimator=1)["delay"] == "rate"
    assert settings("pie_linux/a_cbr110", alpha=4, beta=8)["beta"] == 0.5
    assert settings("fq_pie_linux/a_cbr110", memory_limit=1) == settings("fq_pie_linux/a_cbr110")
    assert settings("dualpi2_linux/a_cbr110", ecn_mask=3)["classifier"] == "any-ect"
    assert settings("sfq_linux/a_cbr110", limit=50.0)["limit"] == "50p"
    assert settings("sfq_linux/a_cbr110", perturb_s=2)["perturb"] == "2s"
    assert settings("fq_codel_linux/f_ecn", ce_threshold_us=1000)["ce_threshold"] == "1000us"


@pytest.mark.parametrize(
    ("path", "parameters", "words"),
    [
        ("codel_linux/f_ecn", {"target_us": "5ms"}, "target_us = '5ms'"),
        ("codel_linux/f_ecn", {"target_us": -5}, "-5us"),
        ("codel_linux/f_ecn", {"ecn": 2}, "ecn = 2"),
        ("red_ns2/a_cbr110", {"q_weight": 0}, "q_weight = 0"),
        ("dualpi2_linux/a_cbr110", {"ecn_mask": 2}, "ecn_mask = 2"),
        ("dualpi2_linux/a_cbr110", {"memory_limit": 20_000}, "memory_limit = 20000"),
        ("pie_linux/a_cbr110", {"tupdate_us": 30_000}, "timer.first_ns = 15000000"),
    ],
)
def test_what_there_is_no_counterpart_of_is_named(
    path: str, parameters: dict[str, Any], words: str
) -> None:
    report = check(with_parameters(path, **parameters))
    assert (report.passed, report.status) == (False, "unsupported")
    assert report.problem is not None
    assert words in report.problem


def test_the_settings_that_come_with_a_case_are_those_of_its_parameters() -> None:
    archive = Archive()
    for index, entry in enumerate(archive.entries):
        settings, mtu, ignored = queue_of(archive.case(index))
        assert (entry["queue"], entry["mtu"], ignored) == (settings, mtu, []), entry["name"]


@pytest.mark.parametrize("algorithm", algorithms())
def test_every_parameter_is_taken_or_named(algorithm: str) -> None:
    archive = Archive()
    names = [entry["algorithm"] for entry in archive.entries]
    case = archive.case(names.index(algorithm))
    parameters = {**case.parameters, "unheard_of": 1}
    assert queue_of(replace(case, parameters=parameters))[2] == ["unheard_of = 1"]


def test_a_parameter_of_another_name_is_told_and_the_replay_decides() -> None:
    report = check(with_parameters("codel_linux/f_ecn", colour=1))
    assert (report.passed, report.ignored) == (True, ("colour = 1",))
    assert any("colour = 1" in text for text in remarks(report))


def test_an_unknown_algorithm_is_reported_and_the_others_run(vectors: Path) -> None:
    break_json('"codel_linux"', '"codel_bsd"')(vectors / COPIED[0])
    first, *others = check_all(vectors)
    assert (first.passed, first.status) == (False, "unsupported")
    assert "`codel_bsd`: unknown algorithm" in (first.problem or "")
    assert [report.status for report in others] == ["equal", "equal"]


def break_gzip(folder: Path) -> None:
    file = folder / "outcomes.csv.gz"
    file.write_bytes(file.read_bytes()[:5000])


def break_line(file: str, old: str, new: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        text = gzip.decompress((folder / file).read_bytes()).decode()
        assert old in text
        (folder / file).write_bytes(gzip.compress(text.replace(old, new, 1).encode(), 1))

    return spoil


def break_json(old: str, new: str) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        text = (folder / "case.json").read_text()
        assert old in text
        (folder / "case.json").write_text(text.replace(old, new, 1))

    return spoil


BROKEN: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "no case.json": (
        lambda folder: (folder / "case.json").unlink(),
        ["case.json", "missing", "found: arrivals.csv.gz, outcomes.csv.gz"],
    ),
    "no outcomes": (
        lambda folder: (folder / "outcomes.csv.gz").unlink(),
        ["outcomes.csv.gz", "missing"],
    ),
    "half a file": (break_gzip, ["outcomes.csv.gz", "gzip"]),
    "not gzip": (
        lambda folder: (folder / "arrivals.csv.gz").write_text("id,t_ns\n"),
        ["arrivals.csv.gz", "gzip"],
    ),
    "empty file": (
        lambda folder: (folder / "outcomes.csv.gz").write_bytes(gzip.compress(b"")),
        ["outcomes.csv.gz", "empty"],
    ),
    "no CSV": (
        lambda folder: (folder / "outcomes.csv.gz").write_bytes(gzip.compress(bytes(range(256)))),
        ["outcomes.csv.gz", "column id is missing"],
    ),
    "bad number": (
        break_line("arrivals.csv.gz", "\n1,", "\none,"),
        ["arrivals.csv.gz", "line 3, column id", "`one`", "whole number"],
    ),
    "negative time": (
        break_line("outcomes.csv.gz", "\n0,delivered,1", "\n0,delivered,-1"),
        ["outcomes.csv.gz", "line 2, column t_ns", "`-1764000`", "whole number below 2^64"],
    ),
    "empty cell": (
        break_line("arrivals.csv.gz", "\n1,", "\n,"),
        ["arrivals.csv.gz", "line 3, column id", "nothing"],
    ),
    "bad verdict": (
        break_line("outcomes.csv.gz", "0,delivered", "0,lost"),
        ["outcomes.csv.gz", "line 2, column verdict", "`lost`", "dropped_overlimit"],
    ),
    "no column": (
        break_line("outcomes.csv.gz", "t_mark_ns", "t_marked"),
        ["outcomes.csv.gz", "t_mark_ns is missing", "id,verdict,t_ns,sojourn_ns,t_marked,reason"],
    ),
    "two outcomes": (
        break_line("outcomes.csv.gz", "\n1,delivered", "\n0,delivered"),
        ["outcomes.csv.gz", "column id", "`0`", "already has an outcome"],
    ),
    "too few outcomes": (
        break_line("outcomes.csv.gz", "\n0,delivered", "\n5168,delivered"),
        ["outcomes.csv.gz", "`5168`"],
    ),
    "unsorted arrivals": (
        break_line("arrivals.csv.gz", "\n0,1", "\n0,999991"),
        ["arrivals.csv.gz", "line 3, column t_ns", "order of their times"],
    ),
    "no codepoint": (
        lambda folder: write_table(
            folder / "arrivals.csv.gz",
            recorded(COPIED[0]).arrivals.with_columns(ecn=pl.lit(4, pl.UInt8)),
        ),
        ["arrivals.csv.gz", "line 2, column ecn", "`4`"],
    ),
    "not JSON": (
        lambda folder: (folder / "case.json").write_text("{"),
        ["case.json", "not JSON"],
    ),
    "no link": (break_json('"link"', '"lnik"'), ["case.json", "link", "missing"]),
    "fraction": (
        break_json('"ns_per_byte": 800', '"ns_per_byte": 0.5'),
        ["case.json", "link.ns_per_byte", "`0.5`", "whole number"],
    ),
    "no parameters": (
        break_json('"parameters": {', '"parameters": 3, "x": {'),
        ["case.json", "parameters", "`3`", "object"],
    ),
    "empty folder": (
        lambda folder: [each.unlink() for each in folder.iterdir()],
        ["case.json", "the folder is empty"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_case_is_one_clear_error_and_the_others_run(name: str, vectors: Path) -> None:
    spoil, words = BROKEN[name]
    spoil(vectors / COPIED[0])
    first, *others = check_all(vectors)
    assert (first.case, first.passed, first.status) == ("f_ecn", False, "unreadable")
    assert first.problem is not None
    assert "\n" not in first.problem
    for word in [str(vectors / COPIED[0]), *words]:
        assert word in first.problem
    assert [report.status for report in others] == ["equal", "equal"]


def test_an_algorithm_without_cases_does_not_go_unseen(vectors: Path) -> None:
    (vectors / "red_linux").mkdir()
    reports = check_all(vectors)
    assert [report.status for report in reports] == ["equal", "equal", "unreadable", "equal"]


def test_folders_that_are_none_of_cases_are_refused(vectors: Path, aqmlab: Aqmlab) -> None:
    (vectors / "empty").mkdir()
    for folder, words in (
        (vectors / "absent", "this is not a folder"),
        (vectors / "empty", "there are no cases here"),
        (vectors / "codel_linux", f"--vectors {vectors}"),
        (vectors / "codel_linux/f_ecn", f"--vectors {vectors}"),
    ):
        done = aqmlab("conformance", "--vectors", folder)
        assert done.returncode == 2
        assert str(folder) in done.stderr
        assert words in done.stderr
    done = aqmlab("conformance", "codel_linx", "--vectors", vectors)
    assert done.returncode == 2
    assert "did you mean `codel_linux`?" in done.stderr


def facts(case: RecordedCase) -> dict[str, Any]:
    tables = ("arrivals", "outcomes")
    return {key: value for key, value in vars(case).items() if key not in tables}


def test_packing_loses_nothing(vectors: Path, tmp_path: Path) -> None:
    cases = [read_case(folder) for _, _, folder in find_cases(vectors)]
    pack(cases, tmp_path / "packed")
    archive = Archive(tmp_path / "packed")
    assert len(archive.entries) == len(cases) == 3
    for index, case in enumerate(cases):
        again = archive.case(index)
        assert_frame_equal(again.arrivals, case.arrivals)
        assert_frame_equal(again.outcomes, case.outcomes)
        assert facts(again) == facts(case) == facts(recorded(case.path))
    spoilt = changed(cases[0], 100, sojourn_ns=1)
    with pytest.raises(InputError, match="codel_linux/f_ecn: differs after reading"):
        pack([spoilt], tmp_path / "again")


def test_the_beginning_of_names_means_all_of_them(aqmlab: Aqmlab) -> None:
    found = aqmlab.json("conformance", "sfb", "--json")
    assert {each["algorithm"] for each in found} == {"sfb_linux"}
    assert "unknown algorithm" in aqmlab("conformance", "sf").stderr


SENDER: dict[str, Any] = {
    "case": "short",
    "control": "reno",
    "reference": "Linux 6.1.192, HZ 1000, virtual time",
    "path": {"rate": 10000000, "delay": 0.02},
    "sysctl_sender": {},
    "sysctl_receiver": {},
    "offload": False,
    "all_acknowledged_ns": 81_000_000,
    "retransmitted": 0,
}
COLUMNS = (
    "t_ns,event,seq,length,ack,flags,window,sack,ts_value,ts_echo,ecn,cwnd,ssthresh,srtt_us,una,nxt"
)
EVENTS = [
    "0,out,0,0,,S,,,0,,0,,,,,",
    "40000000,in,0,0,1,S.,65535,,0,0,0,,,,,",
    "40000256,out,1,0,1,.,,,40,0,0,,,,,",
    "40001000,write,,2000,,,,,,,,,,,,",
    "40001256,out,1,1448,1,.,,,40,0,0,,,,,",
    "40001512,out,1449,552,1,.,,,40,0,0,,,,,",
    "81000000,in,1,0,2001,.,65535,,81,40,0,10,,40000,1,2001",
]


def write_sender(root: Path, facts: dict[str, Any], events: list[str], name: str = "short") -> Path:
    """Puts a case into a folder of cases."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "case.json").write_text(json.dumps(facts))
    text = "\n".join([COLUMNS, *events]) + "\n"
    (folder / "events.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    return folder


def test_every_recorded_segment_and_window_is_equal(aqmlab: Aqmlab) -> None:
    reports = aqmlab.json("conformance", "--tcp", "--json")
    assert len(reports) == 124
    for report in reports:
        assert list(report) == [
            "case",
            "segments",
            "segments_equal",
            "windows",
            "windows_equal",
            "first_difference_ns",
        ]
        assert report["segments"] == report["segments_equal"] > 0, report
        assert report["windows"] == report["windows_equal"] > 0, report
        assert report["first_difference_ns"] is None


def test_a_folder_of_cases_is_replayed_and_a_difference_has_its_time(
    aqmlab: Aqmlab, tmp_path: Path
) -> None:
    write_sender(tmp_path, SENDER, EVENTS)
    other = [line.replace("1449,552", "1449,551") for line in EVENTS]
    write_sender(tmp_path, SENDER, other, "other")
    done = aqmlab("conformance", "--tcp", tmp_path, "--json")
    assert done.returncode == 1
    other_report, short = json.loads(done.stdout)
    assert (short["case"], short["segments"], short["segments_equal"]) == ("short", 2, 2)
    assert (short["windows"], short["windows_equal"]) == (1, 1)
    assert (other_report["segments_equal"], other_report["windows_equal"]) == (1, 1)
    assert other_report["first_difference_ns"] == 40_001_512
    done = aqmlab("conformance", "--tcp", tmp_path, "short")
    assert done.returncode == 0 and "1 of 1 cases equal" in done.stdout


def test_the_closed_loop_takes_the_recorded_time(aqmlab: Aqmlab) -> None:
    reports = aqmlab.json(
        "conformance", "--tcp", "--closed", "reno_bulk", "cubic-6.12_far", "--json"
    )
    assert [report["case"] for report in reports] == ["cubic-6.12_far", "reno_bulk"]
    for report in reports:
        recorded = report["recorded_all_acknowledged_ns"]
        assert report["all_acknowledged_ns"] == pytest.approx(recorded, rel=0.001)
        assert report["close"] is True


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference": "Linux 5.4"}, "Linux 5.4"),
        ({"control": "bic"}, "bic"),
        ({"sysctl_sender": {"tcp_mtu_probing": "1"}}, "tcp_mtu_probing"),
        ({"path": {"rte": 1}}, "rte"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    folder = write_sender(tmp_path, {**SENDER, **change}, EVENTS)
    with pytest.raises(InputError, match=words):
        pack_case(folder)


def test_a_broken_table_is_named_with_its_line(tmp_path: Path) -> None:
    folder = write_sender(tmp_path, SENDER, [*EVENTS, "x,in,,,,,,,,,,,,,,"])
    with pytest.raises(InputError, match=r"events\.csv\.gz.*line 9"):
        pack_case(folder)


def test_a_folder_without_cases_and_an_unknown_case_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no cases"):
        find_senders(tmp_path)
    with pytest.raises(InputError, match="reno_bulk"):
        check_senders(names=["reno_bluk"])

"""Senders act as real kernels did; differences are found and named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import Aqmlab

from aqmlab.conformance.senders import check_senders, find_senders, pack_case
from aqmlab.errors import InputError

CASE: dict[str, Any] = {
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


def write_case(root: Path, facts: dict[str, Any], events: list[str], name: str = "short") -> Path:
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
    write_case(tmp_path, CASE, EVENTS)
    other = [line.replace("1449,552", "1449,551") for line in EVENTS]
    write_case(tmp_path, CASE, other, "other")
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
    folder = write_case(tmp_path, {**CASE, **change}, EVENTS)
    with pytest.raises(InputError, match=words):
        pack_case(folder)


def test_a_broken_table_is_named_with_its_line(tmp_path: Path) -> None:
    folder = write_case(tmp_path, CASE, [*EVENTS, "x,in,,,,,,,,,,,,,,"])
    with pytest.raises(InputError, match=r"events\.csv\.gz.*line 9"):
        pack_case(folder)


def test_a_folder_without_cases_and_an_unknown_case_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no cases"):
        find_senders(tmp_path)
    with pytest.raises(InputError, match="reno_bulk"):
        check_senders(names=["reno_bluk"])

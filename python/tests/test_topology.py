"""`aqmlab shell --topology`: several hosts that share links, through the real command line."""

from __future__ import annotations

import re
import socket
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from helpers import Aqmlab, assert_refused, rows_of
from real_packets import TRAFFIC
from test_mahimahi import events
from test_pcapng import read

from aqmlab.study.folder import open_results

EXAMPLE = Path(__file__).parents[2] / "examples" / "topology.toml"


def devices() -> set[str]:
    """Namespaces of this machine, except far ends of other shells."""
    names = {name for _, name in socket.if_nameindex()}
    return {name for name in names if not re.fullmatch(r"aqmlab\d+", name)}


def changed(folder: Path, old: str, new: str) -> str:
    text = EXAMPLE.read_text()
    assert old in text
    (folder / "hosts.toml").write_text(text.replace(old, new))
    return "hosts.toml"


@pytest.mark.real_packets
@pytest.mark.needs("ping")
def test_hosts_know_each_other_and_are_as_far_apart_as_their_links(aqmlab: Aqmlab) -> None:
    ping = "ping -c 4 -i 0.1 -q"
    words = f"{ping} server; {ping} neighbour; echo $AQMLAB_HOST"
    done = aqmlab.ok("shell", "--topology", EXAMPLE, "--", "sh", "-c", words)
    least = [float(each) for each in re.findall(r"= ([\d.]+)/", done.stdout)]
    assert len(least) == 2
    # There and back: the cabinet is 2 ms away, the server 10 ms behind it.
    assert 24 <= least[0] < 26
    assert 8 <= least[1] < 10
    assert done.stdout.strip().endswith("alice")


@pytest.mark.real_packets
def test_hosts_on_both_sides_share_a_link(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """The neighbour's upload and that of the command meet in the uplink's queue."""
    port = 5201
    serve = f"server={TRAFFIC} serve {port}"
    # Long beside the time between the starts of two interpreters: alone, one gets the whole link.
    send = f"{TRAFFIC} bulk server {port} 4"
    done = aqmlab.ok(
        "shell", "--topology", EXAMPLE, "--host", serve, "--host", f"neighbour={send}",
        "--out", "out", "--", *send.split(),
    )  # fmt: skip
    links = {row["link"]: row for row in pl.read_parquet(tmp_path / "out/links.parquet").to_dicts()}
    mine, theirs, shared = (
        links[name]["delivered"] for name in ("alice_up", "neighbour_up", "uplink")
    )
    assert min(mine, theirs) > 100
    assert shared > 0.8 * (mine + theirs)
    # Half each: fair queueing, and both are slower than the link that they share.
    rates = [float(each) for each in done.stdout.split()]
    assert rates and all(3e6 < rate < 7e6 for rate in rates), rates


@pytest.mark.real_packets
@pytest.mark.needs("ping")
def test_links_between_hosts_are_logged_and_captured(aqmlab: Aqmlab, tmp_path: Path) -> None:
    words = ["--log", "uplink=up.log", "--log", "alice_up=alice.log", "--pcap", "all.pcapng",
             "--pcap-at", "all"]  # fmt: skip
    ping = ["--", "ping", "-4", "-c", "20", "-i", "0.02", "-q", "server"]
    aqmlab.ok("shell", "--topology", EXAMPLE, *words, "--out", "out", *ping)
    links = {row["link"]: row for row in pl.read_parquet(tmp_path / "out/links.parquet").to_dicts()}
    for link, name in (("uplink", "up"), ("alice_up", "alice")):
        rows = events(tmp_path / f"{name}.log")
        came, went = (
            [row for row in rows if row[1] == sign and row[2] == 84] for sign in ("+", "-")
        )
        assert len(came) == len(went) == 20
        assert sum(row[1] == "+" for row in rows) == links[link]["arrived"]
        # What the link offered, ten times a second: 10 and 20 Mbit/s.
        offered = sum(row[2] for row in rows if row[1] == "#")
        rate = {"uplink": 10e6, "alice_up": 20e6}[link]
        assert offered * 8 == pytest.approx(rate * rows[-1][0] / 1000, rel=0.25)
    uplink = [row[3] for row in events(tmp_path / "up.log") if row[1] == "-"]
    assert uplink and all(delay in (10, 11) for delay in uplink)
    found = Counter(packet.interface for packet in read(tmp_path / "all.pcapng"))
    for link, row in links.items():
        assert found[f"{link} in"] == row["arrived"]


@pytest.mark.real_packets
def test_the_exit_status_is_the_commands_and_nothing_stays(aqmlab: Aqmlab) -> None:
    before = devices()
    done = aqmlab(
        "shell", "-q", "--topology", EXAMPLE, "--at", "server", "--", "sh", "-c", "exit 7"
    )
    assert (done.returncode, done.stderr) == (7, "")
    assert devices() == before


@pytest.mark.real_packets
@pytest.mark.needs("ping")
def test_a_scenario_is_a_topology(aqmlab: Aqmlab, scenario: Path) -> None:
    words = ["--", "ping", "-c", "2", "-i", "0.1", "-q", "first-receiver"]
    done = aqmlab.ok("shell", "--topology", scenario, *words)
    assert 40 <= float(re.findall(r"= ([\d.]+)/", done.stdout)[0]) < 44


def test_mistakes_in_the_file_are_named(aqmlab: Aqmlab, tmp_path: Path) -> None:
    def refused(old: str, new: str, *words: str) -> None:
        file = changed(tmp_path, old, new)
        assert_refused(aqmlab("shell", "--topology", file, "--", "true"), *words)

    refused('from = "alice"\n', "", "hosts.toml", "links.alice_up", "the nodes it joins")
    refused("[hosts.server]", "[hosts.servr]", "servr", "server", "known")
    refused("[hosts.alice]", "[hosts.alice]\nkommand = 'x'", "kommand", "command")
    refused('rate = "10mbit"', 'rate = "10mbus"', "links.uplink.rate", "10mbus")
    refused('to = "cabinet"', 'to = "nowhere"', "no host can reach another")


@pytest.mark.real_packets
@pytest.mark.needs("ping")
@pytest.mark.parametrize("hosts", [[], ["--topology", EXAMPLE]])
def test_statistics_begin_after_the_warmup(
    aqmlab: Aqmlab, tmp_path: Path, hosts: list[str | Path]
) -> None:
    script = "ping -q -i 0.1 -c 12 ${AQMLAB_HOST_SERVER:-$AQMLAB_FAR}"
    options = [*hosts, "--set", "record.warmup=500ms", "--out", "out"]
    aqmlab.ok("shell", *options, "--", "sh", "-c", script)
    assert 0.5 <= open_results(tmp_path / "out").single().runs["warmup_s"][0] < 0.6
    assert 4 <= rows_of(tmp_path / "out", "links")[0]["arrived"] <= 8

"""Every kind of bad input, through the command line: one clear message, exit status 2."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from helpers import SCENARIO_TEXT, Aqmlab, assert_refused, command

SPOILT = {
    "unknown key": (
        'rate = "2mbit"',
        'rat = "2mbit"',
        ["known: rate, delay, jitter", "(did you mean `rate`?)"],
    ),
    "unknown top key": ("seed = 1", "sede = 1", ["sede", "did you mean `seed`?"]),
    "unknown discipline": ('"codel"', '"coddel"', ["coddel", "did you mean `codel`?"]),
    "unknown parameter": ('limit = "100p"', 'targt = "5ms"', ["targt", "did you mean `target`?"]),
    "missing unit of a rate": ('"2mbit"', '"2"', ["links.down.rate", "`2`", "mbit"]),
    "missing unit of a time": ('delay = "20ms"', "delay = 20", ["links.down.delay", "`20`", "ms"]),
    "negative time": ('"20ms"', '"-20ms"', ["links.down.delay", "-20ms"]),
    "negative rate": ('"2mbit"', '"-2mbit"', ["links.down.rate", "-2mbit"]),
    "no rate": ('"2mbit"', '"0mbit"', ["links.down.rate", "`0"]),
    "absurd rate": ('"2mbit"', '"9e99gbit"', ["links.down.rate", "9e99gbit"]),
    "absurd time": ('"20s"', '"9e30s"', ["duration", "9e30s"]),
    "absurd count": ("count = 2", "count = 10000000000", ["flows.first.count", "10000000000"]),
    "route to no link": ('path = ["down"]', 'path = ["donw"]', ["flows.first.path", "`down`?"]),
    "empty route": ('path = ["down"]', "path = []", ["flows.first.path"]),
    "flow without packets": ('size = "350400b"', 'size = "0b"', ["flows.first.size", "0b"]),
    "no flows in a group": ("count = 2", "count = 0", ["flows.first.count", "0"]),
    "wrong kind": ("[links.down]", "[links]\ndown = 3\n[links.x]", ["links.down", "`3`", "table"]),
    "not TOML": ("seed = 1", "seed = = 1", ["line 3", "TOML"]),
    "a date": ("seed = 1", "seed = 2020-01-01", ["seed", "2020-01-01"]),
    "reversed interval": ('["0s", "650ms"]', '["1s", "650ms"]', ["flows.second.start"]),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_scenario_is_refused(case: str, scenario: Path, aqmlab: Aqmlab) -> None:
    good, bad, words = SPOILT[case]
    assert good in SCENARIO_TEXT
    scenario.write_text(SCENARIO_TEXT.replace(good, bad, 1))
    assert_refused(aqmlab("run", scenario), str(scenario), *words)


def test_a_missing_file_is_named_with_its_neighbour(scenario: Path, aqmlab: Aqmlab) -> None:
    missing = scenario.with_name("scenaro.toml")
    assert_refused(aqmlab("run", missing), str(missing), "no such file", "did you mean")
    assert_refused(aqmlab("study", missing), str(missing), "no such file", "did you mean")


def test_what_is_not_text_is_refused(tmp_path: Path, aqmlab: Aqmlab) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe\x00\x01")
    assert_refused(aqmlab("run", "a.toml"), "a.toml", "not a TOML file")
    assert_refused(aqmlab("run", tmp_path), str(tmp_path), "cannot be read")


@pytest.mark.parametrize("setting", ["queue.target", "=2ms", "queue..target=2ms", "queue.=1"])
def test_a_setting_without_key_or_value(setting: str, scenario: Path, aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab("run", scenario, "--set", setting), "--set", f"`{setting}`", "such as")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("queue.targt=2ms", ["targt", "did you mean `target`?"]),
        ("queue.target=2", ["queue.target", "`2`", "ms"]),
        ("links.down.rate.x=2", ["links.down.rate"]),
        ("link.down.rate=2mbit", ["link", "did you mean `links`?"]),
        ("queue=fq_coddel", ["fq_coddel", "did you mean `fq_codel`?"]),
        (
            "transport.congestion_control={ algorithm = 'cubic', beta = 99999999999999999999 }",
            ["transport.congestion_control.beta", "`99999999999999999999`"],
        ),
        ("transport.congestion_control={ algorithm = reno }", ["congestion_control", "not TOML"]),
        ("links.dwon.rate=5mbit", ["`dwon`: unknown link", "`down`"]),
        ("quue=codel", ["quue: unknown key", "`queue`"]),
        ("links.down.rate=10Mbps", ["`10Mbps`", "not mbps"]),
        ("queue=pfifo_fast", ["unknown queue discipline", "`droptail`"]),
    ],
)
def test_a_wrong_setting(setting: str, words: list[str], scenario: Path, aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab("run", scenario, "--set", setting), *words)


def test_a_study_is_not_a_scenario_and_the_other_way(
    study: Path, scenario: Path, aqmlab: Aqmlab
) -> None:
    assert_refused(aqmlab("run", study), "this is a study", "aqmlab study")
    done = aqmlab("study", scenario)
    assert_refused(done, str(scenario), "this is a scenario", f"aqmlab run {scenario}")


STUDIES = {
    "unknown key": ("replications = 2", "replicatons = 2", ["replicatons", "`replications`?"]),
    "no replications": ("replications = 2", "replications = 0", ["replications", "`0`"]),
    "no such scenario": ('"scenario.toml"', '"other.toml"', ["other.toml", "no such file"]),
    "axis without values": ("values = [1, 2, 4]", "values = []", ["axes 2", "list of values"]),
    "two axes of one name": ('name = "flows"', 'name = "queue"', ["axes 2", "one name"]),
    "axis like a column": ('name = "flows"', 'name = "dropped"', ["axes 2", "another name"]),
    "two alike labels": ("[1, 2, 4]", "[1, 2, 1]", ["axes 2", "one label"]),
    "a value too small": ("[1, 2, 4]", "[1, 0, 4]", ["queue=CoDel, flows=0", "count"]),
    "unknown discipline": ('"codel"', '"codle"', ["queue=CoDel", "did you mean `codel`?"]),
    "absurd number of runs": ("replications = 2", "replications = 9999999", ["59,999,994 runs"]),
    "unknown key of an axis": ('name = "queue"', 'nam = "queue"', ["axes 1", "`name`?"]),
}


@pytest.mark.parametrize("case", STUDIES)
def test_a_spoilt_study_is_refused(case: str, study: Path, aqmlab: Aqmlab) -> None:
    good, bad, words = STUDIES[case]
    text = study.read_text()
    assert good in text
    study.write_text(text.replace(good, bad, 1))
    assert_refused(aqmlab("study", study), *words)
    assert not (study.parent / "results").exists()


def test_a_setting_may_not_replace_an_axis(study: Path, aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab("study", study, "--set", "queue=pie"), "the axis `queue`")
    assert_refused(aqmlab("study", study, "--set", "flows.first.count=3"), "the axis `flows`")
    done = aqmlab("study", study, "--set", "links.down.queue.limit=9p")
    assert_refused(done, "use `queue.limit`")
    assert_refused(aqmlab("study", study, "--set", "down.queue=pie"), "use `queue`")
    assert_refused(aqmlab("study", study, "--set", "flows=4"), "--set", "`flows`")


def test_unknown_names_get_the_nearest(aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab("explain", "coddel"), "did you mean `codel`?")
    assert_refused(aqmlab("explain", "codel.targt"), "did you mean `target`?")
    assert_refused(aqmlab("explain", "codel.zzzz"), "unknown parameter of codel", "interval")
    assert_refused(aqmlab("explain", "ns3"), "this is a study", "`aqmlab reproduce ns3`")


def test_a_full_stdout_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        words = command("list", "--json")
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "No space left" in done.stderr and "Traceback" not in done.stderr


def test_a_full_disk_is_named_and_the_rest_kept(
    study: Path, aqmlab: Aqmlab, aqmlab_process: Aqmlab
) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = aqmlab_process("study", study, "--out", "out", preexec_fn=small_files)
    assert_refused(done, "out: the limit on the size of a file", "same command", status=1)
    out = study.parent / "out"
    assert not list(out.rglob("*.tmp")), "half-written files were left"
    assert aqmlab("study", study, "--out", "out").returncode == 0


def test_an_unwritable_folder_is_named(study: Path, aqmlab: Aqmlab) -> None:
    (study.parent / "file").write_text("mine")
    assert_refused(aqmlab("study", study, "--out", "file"), "file: this is a file")
    done = aqmlab("study", study, "--out", "file/below")
    assert_refused(done, "file/below: Not a directory", "0 of 12 runs are kept", status=1)
    assert (study.parent / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rnu x.toml", ["no command `rnu`", "did you mean `run`?", "`aqmlab --help`"]),
        ("run", ["FILE is missing", "`aqmlab run --help`"]),
        ("run x.toml --sed 4", ["no option --sed", "--seed"]),
        ("run x.toml --seed x", ["--seed: expected a whole number"]),
        ("run x.toml --seed -1", ["--seed: expected a whole number of at least 0"]),
        ("study x.toml --threads=0", ["--threads: expected a whole number of at least 1"]),
        (
            "study x.toml --replications=0",
            ["--replications: expected a whole number of at least 1"],
        ),
        ("run x.toml --seed", ["--seed needs a value"]),
        ("run x.toml y.toml", ["too many arguments: y.toml"]),
    ],
)
def test_a_wrong_command_line_is_one_sentence(line: str, words: list[str], aqmlab: Aqmlab) -> None:
    assert_refused(aqmlab(*line.split()), *words)


def test_the_command_alone_shows_its_help(aqmlab: Aqmlab) -> None:
    done = aqmlab()
    assert "Usage: aqmlab" in done.stdout
    assert done.stderr == ""

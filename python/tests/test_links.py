"""Links that files describe, and the page about links."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from helpers import Aqmlab

import aqmlab
from aqmlab import _core
from aqmlab._core import InputError, reference
from aqmlab.emulator.keep import recordings
from aqmlab.emulator.links import from_options
from aqmlab.scenario import Duration, Pie, Rate

GUIDE = (Path(__file__).parents[2] / "docs" / "links.md").read_text()
EXAMPLES = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
REST = """
[links.up]
rate = "10mbit"
delay = "20ms"
[flows.bulk]
count = 3
path = ["down"]
return_path = ["up"]
"""
TRACE = "".join(f"{time}\n" for time in range(2, 1001, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a scenario over a trace, and the files that the guide's examples name."""
    (tmp_path / "scenario.toml").write_text(
        'duration = "3s"\n[links.down]\nrate = { trace = "down.trace" }\n' + REST
    )
    (tmp_path / "down.trace").write_text(TRACE)
    (tmp_path / "rates.csv").write_text("time,rate\n0,5\n1,0.5\n2,20\n")
    (tmp_path / "delays.csv").write_text("0 20\n1 35.5\n")
    return tmp_path


def the_link(result: aqmlab.RunResult) -> dict[str, float]:
    return result.links.filter(pl.col("link") == "down").row(0, named=True)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(example: str, folder: Path) -> None:
    path = folder / "example.toml"
    path.write_text('duration = "3s"\n' + example + REST)
    link = the_link(aqmlab.run(path))
    assert link["delivered"] > 50
    assert 0 < link["utilisation"] <= 1


def test_the_page_has_every_key() -> None:
    known = set(re.findall(r"[a-z_]+", GUIDE))
    for entry in reference():
        if entry["section"] == "link":
            # The numbers of the LTE model are in the reference.
            keys = [each["name"] for each in entry["params"] if "fitted" not in each["source"]]
            keys = [key for key in keys if key != "thresholds"]  # in docs/scenarios.md
            missing = [key for key in keys if key not in known]
            assert not missing, f"{entry['name']}: {missing}"


def test_a_path_is_relative_to_the_scenario(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    # 500 opportunities a second, of 1504 bytes.
    link = the_link(aqmlab.run(folder / "scenario.toml"))
    assert link["delivered_bytes"] <= 3 * 500 * 1504
    monkeypatch.chdir(folder)
    text = (folder / "scenario.toml").read_text()
    assert the_link(aqmlab.run(_core.Scenario(text))) == link
    monkeypatch.chdir(folder.parent)
    with pytest.raises(InputError, match="there is no such file"):
        aqmlab.run(
            {"links": {"down": {"rate": {"trace": "down.trace"}}}, "flows": {}},
        )


def test_the_digest_changes_with_the_content(folder: Path) -> None:
    (folder / "study.toml").write_text(
        'scenario = "scenario.toml"\n[[axes]]\nkey = "queue"\nvalues = ["codel", "droptail"]\n'
    )
    before = aqmlab.Study(folder / "study.toml")
    same = aqmlab.Study(folder / "study.toml")
    assert before.digest == same.digest
    before.run(folder / "out")
    (folder / "down.trace").write_text(TRACE + "1000\n")
    after = aqmlab.Study(folder / "study.toml")
    assert after.digest != before.digest
    with pytest.raises(aqmlab.FolderError):
        after.run(folder / "out")


def test_a_scenario_takes_settings_after_it_was_read(folder: Path) -> None:
    text = (folder / "scenario.toml").read_text()
    scenario = _core.Scenario(text, folders=[str(folder)])
    fast = aqmlab.run(scenario, set={"links.down.rate.opportunity": "3008b"})
    assert (
        the_link(fast)["delivered_bytes"] > 1.5 * the_link(aqmlab.run(scenario))["delivered_bytes"]
    )
    (folder / "down.trace").write_text("5\n")
    with pytest.raises(InputError, match="has changed"):
        aqmlab.run(scenario, set={"seed": 2})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file contains no delivery opportunity"),
        (b"1\n2\nabc\n", "down.trace:3: links.down.rate.trace: `abc`: expected a whole number"),
        (
            b"1\r\n5\r\n3\r\n",
            "down.trace:3: links.down.rate.trace: `3`: expected a time not before",
        ),
        (
            b"-5\n",
            "down.trace:1: links.down.rate.trace: `-5`: expected a whole number of ms from 0",
        ),
        (b"9223372036854775807\n", "down.trace:1: "),
        (b"0\n", "expected a last time above 0"),
        (b"0\n0\n", "expected a last time above 0"),
        (b"1\n-3\n", "down.trace:2: "),
        (b"\x80\x81\n", "down.trace:1: "),
        (b"1\r\n2.5\r\n", "down.trace:2: "),
        (b"1\n\n# a comment\n5\n3\n", "down.trace:5: "),
    ],
)
def test_a_bad_trace_is_one_line_on_the_screen(
    content: bytes, expected: str, folder: Path, aqmlab: Aqmlab
) -> None:
    (folder / "down.trace").write_bytes(content)
    done = aqmlab("run", "scenario.toml", cwd=folder)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "least"),
    [
        (b"1\r\n3\r\n", 0),
        (b"# comment\n\n1\n\n3\n", 0),
        (b"2\n" * 1_000_000, 0),
        (b"".join(b"%d\n" % time * 3 for time in range(500_000)), 1000),
    ],
    ids=["crlf", "blank", "million", "huge"],
)
def test_a_strange_trace_that_is_right_runs(content: bytes, least: int, folder: Path) -> None:
    (folder / "down.trace").write_bytes(content)
    link = the_link(aqmlab.run(folder / "scenario.toml"))
    assert link["delivered"] > least and link["utilisation"] <= 1


def test_a_folder_is_no_trace(folder: Path, aqmlab: Aqmlab) -> None:
    done = aqmlab("run", "scenario.toml", "--set", "links.down.rate.trace=.", cwd=folder)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


def test_the_capacity_is_recorded(folder: Path) -> None:
    result = aqmlab.run(folder / "scenario.toml", record="series")
    samples = result.series.filter((pl.col("quantity") == "capacity_bps") & (pl.col("time_s") > 0))[
        "value"
    ]
    assert samples.to_list() == pytest.approx([50 * 1504 * 8 / 0.1] * 30)


def test_what_happens_on_the_way_is_counted(folder: Path) -> None:
    settings = {"links.down.loss": 0.05, "links.down.duplicate": 0.1}
    link = the_link(aqmlab.run(folder / "scenario.toml", set=settings))
    assert 0.02 < link["lost"] / link["delivered"] < 0.08
    assert 0.05 < link["duplicated"] / link["delivered"] < 0.15
    assert link["dropped"] + link["delivered"] <= link["arrived"]


def test_options_take_what_netem_takes() -> None:
    common = {"loss": "1% 25%", "jitter": "2ms 25% pareto", "duplicate": "0.1%"}
    path = from_options(common, ["loss=2%,0.5 jitter=3ms,normal"], [], {"links.up.loss.chance": 0})
    links = json.loads(path.scenario.resolved)["links"]
    assert links["down"]["loss"] == {"chance": "0.02", "correlation": "0.5"}
    assert links["down"]["jitter"] == {"spread": "3ms", "distribution": "normal"}
    assert links["up"]["loss"] == {"chance": "0", "correlation": "0.25"}
    assert links["up"]["jitter"] == {
        "spread": "2ms",
        "distribution": "pareto",
        "correlation": "0.25",
    }
    assert links["up"]["duplicate"] == "0.001"
    common = {"loss": "gemodel 1% 10% 70% 0.1%", "jitter": "2ms distribution uniform"}
    path = from_options(common, ["loss=random,1%"], [], {})
    links = json.loads(path.scenario.resolved)["links"]
    assert links["up"]["loss"] == {"p": "0.01", "r": "0.1", "bad": "0.7", "good": "0.001"}
    assert links["up"]["jitter"]["distribution"] == "uniform"
    assert links["down"]["loss"] == "0.01"
    for option, text, word in (
        ("loss", "state 1%", "gemodel"),
        ("loss", "1% 2% 3%", "^loss:"),
        ("loss", "1% 200%", "correlation"),
        ("jitter", "2ms 25% 30%", "^jitter:"),
        ("jitter", "2ms paretoo", "did you mean"),
        ("slot", "2ms 8ms 9ms", "^slot:"),
        ("slot", "packets 4", "^slot:"),
        ("slot", "2ms packets", "^slot:"),
        ("slot", "2ms packets 3 packets 4", "^slot:"),
        ("slot", "2ms packet 4", "^slot:"),
        ("slot", "2ms packets 0", r"^slot \(slot.packets\)"),
        ("slot", "8ms 2ms", r"^slot \(slot.max\)"),
    ):
        with pytest.raises(aqmlab.InputError, match=word):
            from_options({option: text}, [], [], {})


def test_errors_of_the_emulators_functions_name_their_arguments() -> None:
    calls: list[tuple[str, Callable[[], object]]] = [
        (r"^down \(rate\): ", lambda: from_options({}, ["rate=5"], [], {})),
        ("^profile: ", lambda: from_options({}, [], [], {}, "dls")),
        ("^ring: ", lambda: recordings(Path("x"), "1kb")),
        ("^places: ", lambda: recordings(places="near")),
        ("^log: ", lambda: recordings(log=["up"])),
    ]
    for error, call in calls:
        with pytest.raises(aqmlab.InputError, match=error):
            call()


def test_options_may_be_objects() -> None:
    common = {"rate": Rate("9mbit"), "delay": Duration("7ms"), "queue": Pie()}
    path = from_options(common, [], [], {"links.up.queue.target": Duration("3ms")})
    up = json.loads(path.scenario.resolved)["links"]["up"]
    assert (up["rate"], up["delay"], up["queue"]["target"]) == ("9mbit", "7ms", "3ms")


def test_slots_are_given_as_to_netem() -> None:
    common = {"slot": "2ms 8ms packets 16 bytes 40000"}
    path = from_options(common, ["slot=3ms,packets,5"], [], {})
    links = json.loads(path.scenario.resolved)["links"]
    assert links["up"]["slot"] == {"min": "2ms", "max": "8ms", "packets": "16", "bytes": "40000b"}
    assert {key: links["down"]["slot"][key] for key in ("min", "packets")} == {
        "min": "3ms",
        "packets": "5",
    }
    (table,) = {
        json.dumps(json.loads(from_options({}, [text], [], {}).scenario.resolved)["links"]["down"])
        for text in ("slot=1ms", 'slot={min="1ms"}', "slot.min=1ms")
    }
    assert '"min": "1ms"' in table


def test_correlation_keeps_the_number_of_losses(folder: Path) -> None:
    """Linux's netem loses 2 packets in a million with these numbers."""
    cbr = {"kind": "cbr", "rate": "4mbit", "packet": "100b"}
    settings = {"flows": {"cbr": {"path": "down", "return_path": "up", "workload": cbr}}}
    settings |= {"links.down.loss": 0.01, "links.down.loss.correlation": 0.25, "duration": "10s"}
    link = the_link(aqmlab.run(folder / "scenario.toml", set=settings))
    assert link["delivered"] > 40_000
    assert 0.007 < link["lost"] / link["delivered"] < 0.013


def test_explain_shows_what_a_link_may_be(aqmlab: Aqmlab) -> None:
    done = aqmlab.ok("explain", "link")
    for name in ("overhead", "shares", "rate-steps", "lte", "wifi", "gilbert-elliott", "jitter"):
        assert name in done.stdout, name
    assert "slow_deviation" in aqmlab("explain", "lte").stdout


def test_series_add_up_to_the_totals(folder: Path) -> None:
    settings = {"links.down.queue": {"discipline": "droptail", "limit": "20p"}}
    record = {"level": "series", "interval": "100ms"}
    result = aqmlab.run(folder / "scenario.toml", set=settings, record=record)
    rows = result.series.filter(pl.col("subject") == "down")
    of = {name: part["value"].to_numpy() for (name,), part in rows.group_by("quantity")}
    link = the_link(result)
    # The last sample may come before the end of the run.
    assert of["delivered_bytes"].tolist() == sorted(of["delivered_bytes"])
    assert link["delivered_bytes"] - of["delivered_bytes"][-1] <= 50 * 1504
    assert of["throughput_bps"].sum() / 80 == pytest.approx(of["delivered_bytes"][-1])
    lost = of["dropped"][-1] * 1500 + of["backlog_bytes"][-1]
    assert of["ingress_bps"].sum() / 80 == pytest.approx(of["delivered_bytes"][-1] + lost, rel=0.01)
    assert of["capacity_bps"].sum() / 80 == pytest.approx(link["capacity_bytes"], rel=0.04)
    assert max(of["sojourn_max_s"]) <= link["sojourn_max_s"] < 1.5 * max(of["sojourn_max_s"])
    assert (of["sojourn_mean_s"] <= of["sojourn_max_s"]).all()


@pytest.mark.parametrize(
    ("rate", "capacity"),
    [("10mbit", 3.75e6), ({"steps": [["0s", "8mbit"], ["2s", "16mbit"]]}, 2e6 + 2e6)],
)
def test_the_capacity_of_a_run(rate: object, capacity: float, folder: Path) -> None:
    settings = {"links.down.rate": rate, "duration": "3s", "links.down.overhead": 0}
    result = aqmlab.run(folder / "scenario.toml", set=settings)
    link = the_link(result)
    assert link["capacity_bytes"] == pytest.approx(capacity)
    assert 0.3 * capacity < link["delivered_bytes"] <= capacity

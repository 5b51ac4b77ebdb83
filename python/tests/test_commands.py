"""What the commands print, for people, programs and shells that complete words."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from helpers import COMMAND, Aqmlab, assert_refused, command, environment, run_program

from aqmlab import _core
from aqmlab.cli import COMMANDS
from aqmlab.cli.completion import SCRIPTS, complete
from aqmlab.report.run_console import busy_links
from tools import discipline_pages as pages

DOCS = Path(__file__).parents[2] / "docs"


def test_the_help_of_each_command_has_examples(aqmlab: Aqmlab) -> None:
    for name in COMMANDS:
        examples = aqmlab.ok(name, "--help").stdout.partition("Examples")[2]
        assert f"aqmlab {name}" in examples, name


def test_a_flow_that_ended_is_not_endless(aqmlab: Aqmlab) -> None:
    home = Path(__file__).parents[2] / "examples" / "bufferbloat.toml"
    short = ["duration=14s", "record.level=series", "queue=fq_codel", "record.interval=1s"]
    shown = aqmlab.ok("run", home, *(word for each in short for word in ("--set", each))).stdout
    [download] = re.findall(r"^download\.0 .*", shown, re.MULTILINE)
    pages = re.findall(r"^page\.\d+ +(\S+) +\S+ s +(\S+ s|–)", shown, re.MULTILINE)
    assert "endless" in download
    assert {size for size, _ in pages} == {"–"} and "–" in {took for _, took in pages}
    assert "power: goodput over mean one-way delay" in shown


def test_run_shows_links_flows_and_where_the_results_went(scenario: Path, aqmlab: Aqmlab) -> None:
    done = aqmlab.ok("run", scenario, "--set", "queue.target=2ms")
    for word in ("Links", "Flows", "down", "first.1", " codel", "bit/s", "Nothing was saved"):
        assert word in done.stdout, word
    done = aqmlab("run", scenario, "--out", "kept")
    assert "Results are in kept" in done.stdout
    assert (scenario.parent / "kept" / "links.parquet").exists()


def test_run_says_that_transfers_were_not_finished(scenario: Path, aqmlab: Aqmlab) -> None:
    done = aqmlab("run", scenario, "--set", "duration=1s")
    assert "3 of 3 transfers had not finished" in done.stdout


def test_run_as_json_gives_the_tables(scenario: Path, aqmlab: Aqmlab) -> None:
    tables = aqmlab.json("run", scenario, "--json")
    assert set(tables) == {
        *("runs", "links", "flows", "groups", "traffic", "times", "scores"),
        *("excursions", "notes", "metrics"),
    }
    assert {row["link"] for row in tables["links"]} == {"down", "up"}
    level = ("--set", "record.level=summary")
    kept = aqmlab.json("run", scenario, "--json", "--out", "kept", *level)
    assert kept == tables


def test_a_setting_and_a_seed_change_the_run(scenario: Path, aqmlab: Aqmlab) -> None:
    variants = [[], ["--seed", "2"], ["--set", "seed=2"], ["--set", "queue=droptail"]]
    outputs = [aqmlab("run", scenario, "--json", *extra).stdout for extra in variants]
    assert outputs[1] == outputs[2]
    assert len(set(outputs)) == 3


def test_study_shows_one_row_a_point(study: Path, aqmlab: Aqmlab) -> None:
    done = aqmlab.ok("study", study)
    assert done.stderr == "", "no progress bar where there is no terminal"
    assert "12 runs in" in done.stdout
    assert "results/small" in done.stdout
    bottleneck, _, groups = done.stdout.partition("Groups of flows")
    for table in (bottleneck, groups):
        assert len(re.findall(r"^CoDel +\d", table, re.MULTILINE)) == 3
    assert (study.parent / "results" / "small" / "manifest.json").exists()


def test_study_as_json(study: Path, aqmlab: Aqmlab) -> None:
    answer = aqmlab.json("study", study, "--json", "--replications", "3", "--seed", "5")
    assert answer["study"] == "small"
    assert (answer["runs"], answer["computed"]) == (18, 18)
    assert answer["folder"] == "results/small-r3-s5"
    assert len(answer["points"]) == 6
    first = answer["points"][0]
    assert (first["queue"], first["flows"]) == ("CoDel", "1")
    assert 0 < first["utilisation"] <= 1
    assert 0 < first["sojourn_p95_s"] <= first["sojourn_max_s"]


def test_run_shows_what_applications_measure(aqmlab: Aqmlab, tmp_path: Path) -> None:
    link = 'rate = "20mbit"\ndelay = "10ms"\nqueue = "fq_codel"\n'
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        f'duration = "20s"\n[links.down]\n{link}[links.up]\n{link}'
        '[flows.app]\npath = "down"\nreturn_path = "up"\nworkload = "rpm"\n'
    )
    rpm = aqmlab("run", scenario).stdout
    for word in ("http_l", "tls_f", "app: rpm", "confidence 2", "Mbit/s"):
        assert word in rpm, word
    for workload, words in {
        "rfc7928-web": ("page_load", "first_byte"),
        "dash": ("segment", "bitrate", "stalls 0"),
        "incast": ("query",),
        "game": ("late (forward) 0", "late (reverse) 0"),
    }.items():
        done = aqmlab("run", scenario, "--set", f"flows.app.workload={workload}").stdout
        assert all(word in done for word in words), done
    done = aqmlab("run", scenario, "--set", "flows.app.workload=rfc7928-webb")
    assert "rfc7928-web" in done.stderr


def test_list_names_what_there_is(aqmlab: Aqmlab) -> None:
    done = aqmlab("list")
    for word in ("codel", "red", "pie", "fq_codel", "droptail", "jarvinen2014"):
        assert word in done.stdout, word
    everything = aqmlab.json("list", "--json")
    kinds = {"disciplines", "presets", "congestion_controls", "transports", "workloads", "metrics"}
    assert set(everything) == kinds | {"studies", "profiles"}
    for entries in everything.values():
        assert all(entry["name"] and entry["summary"] for entry in entries)
    preset_of = {each["preset_of"] for each in everything["presets"]}
    assert aqmlab("list", "queues").stdout == aqmlab("list", "disciplines").stdout
    bases = everything["disciplines"] + everything["workloads"]
    assert preset_of <= {each["name"] for each in bases}
    assert "page" in preset_of


def test_explain_says_default_range_and_source(aqmlab: Aqmlab) -> None:
    done = aqmlab("explain", "codel.target")
    for word in ("target", "default 5ms", "RFC 8289"):
        assert word in done.stdout, done.stdout
    assert "interval" not in done.stdout.partition("target")[0]
    assert "interval" in aqmlab("explain", "codel").stdout


def test_brackets_are_shown_as_they_are(aqmlab: Aqmlab, scenario: Path) -> None:
    assert "default [cs0, cs1, cs5, ef]" in aqmlab("explain", "rrul").stdout
    done = aqmlab("run", scenario, "--out", "[red]out[/]")
    assert "[red]out[/]" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("links.down.rate", "link.rate"),
        ("links.down.queue.quantum", "queue.quantum"),
        ("flows.download.count", "flow.count"),
        ("flows.download.transport.mss", "transport.mss"),
        ("sojourn_p95", "sojourn"),
        ("pfifo", "droptail"),
    ],
)
def test_explain_takes_what_set_and_rules_take(given: str, found: str, aqmlab: Aqmlab) -> None:
    assert aqmlab.ok("explain", given).stdout == aqmlab.ok("explain", found).stdout
    assert_refused(aqmlab("explain", "codel_p95"), "unknown name")


def test_explain_finds_the_words_of_tc_in_sources(aqmlab: Aqmlab) -> None:
    [losses] = aqmlab.json("explain", "gemodel", "--json")
    assert losses["name"] == "gilbert-elliott"
    assert [each["name"] for each in losses["params"]] == ["p", "r", "bad", "good"]
    netem = aqmlab.json("explain", "netem", "--json")
    assert {"link", "jitter", "slot"} <= {each["name"] for each in netem}
    assert_refused(aqmlab("explain", "fqcodel"), "unknown name", "fq_codel")


def test_explain_finds_a_parameter_wherever_it_is(aqmlab: Aqmlab) -> None:
    entries = aqmlab.json("explain", "limit", "--json")
    assert {"codel", "droptail"} <= {entry["name"] for entry in entries}
    # A word of tbf, which has no effect.
    words = [entry for entry in entries if entry["name"] == "shaper"]
    assert [entry["params"] for entry in words] == [[]]
    others = [entry for entry in entries if entry not in words]
    assert all([param["name"] for param in entry["params"]] == ["limit"] for entry in others)


def test_the_reference_page_is_up_to_date(aqmlab: Aqmlab) -> None:
    page = (DOCS / "reference.md").read_text()
    assert aqmlab("explain", "--markdown").stdout == page, "run `make reference`"


def test_the_pages_of_the_disciplines_are_up_to_date() -> None:
    for entry in pages.disciplines():
        path = DOCS / "disciplines" / f"{entry['name']}.md"
        assert path.exists(), f"{entry['name']} has no page"
        text = path.read_text()
        assert text == pages.page(text, entry), f"{path.name}: run `make reference`"
        assert (DOCS / "images" / "disciplines" / f"{entry['name']}.svg").exists()


@pytest.mark.parametrize("name", ["codel", "droptail"])
def test_a_chart_shows_what_the_program_does_now(name: str, tmp_path: Path, aqmlab: Aqmlab) -> None:
    aqmlab.ok("explain", name, "--chart", tmp_path / f"{name}.svg")
    drawn = (tmp_path / f"{name}.svg").read_text()
    assert drawn == (DOCS / "images" / "disciplines" / f"{name}.svg").read_text()
    refused = aqmlab("explain", "jain", "--chart", "x.svg")
    assert_refused(refused, "`jain`: unknown queue discipline")
    assert "--set" not in refused.stderr
    refused = aqmlab("explain", name, "--chart", "missing/x.svg")
    assert_refused(refused, "missing", status=1)


def test_a_closed_pipe_is_no_error_message(aqmlab: Aqmlab) -> None:
    line = " ".join(command("list", "--json")) + " | head -c 1"
    done = run_program(line, shell=True, env=environment())
    assert done.stderr == ""


def test_the_version_and_the_module(aqmlab: Aqmlab) -> None:
    assert aqmlab("--version").stdout.startswith("aqmlab 0.")
    line = [sys.executable, "-m", "aqmlab", "--version"]
    done = run_program(line)
    assert done.stdout == aqmlab("--version").stdout


def results_of(down: str, up: str, workload: str = "bulk") -> _core.Results:
    scenario = {
        "duration": "5s",
        "bottleneck": "down",
        "links": {
            "down": {"rate": down, "delay": "10ms", "queue": "codel"},
            "up": {"rate": up, "delay": "10ms", "queue": "codel"},
        },
        "flows": {"upload": {"path": "up", "return_path": "down", "workload": workload}},
    }
    runner = _core.Runner([(0, _core.Scenario(scenario), 0)], threads=1)
    while (found := runner.poll(0.1)) is None:
        pass
    return found


def test_an_upload_is_told_at_its_link_and_not_at_the_idle_one() -> None:
    line, *notes = busy_links(results_of("20mbit", "2mbit"))
    assert line.startswith("up: 9") and "% busy" in line
    assert not any("busy, in the queue" in note for note in notes)
    assert "dropped (" in line and "codel)" in line and "(p95)" in line


def test_both_directions_are_told_where_both_are_busy() -> None:
    told = [
        line for line in busy_links(results_of("40kbit", "2mbit")) if "% busy, in the queue" in line
    ]
    assert [line.split(":")[0] for line in told] == ["down", "up"]


def test_idle_links_are_not_told() -> None:
    assert not any(
        "% busy, in" in line for line in busy_links(results_of("20mbit", "20mbit", "voip"))
    )


OFFERED = {
    "stu": ["study"],
    "run --see": ["--seed"],
    "run x.toml --set queue=fq_p": ["queue=fq_pie"],
    "run x.toml --set queue=codel --set queue.va": ["queue.variant="],
    "run x.toml --set queue=codel --set queue.variant=rfc": ["queue.variant=rfc8289"],
    "run x.toml --set transport.congestion_control=cu": ["transport.congestion_control=cubic"],
    "run x.toml --set record.le": ["record.level="],
    "run x.toml --set record.level=pa": ["record.level=packets"],
    "explain codel.ta": ["codel.target"],
    "try --access sa": ["satellite"],
    "try fq_co": ["fq_codel", "fq_cobalt"],
    "reproduce jarv": ["jarvinen2014"],
    "list stu": ["studies"],
    "new qu": ["queue", "quic-controller"],
    "shell --queue dual": ["dualpi2"],
    "try --profile ca": ["cable"],
    "attach --pid 7 --profile off": ["office"],
    "shell -- pi": [],
    "shell --queue pfi": ["pfifo"],
    'run x.toml --set "queue=cake bandw': ["queue=cake bandwidth"],
    'run x.toml --set "down.queue=cake bandwidth 5mbit pppoe-p': [
        "down.queue=cake bandwidth 5mbit pppoe-ptm"
    ],
    "shell --queue 'codel variant=lin": ["codel variant=linux"],
    "shell --queue 'red_linux ecn adapti": ["red_linux ecn adaptive"],
    "try cake 'fq_codel mem": ["fq_codel memory_limit"],
    "explain cake.sp": [],
    "run x": [],
}


@pytest.mark.parametrize("line", OFFERED)
def test_what_is_offered(line: str) -> None:
    assert complete(line.split()) == OFFERED[line]


def test_everything_is_offered_after_a_space() -> None:
    assert {"run", "study", "try", "--help"} <= set(complete([""]))
    assert "codel" in complete(["characterize", ""])
    assert complete(["try", "'cake bandwidth", ""]) == [], "a rate"
    assert {"queue=", "queue.", "links."} <= set(complete(["run", "x.toml", "--set", ""]))


def completed(shell: str, program: str, aqmlab: Aqmlab, folder: Path) -> list[str]:
    """What a program for a shell prints that has read its script, a line each."""
    script = aqmlab("completion", shell)
    assert script.returncode == 0 and script.stdout == SCRIPTS[shell]
    (folder / "script").write_text(script.stdout)
    path = {**os.environ, "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}
    plain = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[shell]
    done = run_program([shell, plain, "-c", program], cwd=folder, env=path)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


PROGRAMS = {
    "bash": (
        ". ./script; compopt() { :; }",
        "COMP_LINE='{line}' COMP_POINT={length}; "
        'COMP_LINE=$COMP_LINE; _aqmlab; printf "%s\\n" "${{COMPREPLY[@]}}"',
    ),
    # Outside of its line editor zsh has neither the words nor a place for completions.
    "zsh": (
        'compdef() { }; compadd() { print -rl -- "${@[${@[(i)--]}+1,-1]}"; }; . ./script',
        "words=({line}); CURRENT={count}; _aqmlab",
    ),
    "fish": ("source script", "complete -C '{line}'"),
}
"""The beginning of a program for each shell, and the part that completes a line."""
LINES = {
    "aqmlab stu": "study",
    "aqmlab run x.toml --set queue=fq_p": "queue=fq_pie",
    "aqmlab run x.toml --set queue=codel --set queue.tar": "queue.target=",
    "aqmlab explain codel.tar": "codel.target",
    'aqmlab run x.toml --set "queue=cake besteffort bandw': "queue=cake besteffort bandwidth",
}


@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in PROGRAMS]
)
def test_a_shell_completes(shell: str, aqmlab: Aqmlab, tmp_path: Path) -> None:
    begin, complete_line = PROGRAMS[shell]
    # Words in quotes are split by bash alone.
    lines = [line for line in LINES if shell == "bash" or '"' not in line]
    parts = [
        complete_line.format(line=line, length=len(line), count=len(line.split())) for line in lines
    ]
    # Readline of bash begins a new word after `=`, outside of quotes.
    assert completed(shell, "; ".join([begin, *parts]), aqmlab, tmp_path) == [
        LINES[line].removeprefix("queue=") if shell == "bash" and '"' not in line else LINES[line]
        for line in lines
    ]


@pytest.mark.needs("fish")
def test_fish_offers_files_only_where_there_is_nothing_else(aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text("")
    asked = [f"complete -C 'aqmlab {line}'" for line in ("try --load ", "run li")]
    found = completed("fish", "source script; " + "; ".join(asked), aqmlab, tmp_path)
    assert sorted(found) == ["gaming", "home", "line.toml", "office", "rrul"]

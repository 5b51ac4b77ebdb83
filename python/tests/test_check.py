"""`aqmlab check` as a gate: baselines, exit status, JUnit XML, annotations."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from xml.etree import ElementTree

import pytest
from helpers import in_process

from aqmlab.cli import main

PACK = """
replications = 6
slot = "flows.bulk.endpoint"
[contenders]
mine = { kind = "quic", send_window = "WINDOW" }
[scenario]
duration = "5s"
links.down = { rate = "20mbit", delay = "10ms", loss = 0.0001 }
links.up = { rate = "20mbit", delay = "10ms" }
flows.bulk = { path = "down", return_path = "up", start = { each = ["0s", "1s"] } }
record.warmup = "2s"
[expect]
fast = "goodput no worse than baseline by 5%"
soon = "down.sojourn_p95 no worse than baseline by 2ms"
plain = "goodput >= 0.5 * baseline"
clean = "loss_share no worse than baseline by 5%"
few = "down.sojourn_p95 < 1s"
"""


PAGES = """
name = "pages"
replications = 10
[expect]
fast = "web.page_load_mean <= 20s"
[scenario]
duration = "12s"
bottleneck = "down"
[scenario.links]
down = { rate = "3mbit", delay = "20ms", queue = "droptail limit 600" }
up = { rate = "3mbit", delay = "20ms" }
[scenario.flows]
bulk = { path = "down", return_path = "up", count = 3 }
[scenario.flows.web]
path = "down"
return_path = "up"
start = { uniform = ["0s", "2s"] }
workload = { kind = "page", objects = 60, hosts = 4 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack, its baseline, and the pack with a window of half the size."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "pack.toml").write_text(PACK.replace("WINDOW", "60kb"))
    (folder / "half.toml").write_text(PACK.replace("WINDOW", "30kb"))
    done = _check(folder, "pack.toml", "--save", folder / "base.json")
    assert done.returncode == 0, done.stderr
    assert "No rule of 1 fails." in done.stdout, "the others have nothing to compare with"
    return folder


def _check(folder: Path, pack: str, *words: object) -> CompletedProcess[str]:
    out = folder / f"results-{pack}-{len(list(folder.iterdir()))}"
    return in_process(main, "check", folder / pack, "--no-report", "--out", out, *words, cwd=folder)


def test_the_same_code_passes(folder: Path) -> None:
    done = _check(folder, "pack.toml", "--baseline", folder / "base.json", "--strict")
    assert done.returncode == 0, done.stderr
    assert "No rule of 5 fails." in done.stdout


def test_a_regression_fails(folder: Path, tmp_path: Path) -> None:
    """Half the window is half the goodput: exit status, JUnit XML and annotations say so."""
    junit = tmp_path / "made" / "check.xml"
    done = _check(
        folder, "half.toml", "--baseline", folder / "base.json", "--junit", junit, "--github"
    )
    assert done.returncode == 1, done.stderr
    assert "of 5 rules fail: mine, fast (does not hold)" in done.stdout
    number = 1 + PACK.splitlines().index('fast = "goodput no worse than baseline by 5%"')
    start = f"::error file={folder / 'half.toml'},line={number},title=mine%2C fast%3A does not hold"
    assert start in done.stdout
    root = ElementTree.parse(junit).getroot()
    [suite] = root
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert "mine, fast" in failed and "mine, few" not in failed
    assert root.get("failures") == suite.get("failures") == str(len(failed))
    assert suite.get("tests") == "5"
    found = next(case for case in suite if case.get("name") == "mine, fast").find("failure")
    assert found is not None and "99 % interval" in str(found.text)


def test_a_regression_that_is_not_excluded_fails(folder: Path, tmp_path: Path) -> None:
    """`no worse than` has to be shown; other rules may stay undecided without --strict."""
    base = json.loads((folder / "base.json").read_text())
    [goodput] = [each for each in base["readings"] if each["metric"] == "goodput"]
    goodput["values"] = [value * (2 if r % 2 else 0.2) for r, value in enumerate(goodput["values"])]
    noisy = tmp_path / "noisy.json"
    noisy.write_text(json.dumps(base))
    done = _check(folder, "pack.toml", "--baseline", noisy, "--github")
    assert done.returncode == 1, done.stderr
    assert "1 of 5 rules fails: mine, fast (a regression is not excluded)" in done.stdout
    assert "::warning" in done.stdout and "title=mine%2C plain%3A not decided" in done.stdout


def test_pages_that_do_not_load_do_not_pass(tmp_path: Path) -> None:
    """The mean of the runs in which a page loads does not decide for the others."""
    (tmp_path / "pages.toml").write_text(PAGES)
    done = _check(tmp_path, "pages.toml", "--json", "--strict")
    assert done.returncode == 1, done.stderr
    [question] = json.loads(done.stdout)["questions"]
    [found] = question["contenders"]
    [reading] = found["readings"]
    values = [each for each in reading["values"] if each is not None]
    assert 3 < len(values) < 10 and reading["mean"] == pytest.approx(sum(values) / len(values))
    assert reading["low"] is None or reading["low"] >= 0
    [answer] = found["answers"]
    assert answer["verdict"] == "not decided"
    assert "No interval: some of the 10 replications lack a value." in answer["evidence"]


def test_json_has_standard_output_to_itself(folder: Path) -> None:
    done = _check(folder, "half.toml", "--baseline", folder / "base.json", "--json", "--github")
    form = json.loads(done.stdout)
    answers = {each["id"]: each for each in form["questions"][0]["contenders"][0]["answers"]}
    assert answers["fast"]["must_show"] and not answers["plain"]["must_show"]
    assert "::error" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "words", "parts"),
    [
        ("", "", (), ("--baseline", "--save")),
        ("20mbit", "30mbit", ("--baseline",), ("base.json", "case of the pack has changed")),
        ("mine =", "mime =", ("--baseline",), ("contender", "mine")),
        ("", "", ("--replications", "9", "--baseline"), ("--replications", "has 6")),
        ("", "", ("--seed", "9", "--baseline"), ("--seed", "has 1")),
        ("than baseline by 5%", "than base by 5%", (), ("expect.fast", "baseline, mine")),
        ("by 2ms", "by 2mbit", (), ("expect.soon", "a time such as 2ms")),
        ("goodput no", "goodput_share no", (), ("expect.fast", "neither more nor less")),
        ("mine =", "baseline =", (), ("contenders", "stands for")),
        ("fast =", "fast = { rule =", (), ("half", "line")),
    ],
)
def test_a_mistake_is_one_error(
    folder: Path, old: str, new: str, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    text = PACK.replace("WINDOW", "60kb")
    (folder / "half2.toml").write_text(text.replace(old, new) if old else text)
    more = (*words, folder / "base.json") if "--baseline" in words else words
    done = _check(folder, "half2.toml", *more)
    assert done.returncode == 2, done.stdout
    for part in parts:
        assert part in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{}", "the key 'schema' is missing"),
        ("[", "no baseline"),
        ("[]", "no baseline"),
        ("[" * 100_000, "no baseline: maximum recursion"),
        ('{"schema": 1, "replications": 1e999, "cases": {}, "readings": []}', "no baseline"),
    ],
)
def test_a_file_that_is_no_baseline(folder: Path, tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "none.json").write_text(text)
    done = _check(folder, "pack.toml", "--baseline", tmp_path / "none.json")
    assert done.returncode == 2
    assert part in done.stderr and "none.json" in done.stderr
    gone = _check(folder, "pack.toml", "--baseline", tmp_path / "gone.json")
    assert gone.returncode == 2
    assert "gone.json: the baseline cannot be read: No such file" in gone.stderr

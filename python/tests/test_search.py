"""`aqmlab search`: keys, optimisers, resuming, statements, the file of a finding."""

from __future__ import annotations

import runpy
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import SCENARIO, Aqmlab

import aqmlab
from aqmlab.search import Attack, CheckedConstraint, Key, Measure, Trial, attack, tune
from aqmlab.search.keys import parse_keys, settings
from aqmlab.search.shrink import finding
from aqmlab.search.trials import means

ROOT = Path(__file__).parents[2]
FINDINGS = sorted((ROOT / "examples" / "findings").glob("*.toml"))
SHORT = {**SCENARIO, "duration": "3s"}
BUDGET: dict[str, Any] = {"trials": 8, "batch": 4, "replications": 2, "confirm": 6}
KEYS = {"links.down.queue.limit": "5p..200p,log", "links.down.delay": "1ms..60ms"}


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    [
        ("1ms..100ms,log", [0.5], "10ms"),
        ("1ms..100ms", [0.0], "1ms"),
        ("1mbit..3mbit", [0.5], "2mbit"),
        ("1..4", [0.4], 2),
        ("0.1..0.5", [0.123456], 0.149),
        ("5p..10p", [1.0], "10p"),
        ("codel,pie", [0.6], "pie"),
        ("0%..5%", [0.5], "2.5%"),
        ("1bdp..3bdp", [0.5], "2bdp"),
    ],
)
def test_a_position_is_a_value_of_the_scenario(
    text: str, places: list[float], expected: object
) -> None:
    assert Key.parse("queue.x", text).value(places) == expected


def test_a_course_merges_equal_steps() -> None:
    key = Key.parse("links.down.delay", "10ms..30ms,steps=4,every=500ms")
    steps = [["0s", "10ms"], ["1s", "30ms"], ["1.5s", "20ms"]]
    assert key.value([0, 0, 1, 0.5]) == {"steps": steps, "repeat": False}
    assert settings([key, Key.parse("queue.x", "1..3")], [0, 0, 0, 0, 1])["queue.x"] == 3


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"keys": {}}, "keys"),
        ({"keys": {"queue.targt": "1ms..2ms"}}, "keys.queue.targt"),
        ({"goals": []}, "goals"),
        ({"goals": ["sojourn_p59"]}, "goals"),
        ({"within": ["drop_share<1"]}, "within"),
        ({"within": ["sojourn_p95<=5mbit"]}, "within"),
        ({"batch": 1}, "batch"),
        ({"confirm": 1}, "confirm"),
        ({"keys": {"seed": "1..9"}}, "keys.seed"),
        ({"keys": {"queue.target": 5}}, "keys.queue.target"),
        ({"keys": {"queue.target": "1ms..2ms,log=3"}}, "keys.queue.target"),
        ({"keys": {"down.rate": "1mbit..2mbit,steps=3,every=0s"}}, "keys.down.rate"),
    ],
)
def test_errors_of_the_library_name_arguments(given: dict[str, Any], argument: str) -> None:
    usual: dict[str, Any] = {"keys": KEYS, "goals": ["sojourn_p95"]}
    with pytest.raises(aqmlab.InputError) as raised:
        tune(SHORT, **usual | given)
    assert raised.value.key == argument
    assert "--" not in str(raised.value)


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cma", None)
    with pytest.raises(aqmlab.InputError, match=r"pip install 'aqmlab\[search\]'"):
        attack(SHORT, KEYS, "sojourn_p95", trials=4, batch=4)


def test_an_attack_needs_one_point(study: Path, tmp_path: Path) -> None:
    with pytest.raises(aqmlab.InputError, match="one point"):
        attack(study, {"links.down.delay": "1ms..9ms"}, "sojourn_p95", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    one = {"queue": ["CoDel"], "flows": ["1"]}
    found = attack(study, {"links.down.delay": "1ms..9ms"}, "sojourn_p95", only=one, **BUDGET)
    assert len(found.trials) > 1


def test_the_folder_has_the_kind_and_the_name(scenario: Path, aqmlab: Aqmlab) -> None:
    words = ["--key", "links.down.delay=1ms..60ms", "--goal", "min:sojourn_p95", "--no-report"]
    numbers = ["--trials", "4", "--batch", "4", "--confirm", "2", "--set", "duration=3s"]
    done = aqmlab.ok("search", "tune", scenario, *words, *numbers)
    assert "Results: results/tune-scenario\n" in done.stdout


def files(folder: Path) -> dict[str, bytes]:
    tables = {path.name: path.read_bytes() for path in (folder / "trials").glob("*.parquet")}
    return tables | {"search.json": (folder / "search.json").read_bytes()}


def test_threads_and_interruptions_change_nothing(tmp_path: Path) -> None:
    goals = ["min:sojourn_p95", "max:utilisation"]

    def search(out: Path, threads: int, progress: Any = None) -> Any:
        return tune(SHORT, KEYS, goals, out=out, threads=threads, progress=progress, **BUDGET)

    whole = search(tmp_path / "whole", 1)
    calls = 0

    def interrupt(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "parts", 2, interrupt)
    assert not (tmp_path / "parts" / "trials").exists()
    parts = search(tmp_path / "parts", 2)
    assert files(tmp_path / "whole") == files(tmp_path / "parts")
    assert whole.to_json()["trials"] == parts.to_json()["trials"]
    assert whole.study.info.points == len(whole.trials)
    # The tables of all trials are those of their settings.
    trial = whole.trials[3]
    row = whole.study.bottleneck.filter(trial=str(trial.number))
    alone = aqmlab.run(SHORT, set=trial.settings)
    assert row["sojourn_p95_s"][0] == alone.links.filter(link="down")["sojourn_p95_s"][0]
    for one in whole.best:
        better = [
            other for other in whole.trials
            if other.counts and other.values[0] < one.values[0] and other.values[1] > one.values[1]
        ]  # fmt: skip
        assert not better
    with pytest.raises(aqmlab.FolderError, match="another search"):
        tune(SHORT, KEYS, goals[:1], out=tmp_path / "whole", **BUDGET)


def test_a_search_is_bundled_with_its_code_and_its_finding(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "my_queue.py", tmp_path)
    queue = {"discipline": f"{tmp_path}/my_queue.py:MyQueue", "patience": "1s"}
    keys, out = {"queue.patience": "1ms..50ms"}, tmp_path / "search"
    assert tune(SHORT, keys, ["min:sojourn_p95"], set={"queue": queue}, out=out, **BUDGET).findings
    file = aqmlab.bundle(out, tmp_path / "search.zip")
    with zipfile.ZipFile(file) as archive:
        names = {*archive.namelist()}
    assert {"search.json", "finding.toml", "trials/sources/my_queue.py"} <= names
    (tmp_path / "my_queue.py").unlink()
    with pytest.raises(aqmlab.InputError, match="would execute code"):
        aqmlab.rerun(file, tmp_path / "again")
    assert aqmlab.rerun(file, tmp_path / "again", trust=True).agrees


def test_an_attack_is_confirmed_and_its_file_shows_it(tmp_path: Path) -> None:
    tail = {"queue": {"discipline": "droptail", "limit": "10p"}}
    found = attack(SHORT, KEYS, "sojourn_p95", set=tail, out=tmp_path, **BUDGET)
    (confirmed,) = found.confirmed
    assert confirmed.verdict == "confirmed"
    assert confirmed.low > 0
    assert found.finding is not None
    path = tmp_path / "finding.toml"
    assert path.read_text() == found.finding.text
    check_finding(path)
    assert set(found.best[0].settings) <= set(KEYS)
    # A finding is that of the last confirmation.
    (tmp_path / "finding-9.toml").write_text("of an earlier confirmation")
    given: dict[str, Any] = {"set": tail, "out": tmp_path, **BUDGET}
    again = attack(SHORT, KEYS, "sojourn_p95", **given | {"confirm": 7})
    assert [path.name for path in tmp_path.glob("finding*")] == ["finding.toml"]
    assert again.confirmed[0].found.count == 7
    for text in ("{", "{}", "[]"):
        (tmp_path / "search.json").write_text(text)
        with pytest.raises(aqmlab.FolderError, match=r"search\.json: damaged"):
            attack(SHORT, KEYS, "sojourn_p95", **given)


def test_a_finding_undoes_keys_that_the_file_does_not_have(tmp_path: Path) -> None:
    given = {"transport.initial_window": "2p", "queue": "pie", "down.rate": "1mbit",
             "up.queue.limit": "9p", "flows.bulk.transport.congestion_control": "reno"}  # fmt: skip
    study = aqmlab.Study({"scenario": SHORT}, set={"queue.target": "20ms"})
    measure = Measure.parse("goodput@bulk", "")
    (tmp_path / "finding.toml").write_text(finding(study, Trial(1, given, ()), measure, []).text)
    check_finding(tmp_path / "finding.toml")


def test_nothing_found_is_not_decided() -> None:
    found = tune(SHORT, {"links.up.queue.limit": "900p..1000p"}, "min:sojourn_p95", **BUDGET)
    assert found.statements[0].startswith("not decided")
    assert found.finding is None


def test_trials_whose_runs_lack_values_are_not_judged_by_the_others() -> None:
    values = np.array([[[1.0, 3.0], [1.0, np.nan]], [[np.nan] * 2] * 2])
    assert means(values) == [2.0, None]


def test_a_constraint_is_kept() -> None:
    found = attack(SHORT, KEYS, "sojourn_p95", within=["utilisation<=0%"], **BUDGET)
    assert all(trial.excess > 0 for trial in found.trials)
    assert not found.best
    assert found.statements == ["not decided: no trial has values and satisfies the constraints"]
    assert Measure.limit("throughput@a<=1mbit").most == 1e6


def test_a_constraint_is_tested_with_fresh_seeds(tmp_path: Path) -> None:
    """A trial that kept its limit with the seeds of the search need not keep it with others."""
    found = tune(
        SHORT, KEYS, ["min:sojourn_p95"], within=["drop_share<=20%"], out=tmp_path, **BUDGET
    )
    (limit,), (confirmed,) = found.constraints, found.confirmed
    assert limit.trial is confirmed.trial
    assert limit.text in found.statements
    assert limit.found.count == BUDGET["confirm"]
    most = limit.measure.most
    ends = limit.found.interval
    assert ends is not None
    if limit.verdict == "not decided":
        assert ends.low <= most < ends.high
    else:
        assert (ends.high <= most) == (limit.verdict == "kept")
    values = np.linspace(0.30, 0.32, 6)
    assert CheckedConstraint.of(limit.measure, limit.trial, values).verdict == "broken"
    assert CheckedConstraint.of(limit.measure, limit.trial, values / 3).verdict == "kept"
    wide = np.array([0.0, 0.39] * 3)
    assert CheckedConstraint.of(limit.measure, limit.trial, wide).verdict == "not decided"
    assert CheckedConstraint.of(limit.measure, limit.trial, np.zeros(6)).verdict == "kept"


def test_a_measure_of_an_unknown_group_is_refused() -> None:
    result = aqmlab.run(SCENARIO, set={"duration": "1s"})
    with pytest.raises(aqmlab.InputError, match="unknown link or group"):
        Measure.parse("goodput@absent", "goals").of(result)


def check_finding(path: Path) -> None:
    """The number in the comment is that of `aqmlab run`, with and without the found settings."""
    text = path.read_text()
    assert text.count("\n") < 40
    found = Attack.read(path)
    assert found.undo
    assert found.measure.of(aqmlab.run(path))[0] == found.value
    assert found.measure.of(aqmlab.run(path, set=found.undo))[0] == found.start


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.stem)
def test_a_finding_of_the_gallery_shows_its_damage(path: Path) -> None:
    check_finding(path)


def test_keys_are_named_once() -> None:
    with pytest.raises(aqmlab.InputError, match="twice"):
        parse_keys(["queue.limit=1p..2p", "queue.limit=1p..3p"])
    assert parse_keys(["a.b=1..2"])[0].whole


EXAMPLES = FINDINGS[0].parents[1] / "search"


def test_the_low_rate_attack_is_rediscovered() -> None:
    keys = {
        "flows.attack.workload.fps": "0.3..50,log",
        "flows.attack.workload.rate": "100kbit..1mbit",
        "links.attacker.rate": "2mbit..100mbit,log",
    }
    budget = ["throughput@attack<=1mbit"]
    found = attack(EXAMPLES / "shrew.toml", keys, "goodput@victim", within=budget, trials=96,
                   batch=24, confirm=6)  # fmt: skip
    assert found.confirmed[0].verdict == "confirmed"
    assert found.finding is not None
    assert found.finding.value < 0.6 * found.finding.start
    # The period is near the least retransmission timeout, 1 s.
    assert 0.6 < found.best[0].settings["flows.attack.workload.fps"] < 1.3


def test_bbr_stalls_under_a_course_of_delays() -> None:
    keys = {"links.down.delay": "5ms..300ms,steps=7,every=2s"}
    found = attack(EXAMPLES / "bbr.toml", keys, "goodput@bulk", trials=72, confirm=6)
    assert found.confirmed[0].verdict == "confirmed"
    assert found.confirmed[0].found.value < 0.3 * found.start.values[0]


def test_red_is_tuned_for_load_transients() -> None:
    example = runpy.run_path(str(EXAMPLES / "load_transient.py"))
    found = tune(example["study"](), example["KEYS"], example["GOALS"], trials=32, replications=1,
                 confirm=6)  # fmt: skip
    start = found.start.values
    better = [t for t in found.best if t.values[0] < start[0] / 3 and t.values[1] < start[1]]
    assert better
    delays = [each for each in found.confirmed if each.measure.text == "sojourn_p95"]
    assert {each.verdict for each in delays if each.trial in better} == {"confirmed"}

"""Contents of the disk when a command is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from helpers import (
    PATIENCE,
    SCENARIO_TEXT,
    command,
    run_program,
    runs_kept,
    started,
    wait_until,
    write_study,
)

import aqmlab

pytestmark = pytest.mark.slow

QUICK = 4
LONG_STUDY = """
name = "long"
seed = 3
scenario = "scenario.toml"

[[axes]]
name = "length"
values = [
  { label = "1", set = {} },
  { label = "2", set = {} },
  { label = "3", set = {} },
  { label = "4", set = {} },
  { label = "long", set = { duration = "1000000s", "flows.first.size" = "none" } },
]
"""


@pytest.fixture
def long_study(tmp_path: Path) -> Path:
    """Four quick runs, and one behind them that takes many minutes."""
    (tmp_path / "scenario.toml").write_text(SCENARIO_TEXT)
    path = tmp_path / "study.toml"
    path.write_text(LONG_STUDY)
    return path


def begun(study: Path, *words: str) -> subprocess.Popen[str]:
    out = study.parent / "out"
    return started([*words, *command("study", study, "--out", out, "--threads", 1)])


@pytest.mark.slow
def test_a_folder_after_a_kill_is_the_same_but_for_what_the_manifest_names(tmp_path: Path) -> None:
    folders = [tmp_path / "killed", tmp_path / "whole"]
    words = command("study", "study.toml", "--out", "out", "--threads", "1")
    for folder in folders:
        folder.mkdir()
        write_study(folder, replications=300)
    with subprocess.Popen(words, cwd=folders[0], stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: runs_kept(folders[0] / "out"), process)
        process.kill()
    assert 0 < len(runs_kept(folders[0] / "out")) < 1800
    for folder in folders:
        subprocess.run(words, cwd=folder, check=True, timeout=200, stdout=subprocess.DEVNULL)
    places = [folder / "out" for folder in folders]
    rest = run_program(["diff", "-r", "--exclude=manifest.json", *places])
    assert (rest.returncode, rest.stdout) == (0, "")
    killed, whole = (json.loads((place / "manifest.json").read_text()) for place in places)
    assert whole["varies"] == ["host", "wall_seconds", "checksum"]
    assert set(killed) == set(whole)
    differ = {key for key in whole if killed[key] != whole[key]}
    assert differ <= set(whole["varies"]), differ


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_keep_what_is_finished(number: signal.Signals, long_study: Path) -> None:
    out = long_study.parent / "out"
    process = begun(long_study)
    wait_until((out / "manifest.json").exists, process)
    time.sleep(0.5)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number, stderr
    kept = runs_kept(out)
    assert stderr == (
        f"interrupted: {len(kept)} of 5 runs are kept in {out}; rerun the same command to resume\n"
    )
    assert stdout == ""
    assert kept == list(range(QUICK))
    assert json.loads((out / "manifest.json").read_text())["wall_seconds"] > 0


def test_nohup_is_obeyed_and_runs_are_kept_while_a_long_one_goes_on(long_study: Path) -> None:
    """Once they were written only when another run had finished."""
    out = long_study.parent / "out"
    process = begun(long_study, "nohup")
    wait_until((out / "manifest.json").exists, process)
    process.send_signal(signal.SIGHUP)
    wait_until(lambda: runs_kept(out), process)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM, stderr
    assert runs_kept(out) == list(range(QUICK))


def test_ctrl_c_during_start_up_is_no_traceback(long_study: Path) -> None:
    """From the first lines of the command, until the study goes on."""
    seen = set()
    for step in range(6):
        process = begun(long_study, "env", "PYTHONVERBOSE=1")
        assert process.stderr is not None
        # The interpreter prints the modules that it loads: these lines after aqmlab's first.
        lines, said = 0, ""
        for said in process.stderr:
            lines += "import 'aqmlab.signals'" in said or lines > 0
            if lines > 150 * step:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        process.communicate(timeout=PATIENCE)
        ours = [line for line in rest.splitlines() if "interrupted" in line]
        assert process.returncode == 130, rest[-2000:]
        assert len(ours) == 1, (said, rest[-2000:])
        assert "Traceback" not in rest, (said, rest[-2000:])
        seen.add(said)
    assert len(seen) == 6


def test_a_new_folder_is_on_the_disk_before_runs_are_in_it(
    long_study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every name that a rename or a new folder makes is synced before the next step."""
    from aqmlab import storage
    from aqmlab.study import chunks, folder

    events: list[tuple[str, str]] = []
    rename, mkdir, sync = Path.rename, Path.mkdir, storage.sync

    def spy_rename(path: Path, to: Path) -> Path:
        events.append(("name", str(Path(to).parent)))
        return rename(path, to)

    def spy_mkdir(path: Path, *args: object, **options: object) -> None:
        events.append(("name", str(path.parent)))
        mkdir(path, *args, **options)  # type: ignore[arg-type]

    def spy_sync(folder: Path) -> None:
        events.append(("sync", str(folder)))
        sync(folder)

    monkeypatch.setattr(Path, "rename", spy_rename)
    monkeypatch.setattr(Path, "mkdir", spy_mkdir)
    for module in (storage, chunks, folder):
        monkeypatch.setattr(module, "sync", spy_sync)
    study = aqmlab.Study(long_study, only={"length": ["1", "2"]})
    study.run(long_study.parent / "deep" / "down" / "out")
    names = [place for place, (kind, _) in enumerate(events) if kind == "name"]
    assert len(names) > 12
    for place in names:
        later = [each for kind, each in events[place:] if kind == "sync"]
        assert later[:2].count(events[place][1]), events[place : place + 4]

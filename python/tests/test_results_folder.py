"""Results folders: the same bytes after any interruption; other folders are left alone."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from helpers import (
    PATIENCE,
    Aqmlab,
    assert_refused,
    command,
    runs_kept,
    started,
    table_bytes,
    write_study,
)

import aqmlab
from aqmlab import files
from aqmlab.study.manifest import sealed


def test_threads_and_repetition_give_the_same_bytes(
    study: Path, done: Path, aqmlab: Aqmlab
) -> None:
    for name, threads in (("one", 1), ("two", 2)):
        aqmlab.ok("study", study, "--json", "--out", name, "--threads", threads)
        assert table_bytes(study.parent / name) == table_bytes(done)


def test_a_finished_folder_is_reused(study: Path, done: Path, aqmlab: Aqmlab) -> None:
    files = [*done.glob("*.parquet"), *done.glob("*.json")]
    before = [path.stat().st_mtime_ns for path in files]
    assert "nothing to do" in aqmlab.ok("study", study, "--out", "out").stdout
    assert [path.stat().st_mtime_ns for path in files] == before
    assert json.loads((done / "manifest.json").read_text())["complete"] is True


def test_what_is_computed_has_a_file(study: Path, done: Path) -> None:
    manifest = json.loads((done / "manifest.json").read_text())
    kept = pl.read_parquet(done / "metrics.parquet")
    assert kept.height == manifest["tables"]["metrics"] > 0
    assert kept.equals(aqmlab.Study(study).run().raw("metrics"))
    made = aqmlab.Study(study).run(done)
    assert made.table_names == aqmlab.StudyResult.open(done).table_names
    assert "metrics" in made.table_names


@pytest.fixture
def long_study(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A study of some seconds, and the bytes that it gives undisturbed."""
    path = write_study(tmp_path, replications=LONG)
    aqmlab.Study(path).run(tmp_path / "undisturbed")
    return path, table_bytes(tmp_path / "undisturbed")


LONG = 200
"""Replications: six times as many runs take some seconds on one core."""


def test_after_ctrl_c_only_the_rest_is_computed(
    long_study: tuple[Path, dict[str, bytes]],
) -> None:
    study, undisturbed = long_study
    out = study.parent / "interrupted"
    process = started(command("study", study, "--out", out, "--threads", 1))
    while not (out / "manifest.json").exists():
        time.sleep(0.01)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert stdout == ""
    kept = len(runs_kept(out))
    assert kept > 0
    assert f"interrupted: {kept:,} of {6 * LONG:,} runs are kept in {out}" in stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["complete"] is False
    result = aqmlab.Study(study).run(out)
    assert result.computed == result.info.points * LONG - kept
    assert table_bytes(out) == undisturbed


def test_a_folder_of_another_scenario_or_version_is_refused(
    study: Path, done: Path, aqmlab: Aqmlab
) -> None:
    before = snapshot(done)
    setting = ["--set", "flows.first.size=100000b"]
    for change, word in (
        (["--seed", "9"], "seed is 3 there and 9 here"),
        (["--replications", "1"], "replications is 2 there and 1 here"),
        (setting, "flows.first.size is 350400b there and 100000b here"),
    ):
        refused = aqmlab("study", study, "--out", "out", *change)
        assert_refused(refused, "out: ", word, "nothing was changed", "--out")
    assert snapshot(done) == before
    manifest = json.loads((done / "manifest.json").read_text())
    for key, value in (("version", "0.0.1"), ("engine", "0.0.1"), ("format", 1)):
        (done / "manifest.json").write_bytes(sealed(manifest | {key: value}))
        before = snapshot(done)
        assert_refused(aqmlab("study", study, "--out", "out"), "out", "another", "aqmlab")
        assert snapshot(done) == before


def test_a_folder_with_other_things_is_refused(study: Path, aqmlab: Aqmlab) -> None:
    other = study.parent / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    assert_refused(aqmlab("study", study, "--out", "other"), "other", "nothing was changed")
    (other / "manifest.json").write_text("{}")
    assert_refused(aqmlab("study", study, "--out", "other"), "manifest.json", "not a manifest")
    assert sorted(path.name for path in other.iterdir()) == ["manifest.json", "thesis.tex"]


def test_two_writers_do_not_meet(study: Path) -> None:
    plan = aqmlab.Study(study)
    out = study.parent / "out"
    seen: list[str] = []

    def meanwhile(done: int, total: int) -> None:
        if not seen:
            with pytest.raises(
                aqmlab.FolderError, match="another aqmlab process is writing"
            ) as caught:
                plan.run(out)
            seen.append(str(caught.value))

    plan.run(out, progress=meanwhile)
    assert seen
    assert plan.run(out).computed == 0


@pytest.mark.parametrize("number", files.NO_LOCKS)
def test_a_file_system_without_locks_has_a_file_of_the_owner(
    number: int, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.fcntl, "flock", absent)
    test_two_writers_do_not_meet(study)
    out = study.parent / "out"
    assert not [each.name for each in out.iterdir() if each.name.startswith(".lock")]
    # A process of this machine that was killed, and one of another machine, whose state is unknown.
    owner = out / files.OWNER
    with subprocess.Popen(["true"]) as ended:
        pass
    owner.write_text(f"{platform.node()} {ended.pid}")
    files.unlock(out, files.lock(out))
    owner.write_text("elsewhere 17")
    with pytest.raises(aqmlab.FolderError, match=r"process 17 of elsewhere; if it was killed, rem"):
        aqmlab.Study(study).run(out)


def test_results_open_without_the_study_that_made_them(
    study: Path, done: Path, tmp_path: Path
) -> None:
    result = aqmlab.Study(study).run(done)
    moved = shutil.move(done, tmp_path / "elsewhere")
    study.unlink()
    opened = aqmlab.StudyResult.open(moved)
    assert opened.info == result.info
    assert opened.scenarios == result.scenarios
    assert opened.links.height == 24
    with pytest.raises(aqmlab.FolderError, match="no results"):
        aqmlab.StudyResult.open(tmp_path)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

"""Parts of a study, put together: the same bytes; strangers are refused and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import Aqmlab, assert_refused, flip, table_bytes, write_study

import aqmlab as package
from aqmlab.study.manifest import read_manifest, sealed
from aqmlab.study.shards import Shard


@pytest.mark.parametrize(("total", "of"), [(1, 3), (12, 5), (100, 16), (10_000, 7)])
def test_shards_have_every_run_once(total: int, of: int) -> None:
    shards = [list(Shard(number, of).runs(total)) for number in range(1, of + 1)]
    assert sorted(run for shard in shards for run in shard) == list(range(total))
    assert all(shard == sorted(shard) for shard in shards)
    assert max(map(len, shards)) - min(map(len, shards)) <= max(1, -(-total // (of * 64)))


def test_parts_merge_to_the_bytes_of_one_run(study: Path, done: Path, aqmlab: Aqmlab) -> None:
    folder = study.parent
    points = aqmlab.json("study", study, "--json", "--out", "out")["points"]
    for number in (1, 2, 3):
        form = aqmlab.json(
            "study", study, "--json", "--shard", f"{number}/3", "--out", f"part{number}"
        )
        assert form["shard"] == {"number": number, "of": 3}
        assert form["computed"] == form["runs"] == 4
    parts = ["part3", "part1", "part2"]
    merged = aqmlab.ok("merge", *parts, "--out", "all", "--json")
    assert table_bytes(folder / "all") == table_bytes(done)
    scenarios = [(folder / name / "scenarios.json").read_bytes() for name in ("all", "out")]
    assert scenarios[0] == scenarios[1]
    assert json.loads(merged.stdout)["points"] == points
    # The merged folder is the study's own: nothing is left to do.
    again = aqmlab("study", study, "--out", "all")
    assert "nothing to do" in again.stdout, again.stderr
    # Parts are only read.
    assert list((folder / "part1" / "chunks").iterdir())


def test_a_part_goes_on_where_it_stopped_and_is_no_study(study: Path) -> None:
    out = study.parent / "part"
    assert package.Study(study).run_shard(Shard(1, 2), out) == 6
    assert package.Study(study).run_shard(Shard(1, 2), out) == 0
    with pytest.raises(package.FolderError, match="part 1/2 of a study; `aqmlab merge`"):
        package.StudyResult.open(out)
    assert package.Study(study).run(out).computed == 6
    assert "shard" not in json.loads((out / "manifest.json").read_text())


def refused(folder: Path, names: Sequence[str], *words: str) -> None:
    """These parts do not become one."""
    with pytest.raises(package.FolderError) as caught:
        package.merge([folder / name for name in names], folder / "all")
    for word in words:
        assert word in str(caught.value)
    assert not (folder / "all").exists()


def test_what_is_no_whole_study_is_refused(study: Path, aqmlab: Aqmlab, tmp_path: Path) -> None:
    for number in (1, 2):
        package.Study(study).run_shard(Shard(number, 3), tmp_path / f"part{number}")
    missing = aqmlab("merge", "part1", "part2", "--out", "all")
    assert_refused(missing, "4 of 12 runs are missing", "no folder has part 3/3")
    refused(tmp_path, ["part1", "part2", "part1"], "part1", "4 of its runs")
    refused(tmp_path, ["part1", "nowhere"], "nowhere", "no results")
    shutil.rmtree(next((tmp_path / "part2" / "chunks").iterdir()))
    refused(tmp_path, ["part1", "part2"], "part2 is not finished")


def test_another_scenario_is_refused_with_the_key_that_differs(study: Path, tmp_path: Path) -> None:
    package.Study(study).run_shard(Shard(1, 2), tmp_path / "part1")
    smaller = package.Study(study, set={"flows.first.size": "100000b"})
    only = package.Study(study, only={"queue": ["CoDel"]})
    for other, words in (
        (smaller, ["flows.first.size is 100000b there and 350400b in", "part1"]),
        (package.Study(study, seed=9), ["seed is 9 there and 3 in"]),
        (only, ["the axis queue has CoDel there and CoDel, DropTail in"]),
    ):
        shutil.rmtree(tmp_path / "part2", ignore_errors=True)
        other.run_shard(Shard(2, 2), tmp_path / "part2")
        refused(tmp_path, ["part1", "part2"], "part2: results of another scenario", *words)


def test_parts_that_are_damaged_or_of_another_build_are_refused(
    study: Path, tmp_path: Path
) -> None:
    parts = [tmp_path / f"part{number}" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        package.Study(study).run_shard(Shard(number, 2), part)
    file = next((parts[1] / "chunks").glob("*/links.parquet"))
    flip(file, 4 * file.stat().st_size)
    refused(tmp_path, ["part1", "part2"], str(file), "damaged")
    flip(file, 4 * file.stat().st_size)
    for part in parts:  # Merged, they would be those of this build.
        (part / "manifest.json").write_bytes(sealed(read_manifest(part) | {"engine": "0" * 16}))
    refused(tmp_path, ["part1", "part2"], "part1: results of another build of aqmlab")


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "1/999999"])
def test_a_shard_that_is_none(text: str) -> None:
    with pytest.raises(package.InputError, match="shard.*" + text):
        Shard.parse(text)


def test_a_million_points_are_planned_without_being_built(tmp_path: Path) -> None:
    """Points are built when they are due; an error in any value of an axis is found at once."""
    path = write_study(tmp_path, replications=1)
    values = ", ".join(map(str, range(1, 501)))
    text = path.read_text().replace("[1, 2, 4]", f"[{values}]")
    axis = (
        f'\n[[axes]]\nkey = "seed"\nname = "draw"\nvalues = [{", ".join(map(str, range(1000)))}]\n'
    )
    path.write_text(text.replace("seed = 3\n", "") + axis)
    plan = package.Study(path)
    assert plan.total == 1_000_000
    assert plan.points[999_999].labels == {"queue": "DropTail", "flows": "500", "draw": "999"}
    assert json.loads(plan.points[-1].scenario.resolved)["seed"] == "999"
    path.write_text(path.read_text().replace(" 500]", ' "many"]'))
    with pytest.raises(package.InputError, match="many"):
        package.Study(path)

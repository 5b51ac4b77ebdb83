"""Damaged results: found, named, set aside, and computed again."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from helpers import Aqmlab, assert_refused, flip, table_bytes

import aqmlab
from aqmlab.errors import DamageWarning
from aqmlab.storage import Seal
from aqmlab.study import chunks, execute, folder
from aqmlab.study.folder import ResultsFolder
from aqmlab.study.manifest import read_manifest, sealed
from aqmlab.study.runner import finished

FLIPS = 25
"""Bits that are flipped in each file."""


@contextmanager
def begun(study: aqmlab.Study, out: Path, parts: list[list[int]]) -> Iterator[ResultsFolder]:
    """The folder of a study that was interrupted when it had these runs, in a chunk a part."""
    scenarios = [point.scenario for point in study.points]
    with ResultsFolder(out, execute.study_info(study), study.points.scenarios) as folder:
        for runs in parts:
            places = [(run, *divmod(run, study.replications)) for run in runs]
            jobs = [(run, scenarios[point], number) for run, point, number in places]
            folder.add(list(finished(jobs, 1)))
        yield folder


def flipped(paths: Iterable[Path], seed: int) -> Iterator[tuple[Path, int]]:
    """Each file with one flipped bit, again and again: bits all over it, its first and last among
    them."""
    draw = random.Random(seed)
    for path in sorted(paths):
        whole, bits = path.read_bytes(), 8 * path.stat().st_size
        for bit in [0, bits - 1, *(draw.randrange(bits) for _ in range(FLIPS))]:
            flip(path, bit)
            yield path, bit
            path.write_bytes(whole)


def contents(result: aqmlab.StudyResult) -> object:
    return result.info, result.scenarios, {name: result.raw(name).rows() for name in TABLES}


TABLES = ("runs", "links", "flows", "groups", "traffic", "times", "sojourn", "metrics", "notes")


def test_no_flipped_bit_of_a_finished_folder_gives_other_numbers(done: Path) -> None:
    """134 of 200 such flips in a Parquet file once did."""
    right = contents(aqmlab.StudyResult.open(done))
    found = harmless = 0
    for path, bit in flipped([*done.glob("*.parquet"), *done.glob("*.json")], 7928):
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                assert contents(aqmlab.StudyResult.open(done)) == right, (path.name, bit)
            assert path.name in ("metrics.parquet", "manifest.json"), (path.name, bit)
            assert path.name == "manifest.json" or "metrics.parquet" in str(said[0].message)
            harmless += 1
        except aqmlab.FolderError as error:
            assert path.name in str(error), str(error)
            found += 1
    assert found > 12 * FLIPS
    assert harmless >= FLIPS  # all of metrics, which follows from the others


def test_damage_ends_commands_with_one_message(done: Path, aqmlab: Aqmlab) -> None:
    shutil.copytree(done, done.with_name("other"))
    flip(done / "links.parquet", 4000)
    words = ("out/links.parquet: damaged (its checksum differs)", "computes them again")
    assert_refused(aqmlab("compare", "other", "out"), *words)
    (done / "links.parquet").unlink()
    assert_refused(aqmlab("compare", "other", "out"), "links.parquet: damaged (it is missing)")


@pytest.mark.parametrize("name", ["links.parquet", "scenarios.json", "metrics.parquet"])
def test_a_finished_study_makes_a_damaged_file_again(
    name: str, study: Path, done: Path, aqmlab: Aqmlab
) -> None:
    right = {path.name: path.read_bytes() for path in done.iterdir() if path.is_file()}
    flip(done / name, 800)
    wrong = (done / name).read_bytes()
    again = aqmlab.ok("study", study, "--json", "--out", "out")
    assert again.stderr.startswith("warning: out/")
    assert f"{name}: damaged (its checksum differs); kept as damaged/{name}; " in again.stderr
    assert json.loads(again.stdout)["computed"] == (12 if name == "links.parquet" else 0)
    assert table_bytes(done) == {name: right[name] for name in table_bytes(done)}
    assert (done / "scenarios.json").read_bytes() == right["scenarios.json"]
    assert (done / "damaged" / name).read_bytes() == wrong
    assert aqmlab("study", study, "--json", "--out", "out").stderr == ""


@pytest.mark.slow
def test_a_damaged_chunk_is_set_aside_and_computed_again(study: Path, done: Path) -> None:
    plan = aqmlab.Study(study)
    draw = random.Random(2)
    parts = [[0, 1, 2, 5], [3, 4], [6, 7, 8]]
    victims = ["links.parquet", "runs.parquet", "seal.json", "metrics"]
    for number, victim in enumerate(victims):
        out = study.parent / f"begun{number}"
        with begun(plan, out, parts):
            pass
        chunk = out / "chunks" / "000001"
        if victim == "metrics":
            (chunk / "times.parquet").unlink()
        else:
            flip(chunk / victim, draw.randrange(8 * (chunk / victim).stat().st_size))
        with pytest.warns(DamageWarning, match=r"chunks/000001/.*kept as damaged/000001"):
            result = plan.run(out)
        assert result.computed == 2 + 3  # those of the damaged chunk, and what was missing
        assert table_bytes(out) == table_bytes(done)
        assert (out / "damaged" / "000001").is_dir()
        assert not (out / "chunks").exists()


def test_every_flipped_bit_of_a_chunk_is_found(study: Path) -> None:
    plan = aqmlab.Study(study)
    with begun(plan, study.parent / "begun", [list(range(12))]):
        pass
    chunk = study.parent / "begun" / "chunks" / "000000"
    right = chunks.read_chunk(chunk)
    found = 0
    for path, bit in flipped(chunk.iterdir(), 3):
        try:
            assert chunks.read_chunk(chunk).seals == right.seals, (path.name, bit)
            assert path.suffix == ".json"  # white space in a list of checksums
        except chunks.Damaged as error:
            assert error.path.parent == chunk
            found += 1
    assert found > 12 * FLIPS


def test_a_chunk_that_is_damaged_while_the_study_runs(study: Path, done: Path) -> None:
    plan = aqmlab.Study(study)
    out = study.parent / "begun"
    with begun(plan, out, [[0, 1, 2], list(range(3, 12))]) as results:
        flip(out / "chunks" / "000000" / "flows.parquet", 5000)
        with (
            pytest.warns(DamageWarning, match=r"000000/flows.parquet.*damaged/000000"),
            pytest.raises(aqmlab.FolderError, match=r"flows.parquet: damaged .*; 9 of 12 runs"),
        ):
            results.finish()
        assert list(results.missing()) == [0, 1, 2]
    assert plan.run(out).computed == 3
    assert table_bytes(out) == table_bytes(done)


def test_runs_that_are_there_twice_count_once(study: Path, done: Path) -> None:
    plan = aqmlab.Study(study)
    out = study.parent / "begun"
    with begun(plan, out, [list(range(12))]):
        pass
    shutil.copytree(out / "chunks" / "000000", out / "chunks" / "000001")
    with pytest.warns(DamageWarning, match="runs that another chunk has"):
        assert plan.run(out).computed == 0
    assert table_bytes(out) == table_bytes(done)


def test_what_is_no_table_is_refused_though_its_checksum_is_right(done: Path) -> None:
    """No panic of polars gets through."""
    manifest = read_manifest(done)
    for spoil in (
        b"",
        b"PAR1" + b"\xff" * 40 + b"PAR1",
        (done / "links.parquet").read_bytes()[:-9],
    ):
        (done / "links.parquet").write_bytes(spoil)
        manifest["files"]["links.parquet"] = Seal.of(spoil).to_json()
        (done / "manifest.json").write_bytes(sealed(manifest))
        with pytest.raises(aqmlab.FolderError, match=r"links.parquet: damaged \(it cannot be read"):
            _ = aqmlab.StudyResult.open(done).links


@pytest.mark.parametrize(
    "parts",
    [
        [[5, 0, 7], [1, 11, 3], [2, 4, 6, 8, 9, 10]],
        [list(range(12))],
        [[run] for run in random.Random(1).sample(range(12), 12)],
    ],
    ids=["three", "one", "many"],
)
def test_chunks_in_any_order_make_the_same_tables(
    parts: list[list[int]], study: Path, done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = aqmlab.Study(study)
    for large in (1, 1 << 30):  # all files read in parts, and all as a whole
        monkeypatch.setattr(chunks, "LARGE", large)
        monkeypatch.setattr(folder, "PART_ROWS", min(large, 20_000))
        out = study.parent / f"begun{large}"
        with begun(plan, out, parts) as results:
            results.finish()
        assert table_bytes(out) == table_bytes(done)
    runs = pl.read_parquet(done / "runs.parquet")["run"]
    assert runs.to_list() == list(range(12))


def test_batches_of_many_rows_make_the_same_tables(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of their own, whose large tables are made one row group at a time."""
    record = {"record.level": "packets", "record.interval": "100ms"}
    axes = [{"key": "queue", "values": ["codel", "pie"]}]
    plan = aqmlab.Study({"scenario": str(scenario), "replications": 2, "axes": axes}, set=record)
    plan.run(scenario.parent / "together")
    monkeypatch.setattr(folder, "LARGE_ROWS", 10)
    monkeypatch.setattr(chunks, "group_rows", lambda _: 1000)
    result = plan.run(scenario.parent / "apart")
    assert result.raw("packets").height > 4000 and result.raw("series").height > 4000
    assert table_bytes(scenario.parent / "apart") == table_bytes(scenario.parent / "together")

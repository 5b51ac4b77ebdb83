"""Bundles and reruns: one file of results, verified and repeated elsewhere."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest
from helpers import Aqmlab, assert_refused, in_process, table_bytes, write_study

import aqmlab as package
from aqmlab import custom
from aqmlab.cli import main
from aqmlab.errors import DamageWarning, FolderError, InputError
from aqmlab.metrics.registry import _REGISTRY
from aqmlab.report import own
from aqmlab.report.made import bibtex
from aqmlab.share.archive import INDEX, unpack
from aqmlab.storage import Seal
from aqmlab.study import sources
from aqmlab.study.manifest import read_manifest, sealed
from aqmlab.study.sources import Sources

ROOT = Path(__file__).parents[2]
QUEUE = """
class Mine:
    def __init__(self, link, most=30):
        self.most, self.fifo = most, []

    def enqueue(self, packet, cx):
        cx.drop(packet) if len(self.fifo) >= self.most else self.fifo.append(packet)

    def dequeue(self, cx):
        return self.fifo.pop(0) if self.fifo else None
"""
METRIC = (ROOT / "examples" / "my_metric.py").read_text()


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    """A rerun in Python registers the custom metrics of a bundle in this process."""
    with mock.patch.dict(_REGISTRY), mock.patch.dict(own._CHARTS):
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study with a custom queue, a trace and a custom metric, which no test
    changes."""
    work = tmp_path_factory.mktemp("share")
    (work / "lib").mkdir()
    study = write_study(work, 2)
    (work / "lib" / "mine.py").write_text(QUEUE)
    (work / "metric.py").write_text(METRIC)
    (work / "up.trace").write_text("1\n2\n5\n9\n")
    settings = ["--set", 'links.up.rate={trace="up.trace"}', "--with", "metric.py"]
    text = study.read_text().replace('queue = "codel"', 'queue = "lib/mine.py:Mine"')
    study.write_text(text.replace("[1, 2, 4]", "[1]"))
    with mock.patch.dict(_REGISTRY), mock.patch.dict(sources._metrics):
        done = in_process(main, "study", "study.toml", *settings, "--out", "res", cwd=work)
    assert done.returncode == 0, done.stderr
    return Path(shutil.move(work / "res", tmp_path_factory.mktemp("finished") / "res"))


@pytest.fixture
def made(finished: Path, tmp_path: Path) -> Path:
    """The folder of that study, without the files of which it was made."""
    return Path(shutil.copytree(finished, tmp_path / "work" / "res"))


def test_a_bundle_is_repeated_elsewhere_with_the_same_bytes(
    aqmlab: Aqmlab, made: Path, tmp_path: Path
) -> None:
    done = aqmlab.ok("bundle", made, "a.aqmlab.zip")
    assert (
        package.bundle(made, tmp_path / "b.zip").read_bytes()
        == (tmp_path / "a.aqmlab.zip").read_bytes()
    )
    shutil.rmtree(made)
    refused = aqmlab("rerun", "a.aqmlab.zip")
    assert_refused(refused, "sources/mine.py", "sources/metric.py", "--trust")
    done = aqmlab.ok("rerun", "a.aqmlab.zip", "--trust")
    assert "Tables: 14 of 14 have the same bytes." in done.stdout
    again = tmp_path / "results" / "a-rerun"
    assert table_bytes(again / "rerun") == table_bytes(again / "original")
    assert "waits above 20 ms" in (again / "rerun" / "report.html").read_text(encoding="utf-8")


def test_the_command_in_a_report_works(aqmlab: Aqmlab, made: Path) -> None:
    text = unescape((made / "report.html").read_text(encoding="utf-8"))
    found = re.search(r"aqmlab (rerun .*)\naqmlab (bundle .*)</pre>", text)
    assert found
    for line in found.groups():
        aqmlab.ok(*shlex.split(line), cwd=made.parent)
    assert (made.parent / "res.aqmlab.zip").is_file()


def test_a_result_that_differs_is_named(aqmlab: Aqmlab, made: Path) -> None:
    links = pl.read_parquet(made / "links.parquet")
    dropped = links["dropped"].to_list()
    dropped[3] += 1
    _write(made, links.with_columns(pl.Series("dropped", dropped, links["dropped"].dtype)))
    done = aqmlab("rerun", made, "--trust", "--out", "again")
    assert done.returncode == 1
    assert "Tables: 13 of 14 have the same bytes." in done.stdout
    told = f"Differs: links: 1 rows; first row 3 (run {links['run'][3]}, link {links['link'][3]}): "
    assert f"{told}dropped {dropped[3]} there, {dropped[3] - 1} here." in done.stdout
    # Equal values in other bytes, and another build.
    _write(made, links, compression="lz4")
    manifest = read_manifest(made) | {"engine": "0" * 16}
    (made / "manifest.json").write_bytes(sealed(manifest))
    found = package.rerun(made, made / "new", trust=True)
    assert found.agrees
    assert any("build of the engine: 0000000000000000 there" in each for each in found.lines)
    assert [each.table for each in found.parts[0].tables if each.state == "same values"] == [
        "links"
    ]


def _write(folder: Path, links: pl.DataFrame, compression: str = "zstd") -> None:
    """Replaces the table of links, with the right checksum."""
    path = folder / "links.parquet"
    links.write_parquet(path, compression=compression)  # type: ignore[arg-type]
    manifest = read_manifest(folder)
    manifest["files"]["links.parquet"] = Seal.of(path.read_bytes()).to_json()
    (folder / "manifest.json").write_bytes(sealed(manifest))


def test_a_folder_is_no_name_of_a_bundle(aqmlab: Aqmlab, scenario: Path) -> None:
    aqmlab.ok("run", scenario, "--out", "out")
    assert_refused(aqmlab("bundle", "out", "."), "FILE", "expected the name of a file")


def test_every_part_and_a_run_are_in_a_bundle(aqmlab: Aqmlab, scenario: Path) -> None:
    for name in ("all", "all/part"):
        words = ["--set", "duration=3s", "--no-report", "--out", name]
        aqmlab.ok("run", scenario, *words)
    work = scenario.parent
    assert package.bundle(work / "all", work / "all.zip").exists()
    found = package.rerun(work / "all.zip", work / "again")
    assert [each.name for each in found.parts] == [".", "part"]
    assert found.agrees
    assert all(each.command.startswith("aqmlab run") for each in found.parts)
    assert found.to_json()["agrees"]


def test_flows_over_tfrc_are_repeated(mapping: dict[str, Any], tmp_path: Path) -> None:
    tfrc = mapping["flows"]["bulk"] | {"count": 1, "endpoint": {"kind": "tfrc"}}
    mapping["flows"]["tfrc"] = tfrc
    package.study({"name": "tfrc", "scenario": mapping}, tmp_path / "tfrc")
    found = package.rerun(tmp_path / "tfrc", tmp_path / "again")
    assert found.agrees
    assert not found.parts[0].scenario


def test_real_packets_are_verified_but_not_repeated(
    scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package.Study, "sources", lambda self, **_: Sources.of(self, emulated=True))
    package.study(package.Scenario.read(scenario), scenario.parent / "real")
    found = package.rerun(scenario.parent / "real", scenario.parent / "again")
    assert found.folder is None
    assert not (scenario.parent / "again").exists()
    assert "Real packets made these results" in "".join(found.lines)


def test_a_damaged_bundle_is_one_error(made: Path, tmp_path: Path) -> None:
    bundle = package.bundle(made, tmp_path / "a.zip")
    content, draw = bundle.read_bytes(), random.Random(1)
    places = [0, len(content) - 1, *(draw.randrange(len(content)) for _ in range(60))]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << draw.randrange(8)
        bundle.write_bytes(damaged)
        try:
            unpack(bundle, tmp_path / "out")
        except FolderError as error:
            assert str(bundle) in str(error)
            assert not (tmp_path / "out").exists()
        else:  # a bit that has no meaning: all files are right
            for each in made.rglob("*.parquet"):
                assert (tmp_path / "out" / each.name).read_bytes() == each.read_bytes()
            shutil.rmtree(tmp_path / "out")
    for length in (0, 10, len(content) // 2, len(content) - 30):
        bundle.write_bytes(content[:length])
        with pytest.raises(FolderError, match="no bundle"):
            package.rerun(bundle, tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["../x", "/tmp/x", "a/../../x", "a\\..\\x", ".hidden", "a//b", "", "a/" * 6 + "b"]
)
def test_a_bundle_writes_only_into_its_folder(tmp_path: Path, name: str) -> None:
    file = tmp_path / "evil.zip"
    seal = Seal.of(b"x").to_json()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(INDEX, json.dumps({"format": 1, "files": {name: seal}}))
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, b"x")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FolderError, match="evil"):
        unpack(file, tmp_path / "out" / "inner")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bundle_cannot_unpack_to_more_than_its_size(tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    zeros = bytes(1 << 20)
    seal = Seal.of(zeros).to_json()
    index = json.dumps({"format": 1, "files": {"a": seal, "b": seal}})
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(INDEX, index)
        archive.writestr("a", zeros, zipfile.ZIP_DEFLATED)
        archive.writestr("b", zeros, zipfile.ZIP_DEFLATED)
    with pytest.raises(FolderError, match="no member of a bundle"):
        unpack(file, tmp_path / "out")
    with zipfile.ZipFile(file, "w") as archive:  # two names for one place
        archive.writestr(INDEX, index)
        archive.writestr("a", zeros)
        other = zipfile.ZipInfo("b")
        first = archive.getinfo("a")
        for key in ("header_offset", "file_size", "compress_size", "CRC"):
            setattr(other, key, getattr(first, key))
        archive.filelist.append(other)
    with pytest.raises(FolderError, match="larger than the file"):
        unpack(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_class_of_an_installed_package_is_in_the_bundle(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed" / "ours").mkdir(parents=True)
    (tmp_path / "installed" / "ours" / "queues.py").write_text(QUEUE)
    with monkeypatch.context() as there:
        there.syspath_prepend(tmp_path / "installed")
        given = package.Scenario.read(scenario)
        package.study(given, tmp_path / "out", set={"queue": "ours.queues:Mine"})
    bundle = package.bundle(tmp_path / "out", tmp_path / "a.zip")
    for name in ("ours", "ours.queues"):
        sys.modules.pop(name, None)
    assert package.rerun(bundle, tmp_path / "again", trust=True).agrees


@pytest.mark.parametrize("trust", [False, True])
def test_code_that_is_not_among_the_sources_is_not_executed(made: Path, trust: bool) -> None:
    scenarios, source = made / "scenarios.json", made / "sources" / "mine.py"
    code = custom.digest(source.read_bytes())
    source.write_text(f'open({str(made / "executed")!r}, "w")\n{QUEUE}')
    text = scenarios.read_text().replace("lib/mine.py:", "sources/mine.py:")
    scenarios.write_text(text.replace(code, custom.digest(source.read_bytes())))
    manifest = read_manifest(made)
    manifest["sources"]["files"] = [
        each for each in manifest["sources"]["files"] if each["kind"] not in ("code", "metrics")
    ]
    manifest["files"].pop("sources/mine.py")
    manifest["files"]["scenarios.json"] = Seal.of(scenarios.read_bytes()).to_json()
    (made / "manifest.json").write_bytes(sealed(manifest))
    with pytest.raises(InputError, match=r"sources/mine\.py:Mine.*do not contain"):
        package.rerun(made, made / "again", trust=trust)
    assert not (made / "executed").exists()


def test_a_damaged_source_is_written_again_or_told(made: Path) -> None:
    source = made / "sources" / "mine.py"
    source.write_text("print('other')")
    with pytest.warns(DamageWarning, match="a rerun needs it"):
        package.StudyResult.open(made)
    with pytest.raises(FolderError, match=re.escape("mine.py")):
        package.rerun(made, made / "again", trust=True)
    with pytest.raises(FolderError, match=re.escape("mine.py")):
        package.bundle(made, made / "b.zip")


def test_a_merged_study_has_the_sources_of_its_parts(aqmlab: Aqmlab, tmp_path: Path) -> None:
    write_study(tmp_path, 1)
    for part in (1, 2):
        aqmlab("study", "study.toml", "--shard", f"{part}/2", "--out", f"part{part}")
    aqmlab.ok("merge", "part1", "part2", "--out", "all", "--no-report")
    assert (tmp_path / "all" / "sources" / "study.toml").read_bytes() == (
        tmp_path / "study.toml"
    ).read_bytes()
    assert package.rerun(tmp_path / "all", tmp_path / "again").agrees


def test_a_class_in_no_file_cannot_be_bundled(scenario: Path) -> None:
    space: dict[str, type] = {}
    exec(QUEUE, space)
    space["Mine"].__module__ = "notebook"
    result = package.study(
        package.Scenario.read(scenario), scenario.parent / "out", set={"queue": space["Mine"]}
    )
    assert result.folder is not None
    with pytest.raises(FolderError, match="notebook:Mine is in no file"):
        package.bundle(result.folder, scenario.parent / "a.zip")


def test_the_numbers_behind_figures_are_beside_the_report(made: Path) -> None:
    page = (made / "report.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="(data/[a-z]+\.csv)">CSV</a>', page)
    assert links[:2] == ["data/overview.csv", "data/sojourn.csv"]
    overview, sojourn = (pl.read_csv(made / each) for each in links[:2])
    assert {"panel", "axis", "name", "value"} <= {*overview.columns}
    assert sojourn.columns == ["name", "time in the queue (ms)", "share of packets"]
    assert sojourn["share of packets"].max() == 1.0


def test_the_page_of_a_run_cites_its_digest_and_seed(scenario: Path, aqmlab: Aqmlab) -> None:
    out = scenario.parent / "a_b & c"
    aqmlab.ok("run", scenario, "--seed", "7", "--out", out)
    page = unescape((out / "report.html").read_text(encoding="utf-8"))
    digest = read_manifest(out)["digest"][:16]
    assert f"note = {{Run scenario: digest {digest}, seed 7, replications 1}}" in page
    info = replace(package.StudyResult.open(out).info, name="a_b & c")
    assert r"Run a\_b \& c: " in bibtex(info)


def test_citations_name_this_version() -> None:
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if re.match(r"[a-z-]+: ", line))
    assert {"cff-version", "message", "title", "type", "version", "license"} <= {*fields}
    assert fields["version"] == package.__version__
    entry = bibtex()
    assert f"title = {{{fields['title'].strip(chr(34))}}}".replace("{aqm", "{{aqm") in entry
    for text in (entry, (ROOT / "docs" / "how-to.md").read_text()):
        assert f"version = {{{package.__version__}}}" in text
    assert entry.count("{") == entry.count("}")

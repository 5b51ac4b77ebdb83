"""`aqmlab new`: its files run unchanged."""

from __future__ import annotations

import resource
import tomllib
from functools import partial
from pathlib import Path

import pytest
from helpers import Aqmlab, assert_refused, built_library

from aqmlab import __version__

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["scenario", "queue", "control", "metric"])
def test_what_is_new_runs(kind: str, aqmlab: Aqmlab, tmp_path: Path) -> None:
    done = aqmlab.ok("new", kind, "my_own", cwd=tmp_path)
    line = done.stdout.strip().splitlines()[-1].split()
    assert line[:3] == ["aqmlab", "run", "my_own.toml"]
    tables = aqmlab.json(*line[1:], "--set", "duration=5s", "--json", cwd=tmp_path)
    assert tables["runs"][0]["delivered_packets"] > 1000
    text = (tmp_path / "my_own.toml").read_text()
    assert ("my_own.py:MyOwn" in text) == (kind in ("queue", "control"))


def test_a_new_study_runs(aqmlab: Aqmlab, tmp_path: Path) -> None:
    line = aqmlab("new", "study", "mine", cwd=tmp_path).stdout.strip().splitlines()[-1].split()
    short = ["--set", "duration=3s", "--replications", "1", "--no-report"]
    ran = aqmlab.ok(*line[1:], *short, cwd=tmp_path)
    assert "6 runs" in ran.stdout


def test_a_new_endpoint_is_a_crate_of_its_own(aqmlab: Aqmlab, tmp_path: Path) -> None:
    aqmlab.ok("new", "endpoint", "mine", "--source", ROOT, cwd=tmp_path)
    assert "aqmlab run scenario.toml\n" in (tmp_path / "mine" / "scenario.toml").read_text()
    main = (tmp_path / "mine" / "src" / "main.rs").read_text()
    assert "`cargo run -- scenario.toml flows.download.endpoint=window`" in main
    cargo = (tmp_path / "mine" / "Cargo.toml").read_text()
    assert 'name = "mine"' in cargo and str(ROOT / "crates") in cargo and "[workspace]" in cargo
    assert (tmp_path / "mine" / "src" / "window.rs").is_file()
    aqmlab.ok("run", "mine/scenario.toml", "--set", "duration=1s", cwd=tmp_path)
    assert_refused(
        aqmlab("new", "endpoint", "other", "--source", tmp_path, cwd=tmp_path), "--source FOLDER"
    )


def test_a_new_quic_controller_is_a_crate_of_its_own(aqmlab: Aqmlab, tmp_path: Path) -> None:
    """That of `examples`, which the workspace tests, with another name."""
    done = aqmlab.ok("new", "quic-controller", "mine", "--source", ROOT, cwd=tmp_path)
    assert done.stdout.strip().endswith("cd mine && cargo test --release")
    cargo = (tmp_path / "mine" / "Cargo.toml").read_text()
    assert 'name = "mine"' in cargo and str(ROOT / "crates" / "aqmlab-quic") in cargo
    assert "use mine::MyController" in (tmp_path / "mine" / "tests" / "network.rs").read_text()
    assert "impl Controller" in (tmp_path / "mine" / "src" / "lib.rs").read_text()


def test_the_templates_are_the_examples() -> None:
    templates = ROOT / "python" / "aqmlab" / "templates"
    for file in sorted(templates.glob("*.py.txt")):
        assert file.read_text() == (ROOT / "examples" / file.stem).read_text()
    assert len(list(templates.glob("*.py.txt"))) == 3
    for kind in ("queue", "control"):
        own = (ROOT / "examples" / f"rust-{kind}" / "src" / "lib.rs").read_text()
        assert (templates / f"my_{kind}.rs.txt").read_text() == own


@pytest.mark.parametrize("kind", ["queue", "control"])
def test_a_new_library_is_a_crate_whose_library_its_scenario_names(
    kind: str, aqmlab: Aqmlab, tmp_path: Path
) -> None:
    """The crate of `examples`, whose library the workspace builds, with another name."""
    done = aqmlab("new", f"rust-{kind}", "my_own", cwd=tmp_path)
    assert done.stdout.strip().endswith("cargo build --release && aqmlab run scenario.toml")
    crate = tmp_path / "my_own"
    cargo = tomllib.loads((crate / "Cargo.toml").read_text())
    assert cargo["lib"] == {"crate-type": ["cdylib"]}
    assert all(Path(each["path"]).is_dir() for each in cargo["dependencies"].values())
    code = (crate / "src" / "lib.rs").read_text()
    assert "export!(MyOwn: MyOwnParams);" in code
    assert 'const NAME: &\'static str = "my_own";' in code
    built = built_library(f"rust_{kind}")
    library = crate / "target" / "release" / f"libmy_own{built.suffix}"
    library.parent.mkdir(parents=True)
    name = f"My{kind.capitalize()}".encode().ljust(64, b"\0")
    library.write_bytes(built.read_bytes().replace(name, b"MyOwn".ljust(64, b"\0")))
    aqmlab.ok("run", "scenario.toml", "--set", "duration=2s", cwd=crate)
    aqmlab.ok("new", f"rust-{kind}", "other", "--source", tmp_path, cwd=tmp_path)
    published = tomllib.loads((tmp_path / "other" / "Cargo.toml").read_text())["dependencies"]
    assert set(published.values()) == {__version__}


def test_nothing_is_overwritten(aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    assert_refused(aqmlab("new", "queue", "mine", cwd=tmp_path), "mine.py", "exists already")
    assert not (tmp_path / "mine.toml").exists()


def test_a_full_disk_leaves_nothing_in_the_way(aqmlab_process: Aqmlab, tmp_path: Path) -> None:
    most = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (680, 680))  # between the two files
    done = aqmlab_process("new", "queue", "mine", preexec_fn=most)
    assert_refused(done, "the limit on the size of a file", "no file was written", status=1)
    assert not list(tmp_path.iterdir())
    aqmlab_process.ok("new", "queue", "mine")


def test_a_scenario_may_have_a_name_that_a_language_has(aqmlab: Aqmlab) -> None:
    for name in ("none", "true", "random", "polars", "self", "match"):
        aqmlab.ok("new", "scenario", name)

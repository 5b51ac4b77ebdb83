"""What the user's guide says is so, and the API reference has every public name."""

from __future__ import annotations

import inspect
import re
import shlex
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from helpers import Aqmlab, built_library

import aqmlab
from aqmlab.numbers import seconds
from aqmlab.scenario.settings import parse_settings

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["getting-started.md", "scenarios.md"])
def test_the_scenarios_in_the_guide_run(page: str, tmp_path: Path, aqmlab: Aqmlab) -> None:
    scenario = blocks(page, "toml")[0]
    (tmp_path / "scenario.toml").write_text(scenario)
    aqmlab.ok("run", "scenario.toml", "--set", "duration=2s")


def test_the_first_study_runs(tmp_path: Path, aqmlab: Aqmlab) -> None:
    scenario, study = blocks("getting-started.md", "toml")
    assert "uniform" in scenario, "replications would be copies"
    (tmp_path / "scenario.toml").write_text(scenario)
    (tmp_path / "study.toml").write_text(study)
    words = ("--set", "duration=2s", "--replications", "1", "--json")
    assert aqmlab.json("study", "study.toml", *words)["runs"] == 6


@pytest.mark.parametrize("number", range(4))
def test_the_scenarios_of_other_programs_run(number: int) -> None:
    found = blocks("coming-from.md", "toml")
    assert len(found) == 4
    result = aqmlab.run(tomllib.loads(found[number]), set={"duration": "6s"})
    assert result.bottleneck == "down"
    assert result.links.filter(link="down")["delivered"].item() > 200


@pytest.mark.parametrize("name", ["scenario", "lte"])
def test_the_examples_run(name: str) -> None:
    result = aqmlab.run(DOCS.parent / "examples" / f"{name}.toml", set={"duration": "2s"})
    assert result.runs["delivered_packets"].item() > 200


def test_the_study_in_the_guide_runs(scenario: Path, aqmlab: Aqmlab) -> None:
    (study,) = blocks("studies.md", "toml")
    (scenario.parent / "study.toml").write_text(study)
    done = aqmlab.ok(
        "study", "study.toml", "--replications", "2", "--only", "queue=CoDel", "--no-report"
    )
    assert "6 runs in" in done.stdout
    assert (scenario.parent / "results" / "example-queue_CoDel-r2").exists()


def test_the_commands_of_the_readme_run(
    tmp_path: Path, aqmlab: Aqmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With less work than a user's."""
    less = {"study": ["--replications", 1]}
    monkeypatch.setattr(import_module("aqmlab.packs.access_line.trial"), "WORK", 1e6)
    readme = (DOCS.parent / "README.md").read_text()
    lines = re.findall(r"^aqmlab ((?:run|study|try) [^#`]+)", readme, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        name, *words = line.split()
        more = ["--out", tmp_path / name, *less.get(name, ())]
        aqmlab.ok(name, *words, *more, cwd=DOCS.parent)


@pytest.mark.parametrize("page", ["getting-started.md", "studies.md"])
def test_the_python_in_the_guide_runs(
    page: str, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study.parent)
    names: dict[str, object] = {"aqmlab": aqmlab}
    for block in blocks(page, "python"):
        exec(block, names)


def test_the_python_of_the_readme_and_of_results_runs(
    tmp_path: Path, aqmlab: Aqmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    (readme,) = re.findall(
        r"```python\n(.*?)```", (DOCS.parent / "README.md").read_text(), re.DOTALL
    )
    exec(readme, {})
    (block,) = [each for each in blocks("results.md", "python") if "packets" in each]
    line = next(x for x in (DOCS / "results.md").read_text().splitlines() if "level=packets" in x)
    aqmlab.ok(*line.split()[1:], "--set", "duration=5s", "--json")
    exec(block, {})
    assert ",pie," in (tmp_path / "results" / "packets" / "packets.csv").read_text()


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("lab.md", "list"),
        ("packs.md", "new pack goals"),
        ("documents.md", "study examples/call.toml --set duration=2s --replications 2"),
    ],
)
def test_the_python_of_other_pages_runs(
    page: str, command: str, tmp_path: Path, aqmlab: Aqmlab, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    out = ("--out", "results/call") if page == "documents.md" else ()
    aqmlab.ok(*command.split(), *out)
    for block in blocks(page, "python"):
        exec(block, {})


@pytest.mark.parametrize(
    ("page", "given", "less"),
    [
        ("characterize.md", 'only=["8.2"]', 'only=["8.2.2"], replications=1, scale=0.02'),
        ("evaluate.md", '"bbr"', '"bbr", only="loss", replications=1'),
        ("how-to.md", 'record="series"', 'record="series"'),
        ("scenarios.md", '"30s"', '"1s"'),
        ("search.md", "set=", "trials=4, batch=4, replications=1, confirm=2, set="),
    ],
)
def test_python_that_takes_long_runs_with_less_work(
    page: str, given: str, less: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(page, "python")
    exec(block.replace(given, less), {})


def test_every_table_and_column_is_in_the_guide(scenario: Path) -> None:
    guide = (DOCS / "results.md").read_text()
    named = set(re.findall(r"`([a-z0-9_]+)`", guide))
    result = aqmlab.run(scenario, record="packets")
    for name in result.table_names:
        assert name in named
        for column in result.table(name).columns:
            reason = re.sub(r"^(drop|mark)_", "", column)
            assert column in named or reason in named, f"{name}.{column}"


def test_the_walk_through_blue_shows_its_code() -> None:
    code = DOCS.parent / "crates" / "aqmlab-aqm" / "src" / "disciplines"
    text = (code / "blue.rs").read_text() + (code / "mod.rs").read_text()
    walk = (DOCS.parent / "CONTRIBUTING.md").read_text()
    shown = re.findall(r"```rust\n(.*?)```", walk, re.DOTALL)
    assert len(shown) == 6
    for block in shown:
        assert block in text, block


def anchors(page: Path) -> set[str]:
    """Link targets of a page: its headings as the forge and the site name them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", each) for each in headings)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in plain}


def test_every_link_of_the_guide_leads_somewhere() -> None:
    root = DOCS.parent
    pages = [*DOCS.rglob("*.md"), *root.glob("*.md"), *(root / "studies").rglob("*.md")]
    wrong = []
    for page in pages:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
            file = page.parent / target if target else page
            if "://" in target or "mailto:" in target:
                continue
            if not file.exists() or (anchor and anchor not in anchors(file)):
                wrong.append(f"{page.relative_to(root)}: {target}#{anchor}")
    assert not wrong


@pytest.mark.parametrize("what", ["queue", "control"])
def test_the_code_in_the_guide_is_that_of_the_examples(what: str) -> None:
    page = "your-own-queue.md" if what == "queue" else "your-own-congestion-control.md"
    examples = DOCS.parent / "examples"
    (python,) = blocks(page, "python")
    assert python == (examples / f"my_{what}.py").read_text()
    (type_,) = blocks(page, "rust")
    assert type_ == (examples / f"rust-{what}/src/lib.rs").read_text()
    (dependencies,) = blocks(page, "toml")
    assert dependencies in (examples / f"rust-{what}/Cargo.toml").read_text()


@pytest.mark.parametrize(
    ("page", "count"), [("your-own-queue.md", 6), ("your-own-congestion-control.md", 4)]
)
def test_the_commands_with_code_of_your_own_run(page: str, count: int, aqmlab: Aqmlab) -> None:
    lines = re.findall(r"^aqmlab ((?!new).*)$", (DOCS / page).read_text(), re.MULTILINE)
    assert len(lines) == count
    for line in lines:
        if library := re.search(r"target/release/lib(\w+)\.so", line):
            line = line.replace(library[0], str(built_library(library[1])))
        aqmlab.ok(*line.split(), cwd=DOCS.parent)


BLOAT = DOCS.parent / "examples" / "bufferbloat.toml"


def measured(settings: dict[str, Any]) -> tuple[dict[str, str], aqmlab.RunResult]:
    """What the bufferbloat lab and the tutorial say of a run, as they write it."""
    result = aqmlab.run(BLOAT, set=settings)
    times = {(row["group"], row["quantity"]): row for row in result.times.to_dicts()}
    rtt, loads = times["ping", "rtt"], times.get(("page", "page_load"), {"count": 0, "mean_s": 0})
    flow = result.flows.filter(group="download")["goodput_bps"].item()
    down = result.links.filter(link="down")
    texts = {
        "rtt": seconds(rtt["p50_s"]),
        "p95": seconds(rtt["p95_s"]),
        "pages": str(loads["count"]),
        "load": seconds(loads["mean_s"]),
        "download": f"{flow / 1e6:.2f} Mbit/s",
        "mean": seconds(down["sojourn_mean_s"].item()),
        "max": seconds(down["sojourn_max_s"].item()),
        "busy": f"{100 * down['utilisation'].item():.0f} %",
        "queued": str(down["backlog_max_packets"].item()),
    }
    return texts, result


def test_the_bufferbloat_lab_and_the_tutorial_say_what_is_measured() -> None:
    lab, tutorial = ((DOCS / name).read_text() for name in ("bufferbloat-lab.md", "tutorial.md"))
    deep, _ = measured({})
    small, _ = measured({"queue.limit": "20p"})
    fq_codel, _ = measured({"queue": "fq_codel"})
    for name, texts in (
        ("drop-tail, 100 packets", deep),
        ("drop-tail, 20 packets", small),
        ("FQ-CoDel", fq_codel),
    ):
        row = " | ".join(texts[key] for key in ("rtt", "p95", "pages", "load", "download"))
        assert f"| {name} | {row} |" in lab
    assert f"maximum sojourn time of {deep['max']}" in lab
    assert deep["busy"] == small["busy"] == "100 %", "no throughput is lost"
    assert f"up\nto {deep['queued']} packets are queued" in tutorial
    assert f"waits {deep['mean']} on average" in tutorial
    assert f"round-trip time is {deep['rtt']}" in tutorial
    assert f"delays less: {small['rtt']}" in tutorial
    assert f"median is {fq_codel['rtt']} now" in tutorial


def test_the_load_times_of_the_bufferbloat_lab_are_those_of_five_seeds() -> None:
    ranges = []
    for settings in ({}, {"queue.limit": "20p"}, {"queue": "fq_codel"}):
        loads = [
            aqmlab.run(BLOAT, set=settings, seed=seed)
            .times.filter(group="page", quantity="page_load")["mean_s"]
            .item()
            for seed in range(1, 6)
        ]
        ranges.append(f"{min(loads):.1f} to {max(loads):.1f} s")
    text = " ".join((DOCS / "bufferbloat-lab.md").read_text().split())
    assert f"mean load time is {ranges[0]}, {ranges[1]} and {ranges[2]}." in text


def test_the_upload_of_the_bufferbloat_lab_waits_at_the_other_link() -> None:
    lab = (DOCS / "bufferbloat-lab.md").read_text()
    (line,) = re.findall(r"^aqmlab run .*flows\.upload=.*$", lab, re.MULTILINE)
    words = shlex.split(line)
    settings = parse_settings([each for each in words if "=" in each])
    bad, result = measured(settings)
    assert "bottleneck-elsewhere" in result.notes["id"].to_list()
    assert f"round-trip time is {bad['rtt']}" in lab
    assert f"the\ndownload gets {bad['download']}" in lab
    assert f"busy for only {bad['busy']} of the time" in lab
    good, _ = measured(settings | {"links.up.queue": "fq_codel"})
    assert f"the median is {good['rtt']} and the download gets {good['download']}" in lab


def test_the_python_of_the_bufferbloat_lab_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    block, study = blocks("bufferbloat-lab.md", "python")
    exec(study, {})
    report = (tmp_path / "results" / "lab" / "report.html").read_text()
    stated = re.search(
        r"page load time, mean: best with fq_codel .*difference (\S+ to \S+)\ss", report
    )
    text = (DOCS / "bufferbloat-lab.md").read_text()
    assert stated and f"a page loads {stated[1]} s sooner with FQ-CoDel" in text
    names: dict[str, Any] = {}
    exec(block, names)
    drawn = (tmp_path / "window.svg").read_text()
    titles = ("window (kB)", "backlog (packets)", "dropped (packets/s)")
    assert all(title in drawn for title in titles)
    panels = names["figure"].spec["vconcat"]
    window, _, drops = (pl.read_csv(each["data"]["values"].encode()) for each in panels)
    first = drops.filter(pl.col("y") > 0)["x"].min()
    around = pl.col("x").is_between(first - 0.2, first + 3)
    overflow = window.filter(around, name="download")["y"].to_numpy()
    assert 0.68 < overflow.min() / overflow.max() < 0.75, "CUBIC keeps 0.7 of its window"


def test_the_picture_of_the_readme_is_made_by_the_command_below_it(
    tmp_path: Path, aqmlab: Aqmlab
) -> None:
    """Compares the words; numbers change with the engine, and `make studies` makes them again."""
    readme = (DOCS.parent / "README.md").read_text()
    (line,) = re.findall(r"\*`aqmlab (study [^`]+)`", readme)
    aqmlab.ok(*line.split(), "--no-report", "--out", tmp_path / "call", cwd=DOCS.parent)
    from aqmlab import StudyResult

    made = StudyResult.open(tmp_path / "call").report().figures[0].svg()
    kept = (DOCS / "images" / "call.svg").read_text()
    of_made, of_kept = (
        set(re.findall(r"<text[^>]*>([^<]*[a-z]{3}[^<]*)<", s)) for s in (made, kept)
    )
    assert of_made and of_made == of_kept


def test_the_documentation_map_names_files_whose_first_line_answers_the_question() -> None:
    text = (DOCS / "architecture.md").read_text()
    rows = re.findall(r"^\| (Where[^|]*\?) \| `([^`]+)` \| ([^|]+) \|$", text, re.MULTILINE)
    assert len(rows) >= 10
    firsts = {}
    for _, name, _ in rows:
        first = (DOCS.parent / name).read_text().split("\n\n", 1)[0].split("//!\n")[0]
        assert first.startswith(("//!", '"""')), f"{name} has no documentation"
        firsts[name] = " ".join(first.replace("//!", "").split())
    for question, name, words in rows:
        mentions = re.compile(rf"\b{re.escape(words)}\b", re.IGNORECASE)
        assert [each for each in firsts if mentions.search(firsts[each])] == [name], question


def test_every_layer_is_in_the_architecture() -> None:
    (DOCS / "images" / "architecture.svg").stat()
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    layers = {name.strip() for row in contract["layers"] for name in row.split("|")}
    text = (DOCS / "architecture.md").read_text()
    assert {name for name in layers if f"`{name}`" not in text} == {"__main__"}
    for crate in (DOCS.parent / "crates").glob("aqmlab-*"):
        picture = (DOCS / "images" / "architecture.svg").read_text()
        assert crate.name in picture, f"{crate.name} is not in the picture"


def test_files_that_the_guide_names_exist() -> None:
    root = DOCS.parent
    pages = [*DOCS.rglob("*.md"), *root.glob("*.md"), *(root / "studies").rglob("*.md")]
    path = re.compile(r"`((?:crates|python|tools|examples|studies|docs)/[\w./-]+\.\w+)`")
    code = [*(root / "python" / "tests").glob("*.py"), *(root / "crates").glob("*/tests/*.rs")]
    tests = set(re.findall(r"(?:def|fn) (test_\w+)", "".join(each.read_text() for each in code)))
    for page in pages:
        assert set(re.findall(r"`(test_\w+)`", page.read_text())) <= tests, page.name
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for name in path.findall(text):
            places = [root / name, root / "crates" / "aqmlab-sim" / name]
            assert "NAME" in name or any(each.exists() for each in places), f"{page.name}: {name}"


INTERNAL = {"accessors"}
"""Modules that results load by name."""
ERRORS = {name for name in aqmlab.__all__ if name.endswith("Error")}
MADE_ELSEWHERE = ERRORS | {"RunResult", "StudyResult"}
"""Classes that users do not construct."""
PUBLIC = [name for name in aqmlab.__all__ if not isinstance(getattr(aqmlab, name), ModuleType)]


def test_every_public_name_is_on_the_page() -> None:
    named = set(
        re.findall(
            r"^\.\. auto\w+:: aqmlab\.(?:report\.)?(\w+)\b(?!\.)",
            (DOCS / "api.md").read_text(),
            re.MULTILINE,
        )
    )
    assert named == set(aqmlab.__all__) - INTERNAL


@pytest.mark.parametrize("name", PUBLIC)
def test_functions_and_classes_describe_their_parameters(name: str) -> None:
    found = getattr(aqmlab, name)
    text = inspect.getdoc(found)
    assert text, name
    if not (inspect.isfunction(found) or inspect.isclass(found)) or name in MADE_ELSEWHERE:
        return
    assert "Parameters\n----------" in text, name
    for parameter in inspect.signature(found).parameters:
        entry = rf"^[\w, ]*\b{parameter}\b[\w, ]*( :.*)?$"
        assert re.search(entry, text, re.MULTILINE), f"{name}: {parameter} is not described"


def test_the_walkthrough_has_every_method_of_a_stack() -> None:
    source = (DOCS.parent / "crates/aqmlab-quic/src/stack.rs").read_text()
    trait = source.partition("pub trait Stack")[2].partition("\n}\n")[0]
    page = (DOCS.parent / "docs/your-own-quic-stack.md").read_text()
    table = page.partition("| method | task |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert re.findall(r"    fn (\w+)\(", trait) == [
        name for cell in cells for name in re.findall(r"`(\w+)`", cell)
    ]
    for name in re.findall(r"`([\w/]+\.rs)`", page.partition("## s2n-quic")[0]):
        places = [
            DOCS.parent,
            DOCS.parent / "crates/aqmlab-quic/src",
            DOCS.parent / "crates/aqmlab-quic",
        ]
        assert any((place / name).exists() for place in places), name

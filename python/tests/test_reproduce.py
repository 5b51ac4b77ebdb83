"""Reproductions: the study folders, the comparison, the machine-readable form, the terminal."""

from __future__ import annotations

import io
import json
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from helpers import Aqmlab, assert_refused
from reproduce_synthetic import reproduction
from rich.console import Console

import aqmlab as package
from aqmlab.campaign import FAILS, HOLDS, UNDECIDED, NotRun, Rule, made
from aqmlab.campaign.rule import VERDICTS as STATEMENTS
from aqmlab.errors import InputError
from aqmlab.metrics.samples import Floats, quantile
from aqmlab.report.document import Tiles
from aqmlab.reproduce import Reproduction, catalogue, names, reproduce
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cell
from aqmlab.reproduce.page import base_rate
from aqmlab.reproduce.published import Published, known_metrics
from aqmlab.reproduce.summary import Summary
from aqmlab.reproduce.verdicts import VERDICTS
from aqmlab.study import Study
from aqmlab_studies.jarvinen2014 import ns2
from tools.study_pages import page


@pytest.fixture(scope="module")
def result() -> Reproduction:
    return reproduction()


def test_the_study_is_packaged() -> None:
    assert "jarvinen2014" in names()
    assert "load transients" in catalogue.place("jarvinen2014").title
    for name in names():
        folder = Published.load(name).folder
        for file in ("study.toml", "published.toml", "README.md"):
            assert (folder / file).exists()


def test_the_printed_tables_are_there_number_by_number(result: Reproduction) -> None:
    two, three = result.table("table-2"), result.table("table-3")
    for table, codel, sfq in (
        (two, [0.090, 0.126, 0.170, 0.246], [0.060, 0.057, 0.054, 0.066]),
        (three, [0.150, 0.186, 0.234, 0.296], [0.180, 0.180, 0.174, 0.222]),
    ):
        assert table.columns == ["1+1", "2+2", "4+4", "6+6"]
        for row, printed in (("CoDel", codel), ("SFQ CoDel", sfq)):
            cells = [table.cell(row, column) for column in table.columns]
            assert [cell.published for cell in cells if cell] == printed
    assert result.published.main_rows("table-2") == [
        "CoDel", "PIEupdate", "PIEthresh", "HRED", "HRED (aggressive)", "SFQ CoDel",
    ]  # fmt: skip


def test_cells_are_pooled_quantiles_and_maxima(result: Reproduction) -> None:
    where = {"queue": "CoDel", "flows": "4+4", "rest": "11 ms"}
    point = result.measured.point(**where)
    rows = result.result.table("sojourn").filter(point=point)
    packets = np.repeat(rows["sojourn_s"].to_numpy(), rows["count"].to_numpy())
    cell = result.table("table-2").cell("CoDel", "4+4")
    assert cell and cell.measured == quantile(packets, 0.95)
    assert cell.low <= cell.measured <= cell.high
    cell = result.table("table-3").cell("CoDel", "4+4")
    assert cell and cell.measured == packets.max()


def test_points_are_found_by_their_labels(result: Reproduction) -> None:
    points = result.result.points
    for row in points.to_dicts():
        labels = {axis: row[axis] for axis in ("rest", "queue", "flows")}
        assert result.measured.point(**labels) == row["point"]
    with pytest.raises(KeyError):
        result.measured.point(queue="CoDel", flows="3+3", rest="11 ms")
    assert not result.measured.has(queue="CoDel", flows="3+3")


def test_what_was_not_run_is_skipped(result: Reproduction) -> None:
    """Skips tables, causes, figures and statements; all others are there."""
    measured = result.measured

    def lacking(of: Measurements) -> list[float]:
        return [of.delay_quantile(0.5, queue="CoDel", flows="3+3", rest="11 ms")]

    with pytest.raises(NotRun):
        lacking(measured)
    parts = [lambda of: of.part("study").replications, lacking, lambda of: of.part("lte")]
    assert made(parts, measured) == [measured.replications]
    rule: Rule[Measurements, list[float]] = Rule("x", "X.", "x", lacking, lambda _: [], str)
    assert rule.answer(measured) is None and measured.asked(study=[rule], lte=[rule]) == []
    with pytest.raises(NotRun):
        measured.require(queue=("CoDel", "none"))


def test_an_unfinished_flow_leaves_no_response_time(result: Reproduction) -> None:
    labels = {"queue": "CoDel", "flows": "1+1", "rest": "11 ms"}
    times = result.measured.responses("first", **labels)
    assert times.shape == (5,)
    assert ((times > 2.8) & (times < 4)).all()


KEYS = [
    "schema", "study", "version", "seed", "digests", "replications", "tables", "claims",
    "held_if_alike", "contradictions",
]  # fmt: skip


def test_json_form(result: Reproduction) -> None:
    form = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert list(form) == KEYS
    assert form["study"] == "jarvinen2014"
    for table in form["tables"]:
        assert list(table) == ["name", "unit", "cells"]
        for cell in table["cells"]:
            assert list(cell) == [
                "row", "column", "published", "measured", "low", "high", "verdict",
            ]  # fmt: skip
            assert cell["verdict"] in VERDICTS
            assert (cell["published"] is None) == (cell["verdict"] == "unpublished")
    assert len(form["claims"]) == 45
    for claim in form["claims"]:
        assert list(claim) == [
            "id", "text", "source", "own", "must_show", "verdict", "evidence", "possible",
                "comparisons",
        ]  # fmt: skip
        assert claim["verdict"] in STATEMENTS and claim["comparisons"]
        assert any(sign.isdigit() for sign in claim["evidence"])


def test_the_terminal_shows_everything(result: Reproduction) -> None:
    stream = io.StringIO()
    result.print(Console(file=stream, width=110))
    text = stream.getvalue()
    for part in (
        "Table II", "Table III", "beside ns-2", "0.090", "wait_", "pie-inert",
        "statements, checked",
        *(claim.text[:40] for claim in result.claims),
    ):  # fmt: skip
        assert part in text
    assert max(map(len, text.splitlines())) <= 110


def test_the_head_counts_the_cells_that_are_not_decided(result: Reproduction) -> None:
    """A table of which none agrees may have none that differs."""
    rows = result.published.main_rows("table-3")
    words = [cell.verdict for cell in result.table("table-3").cells if cell.row in rows]
    undecided = words.count(UNDECIDED)
    assert 0 < undecided < len(words) == 24
    (tiles,) = (each for each in result.document().head if isinstance(each, Tiles))
    counted = f"{words.count('agrees')} of 24"
    assert (counted, f"cells agree, {undecided} not decided: Table III, as printed") in tiles.tiles


def test_a_single_replication_gives_no_interval(result: Reproduction, tmp_path: Path) -> None:
    assert result.without_intervals == ""
    single = reproduce("jarvinen2014", out=tmp_path, replications=1, only=["queue=PIEupdate"])
    assert "1 replication;" in f"{single.extent};"
    stream = io.StringIO()
    single.print(Console(file=stream, width=110))
    assert "no interval" in stream.getvalue()


def test_warnings_name_the_points(result: Reproduction) -> None:
    (warning,) = result.warnings
    assert warning.id == "pie-inert"
    assert warning.where == "queue: PIE (default)"
    assert warning.runs == 40


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean `jarvinen2014`"):
        reproduce("jarvinen2013")
    with pytest.raises(InputError, match="did you mean `paper`"):
        Published.load("jarvinen2014").selection(["papers"])


def test_real_packets_without_a_folder_are_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Study, "run", lambda *_, **__: pytest.fail("a study was run"))
    with pytest.raises(InputError, match="out: real packets need a folder"):
        reproduce("cs244_2015", only="steps", emulate=True, step="5s")


def test_the_subset_of_the_paper_has_2400_runs() -> None:
    published = Published.load("jarvinen2014")
    kept = published.selection(["paper"])
    runs = published.study["replications"]
    for axis in published.study["axes"]:
        runs *= len(kept.get(axis["name"], axis["values"]))
    assert runs == 2400


def test_ns2_reference_is_complete() -> None:
    assert len(ns2.references()) == 45
    codel = ns2.reference("CoDel", "4+4")
    assert codel and codel.percentile(95) == pytest.approx(0.168, abs=5e-4)
    assert list(codel.percentiles) == sorted(codel.percentiles)
    assert ns2.value("maximum", "CoDel", "1+1") == pytest.approx(0.155, abs=5e-4)
    assert ns2.value("p95", "CoDel", "6+6") == 0.245
    assert ns2.value("p95", "DropTail", "6+6") is None


def test_the_summary_counts_the_verdicts(result: Reproduction) -> None:
    summary = Summary.of(result)
    own = [
        cell
        for ident in ("table-2", "table-3")
        for cell in result.table(ident).cells
        if cell.row in result.published.main_rows(ident)
    ]
    assert summary.published == len(own) == 48
    assert summary.reproduced == sum(cell.verdict == "agrees" for cell in own)
    words = [claim.verdict for claim in result.claims]
    assert summary.claims == len(words)
    assert summary.hold + summary.fail + words.count(UNDECIDED) == len(words)
    assert (summary.own, summary.own_hold) == (0, 0)
    assert summary.simulations == result.runs


def test_the_page_of_a_study_has_every_verdict(result: Reproduction) -> None:
    text = "\n".join(page(result))
    assert text.startswith(f"# {result.title}\n")
    for claim in result.claims:
        assert f"**{claim.text}** *{claim.verdict}*. {claim.evidence}" in text
    for table in result.tables:
        assert f"### {table.name}" in text
        for cell in table.cells:
            if cell.published is not None:
                assert f"**{cell.published:.3f}** {cell.verdict}" in text
    for figure in result.figures:
        assert f"({result.name}/{figure.id}.svg)" in text
    html = result.document().to_html()
    assert "congestion_control algorithm reno, " in html and "{&#39;" not in html


def test_a_study_of_own_comparisons_counts_them() -> None:
    claims = [SimpleNamespace(verdict=each, own=True) for each in (HOLDS, FAILS, HOLDS)]
    told = base_rate(cast("Reproduction", SimpleNamespace(claims=claims)))
    assert told == "2 of 3 comparisons hold; all are the project's own."


class OnePoint:
    """Measurements of one point: five runs of an all but busy link."""

    link = "down"

    def count(self, column: str) -> Floats:
        busy, backlog = [0.9, 0.93, 0.97, 0.99, 1.0], [0.0, 0.1, 3.0, 6.0, 9.0]
        return np.array(busy if column == "utilisation" else backlog)

    def metric(self, name: str, subject: str) -> Floats:
        return self.count(name)


def test_intervals_of_tables_stay_within_what_there_can_be() -> None:
    known = known_metrics(None)
    point = cast("Measurements", OnePoint())
    cases: list[tuple[str, dict[str, Any]]] = [
        ("link", {"column": "utilisation"}),
        ("utilisation", {}),
    ]
    for name, keys in cases:
        cell = Cell.of("", "", None, known[name][0](point, {}, scale=100.0, **keys))
        assert cell.measured == pytest.approx(95.8)
        assert cell.low is not None and cell.low < 92 and cell.high == 100.0
    cell = Cell.of("", "", None, known["link"][0](point, {}, column="backlog"))
    assert cell.low == 0.0 and cell.high is not None and cell.high > 0.0


def test_without_studies_it_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(catalogue, "CHECKOUT", tmp_path)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: ())
    with pytest.raises(InputError, match=r"no studies are installed; pip install 'aqmlab.studies"):
        reproduce("jarvinen2014")


def test_a_package_that_names_no_study_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = EntryPoint("mine", "no_such_package.mine", catalogue.GROUP)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: (wrong,))
    with pytest.raises(InputError, match=r"mine = no_such_package\.mine"):
        names()


def test_the_distribution_has_every_study_and_the_version_of_the_engine() -> None:
    project = tomllib.loads((catalogue.CHECKOUT / "pyproject.toml").read_text())["project"]
    folders = {file.parent.name for file in catalogue.CHECKOUT.glob("*/*/published.toml")}
    assert set(project["entry-points"][catalogue.GROUP]) == folders == set(names())
    assert project["version"] == package.__version__


SAME = 'queue={ discipline = "codel", variant = "ns2-2012" }'


def test_labels_that_the_paper_lacks_get_cells(aqmlab: Aqmlab) -> None:
    words = ["kuhn2014", "--only", "quick", "--replications", "1", "--json"]
    more = ["--with", SAME, "--with", "queue=fq_codel", "--with", "control=bbr3"]
    form = aqmlab.json("reproduce", *words, *more, "--out", "more")
    plain = aqmlab.json("reproduce", *words, "--out", "plain")
    assert form["claims"] == plain["claims"], "statements are about the paper's queues alone"
    for table, own in zip(form["tables"], plain["tables"], strict=True):
        added = [cell for cell in table["cells"] if "not in" in cell["row"] + cell["column"]]
        paper = [cell for cell in table["cells"] if cell not in added]
        assert paper == own["cells"]
        assert all(cell["published"] is None for cell in added)
        if table["name"].startswith("Section 4: reduction of the packet transmission time by"):
            continue
        cells = {(cell["row"], cell["column"]): cell["measured"] for cell in table["cells"]}
        (same,) = {column for _, column in cells if column.startswith("codel ")}
        fq = "fq_codel (not in the paper)"
        assert cells["CUBIC", same] == cells["CUBIC", "CoDel"] != cells["CUBIC", fq]
        assert ("bbr3 (not in the paper)", fq) in cells


@pytest.mark.parametrize("study", ["kuhn2014", "jarvinen2014", "cs244_2015"])
def test_a_copy_of_a_study_is_the_same_study(
    aqmlab: Aqmlab, tmp_path: Path, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    aqmlab.ok("reproduce", "--new", "mine", "--from", study)
    ours, theirs = Published.load("./mine"), Published.load(study)
    assert ours.hooks is not None and ours.study["name"] == "mine"
    assert not [text for text in (tmp_path / "mine").glob("*.py") if study in text.read_text()]
    assert ours.paper == theirs.paper
    for name, own in ours.studies().items():
        assert own.digest == theirs.studies()[name].digest


def test_check_is_for_artefact_evaluation(aqmlab: Aqmlab, tmp_path: Path) -> None:
    aqmlab("reproduce", "--new", "mine")
    run = ["reproduce", "./mine", "--out", "out", "--no-report"]
    aqmlab.ok(*run, "--check")
    file = tmp_path / "mine/published.toml"
    text = file.read_text().replace('{ row = "pie" }', '{ row = "pie", published = [9.0, 9.0] }')
    file.write_text(text)
    aqmlab.ok(*run)
    done = aqmlab(*run, "--check")
    assert done.returncode == 1 and "mine: 2 numbers of 2 differ" in done.stderr
    assert_refused(aqmlab(*run, "--strict"), "--strict", "--check")

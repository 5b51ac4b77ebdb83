"""Metrics, charts and studies from outside of the package, each in one file."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import polars as pl
import pytest
from helpers import STUDY_TEXT, Aqmlab, assert_refused, run_program

import aqmlab as package
from aqmlab.metrics import registry

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder outside of the package with the three files of the examples."""
    for name in ("my_metric.py", "my_chart.py", "my_study.toml"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return tmp_path


def test_a_metric_and_a_chart_of_ones_own_are_seen_everywhere(
    own: Path, aqmlab: Aqmlab, scenario: Path
) -> None:
    option = ("--with", "my_metric.py")
    listed = aqmlab.json("list", "metrics", "--json", *option)["metrics"]
    assert listed[-1]["name"] == "waiting_share"
    assert "more than 20 ms in the queue" in aqmlab("explain", "waiting_share", *option).stdout
    one = aqmlab("run", scenario, "--set", "duration=4s", "--json", *option)
    found = {
        row["subject"]: row["value"]
        for row in json.loads(one.stdout)["metrics"]
        if row["metric"] == "waiting_share"
    }
    assert 0 < found["down"] <= 1, one.stderr
    shown = aqmlab("run", scenario, "--set", "duration=4s", *option).stdout
    assert "Metrics of your own" in shown and "waits above 20 ms" in shown
    (own / "study.toml").write_text(STUDY_TEXT.format(replications=2))
    line = ("study", "study.toml", "--set", "duration=4s", "--out", "out", *option)
    done = aqmlab(*line, "--with", "my_chart.py", "--figures")
    assert "waits above 20 ms" in done.stdout, done.stderr
    text = (own / "out" / "report.html").read_text()
    assert "waits above 20 ms" in text
    assert '<div class="chart" id="drops"' in text and "My own chart." in text
    assert "dropped (%)" in (own / "out" / "figures" / "drops.svg").read_text()
    # The folder has aqmlab's own metrics only, so it opens anywhere.
    kept = pl.read_parquet(own / "out" / "metrics.parquet")
    assert "waiting_share" not in kept["metric"].to_list()
    both = aqmlab("compare", "a=out", "b=out", "--out", "both", *option)
    assert "waits above 20 ms" in both.stdout, both.stderr


def test_the_values_of_a_metric_of_ones_own_are_its_functions(own: Path) -> None:
    program = own / "program.py"
    program.write_text(
        "import runpy, sys, aqmlab\n"
        "runpy.run_path('my_metric.py')\n"
        "result = aqmlab.run(sys.argv[1], set={'duration': '4s'})\n"
        "rows = result.sojourn.filter(link='down')\n"
        "long = rows.filter(rows['sojourn_s'] > 0.02)['count'].sum() / rows['count'].sum()\n"
        "(found,) = result.metrics.filter(metric='waiting_share', subject='down')['value']\n"
        "assert found == long, (found, long)\n"
        "assert aqmlab.metrics.values(result, 'waiting_share')['value'][0] == long\n"
        "print('right')\n"
    )
    done = run_program([sys.executable, program, EXAMPLES / "scenario.toml"], cwd=own)
    assert done.stdout == "right\n", done.stderr


def test_what_is_wrong_in_such_a_file_is_one_clear_error(own: Path, aqmlab: Aqmlab) -> None:
    (own / "empty.py").write_text("x = 1\n")
    (own / "fails.py").write_text("import aqmlab\n\n1 / 0\n")
    (own / "taken.py").write_text(
        "import aqmlab\n@aqmlab.metric('goodput')\ndef mine(runs):\n    return None\n"
    )
    (own / "wrong.py").write_text(
        "import aqmlab\n@aqmlab.metric('mine')\ndef mine(runs):\n    return runs.table('lnks')\n"
    )
    (own / "subject.py").write_text(
        "import aqmlab\n@aqmlab.metric('mine', of='lnk')\ndef mine(runs):\n    return None\n"
    )
    (own / "word.py").write_text(
        "import aqmlab\n@aqmlab.metric('My one')\ndef mine(runs):\n    return None\n"
    )
    for file, words in (
        ("subject.py", ["of: `lnk`", "did you mean `link`"]),
        ("word.py", ["metric: `My one`", "small letters"]),
        ("absent.py", ["--with", "absent.py", "no such file"]),
        ("empty.py", ["--with", "empty.py", "@aqmlab.metric"]),
        ("fails.py", ["fails.py", "ZeroDivisionError"]),
        ("taken.py", ["goodput", "a metric of this name exists already"]),
    ):
        assert_refused(aqmlab("list", "metrics", "--with", file), *words)
    scenario = str(EXAMPLES / "scenario.toml")
    done = aqmlab("run", scenario, "--set", "duration=1s", "--with", "wrong.py")
    assert_refused(done, "metric `mine`", "did you mean `links`")
    for body, words in (
        ("runs.table('links').select('lnk')", ["wrong.py:4: metric `mine`", "lnk"]),
        ("runs.table('links').select('run')", ["metric `mine`: expected a frame", "subject"]),
    ):
        text = f"import aqmlab\n@aqmlab.metric('mine')\ndef mine(runs):\n    return {body}\n"
        (own / "wrong.py").write_text(text)
        done = aqmlab("run", scenario, "--set", "duration=1s", "--with", "wrong.py")
        assert_refused(done, *words)


def test_an_installed_package_that_cannot_be_loaded_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = EntryPoint("mine", "no_such_package", "aqmlab.nothing")
    monkeypatch.setattr(registry, "entry_points", lambda group: (wrong,))
    with pytest.raises(package.CustomError, match=r"mine = no_such_package of aqmlab\.nothing"):
        registry.from_packages("aqmlab.nothing")


def test_a_study_in_one_file(own: Path, aqmlab: Aqmlab) -> None:
    found = aqmlab.json("reproduce", "my_study.toml", "--replications", "2", "--json")
    assert [table["name"] for table in found["tables"]][1] == "Goodput of all flows"
    cells = {(cell["row"], cell["column"]): cell for cell in found["tables"][1]["cells"]}
    assert cells["pie", "4"]["published"] == 9.4
    assert 8 < cells["pie", "4"]["measured"] < 10
    result = package.StudyResult.open(own / "results" / "my_study-r2")
    rows = result.metrics.filter(pl.col("metric") == "goodput", pl.col("subject") == "bulk")
    mean = rows.filter(pl.col("point") == 3)["value"].mean()
    assert cells["pie", "4"]["measured"] == pytest.approx(1e-6 * mean)


def test_a_new_study_runs(own: Path, aqmlab: Aqmlab) -> None:
    assert "aqmlab reproduce ./mine" in aqmlab("reproduce", "--new", "mine").stdout
    done = aqmlab.ok("reproduce", "./mine", "--replications", "5", "--no-report")
    assert "Half of the packets wait for less than 50 ms. ✓ holds" in done.stdout
    assert not (own / "results" / "mine-r5" / "report.html").exists()
    assert_refused(aqmlab("reproduce", "--new", "mine"), "--new", "mine", "exists already")
    assert_refused(aqmlab("reproduce", "--new", "a b"), "--new", "letters")


MISTAKES = {
    "columns that are no axis": ('columns = "flows"', 'columns = "flow"',
                                 ["tables.table-1.columns", "`flow`", "did you mean `flows`"]),
    "no label of an axis": ('rows = "queue" ', 'rows = "flows" # ',
                            ["tables.table-1.where", "the axis `queue`"]),
    "a slip in a key of a metric": ("share = 0.95", "sahre = 0.95",
                                    ["tables.table-1.metric", "`sahre`", "did you mean `share`"]),
    "an unknown metric": ("delay_quantile", "delay_quantil", ["did you mean `delay_quantile`"]),
    "a key that is missing": (', share = 0.95', "", ["tables.table-1.metric.share", "missing"]),
    "a row that no axis has": ('row = "codel"', 'row = "Codell"',
                               ["`Codell`", "values.queue", "did you mean `codel`"]),
    "a table by another name": ("[[tables]]", "[[tabels]]", ["`tabels`", "did you mean `tables`"]),
    "too few numbers": ('{ row = "codel" }', '{ row = "codel", published = [1.0] }',
                        ["expected 2 numbers", "`flows`"]),
    "a number that is text": ('link = "down"', "link = 3", ["link", "`3`", "expected text"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_found_before_anything_runs(own: Path, aqmlab: Aqmlab, case: str) -> None:
    good, bad, words = MISTAKES[case]
    aqmlab("reproduce", "--new", "mine")
    file = own / "mine" / "published.toml"
    text = file.read_text()
    assert good in text
    file.write_text(text.replace(good, bad))
    done = aqmlab("reproduce", "./mine", "--replications", "1")
    assert_refused(done, "published.toml", *words)
    assert not (own / "results").exists()


def test_axes_that_are_left_out_and_hooks_with_a_slip(own: Path, aqmlab: Aqmlab) -> None:
    aqmlab("reproduce", "--new", "mine")
    study = own / "mine" / "study.toml"
    study.write_text(
        study.read_text() + '\n[[axes]]\nname = "rate"\nkey = "links.down.rate"\n'
        'values = ["1mbit", "2mbit"]\n'
    )
    done = aqmlab("reproduce", "./mine", "--replications", "1")
    assert_refused(done, "tables.table-1.where", "`rate`", 'where = { rate = "1mbit" }')
    aqmlab("reproduce", "--new", "other")
    code = own / "other" / "study.py"
    code.write_text(code.read_text().replace("def claims", "def claim"))
    assert_refused(aqmlab("reproduce", "./other"), "study.py", "`claim`", "did you mean `claims`")
    code.write_text("import nothing_of_this_name\n")
    assert_refused(aqmlab("reproduce", "./other"), "study.py", "nothing_of_this_name")
    assert_refused(aqmlab("reproduce", "./absent"), "./absent", "no such folder")

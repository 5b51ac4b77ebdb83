"""Start of commands: loaded modules, the list of commands, any encoding."""

from __future__ import annotations

import inspect
import io
import re
import subprocess
import sys
from importlib import import_module
from json import loads
from pathlib import Path

import pytest
from helpers import Aqmlab, command, environment, run_program
from rich.console import Console

import aqmlab as package
from aqmlab import plain
from aqmlab.cli import COMMANDS, FILES, summary
from aqmlab.cli.run import TABLES as SHOWN
from aqmlab.report import run_console
from aqmlab.report.document import Note, terminal

TABLES = ("polars", "numpy", "scipy", "vl_convert", "jinja2")


def test_answers_and_help_load_no_tables() -> None:
    lines = ["--help", "list", "explain codel", "--version", "--complete li"]
    lines += [f"{name} --help" for name in COMMANDS]
    assert loaded(TABLES, *(line.split() for line in lines)) == []


def test_a_run_loads_tables_and_nothing_for_charts() -> None:
    assert loaded(("scipy", "vl_convert", "jinja2", "rich"), ["run", "--help"]) == ["rich"]
    assert loaded(("typer", "polars", "numpy"), ["--version"]) == ["typer"]


def test_the_results_of_a_run_load_nothing_for_intervals(scenario: Path, tmp_path: Path) -> None:
    run = ["run", str(scenario), "--set", "duration=1s", "--out", str(tmp_path / "out")]
    assert loaded(("polars", "scipy", "vl_convert"), run) == ["polars"]


def test_the_package_loads_with_its_first_use() -> None:
    program = f"import sys, aqmlab; print(*({{*{TABLES}, 'aqmlab._core'}} & set(sys.modules)))"
    done = run_program([sys.executable, "-c", program])
    assert (done.stdout.split(), done.stderr) == ([], "")


def test_a_run_needs_no_tables(scenario: Path) -> None:
    """Without the extra `report` everything but derived metrics is shown."""
    run = ("run", str(scenario), "--set", "duration=5s")
    without = "import sys; sys.modules['polars'] = sys.modules['numpy'] = None\n"
    program = f"{without}from aqmlab.__main__ import main; sys.argv[1:] = sys.argv[2:]; main()"
    bare, whole, json = (
        run_program(words).stdout
        for words in (
            [sys.executable, "-c", program, "aqmlab", *run],
            command(*run),
            [sys.executable, "-c", program, "aqmlab", *run, "--json"],
        )
    )
    before, _, rest = whole.partition("Groups\n")
    assert rest and bare.startswith(before) and bare.endswith(rest.partition("Flows\n")[2])
    assert len(loads(json)["flows"]) == 3 and "metrics" not in loads(json)


ONE_FLOW = """
duration = "5s"
links.down = { rate = "10mbit", delay = "10ms", queue = "codel" }
links.up = { rate = "10mbit", delay = "10ms" }
flows.own = { path = "down", return_path = "up", workload = "%s" }
"""


def test_a_run_of_one_flow_loads_no_tables_and_says_the_same(tmp_path: Path) -> None:
    files = [tmp_path / f"{workload}.toml" for workload in ("bulk", "page", "rpm", "voip")]
    for file in files:
        file.write_text(ONE_FLOW % file.stem)
    *texts, modules = said(TABLES, *(["run", str(file)] for file in files))
    assert modules == ""
    for file, text in zip(files, texts, strict=True):
        result = package.run(file)
        tables = {name: result.table(name).to_dicts() for name in (*SHOWN, "metrics")}
        assert text.startswith(run_console.text(tables, result.scenario)), file


def loaded(modules: tuple[str, ...], *lines: list[str]) -> list[str]:
    """Modules that commands load, in sequence in one process."""
    return said(modules, *lines)[-1].split()


def said(modules: tuple[str, ...], *lines: list[str]) -> list[str]:
    """Returns the output of each command, in sequence in one process, and the modules they load."""
    program = (
        "import sys; from aqmlab.__main__ import main\n"
        f"for line in {lines}:\n"
        "    sys.argv[1:] = line\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, end\n"
        "    print(end='\\0')\n"
        f"print(*[each for each in {modules} if each in sys.modules], end='')"
    )
    done = run_program([sys.executable, "-c", program])
    texts = done.stdout.split("\0")
    assert done.stderr == "" and len(texts) == 1 + len(lines) and all(texts[:-1])
    return texts


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    """`aqmlab --help` shows the list without loading the commands."""
    file = FILES.get(name, name)
    own = inspect.getdoc(getattr(import_module(f"aqmlab.cli.{file}"), file))
    assert own is not None
    assert " ".join(own.split("\n\n")[0].split()) == summary(name)


def test_any_encoding_will_do(aqmlab: Aqmlab, scenario: Path) -> None:
    lines = ("--help", "run --help", "list", "explain codel", f"run {scenario}", "rnu")
    program = (
        "import sys; from aqmlab.__main__ import main\n"
        f"for line in {lines}:\n"
        "    sys.argv[1:] = line.split()\n"
        "    status = 0\n"
        "    try: main()\n"
        "    except SystemExit as end: status = end.code or 0\n"
        "    print('status', status, flush=True)\n"
    )
    ascii_only = {**environment(), "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, env=ascii_only, check=True)
    *texts, rest = re.split(r"^status (\d)\n", done.stdout.decode("ascii"), flags=re.MULTILINE)
    assert rest == "" and texts[1::2] == ["0"] * 5 + ["2"]
    assert all(len(text) > 40 for text in texts[:-2:2])
    errors = done.stderr.decode("ascii")
    assert len(errors) > 40 and len(errors.splitlines()) == 1, errors
    assert "±1 µs – §".translate(plain.ASCII) == "+-1 us - §"


def test_tables_are_straight_in_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="aqmlab")
    monkeypatch.setattr(sys, "stdout", file)
    screen = Console(file=file, width=60)
    table = terminal.grid(None, screen)
    table.add_column("what")
    table.add_column("how much", justify="right")
    for cell in ("1 ±0.25", "→ 12345"):
        table.add_row("goodput", cell)
    screen.print(table)
    print(*plain.table("", ["what", "how much"], [["a", "1 ±0.25"], ["b", "1"]]), sep="\n")
    file.seek(0)
    lines = [line for line in file.read().splitlines() if line.strip(" -+")]
    assert "+-0.25" in lines[1] and "-> 12345" in lines[2]
    assert len({len(line.rstrip()) for line in lines[:3]}) == 1, lines
    assert len({len(line) for line in lines[3:]}) == 1, lines


def test_a_note_says_what_it_says_in_brackets_and_all() -> None:
    file = io.StringIO()
    terminal.block(Note("[bold yellow] is a name [/]"), Console(file=file, width=60))
    assert file.getvalue().strip() == "Note [bold yellow] is a name [/]"


def test_lines_are_wrapped_at_words() -> None:
    assert plain.wrapped("one two three", 7) == ["one two", "three"]
    assert plain.wrapped("alongerword it", 4) == ["alongerword", "it"]
    assert plain.wrapped("  one two three", 9) == ["  one two", "  three"]

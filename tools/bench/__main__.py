"""`python -m tools.bench`: how fast the engine is here, each scenario alone in a fresh process."""

from __future__ import annotations

import json as json_format
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab.cli.common import EXAMPLES, console, print_json, reported
from aqmlab.cli.options import JSON, SET, THREADS
from aqmlab.errors import input_error, unknown
from aqmlab.report.document.terminal import grid
from aqmlab.scenario.settings import parse_settings

EXAMPLE = EXAMPLES.format(
    "python -m tools.bench\n\n"
    "python -m tools.bench c-100mbit-pie --repeat 10\n\n"
    "python -m tools.bench --study --json > bench.json\n\n"
    "python -m tools.bench b-10mbit-codel --set duration=10s --set queue=pie\n\n"
    "python -m tools.bench start\n\n"
    "python -m tools.bench emulator --markdown"
)
FOLDER = Path(__file__).parent
STUDY = "study"
EMULATOR, START = "emulator", "start"


@reported
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Benchmarks to run; default: all. `emulator`: with real packets. `start`: "
            "the CPU time of commands.",
        ),
    ] = None,
    study: Annotated[
        bool, typer.Option("--study", help="Also time 2,400 simulations on all cores.")
    ] = False,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, metavar="N", help="Minimum number of runs of each.")
    ] = 3,
    set_: list[str] | None = SET,
    threads: int | None = THREADS,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table of `emulator` in Markdown.")
    ] = False,
    json: bool = JSON,
) -> None:
    """Measure packets per CPU second, events per packet and peak memory.

    Each scenario runs alone in a fresh process that loads nothing but the engine;
    the median of at least --repeat runs counts. --threads is for --study. `python -m tools.bench
    emulator` measures throughput and timing of real packets instead, in about three minutes.
    """
    if EMULATOR in (names or []):
        emulator_measured(names or [], repeat, as_markdown=markdown, as_json=json)
        return
    if START in (names or []):
        _start_measured(names or [], repeat, as_json=json)
        return
    settings = parse_settings(set_ or [])
    rows = []
    for name in chosen(names or []):
        if not json and sys.stderr.isatty():
            print(f"{name} ...", end="\r", file=sys.stderr, flush=True)
        rows.append({"name": name} | measured(name, settings, repeat))
    if study:
        rows.append({"name": STUDY} | study_measured(threads))
    if json:
        print_json(rows)
    else:
        _show(rows)


def emulator_measured(names: list[str], repeat: int, *, as_markdown: bool, as_json: bool) -> None:
    """Measures the emulator and shows it beside others. Raises `InputError` if other
    benchmarks are asked for as well."""
    from tools.bench import emulator

    _alone(names)

    def progress(what: str) -> None:
        if sys.stderr.isatty():
            print(f"{what} ...      ", end="\r", file=sys.stderr, flush=True)

    found = emulator.measure(repeat, progress)
    if as_json:
        said = {"remarks": emulator.summary(found.remarks), "machine": emulator.machine()}
        known = {"values": found.values, "details": found.details}
        print_json({**emulator.figures(found), **known, **said})
    elif as_markdown:
        print(emulator.markdown(found))
    else:
        _show_emulator(emulator.table(found), emulator.summary(found.remarks))


def _alone(names: list[str]) -> None:
    """Raises `InputError` if more than one benchmark is asked for."""
    if len(names) > 1:
        problem = f"`{EMULATOR}` and `{START}` cannot be combined with other benchmarks"
        raise input_error(problem, key="NAME", given=" ".join(names))


def _start_measured(names: list[str], repeat: int, *, as_json: bool) -> None:
    """Measures how long commands take from their start to their end."""
    from tools.bench import start

    _alone(names)
    import_module(
        "aqmlab.packs.access_line"
    )  # `try` is measured: its packages are missed here, not there.
    rows = start.measure(repeat)
    if as_json:
        print_json(rows)
        return
    screen = console()
    table = grid(None, screen)
    table.add_column("command")
    for name in ("CPU", "wall", "goal"):
        table.add_column(name, justify="right")
    for row in rows:
        goal = f"{row['most_cpu_seconds']:g} s CPU" if row["most_cpu_seconds"] else "–"
        if row["most_wall_seconds"]:
            goal = f"{row['most_wall_seconds']:g} s"
        cpu, wall = f"{row['cpu_seconds'] * 1e3:.1f} ms", f"{row['wall_seconds']:.2f} s"
        table.add_row(row["command"], cpu, wall, goal)
    screen.print(table)


def _show_emulator(rows: list[dict[str, Any]], remarks: list[str]) -> None:
    from rich.text import Text

    screen = console()
    table = grid(None, screen)
    table.add_column("")
    for name in ("mahimahi", "rattan", "aqmlab", "asked"):
        table.add_column(name, justify="right")
    for row in rows:
        here = row["aqmlab"] if row["met"] else Text(row["aqmlab"], style="red")
        table.add_row(row["what"], row["mahimahi"], row["rattan"], here, row["asked"])
    screen.print(table)
    for remark in remarks:
        screen.print(remark)


def chosen(names: list[str]) -> list[str]:
    """The benchmarks called `names`, or all. Raises `InputError` for one that is none."""
    known = sorted(file.stem for file in FOLDER.glob("*.toml"))
    for name in names:
        if name not in known:
            raise unknown("benchmark", name, known)
    return names or known


def measured(name: str, settings: dict[str, Any], repeat: int) -> dict[str, Any]:
    """What a fresh process measured; see `tools.bench.measure`."""
    file = str(FOLDER / f"{name}.toml")
    task = json_format.dumps({"file": file, "set": settings, "repeat": repeat})
    command = [sys.executable, str(FOLDER / "measure.py"), task]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"the benchmark {name} ended with {done.returncode}: {last[0]}")
    row: dict[str, Any] = json_format.loads(done.stdout)
    if "error" in row:
        raise input_error(row["error"])
    return row


def study_measured(threads: int | None) -> dict[str, Any]:
    """Times 2,400 runs of the load-transient study, with the results written to a folder."""
    import resource

    from aqmlab.reproduce.published import Published
    from tools.bench.measure import peak_rss

    paper = Published.load("jarvinen2014").studies(["paper"], replications=100)
    [study] = paper.values()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = study.run(Path(folder) / STUDY, threads=threads)
        wall = time.monotonic() - began
        runs = result.raw("runs")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime
    packets = int(runs["delivered_packets"].sum())
    return {
        "delivered_packets": packets,
        "events": int(runs["events"].sum()),
        "cpu_seconds": round(cpu, 6),
        "packets_per_cpu_second": round(packets / cpu),
        "peak_rss_bytes": peak_rss(),
        "runs": runs.height,
        "wall_seconds": round(wall, 3),
    }


def _show(rows: list[dict[str, Any]]) -> None:
    screen = console()
    table = grid(None, screen)
    table.add_column("scenario")
    for name in ("packets", "CPU", "packets per CPU s", "events/packet", "peak memory"):
        table.add_column(name, justify="right")
    for row in rows:
        packets = row["delivered_packets"]
        table.add_row(
            row["name"],
            f"{packets:,}",
            f"{row['cpu_seconds']:.3f} s",
            f"{row['packets_per_cpu_second'] / 1e6:.2f} million",
            f"{row['events'] / packets:.2f}" if packets else "–",
            f"{row['peak_rss_bytes'] / 2**20:.0f} MB",
        )
    screen.print(table)
    for row in rows:
        if "wall_seconds" in row:
            screen.print(f"{row['name']}: {row['runs']:,} runs in {row['wall_seconds']:.2f} s")


app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
app.command(epilog=EXAMPLE)(bench)

if __name__ == "__main__":
    app(prog_name="python -m tools.bench")

"""`aqmlab run`: one run of one scenario, in words and tables."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import plain
from aqmlab.cli import options
from aqmlab.cli.common import command_line, console, load_own, naming, print_json
from aqmlab.cli.options import argument, flag, option

if TYPE_CHECKING:
    from aqmlab._core import Scenario
    from aqmlab.results import RunResult
    from aqmlab.study.runner import Record

EXAMPLE = (
    "aqmlab run examples/scenario.toml\n\n"
    "aqmlab run examples/scenario.toml --set queue=codel --set queue.target=2ms --seed 7\n\n"
    "aqmlab run examples/scenario.toml --set queue=fq_codel --out results/mine\n\n"
    "aqmlab run examples/scenario.toml --set queue=codel --explain-drops --out results/drops"
)
NOT_SAVED = "Nothing was saved; --out FOLDER saves the tables and a report with figures."
NOT_ALL_SAVED = "Nothing else was saved; --out FOLDER saves the tables and a report with figures."
TABLES = ("runs", "links", "flows", "groups", "traffic", "times", "scores", "excursions", "notes")
"""Tables with few rows for each run, which `--json` prints with `metrics`."""


def run(
    file: Path = argument("FILE", "A scenario file (TOML)."),
    set_: list[str] | None = options.SET,
    seed: int | None = options.SEED,
    out: Path | None = options.OUT,
    explain_drops: bool = flag("--explain-drops", "Explain why the bottleneck dropped packets."),
    pcap: Path | None = option("FILE", "Capture every packet as it is sent."),
    pcap_link: list[str] | None = option(
        "LINK", "Capture the packets that reach this link instead. May be repeated."
    ),
    qlog: Path | None = option("FILE", "Log what TCP senders and QUIC stacks do, as qlog."),
    with_: list[str] | None = options.WITH,
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
) -> None:
    """Run a scenario once and show what its queues did.

    --out saves the tables and writes report.html with figures (not with --json); it also
    records time series unless the scenario sets the recording level.
    """
    from aqmlab.report.run_console import shows_metrics, text
    from aqmlab.scenario.settings import parse_settings, whole
    from aqmlab.study.single import load, recorded, recording

    load_own(with_)
    overrides = parse_settings(set_ or [])
    if explain_drops:
        overrides = {"record.level": "packets"} | overrides
    if seed is not None:
        overrides["seed"] = whole(seed, 0, "--seed")
    scenario = load(file, overrides)
    with naming(pcap_links="--pcap-link", qlog="--qlog"):
        record = recording(scenario, pcap, pcap_link or [], qlog)
    # Most of a short run is the start of the libraries for tables.
    needs_tables = json or with_ or shows_metrics(scenario.table)
    if not (out or explain_drops or record or (needs_tables and find_spec("polars"))):
        tables = _engine_tables(scenario)
        if json:
            print_json(tables)
        else:
            print(text(tables | {"metrics": []}, scenario.table))
            print(plain.styled(NOT_SAVED, plain.DIM))
        return
    result = _run(file, scenario, overrides, out, record)
    if json:
        print_json(result.to_json())
        return
    tables = {name: result.table(name).to_dicts() for name in (*TABLES, "metrics")}
    print(text(tables, result.scenario))
    _show_more(result, explain_drops)
    written = ", ".join(recorded(record)) if record else ""
    if written:
        print(f"Written: {written}")
    if out is None:
        print(plain.styled(NOT_ALL_SAVED if written else NOT_SAVED, plain.DIM))
    elif no_report:
        print(f"Results are in {out}.")
    else:
        title = ", ".join([file.name, *(set_ or [])])
        report = result.write_report(out, title, command=command_line(), figures=figures)
        print(f"Results are in {out}. Report: {report}")


def _engine_tables(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    """The tables of one run without a library for tables; only `metrics` needs one."""
    from aqmlab.study.runner import finished

    [results] = finished([(0, scenario, 0)], threads=1)
    tables = {name: results.table(name).to_dicts() for name in TABLES}
    for rows in tables.values():
        for row in rows:
            del row["run"]
    return tables


def _show_more(result: RunResult, explain_drops: bool) -> None:
    """Prints custom metrics, if any, and why the bottleneck dropped packets."""
    from aqmlab.metrics import own
    from aqmlab.report.document.terminal import blocks

    if own():
        from aqmlab.report.run_page import own_metrics

        blocks(own_metrics(result), console())
    if explain_drops:
        from aqmlab.report.drops import sections

        blocks(list(sections(result)), console())


def _run(
    file: Path,
    scenario: Scenario,
    overrides: dict[str, Any],
    out: Path | None,
    record: Record | None,
) -> RunResult:
    """Runs in memory, or as a study of one run if the results are to be kept.

    What is kept has the course over time too, unless the scenario says what is recorded. A
    capture is of a run of its own: the same, whatever is kept.
    """
    from aqmlab.study.single import run_scenario

    if out is None or record:
        result = run_scenario(scenario, record=record)
    if out is None:
        return result
    from aqmlab.scenario.settings import parse_toml, read_text
    from aqmlab.study import Study

    given = parse_toml(read_text(file), str(file)).get("record", {})
    if "level" not in given and not overrides.keys() & {"record", "record.level"}:
        overrides = {"record.level": "series"} | overrides
    return Study({"name": file.stem, "scenario": str(file)}, set=overrides).run(out).single()

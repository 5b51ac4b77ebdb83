"""`aqmlab run`: one run of one scenario, in words and tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aqmlab import plain
from aqmlab._late import late
from aqmlab.cli.common import (
    EXAMPLES,
    Figures,
    Json,
    NoReport,
    Out,
    Seed,
    Set,
    With,
    command_line,
    console,
    load_own,
    print_json,
    reported,
)
from aqmlab.quick import light
from aqmlab.quick.answers import has_packages

if TYPE_CHECKING:
    from aqmlab.results import RunResult

EXAMPLE = EXAMPLES.format(
    "aqmlab run examples/scenario.toml\n\n"
    "aqmlab run examples/scenario.toml --set queue=codel --set queue.target=2ms --seed 7\n\n"
    "aqmlab run examples/scenario.toml --set queue=fq_codel --out results/mine\n\n"
    "aqmlab run examples/scenario.toml --set queue=codel --explain-drops --out results/drops"
)
TABLES = (*light.TABLES, "metrics")


@reported
def run(
    file: Annotated[Path, typer.Argument(help="A scenario file (TOML).", metavar="FILE")],
    set_: Set = None,
    seed: Seed = None,
    out: Out = None,
    explain_drops: Annotated[
        bool,
        typer.Option("--explain-drops", help="Explain why the bottleneck dropped packets."),
    ] = False,
    pcap: Annotated[
        Path | None,
        typer.Option("--pcap", metavar="FILE", help="Capture every packet as it is sent."),
    ] = None,
    pcap_link: Annotated[
        list[str] | None,
        typer.Option(
            "--pcap-link",
            metavar="LINK",
            help="Capture the packets that reach this link instead. May be repeated.",
        ),
    ] = None,
    qlog: Annotated[
        Path | None,
        typer.Option("--qlog", metavar="FILE", help="Log what TCP senders do, as qlog."),
    ] = None,
    with_: With = None,
    no_report: NoReport = False,
    figures: Figures = False,
    json: Json = False,
) -> None:
    """Run a scenario once and show what its queues did.

    --out saves the tables and writes report.html with figures (not with --json); it also
    records time series unless the scenario sets the recording level.
    """
    from aqmlab.scenarios.settings import parse_settings

    load_own(with_)
    settings = parse_settings(set_ or [])
    if explain_drops:
        settings = {"record.level": "packets"} | settings
    recorded = {"pcap": pcap, "pcap_links": pcap_link or [], "qlog": qlog}
    is_recorded = any(recorded.values())
    if not (out or explain_drops or with_ or is_recorded or has_packages()):
        _shown(file, settings if seed is None else settings | {"seed": seed}, json=json)
        return
    overrides = settings if seed is None else settings | {"seed": seed}
    result = _run(file, overrides, out, recorded)
    if json:
        print_json(result.to_json())
        return
    own = late("own_metrics_shown")(result)
    screen = console()
    print(light.text({name: result.table(name).to_dicts() for name in TABLES}, result.scenario))
    late("blocks")(own, screen)
    if explain_drops:
        late("blocks")(late("drops_explained")(result), screen)
    if written := ", ".join(str(file) for file in (pcap, qlog) if file):
        screen.print(f"Written: {written}", soft_wrap=True)
    if out is None:
        print(plain.styled(light.NOT_ALL_SAVED if written else light.NOT_SAVED, plain.DIM))
        return
    if no_report:
        screen.print(f"Results are in {out}.", soft_wrap=True)
        return
    title = ", ".join([file.name, *(set_ or [])])
    report = result.write_report(out, title, command=command_line(), figures=figures)
    screen.print(f"Results are in {out}. Report: {report}", soft_wrap=True)


def _shown(file: Path, overrides: dict[str, Any], *, json: bool) -> None:
    """Runs once and keeps nothing."""
    from aqmlab.study.single import load

    scenario = load(file, overrides)
    tables = light.run(scenario)
    if json:
        print_json(tables)
    else:
        print(f"{light.text(tables, scenario.table)}\n{plain.styled(light.NOT_SAVED, plain.DIM)}")


def _run(
    file: Path, overrides: dict[str, Any], out: Path | None, recorded: dict[str, Any]
) -> RunResult:
    """Runs in memory, or as a study of one run if the results are to be kept.

    What is kept has the course over time too, unless the scenario says what is recorded. A
    capture is of a run of its own: the same, whatever is kept.
    """
    from aqmlab.scenarios.settings import parse_toml, read_text
    from aqmlab.study import Study
    from aqmlab.study.execute import run_scenario
    from aqmlab.study.single import load, recording

    scenario = load(file, overrides)
    record = recording(scenario, **recorded)
    if out is None or record:
        result = run_scenario(scenario, record=record)
    if out is None:
        return result
    given = parse_toml(read_text(file), str(file)).get("record", {})
    if "level" not in given and not overrides.keys() & {"record", "record.level"}:
        overrides = {"record.level": "series"} | overrides
    return Study({"name": file.stem, "scenario": str(file)}, set=overrides).run(out).single()

"""`aqmlab run`: one run of one scenario, in words and tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    grid,
    load_own,
    print_json,
    reported,
    show_note,
)
from aqmlab.document.numbers import percent, rate, reasons, seconds

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.results import RunResult

EXAMPLE = EXAMPLES.format(
    "aqmlab run examples/scenario.toml\n\n"
    "aqmlab run examples/scenario.toml --set queue=codel --set queue.target=2ms --seed 7\n\n"
    "aqmlab run examples/scenario.toml --set queue=fq_codel --out results/mine\n\n"
    "aqmlab run examples/scenario.toml --set queue=codel --explain-drops --out results/drops"
)
SHOWN_FLOWS = 20
# Scores in bit/s.
RATES = {"bitrate", "download", "upload"}


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
    with_: With = None,
    no_report: NoReport = False,
    figures: Figures = False,
    json: Json = False,
) -> None:
    """Run a scenario once and show what its queues did.

    --out saves the tables and writes report.html with figures (not with --json); it also
    records time series unless the scenario sets the recording level.
    """
    from aqmlab.settings import parse_settings

    load_own(with_)
    settings = parse_settings(set_ or [])
    if explain_drops:
        settings = {"record.level": "packets"} | settings
    result = _run(file, settings, seed, out)
    if json:
        print_json(result.to_json())
        return
    own = late("own_metrics_shown")(result)
    screen = console()
    show(result, screen)
    late("blocks")(own, screen)
    if explain_drops:
        late("blocks")(late("drops_explained")(result), screen)
    if out is None:
        hint = "Nothing was saved; --out FOLDER saves the tables and a report with figures."
        screen.print(hint, style="dim")
        return
    if no_report:
        screen.print(f"Results are in {out}.", soft_wrap=True)
        return
    title = ", ".join([file.name, *(set_ or [])])
    report = result.write_report(out, title, command=command_line(), figures=figures)
    screen.print(f"Results are in {out}. Report: {report}", soft_wrap=True)


def _run(file: Path, settings: dict[str, Any], seed: int | None, out: Path | None) -> RunResult:
    """Runs in memory, or as a study of one run if the results are to be kept.

    What is kept has the course over time too, unless the scenario says what is recorded.
    """
    from aqmlab.execute import run_scenario
    from aqmlab.settings import parse_toml, read_text
    from aqmlab.single import load
    from aqmlab.study import Study

    overrides = settings if seed is None else settings | {"seed": seed}
    scenario = load(file, overrides)
    if out is None:
        return run_scenario(scenario)
    given = parse_toml(read_text(file), str(file)).get("record", {})
    if "level" not in given and not overrides.keys() & {"record", "record.level"}:
        overrides = {"record.level": "series"} | overrides
    return Study({"name": file.stem, "scenario": str(file)}, set=overrides).run(out).single()


def show(result: RunResult, screen: Console) -> None:
    """Prints the tables of a run, and its notes in words."""
    facts = result.runs.row(0, named=True)
    screen.print(
        f"{facts['end_s']:.6g} s simulated, {facts['delivered_packets']:,} packets through the "
        f"bottleneck ({result.bottleneck}), {facts['events']:,} events, seed {facts['seed']}.\n"
    )
    _show_links(result, screen)
    _show_groups(result, screen)
    _show_flows(result, screen)
    _show_applications(result, screen)
    for line in late("run_notes")(result):
        show_note(line, screen)


def _show_links(result: RunResult, screen: Console) -> None:
    table = grid("Links", screen)
    table.add_column("link")
    for name in ("sent", "dropped", "marked", "busy", "mean", "p50", "p95", "p99", "max"):
        table.add_column(name, justify="right")
    table.add_column("queued", justify="right", no_wrap=True)
    for row in result.links.to_dicts():
        delays = [row[f"sojourn_{key}_s"] for key in ("mean", "p50", "p95", "p99", "max")]
        table.add_row(
            row["link"],
            f"{row['delivered']:,}",
            f"{row['dropped']:,}",
            f"{row['marked']:,}",
            percent(row["utilisation"]),
            *(seconds(delay if row["delivered"] else None) for delay in delays),
            f"{row['backlog_max_packets']:,} p",
        )
    table.caption = (
        "mean to max: sojourn time (time in the queue); queued: maximum backlog in packets"
    )
    screen.print(table)
    for row in result.links.to_dicts():
        for word, prefix in (("dropped", "drop_"), ("marked", "mark_")):
            if row[word]:
                share = row[word] / row["arrived"]
                why = reasons(row, prefix)
                screen.print(f"{row['link']}: {share:.2%} of the packets were {word} ({why})")
    for row in result.excursions.to_dicts():
        size, count, longest = row["threshold_bytes"], row["count"], row["longest_s"]
        text = f"{row['link']}: the backlog was above {size:,} B {count:,} times"
        screen.print(f"{text}, at most for {seconds(longest)}" if count else text)
    screen.print()


def _show_groups(result: RunResult, screen: Console) -> None:
    """What groups of flows have together, if there is more than one flow."""
    of: dict[str, dict[str, float]] = {}
    for row in result.metrics.to_dicts():
        of.setdefault(row["subject"], {})[row["metric"]] = row["value"]
    groups = [name for name in result.scenario["flows"] if "goodput" in of.get(name, {})]
    counts = [int(group["count"]) for group in result.scenario["flows"].values()]
    if sum(counts) < 2 or not groups:
        return
    table = grid("Groups", screen)
    table.add_column("group")
    for name in ("goodput", "share", "Jain", "lost", "delay variation", "power"):
        table.add_column(name, justify="right")
    for name in groups:
        own = of[name]
        table.add_row(
            name,
            rate(own["goodput"]),
            percent(own.get("goodput_share")),
            f"{own['jain']:.3f}" if "jain" in own else "–",
            f"{own['loss_share']:.2%}" if "loss_share" in own else "–",
            seconds(own.get("delay_variation")),
            f"{own['power'] / 1e6:.3g} Mbit/s²" if "power" in own else "–",
        )
    screen.print(table)
    for name, own in of.items():
        if "loss_synchronisation" in own:
            share = own["loss_synchronisation"]
            screen.print(
                f"{name}: on average {share:.0%} of the flows lose packets in a loss event"
            )
        if "rtt_fairness" in own:
            ratio = own["rtt_fairness"]
            screen.print(
                f"{name}: a flow has {ratio:.3g} times the goodput of one of the first group"
            )
    screen.print()


def _show_flows(result: RunResult, screen: Console) -> None:
    table = grid("Flows", screen)
    table.add_column("flow")
    for name in ("size", "start", "time taken", "goodput", "retransmitted", "timeouts"):
        table.add_column(name, justify="right")
    rows = result.flows.to_dicts()
    for row in rows[:SHOWN_FLOWS]:
        finish = row["finish_s"]
        table.add_row(
            f"{row['group']}.{row['index']}",
            "endless" if row["size_bytes"] is None else f"{row['size_bytes']:,} B",
            seconds(row["start_s"]),
            seconds(None if finish is None else finish - row["start_s"]),
            rate(row["goodput_bps"]),
            f"{row['retransmissions']:,} of {row['segments_sent']:,}",
            f"{row['timeouts']:,}",
        )
    screen.print(table)
    if len(rows) > SHOWN_FLOWS:
        screen.print(f"... and {len(rows) - SHOWN_FLOWS} more flows (all with --out or --json)")
    screen.print()


def _show_applications(result: RunResult, screen: Console) -> None:
    """Times and scores of groups that are more than flows."""
    of_flows = set(result.flows["group"])
    plain = {"startup", "completion"}
    times = result.times.to_dicts()
    told = {row["group"] for row in times if row["quantity"] not in plain}
    shown = [row for row in times if row["group"] in told or row["group"] not in of_flows]
    if shown:
        table = grid("Times", screen)
        table.add_column("group")
        table.add_column("of")
        for name in ("number", "mean", "p50", "p95", "p99", "max"):
            table.add_column(name, justify="right")
        for row in shown:
            keys = ("mean", "p50", "p95", "p99", "max")
            cells = (seconds(row[f"{key}_s"]) for key in keys)
            table.add_row(row["group"], row["quantity"], f"{row['count']:,}", *cells)
        screen.print(table)
    scores: dict[str, list[str]] = {}
    for row in result.scores.to_dicts():
        is_rate = row["quantity"] in RATES
        value = rate(row["value"]) if is_rate else f"{row['value']:.4g}"
        scores.setdefault(row["group"], []).append(f"{row['quantity']} {value}")
    for group, values in scores.items():
        screen.print(f"{group}: {', '.join(values)}")
    if shown or scores:
        screen.print()

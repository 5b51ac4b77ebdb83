"""`aqmlab study`: all points of a study, all replications, on all cores."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import polars.selectors as cs
import typer

from aqmlab._late import late
from aqmlab.cli.common import (
    EXAMPLES,
    Cluster,
    Figures,
    Json,
    NoReport,
    Only,
    Out,
    Replications,
    Seed,
    Set,
    Threads,
    With,
    check_chart,
    command_line,
    console,
    default_folder,
    executor_at,
    grid,
    load_own,
    print_json,
    progress_bar,
    reported,
    save_chart,
    show_note,
)
from aqmlab.document.numbers import percent, seconds
from aqmlab.plan.shards import Shard
from aqmlab.report.findings import findings, intervals, of_measures, sentences
from aqmlab.report.measures import Layout, means, measures
from aqmlab.report.notes import kinds, note_lines
from aqmlab.scenarios.settings import parse_selection, parse_settings
from aqmlab.study import Study
from aqmlab.study.sequential import is_reached

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from aqmlab.infer import Interval
    from aqmlab.plan.shards import Shard
    from aqmlab.report.measures import Measure
    from aqmlab.results import StudyResult
    from aqmlab.study import Study

EXAMPLE = EXAMPLES.format(
    "aqmlab study examples/study.toml\n\n"
    "aqmlab study examples/study.toml --replications 10 --out results/quick\n\n"
    "aqmlab study examples/study.toml --only queue=CoDel --only queue=PIE --out results/two\n\n"
    "aqmlab study examples/study.toml --set queue.limit=200p --seed 7 --threads 1\n\n"
    "aqmlab study examples/study.toml --tradeoff delay-goodput.svg\n\n"
    "aqmlab study examples/study.toml --cluster tcp://scheduler:8786\n\n"
    "aqmlab study examples/study.toml --shard 3/16 --out part3"
)
SHOWN_POINTS = 60


@reported
def study(
    file: Annotated[Path, typer.Argument(help="A study file (TOML).", metavar="FILE")],
    set_: Set = None,
    seed: Seed = None,
    replications: Replications = None,
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            metavar="[METRIC=]SHARE",
            help="Add replications until the 95 % interval is within this share of the mean: 5%, "
            "goodput=2%.",
        ),
    ] = None,
    only: Only = None,
    out: Out = None,
    threads: Threads = None,
    cluster: Cluster = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="N/M",
            help="Run only part N of M; `aqmlab merge` combines the parts.",
        ),
    ] = None,
    with_: With = None,
    tradeoff: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg",
            help="Draw delay against goodput, a point per run, with ellipses (RFC 7928, 2.7).",
        ),
    ] = None,
    no_report: NoReport = False,
    figures: Figures = False,
    json: Json = False,
) -> None:
    """Run all points of a study; after an interruption, only what is missing.

    Results go to results/NAME (with -rN and -sN for other replications and seeds),
    or to the folder given by --out.
    """
    part = Shard.parse(shard) if shard is not None else None
    load_own(with_)
    if tradeoff is not None:
        check_chart(tradeoff, "--tradeoff")
    plan = Study(
        file,
        set=parse_settings(set_ or []),
        seed=seed,
        replications=replications,
        only=parse_selection(only or []),
        precision=precision,
    )
    folder = out or default_folder(plan.name, only or [], r=replications, s=seed)
    if part is not None:
        if out is None:
            folder = folder.with_name(f"{folder.name}-part{part.number}of{part.of}")
        _run_shard(plan, part, folder, threads, cluster, json=json)
        return
    began = time.monotonic()
    with executor_at(cluster) as executor, progress_bar(plan.name, shown=not json) as progress:
        result = plan.run(folder, threads=threads, progress=progress, executor=executor)
    wall = time.monotonic() - began
    if json:
        print_json(to_json(result, wall))
        return
    screen = console()
    show(result, screen)
    screen.print(_done(result, wall), soft_wrap=True)
    if not no_report:
        report = result.write_report(folder, command=command_line(), figures=figures)
        screen.print(f"Report: {report}", soft_wrap=True)
    if tradeoff is not None:
        save_chart(late("tradeoff")(result), tradeoff)


def _run_shard(
    plan: Study,
    shard: Shard,
    folder: Path,
    threads: int | None,
    cluster: str | None,
    *,
    json: bool,
) -> None:
    """Runs a part of a study, and says so."""
    runs = sum(1 for _ in shard.runs(plan.total))
    began = time.monotonic()
    with executor_at(cluster) as executor, progress_bar(plan.name, shown=not json) as progress:
        computed = plan.run_shard(
            shard, folder, threads=threads, progress=progress, executor=executor
        )
    wall = time.monotonic() - began
    if json:
        form = {"study": plan.name, "digest": plan.digest, "folder": str(folder)}
        count = {"runs": runs, "computed": computed, "wall_seconds": round(wall, 3)}
        print_json({**form, "shard": shard.to_json(), **count})
        return
    there = f" ({runs - computed:,} were there already)" if computed < runs else ""
    done = f"Part {shard}: {computed:,} runs in {wall:.1f} s{there}. Results: {folder}"
    console().print(done, soft_wrap=True)


def summary(result: StudyResult) -> pl.DataFrame:
    """One row a point, of the bottleneck: means over the replications of the links' columns."""
    axes = [name for name, _ in result.info.axes]
    return (
        result.bottleneck.group_by(["point", *axes], maintain_order=True)
        .agg(
            pl.col("utilisation").mean(),
            pl.col("sojourn_p50_s").mean(),
            pl.col("sojourn_p95_s").mean(),
            pl.col("sojourn_max_s").mean(),
            (pl.col("dropped").sum() / pl.col("arrived").sum()).alias("dropped_share"),
            (pl.col("marked").sum() / pl.col("arrived").sum()).alias("marked_share"),
        )
        .sort("point")
        .with_columns(cs.float().fill_nan(None))
    )


def to_json(result: StudyResult, wall: float) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "study": result.info.name,
        "version": result.info.version,
        "digest": result.info.digest,
        "folder": str(result.folder),
        "runs": result.info.points * result.info.replications,
        "computed": result.computed,
        "wall_seconds": round(wall, 3),
        "replications": result.info.replications,
        **({"precision": _precision(result)} if result.info.precision else {}),
        "points": points(result),
        "findings": [each.to_json() for each in findings(result)],
        "notes": kinds(result),
    }


def _precision(result: StudyResult) -> dict[str, Any]:
    """What was asked for, and whether it was reached."""
    assert result.info.precision is not None
    return {**result.info.precision.to_json(), "reached": is_reached(result)}


def points(result: StudyResult) -> list[dict[str, Any]]:
    """The rows of the summary, each with `measures`: mean and interval of each measure."""
    rows = summary(result).to_dicts()
    found = [(each, means(result, each), intervals(result, each)) for each in measures(result)]
    for row in rows:
        at = row["point"]
        row["measures"] = [
            {
                "measure": each.title,
                "unit": each.unit,
                "mean": averages[at],
                "low": own.low if (own := within[at]) else None,
                "high": own.high if own else None,
            }
            for each, averages, within in found
            if at in averages
        ]
    return rows


def show(result: StudyResult, screen: Console) -> None:
    """Prints one row a point, then the notes in words."""
    info = result.info
    many = info.replications > 1
    how = f"means of {info.replications} replications" if many else "one run of each"
    title = f"{info.title}: bottleneck, {how}"
    table = grid(title, screen)
    for name, _ in info.axes:
        table.add_column(name)
    for name in ("busy", "sojourn p50", "p95", "max", "dropped", "marked"):
        table.add_column(name, justify="right")
    rows = summary(result).to_dicts()
    for row in rows[:SHOWN_POINTS]:
        labels = [row[name] for name, _ in info.axes]
        delays = [seconds(row[f"sojourn_{key}_s"]) for key in ("p50", "p95", "max")]
        shares = [percent(row[f"{key}_share"]) for key in ("dropped", "marked")]
        table.add_row(*labels, percent(row["utilisation"]), *delays, *shares)
    screen.print(table)
    if len(rows) > SHOWN_POINTS:
        screen.print(f"... and {len(rows) - SHOWN_POINTS} more points in the folder")
    _show_groups(result, screen)
    for line in note_lines(result):
        show_note(line, screen)


def _show_groups(result: StudyResult, screen: Console) -> None:
    """What the groups of flows got, and which value of the first axis does best."""
    found, layout = measures(result), Layout.of(result.info.axes)
    of_groups = [each for each in found if ":" in each.title]
    screen.print()
    if of_groups:
        table = grid("Groups of flows", screen)
        names = [name for name, _ in result.info.axes]
        for name in names:
            table.add_column(name)
        for each in of_groups:
            table.add_column(each.title, justify="right")
        averages = [means(result, each) for each in of_groups]
        ranges = [intervals(result, each) for each in of_groups]
        for row in result.points.head(SHOWN_POINTS).to_dicts():
            values = zip(of_groups, averages, ranges, strict=True)
            at = row["point"]
            cells = [_with_range(each, mean.get(at), own.get(at)) for each, mean, own in values]
            table.add_row(*(str(row[name]) for name in names), *cells)
        screen.print(table)
        screen.print()
    for line in sentences(of_measures(result, found, layout), found, layout.compared):
        screen.print(line)
    screen.print()


def _with_range(measure: Measure, mean: float | None, within: Interval | None) -> str:
    """The mean and how far the interval goes to its farther end."""
    if mean is None or within is None or within.low == within.high:
        return measure.text(mean)
    return f"{measure.text(mean)} ±{measure.number(max(mean - within.low, within.high - mean))}"


def _done(result: StudyResult, wall: float) -> str:
    total = result.info.points * result.info.replications
    if not result.computed:
        return f"All {total:,} runs were there already: nothing to do. Results: {result.folder}"
    before = total - result.computed
    rest = f" ({before:,} were there already)" if before else ""
    return f"{result.computed:,} runs in {wall:.1f} s{rest}. Results: {result.folder}"

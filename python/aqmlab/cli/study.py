"""`aqmlab study`: all points of a study, all replications, on all cores."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.cli import options
from aqmlab.cli.common import (
    check_chart,
    console,
    default_folder,
    load_own,
    means,
    naming,
    print_json,
    save_chart,
    show_study,
)
from aqmlab.cli.options import argument, option
from aqmlab.numbers import count
from aqmlab.scenario.settings import parse_selection, parse_settings
from aqmlab.study.shards import Shard

if TYPE_CHECKING:
    from aqmlab.study import Study

EXAMPLE = (
    "aqmlab study examples/study.toml\n\n"
    "aqmlab study examples/study.toml --replications 10 --out results/quick\n\n"
    "aqmlab study examples/study.toml --only queue=CoDel --only queue=PIE --out results/two\n\n"
    "aqmlab study examples/study.toml --set queue.limit=200p --seed 7 --threads 1\n\n"
    "aqmlab study examples/study.toml --tradeoff delay-goodput.svg\n\n"
    "aqmlab study examples/study.toml --cluster tcp://scheduler:8786\n\n"
    "aqmlab study examples/study.toml --shard 3/16 --out part3"
)


def study(
    file: Path = argument("FILE", "A study file (TOML)."),
    set_: list[str] | None = options.SET,
    seed: int | None = options.SEED,
    replications: int | None = options.REPLICATIONS,
    precision: str | None = option(
        "[METRIC=]SHARE",
        "Add replications until the 95 % interval is within this share of the mean: 5%, "
        "goodput=2%.",
    ),
    only: list[str] | None = options.ONLY,
    out: Path | None = options.OUT,
    threads: int | None = options.THREADS,
    cluster: str | None = options.CLUSTER,
    shard: str | None = option("N/M", "Run only part N of M; `aqmlab merge` combines the parts."),
    with_: list[str] | None = options.WITH,
    tradeoff: Path | None = option(
        "FILE.svg", "Draw delay against goodput, a point per run, with ellipses (RFC 7928, 2.7)."
    ),
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
) -> None:
    """Run a study, or resume an interrupted one.

    Results go to results/NAME (with -rN and -sN for other replications and seeds),
    or to the folder given by --out.
    """
    from aqmlab.study import Study

    with naming(shard="--shard"):
        part = Shard.parse(shard) if shard is not None else None
    load_own(with_)
    if tradeoff is not None:
        check_chart(tradeoff, "--tradeoff")
    names = ("precision", "seed", "replications", "set")
    with naming(**{name: f"--{name}" for name in names}):
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
    with means(plan.name, cluster, shown=not json) as running:
        result = plan.run(folder, threads=threads, **running)
    wall = time.monotonic() - began
    if json:
        from aqmlab.report.study_page import to_json

        print_json(to_json(result, wall))
        return
    total = result.info.points * result.info.replications
    done = f"All {total:,} runs were there already: nothing to do. Results: {result.folder}"
    if result.computed:
        done = _done(result.computed, total, wall, result.folder)
    show_study(result, folder, done, figures=figures, no_report=no_report)
    if tradeoff is not None:
        from aqmlab.report.overview import tradeoff as figure

        save_chart(figure(result), tradeoff)


def _run_shard(
    plan: Study,
    shard: Shard,
    folder: Path,
    threads: int | None,
    cluster: str | None,
    *,
    json: bool,
) -> None:
    """Runs a part of a study and reports it."""
    runs = sum(1 for _ in shard.runs(plan.total))
    began = time.monotonic()
    with means(plan.name, cluster, shown=not json) as running:
        computed = plan.run_shard(shard, folder, threads=threads, **running)
    wall = time.monotonic() - began
    if json:
        form = {"study": plan.name, "digest": plan.digest, "folder": str(folder)}
        counts = {"runs": runs, "computed": computed, "wall_seconds": round(wall, 3)}
        print_json({**form, "shard": shard.to_json(), **counts})
        return
    console().print(f"Part {shard}: {_done(computed, runs, wall, folder)}", soft_wrap=True)


def _done(computed: int, total: int, wall: float, folder: Path | None) -> str:
    """Number of runs that were computed, of how many, and the time they took."""
    there = f" ({total - computed:,} were there already)" if computed < total else ""
    return f"{count(computed, 'run')} in {wall:.1f} s{there}. Results: {folder}"

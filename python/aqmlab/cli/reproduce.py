"""`aqmlab reproduce`: a published study again, the published numbers beside ours."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.cli import options
from aqmlab.cli.common import (
    FAILURE,
    console,
    default_folder,
    fail,
    finish,
    means,
    naming,
    print_json,
)
from aqmlab.cli.options import argument, flag, option
from aqmlab.errors import input_error

if TYPE_CHECKING:
    from aqmlab.reproduce import Reproduction
    from aqmlab.reproduce.summary import Summary

ALL = "all"
EXAMPLE = (
    "aqmlab reproduce jarvinen2014\n\n"
    "aqmlab reproduce jarvinen2014 --replications 10 --out results/quick\n\n"
    "aqmlab reproduce jarvinen2014 --only paper\n\n"
    "aqmlab reproduce cs244_2015 --trace Verizon-LTE-short.down\n\n"
    "aqmlab reproduce cs244_2015 --only steps --emulate --step 5s\n\n"
    "aqmlab reproduce all\n\n"
    "aqmlab reproduce kuhn2014 --with queue=fq_codel --with control=bbr3\n\n"
    "aqmlab reproduce ns3 --check\n\n"
    "aqmlab reproduce --new mine --from kuhn2014\n\n"
    "aqmlab reproduce examples/my_study.toml\n\n"
    "aqmlab reproduce jarvinen2014 --json > jarvinen2014.json"
)


def reproduce(
    name: str = argument("NAME", "A study of `aqmlab list`, the folder of one, or `all` of them."),
    replications: int | None = options.REPLICATIONS,
    seed: int | None = options.SEED,
    out: Path | None = options.OUT,
    threads: int | None = options.THREADS,
    cluster: str | None = options.CLUSTER,
    only: list[str] | None = option(
        "PART", "Run only a part of the study, such as paper or queue=CoDel. May be repeated."
    ),
    with_: list[str] | None = option(
        "AXIS=VALUE",
        "Add rows of a queue or control that the paper lacks: queue=fq_codel. May be repeated.",
        "--with",
    ),
    trace: Path | None = option(
        "FILE", "Delivery opportunities (mahimahi's format) for the link that takes a trace."
    ),
    emulate: bool = flag(
        "--emulate", "Also run with real packets (cs244_2015; needs root or user namespaces)."
    ),
    step: str | None = option("TIME", "With --emulate: length of the steps."),
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    check: bool = flag(
        "--check", "Exit with 1 if a number of the paper differs or a statement does not hold."
    ),
    strict: bool = flag("--strict", "With --check: also if one is not decided."),
    new: bool = flag("--new", "Create the folder NAME with a working study."),
    from_: str | None = option("STUDY", "With --new: a copy of this study.", "--from"),
    json: bool = options.JSON,
) -> None:
    """Reproduce a published study and compare it with its paper, number by number.

    Prints the tables and statements of the paper with what was measured, and
    writes all results and a report (HTML; not with --json) to results/NAME or --out.
    With `all`, every study is run, and one table says how far each agrees.
    --check is for artefact evaluation: the exit status says whether anything differs.
    """
    from aqmlab.reproduce.catalogue import place, places

    needs = [("--from", from_, new, "--new"), ("--step", step, emulate, "--emulate"),
             ("--strict", strict or None, check, "--check")]  # fmt: skip
    for key, value, there, other in needs:
        if value is not None and not there:
            raise input_error(f"this option needs {other}", key=key, given=str(value))
    if new:
        from aqmlab.reproduce.skeleton import TEMPLATE, copy

        with naming(name="--from"):
            folder = copy(from_ or str(TEMPLATE), name)
        console().print(f"Created {folder}; run it with `aqmlab reproduce ./{folder}`.")
        return
    known = list(places())
    if name != ALL or not known:
        with naming(name="NAME"):
            place(name)  # which says how to get the studies, before tables are missed
    from aqmlab.reproduce.summary import Summary

    common: dict[str, Any] = {
        "replications": replications,
        "seed": seed,
        "threads": threads,
        "cluster": cluster,
    }
    if name == ALL:
        single = {"--only": only, "--with": with_, "--trace": trace, "--emulate": emulate}
        for key in (key for key, value in single.items() if value):
            raise input_error("this option needs a single study", key=key, given=f"{key} with all")
        each = (_one(every, out and out / every, json, **common) for every in known)
        done = _all(each, json)
    else:
        words = [*(only or []), *(with_ or []), *(["emulated", step or ""] if emulate else [])]
        words += [f"trace_{trace.name}"] if trace else []
        own = {"only": only or (), "beside": with_ or (), "trace": trace, "step": step}
        common |= own | {"emulate": emulate}
        reproduction, folder = _one(name, out, json, list(filter(None, words)), **common)
        finish(reproduction, folder, json=json, figures=figures, no_report=no_report)
        done = [Summary.of(reproduction)] if check else []
    failed = [f"{each.study}: {text}" for each in done if (text := each.problem(strict))]
    if check and failed:
        fail("; ".join(failed), FAILURE)


def _one(
    name: str,
    out: Path | None,
    json: bool,
    words: Sequence[str] = (),
    *,
    cluster: str | None,
    **how: Any,
) -> tuple[Reproduction, Path]:
    """A study, and the folder of its results."""
    from aqmlab.reproduce import reproduce

    called = Path(name).resolve().name.removesuffix(".toml")
    folder = out or default_folder(called, words, r=how["replications"], s=how["seed"])
    told = partial(print, file=sys.stderr)
    named = naming(**{key: f"--{key}" for key in ("only", "trace", "emulate", "step")})
    with named, naming(beside="--with"), means(Path(name).name, cluster, shown=not json) as running:
        return reproduce(name, out=folder, told=told, **running, **how), folder


def _all(every: Iterable[tuple[Reproduction, Path]], json: bool) -> Sequence[Summary]:
    """Every study; one table at the end."""
    from aqmlab.report.document import terminal
    from aqmlab.reproduce.summary import Summary, table

    screen = console()
    done, forms = [], []
    for reproduction, folder in every:
        done.append(Summary.of(reproduction))
        if json:
            forms.append(reproduction.to_json())
        else:
            report = reproduction.write_report(folder)
            screen.print(f"{reproduction.name}: {report}", soft_wrap=True)
    if json:
        print_json({"summary": [each.to_json() for each in done], "studies": forms})
    else:
        screen.print()
        terminal.block(table(done), screen)
    return done

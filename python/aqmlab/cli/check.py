"""`aqmlab check`: the questions of a pack, answered; for people and for continuous integration."""

from __future__ import annotations

import sys
from pathlib import Path

from aqmlab.cli import options
from aqmlab.cli.common import FAILURE, console, default_folder, finish, load_own, means
from aqmlab.cli.options import argument, flag, option
from aqmlab.errors import input_error

EXAMPLE = (
    "aqmlab new pack mine\n\naqmlab check mine.toml\n\n"
    "aqmlab check mine.toml --with candidate=my_queue.py:MyQueue --json\n\n"
    "aqmlab check mine.toml --strict --replications 40\n\n"
    "aqmlab check mine.toml --save baseline.json\n\n"
    "aqmlab check mine.toml --baseline baseline.json --junit check.xml --github"
)


def check(
    pack: str = argument("PACK", "A pack: a TOML file, or a name of a package's."),
    with_: list[str] | None = option(
        "NAME=VALUE",
        "Add a contender: what fills the pack's slot; or load your own metrics (FILE.py). May be "
        "repeated.",
        "--with",
    ),
    baseline: Path | None = option("FILE", "Results that rules beside `baseline` compare with."),
    save: Path | None = option("FILE", "Write the results as a baseline."),
    junit: Path | None = option("FILE", "Write the answers as JUnit XML."),
    github: bool = flag("--github", "Print annotations for GitHub Actions."),
    strict: bool = flag("--strict", "Also fail if a rule is not decided."),
    replications: int | None = options.REPLICATIONS,
    seed: int | None = options.SEED,
    out: Path | None = options.OUT,
    threads: int | None = options.THREADS,
    cluster: str | None = options.CLUSTER,
    no_report: bool = options.NO_REPORT,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
) -> None:
    """Answer the questions of a pack: does each rule hold, with intervals over the replications?

    Exit status 1 if a rule does not hold, 2 for wrong input. Results and a report go to
    results/NAME or --out.
    """
    from aqmlab.campaign import Plan, gate
    from aqmlab.campaign.baseline import Baseline
    from aqmlab.campaign.baseline import save as write_baseline
    from aqmlab.campaign.packfile import load
    from aqmlab.scenario.settings import parse_settings

    files = [each for each in with_ or () if each.endswith(".py") and "=" not in each]
    load_own(files)
    found = load(pack)
    compared = any(rule.baseline for each in found.questions for rule in each.rules)
    if compared and not (baseline or save):
        problem = "rules of this pack compare with a baseline"
        raise input_error(problem, key="--baseline", hint="--save FILE writes one")
    if baseline and not compared:
        hint = "such as goodput no worse than baseline by 5%"
        raise input_error("no rule of this pack compares with it", key="--baseline", hint=hint)
    given = [each for each in with_ or () if each not in files]
    added = parse_settings(given, "--with", "a contender such as mine=my_queue.py:MyQueue")
    plan = Plan(found, {**found.contenders, **added})
    folder = out or default_folder(Path(pack).stem, given, r=replications, s=seed)
    with means(found.name, cluster, shown=not json) as running:
        before = Baseline.load(baseline) if baseline else None
        campaign = plan.run(
            replications, seed, out=folder, threads=threads, baseline=before, **running
        )
    answers = gate.checked(campaign, strict=strict)
    if save:
        write_baseline(campaign, save)
    if junit:
        gate.write_junit(found.name, answers, junit)
    finish(campaign, folder, json=json, figures=figures, no_report=no_report)
    if not json:
        console().print(gate.status(answers), soft_wrap=True, highlight=False)
    if github:
        # GitHub reads commands from both streams; JSON has standard output to itself.
        for line in gate.workflow_commands(pack, answers):
            print(line, file=sys.stderr if json else sys.stdout)
    if any(each.fails for each in answers):
        raise SystemExit(FAILURE)

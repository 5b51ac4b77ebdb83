"""`aqmlab compare`: results in several folders side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from aqmlab import plain
from aqmlab.cli import options
from aqmlab.cli.common import load_own, naming, print_json, show_study
from aqmlab.cli.options import argument
from aqmlab.errors import input_error
from aqmlab.numbers import rate, seconds

EXAMPLE = (
    "aqmlab compare results/before results/after\n\n"
    "aqmlab compare CoDel=results/lte-codel FQ-CoDel=results/lte-fq --out results/lte\n\n"
    "aqmlab compare ours=results/mine theirs=rrul.flent.gz iperf3.json"
)


def compare(
    folders: list[str] = argument(
        "[NAME=]FOLDER...", "Results of run, study or shell --out; files of flent, iperf3 or irtt."
    ),
    out: Path | None = options.OUT,
    with_: list[str] | None = options.WITH,
    figures: bool = options.FIGURES,
    json: bool = options.JSON,
) -> None:
    """Compare results of runs, studies and emulations side by side, in tables and one figure.

    The results must have the same axes and number of replications. The report goes to
    results/compare or --out. If one of them is a file of flent, iperf3 or irtt, goodput and
    round-trip times are compared.
    """
    from aqmlab.compare import compare as side_by_side
    from aqmlab.report.study_page import to_json

    load_own(with_)
    named = _named(folders)
    if any(map(Path.is_file, named.values())):
        _beside_measurements(named, as_json=json)
        return
    with naming(folders="FOLDER"):
        result = side_by_side(named)
    if json:
        form = to_json(result, 0.0)
        print_json({key: form[key] for key in ("points", "findings", "notes")})
        return
    show_study(result, out or Path("results") / "compare", "", figures=figures)


def _beside_measurements(named: dict[str, Path], *, as_json: bool) -> None:
    """Shows goodput and round-trip times of results and of files of other programs."""
    from aqmlab.report.exports import ours, read
    from aqmlab.results import StudyResult

    found = {
        name: read(path) if path.is_file() else ours(StudyResult.open(path))
        for name, path in named.items()
    }
    if as_json:
        print_json({"measured": [{"name": name} | asdict(each) for name, each in found.items()]})
        return
    rows = [
        [
            name,
            each.source,
            rate(each.goodput_bps),
            seconds(each.rtt_p50_s),
            seconds(each.rtt_p95_s),
        ]
        for name, each in found.items()
    ]
    heads = ("name", "measured by", "goodput", "RTT p50", "RTT p95")
    print("\n".join(plain.table("Measurements", heads, rows, labels=2)))


def _named(folders: list[str]) -> dict[str, Path]:
    """Names and folders, parted by the first `=` unless the whole is a folder; the name of a folder
    is its last part, or all of it if that is taken."""
    pairs = [
        ("", each) if Path(each).exists() or "=" not in each else each.split("=", 1)
        for each in folders
    ]
    last = [Path(folder).name for _, folder in pairs]
    named: dict[str, Path] = {}
    for (name, folder), short in zip(pairs, last, strict=True):
        label = name or (short if last.count(short) == 1 and short else folder)
        if label in named:
            raise input_error("two results have the same name", key="FOLDER", given=label)
        named[label] = Path(folder)
    return named

"""`aqmlab rerun`: results verified and repeated."""

from __future__ import annotations

from pathlib import Path

from aqmlab.cli import options
from aqmlab.cli.common import FAILURE, fail, print_json, progress_bar
from aqmlab.cli.options import argument, flag

EXAMPLE = (
    "aqmlab rerun mine.aqmlab.zip\n\n"
    "aqmlab rerun results/mine --trust\n\n"
    "aqmlab rerun mine.aqmlab.zip --verify"
)


def rerun(
    source: Path = argument("BUNDLE", "A bundle, or a folder with results."),
    out: Path | None = options.OUT,
    trust: bool = flag("--trust", "Execute the Python code in the bundle."),
    verify: bool = flag("--verify", "Only verify files and versions; run nothing."),
    threads: int | None = options.THREADS,
    json: bool = options.JSON,
) -> None:
    """Verify results, repeat their runs, and compare all tables byte for byte.

    The new results go to results/NAME-rerun or --out. The exit status is 1 if a value differs.
    Results of real packets are verified, not repeated.
    """
    from aqmlab.share.rerun import rerun as repeat

    with progress_bar(source.name, shown=not json) as progress:
        found = repeat(source, out, trust=trust, verify=verify, threads=threads, progress=progress)
    if json:
        print_json(found.to_json())
    else:
        for line in found.lines:
            print(line)
        if found.folder is not None:
            print(f"New results: {found.folder}")
    if not found.agrees:
        fail("the repeated runs have other values", FAILURE)

"""`aqmlab cluster check`: whether the workers of a cluster have this aqmlab."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from aqmlab.cli import options
from aqmlab.cli.common import FAILURE, console, print_json
from aqmlab.cli.options import argument
from aqmlab.numbers import count

EXAMPLE = "aqmlab cluster check tcp://scheduler:8786"


def cluster(
    action: Literal["check"] = argument("check", "What to do."),
    address: str = argument("ADDRESS", "Address of the scheduler: tcp://HOST:8786."),
    json: bool = options.JSON,
) -> None:
    """Show the workers of a dask cluster, and whether each has the same aqmlab as this machine.

    The exit status is 0 if there are workers and all have it, else 1.
    """
    from aqmlab.report.document import Column, Table, terminal
    from aqmlab.study.cluster import workers
    from aqmlab.study.spread import own_build

    found = workers(address)
    fits = bool(found) and all(each.fits for each in found)
    if json:
        told = [each.to_json() for each in found]
        print_json({**asdict(own_build()), "fits": fits, "workers": told})
    else:
        screen = console()
        columns = (Column(name, label=name != "threads")
                   for name in ("worker", "threads", "aqmlab", ""))  # fmt: skip
        rows = tuple(
            (e.address, e.threads, str(e.build or e.problem), "same" if e.fits else "other")
            for e in found
        )
        terminal.block(Table(tuple(columns), rows, title=f"aqmlab {own_build()} here"), screen)
        threads = sum(each.threads for each in found)
        screen.print(f"{count(len(found), 'worker')} with {count(threads, 'thread')}.")
    if not fits:
        raise SystemExit(FAILURE)

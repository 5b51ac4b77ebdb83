"""`aqmlab cluster check`: whether the workers of a cluster have this aqmlab."""

from __future__ import annotations

from typing import Annotated, Literal

from aqmlab.cli import options
from aqmlab.cli.common import FAILURE, console, print_json, show_table
from aqmlab.cli.options import argument
from aqmlab.numbers import count

EXAMPLE = "aqmlab cluster check tcp://scheduler:8786"


def cluster(
    action: Annotated[Literal["check"], argument("check", "What to do.")],
    address: Annotated[str, argument("ADDRESS", "Address of the scheduler: tcp://HOST:8786.")],
    json: options.Json = False,
) -> None:
    """Show the workers of a dask cluster, and whether each has the same aqmlab as this machine.

    The exit status is 0 if there are workers and all have it, else 1.
    """
    from aqmlab.report.document import Column, Table
    from aqmlab.study.cluster import workers
    from aqmlab.study.spread import own_build

    found = workers(address)
    fits = bool(found) and all(each.fits for each in found)
    if json:
        build = {"version": own_build().version, "engine": own_build().engine}
        print_json({**build, "fits": fits, "workers": [each.to_json() for each in found]})
    else:
        screen = console()
        columns = (Column(name, label=name != "threads")
                   for name in ("worker", "threads", "aqmlab", ""))  # fmt: skip
        rows = tuple(
            (e.address, e.threads, str(e.build or e.problem), "same" if e.fits else "other")
            for e in found
        )
        show_table(Table(tuple(columns), rows, title=f"aqmlab {own_build()} here"), screen)
        threads = sum(each.threads for each in found)
        screen.print(f"{count(len(found), 'worker')} with {count(threads, 'thread')}.")
    if not fits:
        raise SystemExit(FAILURE)

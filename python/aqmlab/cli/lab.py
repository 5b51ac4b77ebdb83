"""`aqmlab lab`: the live lab from this machine."""

from __future__ import annotations

import contextlib
import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aqmlab.cli import options
from aqmlab.cli.common import print_json
from aqmlab.cli.lab_server import LabServer
from aqmlab.cli.options import argument, flag, option
from aqmlab.emulator.view import between, named
from aqmlab.errors import InputError, renamed
from aqmlab.study.single import load
from aqmlab.study.stepping import Run

if TYPE_CHECKING:
    from aqmlab.emulator.view import Emulator

EXAMPLE = (
    "aqmlab lab\n\naqmlab lab examples/scenario.toml --against pie\n\n"
    "aqmlab lab --shell NAME\n\naqmlab lab --digest saved.toml"
)


def lab(
    scenario: Path | None = argument(
        "[SCENARIO]", "Open the lab with this scenario.", dir_okay=False, default=None
    ),
    against: str = option("QUEUE", "The bottleneck's queue on the other side.", default="fq_codel"),
    shell: str | None = option(
        "NAME", "Show the links of a running emulator, by its `--name` or process ID."
    ),
    digest: Path | None = option("FILE", "Run a saved scenario; print its digest."),
    port: int = typer.Option(
        0, "--port", min=0, max=65_535, help="Port to listen on; default: any."
    ),
    no_browser: bool = flag("--no-browser", "Print the address only."),
    json: bool = options.JSON,
) -> None:
    """Open the live lab: two queues side by side under the same traffic.

    The page is served to this machine only, at an address that contains a secret token, until
    Ctrl-C. docs/lab/index.html is the same page without a server.
    """
    if digest is not None:
        run = Run(digest)
        run.finish()
        if json:
            print_json({"file": str(digest), "result": run.digest})
        else:
            print(run.digest)
        return
    given: object = None
    live = None
    if shell is not None:
        emulator = named(shell, key="--shell")
        given = {"live": emulator.command}
        live = _looks(emulator)
    elif scenario is not None:
        given = _sides(scenario, against)
    with LabServer(given, live, port) as server:
        if json:
            print_json({"address": server.address})
        else:
            print(f"The lab is at {server.address}\nPress Ctrl-C to end it.", flush=True)
        if not no_browser:
            webbrowser.open(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def _sides(file: Path, against: str) -> dict[str, Any]:
    """The scenario, and the same with another queue. Raises `InputError` if one is none."""
    sides = [load(file, {})]
    try:
        sides.append(load(file, {"queue": against}))
    except InputError as error:
        raise renamed(error, "--against") from None
    resolved = [json.loads(side.resolved) for side in sides]
    queues = [each["links"][each["bottleneck"]]["queue"]["discipline"] for each in resolved]
    return {"toml": [side.to_toml() for side in sides], "names": queues}


def _looks(emulator: Emulator) -> Any:
    """Function that returns the links of an emulator at each call."""
    before: dict[str, Any] = {}

    def look() -> list[dict[str, Any]]:
        nonlocal before
        now = emulator.look()
        if now is None or (before and now["time_s"] <= before["time_s"]):
            return []
        rows = between(before, now) if before else []
        before = now
        return [row | {"time_s": now["time_s"]} for row in rows]

    return look

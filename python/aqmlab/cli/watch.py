"""`aqmlab shell --watch`: what the links do, below what the command says.

The emulator has one thread and no time for a terminal, so a process of its own shows the view
(`python -m aqmlab.cli.watch`), by the same numbers as `aqmlab top`. What the command writes to
the terminal goes through a pseudo-terminal to that process, which prints it above the view.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

from aqmlab.errors import input_error

SECONDS = 1.0
"""Between two looks."""
PATIENCE = 5.0
"""Seconds until the last lines must have been shown."""


@contextlib.contextmanager
def watching(command: list[str]) -> Iterator[None]:
    """Shows the links of an emulation that takes place in this process meanwhile.

    Raises `InputError` where there is no terminal, or one that is wanted for other things.
    """
    if not os.isatty(2):
        problem = "there is no terminal to draw on: use `aqmlab top`, or `aqmlab top --json`"
        raise input_error(problem, key="--watch")
    if not command:
        problem = (
            "a shell needs the terminal: give a COMMAND, or run `aqmlab top` in another terminal"
        )
        raise input_error(problem, key="--watch")
    master, slave = os.openpty()
    with contextlib.suppress(termios.error):
        termios.tcsetwinsize(slave, termios.tcgetwinsize(2))
    words = [sys.executable, "-P", "-m", "aqmlab.cli.watch", str(os.getpid()), str(master)]
    viewer = subprocess.Popen(words, pass_fds=[master], stdin=subprocess.DEVNULL)
    os.close(master)
    ours = {each: os.dup(each) for each in (1, 2) if os.isatty(each)}
    for each in ours:
        os.dup2(slave, each)
    os.close(slave)
    try:
        yield
    finally:
        for each, saved in ours.items():
            os.dup2(saved, each)
            os.close(saved)
        # What had the pseudo-terminal is gone, and so its other end says.
        with contextlib.suppress(subprocess.TimeoutExpired):
            viewer.wait(PATIENCE)
        viewer.kill()
        viewer.wait()


def show(pid: int, output: int) -> None:
    """Shows the links and the text from `output`, until that ends."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from aqmlab.cli.top import Readings, changes, readings_of, tables
    from aqmlab.emulator.view import running

    before: Readings = {}
    rest, due = b"", 0.0
    screen = Console(stderr=True, highlight=False, markup=False)
    with Live(console=screen, auto_refresh=False, transient=True) as live:
        while (new := _read(output, max(due - time.monotonic(), 0.0))) is not None:
            *lines, rest = (rest + new).split(b"\n")
            if lines:
                texts = (Text.from_ansi(_last(line)) for line in lines)
                screen.print(Text("\n").join(texts), soft_wrap=True)
            if time.monotonic() < due:
                continue
            due = time.monotonic() + SECONDS
            ours = [each for each in running() if each.pid == pid]
            now = readings_of(ours)
            live.update(tables(ours, changes(before, now), screen), refresh=True)
            before = now
    if rest:
        screen.print(Text.from_ansi(_last(rest)), soft_wrap=True)


def _read(output: int, timeout: float) -> bytes | None:
    """Received text, after a short time at most; `None` at the end."""
    if not select.select([output], [], [], timeout)[0]:
        return b""
    try:
        return os.read(output, 1 << 16) or None
    except OSError:
        # All have closed the pseudo-terminal.
        return None


def _last(line: bytes) -> str:
    """Final form of a line: text that a progress bar overwrote is removed."""
    return line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")


if __name__ == "__main__":
    # What Ctrl-C ends is the command; then there is nothing to show any more.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    show(int(sys.argv[1]), int(sys.argv[2]))

"""Signals that end a command: SIGTERM and SIGHUP act as Ctrl-C."""

from __future__ import annotations

import contextlib
import ctypes
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import NoReturn

    from aqmlab._core import Runner


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C asked the program to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def status(error: KeyboardInterrupt) -> int:
    """Exit status of the signal: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (error.number if isinstance(error, Terminated) else signal.SIGINT)


def install() -> None:
    """Makes SIGTERM and SIGHUP exceptions. Ignored signals (`nohup`) stay ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminate)


def uninstall() -> None:
    """For the last moments of the interpreter: the next signal ends it without a word."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignores Ctrl-C, SIGTERM and SIGHUP meanwhile."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def stop(runner: Runner) -> None:
    """Ends the threads of a runner: in methods of classes that do not return,
    KeyboardInterrupt is raised. A thread that was left in one would meet the end of the
    interpreter."""
    endless = runner.stop()
    if not endless:
        return
    for thread in endless:
        exception = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)
    runner.stop()


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    raise Terminated(number)

"""The exceptions that a user of aqmlab can meet.

All are an `AqmlabError`.

* `InputError` (a `ValueError`): something given is not right. It names the file,
  the key, what was given and what is allowed.
* `CustomError` (a `RuntimeError`): code of the user's own did something wrong. It names
  the file, the line, the class and the method. It is a `QueueError` or a `ControlError`.
* `FolderError`: a results folder cannot be used; nothing in it was changed.
* `EmulationError`: a run with real packets could not be made.
* `StorageError` (an `OSError`): results could not be written; what had been
  computed before is still there.
* `DamageWarning` (a `UserWarning`): a file of a results folder is not what was written; it
  says which, and what is done about it.
"""

from __future__ import annotations

import difflib
import errno
import traceback
from collections.abc import Iterable
from pathlib import Path

from aqmlab._core import ControlError, CustomError, InputError, QueueError

__all__ = [
    "AqmlabError",
    "ControlError",
    "CustomError",
    "DamageWarning",
    "EmulationError",
    "FolderError",
    "InputError",
    "QueueError",
    "StorageError",
    "input_error",
    "nearest",
    "place_of",
    "unknown",
]

NO_ROOM = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the limit on the size of a file is reached",
}


class AqmlabError(Exception):
    """Whatever aqmlab raises on purpose."""

    __slots__ = ()


# The engine's exceptions are made in Rust, where a class has one base. They get the second here,
# before anybody can meet one; it has no slots, so their layout is the same.
InputError.__bases__ = (AqmlabError, ValueError)
CustomError.__bases__ = (AqmlabError, RuntimeError)


class EmulationError(AqmlabError):
    """A run with real packets could not be made; `str(error)` says why."""


class FolderError(AqmlabError):
    """A folder that is not what this command may write to; it was left as it was."""


class DamageWarning(UserWarning):
    """A damaged file was found in a results folder, and a way around it."""


class StorageError(AqmlabError, OSError):
    """Results could not be written. `str(error)` says what is kept and what to do."""

    def __init__(self, cause: OSError, folder: Path, kept: str) -> None:
        reason = NO_ROOM.get(cause.errno or 0) or cause.strerror or str(cause)
        advice = "have made room" if cause.errno in NO_ROOM else "have mended that"
        self.message = (
            f"{folder}: {reason}; {kept}. Once you {advice}, the same command goes on from there."
        )
        super().__init__(cause.errno, reason, str(folder))

    def __str__(self) -> str:
        return self.message


def input_error(
    problem: str,
    *,
    file: str | None = None,
    key: str = "",
    given: object = None,
    hint: str | None = None,
) -> InputError:
    """An `InputError` as the engine makes them, for what is checked in Python."""
    text = problem if given is None else f"`{given}`: {problem}"
    for place in (key, file):
        text = f"{place}: {text}" if place else text
    error = InputError(f"{text} ({hint})" if hint else text)
    error.file, error.key, error.problem, error.hint = file, key, problem, hint
    error.given = None if given is None else str(given)
    return error


def place_of(error: BaseException) -> str:
    """`file.py:12` of the user's code in which an error came up."""
    package = str(Path(__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if not each.filename.startswith(package)] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that was probably meant by `name`, if any is near."""
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def unknown(
    what: str, name: str, known: Iterable[str], *, file: str | None = None, key: str = ""
) -> InputError:
    """An `InputError` about a name that is none of `known`, with the nearest as the hint."""
    names = list(known)
    guess = nearest(name, names)
    return input_error(
        f"unknown {what}; known: {', '.join(names)}",
        file=file,
        key=key,
        given=name,
        hint=f"did you mean `{guess}`?" if guess else None,
    )

"""The exceptions that aqmlab raises.

Each is an `AqmlabError`.

* `InputError` (a `ValueError`): the input is invalid. It names the file,
  the key, what was given and what is allowed.
* `CustomError` (a `RuntimeError`): the user's own code failed. It names
  the file, the line, the class and the method. It is a `QueueError` or a `ControlError`.
* `StuckError` (a `RuntimeError`): runs made no progress in virtual time and were abandoned. It
  names point, replication, link and event of each; the other runs are kept.
* `FolderError`: a results folder cannot be used; nothing in it was changed.
* `ClusterError`: a cluster that computes runs failed, or has another version of aqmlab.
* `EmulationError`: a run with real packets failed.
* `StorageError` (an `OSError`): results could not be written; earlier
  results are kept.
* `ForkError` (a `RuntimeError`): this process is a forked copy of one that has computed tables.
* `ClusterWarning` (a `UserWarning`): a study waits because its cluster has no workers.
* `DamageWarning` (a `UserWarning`): a file of a results folder is damaged; the
  message names the file and what aqmlab does about it.
* `WorkWarning` (a `UserWarning`): simulations that begin take long.
"""

from __future__ import annotations

import difflib
import errno
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aqmlab._core import ControlError as ControlError
from aqmlab._core import CustomError as CustomError
from aqmlab._core import InputError as InputError
from aqmlab._core import QueueError as QueueError

SHOWN = 10
"""Number of abandoned runs that a message names."""

SHOWN_NAMES = 100
"""Number of known names that a message shows."""
SHOWN_CHARACTERS = 300
"""Number of characters of the input that a message shows."""
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Control characters, which messages escape."""

NO_ROOM = {
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the limit on the size of a file is reached",
}


class AqmlabError(Exception):
    """Base class of all exceptions of aqmlab."""

    __slots__ = ()


# The engine's exceptions are made in Rust, where a class has one base. They get the second here,
# before one is raised; it has no slots, so their layout is the same.
InputError.__bases__ = (AqmlabError, ValueError)
CustomError.__bases__ = (AqmlabError, RuntimeError)


class ClusterError(AqmlabError):
    """A cluster failed, or its workers have another version of aqmlab."""


class EmulationError(AqmlabError):
    """A run with real packets failed."""


class StuckError(AqmlabError, RuntimeError):
    """Runs were abandoned because they made no progress in virtual time.

    Attributes
    ----------
    failed : list of dict
        One entry for each abandoned run: `run` (number), `problem` (time, event and link) and, in a
        study, `point` (labels by axis) and `replication`.
    """

    def __init__(self, problems: Mapping[int, str]) -> None:
        self.failed: list[dict[str, Any]] = [
            {"run": run, "problem": problem} for run, problem in sorted(problems.items())
        ]
        super().__init__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the runs and all that was added to them."""
        return type(self), ({},), self.__dict__ | {"args": self.args}

    def __str__(self) -> str:
        places = "; ".join(self._place(each) for each in self.failed[:SHOWN])
        more = len(self.failed) - SHOWN
        rest = f"; and {more} more" if more > 0 else ""
        kept = "".join(f"; {text}" for text in self.args)
        count = len(self.failed)
        runs = "1 run was" if count == 1 else f"{count} runs were"
        return f"{runs} abandoned: {places}{rest}{kept}"

    def _place(self, failed: Mapping[str, Any]) -> str:
        if "point" not in failed:
            return str(failed["problem"])
        labels = [f"{name}={label}" for name, label in failed["point"].items()]
        where = ", ".join([*labels, f"replication {failed['replication']}"])
        return f"{failed['problem']} (in {where})"


class FolderError(AqmlabError):
    """A results folder cannot be used; it was left unchanged."""


class ForkError(AqmlabError, RuntimeError):
    """Tables cannot be computed in this process: it is a forked copy without the threads."""


class ClusterWarning(UserWarning):
    """A study waits for workers."""


class DamageWarning(UserWarning):
    """A damaged file was found in a results folder and worked around."""


class WorkWarning(UserWarning):
    """Simulations take more than ten minutes of processor time."""


class StorageError(AqmlabError, OSError):
    """Results could not be written; the message states which are kept and the next step."""

    def __init__(self, cause: OSError, folder: Path, kept: str, *, resumes: bool = True) -> None:
        reason = NO_ROOM.get(cause.errno or 0) or cause.strerror or str(cause)
        advice = "Free some space" if cause.errno in NO_ROOM else "Fix this"
        rerun = "rerun the same command to resume" if resumes else "rerun the command"
        self.message = f"{folder}: {reason}; {kept}. {advice} and {rerun}."
        super().__init__(cause.errno, reason, str(folder))
        self._given = cause, folder, kept

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the arguments of `__init__` and the message."""
        return type(self), self._given, self.__dict__

    def __str__(self) -> str:
        return self.message


@contextmanager
def stored(place: Path, kept: str, *, resumes: bool = False) -> Iterator[None]:
    """Turns an `OSError` into a `StorageError` that states what is `kept`."""
    try:
        yield
    except OSError as error:
        raise StorageError(error, place, kept, resumes=resumes) from error


def input_error(
    problem: str,
    *,
    file: str | None = None,
    key: str = "",
    given: object = None,
    hint: str | None = None,
) -> InputError:
    """Makes an `InputError` like the engine's, for checks in Python."""
    text = problem if given is None else f"`{_short(str(given))}`: {problem}"
    for place in (key, file):
        text = f"{place}: {text}" if place else text
    error = InputError(f"{text} ({hint})" if hint else text)
    error.file, error.key, error.problem, error.hint = file, key, problem, hint
    error.given = None if given is None else str(given)
    return error


def renamed(error: InputError, key: str, file: str | None = None) -> InputError:
    """The same error about another key."""
    return input_error(error.problem, file=file, key=key, given=error.given, hint=error.hint)


def _short(text: str) -> str:
    """Shortens a text to one line, as the engine's messages do."""
    if len(text) > SHOWN_CHARACTERS:
        return f"{_short(text[:SHOWN_CHARACTERS])}... ({len(text)} characters)"
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def failed(what: str, error: BaseException) -> CustomError:
    """Makes a `CustomError` of an error in the user's code: place, `what`, and first line."""
    text = next(iter(str(error).splitlines()), "")
    return CustomError(f"{_place(error)}: {what}: {type(error).__name__}: {text}")


def _place(error: BaseException) -> str:
    """Place in the user's code that raised an error: `file.py:12`."""
    package = str(Path(__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    apart = [each for each in frames if not each.filename.startswith(package)] or frames
    own = [each for each in apart if "site-packages" not in each.filename] or apart
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the name in `known` most similar to `name`, or None."""
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def unknown(
    what: str, name: object, known: Iterable[str], *, file: str | None = None, key: str = ""
) -> InputError:
    """Makes an `InputError` for an unknown name, with the most similar known one as hint."""
    names = list(known)
    guess = nearest(str(name), names)
    more = ["..."] if len(names) > SHOWN_NAMES else []
    return input_error(
        f"unknown {what}; known: {', '.join(names[:SHOWN_NAMES] + more)}",
        file=file,
        key=key,
        given=name,
        hint=f"did you mean `{guess}`?" if guess else None,
    )

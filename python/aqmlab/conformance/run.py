"""Checks many cases at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from aqmlab.conformance.archive import Archive
from aqmlab.conformance.case import RecordedCase
from aqmlab.conformance.folder import find_cases, read_case
from aqmlab.conformance.replay import Report, check
from aqmlab.errors import InputError, input_error, nearest

Progress = Callable[[int, int], None]
Given = TypeVar("Given")
Made = TypeVar("Made")

Job = tuple[str, str, Callable[[], RecordedCase]]
"""Algorithm and name of a case, and what reads it."""


def check_all(
    vectors: Path | None = None,
    algorithms: Sequence[str] = (),
    *,
    emulator: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Report]:
    """Replays the cases of `algorithms` (all if none is named), in the order of their names.

    The beginning of names stands for all of them: `codel` for `codel_linux`, `codel_rfc8289`, ...
    `vectors` is a folder of cases; without it those that come with aqmlab are replayed. A case
    that cannot be read, or that there is no counterpart of here, is reported like the others.
    With `emulator`, packets go through the emulator's data path.
    """
    jobs = _jobs(vectors)
    known = list(dict.fromkeys(algorithm for algorithm, _, _ in jobs))
    meant = set()
    for name in algorithms:
        found = [each for each in known if each == name or each.startswith(f"{name}_")]
        if not found:
            families = {each.partition("_")[0] for each in known}
            meant_by = nearest(name, [*known, *sorted(families)])
            hint = f"did you mean `{meant_by}`?" if meant_by else None
            problem = f"unknown algorithm; known: {', '.join(known)}"
            raise input_error(problem, given=name, hint=hint)
        meant.update(found)

    def run(job: Job) -> Report:
        algorithm, name, read = job
        try:
            case = read()
        except InputError as error:
            return Report(algorithm, name, False, "unreadable", str(error))
        # The names are those of its folder.
        return replace(check(case, emulator=emulator), algorithm=algorithm, case=name)

    wanted = [job for job in jobs if not algorithms or job[0] in meant]
    return in_threads(run, wanted, threads, progress)


def in_threads(
    work: Callable[[Given], Made],
    given: Iterable[Given],
    threads: int | None,
    progress: Progress | None,
) -> list[Made]:
    """The results of `work` for each of `given`, in their order, computed on all cores."""
    every, made = list(given), []
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        for each in pool.map(work, every):
            made.append(each)
            if progress:
                progress(len(made), len(every))
    return made


def _jobs(vectors: Path | None) -> list[Job]:
    if vectors is not None:
        found = find_cases(vectors)
        return [(algorithm, name, partial(read_case, case)) for algorithm, name, case in found]
    archive = Archive()
    entries = enumerate(archive.entries)
    return [(each["algorithm"], each["name"], partial(archive.case, at)) for at, each in entries]

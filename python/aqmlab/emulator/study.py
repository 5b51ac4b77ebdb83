"""A study with real packets: its runs in sequence, in real time.

Each run is made by a process of its own (`python -m aqmlab.emulator.study`), which has one
thread as long as it emulates: the engine makes copies of it. What is finished is kept, as of
simulated studies: an interrupted one goes on where it was.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab import _core
from aqmlab.emulator import played
from aqmlab.errors import AqmlabError, EmulationError

if TYPE_CHECKING:
    from aqmlab.results import StudyResult
    from aqmlab.study import Study
    from aqmlab.study.folder import ResultsFolder

Order = Mapping[str, Any]
"""Arguments of `Study`, as JSON can hold them."""


def run(order: Order, out: Path, told: Callable[[str], None] | None = None) -> StudyResult:
    """Runs a study with real packets, and keeps its results in the folder `out`; runs of the same
    study that are there are not repeated. `told` is called with the next step, and with the
    messages of the emulator.

    Raises `EmulationError` if a run could not be made.
    """
    told = told or (lambda _: None)
    from aqmlab.study import Study
    from aqmlab.study.execute import folder_of, said
    from aqmlab.study.folder import open_results
    from aqmlab.study.manifest import read_manifest

    study = Study(**order)
    if (out / "manifest.json").exists() and read_manifest(out)["complete"]:
        there: StudyResult = open_results(out)
        if there.info.digest == study.digest:
            return there
    for point in study.points:
        _core.check_playable(point.scenario)
    with folder_of(study, out, emulated=True) as folder, said(folder):
        missing = folder.missing()
        remarks = _run_all(order, study, folder, missing, told)
        folder.finish()
        for text in remarks:
            told(f"note: {text}")
        return folder.result(computed=len(missing))


def _run_all(
    order: Order,
    study: Study,
    folder: ResultsFolder,
    missing: Sequence[int],
    told: Callable[[str], None],
) -> dict[str, None]:
    """Makes these runs, each in a process of its own that puts it into the folder; what the
    emulator says of them, each sentence once."""
    from aqmlab.study.chunks import read_chunk

    said: dict[str, None] = {}
    try:
        for number in missing:
            labels = study.points[number // study.replications].labels
            where = ", ".join(f"{axis}={label}" for axis, label in labels.items())
            told(f"real packets, run {number + 1} of {study.total}: {where}")
            chunk = folder.next_chunk()
            said |= dict.fromkeys(_run_one(order, number, chunk))
            folder.take(read_chunk(chunk))
    finally:
        if folder.done < folder.total:
            folder.pause()
    return said


def _run_one(order: Order, number: int, chunk: Path) -> list[str]:
    words = [sys.executable, "-P", "-m", "aqmlab.emulator.study", str(number), str(chunk)]
    # Not of our group: Ctrl-C is for us, who then end it.
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(json.dumps(order))
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        found = json.loads(said)["error"] if said else f"it ended with {process.returncode}"
        raise EmulationError(f"run {number + 1} with real packets: {found}")
    return list(json.loads(said)["remarks"])


def _made() -> list[str]:
    """Reads an order from stdin, makes the run of it that is named, and writes it down; what the
    emulator has to say of it."""
    from aqmlab.study import Study

    number, chunk = int(sys.argv[1]), Path(sys.argv[2])
    study = Study(**json.load(sys.stdin))
    point, replication = divmod(number, study.replications)
    (done,) = played([(number, study.points[point].scenario, replication)])
    # From here on there may be threads.
    from aqmlab.study.chunks import write_chunk

    write_chunk(chunk, [done.results])
    return list(done.remarks)


if __name__ == "__main__":
    try:
        print(json.dumps({"remarks": _made()}))
    except (AqmlabError, OSError) as failed:
        print(json.dumps({"error": str(failed)}))
        sys.exit(1)

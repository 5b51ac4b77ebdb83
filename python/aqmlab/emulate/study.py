"""A study with real packets: every run of it, one after the other, in real time.

The runs are made by a process of its own (`python -m aqmlab.emulate.study`), which has one
thread as long as it emulates: the engine makes copies of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.emulate.play import played, remarks

if TYPE_CHECKING:
    from aqmlab._core import Emulation
    from aqmlab.results import StudyResult
    from aqmlab.study import Study


@dataclass(frozen=True)
class Order:
    """Which study, as the arguments of `Study` say it."""

    file: str
    set: Mapping[str, Any]
    only: Mapping[str, Sequence[str]]
    seed: int | None
    replications: int | None

    def study(self) -> Study:
        """The study."""
        from aqmlab.study import Study

        return Study(
            Path(self.file),
            set=self.set,
            only=self.only,
            seed=self.seed,
            replications=self.replications,
        )


def run(order: Order, out: Path) -> StudyResult:
    """The results of a study with real packets, kept in the folder `out`; finished ones of
    the same study are only opened.

    Raises `SystemExit` with the status of the process that runs it if that fails, which has
    said why.
    """
    from aqmlab.folder import open_results

    if (out / "manifest.json").exists():
        there: StudyResult = open_results(out)
        if there.info.digest == order.study().digest:
            return there
    words = [sys.executable, "-m", "aqmlab.emulate.study", str(out)]
    done = subprocess.run(words, input=json.dumps(asdict(order)), text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return open_results(out)


def main() -> None:
    """Reads an order from stdin, and writes the results into the folder that is named."""
    from aqmlab.emulate.keep import check_folder

    out = Path(sys.argv[1])
    check_folder(out)
    study = Order(**json.load(sys.stdin)).study()
    jobs = [
        (run_, study.points[run_ // study.replications].scenario, run_ % study.replications)
        for run_ in range(study.total)
    ]

    def told(number: int, total: int) -> None:
        labels = study.points[jobs[number][0] // study.replications].labels
        where = ", ".join(f"{axis}={label}" for axis, label in labels.items())
        print(f"real packets, run {number + 1} of {total}: {where}", file=sys.stderr)

    done = list(played(jobs, None, told))
    for text in remarks(done):
        print(f"note: {text}", file=sys.stderr)
    _keep(study, done, out)


def _keep(study: Study, done: Sequence[Emulation], out: Path) -> None:
    from aqmlab.execute import study_info
    from aqmlab.folder import ResultsFolder

    texts = [point.scenario.resolved for point in study.points]
    with ResultsFolder(out, study_info(study), texts) as folder:
        folder.add([each.results for each in done])
        folder.finish()


if __name__ == "__main__":
    from aqmlab.cli.common import reported

    reported(main)()

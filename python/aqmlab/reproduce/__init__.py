"""Published studies again: what was published beside what we measure.

    from aqmlab.reproduce import reproduce

    result = reproduce("jarvinen2014", out="results/jarvinen2014")
    result.write_report("results/jarvinen2014")

A study is a folder in `aqmlab/studies`; docs/reproductions.md says what is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aqmlab
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, Claim, Figure, Table, Warning
from aqmlab.reproduce.published import Published, names
from aqmlab.study import Study

if TYPE_CHECKING:
    from rich.console import Console

    from aqmlab.results import StudyResult

__all__ = [
    "Cause",
    "Cell",
    "Claim",
    "Figure",
    "Measurements",
    "Reproduction",
    "Table",
    "Warning",
    "names",
    "reproduce",
]


def reproduce(
    name: str,
    *,
    only: str | Sequence[str] = (),
    replications: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Runs the packaged study `name` and compares it with its paper.

    `only` names a subset of the study (of jarvinen2014: `"paper"`, the paper's own
    queues with the short path, or `"short"`), or labels of axes to keep
    (`["queue=CoDel", "rest=11 ms"]`). The results are kept in the folder
    `out`, from which an interrupted study goes on; `progress` is called with
    (finished runs, all runs).

    Raises `InputError` for an unknown study or subset, and whatever `Study.run` raises.
    """
    only = (only,) if isinstance(only, str) else only
    published = Published.load(name)
    study = Study(
        published.folder / "study.toml",
        seed=seed,
        replications=replications,
        only=published.selection(only),
    )
    result = study.run(out, threads=threads, progress=progress)
    return Reproduction(published, result, only=only)


class Reproduction:
    """A study that was run again: its tables, claims, causes of differences and figures."""

    def __init__(
        self, published: Published, result: StudyResult, *, only: Sequence[str] = ()
    ) -> None:
        self.published = published
        self.result = result
        self.only = tuple(only)
        self.measured = Measurements(result, published.paper["link"])

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.published.name

    @property
    def title(self) -> str:
        """The title of the study."""
        return self.result.info.title

    @property
    def runs(self) -> int:
        """The number of simulations behind it."""
        return self.result.info.points * self.result.info.replications

    @cached_property
    def tables(self) -> list[Table]:
        """Published and measured numbers."""
        return self.published.tables(self.measured)

    @cached_property
    def claims(self) -> list[Claim]:
        """The statements of the paper, checked."""
        return self.published.claims(self.measured)

    @cached_property
    def causes(self) -> list[Cause]:
        """Why some of the cells differ."""
        return self.published.causes(self.measured)

    @cached_property
    def figures(self) -> list[Figure]:
        """The figures of the paper, and ours."""
        return self.published.figures(self.measured)

    @property
    def warnings(self) -> list[Warning]:
        """What the engine noted in the runs."""
        return self.measured.warnings

    def table(self, ident: str) -> Table:
        """The table with this id. Raises `KeyError` if there is none."""
        for table in self.tables:
            if table.id == ident:
                return table
        raise KeyError(ident)

    def to_json(self) -> dict[str, Any]:
        """{"study", "version", "tables": [..], "claims": [..]}; see docs/reproductions.md."""
        return {
            "study": self.name,
            "version": aqmlab.__version__,
            "tables": [table.to_json() for table in self.tables],
            "claims": [claim.to_json() for claim in self.claims],
        }

    def print(self, console: Console) -> None:
        """Prints the tables, the claims with their evidence, and the warnings."""
        from aqmlab.reproduce.console import show

        show(self, console)

    def write_report(self, folder: str | Path) -> Path:
        """Writes report.html and figures/*.svg, .png and .pdf; the path of the report."""
        from aqmlab.report import write

        return write(self, Path(folder))

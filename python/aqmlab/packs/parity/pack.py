"""A simulation and an emulation of one scenario, side by side: a pack with two contenders.

The results are a study with one axis, `by`: `simulator` and `emulator`.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aqmlab import _core
from aqmlab.campaign import Campaign, Case, Filled, Pack, Plan, Question, Reading
from aqmlab.errors import DamageWarning, InputError, StorageError
from aqmlab.metrics import registered
from aqmlab.numbers import finite, seconds
from aqmlab.packs.parity import EMULATOR, SIMULATOR
from aqmlab.report.document import Figure
from aqmlab.report.plot import StudyPlot
from aqmlab.results import Batch, Gathered, StudyResult
from aqmlab.results.tables import MemoryTables
from aqmlab.study.execute import folder_of, study_info
from aqmlab.study.runner import finished

if TYPE_CHECKING:
    from aqmlab.study import Study

BOTH = (SIMULATOR, EMULATOR)
ALL = "all"
"""Subject of the metrics of all groups together."""
OF_LINK = ("utilisation", "sojourn_p50", "sojourn_p95", "sojourn_p99", "drop_share", "mark_share")
OF_GROUP = ("goodput", "jain")
OF_TIMES = ("p50", "p95")
"""Statistics of the times of a group."""
OVER_TIME = ("sojourn_mean_s", "throughput_bps", "backlog_packets")
"""Sampled quantities of the bottleneck that are drawn."""


class Parity(Campaign):
    """Both results."""

    def __init__(self, study: Study, result: StudyResult, done: Sequence[_core.Emulation]) -> None:
        late = (each.lateness["p99_s"] for each in done)
        self.lateness = max(filter(isfinite, late), default=float("nan"))
        """The largest of the runs' 99th percentiles of the emulator's lateness, in seconds; NaN
        if no packet left it."""
        self.remarks = tuple(dict.fromkeys(text for each in done for text in each.remarks))
        lead = (
            "The same links, queues, starts and sizes twice: with simulated senders, and with the "
            "kernel's own TCP and UDP in real time, which no two runs repeat. "
        )
        if isfinite(self.lateness):
            lead += f"One packet in a hundred left the emulator over {seconds(self.lateness)} late."
        else:
            lead += "No packet left the emulator."
        # The scenarios are equal: they differ in what runs them.
        case = Case("", lambda by: {"by": by})
        title = f"Bottleneck {result.scenarios[0]['bottleneck']}, and groups of flows"
        question = Question("parity", title, "", (case,), read=readings, figures=(delays, course))
        pack = Pack("parity", str(study.title), (question,), lead=lead, notes=self.remarks)
        super().__init__(Plan(pack, dict(zip(BOTH, BOTH, strict=True))), result)

    def to_json(self) -> dict[str, Any]:
        """The readings, with "lateness_p99_s" and "remarks"."""
        found = {"lateness_p99_s": finite(self.lateness), "remarks": list(self.remarks)}
        return super().to_json() | found


def readings(filled: Filled) -> list[Reading]:
    """The metrics of the bottleneck, of each group that has them, and of all groups."""
    scenario = filled.campaign.result.scenarios[0]
    of_group = [
        name
        for metric in registered()
        if metric.compute is not None
        for name in metric.names
        if name in OF_GROUP
        or metric.needs == ("scores",)
        or (metric.needs == ("times",) and metric.observations and name.endswith(OF_TIMES))
    ]
    pairs = [(scenario["bottleneck"], name) for name in OF_LINK]
    pairs += [(group, name) for group in (*scenario["flows"], ALL) for name in of_group]
    return [
        filled.reading("", name, subject)
        for subject, name in pairs
        if np.isfinite(filled.campaign.readings.grid(name, subject)).any()
    ]


def delays(of: Campaign) -> Figure | None:
    """The distribution of the delays, of both; none if no packet passed."""
    with suppress(InputError):
        return StudyPlot(of.result).cdf()
    return None


def course(of: Campaign) -> Figure | None:
    """Delay, throughput and queue over time, of the first run of both; none of runs shorter than a
    sample."""
    with suppress(InputError):
        return StudyPlot(of.result).over_time(*OVER_TIME)
    return None


def put_together(study: Study, done: Sequence[_core.Emulation], out: Path | None) -> Parity:
    """Simulates what `done` has of real packets, and puts both into one result. If `out` cannot be
    written to, it is in a new folder for temporary files, which a warning names: the real packets
    cannot be had again."""
    repeat = study.replications
    jobs = [(number, study.points[0].scenario, number) for number in range(repeat)]
    batches = [*finished(jobs, None), *(each.results for each in done)]
    if out is None:
        tables, scenarios = MemoryTables(Gathered(batches)), study.points.scenarios
        result = StudyResult(study_info(study), tables, scenarios, computed=study.total)
    else:
        try:
            result = _written(study, batches, out)
        except StorageError as error:
            place = Path(tempfile.mkdtemp(prefix="aqmlab-results-"))
            result = _written(study, batches, place)
            problem = f"{out}: {error.strerror}; the results are in {place}"
            warnings.warn(DamageWarning(problem), stacklevel=2)
    return Parity(study, result, done)


def _written(study: Study, batches: Sequence[Batch], out: Path) -> StudyResult:
    with folder_of(study, out, emulated=True) as folder:
        folder.add(batches)
        folder.finish()
        return folder.result(computed=study.total)

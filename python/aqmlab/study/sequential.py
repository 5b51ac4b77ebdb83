"""Studies that go on until they are exact enough: which replications come next, and when to stop.

The replications of all points are the same in number, as points are compared replication by
replication. So the study stops when the last of its points is exact enough, and its tables are,
byte for byte, those of a study with as many replications from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from aqmlab.errors import FolderError, input_error
from aqmlab.metrics import find, values
from aqmlab.metrics.shown import event_of
from aqmlab.metrics.values import runs_of
from aqmlab.stats import Statistic, estimate
from aqmlab.study.manifest import MANIFEST, read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from aqmlab.results import StudyResult
    from aqmlab.study.precision import Precision
    from aqmlab.study.sweep import Study


@dataclass(frozen=True)
class Reached:
    """Precision of the values of one link or group at one point."""

    point: int
    subject: str
    found: Statistic

    @property
    def relative(self) -> float:
        """Largest distance of the interval from the mean, relative to it; infinite without one."""
        within = self.found.interval
        if within is None:
            return float("inf")
        far = max(within.high - self.found.value, self.found.value - within.low)
        return far / abs(self.found.value) if far else 0.0


def reached(result: StudyResult, precision: Precision) -> list[Reached]:
    """Precision of each point, for each link or group concerned.

    Raises `InputError` if no run has a value.
    """
    rows = values(result, precision.metric).with_columns(result.point_of_run)
    if precision.subject:
        rows = rows.filter(pl.col("subject") == precision.subject)
    else:
        links = {name for each in result.scenarios for name in each["links"]}
        of_links = pl.col("subject").is_in(sorted(links))
        which, keys = result.of_bottlenecks("subject"), ["point", "subject"]
        own = rows.filter(of_links).join(which, on=keys, how="semi")
        rows = pl.concat([own, rows.filter(~of_links)])
    if not rows.height:
        of = f" of `{precision.subject}`" if precision.subject else ""
        problem = f"no run has a value of this metric{of}"
        raise input_error(problem, key="precision.metric", given=precision.metric)
    metric, statistic = find(precision.metric)
    bounds, runs = metric.bounds, runs_of(result)
    groups = rows.sort("run", maintain_order=True).group_by("point", "subject", maintain_order=True)
    return [
        Reached(
            int(str(point)),
            str(subject),
            estimate(
                own["value"].to_numpy(),
                looked=True,
                bounds=bounds,
                event=event_of(runs, metric, statistic, str(subject))(int(str(point))),
            ),
        )
        for (point, subject), own in groups
    ]


def is_reached(result: StudyResult) -> bool:
    """Whether the study is as exact as it was to be; never without a precision."""
    precision = result.info.precision
    if precision is None:
        return False
    return all(each.relative <= precision.relative for each in reached(result, precision))


def stages(study: Study, out: Path | None) -> list[Study]:
    """The study with as many replications as there are at each look, without a precision just
    itself; after as many replications as its results in a folder have, which are kept."""
    now = there(out)
    if study.precision is not None:
        plans = [study.with_replications(n) for n in study.precision.looks(study.replications)]
    elif now is not None and now[0] < study.replications:
        plans = [study.with_replications(now[0]), study]
    else:
        return [study]
    begun = [at for at, plan in enumerate(plans) if now == (plan.replications, plan.digest)]
    return plans[begun[0] if begun else 0 if study.precision else 1 :]


def there(out: Path | None) -> tuple[int, str] | None:
    """Replications and digest of the study in a folder, if any."""
    if out is None or not (out / MANIFEST).exists():
        return None
    try:
        manifest = read_manifest(out)
    except FolderError:  # told when the folder is opened
        return None
    return int(manifest["replications"]), str(manifest["digest"])


def renumbered(frame: pl.DataFrame, before: int, now: int) -> pl.DataFrame:
    """The rows of a table with `before` replications a point as those of one with `now`."""
    run, kind = pl.col("run"), frame.schema["run"]
    return frame.with_columns(((run // before) * now + run % before).cast(kind))

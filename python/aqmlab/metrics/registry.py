"""The registry of metrics: name, subject and formula of each.

Every command, page and table asks here. A metric of one's own is a function with the
decorator `metric`, in a file that is named on the command line (`--metric FILE.py`), in a module
that is imported, or in a package with the entry point `aqmlab.metrics`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from aqmlab.errors import CustomError, failed, input_error, unknown

if TYPE_CHECKING:
    import polars as pl

    from aqmlab.metrics.formulas import Facts
    from aqmlab.metrics.runs import Runs

    Compute = Callable[[Runs], pl.DataFrame]

GROUP = "aqmlab.metrics"
"""The entry point of packages that bring metrics."""
OWN = "your own"
"""The source of a metric that does not say one."""
NAME = re.compile(r"[a-z][a-z0-9_]*")
SUBJECTS = ("link", "group", "application")
"""Subjects of custom metrics."""
LESS, NEITHER, MORE = -1, 0, 1
"""Directions: less of it is better, neither is, more is."""
POOLING = {
    "links": "not pooled",
    "traffic": "counts are added",
    "flows": "over the flows of all groups",
    "times": "histograms are added; of times without one only the mean, weighted by count",
    "scores": "mean over the groups",
}
"""How the values of several groups become one, by the table that a metric is computed from."""


SHARES = {"": 0.999, "p50": 0.5, "p95": 0.95, "p99": 0.99}
"""Which quantile a statistic of a distribution is; the first that of `delay_variation`."""
FEWEST = 3
"""One event among so many observations does not move their median."""


@dataclass(frozen=True)
class Metric:
    """A metric. `compute` gives its values, a row a run and subject: `run`, `subject`, `value`."""

    name: str
    of: str
    """Subject: a link, a group of flows, an application, a flow, several runs."""
    unit: str
    """`s`, `bit/s`, `share` (0 to 1, shown in percent), `ratio` (shown as it is), ..."""
    meaning: str
    where: str
    """The table and columns of the results, or what must be said to have it."""
    source: str
    direction: int = NEITHER
    """`LESS` or `MORE` where that is better, else `NEITHER`."""
    needs: tuple[str, ...] = ()
    """The tables from which it is computed."""
    statistics: tuple[str, ...] = ()
    """Which of a distribution there are, `NAME_p95` and so on; none: it is one number a run."""
    compute: Callable[[Runs, str], pl.DataFrame] | None = None
    """None where it is not one number a run and subject: it stands where `where` says."""
    title: str = ""
    """Name on pages, without the subject."""
    rank: int = 0
    """Which of a group's times or scores is shown first: 1 before 2; 0 is shown with all."""
    shown_unit: str = ""
    """The unit on pages, where it says more than `unit` does."""
    own: bool = False
    """True if it is defined outside aqmlab."""
    least: float = 0.0
    most: float | None = None
    """Bounds in `unit`; intervals do not go beyond. The default of `most` is 1 for shares, else
    infinite."""
    event: float | Callable[[Facts, str], float] = 0.0
    """How much one rare event can change an observation, in `unit`: a lost SYN, a call that meets
    another flow in its queue. No interval of few runs excludes it. A function of scenario and
    subject where it depends on them."""
    observations: str = ""
    """The quantity of the table `times` whose statistic in a run it is."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible value, in `unit`."""
        largest = 1.0 if self.unit == "share" else float("inf")
        return self.least, largest if self.most is None else self.most

    @property
    def pooling(self) -> str:
        """How the values of several groups become one."""
        return POOLING.get(self.needs[0], "") if self.needs else ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which its values can be asked for; the first is what it is for."""
        if not self.statistics:
            return (self.name,)
        return tuple(f"{self.name}_{each}" if each else self.name for each in self.statistics)

    def of_event(self, event: float, statistic: str, count: float) -> float:
        """Possible change of the value of a run with `count` observations by an event; infinite
        for a statistic that is the largest of so few."""
        if not self.observations:
            return event
        if statistic == "mean":
            return event / count
        share = SHARES.get(statistic, 1.0)
        if share == 0.5:
            return 0.0 if count >= FEWEST else event
        return event if (1 - share) * count >= 1 - 1e-9 else float("inf")

    def values(self, runs: Runs, statistic: str = "") -> pl.DataFrame:
        """`run`, `subject`, `value` in `unit`; runs and subjects without a value have no row.

        Raises `CustomError` if the function of one's own fails or gives something else.
        """
        assert self.compute is not None, self.name
        if not self.own:
            return self.compute(runs, statistic)
        try:
            found = self.compute(runs, statistic)
        except Exception as error:
            raise failed(f"metric `{self.name}`", error) from error
        try:
            columns = found.select("run", "subject", "value")
            return columns.cast({"value": float}).drop_nulls().drop_nans()
        except Exception as error:
            given = getattr(found, "schema", type(found).__name__)
            wanted = "expected a frame of polars with run, subject and a number as value"
            raise CustomError(f"metric `{self.name}`: {wanted}, not {given}") from error


_REGISTRY: dict[str, Metric] = {}
"""The metrics by name, in the order in which they were added."""


def register(*metrics: Metric) -> None:
    """Adds metrics. Raises `InputError` for the name of one that aqmlab has."""
    for each in metrics:
        there = _REGISTRY.get(each.name)
        if there is not None and not there.own:
            problem = "a metric of this name exists already"
            raise input_error(problem, key="metric", given=each.name)
        _REGISTRY[each.name] = each


def metric(
    name: str,
    *,
    of: Literal["link", "group", "application"] = "group",
    unit: str = "ratio",
    direction: int = NEITHER,
    needs: Sequence[str] = (),
    title: str = "",
    source: str = OWN,
    least: float | None = None,
    most: float | None = None,
) -> Callable[[Compute], Compute]:
    """Registers a function as a metric (decorator).

    The function takes `Runs` and returns a frame with `run`, `subject` and `value`; its docstring
    is the meaning of the metric. The metric then appears in `result.metrics`, tables, pages,
    `aqmlab list metrics` and `aqmlab explain`. A link or group for which it returns null has no
    value.

    Parameters
    ----------
    name : str
        Name of the metric.
    of : "link", "group" or "application"
        Kind of subject.
    unit : str, default "ratio"
        Unit of the values: `share` (0 to 1, shown in percent), `ratio` (shown as it is), `s`,
        `bit/s`, or a text.
    direction : -1, 0 or 1
        1 if more is better, -1 if less is, 0 if neither is.
    needs : sequence of str, optional
        Tables that the function reads.
    title : str, optional
        Title on pages.
    source : str, optional
        Paper or RFC that defines the metric.
    least, most : float, optional
        Bounds of the values, in `unit`; intervals do not exceed them. Default: 0 and 1 for a share,
        else none.

    Returns
    -------
    callable
        The decorator, which returns the function itself.

    Raises
    ------
    InputError
        If the name is no word or that of a metric of aqmlab, or the subject, unit or direction is
        none of these.
    """
    if not NAME.fullmatch(name):
        problem = "expected a name of small letters, digits and _"
        raise input_error(problem, key="metric", given=name)
    if of not in SUBJECTS:
        raise unknown("kind of subject", of, SUBJECTS, key="of")
    if unit == "1":
        hint = "share: 0 to 1, shown in percent; ratio: shown as it is"
        raise input_error("a number without a unit", key="unit", given=unit, hint=hint)
    if direction not in (LESS, NEITHER, MORE):
        problem = "expected 1 (more is better), -1 (less is better) or 0"
        raise input_error(problem, key="direction", given=str(direction))
    smallest = 0.0 if unit == "share" else float("-inf")

    def decorate(function: Compute) -> Compute:
        meaning = " ".join((function.__doc__ or name.replace("_", " ")).split())
        where = "table `metrics`"
        register(
            Metric(
                name, of, unit, meaning, where, source, direction, tuple(needs), (),
                lambda runs, _: function(runs), title or name.replace("_", " "), own=True,
                least=smallest if least is None else least, most=most,
            )
        )  # fmt: skip
        return function

    return decorate


@cache
def from_packages(group: str) -> None:
    """Loads what installed packages bring by the entry points `group`, once.

    Raises `CustomError` for one that cannot be loaded.
    """
    for each in entry_points(group=group):
        try:
            each.load()
        except Exception as error:
            what = f"entry point {each.name} = {each.value} of {group}"
            raise CustomError(f"{what}: {type(error).__name__}: {error}") from error


def registered() -> list[Metric]:
    """All metrics: aqmlab's, those of installed packages, and user-defined ones."""
    from_packages(GROUP)
    return list(_REGISTRY.values())


def own() -> list[Metric]:
    """Returns the metrics that are defined outside aqmlab."""
    return [each for each in registered() if each.own]


def find(name: str) -> tuple[Metric, str]:
    """The metric and the statistic of a name such as `goodput` or `sojourn_p95`.

    Raises `InputError` for an unknown name, with the nearest.
    """
    named: dict[str, tuple[Metric, str]] = {}
    for each in registered():
        if each.compute is None:
            continue
        of = each.statistics or ("",)
        named |= {key: (each, statistic) for key, statistic in zip(each.names, of, strict=True)}
        named.setdefault(each.name, (each, of[0]))
    if name not in named:
        raise unknown("metric", name, named)
    return named[name]


def entries() -> list[dict[str, Any]]:
    """The metrics as entries of the reference, which have no parameters."""
    plain: Mapping[str, Any] = {"preset_of": None, "settings": {}, "params": []}
    return [
        {
            "section": "metric",
            "name": each.name,
            "summary": each.meaning,
            **plain,
            "of": each.of,
            "unit": each.unit,
            "pooling": each.pooling,
            "where": each.where,
            "source": each.source,
        }
        for each in registered()
    ]

"""Precision of a study: replications are added until an interval is as narrow.

    precision = { metric = "goodput", relative = 0.05, at_most = 200 }     # in a study file
    aqmlab study study.toml --precision 5%                                 # of its delay
    aqmlab study study.toml --precision goodput=5%

Whether the interval is narrow enough is looked at after a number of replications that does not
depend on results: `looks`. `aqmlab.stats.interval(..., looked=True)` allows for the looks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from aqmlab.errors import input_error
from aqmlab.scenario.settings import check_keys, whole

KEY = "precision"
METRIC = "sojourn_p95"
"""Default metric."""
AT_MOST = 1000
FEWEST = 10
"""Replications before the first look."""
GROWTH = 1.5
"""So many times as many replications are there at the next look."""
LEAST, MOST = 0.001, 0.5
"""The limits of `relative`."""
KEYS = ("metric", "relative", "at_most", "subject")


@dataclass(frozen=True)
class Precision:
    """The interval of the mean of `metric` is to reach no farther than `relative` times that mean,
    at every point and for every link or group that has it."""

    relative: float
    metric: str = METRIC
    at_most: int = AT_MOST
    """Replications."""
    subject: str = ""
    """The link or group that it is about; empty: the bottleneck, or every group."""

    def __str__(self) -> str:
        of = f" of {self.subject}" if self.subject else ""
        return f"{self.metric}{of} within {100 * self.relative:.6g} %"

    def looks(self, replications: int) -> Iterator[int]:
        """After how many replications the interval is looked at, if a study begins with these."""
        number = min(max(replications, FEWEST), self.at_most)
        while number < self.at_most:
            yield number
            number = min(ceil(GROWTH * number), self.at_most)
        yield self.at_most

    def to_json(self) -> dict[str, Any]:
        """Mapping that `parse` accepts."""
        subject = {"subject": self.subject} if self.subject else {}
        return {"metric": self.metric, "relative": self.relative, "at_most": self.at_most} | subject

    @staticmethod
    def parse(
        given: Any, file: str | None = None, key: str = KEY, own: Precision | None = None
    ) -> Precision:
        """Reads a table with the fields, or a text: `5%`, `goodput=5%`. What a text does not say
        is as in `own`.

        Raises `InputError`.
        """
        if isinstance(given, Precision):
            return given
        if isinstance(given, str):
            metric, _, share = given.rpartition("=")
            relative = _relative(share, given, file, key)
            before = own or Precision(relative)
            if metric.strip() not in ("", before.metric):
                before = replace(before, metric=metric.strip(), subject="")
            return replace(before, relative=relative)
        if not isinstance(given, Mapping) or "relative" not in given:
            problem = 'expected a table such as { metric = "goodput", relative = 0.05 }'
            raise input_error(problem, file=file, key=key, given=given)
        check_keys(given, KEYS, file or "", key)
        texts = {name: given.get(name, "") for name in ("metric", "subject")}
        for name, text in texts.items():
            if not isinstance(text, str):
                raise input_error("expected text", file=file, key=f"{key}.{name}", given=text)
        relative = _relative(given["relative"], given["relative"], file, f"{key}.relative")
        at_most = whole(given.get("at_most", AT_MOST), FEWEST, f"{key}.at_most", file)
        return Precision(relative, texts["metric"] or METRIC, at_most, texts["subject"])


def _relative(value: Any, given: Any, file: str | None, key: str) -> float:
    """A share: a number, or a text such as 5%."""
    factor = 1.0
    if isinstance(value, str) and value.strip().endswith("%"):
        value, factor = value.strip()[:-1], 0.01
    try:
        share = float(value) * factor if not isinstance(value, bool) else 0.0
    except (TypeError, ValueError):
        share = 0.0
    if not LEAST <= share <= MOST:
        problem = f"expected a share from {LEAST} to {MOST}, such as 0.05 or 5%"
        raise input_error(problem, file=file, key=key, given=given)
    return share

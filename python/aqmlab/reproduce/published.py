"""What a study folder says of its paper: `published.toml`, and the hooks of `study.py`.

The format is described in docs/reproductions.md.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from aqmlab.errors import input_error, unknown
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, Claim, Figure, Table
from aqmlab.settings import parse_selection, parse_toml, read_text
from aqmlab.statistics import MAXIMUM_METHOD, QUANTILE_METHOD, Interval

STUDIES = Path(__file__).parent.parent / "studies"
Measured = tuple[float, Interval]


def _delay_quantile(measured: Measurements, labels: dict[str, str], share: float) -> Measured:
    value = measured.delay_quantile(share, **labels)
    return value, measured.delay_quantile_interval(share, **labels)


def _delay_maximum(measured: Measurements, labels: dict[str, str]) -> Measured:
    return float(measured.maxima(**labels).max()), measured.maximum_interval(**labels)


METRICS: dict[str, tuple[Callable[..., Measured], str]] = {
    "delay_quantile": (_delay_quantile, QUANTILE_METHOD),
    "delay_maximum": (_delay_maximum, MAXIMUM_METHOD),
}
"""The metrics that a table may name: function, and how its interval is made."""


@dataclass(frozen=True)
class Published:
    """A study folder: the study as a mapping, and what its paper published."""

    name: str
    folder: Path
    study: Mapping[str, Any]
    paper: Mapping[str, Any]
    hooks: ModuleType | None

    @staticmethod
    def load(name: str) -> Published:
        """The packaged study called `name`. Raises `InputError` if there is none."""
        if name not in names():
            raise unknown("study", name, names())
        folder = STUDIES / name
        hooks = None
        if (folder / "study.py").exists():
            hooks = importlib.import_module(f"aqmlab.studies.{name}.study")
        return Published(
            name,
            folder,
            _toml(folder / "study.toml"),
            _toml(folder / "published.toml"),
            hooks,
        )

    @property
    def citation(self) -> str:
        """The paper."""
        return str(self.paper["citation"])

    @property
    def step(self) -> float:
        """The step in which the tables' quantities come, in their unit."""
        return float(self.paper.get("step", 0.0))

    def main_rows(self, table: str) -> list[str]:
        """The rows of a table that are the paper's own, not other settings beside them."""
        given = next((each for each in self.paper["tables"] if each["id"] == table), None)
        rows = given["values"] if given else []
        return [row["row"] for row in rows if "published" in row and "paper" not in row]

    def printed(self, table: str, row: str) -> list[float]:
        """The numbers that the paper prints in a row of a table, in the order of its columns."""
        (given,) = [each for each in self.paper["tables"] if each["id"] == table]
        (values,) = [each["published"] for each in given["values"] if each["row"] == row]
        return [float(value) for value in values]

    @property
    def subsets(self) -> list[str]:
        """The names of the parts of the study that can be run alone."""
        return list(self.paper.get("subsets", {}))

    def selection(self, only: Sequence[str]) -> dict[str, list[str]]:
        """Axes and the labels to keep of them, from names of subsets and `AXIS=LABEL`.

        Raises `InputError` for a subset that there is not.
        """
        if len(only) == 1 and "=" not in only[0]:
            if only[0] not in self.subsets:
                raise unknown("subset of the study", only[0], self.subsets, key="--only")
            return {axis: list(labels) for axis, labels in self.paper["subsets"][only[0]].items()}
        return parse_selection(only)

    def tables(self, measured: Measurements) -> list[Table]:
        """The tables of `published.toml` and of the hook `tables`, as far as they were run."""
        found = [table for each in self.paper["tables"] if (table := self._table(each, measured))]
        return [*found, *self._hook("tables", measured)]

    def claims(self, measured: Measurements) -> list[Claim]:
        """The statements of the paper, checked."""
        return list(self._hook("claims", measured))

    def causes(self, measured: Measurements) -> list[Cause]:
        """Why cells differ."""
        return list(self._hook("causes", measured))

    def figures(self, measured: Measurements) -> list[Figure]:
        """The figures."""
        return list(self._hook("figures", measured))

    def _hook(self, name: str, measured: Measurements) -> Sequence[Any]:
        function = getattr(self.hooks, name, None)
        return function(measured) if function else ()

    def _table(self, given: Mapping[str, Any], measured: Measurements) -> Table | None:
        metric = dict(given["metric"])
        name = metric.pop("name")
        if name not in METRICS:
            raise unknown("metric", name, METRICS, file=str(self.folder / "published.toml"))
        function, method = METRICS[name]
        cells = list(
            self._cells(given, measured, lambda labels: function(measured, labels, **metric))
        )
        if not cells:
            return None
        rows = given["values"]
        notes = {row["row"]: f"beside the paper's {row['paper']}" for row in rows if "paper" in row}
        notes |= {row["row"]: row["note"] for row in rows if "note" in row}
        return Table(
            given["id"], given["name"], given["unit"], tuple(cells), method=method, notes=notes
        )

    def _cells(
        self,
        given: Mapping[str, Any],
        measured: Measurements,
        measure: Callable[[dict[str, str]], Measured],
    ) -> Iterator[Cell]:
        columns = [value["label"] for value in self._axis(given["columns"])["values"]]
        for row in given["values"]:
            published = row.get("published", [None] * len(columns))
            if len(published) != len(columns):
                problem = f"expected {len(columns)} numbers"
                file = str(self.folder / "published.toml")
                raise input_error(problem, file=file, key=row["row"], given=published)
            for column, reference in zip(columns, published, strict=True):
                labels = {**given["where"], given["rows"]: row["row"], given["columns"]: column}
                if not measured.has(**labels):
                    continue
                value, interval = measure(labels)
                yield Cell.judged(row["row"], column, reference, value, interval, self.step)

    def _axis(self, name: str) -> Mapping[str, Any]:
        axes: list[Mapping[str, Any]] = self.study["axes"]
        return next(axis for axis in axes if axis["name"] == name)


def names() -> list[str]:
    """The names of the packaged studies that can be reproduced."""
    return sorted(file.parent.name for file in STUDIES.glob("*/published.toml"))


def title(name: str) -> str:
    """The title of the packaged study called `name`."""
    text = (STUDIES / name / "study.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text).get("title", name))


def _toml(path: Path) -> dict[str, Any]:
    return parse_toml(read_text(path), str(path))

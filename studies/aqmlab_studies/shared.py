"""Parts that several studies share: recorded numbers, tables, comparisons, numbers in words."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

import aqmlab
from aqmlab.campaign import Comparison
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cell, CellTable
from aqmlab.stats import MEAN_METHOD

Found = TypeVar("Found")


def packed(module: str, name: str) -> Any:
    """The content of a JSON file beside a module, given by its `__file__`."""
    return json.loads(Path(module).with_name(name).read_text(encoding="utf-8"))


def each_run(function: Callable[..., Found]) -> Callable[..., list[Found]]:
    """Makes a function of one run, `f(measured, replication, **labels)`, one of all runs of a point
    that also works for draws of the replications: it is computed once."""

    def runs(measured: Measurements, **labels: str) -> list[Found]:
        def compute(root: Measurements, point: int) -> NDArray[np.object_]:
            found = np.empty(root.replications, dtype=object)
            own = root.labels(point)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(lambda number: function(root, number, **own), range(found.size))
                for number, each in enumerate(made):
                    found[number] = each
            return found

        return list(measured.each((function,), compute, **labels))

    return runs


def packets_of(measured: Measurements, number: int, **labels: str) -> pl.DataFrame:
    """The packets of a run, which is repeated with packets recorded."""
    scenario, seed = measured.result.scenarios[measured.point(**labels)], measured.result.info.seed
    return aqmlab.run(scenario, seed=seed, replication=number, record="packets").packets


def mean_table(
    ident: str,
    name: str,
    unit: str,
    cells: Iterable[Cell],
    reference: str = "published",
    notes: Mapping[str, str] = MappingProxyType({}),
) -> CellTable:
    """A table of means over the replications."""
    return CellTable(ident, name, unit, tuple(cells), reference, MEAN_METHOD, dict(notes))


def each(
    compare: Callable[[float, float, str], Comparison], limit: float
) -> Callable[[Mapping[Any, float] | Iterable[float]], list[Comparison]]:
    """Compares every number with the same limit, by its name or names if it has any."""

    def compared(found: Mapping[Any, float] | Iterable[float]) -> list[Comparison]:
        named = found.items() if isinstance(found, Mapping) else (("", value) for value in found)
        return [
            compare(value, limit, name if isinstance(name, str) else ", ".join(name))
            for name, value in named
        ]

    return compared


def percent(share: float) -> str:
    """`42.0 %`."""
    return f"{100 * share:.1f} %"

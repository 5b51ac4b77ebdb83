"""The points of a study: built when they are due, so that a study of a million takes no memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from aqmlab._core import Files, Scenario
from aqmlab.study.sources import CLASS

if TYPE_CHECKING:
    from aqmlab.results import Scenarios

KEPT = 2048
"""Number of points kept after they are built. Smaller studies are checked as a whole."""


@dataclass(frozen=True)
class AxisValue:
    """One value of an axis: its label in tables and charts, and the settings it makes."""

    label: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """Something that varies in a study."""

    name: str
    values: tuple[AxisValue, ...]

    @property
    def labels(self) -> list[str]:
        """The labels of the values, in the study's order."""
        return [value.label for value in self.values]


@dataclass(frozen=True)
class Point:
    """One combination of the values of all axes."""

    index: int
    labels: Mapping[str, str]
    """Axis name to label."""
    scenario: Scenario


class Points(Sequence[Point]):
    """The cross product of the axes, the last of which varies fastest.

    To index it builds the point, and raises `InputError` for what is wrong in its scenario.
    It can be pickled: then it has the content of the files that its scenarios name with it.
    """

    def __init__(
        self,
        base: str | Mapping[str, Any],
        file: str,
        folders: Sequence[str],
        axes: Sequence[Axis],
        settings: Mapping[str, Any],
        files: Files | None = None,
    ) -> None:
        self._base, self._file, self._folders = base, file, list(folders)
        self._axes, self._settings = tuple(axes), dict(settings)
        self._files = files or Files()
        self._built: dict[int, Point] = {}
        self._scenarios: Scenarios | None = None
        self._count = math.prod(len(axis.values) for axis in axes)

    def __getstate__(self) -> dict[str, Any]:
        names = ("_base", "_file", "_folders", "_axes", "_settings")
        return {name: getattr(self, name) for name in names} | {"files": self._files.contents()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        files = Files(state.pop("files"))
        self.__init__(*state.values(), files)  # type: ignore[misc]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | Sequence[Point]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        point = self._built.get(place)
        if point is None:
            point = self._build(place)
            if len(self._built) >= KEPT:
                self._built.clear()
            self._built[place] = point
        return point

    def of(self, axes: Sequence[Axis], settings: Mapping[str, Any]) -> Points:
        """The points of the same scenario along other axes, with other settings."""
        return Points(self._base, self._file, self._folders, axes, settings, self._files)

    def check(self) -> None:
        """Builds all points of a study that has few; of a larger one each value of each axis
        once, beside the first values of the others. Raises `InputError`."""
        for _ in self._sample():
            pass

    def _sample(self) -> Iterator[Point]:
        if len(self) <= KEPT:
            yield from (self[place] for place in range(len(self)))
            return
        step = len(self)
        for axis in self._axes:
            step //= len(axis.values)
            for number in range(len(axis.values)):
                yield self._build(number * step)

    def inputs(self) -> list[tuple[str, bytes]]:
        """Name and content of each file that the scenarios name."""
        return [(name, content) for (_, name), content in self._files.contents()]

    def classes(self) -> set[tuple[str, str]]:
        """Name and digest of each custom class that the checked scenarios name."""
        return {each for point in self._sample() for each in CLASS.findall(point.scenario.resolved)}

    @property
    def folders(self) -> Sequence[str]:
        """Folders in which files are looked for."""
        return self._folders

    def labels(self, index: int) -> dict[str, str]:
        """The label on each axis, by its name."""
        values = self._values(index)
        return {axis.name: value.label for axis, value in zip(self._axes, values, strict=True)}

    @property
    def scenarios(self) -> Scenarios:
        """The scenario of each point with every default filled in."""
        if self._scenarios is None:
            from aqmlab.results.scenarios import Scenarios

            self._scenarios = Scenarios(point.scenario.resolved for point in self)
        return self._scenarios

    def _values(self, index: int) -> list[AxisValue]:
        values = []
        for axis in reversed(self._axes):
            index, place = divmod(index, len(axis.values))
            values.append(axis.values[place])
        return values[::-1]

    def _build(self, index: int) -> Point:
        overrides: dict[str, Any] = {}
        for axis_value in self._values(index):
            for key, value in axis_value.settings.items():
                overrides.pop(key, None)
                overrides[key] = value
        labels = self.labels(index)
        place = self._file
        if labels:
            place += " at " + ", ".join(f"{name}={label}" for name, label in labels.items())
        scenario = Scenario(
            self._base,
            file=place,
            overrides=overrides,
            settings=self._settings,
            folders=self._folders,
            files=self._files,
        )
        return Point(index, labels, scenario)

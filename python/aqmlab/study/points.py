"""The points of a study: built when they are due, so that a study of a million takes no memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from aqmlab._core import Files, InputError, Scenario
from aqmlab.errors import renamed
from aqmlab.numbers import count
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


@dataclass(eq=False, repr=False)
class Points(Sequence[Point]):
    """The cross product of the axes, the last of which varies fastest.

    To index it builds the point, and raises `InputError` for what is wrong in its scenario.
    It can be pickled: then it has the content of the files that its scenarios name with it.
    """

    base: str | Mapping[str, Any]
    """The scenario before axes and settings: its text, or a mapping."""
    file: str
    """Name of the scenario in errors."""
    folders: Sequence[str]
    """Folders in which files are looked for."""
    axes: Sequence[Axis]
    settings: Mapping[str, Any]
    """Settings of every point, by dotted key."""
    files: Files = field(default_factory=Files)
    _built: dict[int, Point] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Points: {count(len(self), 'point')}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker may run in another folder.
        folders = [str(Path(each).absolute()) for each in (*self.folders, ".")]
        contents = [((folders, name), content) for name, content in self.inputs()]
        return _unpickled, ((self.base, self.file, folders, self.axes, self.settings), contents)

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

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
        for axis in self.axes:
            step //= len(axis.values)
            for number in range(len(axis.values)):
                yield self._build(number * step)

    def inputs(self) -> list[tuple[str, bytes]]:
        """Name and content of each file that the scenarios name."""
        return [(name, content) for (_, name), content in self.files.contents()]

    def classes(self) -> set[tuple[str, str]]:
        """Name and digest of each custom class that the checked scenarios name."""
        return {each for point in self._sample() for each in CLASS.findall(point.scenario.resolved)}

    def labels(self, index: int) -> dict[str, str]:
        """The label on each axis, by its name."""
        values = self._values(index)
        return {axis.name: value.label for axis, value in zip(self.axes, values, strict=True)}

    @cached_property
    def scenarios(self) -> Scenarios:
        """The scenario of each point with every default filled in."""
        from aqmlab.results.scenarios import Scenarios

        return Scenarios(point.scenario.resolved for point in self)

    def _values(self, index: int) -> list[AxisValue]:
        values = []
        for axis in reversed(self.axes):
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
        point = ", ".join(f"{name}={label}" for name, label in labels.items())
        at_point = f" at {point}" if labels else ""
        try:
            scenario = Scenario(
                self.base,
                file=f"{self.file}{at_point}",
                overrides=overrides,
                settings=self.settings,
                folders=self.folders,
                files=self.files,
            )
        except InputError as error:
            if error.file != "--set":
                raise
            raise renamed(error, error.key, f"--set{at_point}") from None
        return Point(index, labels, scenario)


def _unpickled(given: tuple[Any, Any, Any, Any, Any], contents: Any) -> Points:
    return Points(*given, Files(contents))

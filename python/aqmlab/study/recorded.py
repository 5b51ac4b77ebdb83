"""Studies as their results describe them: the scenario of every point, with the files it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aqmlab._core import Files, Scenario
from aqmlab.results import Scenarios
from aqmlab.study.folder import scenarios_of
from aqmlab.study.manifest import SCENARIOS, first_difference, read_manifest, study_info
from aqmlab.study.points import Axis, AxisValue, Point, Points
from aqmlab.study.sources import INPUT, Sources, current_command, described
from aqmlab.study.sweep import Study


class RecordedPoints(Points):
    """The points of a results folder."""

    def __init__(self, texts: Scenarios, axes: Sequence[Axis], folder: Path, files: Files) -> None:
        super().__init__({}, str(folder / SCENARIOS), [str(folder)], axes, {}, files)
        self._texts = texts

    def _build(self, index: int) -> Point:
        scenario = Scenario(
            self._texts[index], file=self._file, folders=self._folders, files=self._files
        )
        return Point(index, self.labels(index), scenario)


class RecordedStudy(Study):
    """The study of the results in a folder.

    It depends on the files of that folder alone. Custom classes are loaded from the files in
    `code`: use it inside `custom.files_instead`. Raises `InputError` if this version of aqmlab does
    not accept a scenario.
    """

    def __init__(self, folder: Path) -> None:
        manifest = read_manifest(folder)
        info = study_info(manifest)
        self.file, self.name, self.title = str(folder), info.name, info.title
        self.replications, self.precision = info.replications, None
        self.axes = tuple(
            Axis(name, tuple(AxisValue(label, {}) for label in labels))
            for name, labels in info.axes
        )
        self._texts = scenarios_of(folder, info)
        self._folder, self._sources = folder, described(manifest)
        self._text_of_file, self._base, self._base_file = None, {}, ""
        inputs = self.files_of(INPUT)
        contents = [(([str(folder)], name), path.read_bytes()) for name, path in inputs.items()]
        self.points = RecordedPoints(self._texts, self.axes, folder, Files(contents))

    def sources(self, *, emulated: bool = False) -> Sources:
        """The sources of the results, and the command of this process."""
        found = Sources.read(self._folder, read_manifest(self._folder))
        return replace(found, command=current_command())

    def files_of(self, kind: str) -> dict[str, Path]:
        """The sources of a kind: name to file."""
        found = (each for each in self._sources["files"] if each["kind"] == kind)
        return {each["name"]: self._folder / each["file"] for each in found}

    def difference(self) -> str:
        """The first key of a scenario that is another here than in the results; empty if all are
        alike."""
        for there, here in zip(self._texts, self.points.scenarios, strict=True):
            if found := first_difference(there, here):
                key, before, now = found
                return f"{key} is {before} there and {now} here"
        return ""

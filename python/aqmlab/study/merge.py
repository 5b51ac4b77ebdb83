"""The parts of a study (`aqmlab study --shard`) become one results folder.

The tables are made from the chunks of the parts as if one folder had all of them, so their bytes
are those of a study that was run on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aqmlab import _core
from aqmlab.errors import FolderError
from aqmlab.metrics.samples import Whole
from aqmlab.results import METRICS, Scenarios, StudyInfo, StudyResult
from aqmlab.scenario.settings import each_of
from aqmlab.storage import Damaged
from aqmlab.study.chunks import Chunk, read_chunk, sealed_chunk
from aqmlab.study.folder import CHUNKS, ResultsFolder, scenarios_of
from aqmlab.study.manifest import (
    SCENARIOS,
    found_manifest,
    other_origin,
    seals_of,
    study_info,
)
from aqmlab.study.shards import Shard, shard_of
from aqmlab.study.sources import FILE, Sources

SHOWN = 10
"""So many shards that are missing are named."""


@dataclass(frozen=True, eq=False)
class PartialFolder:
    """A folder with some of the runs of a study."""

    path: Path
    manifest: dict[str, Any]
    info: StudyInfo
    shard: Shard
    """The shard that it is to hold."""
    chunks: tuple[Chunk, ...]

    def runs(self) -> Whole:
        """The numbers of the runs that it holds."""
        return np.concatenate([np.zeros(0, int), *(each.runs for each in self.chunks)])


def merge(folders: Sequence[str | Path], out: str | Path) -> StudyResult:
    """Merges the parts of a study (`aqmlab study --shard`) into one results folder.

    Parameters
    ----------
    folders : sequence of path
        Folders of the parts, which stay unchanged.
    out : path
        New folder for the whole study. It is created only if all parts are valid.

    Returns
    -------
    StudyResult
        Results with the same bytes as those of a study run on one machine.

    Raises
    ------
    FolderError
        If a part belongs to another study or build (the message names the difference), if runs are
        missing or in two parts, or if a file is damaged.
    """
    parts = [_read(Path(each)) for each in each_of(folders)]
    if not parts:
        raise FolderError("there are no parts to merge")
    first = parts[0]
    scenarios = _scenarios(first)
    own, here = replace(first.info, version=_core.__version__), "here"
    for part in parts:
        if found := other_origin(part.path, part.manifest, own, scenarios, here):
            raise FolderError(f"{part.path}: results of {found}")
        here = f"in {first.path}"
    _check_runs(parts)
    if Path(out).resolve() in {each.path.resolve() for each in parts}:
        raise FolderError(f"{out}: this is one of the parts; choose another folder with --out")
    sources = Sources.read(first.path, first.manifest)
    with ResultsFolder(Path(out), first.info, scenarios, sources=sources) as folder:
        if not folder.complete:
            for chunk in (chunk for part in parts for chunk in part.chunks):
                if folder.has_any(chunk):
                    raise FolderError(f"{out}: this folder has some of these runs already")
                folder.take(chunk)
            folder.finish()
        return folder.result(computed=0)


def _read(path: Path) -> PartialFolder:
    manifest = found_manifest(path)
    try:
        chunks = tuple(_chunks(path, manifest))
    except Damaged as error:
        raise FolderError(f"{error}; rerun the command that made this part") from None
    return PartialFolder(path, manifest, study_info(manifest), shard_of(manifest), chunks)


def _chunks(path: Path, manifest: dict[str, Any]) -> Iterator[Chunk]:
    """What a part holds, every file compared with its checksum. A finished folder is one chunk:
    its files are the same."""
    if not manifest["complete"]:
        folder = path / CHUNKS
        for each in sorted(folder.iterdir()) if folder.exists() else []:
            if each.suffix != ".tmp":
                yield read_chunk(each)
        return
    seals = {
        name.removesuffix(".parquet"): seal
        for name, seal in seals_of(manifest).items()
        if name not in (SCENARIOS, f"{METRICS}.parquet") and not FILE.fullmatch(name)
    }
    yield sealed_chunk(path, seals)


def _scenarios(part: PartialFolder) -> Scenarios:
    """The scenario of every point, as the study wrote it."""
    seals_of(part.manifest)[SCENARIOS].check(part.path / SCENARIOS)
    return scenarios_of(part.path, part.info)


def _check_runs(parts: Sequence[PartialFolder]) -> None:
    """Refuses parts that have runs twice, or not all."""
    total = parts[0].info.points * parts[0].info.replications
    owner = np.full(total, -1)
    for place, part in enumerate(parts):
        runs = part.runs()
        twice = runs[owner[runs] >= 0]
        if len(twice) or len(np.unique(runs)) < len(runs):
            other = parts[int(owner[twice[0]])].path if len(twice) else part.path
            raise FolderError(f"{part.path}: {len(twice):,} of its runs are in {other}, too")
        owner[runs] = place
    missing = int((owner < 0).sum())
    if missing:
        raise FolderError(f"{missing:,} of {total:,} runs are missing: {_who(parts, owner < 0)}")


def _who(parts: Sequence[PartialFolder], missing: NDArray[np.bool_]) -> str:
    """In words, which parts lack runs."""
    total = len(missing)
    for part in parts:
        own = [run for run in part.shard.runs(total) if missing[run]]
        if own and not part.shard.whole:
            return f"{part.path} is not finished (part {part.shard}, {len(own):,} runs to do)"
    counts = {part.shard.of for part in parts}
    if len(counts) == 1 and counts != {1}:
        of = counts.pop()
        there = {part.shard.number for part in parts}
        absent = [f"{number}/{of}" for number in range(1, of + 1) if number not in there]
        more = f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else ""
        return f"no folder has part {', '.join(absent[:SHOWN])}{more}"
    return f"the first is run {int(np.argmax(missing))}"

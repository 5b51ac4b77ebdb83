"""One file of a results folder: tables, scenarios, study file, custom code, versions, command."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aqmlab.errors import DamageWarning, FolderError, input_error, stored
from aqmlab.share.archive import pack
from aqmlab.study.folder import open_results
from aqmlab.study.manifest import MANIFEST, read_manifest, seals_of
from aqmlab.study.sources import SOURCES

SUFFIX = ".aqmlab.zip"
PAGES = (
    "report.html", "answers.json", "readings.csv", "verdicts.json", "cells.csv", "claims.csv",
    "search.json", "finding*.toml",
)  # fmt: skip
PICTURES = ("figures", "data")
"""Folders with files of the report."""
PARTS = 3
"""Depth of folders in which parts of results are looked for."""


def results_in(folder: Path) -> list[Path]:
    """The results folders in `folder`, which is the first if it has results itself.

    Raises `FolderError` if there are none.
    """
    found = sorted(
        path.parent
        for depth in range(PARTS)
        for path in folder.glob("/".join(["*"] * depth + [MANIFEST]))
    )
    if not found:
        study = folder / "study.toml"
        hint = f"; run `aqmlab study {study}` and name its folder" if study.is_file() else ""
        raise FolderError(f"{folder}: there are no results of aqmlab here{hint}")
    return found


def verified(folder: Path) -> dict[str, Any]:
    """The manifest of finished results. Raises `FolderError` if a file of them is damaged."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DamageWarning)
            open_results(folder)
    except DamageWarning as error:
        raise FolderError(str(error)) from None
    return read_manifest(folder)


def bundle(folder: str | Path, file: str | Path | None = None) -> Path:
    """Writes a results folder as one file, which `rerun` verifies and repeats elsewhere.

    The file is a ZIP archive, whose bytes depend on the folder alone.

    Parameters
    ----------
    folder : path
        Finished results of a run, study, campaign, reproduction or emulation.
    file : path, optional
        Name of the bundle. Default: that of the folder with the suffix `.aqmlab.zip`, in the
        working directory.

    Returns
    -------
    path
        The bundle.

    Raises
    ------
    InputError
        If `file` is a folder.
    FolderError
        If results are missing, incomplete or damaged, or use a class that is in no file.
    StorageError
        If the bundle cannot be written.

    Examples
    --------
    >>> aqmlab.bundle("results/mine", "mine.aqmlab.zip")
    """
    place = Path(folder)
    results = results_in(place)
    target = Path(file) if file is not None else Path(place.resolve().name + SUFFIX)
    if target.is_dir():
        raise input_error("expected the name of a file", key="file", given=str(target))
    manifests = {}
    for each in results:
        manifests[each] = verified(each)
        if missing := manifests[each][SOURCES]["missing"]:
            hint = "define it in a file, name it FILE.py:CLASS, and run the study again"
            raise FolderError(f"{each}: the class {missing[0]} is in no file; {hint}")
    tables = [path for each, manifest in manifests.items() for path in _files(each, manifest)]
    pages = [path for each in {place, *results} for path in _pages(each)]
    members = {str(path.relative_to(place)) for path in (*tables, *pages)}
    about = {"results": [str(each.relative_to(place)) for each in results]}
    with stored(target, "the bundle was not written"):
        pack(place, sorted(members), {**about, **_facts(manifests[results[0]])}, target)
    return target


def _files(folder: Path, manifest: dict[str, Any]) -> Iterator[Path]:
    """The files of a results folder that its manifest names."""
    yield folder / MANIFEST
    yield from (folder / name for name in seals_of(manifest))


def _pages(folder: Path) -> Iterator[Path]:
    """The report in a folder, and its files."""
    for name in (*PAGES, *(f"{name}/*.*" for name in PICTURES)):
        yield from (path for path in folder.glob(name) if path.is_file())


def _facts(manifest: dict[str, Any]) -> dict[str, Any]:
    """What a reader of the index wants to know."""
    facts = {key: manifest[key] for key in ("name", "title", "version", "engine", "host")}
    facts["command"] = manifest[SOURCES]["command"]
    return facts

"""The manifest of a results folder: whose results they are, and the checksums of its files."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aqmlab import _core
from aqmlab.errors import FolderError
from aqmlab.results import Scenarios, StudyInfo
from aqmlab.storage import MALFORMED, Damaged, Seal, content, opened, replace
from aqmlab.study.precision import KEY, Precision
from aqmlab.study.sources import FILE, SOURCES, checked

FORMAT = 2
MANIFEST = "manifest.json"
SCENARIOS = "scenarios.json"
CHECKSUM = "checksum"
VARIES = ("host", "wall_seconds", CHECKSUM)
"""Keys about the sessions that computed the results: folders with the same results may differ in
them. The manifest names them itself."""
NAME = re.compile(r"[a-z_]+(\.[a-z]+)?")
"""Description of a table or file."""
ADVICE = (
    "the command that made these results computes them again if they are of a study; "
    "results of real packets have to come from a copy"
)


def write_manifest(path: Path, info: StudyInfo, state: Mapping[str, Any]) -> None:
    """Writes the manifest of the folder `path`. `state` changes while a study runs:
    `complete`, `wall_seconds`, `files`, `tables`. Raises `OSError`."""
    form = {
        "format": FORMAT,
        "name": info.name,
        "title": info.title,
        "version": info.version,
        "engine": _core.__engine__,
        "digest": info.digest,
        "seed": info.seed,
        "replications": info.replications,
        "runs": info.points * info.replications,
        **({KEY: info.precision.to_json()} if info.precision else {}),
        "axes": [{"name": name, "labels": labels} for name, labels in info.axes],
        "host": host(),
        "varies": VARIES,
        **state,
    }
    replace(path / MANIFEST, content(sealed(form)))


def sealed(form: Mapping[str, Any]) -> bytes:
    """The text of a manifest, its own checksum in it."""
    whole = {**form, CHECKSUM: checksum(form)}
    return (json.dumps(whole, indent=2, ensure_ascii=False) + "\n").encode()


def checksum(form: Mapping[str, Any]) -> str:
    """The checksum of what a manifest says."""
    said = {key: value for key, value in form.items() if key != CHECKSUM}
    text = json.dumps(said, sort_keys=True).encode()
    return Seal.of(text).digest


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a results folder; `FolderError` if it is not one, or damaged."""
    file = path / MANIFEST
    try:
        with opened(file) as handle:
            manifest = json.loads(handle.read())
        if manifest["format"] != FORMAT:
            raise FolderError(f"{file}: these results have the format of another version of aqmlab")
        if manifest[CHECKSUM] != checksum(manifest):
            raise FolderError(
                f"{file}: damaged (its checksum differs); nothing was changed. Restore a copy "
                f"of it, or remove the folder (rm -r {path}) and rerun the study"
            )
        _check(manifest)
    except Damaged as error:
        raise FolderError(f"{error}; {ADVICE}") from None
    except MALFORMED:
        raise FolderError(f"{file}: this is not a manifest of aqmlab, or it is damaged") from None
    return dict(manifest)


def found_manifest(path: Path) -> dict[str, Any]:
    """The same; the `FolderError` for a folder without a manifest states that it has no results."""
    if not (path / MANIFEST).exists():
        raise FolderError(f"{path}: there are no results of aqmlab here")
    return read_manifest(path)


def _check(manifest: Mapping[str, Any]) -> None:
    """Raises an exception unless everything in a manifest is of the kind that others rely on. A
    right checksum does not say so: anybody can compute it."""
    info = study_info(manifest)
    texts = (info.name, info.title, info.digest, info.version, manifest["engine"])
    labels = [each for name, labels in info.axes for each in (name, *labels)]
    numbers = [info.replications, *manifest.get("tables", {}).values()]
    sound = (
        all(isinstance(text, str) for text in (*texts, *labels))
        and all(type(axis["labels"]) is list for axis in manifest["axes"])
        and all(type(number) is int and 0 <= number < 2**63 for number in numbers)
        and (info.seed is None or type(info.seed) is int)
        and info.replications > 0
        and type(manifest["complete"]) is bool
        and 0 <= float(manifest["wall_seconds"]) < float("inf")
        and (not manifest["complete"] or "tables" in manifest)
    )
    checked(manifest[SOURCES])
    # Named files must be in the folder itself.
    names = [*seals_of(manifest), *manifest.get("tables", {})]
    if not sound or not all(NAME.fullmatch(name) or FILE.fullmatch(name) for name in names):
        raise ValueError


def study_info(manifest: Mapping[str, Any]) -> StudyInfo:
    """The study that a manifest is of."""
    axes = tuple((axis["name"], tuple(axis["labels"])) for axis in manifest["axes"])
    keys = ("name", "title", "replications", "seed", "digest", "version")
    precision = Precision.parse(manifest[KEY]) if KEY in manifest else None
    return StudyInfo(axes=axes, precision=precision, **{key: manifest[key] for key in keys})


def seals_of(manifest: Mapping[str, Any]) -> dict[str, Seal]:
    """The checksum of every file that the manifest names."""
    return {name: Seal.from_json(seal) for name, seal in manifest["files"].items()}


def host() -> dict[str, Any]:
    """The machine, for the manifest."""
    return {
        "name": platform.node(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "polars": version("polars"),
        "cores": os.cpu_count(),
    }


def other_origin(
    path: Path,
    manifest: Mapping[str, Any],
    info: StudyInfo,
    scenarios: Scenarios,
    here: str = "here",
) -> str:
    """How the origin of the results in the folder `path` differs from that of others, which are
    `here`; empty if it does not."""
    if manifest["version"] != info.version:
        return f"another aqmlab: {manifest['version']} there and {info.version} {here}"
    if manifest["digest"] != info.digest:
        what, there, own = _difference(path, manifest, info, scenarios)
        said = f"{what} {there} there and {own} {here}" if there or own else what
        return f"another scenario: {said}"
    if manifest["engine"] != _core.__engine__:
        builds = f"{manifest['engine']} there and {_core.__engine__} {here}"
        return f"another build of aqmlab {info.version}: {builds}"
    return ""


def _difference(
    path: Path, manifest: Mapping[str, Any], info: StudyInfo, scenarios: Scenarios
) -> tuple[str, str, str]:
    """How the study in the folder `path` differs from another: what differs (with "is"), as it is
    there, and as it is in the other."""
    for key in ("name", "replications", "seed"):
        own = getattr(info, key)
        if manifest[key] != own:
            return f"{key} is", str(manifest[key]), str(own)
    theirs = {axis["name"]: ", ".join(axis["labels"]) for axis in manifest["axes"]}
    mine = {name: ", ".join(labels) for name, labels in info.axes}
    if list(theirs) != list(mine):
        names = [", ".join(each) or "none" for each in (theirs, mine)]
        return "the axes are", names[0], names[1]
    for name in mine:
        if theirs[name] != mine[name]:
            return f"the axis {name} has", theirs[name], mine[name]
    try:
        texts = json.loads((path / SCENARIOS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        texts = []
    for their, own in zip(texts, scenarios, strict=False):
        if found := first_difference(their, own):
            key, there, here = found
            return f"{key} is", there, here
    return "its settings differ (see scenarios.json there)", "", ""


def first_difference(theirs: Any, own: Any, place: str = "") -> tuple[str, str, str] | None:
    """Dotted key and both values of the first place where two scenarios differ."""
    if theirs == own:
        return None
    if not (isinstance(theirs, Mapping) and isinstance(own, Mapping)):
        there, here = ("not set" if each is None else str(each) for each in (theirs, own))
        return place, there, here
    for key in dict.fromkeys([*own, *theirs]):
        inner = f"{place}.{key}" if place else str(key)
        if found := first_difference(theirs.get(key), own.get(key), inner):
            return found
    return None

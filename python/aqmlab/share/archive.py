"""The archive of a bundle: a ZIP file whose members are stored as they are.

`bundle.json`, the first member, has size and checksum of all others. Members are sorted, without
times and compression, so the same files give the same bytes. An archive without compression cannot
unpack to more than its own size. It is opened as data from strangers: every name is checked before
a file is written.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from aqmlab.errors import FolderError
from aqmlab.storage import BLOCK, MALFORMED, Seal, Target, content, make_folder, replace

INDEX = "bundle.json"
FORMAT = 1
MOST_MEMBERS = 100_000
MOST_INDEX = 64 << 20
NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}/){0,4}[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")
"""Name of a member: no absolute path, no `..`, no hidden file."""
EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, members: Sequence[str], about: Mapping[str, Any], file: Path) -> None:
    """Writes the files `members` of `folder` into the archive `file`, `about` into its index.

    Raises `OSError` if a file cannot be read or written, `FolderError` for a name that cannot be
    that of a member.
    """
    names = sorted(members)
    for name in names:
        if not NAME.fullmatch(name):
            raise FolderError(f"{folder / name}: a bundle cannot contain a file of this name")
    seals = {name: _seal(folder / name).to_json() for name in names}
    index = json.dumps({"format": FORMAT, **about, "files": seals}, indent=1, ensure_ascii=False)

    def fill(target: Target) -> None:
        with zipfile.ZipFile(cast("IO[bytes]", target), "w") as archive:
            archive.writestr(_member(INDEX), index.encode() + b"\n")
            for name in names:
                info = _member(name)
                info.file_size = seals[name]["bytes"]
                with (folder / name).open("rb") as given, archive.open(info, "w") as to:
                    shutil.copyfileobj(given, to, BLOCK)

    replace(file, fill)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EPOCH)
    info.create_system, info.external_attr = 3, 0o644 << 16
    return info


def _seal(path: Path) -> Seal:
    with path.open("rb") as file:
        return Seal.of_file(file)


def unpack(file: Path, folder: Path) -> dict[str, Any]:
    """Unpacks an archive into `folder`, which is made unless it has this bundle already, and
    returns the index.

    Raises `FolderError` if it is no bundle or damaged: then there is no `folder`.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            index = _checked(archive, file)
            text = archive.read(INDEX)
            if (folder / INDEX).is_file() and (folder / INDEX).read_bytes() == text:
                return index
            if folder.exists() and any(folder.iterdir()):
                hint = "nothing was changed; choose another folder with --out"
                raise FolderError(f"{folder}: this folder has other files in it; {hint}")
            make_folder(folder.parent)
            partial = folder.with_name(f"{folder.name}.tmp")
            shutil.rmtree(partial, ignore_errors=True)
            try:
                for name, seal in index["files"].items():
                    _extract(archive, name, seal, partial / name)
                replace(partial / INDEX, content(text))
                partial.rename(folder)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                with suppress(OSError):
                    folder.parent.rmdir()  # if it was made for this
                raise
            return index
    except FileNotFoundError:
        raise FolderError(f"{file}: there is no such bundle") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise FolderError(f"{file}: this is no bundle, or it is damaged ({error})") from None


def _checked(archive: zipfile.ZipFile, file: Path) -> dict[str, Any]:
    """The index, after every member was found to be safe."""
    members = archive.infolist()
    names = [each.filename for each in members]
    if INDEX not in names:
        raise FolderError(f"{file}: this is no bundle of aqmlab (it has no {INDEX})")
    if len(members) > MOST_MEMBERS or len(set(names)) < len(names):
        raise FolderError(f"{file}: damaged (too many members, or two of one name)")
    size = file.stat().st_size
    for each in members:
        if each.compress_type != zipfile.ZIP_STORED or not NAME.fullmatch(each.filename):
            raise FolderError(f"{file}: damaged ({each.filename!r} is no member of a bundle)")
    if sum(each.file_size for each in members) > size:
        raise FolderError(f"{file}: damaged (its members are larger than the file)")
    if archive.getinfo(INDEX).file_size > MOST_INDEX:
        raise FolderError(f"{file}: damaged ({INDEX} is too large)")
    try:
        index = json.loads(archive.read(INDEX))
        if index["format"] != FORMAT:
            raise FolderError(f"{file}: this bundle is of another version of aqmlab")
        seals = {name: Seal.from_json(each) for name, each in index["files"].items()}
    except MALFORMED:
        raise FolderError(f"{file}: damaged ({INDEX} cannot be read)") from None
    if {*seals, INDEX} != set(names):
        raise FolderError(f"{file}: damaged (its members are not those of {INDEX})")
    return {**index, "files": seals}


def _extract(archive: zipfile.ZipFile, name: str, seal: Seal, path: Path) -> None:
    def fill(target: Target) -> None:
        with archive.open(name) as given:
            shutil.copyfileobj(given, target, BLOCK)

    make_folder(path.parent)
    if replace(path, fill) != seal:
        raise zipfile.BadZipFile(f"the checksum of {name} differs")

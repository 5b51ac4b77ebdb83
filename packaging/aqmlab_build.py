"""The build backend: maturin, and what a wheel needs besides.

A source package of maturin's has all files with mode 0644, so that the command of a wheel made of
it could not be run; and the page of `aqmlab lab` stands in docs, which are in no wheel.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
ROOT = Path(__file__).parents[1]
COMMANDS = ROOT / "python" / "data" / "scripts"
PAGE = ROOT / "docs" / "lab" / "index.html"
PACKED_PAGE = ROOT / "python" / "aqmlab" / "cli" / "lab.html"


def build_wheel(*args: Any, **settings: Any) -> str:
    """As maturin's, of a prepared tree."""
    prepare()
    built: str = maturin.build_wheel(*args, **settings)
    return built


def prepare() -> None:
    """Makes commands executable, and puts the page where wheels have it."""
    for command in COMMANDS.iterdir():
        command.chmod(0o755)
    shutil.copyfile(PAGE, PACKED_PAGE)


if __name__ == "__main__":
    prepare()

"""The build backend: maturin, and the mode of the command.

A source package of maturin's has all files with mode 0644, so that the command of a wheel made of
it could not be run.
"""

from __future__ import annotations

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
COMMANDS = Path(__file__).parents[1] / "python" / "data" / "scripts"


def build_wheel(*args: Any, **settings: Any) -> str:
    """As maturin's, with commands that can be run."""
    for command in COMMANDS.iterdir():
        command.chmod(0o755)
    built: str = maturin.build_wheel(*args, **settings)
    return built

"""Provenance of results, at the end of every page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aqmlab.report.document import Block, Code, Text
from aqmlab.study.manifest import MANIFEST


def made(command: str, folder: Path | None) -> Iterator[Block]:
    """The command that made the results, and how to read them if they are in `folder`."""
    if command:
        yield Code(command)
    if folder is not None and (folder / MANIFEST).exists():
        yield Text(
            "The results are Parquet files beside this page; "
            '`aqmlab.StudyResult.open("FOLDER")` reads them as polars frames. '
            "`scenarios.json` has every parameter, defaults included."
        )

"""Provenance of results, at the end of every page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from aqmlab._core import __version__
from aqmlab.report.document import Block, Code, Section, Text
from aqmlab.results import StudyInfo
from aqmlab.study.manifest import MANIFEST, read_manifest, study_info
from aqmlab.study.sources import SOURCES, rerun_command

YEAR = 2026
BIBTEX = """@software{{aqmlab,
  title = {{{{aqmlab: a laboratory for active queue management}}}},
  author = {{{{The aqmlab authors}}}},
  version = {{{version}}},
  year = {{{year}}},{note}
}}"""
"""The entry for this program; CITATION.cff has the same fields."""
SPECIAL = re.compile("[_%&#$]")
"""Characters that have a meaning in LaTeX."""


def made(command: str, folder: Path | None, info: StudyInfo | None = None) -> Iterator[Block]:
    """The command that made the results, how to read and repeat them if they are in `folder`, and
    how to cite them."""
    if command:
        yield Code(command)
    if folder is not None and (folder / MANIFEST).exists():
        yield Text(
            "The results are Parquet files beside this page; "
            '`aqmlab.StudyResult.open("FOLDER")` reads them as polars frames. '
            "`scenarios.json` has every parameter, defaults included."
        )
        manifest = read_manifest(folder)
        info = info or study_info(manifest)
        real = manifest[SOURCES]["emulated"]
        repeats = "" if real else ", runs them again and compares every table"
        yield Text(
            f"The first command verifies the results{repeats}; the second makes one file of them, "
            "for others."
        )
        again = rerun_command(folder, manifest)
        yield Code(f"{again}\naqmlab bundle {shlex.quote(str(folder))}")
    yield Section("To cite this (BibTeX)", (Code(bibtex(info)),), folded=True)


def bibtex(info: StudyInfo | None = None) -> str:
    """The BibTeX entry of this version of aqmlab, with the results and their seed."""
    note = ""
    if info is not None:
        what = "Run" if info.points * info.replications == 1 else "Study"
        digest = f"digest {info.digest[:16]}, seed {info.seed}, replications {info.replications}"
        text = SPECIAL.sub(r"\\\g<0>", f"{what} {info.name}: {digest}")
        note = f"\n  note = {{{text}}},"
    return BIBTEX.format(version=__version__, year=YEAR, note=note)

"""Results that answer questions: their page, their JSON, and the files of both."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.report.document import Document, save, write_text

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = 1
"""Version of the JSON of results; docs/packs.md and docs/reproductions.md describe it."""


class Reported(ABC):
    """Results with a page, a JSON form and tables."""

    answers_file = "answers.json"
    """File of `to_json`."""

    @abstractmethod
    def document(self, command: str = "") -> Document:
        """The page as a value, to HTML, Markdown or JSON; `command` made it."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The answers and their numbers, unrounded."""

    @abstractmethod
    def csv_files(self) -> Mapping[str, str]:
        """Name and text of each file with numbers or answers as CSV."""

    def summary(self) -> Document:
        """The part of the page for a terminal."""
        return self.document()

    def _repr_html_(self) -> str:
        return self.document()._repr_html_()

    def print(self, console: Console) -> None:
        """Prints the summary."""
        self.summary().print(console)

    def write_answers(self, folder: str | Path) -> None:
        """Writes the JSON and the CSV files into a folder.

        Raises `StorageError` if a file cannot be written.
        """
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"
        for name, each in {self.answers_file: text, **self.csv_files()}.items():
            write_text(Path(folder) / name, each, "the answers were not written")

    def write_report(self, folder: str | Path, *, figures: bool = True, command: str = "") -> Path:
        """Writes the answers, report.html, and with `figures` figures/, into a folder; returns the
        path of the report. Raises `StorageError` if a file cannot be written."""
        self.write_answers(folder)
        return save(self.document(command), Path(folder), figures=figures)

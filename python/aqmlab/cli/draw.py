"""Draws figures for `document.draw_all`: `python -m aqmlab.cli.draw FOLDER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from aqmlab.report.document.figure import FORMATS, Figure


def main(folder: Path) -> None:
    """Writes the figures that stdin describes; an `OSError` is told on stdout."""
    try:
        for identifier, title, message, spec in json.load(sys.stdin):
            figure = Figure(identifier, title, message, "", spec)
            figure.save(*(folder / f"{figure.id}.{ending}" for ending in FORMATS))
    except OSError as error:
        print(json.dumps([error.errno, error.strerror, error.filename]))
        sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Draws figures for `document.draw_apart`, which describes them on stdin."""

from __future__ import annotations

import json
import sys

from aqmlab.report.document.figure import Figure


def main() -> None:
    """Writes the files of each figure; an `OSError` is written to stdout."""
    try:
        for identifier, title, message, spec, *paths in json.load(sys.stdin):
            Figure(identifier, title, message, "", spec).save(*paths)
    except OSError as error:
        print(json.dumps([error.errno, error.strerror, error.filename]))
        sys.exit(1)


if __name__ == "__main__":
    main()

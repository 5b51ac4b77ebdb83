"""Makes the archive of recorded cases from a folder: `python -m tools.conformance_pack DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aqmlab.conformance.archive import SHIPPED, pack
from aqmlab.conformance.folder import find_cases, read_case
from aqmlab.conformance.senders import write_archive
from aqmlab.errors import InputError


def main() -> None:
    """Packs all cases of a folder; writes nothing if one of them cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m tools.conformance_pack", description=__doc__)
    parser.add_argument("cases", type=Path, help="a folder of cases, ALGORITHM/CASE/")
    parser.add_argument("--tcp", action="store_true", help="senders: CASE/ (out: recorded/)")
    parser.add_argument("out", type=Path, nargs="?", default=SHIPPED, help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        if arguments.tcp:
            write_archive(arguments.cases)
            return
        pack([read_case(folder) for _, _, folder in find_cases(arguments.cases)], arguments.out)
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()

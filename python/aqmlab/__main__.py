"""The command `aqmlab`, also `python -m aqmlab`.

Little is imported here at first: Ctrl-C while the rest is loaded is no traceback either.
"""

import sys


def main() -> None:
    """Loads the command line and runs it."""
    try:
        from aqmlab import plain, signals

        plain.any_streams()
        plain.any_encoding()
        signals.install()
        try:
            from aqmlab.cli import main as command

            command()
        finally:
            signals.uninstall()
    except KeyboardInterrupt as error:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + getattr(error, "number", 2))


if __name__ == "__main__":
    main()

"""The command `aqmlab`, also `python -m aqmlab`.

Little is imported here at first: Ctrl-C while the rest is loaded is no traceback either, and what
can be answered without the rest is.
"""

import sys


def main() -> None:
    """Answers at once, or loads the command line and runs it."""
    try:
        from aqmlab import plain
        from aqmlab.quick import answers

        plain.any_encoding()
        try:
            if answers.answer(sys.argv[1:]):
                return
        except Exception as error:
            _failed(error)
        from aqmlab import signals

        signals.install()
        try:
            from aqmlab.cli import main as command

            command()
        finally:
            signals.uninstall()
    except KeyboardInterrupt as error:
        print("interrupted", file=sys.stderr)
        sys.exit(128 + getattr(error, "number", 2))


def _failed(error: Exception) -> None:
    """Ends as a command does by this error."""
    from aqmlab.cli.common import reported

    @reported
    def command() -> None:
        raise error

    command()


if __name__ == "__main__":
    main()

"""`aqmlab completion`: a script for the shell."""

from __future__ import annotations

from typing import Annotated

import typer

from aqmlab.cli.common import EXAMPLES, reported
from aqmlab.errors import unknown
from aqmlab.quick.completion import SCRIPTS

EXAMPLE = EXAMPLES.format(
    "aqmlab completion bash > ~/.local/share/bash-completion/completions/aqmlab\n\n"
    "aqmlab completion zsh > ~/.zfunc/_aqmlab\n\n"
    "aqmlab completion fish > ~/.config/fish/completions/aqmlab.fish"
)


@reported
def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands, options, names, keys and values."""
    if shell not in SCRIPTS:
        raise unknown("shell", shell, SCRIPTS, key="SHELL")
    print(SCRIPTS[shell], end="")

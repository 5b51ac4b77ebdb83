"""Command lines that are not right, told in one sentence.

The library that reads the command line says what is wrong as exceptions with attributes (the
option, the parameter, the check that failed); the sentences are made from these here.
"""

from __future__ import annotations

import math
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand
from typer.exceptions import TyperException

NUMBERS = {
    "int": "a whole number", "integer": "a whole number", "float": "a number",
}  # fmt: skip
"""Types of parameters, by the first word of their name."""


class Misuse(TyperException):
    """Description of the mistake in aqmlab's terms."""

    def __init__(self, message: str, context: Any) -> None:
        super().__init__(message)
        self.ctx = context


class Command(TyperCommand):
    """A command whose help shows no type beside options that take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters; a switch has an empty word where others have `N` or `FILE`."""
        params = super().get_params(ctx)
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses remaining words, and `nan`, which compares with no limit."""
        ctx.allow_extra_args = True
        left: list[str] = super().parse_args(ctx, args)
        if left:
            raise Misuse(f"too many arguments: {' '.join(left)}", ctx)
        for param in self.get_params(ctx):
            value = ctx.params.get(param.name)
            if isinstance(value, float) and math.isnan(value):
                raise BadParameter("", ctx, param)
        return left


def told(error: TyperException) -> str:
    """One sentence about a command line that is not right, and where help is."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "aqmlab"
    return f"{_what(error)} (`{command} --help` shows what there is)"


def _what(error: Any) -> str:
    if hasattr(error, "possibilities"):
        near = ", ".join(sorted(error.possibilities or ()))
        return f"no option {error.option_name}" + (f"; did you mean {near}?" if near else "")
    if hasattr(error, "option_name"):
        return f"{error.option_name} needs a value"
    param = getattr(error, "param", None)
    if hasattr(error, "param_type") and param is not None:
        return f"{_name(param)} is missing"
    if param is not None:
        return f"{_name(param)}: {_expected(error)}"
    return str(error.format_message())


def _name(param: Any) -> str:
    """`--seed` of an option, `FILE` of an argument."""
    if param.param_type_name == "option":
        return str(param.opts[0])
    return str(param.metavar or param.name.upper())


def _expected(error: Any) -> str:
    """Allowed values, from the type of the parameter."""
    kind = getattr(error.param, "type", None)
    number = NUMBERS.get(getattr(kind, "name", "").partition(" ")[0])
    if number is None:
        return str(error.message)
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is None:
        return f"expected {number}"
    return f"expected {number} " + (
        f"of at least {low}" if high is None else f"from {low} to {high}"
    )

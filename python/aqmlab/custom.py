"""The user's own queue disciplines and congestion controls: classes in Python, types in Rust.

A scenario names the class (`queue = "my_queue.py:MyQueue"`, or `package.module:Class`),
Python may give the class itself (`set={"queue": MyQueue}`). This module finds the class,
its parameters and the digest of its code; the engine makes the objects. What the classes
have to do stands in `aqmlab.queue` and `aqmlab.control`. A shared library
(`libmine.so:Mine`) is found in the same way; the engine loads it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import marshal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from aqmlab.control import CongestionControl
from aqmlab.errors import input_error, nearest
from aqmlab.queue import Queue


@dataclass(frozen=True)
class Kind:
    """What a class can be of."""

    what: str
    base: type
    """A base class with all that it may have; its abstract methods are required."""
    answers: tuple[str, ...]
    """Attributes that the engine reads; the first is required."""
    first: str
    """What the constructor is given before the parameters."""
    reserved: tuple[str, ...]
    """Key beside the parameters in a scenario."""
    example: str

    @property
    def required(self) -> list[str]:
        """The methods that it has to have."""
        return [name for name in self._methods if name in self.base.__abstractmethods__]  # type: ignore[attr-defined]

    @property
    def optional(self) -> list[str]:
        """Optional methods."""
        return [name for name in self._methods if name not in self.required]

    @property
    def _methods(self) -> list[str]:
        return [name for name in vars(self.base) if inspect.isfunction(getattr(self.base, name))
                and not name.startswith("_")]  # fmt: skip


KINDS = {
    "queue": Kind(
        what="a queue discipline",
        base=Queue,
        answers=(),
        first="link",
        reserved=("discipline", "code"),
        example="my_queue.py:MyQueue",
    ),
    "congestion_control": Kind(
        what="a congestion control",
        base=CongestionControl,
        answers=("window", "ssthresh", "pacing_rate", "needs_rate_samples", "recovers_by_itself"),
        first="setup",
        reserved=("algorithm", "code"),
        example="my_control.py:MyControl",
    ),
}
"""By the section of the reference."""


@dataclass(frozen=True)
class Loaded:
    """A class that a scenario named."""

    section: str
    """Kind of class, a key of `KINDS`."""
    class_: type
    summary: str
    """The first line of its docstring."""
    code: str
    """The first 16 digits of the SHA-256 of its source file, or of its code."""
    parameters: dict[str, Any]
    """The defaults of its parameters."""
    optional: list[str]
    """The methods and attributes that it has."""


LIBRARIES = (".so", ".dylib")
"""Suffixes of shared libraries."""

_given: dict[str, type] = {}
"""Classes that were given as objects, by their names."""
_only: list[Mapping[str, Path]] = []
"""The last: files or modules by name, each with the file that is loaded instead; no others are."""


@contextmanager
def files_only(files: Mapping[str, Path]) -> Iterator[None]:
    """Loads classes of these files and modules from other files meanwhile, and no other classes."""
    _only.append(files)
    try:
        yield
    finally:
        _only.pop()


def _instead(place: str, name: str) -> Path | None:
    """The file to load instead of this file or module; None for itself.

    Raises `InputError` if it may not be loaded.
    """
    if not _only:
        return None
    if place not in _only[-1]:
        raise input_error("the results do not contain the file of this class", given=name)
    return _only[-1][place]


def file_of(name: str, folders: Sequence[str]) -> Path | None:
    """Returns the file of the class called `name`; None if it was not defined in a file.

    Raises `InputError` if there is no such file.
    """
    place, given = name.rpartition(":")[0], _given.get(name)
    if file := _instead(place, name):
        return file
    if given is None and place.endswith((".py", *LIBRARIES)):
        return _file(place, folders, name)
    module = sys.modules.get(given.__module__ if given else place)
    file = getattr(module, "__file__", None)
    return Path(file) if file and Path(file).is_file() else None


def name_of(given: type) -> str:
    """The name under which a class that was given as an object is found again."""
    name = f"{given.__module__}:{given.__qualname__}"
    _given[name] = given
    return name


def library(name: str, folders: Sequence[str]) -> tuple[Path, str] | None:
    """File and digest of the shared library that `name` names; None if it names none.

    Raises `InputError` if there is no such file.
    """
    if name.endswith(LIBRARIES):
        problem = "expected FILE:NAME, with a name that the library exports"
        raise input_error(problem, given=name, hint=f"such as {Path(name).name}:Mine")
    place = name.rpartition(":")[0]
    if not place.endswith(LIBRARIES):
        return None
    path = _instead(place, name) or _file(place, folders, name)
    state = path.stat()
    return path, _digest_of(path, state.st_size, state.st_mtime_ns, state.st_ino)


@cache
def _digest_of(path: Path, *state: int) -> str:
    """The digest of a file in this state."""
    return digest(path.read_bytes())


def load(section: str | None, name: str, folders: Sequence[str]) -> Loaded | None:
    """The class called `name`; None if that is not the name of a class.

    `section` says what it has to be of; if None, its methods do. A file is looked for in
    `folders`, in their order, then in the working directory. Raises `InputError` if there
    is no such class, or it is not of that kind.
    """
    example = KINDS[section or "queue"].example
    if name.endswith(".py"):
        problem = "expected FILE:CLASS, with the name of a class"
        raise input_error(problem, given=name, hint=f"such as {example}")
    place, colon, qualname = name.rpartition(":")
    if not colon:
        return None
    given = None if _only else _given.get(name)
    if given is None:
        given = _member(_module(place, folders, name, example), qualname, name)
    return _loaded(given, section or _section(given), name)


def fault(
    name: str,
    given: type,
    method: str,
    seconds: float,
    problem: str | None,
    error: BaseException | None,
) -> str:
    """Message for a failure in a method at a time of the simulation."""
    file, line = _place(given, method, error)
    if error is not None:
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    where = f"{file}, line {line}: " if file else ""
    return f"{where}{name.rpartition(':')[2]}.{method} at {seconds:.9g} s: {problem}"


def _place(given: type, method: str, error: BaseException | None) -> tuple[str | None, int]:
    """The last line of the class's own file that was being run, or else the method's first."""
    code = getattr(inspect.unwrap(getattr(given, method)), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__) if error else []
    own = [frame for frame in frames if code and frame.filename == code.co_filename]
    for frame in reversed(own or frames):
        return frame.filename, frame.lineno or 0
    return (code.co_filename, code.co_firstlineno) if code else (None, 0)


def _module(place: str, folders: Sequence[str], name: str, example: str) -> ModuleType:
    """The module called `place`, which is a file or can be imported."""
    file = _instead(place, name)
    if file is None and place.endswith(".py"):
        file = _file(place, folders, name)
    try:
        if file is not None:
            return _executed(file, digest(file.read_bytes()))
        return importlib.import_module(place)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(file)]
        if isinstance(error, SyntaxError):
            lines = [error.lineno]
        where = f"{file}, line {lines[-1]}: " if lines else ""
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        problem = f"cannot be imported: {where}{type(error).__name__}: {text}"
        hint = None if file else f"a file is named with its ending: {example}"
        raise input_error(problem, given=name, hint=hint) from error


def _file(place: str, folders: Sequence[str], name: str) -> Path:
    tried = [Path(folder) / place for folder in [*folders, "."]]
    for path in tried:
        if path.is_file():
            return path.resolve()
    if folder := next(filter(Path.is_dir, tried), None):
        raise input_error(f"{folder} is a folder, not a file", given=name)
    names = [each.name for each in tried[0].parent.glob(f"*{tried[0].suffix}")]
    guess = nearest(Path(place).name, names)
    hint = f"did you mean `{guess}`?" if guess else None
    raise input_error(f"there is no file {tried[0]}", given=name, hint=hint)


@cache
def _executed(path: Path, digest: str) -> ModuleType:
    """Module of a file, reloaded if the file has changed."""
    module_name = f"aqmlab_custom_{path.stem}_{digest}"
    # The file of a module in results has the name of the module, without `.py`.
    loader = SourceFileLoader(module_name, str(path))
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _member(module: ModuleType, qualname: str, name: str) -> type:
    found: Any = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type):
        return found
    classes = [
        each
        for each, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    if not classes:
        raise input_error("there is no class in this file", given=name)
    guess = nearest(qualname, classes)
    hint = f"did you mean `{guess}`?" if guess else None
    raise input_error(f"unknown class; known: {', '.join(classes)}", given=name, hint=hint)


def _section(given: type) -> str:
    """What a class is of, by its methods."""
    for section, kind in KINDS.items():
        if any(hasattr(given, method) for method in kind.required):
            return section
    return "queue"


def _loaded(given: type, section: str, name: str) -> Loaded:
    kind = KINDS[section]
    for method in kind.required:
        found = getattr(given, method, None)
        if not callable(found) or getattr(found, "__isabstractmethod__", False):
            raise input_error(f"this class has no method `{method}`: {kind.what} has", given=name)
    of_base = {each: (None, getattr(kind.base, each)) for each in kind.optional}
    optional = [each for each in kind.optional if getattr(given, each, None) not in of_base[each]]
    if "next_wakeup" in optional and "on_wakeup" not in optional:
        raise input_error("this class has `next_wakeup`, but no `on_wakeup`", given=name)
    answers = _answers(given, kind)
    if kind.answers and kind.answers[0] not in answers:
        raise input_error(f"this class sets no `{kind.answers[0]}`: {kind.what} does", given=name)
    about = inspect.cleandoc(given.__doc__ or f"{kind.what} in Python").splitlines()[0]
    parameters = _parameters(given, kind, name)
    own = [*kind.required, *optional, *answers]
    return Loaded(section, given, about, _code(given), parameters, own)


def _answers(given: type, kind: Kind) -> list[str]:
    """The attributes to be asked for: those of the class, and those that its methods name."""
    named = {name for code in _codes(given) for name in code.co_names}
    return [each for each in kind.answers if hasattr(given, each) or each in named]


def _parameters(given: type, kind: Kind, name: str) -> dict[str, Any]:
    """Parameters of the constructor after the first one, with their defaults."""
    constructor = given.__init__  # type: ignore[misc]
    parameters = list(inspect.signature(constructor).parameters.values())[1:]
    if constructor is object.__init__ or not parameters:
        raise input_error(f"the constructor must take `{kind.first}`", given=name)
    found: dict[str, Any] = {}
    for each in parameters[1:]:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
            problem = f"the constructor takes `{each}`: expected parameters with names and defaults"
            raise input_error(problem, given=name)
        if not isinstance(each.default, (str, bool, int, float)):
            problem = f"the parameter `{each.name}` needs a default: text, a number or a bool"
            raise input_error(problem, given=name)
        if each.name in kind.reserved:
            raise input_error(f"a parameter may not be called `{each.name}`", given=name)
        found[each.name] = each.default
    return found


def _code(given: type) -> str:
    """A digest that changes when the class does: of its file, else of its source or code."""
    module = sys.modules.get(given.__module__)
    file = getattr(module, "__file__", None)
    if file and Path(file).is_file():
        return digest(Path(file).read_bytes())
    try:
        return digest(inspect.getsource(given).encode())
    except (OSError, TypeError):
        return digest(b"".join(marshal.dumps(each, 2) for each in _codes(given)))


def _codes(given: type) -> list[CodeType]:
    own = [each for base in given.__mro__[:-1] for _, each in sorted(vars(base).items())]
    return [each.__code__ for each in own if isinstance(each, FunctionType)]


def digest(content: bytes) -> str:
    """The first 16 digits of the SHA-256 of a class's file, which the results name."""
    return hashlib.sha256(content).hexdigest()[:16]

"""`aqmlab new`: files to begin with, each of which runs at once."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from keyword import iskeyword
from pathlib import Path

from aqmlab._core import __version__ as VERSION
from aqmlab.cli.options import argument, option
from aqmlab.errors import input_error, stored, unknown

EXAMPLE = (
    "aqmlab new scenario home\n\naqmlab new study queues\n\naqmlab new pack goals\n\n"
    "aqmlab new queue patient\n\n"
    "aqmlab new control steady\n\naqmlab new metric waiting\n\naqmlab new endpoint window\n\n"
    "aqmlab new quic-controller steady\n\n"
    "aqmlab new rust-queue patient\n\naqmlab new rust-control steady"
)
TEMPLATES = Path(__file__).parent.parent / "templates"
SOURCES = Path(__file__).parents[3]
"""The source tree, where aqmlab is installed from one in place."""
CRATES = {"endpoint": "rust-endpoint", "quic-controller": "quic-controller"}
"""Kinds that are crates, and the examples that they begin as."""
LIBRARIES = {"rust-queue": "aqmlab-aqm", "rust-control": "aqmlab-tcp"}
"""Kinds that are shared libraries, and the crates that they implement a trait of."""
NAME = re.compile(r"[a-z][a-z0-9_]*")
KINDS = ("scenario", "study", "pack", "queue", "control", "metric", *CRATES, *LIBRARIES)
MODULES = sys.stdlib_module_names | {"aqmlab", "numpy", "polars"}
"""Names of modules: `python -m aqmlab` would import a file of the working directory instead."""
RUST_WORDS = """
as async await break const continue crate dyn else enum extern false
fn for if impl in let loop match mod move mut pub ref return self
static struct super trait true type unsafe use where while
"""
DROPTAIL = '{ discipline = "droptail", limit = "250p" }'


def new(
    kind: str = argument("KIND", f"{', '.join(KINDS[:-1])} or {KINDS[-1]}."),
    name: str = argument("NAME", "Lower-case letters, digits and `_`."),
    source: Path | None = option("FOLDER", "For a crate: the source tree of aqmlab."),
) -> None:
    """Write a scenario, study, pack, queue, control, metric or crate to start from.

    The files go into the working directory; no file is overwritten. The last line shows the
    command that runs them.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS, key="KIND")
    if not NAME.fullmatch(name):
        hint = "such as my_queue"
        problem = "expected a lower-case letter, then lower-case letters, digits and `_`"
        raise input_error(problem, key="NAME", given=name, hint=hint)
    if reserved := _reserved(kind, name):
        raise input_error(reserved, key="NAME", given=name, hint="choose another name")
    if kind in LIBRARIES:
        files, line = _library(kind, name, source or SOURCES)
    elif kind in CRATES:
        files, line = _crate(kind, name, source or SOURCES)
    else:
        files, line = _files(kind, name)
    for file in files:
        if Path(file).exists():
            raise input_error("this file exists already; nothing was written", file=file)
    for file, text in files.items():
        with stored(Path(file), "no file was written"):
            try:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(file).write_text(text, encoding="utf-8")
            except OSError:
                # Half of them would be "this file exists already" next time.
                for each in map(Path, files):
                    with suppress(OSError):
                        each.unlink(missing_ok=True)
                raise
    print(f"Written: {', '.join(files)}. Run it:\n\n    {line}")


def _reserved(kind: str, name: str) -> str | None:
    """What a name means already in the language of the files."""
    if kind in ("scenario", "study", "pack"):
        return None
    if kind in CRATES or kind in LIBRARIES:
        return "a keyword of Rust" if name in RUST_WORDS.split() else None
    if name in MODULES:
        return "a module of this name exists in Python"
    return "a keyword of Python" if iskeyword(class_name(name)) else None


def _files(kind: str, name: str) -> tuple[dict[str, str], str]:
    """The files of a kind, and the command that runs them."""
    run = f"aqmlab run {name}.toml"
    if kind in ("study", "pack"):
        command = "study" if kind == "study" else "check"
        return {f"{name}.toml": _text(f"{kind}.toml", name)}, f"aqmlab {command} {name}.toml"
    files = {f"{name}.toml": _scenario(kind, name, f"{name}.py:{class_name(name)}")}
    if kind != "scenario":
        files[f"{name}.py"] = _text(f"my_{kind}.py.txt", name)
    return files, f"{run} --with {name}.py" if kind == "metric" else run


def _scenario(kind: str, name: str, own: str) -> str:
    """A scenario with the queue or control `own`."""
    queue = f'"{own}"' if kind == "queue" else DROPTAIL
    control = f'transport = {{ congestion_control = "{own}" }}\n' if kind == "control" else ""
    scenario = _text("scenario.toml", name)
    return scenario.replace("QUEUE", queue).replace("CONTROL\n", f"{control}\n")


def _library(kind: str, name: str, sources: Path) -> tuple[dict[str, str], str]:
    """A crate that becomes a shared library, and a scenario with it."""
    crates = (sources / "crates").resolve()
    known = crates.is_dir()
    needs = "".join(
        f'{each} = {{ path = "{crates / each}" }}\n' if known else f'{each} = "{VERSION}"\n'
        for each in ("aqmlab-core", LIBRARIES[kind])
    )
    suffix = "dylib" if sys.platform == "darwin" else "so"
    own = f"target/release/lib{name}.{suffix}:{class_name(name)}"
    short = kind.removeprefix("rust-")
    files = {
        "Cargo.toml": f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n\n[lib]\n'
        f'crate-type = ["cdylib"]\n\n[dependencies]\n{needs}\n[workspace]\n',
        "src/lib.rs": _text(f"my_{short}.rs.txt", name),
        "scenario.toml": _scenario(short, "scenario", own),
    }
    line = f"cd {name} && cargo build --release && aqmlab run scenario.toml"
    return {f"{name}/{file}": text for file, text in files.items()}, line


def class_name(name: str) -> str:
    """`MyQueue` of `my_queue`."""
    return "".join(part.capitalize() for part in name.split("_"))


def _text(template: str, name: str) -> str:
    """A template with its name in it."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    mine = template.partition(".")[0]
    if not mine.startswith("my_"):
        return text.replace("NAME", name)
    text = text.replace("examples/scenario.toml", f"{name}.toml").replace("examples/my_", "my_")
    text = "".join(each for each in text.splitlines(True) if "examples/" not in each)
    return text.replace(mine, name).replace(class_name(mine), class_name(name))


def _crate(kind: str, name: str, sources: Path) -> tuple[dict[str, str], str]:
    """A crate in Rust, which needs aqmlab's crates."""
    example = CRATES[kind]
    folder = sources / "examples" / example
    if not folder.is_dir():
        problem = f"`{kind}` is compiled with aqmlab's crates, which are not here"
        hint = "name the source tree: --source FOLDER"
        raise input_error(problem, file=str(sources), hint=hint)
    crates = (sources / "crates").resolve()
    files = {}
    for path in sorted([*folder.glob("*.toml"), *folder.glob("*/*.rs")]):
        text = path.read_text(encoding="utf-8").replace(example.replace("-", "_"), name)
        text = text.replace("../scenario.toml flows.page", "scenario.toml flows.download")
        if path.name == "Cargo.toml":
            text = text.replace("../../crates", str(crates)).replace(example, name)
            text = f"{text}\n[workspace]\n"
        files[f"{name}/{path.relative_to(folder)}"] = text
    if kind == "quic-controller":
        return files, f"cd {name} && cargo test --release"
    files[f"{name}/scenario.toml"] = _scenario("scenario", "scenario", "")
    return files, f"cd {name} && cargo run -- scenario.toml flows.download.endpoint=window"

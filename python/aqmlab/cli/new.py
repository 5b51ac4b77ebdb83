"""`aqmlab new`: files to begin with, each of which runs at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from aqmlab.cli.options import argument, option
from aqmlab.errors import input_error, stored, unknown

EXAMPLE = (
    "aqmlab new scenario home\n\naqmlab new study queues\n\naqmlab new pack goals\n\n"
    "aqmlab new queue patient\n\n"
    "aqmlab new control steady\n\naqmlab new metric waiting\n\naqmlab new endpoint window\n\n"
    "aqmlab new quic-controller steady"
)
TEMPLATES = Path(__file__).parent.parent / "templates"
SOURCES = Path(__file__).parents[3]
"""The source tree, where aqmlab is installed from one in place."""
CRATES = {"endpoint": "rust-endpoint", "quic-controller": "quic-controller"}
"""Kinds that are crates, and the examples that they begin as."""
NAME = re.compile(r"[a-z][a-z0-9_]*")
KINDS = ("scenario", "study", "pack", "queue", "control", "metric", *CRATES)
DROPTAIL = '{ discipline = "droptail", limit = "250p" }'


def new(
    kind: Annotated[str, argument("KIND", f"{', '.join(KINDS[:-1])} or {KINDS[-1]}.")],
    name: Annotated[str, argument("NAME", "Lower-case letters, digits and `_`.")],
    source: Annotated[
        Path | None, option("FOLDER", "For a crate: the source tree of aqmlab.")
    ] = None,
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
    if kind in CRATES:
        files, line = _crate(kind, name, source or SOURCES)
    else:
        files, line = _files(kind, name)
    for file in files:
        if Path(file).exists():
            raise input_error("this file exists already; nothing was written", file=file)
    for file, text in files.items():
        with stored(Path(file), "the file was not written"):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(text, encoding="utf-8")
    print(f"Written: {', '.join(files)}. Run it:\n\n    {line}")


def _files(kind: str, name: str) -> tuple[dict[str, str], str]:
    """The files of a kind, and the command that runs them."""
    run = f"aqmlab run {name}.toml"
    if kind in ("study", "pack"):
        command = "study" if kind == "study" else "check"
        return {f"{name}.toml": _text(f"{kind}.toml", name)}, f"aqmlab {command} {name}.toml"
    own = f'"{name}.py:{class_name(name)}"'
    queue = own if kind == "queue" else DROPTAIL
    control = f"transport = {{ congestion_control = {own} }}\n" if kind == "control" else ""
    scenario = _text("scenario.toml", name)
    scenario = scenario.replace("QUEUE", queue).replace("CONTROL\n", f"{control}\n")
    files = {f"{name}.toml": scenario}
    if kind != "scenario":
        files[f"{name}.py"] = _text(f"my_{kind}.py.txt", name)
    return files, f"{run} --with {name}.py" if kind == "metric" else run


def class_name(name: str) -> str:
    """`MyQueue` of `my_queue`."""
    return "".join(part.capitalize() for part in name.split("_"))


def _text(template: str, name: str) -> str:
    """A template with its name in it."""
    text = (TEMPLATES / template).read_text(encoding="utf-8").replace("NAME", name)
    mine = template.partition(".")[0]
    if not mine.startswith("my_"):
        return text
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
        if path.name == "Cargo.toml":
            text = text.replace("../../crates", str(crates)).replace(example, name)
            text = f"{text}\n[workspace]\n"
        files[f"{name}/{path.relative_to(folder)}"] = text
    if kind == "quic-controller":
        return files, f"cd {name} && cargo test --release"
    scenario, _ = _files("scenario", name)
    files[f"{name}/scenario.toml"] = scenario[f"{name}.toml"]
    return files, f"cd {name} && cargo run -- scenario.toml flows.download.endpoint=window"

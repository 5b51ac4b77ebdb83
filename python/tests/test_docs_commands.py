"""Every command that is printed in the guide, in the examples and in `--help` is one that the
program takes: its options, its names of queues, studies, sections and keys are right. Those
that run in no time are run in test_docs.py."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aqmlab.cli import COMMANDS as NAMES
from aqmlab.cli import loaded
from aqmlab.cli.explain import find
from aqmlab.cli.listing import studies
from aqmlab.emulator.links import from_options
from aqmlab.scenario.settings import parse_selection, parse_settings
from aqmlab.study import Study
from aqmlab.study.single import load

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "studies").rglob("README.md")),
    *sorted((ROOT / "examples").glob("*.*")),
]
PARSED: dict[str, Any] = {name: loaded(name) for name in NAMES}
COMMAND = re.compile(r"(?:\s{4}|# +|\$ )?(aqmlab [a-z].*)")
WORDS = re.compile(r"`(aqmlab [a-z][^`]*)`")
ELLIPSIS = re.compile(r"\.\.\.|\b[A-Z]{3,}\b(?!=)")
"""A command with such a word is a form, not a command: `aqmlab shell -- COMMAND`."""


def printed() -> Iterator[tuple[str, str]]:
    """Where a command stands, and its line."""
    for page in PAGES:
        text = page.read_text()
        blocks = [text]
        if page.suffix == ".md":
            indented = re.findall(r"^    aqmlab .*$", text, re.MULTILINE)
            blocks = [*re.findall(r"```\n(.*?)```", text, re.DOTALL), *indented]
        for block in blocks:
            for line in block.replace("\\\n", " ").splitlines():
                if found := COMMAND.fullmatch(line):
                    yield str(page.relative_to(ROOT)), found[1]
    for name, command in PARSED.items():
        for line in (command.epilog or "").split("\n\n"):
            if line.startswith("aqmlab "):
                yield f"aqmlab {name} --help", line


COMMANDS = list(dict.fromkeys(printed()))


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """The command of a line and its options, as the program takes them."""
    _, name, *words = shlex.split(re.split(r" > (?=[\w./~-]+$)", line)[0], comments=True)
    assert name in PARSED, f"no command {name}"
    return name, PARSED[name].make_context(name, words).params


def test_there_are_commands_to_check() -> None:
    assert len(COMMANDS) > 70
    assert {line.split()[1] for _, line in COMMANDS} >= set(PARSED)


@pytest.mark.parametrize(("where", "line"), COMMANDS, ids=[line for _, line in COMMANDS])
def test_every_printed_command_is_understood(
    where: str, line: str, scenario: Path, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ELLIPSIS.search(line.partition("#")[0]):
        return
    monkeypatch.chdir(scenario.parent)
    (scenario.parent / "examples").symlink_to(ROOT / "examples")
    (scenario.parent / "mine.toml").symlink_to(study)  # as `aqmlab new study mine` makes one
    name, options = parsed(line)
    settings = parse_settings(options.get("set_") or [])
    if name in ("run", "parity"):
        load(options["file"], settings)
    elif name == "study":
        only = parse_selection(options["only"] or [])
        Study(options["file"], set=settings, only=only, replications=options["replications"])
    elif name == "explain" and options["name"]:
        assert find(options["name"])
    elif name == "reproduce":
        known = {"all", *(each["name"] for each in studies())}
        assert options["new"] or options["name"] in known or Path(options["name"]).exists()
    elif name == "shell" and not (options["scenario"] or options["topology"]):
        keys = ("rate", "trace", "delay", "queue", "loss", "jitter", "slot", "overhead")
        common = {key: options[key] for key in keys if options[key] is not None}
        from_options(common, options["down"] or [], options["up"] or [], settings)


def test_every_command_and_option_in_the_text_is_one() -> None:
    for page in PAGES:
        for line in WORDS.findall(page.read_text().replace("\n", " ")):
            name, *words = line.split()[1:]
            assert name in PARSED or name.isupper(), f"{page}: {line}"
            if name.islower() and "--" not in words:
                known = {opt for param in PARSED[name].params for opt in param.opts}
                given = {word for word in words if word.startswith("--")} - {"--help"}
                assert given <= known, f"{page}: {line}"

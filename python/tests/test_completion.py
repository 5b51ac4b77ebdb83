"""Completion: offered words, and their use by bash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers import COMMAND, Aqmlab, run_program

from aqmlab.cli.complete import complete
from aqmlab.cli.completion import SCRIPTS

OFFERED = {
    "stu": ["study"],
    "run --see": ["--seed"],
    "run x.toml --set queue=fq_p": ["queue=fq_pie"],
    "run x.toml --set queue=codel --set queue.va": ["queue.variant="],
    "run x.toml --set queue=codel --set queue.variant=rfc": ["queue.variant=rfc8289"],
    "run x.toml --set transport.congestion_control=cu": ["transport.congestion_control=cubic"],
    "run x.toml --set record.le": ["record.level="],
    "run x.toml --set record.level=pa": ["record.level=packets"],
    "explain codel.ta": ["codel.target"],
    "try --access sa": ["satellite"],
    "try fq_co": ["fq_codel", "fq_cobalt"],
    "reproduce jarv": ["jarvinen2014"],
    "list stu": ["studies"],
    "new qu": ["queue", "quic-controller"],
    "shell --queue dual": ["dualpi2"],
    "try --profile ca": ["cable"],
    "attach --pid 7 --profile off": ["office"],
    "shell -- pi": [],
    "shell --queue pfi": ["pfifo"],
    'run x.toml --set "queue=cake bandw': ["queue=cake bandwidth"],
    'run x.toml --set "down.queue=cake bandwidth 5mbit pppoe-p': [
        "down.queue=cake bandwidth 5mbit pppoe-ptm"
    ],
    "shell --queue 'codel variant=lin": ["codel variant=linux"],
    "shell --queue 'red_linux ecn adapti": ["red_linux ecn adaptive"],
    "try cake 'fq_codel mem": ["fq_codel memory_limit"],
    "explain cake.sp": [],
    "run x": [],
}


@pytest.mark.parametrize("line", OFFERED)
def test_what_is_offered(line: str) -> None:
    assert complete(line.split()) == OFFERED[line]


def test_everything_is_offered_after_a_space() -> None:
    assert {"run", "study", "try", "--help"} <= set(complete([""]))
    assert "codel" in complete(["characterize", ""])
    assert complete(["try", "'cake bandwidth", ""]) == [], "a rate"
    assert {"queue=", "queue.", "links."} <= set(complete(["run", "x.toml", "--set", ""]))


def completed(shell: str, program: str, aqmlab: Aqmlab, folder: Path) -> list[str]:
    """What a program for a shell prints that has read its script, a line each."""
    script = aqmlab("completion", shell)
    assert script.returncode == 0 and script.stdout == SCRIPTS[shell]
    (folder / "script").write_text(script.stdout)
    path = {**os.environ, "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"}
    plain = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[shell]
    done = run_program([shell, plain, "-c", program], cwd=folder, env=path)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


PROGRAMS = {
    "bash": ". ./script; compopt() {{ :; }}; COMP_LINE='{line}' COMP_POINT={length}; "
    'COMP_LINE=$COMP_LINE; _aqmlab; printf "%s\\n" "${{COMPREPLY[@]}}"',
    # Outside of its line editor zsh has neither the words nor a place for completions.
    "zsh": 'compdef() {{ }}; compadd() {{ print -rl -- "${{@[${{@[(i)--]}}+1,-1]}}"; }}; '
    ". ./script; words=({line}); CURRENT={count}; _aqmlab",
    "fish": "source script; complete -C '{line}'",
}
LINES = {
    "aqmlab stu": "study",
    "aqmlab run x.toml --set queue=fq_p": "queue=fq_pie",
    "aqmlab run x.toml --set queue=codel --set queue.tar": "queue.target=",
    "aqmlab explain codel.tar": "codel.target",
    'aqmlab run x.toml --set "queue=cake besteffort bandw': "queue=cake besteffort bandwidth",
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(
    "shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in PROGRAMS]
)
def test_a_shell_completes(shell: str, line: str, aqmlab: Aqmlab, tmp_path: Path) -> None:
    if shell != "bash" and '"' in line:
        pytest.skip("words in quotes are split by bash alone")
    text = PROGRAMS[shell].format(line=line, length=len(line), count=len(line.split()))
    # Readline of bash begins a new word after `=`, outside of quotes.
    found = (
        LINES[line].removeprefix("queue=") if shell == "bash" and '"' not in line else LINES[line]
    )
    assert completed(shell, text, aqmlab, tmp_path) == [found]


@pytest.mark.needs("fish")
def test_fish_offers_files_only_where_there_is_nothing_else(aqmlab: Aqmlab, tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text("")
    asked = [f"complete -C 'aqmlab {line}'" for line in ("try --load ", "run li")]
    found = completed("fish", "source script; " + "; ".join(asked), aqmlab, tmp_path)
    assert sorted(found) == ["gaming", "home", "line.toml", "office", "rrul"]

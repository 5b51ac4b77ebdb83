"""Random command lines: no traceback, no panic, no status 70, and an end within a minute.

python -m tools.random_commands [--count N] [--seed N] [--processes SHARE] [--only INDEX]

The commands, options and types of values are those of the program itself; values come from
`random_commands.toml`.
Each command line starts in a fresh copy of a folder with good, bad and odd files. Most run in
a worker process, one after another; a share runs as processes of their own, in odd environments
(`Surroundings`). A command that takes long gets SIGINT. A command line follows
from the seed and its index alone: `--only INDEX` repeats a failure and prints its output.
Commands that would change the machine or other emulators get names that do not exist. Run by root,
the tool first makes everything but its own folder read-only, in a mount namespace of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from aqmlab import signals
from aqmlab.cli import COMMANDS, loaded, main
from aqmlab.metrics.registry import _REGISTRY
from aqmlab.report import own

PATIENCE = [1.0, 1.0, 2.0, 5.0]
"""Seconds after which a command gets SIGINT: one of these."""
HANGS = 60
"""Seconds after which a command hangs. A signal that arrives in a destructor is lost, so each third
of that there is another."""
STATUSES = {0, 1, 2, 3, 126, 127, 130, 143}
"""Statuses that commands may have: of the program that `shell` runs, too."""
STARTS_PROCESSES = ("shell", "mahimahi", "parity", "attach", "lab")
"""Commands that copy their process or serve, so they get a process of their own."""
NAMED = {("set", "name"), ("lab", "shell"), ("attach", "interface")}
"""Parameters that could name something outside the folder: these get `nosuch`."""

DATA = tomllib.loads((Path(__file__).with_suffix(".toml")).read_text(encoding="utf-8"))


def pool(values: list[str]) -> list[str]:
    """The values of a list of `random_commands.toml`."""
    found = []
    for each in values:
        if each == "<long>":
            found.append("x" * 5000)
        elif each[:1] == "<" and each[-1] == ">":
            found += pool(DATA[each[1:-1]])
        else:
            found.append(each.replace("\ufffd", "\udcff"))
    return found


ODD, FILES = pool(DATA["odd"]), pool(DATA["files"])
POOLS = {key: pool(values) for key, values in DATA["values"].items()}


RESULTS = {
    "done": ["run", "scenario.toml"],
    "studied": ["study", "study.toml"],
    "shard": ["study", "study.toml", "--shard", "1/2"],
    "shard2": ["study", "study.toml", "--shard", "2/2"],
}


def make_folder(path: Path) -> None:
    """Fills the folder that each command gets a copy of."""
    path.mkdir()
    for name, text in DATA["texts"].items():
        (path / name).write_text(text)
    for name in ("closed.toml", "mine.toml", "no\udcff.toml"):
        shutil.copy(path / "scenario.toml", path / name)
    (path / "deep.json").write_text("[" * 20_000)
    (path / "binary.toml").write_bytes(bytes(range(256)))
    (path / "x.flent.gz").write_bytes(b"\x1f\x8b\x08broken")
    (path / "folder.toml").mkdir()
    (path / "gone").symlink_to("nowhere")
    for name, words in RESULTS.items():
        made = program([*words, "--no-report", "--out", name])
        subprocess.run(made, cwd=path, check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(path / "studied", path / "torn")
    (path / "torn/manifest.json").write_text("{}")
    (path / "readonly").mkdir()
    shutil.copy(path / "scenario.toml", path / "readonly")
    shutil.copy(path / "queue.py", path / "mine.py")


def prepare(template: Path, path: Path) -> None:
    """A fresh copy of the folder, with what cannot be copied."""
    shutil.copytree(template, path, symlinks=True)
    (path / "readonly").chmod(0o555)
    (path / "closed.toml").chmod(0)


def remove(path: Path) -> None:
    """Removes the copy."""
    (path / "readonly").chmod(0o755)
    shutil.rmtree(path, ignore_errors=True)


def program(words: list[str]) -> list[str]:
    """The command line of a process."""
    return [str(Path(sys.executable).parent / "aqmlab"), *words]


@dataclass
class Surroundings:
    """What a process finds: its environment, open descriptors and limits."""

    environment: dict[str, str | None] = field(default_factory=dict)
    shell: list[str] = field(default_factory=list)
    """Redirections and limits, as the shell writes them."""

    @classmethod
    def draw(cls, rng: random.Random, *, own: bool) -> Surroundings:
        """Random surroundings; those without a process of its own are environment alone."""
        choices: dict[str, list[str | None]] = {
            "HOME": [None, "", "/nonexistent", "/dev/null", "relative"],
            "TERM": [None, "dumb", "", "xterm-256color", "nosuch"],
            "COLUMNS": ["1", "0", "-5", "x", "40", "100000"],
            "LC_ALL": ["C", "POSIX", "tr_TR.UTF-8", "xx_XX.nosuch", "ja_JP.eucJP"],
            "TMPDIR": ["/nonexistent", "/proc", "readonly", ""],
            "NO_COLOR": ["1"], "FORCE_COLOR": ["1"], "LANG": [None, "de_DE.ISO-8859-1"],
            "PYTHONIOENCODING": ["latin-1", "ascii"], "PATH": [None, "", "/nonexistent"],
            "TZ": ["Nowhere/No", ""], "XDG_CACHE_HOME": ["/proc"], "PYTHONOPTIMIZE": ["2"],
            "AQMLAB_NAME": ["x"], "SHELL": [None, "/nonexistent"],
        }  # fmt: skip
        changes = {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.2}
        if not own:
            return cls(changes)
        limits = [
            "ulimit -v 8000000",
            "ulimit -v 4000000",
            "ulimit -f 8",
            "ulimit -n 40",
            "ulimit -n 20",
            "ulimit -s 512",
        ]
        streams = [
            "<&-",
            ">&-",
            "2>&-",
            ">/dev/full",
            "2>/dev/full",
            "</dev/full",
            "| head -c 20",
            "| true",
        ]
        shell = [rng.choice(limits)] if rng.random() < 0.25 else []
        stream = [rng.choice(streams)] if rng.random() < 0.4 else []
        return cls(changes, [*shell, "|", *stream])


@dataclass(frozen=True)
class Line:
    """One command line and its surroundings."""

    words: list[str]
    around: Surroundings
    own: bool
    """True if it gets a process of its own."""
    patience: float

    @classmethod
    def draw(cls, seed: int, index: int, processes: float) -> Line:
        """The command line of this index."""
        rng = random.Random(f"{seed}/{index}")
        name = rng.choice(list(COMMANDS))
        words = [name] if rng.random() < 0.99 else [rng.choice(ODD)]
        wild = rng.choice([0.0, 0.05, 0.3])
        options = [param for param in loaded(name).params if param.param_type_name == "option"]
        parts: list[list[str]] = []
        for param in options:
            if rng.random() < 2 / (len(options) + 1):
                flag = rng.choice(param.opts)
                parts.append([flag] if param.is_flag else [flag, value(rng, name, param, wild)])
        right = shlex.split(rng.choice(DATA["right"].get(name, ["scenario.toml", "done"])))
        parts.append(right)
        if name != "set" and rng.random() < 2 * wild:
            parts.append([pick(rng, FILES, wild)])
        if rng.random() < wild:
            right.pop() if right and name != "set" else None
        if not COMMANDS[name].runs_program or rng.random() < wild:
            rng.shuffle(parts)
        words += [word for part in parts for word in part]
        own = name in STARTS_PROCESSES or rng.random() < processes
        return cls(words, Surroundings.draw(rng, own=own), own, rng.choice(PATIENCE))

    def text(self) -> str:
        """The command line, for the shell."""
        before = [
            f"{key}={shlex.quote(new)}" if new is not None else f"-u {key}"
            for key, new in self.around.environment.items()
        ]
        before.sort(key=lambda each: not each.startswith("-u"))
        shell = self.around.shell
        limits, streams = (
            ([], []) if not shell else (shell[: shell.index("|")], shell[shell.index("|") + 1 :])
        )
        quoted = (
            shlex.join(program(self.words)) if self.own else shlex.join(["aqmlab", *self.words])
        )
        line = " ".join(["env", *before, quoted] if before else [quoted])
        return "; ".join([*limits, " ".join([line, *streams])])


def pick(rng: random.Random, values: list[str], wild: float) -> str:
    """One of the first three values, which are good; a larger `wild` also any, and odd ones."""
    if rng.random() < wild:
        return rng.choice(ODD)
    return rng.choice(values if rng.random() < 4 * wild else values[:3])


def value(rng: random.Random, command: str, param: Any, wild: float) -> str:
    """A value for an option."""
    if (command, param.name) in NAMED:
        return "nosuch"
    if param.name == "pid":
        return rng.choice(["999999999", "0", "-1", "x"])
    name = str(param.metavar)
    other = FILES if "FILE" in name else POOLS["N"]
    return pick(rng, POOLS.get(f"{command} {param.opts[0]}", POOLS.get(name, other)), wild)


def fault(status: int, output: str) -> str:
    """Returns the problem of a finished command; empty without one."""
    for word in (
        "Traceback (most recent call last)",
        "panicked at",
        "AQMLAB_TRACEBACK=1 shows where",
        "Fatal Python error",
    ):
        if word in output:
            return word
    return "" if status in STATUSES else f"status {status}"


def run_alone(line: Line, path: Path) -> tuple[int, str]:
    """Runs a command line as a process; its status and its output."""
    text = f"cd {shlex.quote(str(path))}; set -o pipefail; {line.text()}"
    process = subprocess.Popen(
        ["bash", "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    again = HANGS / 3
    ends = [(line.patience, signal.SIGINT), (again, signal.SIGINT), (again, signal.SIGINT)]
    for seconds, number in (*ends, (again, signal.SIGKILL)):
        try:
            output, _ = process.communicate(timeout=seconds)
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, number)
    else:
        output, _ = process.communicate()
        return -9, f"hangs\n{output.decode(errors='replace')}"
    # -2: the shell got SIGINT. 141: the reader of its pipe ended.
    status = process.returncode
    status = 130 if status in (-2, 141) else status
    return status, output.decode(errors="replace")


def run_here(line: Line, path: Path) -> tuple[int, str]:
    """Runs a command line in this process; its status and its output."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace") for _ in range(2)
    )
    before, kept, status = Path.cwd(), dict(os.environ), 0
    for key, new in line.around.environment.items():
        os.environ.pop(key, None)
        if new is not None:
            os.environ[key] = new
    os.chdir(path)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seconds = [line.patience + each * HANGS / 3 for each in range(3)]
    timers = [threading.Timer(each, os.kill, (os.getpid(), signal.SIGINT)) for each in seconds]
    for timer in timers:
        timer.start()
    try:
        with (
            mock.patch.object(sys, "argv", ["aqmlab", *line.words]),
            mock.patch.object(sys, "stdout", out),
            mock.patch.object(sys, "stderr", err),
            mock.patch.dict(_REGISTRY),
            mock.patch.dict(own._CHARTS),
            warnings.catch_warnings(),
        ):
            main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt as error:
        status = signals.status(error)
    except BaseException:
        return 70, traceback.format_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for timer in timers:
            timer.cancel()
        os.chdir(before)
        os.environ.clear()
        os.environ.update(kept)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return status, "".join(texts)


def serve(template: Path, seed: int, processes: float) -> None:
    """Runs the command lines whose indices are on stdin in this process, and prints results."""
    reports = os.fdopen(os.dup(1), "w")
    folder = template.parent / f"worker{os.getpid()}"
    for index in sys.stdin:
        prepare(template, folder)
        try:
            result = run_here(Line.draw(seed, int(index), processes), folder)
        except KeyboardInterrupt:  # SIGINT at the last moment
            result = (130, "")
        remove(folder)
        print(json.dumps(result), file=reports, flush=True)
        if result[0] > 128:
            return  # The interrupted import of a module leaves a part of it.


class Worker:
    """A process that runs command lines one after another; a dead one is replaced."""

    def __init__(self, template: Path, seed: int, processes: float) -> None:
        self.template, self.seed, self.processes = template, seed, processes
        self.process: subprocess.Popen[str] | None = None

    def run(self, index: int) -> tuple[int, str]:
        """Status and output of the command line of this index."""
        line = Line.draw(self.seed, index, self.processes)
        if line.own:
            folder = self.template.parent / f"own{index}"
            prepare(self.template, folder)
            result = run_alone(line, folder)
            remove(folder)
            return result
        if self.process is None:
            self._start()
        assert self.process and self.process.stdin and self.process.stdout
        killer = threading.Timer(HANGS, self.process.kill)
        killer.start()
        print(index, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        killer.cancel()
        if not answer:
            status, self.process = self.process.wait(), None
            return status, "the worker process died, or was killed because it hung"
        status, output = json.loads(answer)
        if status > 128:
            self.end()
        return int(status), str(output)

    def _start(self) -> None:
        words = [
            "--serve",
            str(self.template),
            "--seed",
            str(self.seed),
            "--processes",
            str(self.processes),
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tools.random_commands", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def end(self) -> None:
        """Ends the process."""
        if self.process and self.process.stdin:
            self.process.stdin.close()
            self.process.wait()
        self.process = None


def check(
    template: Path, indices: range, settings: argparse.Namespace
) -> Iterator[tuple[int, int, str]]:
    """Runs command lines: index, status and output of each."""
    worker = Worker(template, settings.seed, settings.processes)
    try:
        for index in indices:
            yield index, *worker.run(index)
    finally:
        worker.end()


def arguments() -> argparse.Namespace:
    """The command line of this tool."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, metavar="INDEX")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=float, default=0.1, metavar="SHARE")
    parser.add_argument("--only", type=int, metavar="INDEX")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


CONFINED = """
mount --bind "$1" "$1" || exit 1
mount -o remount,bind,ro / && mount -o remount,bind,ro /dev || exit 1
cd "$2" && shift 2 && exec setpriv --bounding-set=-dac_override,-dac_read_search "$@"
"""
"""Makes everything but a folder read-only, in a mount namespace, and gives up root's right to write
everywhere: a read-only folder is one for root too."""


def confine(folder: Path) -> None:
    """Runs the tool again, so that commands of root can write to `folder` only: random names reach
    files and devices of the machine."""
    inner = [sys.executable, "-m", "tools.random_commands", *sys.argv[1:], "--in", str(folder)]
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", CONFINED, "sh"]
    done = subprocess.run([*words, str(folder), str(Path.cwd()), *inner], check=False)
    raise SystemExit(done.returncode)


def is_confined() -> bool:
    """True if /dev and / cannot be written to."""
    return not any(os.access(place, os.W_OK) for place in ("/", "/dev", "/etc", "/usr"))


def run() -> int:
    """Runs the tool; 1 if a command failed."""
    settings = arguments()
    if settings.serve:
        serve(settings.serve, settings.seed, settings.processes)
        return 0
    if settings.folder:
        return run_in(settings.folder, settings)
    with tempfile.TemporaryDirectory(prefix="aqmlab-commands-") as name:
        if os.geteuid() == 0:
            confine(Path(name))
        return run_in(Path(name), settings)


def run_in(folder: Path, settings: argparse.Namespace) -> int:
    """Runs the command lines in a folder; 1 if one failed."""
    if not is_confined():
        raise SystemExit("random commands of root could damage this machine; nothing was run")
    os.environ["TMPDIR"] = str(folder)
    indices = range(settings.first, settings.first + settings.count)
    if settings.only is not None:
        indices = range(settings.only, settings.only + 1)
    statuses: Counter[int] = Counter()
    failures = 0
    template = folder / "template"
    make_folder(template)
    for index, status, output in check(template, indices, settings):
        statuses[status] += 1
        problem = fault(status, output)
        if problem or settings.only is not None:
            line = Line.draw(settings.seed, index, settings.processes)
            what = f"seed {settings.seed}, index {index}: {problem or f'status {status}'}"
            text = f"{what}\n  {line.text()}\n{output[-3000:]}\n"
            print(text.encode(errors="backslashreplace").decode(), flush=True)
        failures += bool(problem)
    counts = ", ".join(f"{each} with status {status}" for status, each in sorted(statuses.items()))
    print(f"{len(indices)} command lines of seed {settings.seed}: {failures} failed ({counts})")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(run())

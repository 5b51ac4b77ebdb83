"""Random command lines: no traceback, no panic, no status 70, and an end within a minute.

python -m tools.random_commands [--count N] [--seed N] [--processes SHARE] [--only INDEX]

The commands, options and types of values are those of the program itself; values come from
`random_commands.toml`.
Each command line starts in a fresh copy of a folder with good, bad and odd files. Most run in a
copy of this process, which has loaded aqmlab; a share starts the program itself, in odd
environments (`Surroundings`). A command that takes long gets SIGINT. A command line follows
from the seed and its index alone: `--only INDEX` repeats a failure and prints its output.
Commands that would change the machine or other emulators get names that do not exist. Run by root,
the tool first makes everything but its own folder read-only, in a mount namespace of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pkgutil
import random
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import aqmlab
from aqmlab import libraries
from aqmlab.__main__ import main
from aqmlab.cli import COMMANDS, RUN_PROGRAMS, loaded

PATIENCE = [1.0, 1.0, 2.0, 5.0]
"""Seconds after which a command gets SIGINT: one of these."""
HANGS = 60
"""Seconds after which a command hangs. A signal that arrives in a destructor is lost, so each third
of that there is another."""
STATUSES = {0, 1, 2, 3, 126, 127, 130, 143}
"""Statuses that commands may have: of the program that `shell` runs, too."""
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
            "ulimit -v 1000000",
            "ulimit -v 400000",
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
        if name not in RUN_PROGRAMS or rng.random() < wild:
            rng.shuffle(parts)
        words += [word for part in parts for word in part]
        own = rng.random() < processes
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


def load_everything() -> None:
    """Loads all that commands load: their copies of this process then start at once."""
    for module in pkgutil.walk_packages(aqmlab.__path__, "aqmlab."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    _ = libraries.polars


def run_here(line: Line, path: Path) -> tuple[int, str]:
    """Runs a command line in a copy of this process; its status and its output."""
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        process = os.fork()
        if not process:
            command(line, path, output.fileno())
        again = HANGS / 3
        ended = os.pidfd_open(process)
        for seconds in (line.patience, again, again, again):
            if select.select([ended], [], [], seconds)[0]:
                break
            os.kill(process, signal.SIGINT)
        else:
            os.kill(process, signal.SIGKILL)
        os.close(ended)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        output.seek(0)
        text = output.read().decode(errors="replace")
        # -2: SIGINT arrived in the last moments of the command.
        return {-2: 130}.get(status, status), f"hangs\n{text}" if status == -9 else text


def command(line: Line, path: Path, output: int) -> NoReturn:
    """Becomes the command, in a copy of this process."""
    status = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
        for key, new in line.around.environment.items():
            os.environ.pop(key, None)
            if new is not None:
                os.environ[key] = new
        os.chdir(path)
        sys.argv = ["aqmlab", *line.words]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(status)


def check(
    template: Path, indices: range, settings: argparse.Namespace
) -> Iterator[tuple[int, int, str]]:
    """Runs command lines: index, status and output of each."""
    load_everything()
    for index in indices:
        line = Line.draw(settings.seed, index, settings.processes)
        # One in four is in a folder whose name is no UTF-8.
        folder = template.parent / (f"own{index}" if index % 4 else f"own{index}\udcff")
        prepare(template, folder)
        yield index, *(run_alone if line.own else run_here)(line, folder)
        remove(folder)


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

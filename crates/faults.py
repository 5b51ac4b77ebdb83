"""Plants faults in the crates, all in one build, and reports which the crates' tests miss.

`make faults` plants the faults of `faults.toml` and generated ones: comparisons, bounds and
statements changed one at a time. `python3 crates/faults.py WORD ...` plants those whose file or
description contains a word; `--count N` generates about N faults; `--check` only checks that the
faults of `faults.toml` can be planted.

Each fault replaces an expression of a copy of the tree (target/faults) by
`if planted(NUMBER) { changed } else { original }`; an environment variable selects the fault. A
first run without a fault records which tests reach which fault, so that only those run again. The
working tree and normal builds do not change.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "faults" / "tree"
BUILT = ROOT / "target" / "faults" / "built"
"""Not the tree's own folder: cargo would take the copy's crates for those of the tree."""
COPIED = ("crates", "examples", "python/aqmlab/conformance/recorded", "Cargo.toml", "Cargo.lock")
CRATES = ("aqmlab-aqm", "aqmlab-tcp")
ATTEMPTS = 4
"""Attempts to build: generated faults that do not compile are left out."""
CASES = 20
"""Random cases of a property, of which there are 256 by default."""
BATCH = 1.0
"""Seconds of the first batch of tests with a fault; each next one has four times as many."""

FAULTS = 4096
"""The most faults in one build."""

SWITCH = """
#[doc(hidden)]
#[allow(missing_docs, clippy::all, clippy::disallowed_methods)]
pub mod planted {
    extern crate std;
    use std::{cell::Cell, env, format, fs, io::Write, string::String, string::ToString};
    use std::{sync::LazyLock, thread, time::Instant};

    static ACTIVE: LazyLock<u32> = LazyLock::new(|| {
        env::var("PLANTED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    });
    static LOG: LazyLock<Option<String>> = LazyLock::new(|| env::var("PLANTED_LOG").ok());

    struct Reached(Instant, [Cell<bool>; FAULTS]);
    impl Drop for Reached {
        fn drop(&mut self) {
            let Some(path) = &*LOG else { return };
            let name = thread::current().name().unwrap_or("").to_string();
            let numbers = (0..FAULTS).filter(|number| self.1[*number].get());
            let numbers: std::vec::Vec<String> = numbers.map(|number| number.to_string()).collect();
            let seconds = self.0.elapsed().as_secs_f64();
            let line = format!("{name}\\t{seconds}\\t{}\\n", numbers.join(" "));
            let file = fs::OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a log");
        }
    }
    std::thread_local! {
        static REACHED: Reached = Reached(Instant::now(), [const { Cell::new(false) }; FAULTS]);
    }

    #[inline]
    pub fn planted(number: u32) -> bool {
        if LOG.is_some() {
            let _ = REACHED.try_with(|reached| reached.1[number as usize].set(true));
        }
        *ACTIVE == number
    }
}
""".replace("FAULTS", str(FAULTS))


@dataclass
class Fault:
    """A change of the text from `start` to `end` of a file."""

    file: Path
    start: int
    end: int
    old: str
    new: str
    what: str = ""
    beside: bool = False
    number: int = 0

    @property
    def line(self) -> int:
        """Number of the line on which it starts."""
        return text_of(self.file).count("\n", 0, self.start) + 1

    def woven(self) -> str:
        """Text with both forms and a switch; it has as many lines as the original."""
        path = "crate" if self.file.parts[1] == "aqmlab-core" else "aqmlab_core"
        switch = f"if {path}::planted::planted({self.number})"
        if self.old.endswith(";"):
            return f"{switch} {{ {self.new} }} else {{ {self.old} }}"
        return f"({switch} {{ {self.new} }} else {{ {self.old} }})"

    def __str__(self) -> str:
        return self.what or f"{self.file}:{self.line}: `{self.old}` -> `{self.new or 'nothing'}`"


@dataclass
class Program:
    """A compiled program of tests."""

    path: Path
    home: Path
    tests: dict[str, float] = field(default_factory=dict)
    reaching: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Crate and name of the target."""
        return f"{self.home.name} {self.path.name.rsplit('-', 1)[0]}"

    @property
    def is_library(self) -> bool:
        """True if it contains the unit tests of its crate."""
        return self.path.name.startswith(self.home.name.replace("-", "_"))

    def batches(self, fault: int) -> list[list[str]]:
        """Returns the tests that reach a fault, the fastest first, in growing batches."""
        names = sorted(filter(None, self.reaching[fault]), key=lambda name: self.tests[name])
        batches: list[list[str]] = []
        spent, room = 0.0, BATCH
        for name in names:
            if not batches or spent + self.tests[name] > room:
                room = max(self.tests[name], room * (4 if batches else 1))
                batches.append([])
                spent = 0.0
            batches[-1].append(name)
            spent += self.tests[name]
        return batches + ([[]] if "" in self.reaching[fault] else [])

    def limit(self, tests: list[str]) -> float:
        """Returns the seconds after which tests count as without an end."""
        return 10 + 4 * sum(self.tests[name] for name in tests or self.tests)

    def run(
        self, tests: list[str], limit: float | None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs some of its tests, or all."""
        return subprocess.run(
            (str(self.path), *(["--exact", *tests] if tests else [])),
            env=os.environ | {"PROPTEST_CASES": f"{CASES}"} | variables,
            cwd=self.home,
            timeout=limit,
            capture_output=True,
            text=True,
            errors="replace",
        )


def write(file: Path, content: bytes) -> None:
    """Writes a file of the copy unless unchanged: older files are not compiled again."""
    target = COPY / file
    if not target.is_file() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def copy_tree(except_for: frozenset[Path] = frozenset()) -> None:
    """Makes the copy the same as the working tree."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COPIED)
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = {Path(name) for name in names.split("\0") if name and (ROOT / name).is_file()}
    for old in COPY.rglob("*"):
        if old.is_file() and old.relative_to(COPY) not in files:
            old.unlink()
    for file in files - except_for:
        write(file, (ROOT / file).read_bytes())


def cargo(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs cargo in the copy."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(BUILT)}
    words = ("cargo", command, "--quiet", *arguments)
    return subprocess.run(words, cwd=COPY, env=environment, capture_output=True, text=True)


def messages(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The messages of cargo."""
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@cache
def text_of(file: Path) -> str:
    """Text of a file of the working tree when it was first read."""
    return (ROOT / file).read_text(encoding="utf-8")


def listed() -> list[Fault]:
    """The faults of `faults.toml`."""
    faults = []
    for fault in tomllib.loads((ROOT / "crates/faults.toml").read_text(encoding="utf-8"))["fault"]:
        file = Path("crates") / fault["crate"] / fault["file"]
        text = text_of(file)
        count = text.count(fault["old"])
        if count != 1:
            sys.exit(f"crates/faults.toml: {fault['what']}: `old` is {count} times in {file}")
        start = text.index(fault["old"])
        ends = start, start + len(fault["old"])
        beside = fault.get("beside", False)
        faults.append(Fault(file, *ends, fault["old"], fault["new"], fault["what"], beside))
    return faults


COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARISON = re.compile(r"(?<= )(<|<=|>|>=|==|!=)(?= )")
BOUND = re.compile(r"\.(min|max)\(")
STATEMENT = re.compile(r"^\s+(self\.[\w.\[\]]+ ([-+]?=) [^{}|]*;|self\.[\w.]+\([^{}|]*\);)$")
LEFT = re.compile(r"(?:\(|\[|\bif |\bwhile |&& |\|\| |[^=<>!]= |=> |\breturn |, |\| |\{ |!)$")
RIGHT = re.compile(r" && | \|\| | \{| =>|\)|\]|;|,| \}| as |$")
LEFT_OUT = re.compile(r"(^|/)(tests|\w+_tests|testing|custom|registry|words)(\.rs|/)|/lib\.rs$")


def operands(line: str, start: int, end: int) -> tuple[int, int] | None:
    """Span of the comparison whose operator is `line[start:end]`, if it lies on the line."""
    left, depth = start, 0
    while left > 0 and not (depth == 0 and LEFT.search(line, max(0, left - 7), left)):
        depth += (line[left - 1] in ")]") - (line[left - 1] in "([")
        left -= 1
    left += len(line[left:]) - len(line[left:].lstrip())
    right, depth = end, 0
    while right < len(line):
        depth += (line[right] in "([") - (line[right] in ")]")
        if depth < 0 or (depth == 0 and RIGHT.match(line, right) and line[right] not in ")]"):
            break
        right += 1
    return (left, right) if line[left:start].strip() and line[end:right].strip() else None


def receiver(line: str, end: int) -> int:
    """Start of the expression before the method call at `end`."""
    start, depth = end, 0
    while start > 0:
        letter = line[start - 1]
        depth += (letter in ")]") - (letter in "([")
        if depth < 0 or (depth == 0 and not re.match(r"[\w.:\[(]", letter)):
            break
        start -= 1
    return start


def changes(line: str) -> list[tuple[int, int, str]]:
    """Changes of a line: start, end and new text."""
    found = []
    if statement := STATEMENT.match(line):
        sign = statement[2]
        swapped = {"+=": "-=", "-=": "+="}.get(sign)
        new = statement[1].replace(sign, swapped, 1) if swapped else ""
        return [(*statement.span(1), new)]
    for match in COMPARISON.finditer(line):
        if span := operands(line, *match.span()):
            before, after = line[span[0] : match.start()], line[match.end() : span[1]]
            found.append((*span, before + COMPARISONS[match[1]] + after))
    for match in BOUND.finditer(line):
        start, end = receiver(line, match.start()), match.end()
        depth = 1
        while end < len(line) and depth:
            depth += (line[end] == "(") - (line[end] == ")")
            end += 1
        if not depth and start < match.start():
            other = "max" if match[1] == "min" else "min"
            rest = line[match.end() : end]
            found.append((start, end, f"{line[start : match.start()]}.{other}({rest}"))
    return found


def generated() -> list[Fault]:
    """All faults that rules make of the crates' code, without that of tests."""
    faults = []
    for crate in CRATES:
        for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            file = path.relative_to(ROOT)
            if LEFT_OUT.search(file.as_posix()):
                continue
            text = re.split(r"#\[cfg\(test\)\]\nmod \w+ \{", text_of(file))[0]
            offset = 0
            for line in text.splitlines(keepends=True):
                code = line.rstrip("\n")
                if not re.match(r"\s*(//|#|use |const |static |(debug_)?assert)", code):
                    faults += [
                        Fault(file, offset + start, offset + end, code[start:end], new)
                        for start, end, new in changes(code)
                        if '"' not in code
                    ]
                offset += len(line)
    return faults


def choose(own: list[Fault], made: list[Fault], count: int) -> list[Fault]:
    """The faults to plant: none overlaps another, the generated ones evenly spread."""
    chosen = list(own)
    for fault in made[:: max(1, len(made) // max(1, count))] if count else []:
        others = (other for other in chosen if other.file == fault.file)
        if all(fault.end <= other.start or other.end <= fault.start for other in others):
            chosen.append(fault)
    for number, fault in enumerate(chosen, 1):
        fault.number = number
    return chosen


def plant(faults: list[Fault]) -> None:
    """Writes the copy with all faults and the switch."""
    switch = Path("crates/aqmlab-core/src/lib.rs")
    files = frozenset(fault.file for fault in faults) | {switch}
    copy_tree(except_for=files)
    for file in files:
        text = text_of(file)
        for fault in sorted(faults, key=lambda fault: -fault.start):
            if fault.file == file:
                text = text[: fault.start] + fault.woven() + text[fault.end :]
        write(file, (text + SWITCH * (file == switch)).encode())


def build(faults: list[Fault], crates: tuple[str, ...]) -> tuple[list[Fault], list[Program]]:
    """Compiles the tests of crates with the faults, without the generated ones that do not compile.

    Returns the planted faults and the programs of tests.
    """
    packages = [word for crate in crates for word in ("-p", crate)]
    for _ in range(ATTEMPTS):
        plant(faults)
        done = cargo("test", "--no-run", "--message-format=json", "--lib", "--tests", *packages)
        if not done.returncode:
            return faults, [
                Program(Path(executable), Path(message["manifest_path"]).parent)
                for message in messages(done)
                if (executable := message.get("executable"))
            ]
        wrong = {
            (Path(span["file_name"]), span["line_start"])
            for message in messages(done)
            if message.get("reason") == "compiler-message"
            and message["message"]["level"] == "error"
            for span in message["message"]["spans"]
        }
        left_out = [fault for fault in faults if (fault.file, fault.line) in wrong]
        if own := [fault.what for fault in left_out if fault.what]:
            sys.exit(f"faults of crates/faults.toml that do not compile: {'; '.join(own)}")
        if not left_out:
            sys.exit(f"does not compile: {sorted(wrong)}\n{done.stderr}")
        faults = [fault for fault in faults if fault not in left_out]
    sys.exit("the generated faults do not compile")


def record(programs: list[Program]) -> None:
    """Runs all tests without a fault, and records which faults each test reaches."""
    log = COPY.parent / "reached"
    for program in programs:
        log.unlink(missing_ok=True)
        began = time.monotonic()
        done = program.run([], None, PLANTED_LOG=str(log))
        program.seconds = time.monotonic() - began
        if done.returncode:
            sys.exit(f"{program.name} fails without a fault:\n{done.stdout}{done.stderr}")
        for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else ():
            test, seconds, numbers = line.split("\t")
            # Threads that a test starts have no name: all tests of the program then run.
            name = "" if test == "main" else test
            program.tests[name] = max(program.tests.get(name, 0.0), float(seconds))
            for number in numbers.split():
                program.reaching[int(number)].add(name)


@dataclass(frozen=True)
class Verdict:
    """The test that catches a fault."""

    test: str
    is_beside: bool


def judge(fault: Fault, programs: list[Program]) -> Verdict | None:
    """Runs the tests that reach a fault, the fastest first; `None` if all pass."""
    crate = fault.file.parts[1]

    def beside(program: Program) -> bool:
        return program.home.name == crate and program.is_library

    for program in sorted(programs, key=lambda program: (not beside(program), program.seconds)):
        if fault.beside and not beside(program):
            break
        for tests in program.batches(fault.number):
            limit = program.limit(tests)
            try:
                done = program.run(tests, limit, PLANTED=f"{fault.number}")
            except subprocess.TimeoutExpired:
                return Verdict(f"no end within {limit:.0f} s", beside(program))
            if done.returncode:
                failed = re.findall(r"^    ([a-z]\w*(?:::\w+)*)$", done.stdout, flags=re.MULTILINE)
                test = f"{program.name}: {failed[0] if failed else done.returncode}"
                return Verdict(test, beside(program))
    return None


def main() -> None:
    """Exits with 1 if a fault of `faults.toml` survives (with `--own` a fault beside its code)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="in a file's name or a description"
    )
    parser.add_argument("--count", type=int, default=150, help="generated faults (150)")
    parser.add_argument(
        "--own", action="store_true", help="without the recorded cases, which take longer to build"
    )
    parser.add_argument("--check", action="store_true", help="only see whether each can be planted")
    arguments = parser.parse_args()
    own = listed()
    if arguments.check:
        return
    words = arguments.words
    faults = [
        fault
        for fault in choose(own, generated(), arguments.count)
        if not words or any(word in f"{fault} {fault.file}" for word in words)
    ]
    began = time.monotonic()
    crates = CRATES if arguments.own else (*CRATES, "aqmlab-conformance")
    faults, programs = build(faults, crates)
    built = time.monotonic()
    record(programs)
    recorded = time.monotonic()
    reached = [fault for fault in faults if any(p.reaching[fault.number] for p in programs)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(lambda fault: judge(fault, programs), faults)
        caught, beside = [], 0
        for fault, verdict in zip(faults, verdicts, strict=True):
            missing = "SURVIVES" if fault in reached else "is in no test"
            print(f"{fault}: {f'caught by {verdict.test}' if verdict else missing}", flush=True)
            if verdict:
                caught.append(fault)
                beside += verdict.is_beside
    needed = [fault for fault in faults if fault.beside or (fault.what and not arguments.own)]
    lost = [fault for fault in needed if fault not in caught]
    print(
        f"{len(caught)} of {len(faults)} faults caught, {beside} by unit tests; "
        f"{len(lost)} of the {len(needed)} that must be are not; "
        f"{built - began:.0f} s to build, {recorded - built:.0f} s without a fault, "
        f"{time.monotonic() - recorded:.0f} s with faults"
    )
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()

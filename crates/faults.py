"""Plants faults in the crates, one after another, and reports which the crates' tests miss.

`make faults` runs all; `python3 crates/faults.py WORD ...` those whose file or description holds
one of the words; `--check` only makes sure that each can be planted. The faults are in
`faults.toml`. They are planted in a copy under target/faults: the working tree is not touched.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "faults" / "tree"
COPIED = ("crates", "examples", "python/aqmlab/conformance/recorded", "Cargo.toml", "Cargo.lock")
TIMEOUT = 1800
"""Seconds: a fault may make a test run for ever. Such a fault is caught."""


def planted(fault: dict[str, str], tree: Path) -> tuple[Path, str]:
    """The file of a fault in a tree, and its content with the fault."""
    file = Path("crates") / fault["crate"] / fault["file"]
    text = (tree / file).read_text(encoding="utf-8")
    count = text.count(fault["old"])
    if count != 1:
        sys.exit(f"crates/faults.toml: {fault['what']}: `old` is {count} times in {file}, not once")
    return file, text.replace(fault["old"], fault["new"])


def write(file: Path, content: bytes) -> None:
    """Writes a file of the copy unless unchanged: older files are not compiled again."""
    target = COPY / file
    if not target.is_file() or target.read_bytes() != content:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def copy_tree() -> None:
    """Makes the copy the same as the working tree."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *COPIED)
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = {Path(name) for name in names.split("\0") if name and (ROOT / name).is_file()}
    for old in COPY.rglob("*"):
        if old.is_file() and old.relative_to(COPY) not in files:
            old.unlink()
    for file in files:
        write(file, (ROOT / file).read_bytes())


def cargo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `cargo test` in the copy, with the libraries that are built for the tree already."""
    environment = {"CARGO_TARGET_DIR": str(ROOT / "target")} | os.environ
    command = ("cargo", "test", "--quiet", *arguments)
    return subprocess.run(
        command, cwd=COPY, env=environment, timeout=TIMEOUT, capture_output=True, text=True
    )


def targets(crate: str, file: str | None = None) -> list[list[str]]:
    """Stages to run, the tests beside the fault first and the recorded cases last."""
    unit = ["-p", crate, "--lib"]
    everything = [unit, ["-p", crate, "--tests"], ["-p", "aqmlab-conformance", "--tests"]]
    if file is None:
        return everything
    parts = [part.removesuffix(".rs") for part in Path(file).parts[1:]]
    module = "::".join(part for part in parts[:2] if part != "mod")
    return [[*unit, "--", module], *everything]


def run_tests(stages: list[list[str]]) -> str | None:
    """Failures of a crate's tests; `None` if all passed."""
    for stage in stages:
        options = stage[: stage.index("--")] if "--" in stage else stage
        built = cargo(*options, "--no-run")
        if built.returncode:
            sys.exit(f"does not compile:\n{built.stderr}")
        try:
            done = cargo(*stage)
        except subprocess.TimeoutExpired:
            return f"no end within {TIMEOUT} s"
        if done.returncode:
            failed = re.findall(r"^    ([a-z]\w*(?:::\w+)*)$", done.stdout, flags=re.MULTILINE)
            return ", ".join(dict.fromkeys(failed)) or done.stdout.strip().splitlines()[-1]
    return None


def survives(fault: dict[str, str]) -> bool:
    """Plants a fault in the copy and runs the tests of its crate."""
    file, content = planted(fault, COPY)
    original = (COPY / file).read_bytes()
    write(file, content.encode())
    try:
        failed = run_tests(targets(fault["crate"], fault["file"]))
    finally:
        write(file, original)
    verdict = "SURVIVES" if failed is None else f"caught by {failed}"
    print(f"{fault['what']}: {verdict}", flush=True)
    return failed is None


def main() -> None:
    """Exits with 1 if a fault survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="in a file's name or a description"
    )
    parser.add_argument("--check", action="store_true", help="only see whether each can be planted")
    arguments = parser.parse_args()
    faults = tomllib.loads((ROOT / "crates/faults.toml").read_text(encoding="utf-8"))["fault"]
    words = arguments.words
    faults = [
        fault
        for fault in faults
        if not words or any(word in fault["what"] + fault["file"] for word in words)
    ]
    for fault in faults:
        planted(fault, ROOT)
    if arguments.check:
        return
    copy_tree()
    print("the tests without a fault ...", flush=True)
    for crate in dict.fromkeys(fault["crate"] for fault in faults):
        if failed := run_tests(targets(crate)):
            sys.exit(f"{crate} fails without a fault: {failed}")
    survivors = sum([survives(fault) for fault in faults])
    print(f"{len(faults) - survivors} of {len(faults)} faults caught")
    sys.exit(survivors > 0)


if __name__ == "__main__":
    main()

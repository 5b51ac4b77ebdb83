"""Finds circles of source files, and names that stand for two types of a crate.

`python3 crates/structure.py` reads the sources without their tests. Files must not use each other,
directly or through others, by paths that begin with `crate`, `super`, `self` or a child module. It
exits with 1 if it finds something; `make lint` runs it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent
CRATES = ("aqmlab-aqm", "aqmlab-tcp")


def modules_of(root: Path) -> dict[tuple[str, ...], str]:
    """Code of each file by the path of its module, without tests, comments and visibilities."""
    found = {}
    for file in root.rglob("*.rs"):
        parts = file.relative_to(root).with_suffix("").parts
        if not parts[-1].endswith("tests") and parts[-1] != "testing":
            code = file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0]
            code = re.sub(r"//.*|\bpub\([^)]*\)", "", code)
            found[parts[:-1] if parts[-1] in ("mod", "lib") else parts] = code
    return found


def paths_in(code: str) -> list[str]:
    """Paths in the code; those in the braces of a `use` with what precedes the braces."""
    paths = re.findall(r"\w+(?:::\w+)+", code)
    for tree in re.findall(r"\buse ([^;]+);", code):
        before = [""]
        for head, close, path in re.findall(r"((?:\w+::)*)\{|(\})|(\w+(?:::\w+)*)", tree):
            if close:
                before.pop()
            elif path:
                paths.append(before[-1] + path)
            else:
                before.append(before[-1] + head)
    return paths


def used_by(module: tuple[str, ...], modules: dict[tuple[str, ...], str]) -> set[tuple[str, ...]]:
    """Modules whose files a file uses."""
    used = set()
    children = {other[-1] for other in modules if other and other[:-1] == module}
    for path in paths_in(modules[module]):
        first, *rest = path.split("::")
        if first == "crate":
            full = rest
        elif first in ("super", "self"):
            up = (first, *rest)
            base = list(module)
            while up and up[0] in ("super", "self"):
                base = base[:-1] if up[0] == "super" else base
                up = up[1:]
            full = [*base, *up]
        elif first in children and rest:
            full = [*module, first, *rest]
        else:
            continue
        prefixes = (tuple(full[:length]) for length in range(len(full), -1, -1))
        used.add(next(prefix for prefix in prefixes if prefix in modules))
    return used - {module}


def circle_in(crate: str) -> list[str]:
    """Circle of units in the crate, or nothing.

    A unit is a file, or a folder with all that is in it; in the folder of a catalogue each file and
    folder is a unit. The root of a crate only re-exports.
    """
    modules = modules_of(ROOT / crate / "src")
    catalogues = {
        module for module, code in modules.items() if re.search(r"^ *catalogue! \{", code, re.M)
    }

    def unit(module: tuple[str, ...]) -> str:
        return "::".join(module[: 2 if module[:1] in catalogues else 1])

    graph: dict[str, set[str]] = {}
    for module in modules:
        used = {unit(other) for other in used_by(module, modules)}
        graph.setdefault(unit(module), set()).update(used - {"", unit(module)})
    try:
        TopologicalSorter({name: used for name, used in graph.items() if name}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def shared_names(crate: str) -> list[str]:
    """Names that stand for two types or traits of the crate. The controls of Linux have the names
    of those that follow papers."""
    types = r"^ *(?:pub )?(?:struct|enum|trait) (\w+)"
    modules = modules_of(ROOT / crate / "src").items()
    sources = [code for module, code in modules if module[:2] != ("linux", "control")]
    counts = Counter(name for code in sources for name in re.findall(types, code, re.M))
    return [name for name, count in counts.items() if count > 1]


def main() -> None:
    """Exits with 1 if there is a circle or a name of two types."""
    circles = {crate: circle_in(crate) for crate in CRATES}
    names = {each.name: shared_names(each.name) for each in sorted(ROOT.glob("aqmlab-*"))}
    for crate, circle in circles.items():
        if circle:
            print(f"{crate}: files use each other in a circle: {' <- '.join(circle)}")
    for crate, shared in names.items():
        if shared:
            print(f"{crate}: one name for two types: {', '.join(shared)}")
    if any((*circles.values(), *names.values())):
        sys.exit(1)


if __name__ == "__main__":
    main()

"""Makes docs/lab/index.html: the engine, the page and the tours in one file.

`make lab` builds the engine for wasm32-wasip1 and runs this. The page carries the digest of all that
it is made from; `--digest` prints that of the sources as they are.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "lab" / "index.html"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
ENGINE = BUILT / "wasm32-wasip1" / "web" / "aqmlab_web.wasm"
CRATES = ("aqmlab-core", "aqmlab-aqm", "aqmlab-tcp", "aqmlab-sim", "aqmlab-quic", "aqmlab-web")
# In the order in which they are loaded.
SCRIPTS = (
    *("engine", "scene", "lab", "queues", "charts", "words"),
    *("knobs", "tours", "out", "live", "main"),
)
MOST_BYTES = 2_000_000
MOST_PACKED = 1_500_000


def sources() -> list[Path]:
    """All that the page is made from, apart from the versions in Cargo.lock."""
    found = [path for crate in CRATES for path in (ROOT / "crates" / crate / "src").rglob("*.rs")]
    found += [path for folder in ("page", "tours") for path in (HERE / folder).iterdir()]
    return sorted([*found, Path(__file__).resolve()])


def digest() -> str:
    """SHA-256 of the sources and their names."""
    state = hashlib.sha256()
    for path in sources():
        content = path.read_bytes()
        state.update(f"{path.relative_to(ROOT).as_posix()} {len(content)}\n".encode())
        state.update(content)
    return state.hexdigest()


def in_script(text: str) -> str:
    """JSON that is safe in a script element."""
    return text.replace("</", "<\\/").replace("<!--", "<\\!--")


def in_order(path: Path) -> int:
    """The number at the beginning of a tour's name."""
    return int(path.name.split("-")[0])


def page(engine: bytes) -> str:
    """The page."""
    part = {path.name: path.read_text(encoding="utf-8") for path in (HERE / "page").iterdir()}
    tours = [
        tomllib.loads(path.read_text("utf-8"))
        for path in sorted((HERE / "tours").glob("*.toml"), key=in_order)
    ]
    scripts = "\n".join(part[f"{name}.js"] for name in SCRIPTS)
    packed = base64.b64encode(gzip.compress(engine, 9, mtime=0)).decode()
    return (
        part["index.html"]
        .replace("@STYLE@", part["style.css"])
        .replace("@SCRIPT@", f'"use strict";\n(() => {{\n{scripts}\n}})();\n')
        .replace("@TOURS@", in_script(json.dumps(tours, ensure_ascii=False)))
        .replace("@SOURCES@", digest())
        .replace("@ENGINE@", packed)
    )


def main() -> None:
    """Writes the page, or prints the digest."""
    if "--digest" in sys.argv:
        print(digest())
        return
    text = page(ENGINE.read_bytes())
    size, small = len(text.encode()), len(gzip.compress(text.encode(), 9))
    if size > MOST_BYTES or small > MOST_PACKED:
        sys.exit(f"the page is too large: {size} bytes, {small} packed")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {size / 1e6:.2f} MB, {small / 1e6:.2f} MB packed")


main()

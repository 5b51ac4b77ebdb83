"""Makes the pictures of docs/gallery.md from the code on the page.

python -m tools.gallery [NAME]...
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "images" / "gallery"


def blocks() -> dict[str, str]:
    """The code on the page, by the name of the picture that it saves."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return {_picture(code): code for code in found}


def _picture(code: str) -> str:
    (name,) = re.findall(r'\.save\("([\w-]+)\.svg"\)', code)
    return str(name)


def main(names: list[str]) -> None:
    """Runs the blocks and writes their pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    os.chdir(PICTURES)
    for name, code in blocks().items():
        if not names or name in names:
            start = time.monotonic()
            exec(compile(code, f"{PAGE.name}: {name}", "exec"), {})
            size = (PICTURES / f"{name}.svg").stat().st_size
            print(f"{name}: {time.monotonic() - start:.1f} s, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])

"""A new study that runs: `aqmlab reproduce --new NAME`, also as a copy of another."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import tomli_w

from aqmlab.errors import input_error
from aqmlab.report.document import write_text
from aqmlab.reproduce.catalogue import place

TEMPLATE = Path(__file__).parent.parent / "templates" / "reproduction"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def copy(study: str, name: str) -> Path:
    """Makes a copy of a study as the folder `name` of the working directory; returns its path.

    Raises `InputError` for an unknown study, a name that cannot be one or a folder that is there,
    `StorageError` if it cannot be written.
    """
    found = place(study)
    files = [found.file] if found.file else sorted(found.folder.iterdir())
    texts = {}
    for file in files:
        if file.suffix in (".toml", ".py", ".json", ".md"):
            text = file.read_text(encoding="utf-8").replace(
                "STUDY-TITLE", re.sub("[-_]", " ", name)
            )
            if file.suffix == ".py":  # its modules import each other: now from the copy
                text = text.replace(f"from {found.package} import", "from . import")
                text = text.replace(f"from {found.package}.", "from .")
            text = re.sub(
                rf'^name = "{re.escape(found.name)}"', f'name = "{name}"', text, flags=re.M
            )
            texts[file.name] = text
    if found.file:  # the study is a table of the file
        paper = tomllib.loads(texts.pop(found.file.name))
        own = {"name": name, **paper.pop("study")}
        texts |= {"study.toml": tomli_w.dumps(own), "published.toml": tomli_w.dumps(paper)}
    if not NAME.fullmatch(name):
        problem = "expected a name of letters, digits, - and _"
        raise input_error(problem, key="--new", given=name)
    folder = Path(name)
    if folder.exists():
        raise input_error("this exists already", key="--new", given=name)
    for each, text in texts.items():
        write_text(folder / each, text, "the study is not complete")
    return folder

"""Names of the package: one meaning per word."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import aqmlab

PACKAGE = Path(aqmlab.__file__).parent


def test_each_name_of_a_class_is_that_of_one_class() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef):
                places[statement.name].append(str(file.relative_to(PACKAGE)))
    assert len(places) > 200
    assert {name: files for name, files in places.items() if len(files) > 1} == {}

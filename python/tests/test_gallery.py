"""The gallery: the code on the page makes the pictures on the page."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import aqmlab
from aqmlab import StudyResult, study
from tools.gallery import PAGE, PICTURES, blocks

BLOCKS = blocks()
NUMBER = re.compile(r"[\d.,]+[km]?%?")
"""Numbers are left out: they change with the engine, and with them few words do."""


def marks_and_words(svg: str) -> tuple[set[str], set[str]]:
    """Kinds of marks in a picture, and its words: titles of axes and legends, names."""
    marks = set(re.findall(r'class="mark-(\w+) role-mark', svg))
    words = {NUMBER.sub("", each) for each in re.findall(r"<text[^>]*>([^<]+)</text>", svg)}
    return marks, words - {""}


def smaller(table: dict[str, Any], set: Mapping[str, Any] | None = None) -> StudyResult:
    """The study with fewer and shorter runs, whose picture has the same marks and words."""
    if "replications" not in table:
        return study(table, set=set)
    table = table | {"replications": min(table["replications"], 5)}
    return study(table, set={**(set or {}), "duration": "30s"})


def test_the_page_has_twelve_pictures_each_with_its_code() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(images/gallery/([\w-]+)\.svg\)", PAGE.read_text())
    assert shown == list(BLOCKS) and len(shown) >= 12
    assert {each.stem for each in PICTURES.iterdir()} == set(shown)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_code_on_the_page_makes_the_picture(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = BLOCKS[name]
    statements = ast.parse(code).body
    own = [each for each in statements if not isinstance(each, (ast.Import, ast.ImportFrom))]
    assert len(own) <= 6
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(aqmlab, "study", smaller)
    exec(compile(code, name, "exec"), {})
    made, kept = ((folder / f"{name}.svg").read_text() for folder in (tmp_path, PICTURES))
    marks, words = marks_and_words(made)
    assert marks and (marks, words) == marks_and_words(kept), "make gallery"
    assert len(kept) < 150_000

"""The API reference: every public name is on its page, with a docstring in NumPy style."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import aqmlab

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
INTERNAL = {"accessors"}
"""Modules that results load by name."""
ERRORS = {name for name in aqmlab.__all__ if name.endswith("Error")}
MADE_ELSEWHERE = ERRORS | {"RunResult", "StudyResult"}
"""Classes that users do not construct."""
PUBLIC = [name for name in aqmlab.__all__ if not isinstance(getattr(aqmlab, name), ModuleType)]


def test_every_public_name_is_on_the_page() -> None:
    named = set(
        re.findall(r"^\.\. auto\w+:: aqmlab\.(?:report\.)?(\w+)\b(?!\.)", PAGE, re.MULTILINE)
    )
    assert named == set(aqmlab.__all__) - INTERNAL


@pytest.mark.parametrize("name", PUBLIC)
def test_functions_and_classes_describe_their_parameters(name: str) -> None:
    found = getattr(aqmlab, name)
    text = inspect.getdoc(found)
    assert text, name
    if not (inspect.isfunction(found) or inspect.isclass(found)) or name in MADE_ELSEWHERE:
        return
    assert "Parameters\n----------" in text, name
    for parameter in inspect.signature(found).parameters:
        entry = rf"^[\w, ]*\b{parameter}\b[\w, ]*( :.*)?$"
        assert re.search(entry, text, re.MULTILINE), f"{name}: {parameter} is not described"

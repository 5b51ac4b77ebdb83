"""Results folders that say anything at all: values or one error. The parsers of other files are
tried in the tests of the same name of the crates."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aqmlab
from aqmlab.storage import Seal
from aqmlab.study.manifest import sealed

INPUTS = int(os.environ.get("AQMLAB_INPUTS", "150"))
SEED = int(os.environ.get("AQMLAB_SEED", "1"))
STRANGE = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    float("inf"),
    "",
    "x" * 5000,
    "../..",
    "\0",
    [],
    {},
    [[]],
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every table or list in a value with each of its keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def changed(value: Any, draw: random.Random) -> Any:
    """The same with something else in some places, or with parts missing or twice."""
    value = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 2, 5))):
        there = list(places(value))
        if not there:
            return value
        table, key = draw.choice(there)
        match draw.randrange(4):
            case 0:
                del table[key]
            case 1:
                table[key] = copy.deepcopy(draw.choice(there)[0])
            case _:
                table[key] = draw.choice(STRANGE)
    return value


def opened(folder: Path) -> bool:
    """True if all results can be read; any other error fails the test."""
    try:
        result = aqmlab.StudyResult.open(folder)
        for name in ("runs", "links", "metrics", "notes"):
            assert result.raw(name).width > 0
    except aqmlab.AqmlabError as error:
        assert len(str(error)) < 4000
        return False
    return True


@pytest.mark.filterwarnings("ignore::aqmlab.errors.DamageWarning")
@pytest.mark.parametrize("name", ["manifest.json", "scenarios.json"])
def test_a_folder_says_anything(name: str, done: Path) -> None:
    """With correct checksums, as if made on purpose."""
    manifest = json.loads((done / "manifest.json").read_text())
    scenarios = json.loads((done / "scenarios.json").read_text())
    draw = random.Random(SEED)
    taken = 0
    for _ in range(INPUTS):
        new = copy.deepcopy(manifest)
        if name == "manifest.json":
            new = changed(manifest, draw)
        else:
            text = json.dumps(changed(scenarios, draw)).encode()
            (done / name).write_bytes(text)
            new["files"][name] = Seal.of(text).to_json()
        content = sealed(new) if isinstance(new, dict) else json.dumps(new).encode()
        (done / "manifest.json").write_bytes(content)
        taken += opened(done)
    assert taken < INPUTS


def test_tables_are_others(done: Path) -> None:
    """Each table instead of another, with correct checksums."""
    manifest = json.loads((done / "manifest.json").read_text())
    whole = {path.name: path.read_bytes() for path in sorted(done.glob("*.parquet"))}
    names = list(whole)
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        new = copy.deepcopy(manifest)
        (done / name).write_bytes(whole[other])
        new["files"][name] = new["files"][other]
        (done / "manifest.json").write_bytes(sealed(new))
        opened(done)
        (done / name).write_bytes(whole[name])

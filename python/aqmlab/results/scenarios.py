"""The scenarios of a study, kept small: a study may have a million."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, overload

GROUP = re.compile(r"flows\.([^.]+)")
"""Key of a change that adds a group of flows."""
LINKS = ',"links":'
"""Beginning of the links in the text of a scenario, which only single values precede."""
BLOCK = 128
"""Scenarios that are compressed together: they differ in a few values only."""


def groups_of(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The groups of flows by name: those at the start, and those that changes add."""
    changes = ((GROUP.fullmatch(each["key"]), each) for each in scenario.get("changes", ()))
    return {**scenario["flows"], **{key[1]: each["value"] for key, each in changes if key}}


class Scenarios(Sequence[Mapping[str, Any]]):
    """The scenario of each point with every default, as compressed JSON, parsed when asked for.

    Parameters
    ----------
    texts : iterable of str
        `Scenario.resolved` of each point.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._blocks: list[bytes] = []
        self._count = 0
        self._read: tuple[int, list[str]] = (-1, [])
        left = iter(texts)
        while block := list(islice(left, BLOCK)):
            self._blocks.append(zlib.compress("\n".join(block).encode(), 1))
            self._count += len(block)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        table: dict[str, Any] = json.loads(self.text(range(self._count)[index]))
        return table

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def text(self, index: int) -> str:
        """Returns the scenario as text."""
        number, place = divmod(index, BLOCK)
        if self._read[0] != number:
            self._read = number, zlib.decompress(self._blocks[number]).decode().split("\n")
        return self._read[1][place]

    def heads(self) -> list[dict[str, Any]]:
        """Returns what precedes the links in each scenario, bottleneck and seed among it; equal
        heads are one object."""
        texts = [text.partition(LINKS)[0] for text in self.texts()]
        parsed = {text: json.loads(text + "}") for text in set(texts)}
        return [parsed[text] for text in texts]

    def texts(self) -> Iterator[str]:
        """Yields all scenarios as text."""
        return map(self.text, range(self._count))

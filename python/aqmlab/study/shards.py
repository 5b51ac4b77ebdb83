"""Parts of a study, for machines that share nothing but a place to put files.

A `Shard` is every n-th stretch of the runs. Its folder has chunks like that of any unfinished
study; `aqmlab.merge` makes the tables of the whole study from the chunks of all parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab.errors import InputError, input_error

STRETCHES = 64
"""Approximate number of stretches of runs in each shard.

Neighbouring points take about equally long, so shards that are spread over all points do, too.
"""
FORM = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)")
MOST = 100_000


@dataclass(frozen=True)
class Shard:
    """One part of a study that is divided among machines.

    Parameters
    ----------
    number : int
        Number of the part, from 1.
    of : int
        Number of parts, at most 100,000.

    Raises
    ------
    InputError
        If the numbers are out of range.
    """

    number: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of <= MOST:
            problem = f"expected N/M, a part N from 1 to M, and M at most {MOST:,}"
            raise input_error(problem, key="shard", given=str(self))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @staticmethod
    def parse(text: str) -> Shard:
        """Parses `"3/16"`; raises `InputError` for anything else."""
        found = FORM.fullmatch(text.strip())
        if not found:
            problem = "expected a part and the number of parts, such as 3/16"
            raise input_error(problem, key="shard", given=text)
        try:
            return Shard(int(found[1]), int(found[2]))
        except InputError as error:
            raise input_error(error.problem, key="shard", given=text) from None

    @property
    def whole(self) -> bool:
        """True if there is only one part."""
        return self.of == 1

    def runs(self, total: int) -> Iterator[int]:
        """Yields the numbers of its runs in a study of `total` runs, in ascending order."""
        size = max(1, -(-total // (self.of * STRETCHES)))
        for start in range((self.number - 1) * size, total, size * self.of):
            yield from range(start, min(start + size, total))

    def to_json(self) -> dict[str, int]:
        """Returns `{"number", "of"}`."""
        return {"number": self.number, "of": self.of}


WHOLE = Shard()


def shard_of(manifest: Mapping[str, Any]) -> Shard:
    """The shard whose results a folder is to hold."""
    given = manifest.get("shard")
    return Shard(given["number"], given["of"]) if given else WHOLE

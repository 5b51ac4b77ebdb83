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
"""Of these each shard has about so many: neighbouring points take about as long as each other, so
that shards which are spread over all of them do, too."""
FORM = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)")
MOST = 100_000


@dataclass(frozen=True)
class Shard:
    """Part `number` of `of`, counted from 1."""

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
        """Reads `3/16`. Raises `InputError`."""
        found = FORM.fullmatch(text.strip())
        if not found:
            problem = "expected a part and the number of parts, such as 3/16"
            raise input_error(problem, key="--shard", given=text)
        try:
            return Shard(int(found[1]), int(found[2]))
        except InputError as error:
            raise input_error(error.problem, key="--shard", given=text) from None

    @property
    def whole(self) -> bool:
        """Whether it is all there is."""
        return self.of == 1

    def runs(self, total: int) -> Iterator[int]:
        """The numbers of its runs, ascending, of a study with `total` runs."""
        size = max(1, -(-total // (self.of * STRETCHES)))
        for start in range((self.number - 1) * size, total, size * self.of):
            yield from range(start, min(start + size, total))

    def to_json(self) -> dict[str, int]:
        """{"number", "of"}."""
        return {"number": self.number, "of": self.of}


WHOLE = Shard()


def shard_of(manifest: Mapping[str, Any]) -> Shard:
    """The shard whose results a folder is to hold."""
    given = manifest.get("shard")
    return Shard(given["number"], given["of"]) if given else WHOLE

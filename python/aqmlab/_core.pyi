"""The engine: what the Rust extension module offers. Times are seconds, sizes bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

__version__: str

class InputError(ValueError):
    """What a user can cause: the one exception that the engine raises.

    `str(error)` is the whole message: file, key, what was given, what is allowed.
    """

    file: str | None
    key: str
    given: str | None
    problem: str
    hint: str | None

class Scenario:
    """A checked scenario with every default filled in."""

    def __init__(
        self,
        source: str | Mapping[str, Any],
        *,
        file: str = "<scenario>",
        overrides: Mapping[str, Any] | None = None,
        folders: Sequence[str] = (),
    ) -> None:
        """`source` is TOML text or the same as a mapping; `overrides` maps dotted keys
        (`links.bottleneck.rate`, or `queue...` for the bottleneck's queue) to values; files
        that it names are looked for in `folders` and then in the working directory."""
    folders: list[str]
    @property
    def resolved(self) -> str:
        """Canonical JSON, every default filled in: the same for equal scenarios."""

class Table:
    """Columns that leave the engine without being copied (Arrow PyCapsule interface)."""

    num_rows: int
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Results:
    """Finished runs. Tables: `runs`, `links`, `flows`, `excursions`, `sojourn`, `notes`, and,
    by recording level, `series`, `packets`. Every table has a first column `run`."""

    runs: list[int]
    """The numbers of the finished runs."""
    delivered_packets: int
    events: int
    def table(self, name: str) -> Table: ...
    @staticmethod
    def table_names() -> list[str]: ...

class Runner:
    """Runs jobs on all cores in the background."""

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        jobs: Sequence[tuple[int, int, int]],
        *,
        threads: int | None = None,
    ) -> None:
        """A job is (run number, index into `scenarios`, replication), under the scenario's seed."""
    def poll(self, timeout: float) -> Results | None:
        """Waits up to `timeout` seconds for finished runs and takes all there are; None if none.
        The GIL is released meanwhile. A panic in the engine is raised here as RuntimeError."""
    finished: int
    total: int
    def stop(self) -> None:
        """Starts no further job; those under way finish."""

def parse_value(text: str) -> Any:
    """What stands after `--set key=`: a TOML value, or else the text itself."""

def reference() -> list[dict[str, Any]]:
    """Everything that has parameters, from the declarations: a list of
    {"section": "queue" | "transport" | "scenario" | "link" | "flow" | "record",
     "name": "codel", "summary": str, "preset_of": str | None, "settings": {key: text},
     "source": str | None,
     "params": [{"name", "kind", "default", "range": [low, high] | None,
                 "choices": [..], "meaning", "source"}]}."""

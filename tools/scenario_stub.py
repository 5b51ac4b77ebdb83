"""Writes `python/aqmlab/scenario/generated.pyi`: the scenario's classes for type checkers.

python tools/scenario_stub.py           # writes the file
python tools/scenario_stub.py --check   # exits with 1 if it is not up to date
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aqmlab._core import reference
from aqmlab.scenario.parts import argument, base_of, class_name

STUB = Path(__file__).parents[1] / "python" / "aqmlab" / "scenario" / "generated.pyi"
HEAD = '''"""Made by `tools/scenario_stub.py` from the engine's declarations. Do not edit."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aqmlab.scenario.parts import (
    Control,
    DelayProcess,
    Endpoint,
    LossModel,
    Part,
    QueueDiscipline,
    RateProcess,
    Workload,
)
from aqmlab.scenario.quantity import (
    DistributionLike,
    DurationLike,
    LimitLike,
    RateLike,
    SizeLike,
)
'''
KINDS = {
    "chance": "float | LossModel | Mapping[str, Any]",
    "distribution": "DistributionLike",
    "dscp": "int | str",
    "limit": "LimitLike",
    "links": "str | Sequence[str]",
    "list": "Sequence[Any]",
    "number": "float",
    "rate": "RateLike",
    "size": "SizeLike",
    "sizes": "Sequence[SizeLike]",
    "steps": "Sequence[tuple[DurationLike, DurationLike | RateLike] | list[Any]]",
    "switch": "bool",
    "table": "Mapping[str, Any]",
    "text": "str",
    "threshold": "LimitLike | DurationLike",
    "time": "DurationLike",
    "value": "Any",
    "whole number": "int",
}
"""Type of a parameter by its kind."""
NESTED = {
    ("link", "rate"): "RateLike | RateProcess | Mapping[str, Any]",
    ("link", "delay"): "DurationLike | DelayProcess | Mapping[str, Any]",
    ("link", "jitter"): "Jitter | Mapping[str, Any]",
    ("link", "slot"): "Slot | Mapping[str, Any]",
    ("link", "queue"): "QueueDiscipline | type | str | Mapping[str, Any]",
    ("link", "shaper"): "Shaper | Mapping[str, Any]",
    ("link", "driver"): "Driver | Mapping[str, Any]",
    ("flow", "workload"): "Workload | str | Mapping[str, Any]",
    ("flow", "endpoint"): "Endpoint | str | Mapping[str, Any]",
    ("flow", "start"): "DistributionLike | DurationLike",
    ("flow", "transport"): "Transport | Mapping[str, Any]",
    ("flow", "reroutes"): "Sequence[Reroute | Mapping[str, Any]]",
    ("tcp", "congestion_control"): "Control | type | str | Mapping[str, Any]",
}
"""Parameters that hold other parts, by entry and name."""


def type_of(entry: Mapping[str, Any], param: Mapping[str, Any]) -> str:
    """Annotation of a parameter."""
    nested = NESTED.get((entry["name"], param["name"]))
    if nested:
        return nested
    choices = param["choices"]
    if param["kind"] == "name" and choices:
        return f"Literal[{', '.join(repr(each) for each in choices)}]"
    found = KINDS.get(param["kind"], "Any")
    if param["default"] == "none" and "str" not in found and found not in ("Any", "RateLike"):
        found += ' | Literal["none"]'
    return found


def lines() -> Iterator[str]:
    """The lines of the stub."""
    yield HEAD
    for entry in reference():
        base = base_of(entry)
        if base is None:
            continue
        yield f"class {class_name(entry)}({base.__name__}):"
        yield f'    """{entry["summary"][:1].upper()}{entry["summary"][1:]}."""'
        yield ""
        for param in entry["params"]:
            default = "" if param["default"] is None else " | None = None"
            yield f"    {argument(param['name'])}: {type_of(entry, param)}{default}"
        yield ""


def text() -> str:
    """The stub, formatted."""
    made = "\n".join(lines())
    ruff = str(Path(sys.executable).with_name("ruff"))
    command = [ruff, "format", "--stdin-filename", str(STUB), "-"]
    return subprocess.run(command, input=made, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Writes or checks the stub."""
    made = text()
    if "--check" in sys.argv[1:]:
        if STUB.read_text() != made:
            print(f"{STUB} is not up to date: run python {sys.argv[0]}")
            return 1
        return 0
    STUB.write_text(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

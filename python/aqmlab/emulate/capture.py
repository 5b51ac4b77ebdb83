"""What `--pcap` asks for."""

from __future__ import annotations

from pathlib import Path

from aqmlab.errors import input_error

WHOLE = 1 << 18
"""Bytes of each packet that are kept: all of them."""
LEAST_RING = 1 << 20


def capture(file: Path | None, ring: str | None) -> tuple[str, int | None, int] | None:
    """A capture as `emulate` takes it. `ring` is a size in bytes (`100mb`), of which two files
    hold the last. Raises `InputError` for one that is none."""
    if file is None:
        if ring is not None:
            raise input_error(
                "it says how much of a capture is kept: give --pcap", key="--pcap-ring"
            )
        return None
    return str(file), None if ring is None else _size(ring), WHOLE


def _size(text: str) -> int:
    units = {"gb": 10**9, "mb": 10**6, "kb": 10**3, "b": 1}
    unit = next((unit for unit in units if text.lower().endswith(unit)), "")
    try:
        size = int(float(text[: -len(unit)]) * units[unit])
    except (KeyError, ValueError, OverflowError):
        size = 0
    if size < LEAST_RING:
        problem = "expected a size of at least 1mb, such as 100mb"
        raise input_error(problem, key="--pcap-ring", given=text)
    return size

"""Pauses of Linux's Reno under reordering, real and simulated: docs/transports/linux.md.

python -m tools.reordering [TRANSFERS]
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aqmlab

SECONDS = 4.0
"""The length of a transfer."""
PAUSE = 0.4
"""Seconds without a new byte acknowledged that are a pause: more than two round trips."""
LINK: Mapping[str, Any] = {
    "delay": "20ms",
    "rate": "10mbit",
    "jitter": {"spread": "5ms"},
    "reordering": True,
    "queue": {"discipline": "droptail", "limit": "100p"},
}
SCENARIO: Mapping[str, Any] = {
    "duration": f"{SECONDS}s",
    "bottleneck": "down",
    "links": {"down": LINK, "up": LINK},
    "flows": {"reno": {"path": ["down"], "return_path": ["up"]}},
    "transport": {
        "profile": "linux-6.12",
        "congestion_control": "reno",
        "receive_window": "auto",
        "send_buffer": "4mb",
        "segmentation_offload": True,
    },
}
PACKET, ACK = 6, 16
"""A packet's block in a capture; the flags of an acknowledgement."""
BYTES_ACKED = 120
"""Offset of `tcpi_bytes_acked` in `struct tcp_info`."""


def transfer(address: tuple[str, int]) -> float:
    """Sends to this address; gives the longest time without a new byte acknowledged, in seconds."""
    with socket.create_connection(address) as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        # Thrown away at the end: the next transfer has the path to itself.
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sender.setblocking(False)
        end = time.monotonic() + SECONDS
        acked, since, longest = 0, time.monotonic(), 0.0
        while (now := time.monotonic()) < end:
            try:
                sender.send(bytes(65536))
            except BlockingIOError:
                time.sleep(0.002)
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            (count,) = struct.unpack_from("Q", info, BYTES_ACKED)
            if count != acked:
                acked, since = count, now
            longest = max(longest, now - since)
    return longest


def take(listener: socket.socket) -> None:
    """Accepts and reads connections until the listener is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            try:
                while connection.recv(1 << 20):
                    pass
            except ConnectionResetError:
                pass


def real(transfers: int) -> list[float]:
    """The longest pause of each transfer through the emulator, in seconds."""
    with socket.create_server(("0.0.0.0", 0)) as listener:
        threading.Thread(target=take, args=(listener,), daemon=True).start()
        links = ("down", "up")
        settings = {f"links.{link}.jitter.spread": "5ms" for link in links}
        settings |= {f"links.{link}.reordering": "true" for link in links}
        words = ["shell", "--quiet", "--rate", "10mbit", "--delay", "20ms"]
        words += ["--queue", "droptail limit=100p"]
        words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        words += ["--", sys.executable, "-m", __spec__.name, "send"]
        words += [str(listener.getsockname()[1]), str(transfers)]
        command = [sys.executable, "-m", "aqmlab", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return list(json.loads(done.stdout.splitlines()[-1]))


def acknowledgements(captured: bytes) -> Iterator[tuple[float, int]]:
    """Time in seconds and number of each acknowledgement without data in a capture (pcapng)."""
    at = 0
    while at < len(captured):
        kind, length = struct.unpack_from("<II", captured, at)
        if kind == PACKET:
            high, low, size = struct.unpack_from("<III", captured, at + 12)
            packet = captured[at + 28 : at + 28 + size]
            (total,), ip = struct.unpack_from(">H", packet, 2), (packet[0] & 15) * 4
            (number,), tcp = struct.unpack_from(">I", packet, ip + 8), (packet[ip + 12] >> 4) * 4
            if total == ip + tcp and packet[ip + 13] == ACK:
                yield (high << 32 | low) / 1e9, number
        at += length


def simulated(transfers: int) -> list[float]:
    """The same of the simulator. Goodput would not do: it counts what arrives out of order too."""
    pauses = []
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "run.pcapng"
        for seed in range(1, transfers + 1):
            aqmlab.run(SCENARIO, seed=seed, pcap=capture)
            acked, since, longest = 0, 0.0, 0.0
            for now, number in acknowledgements(capture.read_bytes()):
                longest = max(longest, now - since)
                if not acked or 0 < number - acked & 0xFFFFFFFF < 1 << 31:
                    acked, since = number, now
            pauses.append(longest)
            capture.unlink()
    return pauses


def told(name: str, pauses: list[float]) -> str:
    """A line: how many transfers paused, and for how long."""
    long = sorted(pause for pause in pauses if pause > PAUSE)
    span = f", for {long[0]:.2f} to {long[-1]:.2f} s" if long else ""
    return f"{name}: {len(long)} of {len(pauses)} transfers paused{span}"


def main() -> None:
    """Prints both; as the command of the emulator, sends."""
    if sys.argv[1:2] == ["send"]:
        port, transfers = (int(word) for word in sys.argv[2:4])
        far = (os.environ["AQMLAB_FAR"], port)
        print(json.dumps([transfer(far) for _ in range(transfers)]))
        return
    transfers = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    print(told("simulated", simulated(4 * transfers)), flush=True)
    print(told(f"Linux {os.uname().release}", real(transfers)))


if __name__ == "__main__":
    main()

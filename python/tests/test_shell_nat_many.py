"""`aqmlab shell --nat` with more connections than descriptors are usually allowed."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest
from real_packets import TRAFFIC
from test_shell_nat import OUTSIDE, on_a_machine
from test_shell_nat import pytestmark as on_machines

pytestmark = on_machines
MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
MANY = min(10_000, (MOST - 200) // 2)
"""Number of connections for these descriptors: the relay needs two for each."""
HEAD = """
import os, resource, selectors, socket, struct, sys, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
def ready():
    open("ready", "w").close()
"""
STREAMS = """
many = int(sys.argv[2])
if sys.argv[1] == "serve":
    server = socket.create_server(("", 7001), backlog=4096)
    ready()
    kept = []
    while True:
        connection, _ = server.accept()
        connection.sendall(struct.pack("!I", connection.getpeername()[1]))
        kept.append(connection)
selector, found, kept = selectors.DefaultSelector(), set(), []
for first in range(0, many, 500):
    for _ in range(first, min(first + 500, many)):
        each = socket.socket()
        each.setblocking(False)
        each.connect_ex((sys.argv[3], 7001))
        selector.register(each, selectors.EVENT_READ)
        kept.append(each)
    until = time.monotonic() + 20
    while selector.get_map() and time.monotonic() < until:
        for key, _ in selector.select(1):
            selector.unregister(key.fileobj)
            try:
                text = key.fileobj.recv(4)
                if len(text) == 4:
                    found.add(text)
            except OSError:
                pass
print(len(found), len(kept))
"""
DATAGRAMS = """
many = int(sys.argv[2])
ports = range(10_000, 10_000 + many)  # Those of other servers begin at 20,000.
selector = selectors.DefaultSelector()
if sys.argv[1] == "serve":
    for port in ports:
        each = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        each.bind(("", port))
        selector.register(each, selectors.EVENT_READ)
    ready()
    while True:
        for key, _ in selector.select():
            text, sender = key.fileobj.recvfrom(64)
            key.fileobj.sendto(text, sender)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
udp.settimeout(0.3)
found = set()
for turn in range(5):
    for port in ports:
        if port not in found:
            udp.sendto(struct.pack("!H", port), (sys.argv[3], port))
        if port % 100 == 99:
            time.sleep(0.01)
    try:
        while len(found) < many:
            text, sender = udp.recvfrom(64)
            if struct.unpack("!H", text)[0] == sender[1]:
                found.add(sender[1])
    except TimeoutError:
        pass
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.settimeout(5)
question = b"\\7\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4some\\4name\\0\\0\\1\\0\\1"
names.sendto(question, (os.environ["AQMLAB_FAR"], 53))
print(len(found), names.recv(512)[:2] == question[:2])
"""


def run(
    tmp_path: Path, program: str, many: int, *options: str, before: str = ""
) -> tuple[str, str]:
    """What the client printed, and what the emulator said. The client begins when the server
    listens, however long that takes; a server that ended has said why."""
    (tmp_path / "ready").unlink(missing_ok=True)
    (tmp_path / "many.py").write_text(HEAD + program)
    python = TRAFFIC.split()[0]
    client = f"{python} {tmp_path}/many.py client {many} {OUTSIDE}"
    server = f"{python} {tmp_path}/many.py serve {many} & server=$!;"
    server += " while kill -0 $server && ! [ -e ready ]; do sleep 0.1; done;"
    done = on_a_machine(tmp_path, client, *options, before=f"{server} {before}")
    return done.stdout.strip(), done.stderr


def test_ten_thousand_connections_at_once(tmp_path: Path) -> None:
    found, said = run(tmp_path, STREAMS, MANY)
    assert found == f"{MANY} {MANY}", said
    assert "to the outside" not in said


def test_ten_thousand_ports_and_names_still(tmp_path: Path) -> None:
    found, said = run(tmp_path, DATAGRAMS, MANY)
    assert found == f"{MANY} True", said
    assert "to the outside" not in said


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="limits are root's")
def test_what_finds_no_room_is_refused_and_counted(tmp_path: Path) -> None:
    """Root without CAP_SYS_RESOURCE has the limit that is set here."""
    found, said = run(tmp_path, STREAMS, 400, "--out", "out", before="LIMIT=500")
    many, tried = map(int, found.split())
    assert tried == 400
    assert 150 < many < 250
    assert f"{400 - many} connections to the outside were reset" in said
    import polars as pl

    notes = pl.read_parquet(tmp_path / "out/notes.parquet")["text"].to_list()
    assert any("connections to the outside were reset" in text for text in notes)

"""`aqmlab shell --nat`: a machine with an address outside, and nothing of it changed."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path

import pytest
from helpers import PATIENCE, command, environment, rows_of, run_program
from real_packets import NOBODY, PORT, TRAFFIC, as_root, tun_for_all

pytestmark = [pytest.mark.real_packets, pytest.mark.needs("ip"), as_root]

OUTSIDE, OUTSIDE6 = "198.51.100.7", "2001:db8::7"
SEARCHED = "search lan.example"
NAME_SERVER = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.53", 53))
while True:
    question, sender = server.recvfrom(512)
    answer = question[:2] + b"\\x81\\x80\\0\\1\\0\\1\\0\\0\\0\\0" + question[12:]
    answer += b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4" + socket.inet_aton("198.51.100.7")
    if question[-4:-2] != b"\\0\\1":
        answer = question[:2] + b"\\x81\\x80\\0\\1\\0\\0\\0\\0\\0\\0" + question[12:]
    server.sendto(answer, sender)
"""


def on_a_machine(
    tmp_path: Path, script: str, *options: str, user: tuple[str, ...] = (), before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a script behind a path to the outside, on a machine with a server. `before` is run
    there first; with `LIMIT` in it the emulator may have so many descriptors."""
    (tmp_path / "names.py").write_text(NAME_SERVER)
    (tmp_path / "resolv.conf").write_text(f"nameserver 127.0.0.53\n{SEARCHED}\n")
    python = TRAFFIC.split()[0]
    machine = f"""
        ip link set lo up
        ip addr add {OUTSIDE}/32 dev lo
        ip -6 addr add {OUTSIDE6}/128 dev lo nodad
        {tun_for_all(tmp_path)}
        mount --bind {tmp_path}/resolv.conf /etc/resolv.conf
        {TRAFFIC} serve {PORT} &
        traffic=$!
        {python} {tmp_path}/names.py &
        names=$!
        ip addr > before; ip route >> before; ip -6 route >> before
        server=; LIMIT=; {before}
        if [ "$LIMIT" ]; then
            ulimit -n $LIMIT
            set -- setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$@"
        fi
        "$@"
        status=$?
        ip addr > after; ip route >> after; ip -6 route >> after
        kill $traffic $names $server
        exit $status
    """
    words = command("shell", "--nat", *options, "--", "sh", "-c", script)
    done = run_program(
        ["unshare", "--net", "--mount", "sh", "-c", machine, "sh", *user, *words],
        cwd=tmp_path,
        env=environment(),
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()
    return done


@pytest.mark.parametrize("user", [(), tuple(NOBODY)], ids=["root", "nobody"])
def test_tcp_udp_and_names_reach_the_outside(tmp_path: Path, user: tuple[str, ...]) -> None:
    if user:
        # The interpreter may be where this user cannot go: what all have must do.
        done = on_a_machine(tmp_path, "getent ahostsv4 some.name", "--delay", "5ms", user=user)
        assert OUTSIDE in done.stdout
        return
    script = f"""
        {TRAFFIC} rtt {OUTSIDE} {PORT} 5
        {TRAFFIC} bulk {OUTSIDE6} {PORT} 0.3
        {TRAFFIC} burst {OUTSIDE} {PORT} 20 0
        {TRAFFIC} rtt $AQMLAB_FAR {PORT} 5
        getent ahostsv4 some.name
        cat /etc/resolv.conf
    """
    lines = on_a_machine(tmp_path, script, "--delay", "5ms").stdout.splitlines()
    rtt, bulk, burst, inward = (json.loads(line) for line in lines[:4])
    assert 10 < min(rtt) < 16
    assert bulk > 1e7
    assert burst == [20, 0]
    assert 10 < min(inward) < 16
    assert OUTSIDE in lines[4]
    assert SEARCHED in lines


def test_the_path_is_what_the_outside_is_behind(tmp_path: Path) -> None:
    script = f"{TRAFFIC} bulk {OUTSIDE} {PORT} 1"
    done = on_a_machine(tmp_path, script, "--up", "rate=5mbit queue=fq_codel")
    assert 3.5e6 < json.loads(done.stdout) < 5e6


def test_a_connection_that_nobody_takes_is_reset(tmp_path: Path) -> None:
    python = TRAFFIC.split()[0]
    code = (
        "import socket\n"
        "try: socket.create_connection(('198.51.100.7', 9), timeout=5).recv(1)\n"
        "except ConnectionResetError: print('reset')"
    )
    done = on_a_machine(tmp_path, f'{python} -c "{code}"')
    assert done.stdout == "reset\n"


def test_shells_inside_reach_the_outside_too(tmp_path: Path) -> None:
    inner = command("shell", "-q", "--delay", "2ms", "--", "sh", "-c")
    script = f"{' '.join(inner)} '{TRAFFIC} rtt {OUTSIDE} {PORT} 5'"
    times = json.loads(on_a_machine(tmp_path, script, "--delay", "5ms").stdout)
    assert 14 < min(times) < 18


ERRORS = """
import errno, json, socket, time
IP_MTU, DISCOVER, DO, WANT = 14, 10, 2, 1

def connected(host, port, discover=WANT):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    client = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET:
        client.setsockopt(socket.IPPROTO_IP, DISCOVER, discover)
    client.settimeout(5)
    client.connect((host, port))
    return client

def name_of(action):
    try:
        return action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))

def closed(host):
    client = connected(host, 9)
    began = time.monotonic()
    client.send(b"x")
    return [name_of(lambda: client.recv(1)), time.monotonic() - began]

def too_big():
    client = connected("203.0.113.7", PORT, DO)
    client.send(bytes(1400))
    refused = name_of(lambda: client.recv(1))
    mtu = client.getsockopt(socket.IPPROTO_IP, IP_MTU)
    # The kernel now fragments, and what arrives in fragments passes.
    free = connected("203.0.113.7", PORT)
    free.send(bytes(1400))
    return [refused, mtu, len(free.recv(2000))]

hosts = ["198.51.100.7", "2001:db8::7", FAR]
print(json.dumps([*[closed(host) for host in hosts], too_big()]))
"""


def test_the_ecn_field_of_datagrams_passes_both_ways(tmp_path: Path) -> None:
    script = "; ".join(f"{TRAFFIC} classes {host} {PORT}" for host in (OUTSIDE, OUTSIDE6))
    done = on_a_machine(tmp_path, script, "--delay", "5ms")
    expected = [[each, each, each ^ 3] for each in (0, 1, 2, 3, 40)]
    assert [json.loads(line) for line in done.stdout.splitlines()] == [expected] * 2


def test_icmp_errors_come_back_over_the_path(tmp_path: Path) -> None:
    """A closed port is refused at once, and a datagram too large for the outside is reported."""
    values = f"import os; PORT, FAR = {PORT}, os.environ['AQMLAB_FAR']\n"
    (tmp_path / "errors.py").write_text(values + ERRORS)
    route = "ip route add local 203.0.113.7 dev lo table local mtu 1300"
    script = f"{TRAFFIC.split()[0]} {tmp_path}/errors.py"
    done = on_a_machine(tmp_path, script, "--delay", "20ms", before=route)
    *closed, too_big = json.loads(done.stdout)
    for name, seconds in closed:
        assert name == "ECONNREFUSED"
        assert 0.04 <= seconds < 2
    assert too_big == ["EMSGSIZE", 1300, 1400]


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


def run_many(
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
    found, said = run_many(tmp_path, STREAMS, MANY)
    assert found == f"{MANY} {MANY}", said
    assert "to the outside" not in said


def test_ten_thousand_ports_and_names_still(tmp_path: Path) -> None:
    found, said = run_many(tmp_path, DATAGRAMS, MANY)
    assert found == f"{MANY} True", said
    assert "to the outside" not in said


def test_what_finds_no_room_is_refused_and_counted(tmp_path: Path) -> None:
    """Root without CAP_SYS_RESOURCE has the limit that is set here."""
    found, said = run_many(tmp_path, STREAMS, 400, "--out", "out", before="LIMIT=500")
    many, tried = map(int, found.split())
    assert tried == 400
    assert 150 < many < 250
    assert f"{400 - many} connections to the outside were reset" in said
    notes = [row["text"] for row in rows_of(tmp_path / "out", "notes")]
    assert any("connections to the outside were reset" in text for text in notes)

"""tour.py FOLDER {alone|full|notebook}: tries an installed aqmlab as a new user would.

FOLDER has the command (`bin` of a virtual environment). Everything happens in an empty folder
outside of the repository: what a command needs, an earlier one has made. `alone` is for an
installation without extras, `full` for one with `studies` and `cluster`; `notebook`, for one with
that extra alone, runs the notebooks of the repository by Jupyter. Prints each command and how long
it took.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

LINE = "--down 50mbit --up 10mbit --rtt 20ms"
STUDY = "--set duration=3s --replications 2"
REPORT, CLUSTER = "pip install 'aqmlab[report]'", "pip install 'aqmlab[cluster]'"

# A line each: the status, the command, and what its output has to contain (`|` between two).
ALONE = f"""
0; --version; aqmlab
2; ; Usage
0; --help; characterize
0; list; fq_codel
0; list --json; disciplines
0; explain codel.target; RFC 8289
0; explain cable;   Source:
2; run examples/scenario.toml; aqmlab new scenario NAME
0; new scenario home; aqmlab run home.toml
0; run home.toml; packets through the bottleneck|Nothing was saved
0; run home.toml --json; delivered_packets
2; new scenario home; exists already
0; new queue mine; aqmlab run mine.toml
0; run mine.toml --set duration=5s; user)
0; new control own; aqmlab run own.toml
0; run own.toml --set duration=5s; download.0
0; new study queues; aqmlab study queues.toml
0; new metric seen; --with seen.py
2; new endpoint mine; --source FOLDER
0; completion bash; complete -o default
0; completion zsh; compdef
0; completion fish; complete -c aqmlab
0; shell --help; --rate
1; study queues.toml; {REPORT}
1; try {LINE} codel; {REPORT}
1; run home.toml --explain-drops; {REPORT}
1; conformance codel; {REPORT}
2; reproduce jarvinen2014; pip install 'aqmlab[studies]'
1; cluster check tcp://localhost:1; {CLUSTER}
1; study queues.toml --cluster tcp://localhost:1; {CLUSTER}
"""
FULL = f"""
0; new scenario home; aqmlab run home.toml
0; new metric seen; --with seen.py
0; run seen.toml --with seen.py --set duration=5s; waits above 20 ms
0; try {LINE} droptail codel fq_codel cake; Use |tc qdisc|Report: results
0; try {LINE} codel 'fq_codel target 3ms' --load gaming --out t1; game: delay
0; try {LINE} codel --load office --access dsl --no-report --out t2; web: page load
0; try {LINE} codel --load rrul --access docsis --no-report --out t3; ping: round trip
0; try {LINE} codel --access lte --load gaming --no-report --out t4; fading
0; try {LINE} codel --access wifi --load gaming --no-report --out t5; PHY
0; try {LINE} codel --access satellite --load gaming --no-report --out t6; 240 ms
0; try {LINE} fq_codel --assert 'call.mos > 4' --assert 'game.delay < 30ms' --out t7; holds
1; try {LINE} droptail --assert 'call.mos > 4' --no-report --out t8; does not hold
2; try {LINE} fq_codle; QUEUE: `fq_codle`|did you mean `fq_codel`?
0; study results/try/study.toml --replications 1 --no-report --out again; 4 runs
0; new study queues; aqmlab study queues.toml
0; study queues.toml {STUDY} --out whole; 12 runs|whole/report.html
0; study queues.toml {STUDY} --shard 1/2 --out part1; Part 1/2
0; study queues.toml {STUDY} --shard 2/2 --out part2; Part 2/2
2; merge part1 --out all; no folder has part 2/2
0; merge part1 part2 --out all; 12 runs of 2 parts
0; study queues.toml {STUDY} --seed 9 --shard 2/2 --out other; Part 2/2
2; merge part1 other --out all2; seed is 9
2; study queues.toml --shard 3/2; --shard
0; run home.toml --set queue=codel --explain-drops --out drops; Why down dropped|Report: drops
0; run home.toml --set 'queue=pie target 10ms' --explain-drops --set duration=5s; PIE dropped
0; run home.toml --pcap run.pcapng --qlog run.sqlog; Written: run.pcapng, run.sqlog
0; run home.toml --pcap down.pcapng --pcap-link down; Written: down.pcapng
2; run home.toml --pcap x.pcapng --pcap-link dwn; did you mean `down`?
1; run home.toml --pcap nowhere/x.pcapng; there is no folder nowhere
0; run home.toml --set duration=5s --set record.level=packets --out one; one/report.html
0; run home.toml --set duration=5s --set queue=codel --out two; two/report.html
0; export one one.csv; Written: one.csv
0; export one one.arrow; Written: one.arrow
0; export one one.parquet; Written: one.parquet
0; export one one.flent.gz; Written: one.flent.gz
0; export one one.log; Written: one.log
2; export one one.txt; .flent.gz
2; export one x.csv --table link; did you mean `links`?
0; compare before=one after=two; result
0; compare one one.flent.gz iperf.json irtt.json; flent|iperf3|irtt
0; reproduce jarvinen2014 --only queue=CoDel --only 'rest=11 ms' --replications 2; Report: results
0; characterize codel --quick --section 5.1; Report: results
0; evaluate cubic --quick --only short; Report: results
0; conformance codel; 28 of 28 cases equal
2; conformance codle; did you mean `codel`?
2; cluster check localhost:8786; ADDRESS
"""

REAL = """
0; shell --profile lte --out lte -- echo hi; hi
2; shell --profile lte4 -- echo hi; did you mean `lte`?
3; shell --rate 12mbit -- sh -c 'echo three && exit 3'; three
0; mahimahi delay 5 sh -c 'echo at $MAHIMAHI_BASE'; at 100.
0; mahimahi link 12mbit.trace 12mbit.trace --uplink-log=up.log -- echo hi; hi
0; mahimahi loss uplink 0.1 echo hi; seed
0; mahimahi delay 5 aqmlab mahimahi loss uplink 0 echo hi; hi
2; mahimahi link 13mbit.trace 12mbit.trace echo hi; 13mbit.trace
0; parity home.toml --duration 3s --set queue=fq_codel --out both; utilisation|both/report.html
"""
IPERF = {
    "start": {"version": "iperf 3.16"},
    "intervals": [{"streams": [{"rtt": rtt}]} for rtt in (40_000, 60_000)],
    "end": {"sum_received": {"bits_per_second": 1.8e6}},
}
IRTT = {
    "version": {"irtt": "0.9"},
    "round_trips": [{"lost": "false", "delay": {"rtt": 10_000_000}}],
}


BASH = """
eval "$(aqmlab completion bash)"
for COMP_LINE in "aqmlab characterize fq_cod" "aqmlab run home.toml --set queue.tar"; do
  COMP_POINT=${#COMP_LINE}
  _aqmlab 2> /dev/null
  echo "${COMPREPLY[@]}"
done
"""
REPOSITORY = Path(__file__).resolve().parents[1]


class Tour:
    """The commands, one after another."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "aqmlab"
        inherited = ("PYTHONPATH", "PIP_CONSTRAINT", "VIRTUAL_ENV")
        self.environment = {key: os.environ[key] for key in os.environ if key not in inherited}
        self.failed = 0
        self.workers: list[subprocess.Popen[bytes]] = []
        """Workers of the cluster."""

    def follow(self, lines: str) -> None:
        """Runs a line each, as `ALONE` has them."""
        for line in lines.strip().splitlines():
            status, words, expected = line.split("; ", 2)
            self.run(words, int(status), *expected.split("|"))

    def run(self, words: str, status: int, *expected: str, **more: str) -> str:
        """Runs a command; its output."""
        return self.other(f"aqmlab {words}", status, *expected, **more)

    def other(self, line: str, status: int, *expected: str, **more: str) -> str:
        """Runs a line of a shell that finds the installed commands; its output."""
        began = time.monotonic()
        path = {"PATH": f"{self.program.parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", line],
            env=self.environment | path | more,
            capture_output=True,
            text=True,
            timeout=300,
        )
        output = done.stdout + done.stderr
        told = line.strip().splitlines()[0]
        print(f"{time.monotonic() - began:5.1f} s  {told}", flush=True)
        absent = [each for each in expected if each not in output]
        if done.returncode != status or absent or "Traceback" in output:
            self.failed += 1
            print(f"WRONG: status {done.returncode} for {status}; absent: {absent}\n{output}")
        return done.stdout

    def end(self) -> None:
        """Exits with 1 if anything was wrong."""
        if self.failed:
            sys.exit(f"{self.failed} commands of the tour went wrong")


def alone(tour: Tour) -> None:
    """Without extras."""
    tour.follow(ALONE)
    tour.other(BASH, 0, "fq_codel", "queue.target=")


def notebooks(tour: Tour) -> None:
    """The notebooks, by Jupyter, beside the examples that they read."""
    shutil.copytree(REPOSITORY / "examples", "examples")
    for file in sorted(Path("examples/notebooks").glob("*.ipynb")):
        shutil.copy(file, ".")
        tour.other(f"jupyter nbconvert --to notebook --execute --inplace {file.name}", 0)
        cells = json.loads(Path(file.name).read_text())["cells"]
        code = [each for each in cells if each["cell_type"] == "code"]
        done = all(each["execution_count"] for each in code)
        if not done or not any(each["outputs"] for each in code):
            sys.exit(f"{file.name} was not executed, or displays nothing")


def full(tour: Tour) -> None:
    """All there is with the extras."""
    Path("iperf.json").write_text(json.dumps(IPERF))
    Path("irtt.json").write_text(json.dumps(IRTT))
    tour.follow(FULL)
    same("whole", "all", "parts")
    ascii_only = tour.run("study queues.toml --out whole " + STUDY, 0, PYTHONIOENCODING="ascii")
    if not ascii_only.isascii():
        tour.failed += 1
    with cluster(tour) as address:
        on = f"--cluster {address}"
        tour.run(f"cluster check {address}", 0, "2 workers with 2 threads")
        tour.run(f"study queues.toml {STUDY} {on} --out far", 0, "12 runs")
        same("whole", "far", "a cluster")
        tour.run(f"characterize codel --quick --section 5.1 {on} --out far5", 0, "Report: far5")
        killed(tour, address)
    packets(tour)


def same(one: str, other: str, what: str) -> None:
    """Ends the tour if the tables of two folders differ."""
    for table in Path(one).glob("*.parquet"):
        if table.read_bytes() != (Path(other) / table.name).read_bytes():
            sys.exit(f"{table.name} of {what} has other bytes")


@contextmanager
def cluster(tour: Tour) -> Iterator[str]:
    """A scheduler and two workers on loopback, as docs/cluster.md starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask = str(tour.program.parent / "dask")
    port = address.rpartition(":")[2]
    lines = [[dask, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]]
    lines += [[dask, "worker", address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard"]] * 2
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # In groups of their own: the process of a worker dies with that which watches over it.
    started = [subprocess.Popen(each, env=tour.environment, process_group=0, **quiet)
               for each in lines]  # fmt: skip
    tour.workers = started[1:]
    try:
        for _ in range(60):
            line = [tour.program, "cluster", "check", address]
            told = subprocess.run(line, env=tour.environment, capture_output=True, text=True)
            if "2 workers" in told.stdout:
                break
        yield address
    finally:
        for each in started:
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def killed(tour: Tour, address: str) -> None:
    """A worker dies in the middle of a study: all runs are there all the same."""
    study = "study queues.toml --set duration=10s --replications 40 --no-report --out lost"
    words = f"{study} --cluster {address}"
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit(tour.run, words, 0, "240 runs")
        while not any(Path("lost").glob("chunks/*")) and not whole.done():
            time.sleep(0.05)
        if whole.done():
            sys.exit("the study was over before a worker could be killed")
        os.killpg(tour.workers[0].pid, signal.SIGKILL)
        whole.result()


def packets(tour: Tour) -> None:
    """Real packets, where a path can be made."""
    can = subprocess.run(
        [tour.program, "shell", "--rate", "12mbit", "--", "true"],
        env=tour.environment, capture_output=True, text=True,
    )  # fmt: skip
    if can.returncode:
        print(f"not tried, with real packets: {can.stderr.strip()}")
        return
    told = tour.run(
        "shell --rate 12mbit --delay 5ms --queue 'codel limit 100' --json -- echo hi", 0
    )
    assert json.loads(told)["status"] == 0
    Path("12mbit.trace").write_text("1\n")
    tour.follow(REAL)
    shell = [tour.program, "shell", "--name", "tour", "--rate", "12mbit", "--", "sleep", "60"]
    with subprocess.Popen(shell, env=tour.environment, process_group=0) as running:
        for _ in range(50):
            time.sleep(0.1)
            line = [tour.program, "top", "--once"]
            if subprocess.run(line, env=tour.environment, capture_output=True).returncode == 0:
                break
        tour.run("top --openmetrics", 0, 'link="down"', "# EOF")
        tour.run("set tour down.rate=5mbit", 0, "12mbit -> 5mbit")
        running.terminate()


def main() -> None:
    """Follows the tour in a temporary folder."""
    folder, kind = Path(sys.argv[1]).resolve(), sys.argv[2]
    place = Path(tempfile.mkdtemp())
    os.chdir(place)
    tour = Tour(folder)
    began = time.monotonic()
    try:
        {"alone": alone, "full": full, "notebook": notebooks}[kind](tour)
        tour.end()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(f"the tour ({kind}) took {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

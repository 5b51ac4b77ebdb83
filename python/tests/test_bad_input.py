"""Every kind of bad input, through the command line: one clear message, exit status 2."""

from __future__ import annotations

import resource
import shlex
import subprocess
from pathlib import Path

import pytest
from helpers import Aqmlab, assert_refused, command

EXAMPLES = Path(__file__).parents[2] / "examples"
SPOILT = {
    "unknown key": (
        'rate = "2mbit"',
        'rat = "2mbit"',
        ["known: rate, delay, jitter", "(did you mean `rate`?)"],
    ),
    "unknown top key": ("seed = 1", "sede = 1", ["sede", "did you mean `seed`?"]),
    "unknown discipline": ('"codel"', '"coddel"', ["coddel", "did you mean `codel`?"]),
    "unknown parameter": ('limit = "100p"', 'targt = "5ms"', ["targt", "did you mean `target`?"]),
    "missing unit of a rate": ('"2mbit"', '"2"', ["links.down.rate", "`2`", "mbit"]),
    "missing unit of a time": ('delay = "20ms"', "delay = 20", ["links.down.delay", "`20`", "ms"]),
    "negative time": ('"20ms"', '"-20ms"', ["links.down.delay", "-20ms"]),
    "negative rate": ('"2mbit"', '"-2mbit"', ["links.down.rate", "-2mbit"]),
    "no rate": ('"2mbit"', '"0mbit"', ["links.down.rate", "`0"]),
    "absurd rate": ('"2mbit"', '"9e99gbit"', ["links.down.rate", "9e99gbit"]),
    "absurd time": ('"20s"', '"9e30s"', ["duration", "9e30s"]),
    "absurd count": ("count = 2", "count = 10000000000", ["flows.first.count", "10000000000"]),
    "route to no link": ('path = ["down"]', 'path = ["donw"]', ["flows.first.path", "`down`?"]),
    "empty route": ('path = ["down"]', "path = []", ["flows.first.path"]),
    "flow without packets": ('size = "350400b"', 'size = "0b"', ["flows.first.size", "0b"]),
    # Charts cannot be drawn with the line separator U+2028 in a name.
    "a group's name of two lines": (
        "[flows.first]",
        '[flows."a\\u2028b"]',
        ["flows.a", "a name on one line"],
    ),
    "a link's name of two lines": ("[links.up]", '[links."u\\np"]', ["a name on one line"]),
    "no flows in a group": ("count = 2", "count = 0", ["flows.first.count", "0"]),
    "wrong kind": ("[links.down]", "[links]\ndown = 3\n[links.x]", ["links.down", "`3`", "table"]),
    "a link as the bottleneck": (
        "[links.down]",
        '[bottleneck]\nrate = "1mbit"\n[links.down]',
        ["bottleneck", "the name of one of `links`"],
    ),
    "not TOML": ("seed = 1", "seed = = 1", ["line 3", "TOML"]),
    "a date": ("seed = 1", "seed = 2020-01-01", ["seed", "2020-01-01"]),
    "reversed interval": ('["0s", "650ms"]', '["1s", "650ms"]', ["flows.second.start"]),
}


STUDIES = {
    "unknown key": ("replications = 2", "replicatons = 2", ["replicatons", "`replications`?"]),
    "no replications": ("replications = 2", "replications = 0", ["replications", "`0`"]),
    "no such scenario": ('"scenario.toml"', '"other.toml"', ["other.toml", "no such file"]),
    "axis without values": ("values = [1, 2, 4]", "values = []", ["axes 2", "list of values"]),
    "two axes of one name": ('name = "flows"', 'name = "queue"', ["axes 2", "one name"]),
    "axis without effect": (
        'key = "flows.first.count"\nname = "flows"\nvalues = [1, 2, 4]',
        'key = "down.queue"\nname = "again"\nvalues = ["codel", "pie"]',
        ["axes: `queue`", "the axis `again`"],
    ),
    "axis like a column": ('name = "flows"', 'name = "dropped"', ["axes 2", "another name"]),
    "two alike labels": ("[1, 2, 4]", "[1, 2, 1]", ["axes 2", "one label"]),
    "a value too small": ("[1, 2, 4]", "[1, 0, 4]", ["queue=CoDel, flows=0", "count"]),
    "unknown discipline": ('"codel"', '"codle"', ["queue=CoDel", "did you mean `codel`?"]),
    "absurd number of runs": ("replications = 2", "replications = 9999999", ["59,999,994 runs"]),
    "unknown key of an axis": ('name = "queue"', 'nam = "queue"', ["axes 1", "`name`?"]),
    "a label of two lines": (
        '"CoDel"',
        '"a\\u2028b"',
        ["axes 1 (queue) value 1.label", "one line"],
    ),
    "a label that rings": ('"CoDel"', '"a\\u0007b"', ["axes 1 (queue) value 1.label", "one line"]),
}


FILES = {"run": ("scenario.toml", SPOILT), "study": ("study.toml", STUDIES)}


@pytest.mark.parametrize(
    ("command", "case"), [(name, case) for name, (_, cases) in FILES.items() for case in cases]
)
def test_a_spoilt_file_is_refused(command: str, case: str, study: Path, aqmlab: Aqmlab) -> None:
    name, cases = FILES[command]
    good, bad, words = cases[case]
    file = study.with_name(name)
    text = file.read_text()
    assert good in text
    file.write_text(text.replace(good, bad, 1))
    done = aqmlab(command, file)
    assert_refused(done, *words, str(file) if command == "run" else "")
    assert not (study.parent / "results").exists()


SET, STUDY = "run scenario.toml --set", "study study.toml --set"
TRY = "try --down 10mbit --up 2mbit --rtt 20ms"
TUNE = "search tune scenario.toml --goal sojourn_p95 --key"
LINK = "mahimahi link up.trace up.trace"
RING = "shell --pcap x --pcap-ring"
HOSTS = "shell --topology hosts.toml"
DOWN = "shell --down"
QUEUE = f"{LINK} --uplink-queue"
LINES: dict[str, list[str]] = {
    "rnu x.toml": ["no command `rnu`", "did you mean `run`?", "`aqmlab --help`"],
    "run": ["FILE is missing", "`aqmlab run --help`"],
    "run x.toml --sed 4": ["no option --sed", "--seed"],
    "run x.toml --seed x": ["--seed: expected a whole number"],
    "run x.toml --seed -1": ["--seed: expected a whole number of at least 0"],
    "run x.toml --seed": ["--seed needs a value"],
    "run x.toml y.toml": ["too many arguments: y.toml"],
    "run scenaro.toml": ["scenaro.toml", "no such file", "did you mean"],
    "run binary.toml": ["binary.toml", "not a TOML file"],
    "run .": [".: cannot be read"],
    "run study.toml": ["this is a study", "aqmlab study"],
    "run pack.toml": ["this is a pack, not a scenario", "aqmlab check pack.toml"],
    "run hosts.toml": ["this is a topology", "aqmlab shell --topology hosts.toml"],
    "study scenario.toml": ["this is a scenario", "aqmlab run scenario.toml"],
    "study pack.toml": ["this is a pack, not a study", "aqmlab check pack.toml"],
    "run paper.toml": ["this is a published study", "aqmlab reproduce paper.toml"],
    "study paper.toml": ["this is a published study", "aqmlab reproduce paper.toml"],
    "reproduce ./study.toml": ["this is a study, not a published", "aqmlab study"],
    "check study.toml": ["this is a study, not a pack", "aqmlab study study.toml"],
    "check scenario.toml": ["this is a scenario, not a pack", "aqmlab run scenario.toml"],
    "shell --topology study.toml": ["this is a study, not a topology", "aqmlab study study.toml"],
    "study scenaro.toml": ["scenaro.toml", "no such file", "did you mean"],
    "study x.toml --threads=0": ["--threads: expected a whole number of at least 1"],
    "study x.toml --replications=0": ["--replications: expected a whole number of at least 1"],
    f"{SET} queue.target": ["--set", "`queue.target`", "such as"],
    f"{SET} seed=-1": ["--set: seed: `-1`"],
    f"{SET} =2ms": ["--set", "`=2ms`", "such as"],
    f"{SET} queue..target=2ms": ["--set", "`queue..target=2ms`", "such as"],
    f"{SET} queue.=1": ["--set", "`queue.=1`", "such as"],
    f"{SET} queue.targt=2ms": ["targt", "did you mean `target`?"],
    f"{SET} queue.target=2": ["queue.target", "`2`", "ms"],
    f"{SET} links.down.rate.x=2": ["links.down.rate"],
    f"{SET} link.down.rate=2mbit": ["link", "did you mean `links`?"],
    f"{SET} queue=fq_coddel": ["fq_coddel", "did you mean `fq_codel`?"],
    f"{SET} \"transport.congestion_control={{ algorithm = 'cubic', beta = {'9' * 20} }}\"": [
        "transport.congestion_control.beta", f"`{'9' * 20}`"
    ],
    f"{SET} 'transport.congestion_control={{ algorithm = reno }}'": [
        "congestion_control", "not TOML"
    ],
    f"{SET} links.dwon.rate=5mbit": ["`dwon`: unknown link", "`down`"],
    f"{SET} quue=codel": ["quue: unknown key", "`queue`"],
    f"{SET} links.down.rate=10Mbps": ["`10Mbps`", "not mbps"],
    f"{SET} queue=pfifo_fast": ["unknown queue discipline", "`droptail`"],
    f"{STUDY} queue=pie": ["the axis `queue`"],
    f"{STUDY} flows.first.count=3": ["the axis `flows`"],
    f"{STUDY} down.queue=pie": ["the axis `queue`"],
    f"{STUDY} links.down.queue=pie": ["the axis `queue`"],
    f"{STUDY} flows=4": ["--set", "`flows`"],
    f"{STUDY} queue.flows=4": ["--set at queue=CoDel, flows=1: queue.flows: unknown key"],
    "lab scenario.toml --against nope": ["error: --against: `nope`: unknown queue discipline"],
    "merge nowhere": ["error: nowhere: there are no results of aqmlab here"],
    "explain coddel": ["did you mean `codel`?"],
    "explain codel.targt": ["did you mean `target`?"],
    "explain codel.zzzz": ["unknown parameter of codel", "interval"],
    "explain ns3": ["this is a study", "`aqmlab reproduce ns3`"],
    "explain --chart x.svg": ["needs a discipline"],
    "explain codel --chart x.txt": [".svg"],
    "explain codl --chart x.svg": ["did you mean `codel`"],
    "reproduce all --only paper": ["single study", "--only"],
    "reproduce all --trace some.trace": ["single study", "--trace"],
    "reproduce jarvinen2014 --trace some.trace": ["jarvinen2014", "--trace"],
    "reproduce jarvinen2014 --emulate": ["jarvinen2014", "real packets"],
    "reproduce cs244_2015 --step 1s": ["--step", "--emulate"],
    "reproduce kuhn2014 --with queues=pie": ["--with", "queues", "queue"],
    "reproduce kuhn2014 --with queue=CoDel": ["--with", "this label"],
    "reproduce kuhn2014 --with buffer=9p": ["--with", "queue.limit"],
    "reproduce kuhn2014 --with queue=fq_codle": ["fq_codle", "fq_codel"],
    "characterize codle": ["did you mean `codel`?"],
    "characterize codel --section 8.4": ["--section: `8.4`: unknown section"],
    "characterize codel --set targte=5ms": ["did you mean `target`?"],
    "characterize codel --set target=5": ["expected a time"],
    "characterize codel --against droptail,pei": ["--against: `pei`"],
    "characterize codel --rate 10": ["--rate"],
    "characterize codel --rtt -3ms": ["--rtt"],
    "characterize codel --rtt 0ms": ["--rtt: `0ms`: expected more than 0"],
    "characterize codel --rtt 7s": ["--rtt: `7s`: the path is too long"],
    "characterize droptail": ["--against"],
    "characterize codel --control foo": ["error: --control: `foo`", "cubic"],
    "characterize codel --control noq:bbr": ["error: --control: `bbr`", "bbr3"],
    "evaluate nope --only loss": ["error: CONTROL: `nope`: unknown congestion control"],
    "evaluate quiche:cubic": ["error: CONTROL: `quiche`: expected one of noq, quinn"],
    "evaluate noq:vegas": ["CONTROL: `vegas`: expected one of new_reno, cubic, bbr, bbr3"],
    "evaluate noq:bbr": ["CONTROL: `bbr`: expected one of new_reno, cubic, bbr3 with stack `noq`"],
    "evaluate cubic --only loss --param bta=1": ["error: CONTROL bta: unknown key"],
    "evaluate cubic --only loss --set enc=classic": ["error: --set enc: unknown key"],
    "evaluate reno --only constraned": ["did you mean `constrained`"],
    f"{TRY} codel --assert call.mos": ["--assert", "call.mos > 4"],
    f"{TRY} codel --assert 'cal.mos > 4'": ["cal.mos", "call.mos"],
    f"{TRY} codel --assert 'game.delay < 3mbit'": ["--assert", "3mbit", "30ms"],
    f"{TRY} codel --down fast": ["--down", "fast"],
    f"{TRY} codel --rtt 20": ["--rtt", "20", "ms"],
    f"{TRY} codel --access dls": ["dls", "dsl"],
    f"{TRY} codel --load hom": ["hom", "home"],
    f"{TRY} codel --profile dls": ["--profile", "dls", "dsl"],
    f"{TRY} codel --shape 95": ["--shape", "95", "above 0, to 1"],
    f"{TRY} codel --up 100gbit": ["--up: `100gbit`", "a slower line or fewer queues"],
    f"{TRY} fq_codle": ["error: QUEUE: `fq_codle`", "fq_codel"],
    f"{TRY} 'fq_codel trget 3ms'": ["error: QUEUE: `trget`", "target"],
    f"{TRY} codel codel": ["twice"],
    f"{TRY} 'cake bandwidth 9mbit'": ["error: QUEUE", "cake bandwidth 9mbit", "up: cake"],
    f"{TRY} 'up: cake up: codel'": ["error: QUEUE", "up: QUEUE down: QUEUE"],
    f"{TRY} 'codel up: cake'": ["error: QUEUE", "up: QUEUE down: QUEUE"],
    f"{TRY} up:": ["error: QUEUE", "up: QUEUE down: QUEUE"],
    f"{TRY} codel --device averyveryverylongname": ["--device", "1 to 15", "such as eth0"],
    f"{TRY} codel --device 'eth0; reboot'": ["--device", "1 to 15", "such as eth0"],
    f"{TRY} codel --device ..": ["--device", "1 to 15", "such as eth0"],
    f"{TRY} codel --device ''": ["--device", "1 to 15", "such as eth0"],
    "try --down 10mbit --up 2mbit codel": ["--rtt", "missing", "--profile"],
    "new queue My-Queue": ["lower-case"],
    "new qeue mine": ["did you mean `queue`?"],
    "new queue none": ["none", "keyword of Python"],  # class None
    "new control true": ["true", "keyword of Python"],
    "new queue random": ["random", "module"],
    "new metric polars": ["polars", "module"],
    "new rust-queue self": ["self", "keyword of Rust"],
    "new quic-controller match": ["match", "keyword of Rust"],
    "search tune scenario.toml --goal sojourn_p95": ["there is nothing to search"],
    "search tune scenario.toml --key queue.limit=2p..9p": ["--goal: a search needs a goal"],
    "search attack scenario.toml --key queue.limit=2p..9p": ["needs a metric"],
    f"{TUNE} queue.targt=1ms..2ms --set queue=codel": ["--key queue.targt: unknown key"],
    f"{TUNE} links.down.delay=1ms..2mbit": ["same kind of unit"],
    f"{TUNE} links.down.rate=1ms..2ms": ["expected a rate"],
    f"{TUNE} queue.limit=0p..9p": ["queue.limit: `0p`"],
    f"{TUNE} queue.limit=1p..9p --set queue.limit=4p": ["nothing to search"],
    f"{TUNE} queue.limit=9p..2p": ["a smaller and a larger"],
    f"{TUNE} queue.limit=7p": ["nothing to search"],
    f"{TUNE} queue.limit=2p..9p,steps=3,every=1s": ["only the rate and the delay"],
    f"{TUNE} queue.limit=2p..9p --goal sojourn_p59": ["unknown metric"],
    f"{TUNE} queue.limit=2p..9p --goal goodput@absent": ["unknown link or group"],
    f"{TUNE} queue.limit=2p..9p --within 'drop_share@absent<=1'": ["unknown link or group"],
    f"{TUNE} queue.limit=2p..9p --within 'drop_share<1'": ["METRIC@SUBJECT<=VALUE"],
    "mahimahi dealy 5": ["dealy", "did you mean `delay`?"],
    "mahimahi delay": ["delay MILLISECONDS"],
    "mahimahi delay 5ms": ["MILLISECONDS", "`5ms`"],
    "mahimahi delay -5": ["MILLISECONDS", "`-5`"],
    "mahimahi delay 99999999": ["MILLISECONDS"],
    "mahimahi loss up 0.1": ["direction", "`up`", "uplink"],
    "mahimahi loss uplink 10": ["RATE", "0 to 1"],
    "mahimahi loss uplink nan": ["RATE"],
    "mahimahi onoff uplink 0 0": ["MEAN-ON-TIME"],
    "mahimahi onoff uplink 0.0001 1": ["MEAN-ON-TIME", "1ms"],
    "mahimahi link up.trace": ["link UPLINK DOWNLINK"],
    "mahimahi link up.trace nowhere": ["DOWNLINK", "nowhere", "there is no such file"],
    "mahimahi link up.trace bad.trace echo never": ["bad.trace:2", "DOWNLINK"],
    f"{LINK} --uplink-qeue=codel": ["--uplink-qeue", "--uplink-queue"],
    f"{QUEUE}=cake": ["--uplink-queue", "cake", "codel"],
    f"{QUEUE}=codel": ["--uplink-queue-args", "target"],
    f"{QUEUE}=droptail": ["--uplink-queue-args", "limit"],
    f"{QUEUE}=droptail --uplink-queue-args=packets": ["--uplink-queue-args", "NAME=NUMBER"],
    f"{QUEUE}=pie --uplink-queue-args=target=5": ["--uplink-queue-args", "qdelay_ref"],
    f"{QUEUE}=pie --uplink-queue-args=packet=5": [
        "--uplink-queue-args", "`packet`", "did you mean `packets`?"
    ],
    f"{LINK} --uplink-queue-args=packets=5": ["--uplink-queue-args", "infinite"],
    f"{LINK} --once=yes": ["--once"],
    f"{LINK} --uplink-log": ["--uplink-log"],
    "shell --rate 12 -- true": ["--rate", "`12`", "10mbit"],
    "shell --queue coddel -- true": ["--queue", "did you mean `codel`?"],
    "shell --queue 'codel traget=5ms' -- true": ["--queue", "did you mean `target`?"],
    "shell --delay 5 -- true": ["--delay", "`5`"],
    "shell --loss 200% -- true": ["--loss: `200%`"],
    f"{DOWN} rate=1mbit --down rate=2mbit --rate 3mbit -- true": ["--rate", "`down`"],
    f"{DOWN} 12mbit -- true": ["--down", "rate=12mbit"],
    f"{DOWN} foo=3 -- true": ["--down (foo): unknown key"],
    f"{DOWN} rate=foo -- true": ["--down (rate): `foo`"],
    f"{DOWN} rate=1mbit --delay foo -- true": ["--delay: `foo`"],
    f"{DOWN} trace=none -- true": ["none: --down (trace)"],
    f"{DOWN} loss=x% -- true": ["--down (loss): `x%`"],
    f"{DOWN} 'rate=1mbit trace=up.trace' -- true": ["--down (trace)", "not both"],
    "shell --rate 1mbit --trace up.trace -- true": ["--trace: `up.trace`", "not both"],
    "attach --pid 1 --for nan": ["--for: expected a number"],
    "characterize codel --buffer nan": ["--buffer: expected a number from 0.05 to 1000"],
    "set lab down.rate": ["KEY=VALUE: `down.rate`", "down.rate=5mbit"],
    "shell --trace nowhere -- true": ["nowhere", "there is no such file"],
    "shell --trace bad.trace -- true": ["bad.trace:2", "--trace"],
    "shell --set 'links.up.rate={trace=\"none\"}' -- true": ["none: links.up.rate.trace"],
    "shell --set 'up.delay={csv=\"none\"}' -- true": ["none: links.up.delay.csv"],
    "run scenario.toml --set flows=3": ["flows: `3`", "[flows.bulk]"],
    "run scenario.toml --set record.levl=series": ["--set: record.levl", "`level`"],
    "run scenario.toml --set record.level=x --out x": ["--set: record.level: `x`"],
    "shell --scenario scenario.toml --set record.interval=5 -- true": ["--set: record.interval:"],
    "shell --scenario nowhere.toml -- true": ["nowhere.toml", "there is no such file"],
    "shell --precision high -- true": ["--precision", "low-cpu"],
    "shell --mtu 20 -- true": ["--mtu: `20`"],
    "set nowhere down.rate=1mbit": ["NAME: `nowhere`"],
    "run scenario.toml --pcap x --pcap-link dwn": ["--pcap-link: `dwn`: unknown link"],
    "study study.toml --precision 5": ["--precision: `5`: expected a share"],
    "run seed.toml": ["seed.toml: line 1: not TOML", "--seed takes larger ones"],
    "run seed2.toml": ["line 1: not TOML: 18446744073709551616 is too large", "--seed takes"],
    "run scenario.toml --seed 18446744073709551616": ["--seed: `1844", "0 to 1844674407370955161"],
    "study study.toml --seed 18446744073709551616": ["--seed: `1844", "0 to 1844674407370955161"],
    "compare nowhere": ["nowhere: there are no results"],
    f"{RING} 1kb -- true": ["--pcap-ring", "1kb"],
    f"{RING} 0.99mb -- true": ["`0.99mb`: expected a size of at least 1mb"],
    f"{RING} 1mb --queue coddel -- true": ["--queue"],
    f"{RING} ten -- true": ["--pcap-ring", "ten"],
    f"{RING} 5 -- true": ["--pcap-ring", "5"],
    f"{RING} -1mb -- true": ["--pcap-ring", "-1mb"],
    "shell --pcap-ring 5mb -- true": ["--pcap"],
    "shell --pcap x --pcap-at here -- true": ["--pcap-at", "here", "near, far"],
    f"{HOSTS} --at bob -- true": ["--at", "bob", "alice"],
    f"{HOSTS} --host alice -- true": ["NAME=COMMAND"],
    f"{HOSTS} --host \"alice=it's\" -- true": ["--host alice: `it's`", "no closing quotation"],
    "shell --far \"it's\" -- true": ["--far: `it's`", "no closing quotation"],
    "shell --topology open.toml -- true": ["open.toml: hosts.alice.command: `it's`"],
    "shell --topology links.toml -- true": ["links.toml: links: `1`: expected tables"],
    "study null.toml": ["'\\x00': this is no name of a file"],
    f"{HOSTS} --rate 1mbit -- true": ["--rate"],
    f"{HOSTS} --loss 0 -- true": ["--loss", "--topology"],
    f"{HOSTS} --nat -- true": ["--nat", "--host NAME=COMMAND"],
    "shell --at alice -- true": ["--at", "--topology"],
}  # fmt: skip
"""Command lines, in a folder with the files of `given`, and the words of the message."""


@pytest.fixture
def given(study: Path) -> Path:
    """A folder with a scenario, a study, a pack, a topology, a file that is no text, two traces."""
    folder = study.parent
    pack = EXAMPLES.parent / "python" / "aqmlab" / "templates" / "pack.toml"
    (folder / "pack.toml").write_text(pack.read_text())
    (folder / "hosts.toml").write_text((EXAMPLES / "topology.toml").read_text())
    (folder / "paper.toml").write_text((EXAMPLES / "my_study.toml").read_text())
    (folder / "open.toml").write_text('hosts.alice.command = "it\'s"\n')
    (folder / "links.toml").write_text("links = 1\nhosts = { a = {}, b = {} }\n")
    (folder / "null.toml").write_text('scenario = "\\u0000"\n')
    (folder / "seed.toml").write_text("seed = 9223372036854775808\n")
    (folder / "seed2.toml").write_text("seed = 18446744073709551616\n")
    (folder / "binary.toml").write_bytes(b"\xff\xfe\x00\x01")
    (folder / "up.trace").write_text("1\n")
    (folder / "bad.trace").write_text("1\nx\n")
    return folder


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_command_line_is_one_sentence(line: str, given: Path, aqmlab: Aqmlab) -> None:
    before = sorted(given.rglob("*"))
    assert_refused(aqmlab(*shlex.split(line)), *LINES[line])
    assert sorted(given.rglob("*")) == before


def test_a_byte_order_mark_is_ignored(study: Path, aqmlab: Aqmlab) -> None:
    for file in (study, study.with_name("scenario.toml")):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    aqmlab.ok("study", study, "--out", "out", "--no-report")


def test_a_full_stdout_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        words = command("list", "--json")
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: stdout: No space left on device\n"


def test_a_full_disk_is_named_and_the_rest_kept(
    study: Path, aqmlab: Aqmlab, aqmlab_process: Aqmlab
) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = aqmlab_process("study", study, "--out", "out", preexec_fn=small_files)
    assert_refused(done, "out: the limit on the size of a file", "same command", status=1)
    out = study.parent / "out"
    assert not list(out.rglob("*.tmp")), "half-written files were left"
    aqmlab.ok("study", study, "--out", "out")


def test_an_unwritable_folder_is_named(study: Path, aqmlab: Aqmlab) -> None:
    (study.parent / "file").write_text("mine")
    assert_refused(aqmlab("study", study, "--out", "file"), "file: this is a file")
    done = aqmlab("study", study, "--out", "file/below")
    assert_refused(done, "file/below: Not a directory", "0 of 12 runs are kept", status=1)
    assert (study.parent / "file").read_text() == "mine"


def test_the_command_alone_shows_its_help(aqmlab: Aqmlab) -> None:
    done = aqmlab()
    assert "Usage: aqmlab" in done.stdout
    assert done.stderr == ""

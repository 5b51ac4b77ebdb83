"""The engine: what the Rust extension module offers. Times are seconds, sizes bytes."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

from aqmlab.errors import AqmlabError

__all__ = [
    "AckSample",
    "CongestionEvent",
    "Context",
    "ControlError",
    "CustomError",
    "Emulation",
    "Files",
    "InputError",
    "Limit",
    "Link",
    "LostSegment",
    "Packet",
    "QueueError",
    "RateSample",
    "Results",
    "Run",
    "Runner",
    "Scenario",
    "SentSample",
    "Setup",
    "Snapshot",
    "Table",
    "__engine__",
    "__version__",
    "advance_all",
    "check_playable",
    "close_sender",
    "describe",
    "emulate",
    "emulate_hosts",
    "has_far_end_here",
    "next_sender",
    "pack_sender",
    "parse_quantity",
    "parse_queue",
    "parse_shaper",
    "parse_value",
    "play",
    "queue_in_tc",
    "queue_in_words",
    "reference",
    "replay",
    "replay_sender",
    "shaper_in_tc",
]

__engine__: str
__version__: str

class InputError(AqmlabError, ValueError):
    """What a user can cause: the one exception that the engine raises.

    `str(error)` is the whole message: file, key, what was given, what is allowed.
    """

    file: str | None
    key: str
    given: str | None
    problem: str
    hint: str | None

class CustomError(AqmlabError, RuntimeError):
    """Code of the user's own, written in Python, did something wrong.

    `str(error)` names file, line, class and method; `__cause__` is the exception that
    the class raised, if it raised one.
    """

    run: int
    """The number of the run."""

class QueueError(CustomError):
    """It is a queue discipline's."""

class ControlError(CustomError):
    """It is a congestion control's."""

@final
class Packet:
    """A packet in a queue. It cannot be made or copied; keep the object itself."""

    size: int
    """Bytes on the wire."""
    flow: int
    """A hash of what makes a flow, of 32 bits."""
    arrival: int
    """When it came to this queue, in nanoseconds."""
    hosts: tuple[int, int]
    """Numbers of the hosts that it comes from and goes to."""
    class_: int
    """Its DSCP."""
    pure_ack: int | None
    """Acknowledgement number (32 bits) of a TCP segment that only acknowledges, else None."""
    ecn: int
    """The ECN codepoint: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE."""
    ecn_capable: bool
    """Whether it may be marked."""
    def __deepcopy__(self, memo: dict[int, object], /) -> Packet: ...

@final
class Context:
    """What a queue may use during a call."""

    now: int
    """The time in nanoseconds."""
    packets: int
    """How many packets the queue holds, without one that is just arriving."""
    bytes: int
    """Their bytes on the wire."""
    def drop(self, packet: Packet, reason: str = "user") -> None:
        """Gives up a packet, be it the arriving one or one from the queue. `reason` is one of
        the results' columns `drop_...`."""
    def mark(self, packet: Packet, reason: str = "user") -> None:
        """Sets CE on an ECN-capable packet, which stays or is returned."""
    def random(self) -> float:
        """Uniform in [0, 1), from the queue's own random stream."""

@final
class Link:
    """The link behind a queue."""

    rate: int
    """Bits per second."""
    base_rtt: int
    """The longest round-trip time without queues of the flows over it, in nanoseconds."""
    mtu: int
    """The largest packet on the link layer, in bytes."""
    def __deepcopy__(self, _memo: object, /) -> Link: ...

@final
class Limit:
    """How much a queue holds: the value of a parameter such as `"100p"` or `"2bdp"`."""

    def admits(self, packets: int, bytes: int, size: int) -> bool:
        """Whether a queue of `packets` packets and `bytes` bytes has room for `size` more."""
    def __deepcopy__(self, _memo: object, /) -> Limit: ...

@final
class Setup:
    """What a congestion control is made from."""

    mss: int
    """The payload of a full segment, in bytes."""
    header: int
    """Bytes on the wire that each segment has besides its payload."""
    initial_window: int
    """The first window in bytes: one segment if the SYN was lost."""
    initial_ssthresh: int
    """The first slow start threshold in bytes."""
    def random(self) -> float:
        """Uniform in [0, 1), from a stream of the connection's own."""
    def __deepcopy__(self, _memo: object, /) -> Setup: ...

@final
class AckSample:
    """An acknowledgement that delivers data or tells of CE marks. Times are nanoseconds."""

    now: int
    """When it came."""
    acked: int
    """Bytes newly acknowledged, cumulatively."""
    sacked: int
    """Bytes newly reported by SACK."""
    delivered: int
    """Bytes newly delivered, in either way."""
    lost: int
    """Bytes newly taken for lost."""
    ce_bytes: int
    """Bytes newly reported to have come with CE (accurate ECN)."""
    ce_packets: int
    """Packets newly reported to have come with CE (accurate ECN)."""
    ece: bool
    """Whether it tells of CE marks."""
    prior_in_flight: int
    """Bytes in flight before it came."""
    in_flight: int
    """What counts against the window after it."""
    rtt: int | None
    """The round-trip time measured with it, if there was one to measure."""
    one_way_delay: int | None
    """From the sending of the data to that of the acknowledgement; only with `timestamps`."""
    smoothed_rtt: int | None
    """The smoothed round-trip time with it."""
    min_rtt: int | None
    """The least round-trip time of the connection."""
    rate: RateSample | None
    """The delivery rate; only with `needs_rate_samples`, if there was enough to measure it."""
    round_start: bool
    """Whether a round begins: data sent after the last one began have been acknowledged."""
    total_delivered: int
    """All bytes delivered so far."""
    total_lost: int
    """All bytes taken for lost so far."""
    in_recovery: bool
    """Whether the sender is in a recovery: windows do not grow then."""
    in_loss: bool
    """Whether the data of a timeout are not through yet."""
    window_limited: bool
    """Whether the window, and not the application, has held the sender back."""

@final
class RateSample:
    """A sample of the rate at which data arrive."""

    delivered: int
    """Bytes delivered since `prior_delivered`."""
    interval: int
    """Over this time, in nanoseconds."""
    app_limited: bool
    """Whether the application had nothing to send when the segment was sent."""
    prior_delivered: int
    """All bytes delivered when the segment was sent."""
    lost: int
    """Bytes taken for lost since then."""
    tx_in_flight: int
    """Bytes in flight just after it was sent, with it."""
    rtt: int
    """The time since it was sent, in nanoseconds."""

@final
class CongestionEvent:
    """Congestion was found."""

    now: int
    """When, in nanoseconds."""
    kind: str
    """`loss`, `timeout` or `ecn`."""
    first: bool
    """False if the same segment has timed out before."""
    flight_size: int
    """Bytes sent and not acknowledged, without what limited transmit sent."""
    in_flight: int
    """What counts against the window."""

@final
class SentSample:
    """A data segment that is sent."""

    now: int
    """When, in nanoseconds."""
    bytes: int
    """Its payload."""
    prior_in_flight: int
    """What counted against the window before it."""
    app_limited: bool
    """Whether the application has held the sender back."""
    retransmission: bool
    """Whether it was sent before."""

@final
class LostSegment:
    """A segment that is taken for lost."""

    bytes: int
    """Its payload."""
    tx_in_flight: int
    """Bytes in flight just after it was sent, with it."""
    lost: int
    """Bytes taken for lost since it was sent, with it."""
    app_limited: bool
    """Whether the application had nothing to send when it was sent."""

@final
class Files:
    """Files that scenarios name: scenarios that share this read and parse each once."""

    def __new__(cls, contents: Sequence[tuple[tuple[Sequence[str], str], bytes]] = ...) -> Self:
        """`contents` is what `contents()` of another gave: these are not read again."""
    def contents(self) -> list[tuple[tuple[list[str], str], bytes]]:
        """Of each file that was read the folders in which it was looked for, its name, and what
        is in it."""

@final
class Scenario:
    """A checked scenario with every default filled in."""

    def __new__(
        cls,
        source: str | Mapping[str, Any],
        *,
        file: str = "<scenario>",
        overrides: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        folders: Sequence[str] = ...,
        files: Files | None = None,
    ) -> Self:
        """`source` is TOML text or the same as a mapping; `overrides` maps dotted keys
        (`links.bottleneck.rate`; `bottleneck.rate`; `queue...` for the bottleneck's queue) to
        values, and `settings` are those of the option `--set`, which errors about them name; files
        that the scenario names are looked for in `folders` and then in the working directory, and
        kept in `files`."""
    folders: list[str]
    @property
    def resolved(self) -> str:
        """Canonical JSON, every default filled in: the same for equal scenarios."""
    def to_toml(self) -> str:
        """The scenario as the text of a file, every default filled in."""
    table: dict[str, Any]
    """The same as a dictionary."""
    def mean_rate(self, link: str) -> float:
        """Mean rate of a link in bit/s. Raises `KeyError` for an unknown link."""
    def trace_period(self, link: str) -> float | None:
        """How long the trace of a link is, in seconds; `None` for a link without one."""

@final
class Table:
    """Columns that leave the engine without being copied (Arrow PyCapsule interface)."""

    num_rows: int
    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows, for a few of them: without a library for tables."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Results:
    """Finished runs. Tables: `runs`, `links`, `flows`, `groups`, `times`, `scores`,
    `excursions`, `sojourn`, `delays`, `notes`, and, by recording level, `series`, `packets`.
    Every table has a first column `run`."""

    runs: list[int]
    """The numbers of the finished runs."""
    delivered_packets: int
    events: int
    @staticmethod
    def join(parts: Sequence[Results]) -> Results:
        """The runs of several results, without a copy."""
    def table(self, name: str) -> Table: ...
    def part(self, name: str, start: int, rows: int) -> Table:
        """Rows of a large table from row `start` on, `rows` at most."""
    @staticmethod
    def large_tables() -> list[str]:
        """The tables that `part` can make: those that may be too large to be made at once."""
    large_rows: int
    """How many rows the large tables have together."""
    small_rows: int
    """How many flows, links and steps of histograms the other tables are made of."""
    @staticmethod
    def table_names() -> list[str]: ...

@final
class Snapshot:
    """State of a run."""

    time: float
    """Virtual time in seconds."""

@final
class Run:
    """A run under way, of one thread. When code in Python fails in it, or it makes no progress,
    it is over, as after `finish`: `next_time` is `None`, and everything
    else raises `InputError`."""

    def __new__(cls, scenario: Scenario, replication: int = 0) -> Self: ...
    time: float
    """The virtual time that it has come to, in seconds."""
    next_time: float | None
    """Time of the next event in seconds; `None` at the end, and after it."""
    events: int
    """Events that were handled so far."""
    scenario: Scenario
    """The scenario with all that was changed."""
    def advance(self, until: float) -> None:
        """Lets happen all that is before `until`, in seconds."""
    def step(self) -> float | None:
        """Lets the next event happen; gives its time in seconds, or `None` at the end."""
    def set(self, key: str, value: object) -> float:
        """Gives a key another value from now on; gives the time of that in seconds."""
    def replace(self, key: str, value: object) -> float:
        """The same with a new state of the queue."""
    def drop_later_changes(self) -> None:
        """Takes out the changes of the scenario that are still to come."""
    def snapshot(self) -> Snapshot:
        """Returns a copy of the state."""
    def restore(self, snapshot: Snapshot) -> None:
        """Returns to the state of a snapshot."""
    def fork(self) -> Run:
        """Returns a copy of the run."""
    position: tuple[int, int, int, int]
    """Replication, time and time of the next events in nanoseconds, and number of events."""
    @staticmethod
    def repeat(scenario: Scenario, position: tuple[int, int, int, int]) -> Run:
        """Makes the state at a position again, by repeating the run."""
    def rewind(self, to: float) -> None:
        """Returns to an earlier time, in seconds, with all current changes."""
    def observe(self) -> dict[str, Any]:
        """The state of `links` by name, and of the `flows` that are active."""
    def samples(self, group: str, index: int | None) -> dict[str, list[float]]:
        """Returns columns of the acknowledgements of a group or flow since the last call."""
    def finish(self) -> tuple[Results, str]:
        """Goes on to the end: the tables, and the digest of them."""

def advance_all(runs: Sequence[Run], until: Sequence[float], threads: int) -> None:
    """Advances runs, each to its time in seconds, on several threads without the GIL."""

@final
class Runner:
    """Runs jobs on all cores in the background."""

    def __new__(
        cls,
        jobs: Sequence[tuple[int, Scenario, int]],
        *,
        threads: int | None = None,
        open: bool = False,
        spill: str | None = None,
        record: Mapping[str, object] | None = None,
    ) -> Self:
        """A job is (run number, scenario, replication), under the scenario's seed. One that is
        `open` takes more jobs until `close()`. In the folder `spill`, if one is given, records of
        packets wait until tables are made of them. A `record` is of the only job. `poll` raises
        `OSError` if one of their files cannot be written."""
    def extend(self, jobs: Sequence[tuple[int, Scenario, int]]) -> None:
        """More jobs."""
    def close(self) -> None:
        """Says that no more jobs will come."""
    def poll(self, timeout: float) -> Results | None:
        """Waits up to `timeout` seconds for finished runs and takes all there are; None if none.
        The GIL is released meanwhile. A panic in the engine is raised here as RuntimeError. A fault
        of code in Python starts no further run and is raised, as `CustomError`, when all that
        were under way have been taken."""
    def stuck(self) -> dict[int, str]:
        """Runs that made no progress and were given up since this was last asked: their
        numbers, and at what time and event they were."""
    finished: int
    total: int
    def stop(self) -> set[int]:
        """Starts no further job and gives up those under way. Returns the threads on which a
        method in Python is still running some seconds later."""

def replay(
    queue: Mapping[str, Any],
    times: NDArray[np.uint64],
    flows: NDArray[np.uint32],
    sizes: NDArray[np.uint32],
    ecn: NDArray[np.uint8],
    *,
    rate_bps: int,
    ns_per_byte: int,
    random_seed: int,
    mtu: int,
    emulator: bool = False,
) -> Table:
    """What `queue` does with arrivals at a link that answers to nothing.

    `queue` is what stands under `queue` in a scenario; a packet's number is its place in the
    columns; times are nanoseconds here. Columns, in the order of the decisions: `id`, `verdict`,
    `t_ns`, `sojourn_ns`, `t_mark_ns` (null if not marked), `reason` (null if not dropped).
    The GIL is released meanwhile."""

def pack_sender(
    name: str,
    events: str,
    *,
    control: str,
    stack: str,
    recovery: str,
    frto: bool,
    tail_loss_probe: bool,
    after_idle: bool,
    offload: bool,
    path: Mapping[str, Any],
    receive_buffer: int | None,
    all_acknowledged_ns: int,
    retransmitted: int,
) -> bytes:
    """Reads the events of a recorded sender, a table in CSV, and packs them with its settings."""

def close_sender(packed: bytes) -> tuple[str, tuple[int | None, int], tuple[int | None, int], bool]:
    """Plays a packed sender with both ends ours over the recorded path. Returns its name; when
    all was acknowledged (nanoseconds) and how many segments were sent again, here and in the
    recording; and whether the time is within 1 % and the number within two or 2 %."""

def replay_sender(packed: bytes) -> tuple[str, tuple[int, int, int, int, int, int | None]]:
    """Replays a packed sender. Returns its name, and: segments, equal ones, windows, equal ones,
    round-trip times that are equal within a millisecond, when the first segment or window
    differed (nanoseconds). The GIL is released meanwhile."""

def next_sender(packed: bytes, begin: int) -> tuple[str, int]:
    """The name of the packed sender that begins there, and where the next one does."""

def parse_quantity(kind: Literal["time", "rate", "size"], text: str) -> tuple[int, str]:
    """Reads a time (ns), rate (bit/s) or size (bytes); the number and its canonical text.

    Raises `InputError` with the units that are allowed.
    """

def parse_queue(queue: str | Mapping[str, Any]) -> dict[str, str]:
    """A queue with every parameter as text, from words (`"fq_codel limit 1000p"`) or a table.
    Raises `InputError` for an unknown one."""

def parse_shaper(shaper: str | Mapping[str, Any]) -> dict[str, str]:
    """A shaper with every parameter as text, from words (`"htb rate 9500kbit"`) or a table.
    Raises `InputError`."""

def queue_in_tc(
    queue: str | Mapping[str, Any], rate: str | None = None
) -> tuple[str, list[str]] | None:
    """A queue in the words of tc(8), and the parameters that tc has no words for
    (`"variant = ns3"`); `None` if Linux has none such. `rate` is that of the link, for disciplines
    that have to be told. Raises `InputError`."""

def queue_in_words(queue: str | Mapping[str, Any]) -> str:
    """A queue in words that read back as the same. Raises `InputError`."""

def shaper_in_tc(shaper: str | Mapping[str, Any]) -> tuple[str, list[str]]:
    """A shaper in the words of tc-htb(8), and the parameters that tc has no words for. The
    overhead counts from the packet's size without a header of Ethernet. Raises `InputError`."""

def parse_value(text: str) -> Any:
    """What stands after `--set key=`: a TOML value, or else the text itself."""

def describe(name: str, folders: Sequence[str]) -> tuple[str, str, list[dict[str, Any]]]:
    """Of a class in Python or a type of a library: `queue` or `congestion_control`, one line about
    it, and its parameters: [{"name", "kind", "default"}]; of a library all keys of `reference`."""

def reference() -> list[dict[str, Any]]:
    """Everything that has parameters, from the declarations: a list of
    {"section": "queue" | "transport" | "workload" | "scenario" | "link" | "flow" | "record",
     "name": "codel", "summary": str, "preset_of": str | None, "settings": {key: text},
     "source": str | None, "tc": str | None (of queues: the words for the defaults),
     "words": [{"word", "has_value", "key", "sets", "why", "is_refused"}] (of queues and shapers),
     "params": [{"name", "kind", "default", "range": [low, high] | None,
                 "choices": [..], "meaning", "source"}]}."""

@final
class Emulation:
    """A command that has been run behind emulated links."""

    status: int
    """Its exit status, as shells give it: 127 or 126 if it could not be started, 128 and
    the number of the signal if one ended it."""
    scenario: Scenario
    """The links, with what was changed while packets passed."""
    results: Results
    """The tables of the links, as those of a simulation."""
    remarks: list[str]
    """Sentences for the user."""
    lateness: dict[str, float]
    """How late packets left, in seconds: count, p50_s, ..., p99_s, max_s. This is how long
    they waited to be read, at most, and how long after their time they were written."""
    input_lateness: dict[str, float]
    """How long of that they waited to be read, in the same form."""

def emulate(
    scenario: Scenario,
    command: Sequence[str],
    *,
    down: Sequence[str],
    up: Sequence[str],
    environment: Sequence[tuple[str, str]],
    far: Sequence[str] = ...,
    nat: bool = False,
    settings: Mapping[str, Any] | None = None,
    logs: Sequence[tuple[str, str, Sequence[str]]] = ...,
    capture: tuple[str, int | None, int, str] | None = None,
    until: float | None = None,
    attached: int | None = None,
    interface: str | None = None,
) -> Emulation:
    """Runs `command` in a namespace of its own behind links of `scenario`.

    `down` are the names of the links to the command, `up` those from it, in order.
    `far` is a command for the other end; with `nat` the command reaches what is outside.
    `settings` are those of the section
    `emulator` of the reference. The process must have one thread.

    `logs` are logs in mahimahi's format: of a link, its file, and the lines that
    it begins with. `capture` is a pcapng file: its name, of how many bytes the
    last are kept (`None` for all), how many bytes of each packet, and where packets are
    captured: `near` (where the command sends or receives them), `far` or `all`. After `until`
    seconds the command is ended. With `attached`, a process ID, the path is put in front of the
    network namespace of that process, and the command runs there; with `interface`, a name, in
    front of that interface of this network namespace.

    Raises `InputError` for settings that are not right, and if the system permits no
    such thing.
    """

def has_far_end_here() -> bool:
    """Whether the far end of a shell is where the shell is started: with root, and with what
    permits network devices there. Otherwise it is in a namespace of its own."""

def check_playable(scenario: Scenario) -> None:
    """Raises `InputError` for workloads and congestion controls of `scenario` that cannot be
    had with real sockets here."""

def play(
    scenario: Scenario,
    *,
    run: int = 0,
    replication: int = 0,
    settings: Mapping[str, Any] | None = None,
    logs: Sequence[tuple[str, str, Sequence[str]]] = ...,
    capture: tuple[str, int | None, int, str] | None = None,
) -> Emulation:
    """Plays the workloads of `scenario` with the kernel's TCP and UDP behind its links.

    It takes the scenario's duration. `run` is the number of the run in the tables;
    `replication` chooses the draws, as in a simulation; `logs` and `capture` are as in
    `emulate`. The process must have one thread.

    Raises `InputError` for workloads and congestion controls that cannot be had with real
    sockets, and as `emulate`.
    """

def emulate_hosts(
    scenario: Scenario,
    hosts: Sequence[tuple[str, Sequence[str]]],
    ways: Sequence[tuple[int, int, Sequence[str]]],
    *,
    main: int,
    environment: Sequence[tuple[str, str]],
    settings: Mapping[str, Any] | None = None,
    logs: Sequence[tuple[str, str, Sequence[str]]] = ...,
    capture: tuple[str, int | None, int, str] | None = None,
) -> Emulation:
    """Runs commands in hosts of their own, which share the links of `scenario`.

    `hosts` are names and commands (none: nothing runs there), `ways` the links from one host to
    another, by their numbers. It ends with the command of the host `main`, whose exit status
    is the emulation's. Otherwise as `emulate`.
    """

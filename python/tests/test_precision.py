"""Replications are added until an interval is as narrow as was asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import Aqmlab, table_bytes
from numpy.typing import NDArray

import aqmlab as package
from aqmlab.errors import InputError
from aqmlab.metrics import headlines
from aqmlab.report.measures import estimates
from aqmlab.report.notes import note_lines
from aqmlab.stats import interval
from aqmlab.stats.intervals import after_looks, limits
from aqmlab.study.precision import Precision
from aqmlab.study.sequential import reached

LINK = {"rate": "2mbit", "delay": "10ms"}
CALLS = {"kind": "transfers", "gap": {"exponential": "0.2s"}, "size": {"exponential": "20kb"}}
STUDY = {
    "name": "p",
    "replications": 4,
    "scenario": {
        "duration": "2s",
        "bottleneck": "down",
        "links": {"down": LINK, "up": LINK},
        "flows": {"web": {"path": "down", "return_path": "up", "workload": CALLS}},
    },
    "axes": [{"key": "queue", "values": ["droptail", "codel"]}],
}


def test_the_tables_are_those_of_a_study_with_as_many_replications_also_interrupted(
    tmp_path: Path,
) -> None:
    exact = package.study(STUDY, tmp_path / "exact", precision="30%", threads=2)
    number = exact.info.replications
    assert number > 10 and exact.computed == 2 * number
    assert all(each.relative <= 0.3 for each in reached(exact, Precision(0.3)))
    plain = package.study(STUDY, tmp_path / "plain", replications=number, threads=1)
    assert table_bytes(tmp_path / "exact") == table_bytes(tmp_path / "plain")

    def interrupt(done: int, total: int) -> None:
        if total > 20 and done > 24:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        package.study(STUDY, tmp_path / "parts", precision="30%", progress=interrupt)
    left = package.study(STUDY, tmp_path / "parts", precision="30%")
    assert 0 < left.computed < 2 * number
    assert table_bytes(tmp_path / "parts") == table_bytes(tmp_path / "exact")
    # It would have been too early to stop at the look before.
    before = [n for n in Precision(0.3).looks(4) if n < number][-1]
    earlier = package.study(STUDY, replications=before)
    assert any(each.relative > 0.3 for each in reached(earlier, Precision(0.3)))
    in_memory = package.study(STUDY, precision="30%")
    assert all(in_memory.raw(name).equals(plain.raw(name)) for name in plain.table_names)
    # There is nothing left to do, nor for less; for more it goes on from there.
    assert package.study(STUDY, tmp_path / "exact", precision="30%").computed == 0
    less = package.study(STUDY, tmp_path / "exact", precision="40%")
    assert (less.computed, less.info.replications) == (0, number)
    more = package.study(STUDY, tmp_path / "exact", precision="25%")
    assert more.computed == 2 * (more.info.replications - number) > 0


def test_a_cap_ends_it_with_a_note_and_intervals_allow_for_the_looks() -> None:
    precision = {"metric": "goodput", "relative": 0.001, "at_most": 12}
    result = package.study(STUDY, precision=precision)
    assert result.info.replications == 12
    [note] = [each for each in note_lines(result) if "not reached" in each]
    assert "goodput within 0.1 %" in note and "12 replications" in note
    plain = package.study(STUDY, replications=12)
    for one, other in zip(headlines(result), headlines(plain), strict=True):
        wide, narrow = (
            estimates(own, each)[0].interval for own, each in ((result, one), (plain, other))
        )
        assert wide and narrow and (not narrow.half or wide.half > narrow.half)


def test_the_command_line_and_the_file(tmp_path: Path, aqmlab: Aqmlab) -> None:
    text = (
        'replications = 10\nprecision = {{ metric = "{}", relative = "40 %", at_most = 15 }}\n'
        '[scenario]\nduration = "2s"\nlinks.down = {{ rate = "2mbit", delay = "5ms" }}\n'
        'flows.a = {{ path = "down", return_path = "down", '
        'start = {{ uniform = ["0s", "0.5s"] }} }}\n'
    )
    (tmp_path / "own.toml").write_text(text.format("goodput"))
    told = aqmlab.json("study", "own.toml", "--json")
    assert told["precision"]["reached"] and told["replications"] == 10
    done = aqmlab("study", "own.toml", "--precision", "0.1%", "--no-report")
    assert "not reached with 15 replications" in " ".join(done.stdout.split()), done.stderr
    (tmp_path / "own.toml").write_text(text.format("godput"))
    wrong = aqmlab("study", "own.toml")
    assert wrong.returncode == 2 and "`goodput`" in wrong.stderr


def test_shards_are_refused() -> None:
    study = package.Study(STUDY, precision="5%")
    with pytest.raises(InputError, match="depends on the results"):
        study.run_shard(package.Shard(1, 2), "nowhere")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("fast", "share"),
        ("goodput=0", "share"),
        ({"metric": "goodput"}, "relative"),
        ({"relative": 0.05, "cap": 3}, "cap"),
        ({"relative": 0.05, "at_most": 2}, "at_most"),
        ({"relative": True}, "share"),
        ({"relative": 0.05, "metric": 3}, "text"),
        ("nothing=5%", "unknown metric"),
    ],
)
def test_what_is_no_precision(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        package.Study(STUDY, precision=given)


SHAPES = {
    "normal": (lambda rng, shape: 1 + 0.3 * rng.normal(size=shape), 1.0),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5))),
}


@pytest.mark.parametrize(("shape", "relative"), [("normal", 0.08), ("exponential", 0.25),
                                                 ("lognormal", 0.33)])  # fmt: skip
def test_the_interval_at_the_end_keeps_its_promise(shape: str, relative: float) -> None:
    """Studies that stop at about 100 replications; without the correction it is 92 to 95 %."""
    draw, truth = SHAPES[shape]
    samples = 6000
    rows = draw(np.random.default_rng(1), (samples, 500))

    def at_the_end(level: float) -> tuple[float, float]:
        left = np.arange(samples)
        covered: list[NDArray[np.bool_]] = []
        numbers: list[int] = []
        for number in Precision(relative, at_most=500).looks(10):
            own = rows[left, :number]
            low, high = limits(own, 1 - level)
            mean = own.mean(axis=1)
            stop = np.maximum(high - mean, mean - low) <= relative * np.abs(mean)
            stop |= number == 500
            covered.append(((low <= truth) & (truth <= high))[stop])
            numbers += [number] * int(stop.sum())
            left = left[~stop]
        return float(np.concatenate(covered).mean()), float(np.mean(numbers))

    with_looks, number = at_the_end(after_looks(0.95))
    without, fewer = at_the_end(0.95)
    assert 0.935 <= with_looks <= 0.985, with_looks
    assert without < with_looks - 0.015, without
    assert fewer < number < 1.4 * fewer
    one = interval(rows[0, :20], looked=True)
    low, high = limits(rows[:1, :20], 1 - after_looks(0.95))
    assert one and (one.low, one.high, one.level) == (low[0], high[0], 0.95)

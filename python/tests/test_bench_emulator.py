"""`python -m tools.bench emulator`: its measurements one by one, each short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import emulator
from tools.bench.emulator import FREE, ROWS, Found


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Found:
    monkeypatch.setattr(emulator, "SECONDS", 1.0)
    return Found()


@pytest.mark.real_packets
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_transfer_has_the_rate_of_the_link(tmp_path: Path, found: Found, way: str) -> None:
    link = FREE | {"rate": "50mbit"}
    rate, cost = emulator._transfer(tmp_path, found, [link], way, 1, 1)
    # Headers are 52 of 1500 bytes.
    assert rate == pytest.approx(50e6 * 1448 / 1500, rel=0.05)
    assert 0 < cost < 50e-9


@pytest.mark.real_packets
def test_nested_paths_with_logs(tmp_path: Path, found: Found) -> None:
    (tmp_path / "trace").write_text("1\n" * 10)
    link = FREE | {"rate": {"trace": str(tmp_path / "trace")}}
    rate, _ = emulator._transfer(tmp_path, found, [link, FREE], "up", 2, 1)
    assert rate == pytest.approx(10 * 1504 * 8e3 * 1448 / 1500, rel=0.1)
    one, _ = emulator._transfer(tmp_path, found, [link], "up", 1, 1, is_logged=True)
    assert one > 0
    assert (tmp_path / "up.log").read_text().count(" - ") > 1000


@pytest.mark.real_packets
def test_a_train_measures_rate_and_spacing(tmp_path: Path, found: Found) -> None:
    train = emulator._train(tmp_path, found, "20m", 20e6)
    # The first one opens the report.
    assert train["received"] + 1 == train["sent"] == round(20e6 / 12_000)
    assert train["bps"] == pytest.approx(20e6, rel=2e-3)
    assert train["gap_us"]["mean"] == pytest.approx(600, rel=2e-3)
    assert train["gap_us"]["p50"] == pytest.approx(600, rel=0.1)


@pytest.mark.real_packets
@pytest.mark.parametrize("way", ["up", "down"])
def test_small_packets_are_counted(tmp_path: Path, found: Found, way: str) -> None:
    assert emulator._packets(tmp_path, found, way, 1) > 5_000
    # The sender does not keep the receiver from its processor.
    assert 0.5 < found.details[f"udp_{way}"]["received"] < 1.3


@pytest.mark.real_packets
def test_cost_and_waits_at_a_rate(tmp_path: Path, found: Found) -> None:
    emulator._cost(tmp_path, found, "100m", "20mbit", 1)
    assert all(0 < cost < 50 for cost in found.values["cpu_per_gbit_100m"])
    assert found.details["tcp_100m"]["up_bps"] == pytest.approx(20e6, rel=0.1)
    (p99,), (most,) = found.values["late_input_p99_s"], found.values["late_input_max_s"]
    assert 0 < p99 <= most < 5


def test_figures_are_those_of_the_worse_way() -> None:
    values = {name: [2.0, 3.0] for name in emulator.FIGURES}
    figures = emulator.figures(Found(values))
    assert figures.pop("udp_packets_per_second") == 2.0
    assert list(figures) == [name for name in emulator.FIGURES if name in figures]
    assert set(figures.values()) == {3.0}


def test_the_table_says_what_was_missed() -> None:
    values = {row.id: [1e6 if row.is_least else 0.0] for row in ROWS}
    assert all(row["met"] for row in emulator.table(Found(values)))
    values["nested"], values["delay_p99"] = [5.0, 2.9], [0.51]
    missed = [row["id"] for row in emulator.table(Found(values)) if not row["met"]]
    assert missed == ["nested", "delay_p99"]
    text = emulator.markdown(Found(values, remarks=["it was late"]))
    assert "| 5.00 / 2.90 | at least 3: missed |" in text
    assert "Said by the emulator: it was late." in text
    assert emulator.machine() in text


def test_remarks_that_differ_in_numbers_are_one() -> None:
    late = [f"held up for more than {late} µs, one for {most} ms: too busy"
            for late, most in ((600, "2.5"), (1200, "2.5"), (900, "2.5"))]  # fmt: skip
    ranged = "held up for more than 600 to 1200 µs, one for 2.5 ms: too busy (3 times)"
    assert emulator.summary([*late, "another"]) == ["another", ranged]

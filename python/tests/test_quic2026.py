"""The study of QUIC controllers: what its causes show."""

from __future__ import annotations

from aqmlab.reproduce import reproduce


def test_causes_show_their_experiments() -> None:
    found = reproduce("quic2026", only=["gaps"], replications=1)
    [cause] = found.causes
    assert "a loss, noq:cubic, 10 MB: failed connections 100 %" in cause.text
    assert "a loss, quinn:cubic, 10 MB: failed connections 0 %" in cause.text


def test_a_controller_is_compared_with_that_of_linux() -> None:
    """quinn's BBR does not react to the marks of FQ-CoDel, its CUBIC does."""
    only = ["queue=FQ-CoDel", "path=10 Mbit/s, 20 ms", "beside=alone", "parts=study"]
    found = reproduce("quic2026", only=only, replications=5)
    verdicts = {each.id: each.verdict for each in found.claims}
    assert verdicts["signals-quinn-bbr"] == "does not hold"
    assert verdicts["signals-quinn-cubic"] == "holds"
    assert verdicts["spurious-quinn-cubic"] == "holds"

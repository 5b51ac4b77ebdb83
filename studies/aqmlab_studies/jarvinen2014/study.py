"""What the tables of keys and values beside this file cannot say: the comparison with
ns-2, the causes of differences, and where figures and statements are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aqmlab.campaign import made
from aqmlab.reproduce import published
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.reproduce.verdicts import Criterion
from aqmlab_studies.jarvinen2014 import ns2
from aqmlab_studies.jarvinen2014.claims import claims
from aqmlab_studies.jarvinen2014.figures import FLOWS, figures
from aqmlab_studies.jarvinen2014.ns2 import REST

__all__ = ["causes", "claims", "figures", "tables"]

STEP = 0.006
RECONSTRUCTED = ("PIE (default)", "PIEupdate", "PIEthresh")
"""Queues of which ns-2 has only a reconstruction: no ground truth."""


KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "p95": ("95th percentile of the delay", "delay_quantile", {"share": 0.95}),
    "maximum": ("Maximum delay", "delay_maximum", {"of": 100}),
}
"""Name of a table, and its metric as in `published.toml`."""


def tables(measured: Measurements) -> Iterator[CellTable]:
    """Measured values beside those of ns-2 on the same scenario."""
    notes = dict.fromkeys(RECONSTRUCTED, "ns-2: a reconstruction, not the authors' code")
    for rest, suffix, about in ((REST, "", ""), ("101 ms", "-far", ", rest of the path 101 ms")):
        for kind, (name, metric, keys) in KINDS.items():
            function, method = published.METRICS[metric]
            cells = []
            for queue in dict.fromkeys(q for q, _, where in ns2.references() if where == rest):
                for flows in FLOWS:
                    labels = {"queue": queue, "flows": flows, "rest": rest}
                    theirs = ns2.value(kind, **labels)
                    if theirs is not None and measured.has(**labels):
                        ours = function(measured, labels, **keys)
                        cells.append(Cell.of(queue, flows, theirs, ours, Criterion(STEP)))
            yield CellTable(
                f"ns2-{kind}{suffix}", f"{name}{about}, beside ns-2", "s", tuple(cells),
                reference="ns-2", method=method, notes=notes,
            )  # fmt: skip


def _p95(measured: Measurements, queue: str) -> str:
    """`162 180 198 216`: the 95th percentiles at the four loads in ms."""
    values = (measured.delay_quantile(0.95, queue=queue, flows=f, rest=REST) for f in FLOWS)
    return _in_ms(values)


HREDS = ("HRED", "HRED (aggressive)")


def _hred(measured: Measurements) -> Iterator[Cause]:
    def text(reading: str) -> str:
        own, aggressive = (_p95(measured, f"{name}{reading}") for name in HREDS)
        return f"{own} (aggressive: {aggressive}) ms"

    own, aggressive = (_in_ms(measured.printed("table-2", name)) for name in HREDS)
    yield Cause(
        "HRED: how ns-2 reads Table I",
        f"Table II prints {own} ({aggressive}) ms. RED of ns-2 measures its queue in bytes "
        "unless told otherwise, takes the thresholds in mean packets, and weighs its drops by the "
        "size of the packet. With Table I unchanged, a mean packet of 1000 bytes and `wait_` on: "
        f"{text('')}. The mean packet is not in the paper: ns-2's "
        f"default of 500 bytes gives {text(', mean packet 500')}. A queue that is "
        f"measured in packets gives {text(' in packets')} with `wait_` on and "
        f"{text(' in packets, wait off')} with it off. Two settings were fitted to print, in "
        f"packets with `wait_` off: th_max 50 instead of 40, {text(' fitted: th_max 50')}; max_p "
        f"0.5 instead of 0.65, {text(' fitted: max_p 0.5')}. Neither is known to be the one that "
        "was run.",
    )


PIE_EXPERIMENTS = {
    "PIEupdate": ("first packet counted", "p zero in bursts"),
    "PIEthresh": ("first packet counted", "p zero in bursts", "rate not averaged"),
}
"""Reconstructions of PIE and their variations."""


def _in_ms(values: Iterable[float]) -> str:
    return ", ".join(f"{1e3 * value:.0f}" for value in values)


def _pie(measured: Measurements) -> Iterator[Cause]:
    sentences = [
        "What the papers of 2013 leave open had to be chosen, and experiments show what the "
        "choices move. 95th percentiles in ms at the four loads."
    ]
    for queue, experiments in PIE_EXPERIMENTS.items():
        printed, ours = _in_ms(measured.printed("table-2", queue)), _p95(measured, queue)
        varied = "; ".join(f"{each}: {_p95(measured, f'{queue}, {each}')}" for each in experiments)
        sentences.append(f"{queue}: printed {printed}; ours {ours}; {varied}.")
    sentences.append(
        "If the packet that begins a measurement of n counts, the rate is n/(n - 1) too high, and "
        "the estimated delay as much too low."
    )
    far = list(far_from_every_pie(measured))
    sentences.append(
        f"Not within 10 % of print with any choice: {', '.join(far)}."
        if far
        else "Every printed cell is within 10 % of ours with one choice or another; no single "
        "choice meets all."
    )
    yield Cause("PIE: the code of 2013 was not published", " ".join(sentences))


def far_from_every_pie(measured: Measurements) -> Iterator[str]:
    """Printed cells of PIE that no reconstruction comes within 10 % of."""
    for queue, experiments in PIE_EXPERIMENTS.items():
        variants = (queue, *(f"{queue}, {varied}" for varied in experiments))
        for flows, printed in zip(FLOWS, measured.printed("table-2", queue), strict=True):
            found = (
                measured.delay_quantile(0.95, queue=variant, flows=flows, rest=REST)
                for variant in variants
            )
            if min(abs(value / printed - 1) for value in found) > 0.10:
                yield f"{queue} {flows}"


def _ns2(measured: Measurements) -> Iterator[Cause]:
    text = (
        "Our random offsets of the second group are not ns-2's, which alone moves delays; with "
        "ns-2's offsets DropTail delivers exactly as many packets, which a test of the project "
        "checks. ns-2's DropTail of 100 packets holds 99. "
    )

    def p95(queue: str) -> str:
        """Nothing if it was not run."""
        return next(iter(made([lambda part: [_p95(part, queue)]], measured)), "")

    codel, by_rfc = p95("CoDel"), p95("CoDel, recovery of RFC 6675")
    if codel and by_rfc:
        text += (
            "The senders mend losses like ns-2's Sack1, which counts a lost packet as in the "
            "network until an acknowledgement passes it. With the recovery of RFC 6675, which "
            f"sends more meanwhile, CoDel's 95th percentiles are {by_rfc} instead of {codel} ms. "
        )
    sfq, departures = p95("SFQ CoDel"), p95("SFQ CoDel, departures first")
    if sfq and departures:
        text += (
            "Much happens at the same nanosecond here, and ns-2's floating-point times decide "
            "now this way, now that. We let packets arrive before transmissions end; the other "
            f"way round SFQ CoDel's 95th percentiles are {departures} instead of {sfq} ms."
        )
    if codel or sfq:
        yield Cause("ns-2 and we: where the last milliseconds go", text.strip())


causes = (_hred, _pie, _ns2)
"""Why cells of the tables differ, as far as experiments have shown."""

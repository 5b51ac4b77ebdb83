"""What a reader of the results of a study has to know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from aqmlab.results import RunResult, StudyResult
from aqmlab.study.sequential import reached

SHOWN_PLACES = 4
OWN = ("replications-identical", "idle-link", "precision-not-reached")
"""Notes that are about all runs together."""


def kinds(result: StudyResult) -> list[dict[str, Any]]:
    """Every kind of note once: the text of the first run that has it, the
    points, and the number of runs."""
    names = [name for name, _ in result.info.axes]
    found = []
    notes = result.pooled_notes  # by run, so by point
    for (subject, id_), rows in notes.group_by("subject", "id", maintain_order=True):
        places = rows.select(names).unique(maintain_order=True).rows() if names else [()]
        points = [" ".join(place) or result.info.name for place in places]
        runs = rows["run"].n_unique()
        text = rows["text"][0]
        found.append({"subject": subject, "id": id_, "text": text, "points": points, "runs": runs})
    return [*found, *_idle(result), *_inexact(result)]


def of_run(result: RunResult) -> list[str]:
    """What a reader of the results of one run has to know, in sentences."""
    lines = [f"{note['subject']}: {note['text']}" for note in result.notes.to_dicts()]
    if result.shown != result.bottleneck:
        lines.append(f"{result.shown}: {_elsewhere([result.bottleneck], result.shown)}")
    return lines


def _elsewhere(named: Sequence[str], shown: str) -> str:
    return (
        f"the bottleneck is `{' or `'.join(f'{each}`' for each in named)} in the scenario, but "
        f'the results are for `{shown}`, the busiest link: bottleneck = "{shown}"'
    )


def _idle(result: StudyResult) -> Iterator[dict[str, Any]]:
    """The scenario's bottleneck had nothing to do, and another link is shown."""
    named = sorted(result.named_bottlenecks)
    shown = result.bottlenecks[0]
    if named != [shown] and len(set(result.bottlenecks)) == 1:
        text = _elsewhere(named, shown)
        runs = result.info.points * result.info.replications
        points = [result.info.name] * result.info.points
        yield {"subject": shown, "id": "idle-link", "text": text, "points": points, "runs": runs}


def _inexact(result: StudyResult) -> Iterator[dict[str, Any]]:
    """The study ended before it was as exact as it was to be."""
    precision, info = result.info.precision, result.info
    if precision is None:
        return
    short = [each for each in reached(result, precision) if each.relative > precision.relative]
    if short:
        worst = max(short, key=lambda each: each.relative)
        why = worst.found.why or f"within {100 * worst.relative:.3g} % at {worst.subject}"
        names = [name for name, _ in info.axes]
        at = sorted({each.point for each in short})
        rows = result.points.filter(pl.col("point").is_in(at)).select("point", *names).rows()
        named = {point: " ".join(map(str, row)) or info.name for point, *row in rows}
        text = (
            f"{precision} was not reached with {info.replications} replications, the most that "
            f"`at_most` allows; for example {named.get(worst.point, info.name)}: {why}"
        )
        points = list(named.values()) or [info.name]
        yield {
            "subject": "study", "id": "precision-not-reached", "text": text, "points": points,
            "runs": len(at) * info.replications,
        }  # fmt: skip


def note_lines(result: StudyResult) -> list[str]:
    """What a reader of these results has to know, in sentences."""
    return [_sentence(note, result.info.points) for note in kinds(result)]


def _sentence(note: dict[str, Any], total: int) -> str:
    points = note["points"]
    more = f" and {len(points) - SHOWN_PLACES} more" if len(points) > SHOWN_PLACES else ""
    where = "" if len(points) == total else f"{'; '.join(points[:SHOWN_PLACES])}{more}: "
    example = (
        "" if note["runs"] == 1 or note["id"] in OWN else f" (the first of {note['runs']:,} runs)"
    )
    return f"{where}{note['subject']}: {note['text']}{example}"

"""What a reader of the results of a study has to know."""

from __future__ import annotations

from typing import Any

from aqmlab.results import StudyResult

SHOWN_PLACES = 4


def kinds(result: StudyResult) -> list[dict[str, Any]]:
    """Every kind of note once: the text of the first run that has it, the
    points, and the number of runs."""
    names = [name for name, _ in result.info.axes]
    found = []
    notes = result.pooled_notes.sort("point", "run", maintain_order=True)
    for (subject, id_), rows in notes.group_by("subject", "id", maintain_order=True):
        places = rows.select(names).unique(maintain_order=True).rows() if names else [()]
        points = [" ".join(place) or result.info.name for place in places]
        runs = rows["run"].n_unique()
        text = rows["text"][0]
        found.append({"subject": subject, "id": id_, "text": text, "points": points, "runs": runs})
    return found


def note_lines(result: StudyResult) -> list[str]:
    """What a reader of these results has to know, in sentences."""
    return [_sentence(note, result.info.points) for note in kinds(result)]


def _sentence(note: dict[str, Any], total: int) -> str:
    points = note["points"]
    more = f" and {len(points) - SHOWN_PLACES} more" if len(points) > SHOWN_PLACES else ""
    where = "" if len(points) == total else f"{'; '.join(points[:SHOWN_PLACES])}{more}: "
    example = "" if note["runs"] == 1 else f" (the first of {note['runs']:,} runs)"
    return f"{where}{note['subject']}: {note['text']}{example}"

"""The answers of a pack for continuous integration: what fails, JUnit XML, GitHub annotations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from aqmlab.campaign.rule import FAILS, HOLDS, UNDECIDED, Answer
from aqmlab.numbers import count
from aqmlab.report.document import write_text

if TYPE_CHECKING:
    from aqmlab.campaign.plan import Campaign

NOT_EXCLUDED = "a regression is not excluded"


@dataclass(frozen=True)
class Checked:
    """An answer, and whether it fails the check."""

    question: str
    contender: str
    answer: Answer
    fails: bool

    @property
    def name(self) -> str:
        """`codel, low`, or `low` without contenders."""
        return ", ".join(each for each in (self.contender, self.answer.id) if each)

    @property
    def outcome(self) -> str:
        """The verdict in words."""
        missed = self.answer.must_show and self.answer.verdict == UNDECIDED
        return NOT_EXCLUDED if missed else self.answer.verdict


def checked(of: Campaign, *, strict: bool = False) -> list[Checked]:
    """All answers. Those fail that do not hold; those that must be shown, or with `strict` all,
    also if they are not decided."""
    return [
        Checked(
            question,
            contender,
            each,
            each.verdict == FAILS or (each.verdict == UNDECIDED and (strict or each.must_show)),
        )
        for (question, contender), found in of.answers.items()
        for each in found
    ]


def status(found: list[Checked]) -> str:
    """`2 of 5 rules fail: codel, low; codel, fast (a regression is not excluded).`"""
    failed = [each for each in found if each.fails]
    if not failed:
        return f"No rule of {len(found)} fails."
    names = "; ".join(f"{each.name} ({each.outcome})" for each in failed)
    verb = "fails" if len(failed) == 1 else "fail"
    return f"{len(failed)} of {count(len(found), 'rule')} {verb}: {names}."


def write_junit(pack: str, found: list[Checked], path: Path) -> None:
    """Writes JUnit XML: a suite for each question, a case for each rule and contender. Rules that
    are not decided and do not fail the check are skipped ones."""
    root = ElementTree.Element("testsuites", {"name": pack, **_counts(found)})
    for question in dict.fromkeys(each.question for each in found):
        own = [each for each in found if each.question == question]
        suite = ElementTree.SubElement(root, "testsuite", {"name": question, **_counts(own)})
        for each in own:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"{pack}.{question}", name=each.name
            )
            if each.answer.verdict != HOLDS:
                tag = "failure" if each.fails else "skipped"
                made = ElementTree.SubElement(case, tag, message=each.outcome)
                made.text = each.answer.evidence
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=False)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    write_text(path, f"{head}{text}\n", "the JUnit file was not written")


def _counts(found: list[Checked]) -> dict[str, str]:
    skipped = [each for each in found if not each.fails and each.answer.verdict != HOLDS]
    return {
        "tests": str(len(found)),
        "failures": str(sum(each.fails for each in found)),
        "errors": "0",
        "skipped": str(len(skipped)),
    }


def workflow_commands(pack: str, found: list[Checked]) -> Iterator[str]:
    """Workflow commands of GitHub Actions: an error for each rule that fails, a warning for each
    other one that is not decided, at the rule's line of the file."""
    path = Path(pack)
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    for each in found:
        if each.answer.verdict == HOLDS:
            continue
        key = re.compile(rf"""\s*["']?{re.escape(each.answer.id)}["']?\s*=""")
        places = [number for number, line in enumerate(lines, start=1) if key.match(line)]
        where = {"file": pack} if lines else {}
        if len(places) == 1:
            where["line"] = str(places[0])
        where["title"] = f"{each.name}: {each.outcome}"
        values = ",".join(f"{name}={_escaped(text, ':,')}" for name, text in where.items())
        word = "error" if each.fails else "warning"
        yield f"::{word} {values}::{_escaped(each.answer.evidence)}"


def _escaped(text: str, also: str = "") -> str:
    for each in f"%\r\n{also}":
        text = text.replace(each, f"%{ord(each):02X}")
    return text

"""Packs in TOML files: cases as settings of one scenario, and rules on any metric.

docs/packs.md describes the format. Every mistake is one error that names the file, the key, what
was given and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from aqmlab.campaign.pack import Case, Pack, Question, Reading
from aqmlab.campaign.plan import Filled
from aqmlab.campaign.rule import Comparison, Rule
from aqmlab.errors import CustomError, InputError, input_error, renamed, unknown
from aqmlab.metrics import Metric, find
from aqmlab.results import groups_of
from aqmlab.scenario.form import checked
from aqmlab.scenario.quantity import Duration, Rate
from aqmlab.scenario.settings import check_form, parse_toml, read_text
from aqmlab.stats import POSITIVE, UNBOUNDED

GROUP = "aqmlab.packs"
"""Entry point of packages that bring packs: a name, and a `Pack` as `module:NAME`."""
OWN = (EntryPoint("bbr-draft", "aqmlab.packs.bbr_draft:PACK", GROUP),)
"""Packs of aqmlab itself."""
FORM = (
    "SUBJECT.METRIC <= LIMIT, such as down.sojourn_p95 <= 30ms or bulk.goodput >= 0.9 * capacity, "
    "or SUBJECT.METRIC no worse than baseline by 5%"
)
LEFT = r"\s*(?:(?P<subject>[\w-]+)\.)?(?P<metric>\w+)"
RULE = re.compile(
    LEFT + r"\s*(?P<sign><=|>=|<|>)\s*(?:(?P<factor>[\d.]+)\s*\*\s*)?(?P<limit>[^*]+?)\s*"
)
NO_WORSE = re.compile(LEFT + r"\s+no\s+worse\s+than\s+(?P<limit>\S+)\s+by\s+(?P<margin>.+?)\s*")
CAPACITY, BASELINE = "capacity", "baseline"


class RuleForm(BaseModel, extra="forbid", strict=True):
    """A rule of a file."""

    rule: str
    text: str = ""
    source: str = ""
    cases: list[str] | None = None


class QuestionForm(BaseModel, extra="forbid", strict=True):
    """A table of `questions`."""

    id: str | None = None
    title: str | None = None
    text: str = ""
    source: str = ""
    cases: list[str] | None = None
    expect: dict[str, Any] = Field(min_length=1)


class PackForm(BaseModel, extra="forbid", strict=True):
    """A file."""

    name: str | None = None
    title: str | None = None
    source: str = ""
    replications: int = Field(Pack.replications, ge=1)
    seed: int = Field(Pack.seed, ge=0)
    slot: str = "queue"
    contenders: dict[str, Any] = Field({"": None}, min_length=1)
    scenario: dict[str, Any] = Field(min_length=1)
    cases: dict[str, dict[str, Any]] = Field({"": {}}, min_length=1)
    questions: list[QuestionForm] = []
    expect: dict[str, Any] | None = None


def load(name: str) -> Pack:
    """The pack in this file, or of this name in an installed package.

    Raises `InputError` if there is none or something in it is wrong; `CustomError` if the code of a
    package fails.
    """
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        table = parse_toml(read_text(path), str(path))
        if "axes" in table or "scenario" not in table:
            check_form(table, "pack", str(path))
        return parse(table, str(path), path.stem)
    known = {each.name: each for each in (*OWN, *entry_points(group=GROUP))}
    if name not in known:
        if known and "/" not in name:
            raise unknown("pack", name, known, key="PACK")
        hint = "`aqmlab new pack NAME` writes one"
        raise input_error("there is no such file or pack", key="PACK", given=name, hint=hint)
    try:
        found = known[name].load()
    except Exception as error:
        raise CustomError(f"pack {name}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Pack):
        raise CustomError(f"pack {name}: expected a Pack, not {type(found).__name__}")
    return found


def parse(table: Mapping[str, Any], file: str, name: str = "pack") -> Pack:
    """The pack in the tables of a file. Raises `InputError`."""
    form = checked(PackForm, table, file)
    place = _Place(file, form.cases, list(form.contenders), (form.scenario, *form.cases.values()))
    questions = {f"questions.{number}": each for number, each in enumerate(form.questions, 1)}
    if form.expect is not None:
        whole = {"id": "expect", "title": "Expectations", "expect": form.expect}
        questions = {"": checked(QuestionForm, whole, file), **questions}
    if not questions:
        hint = '[expect] with NAME = "down.sojourn_p95 <= 30ms"'
        raise input_error("a pack needs rules", file=file, key="expect", hint=hint)
    meanings = {BASELINE: "the results of --baseline", CAPACITY: "the rate of the bottleneck"}
    for word, meaning in meanings.items():
        if word in form.contenders:
            problem = f"this name stands for {meaning}"
            raise input_error(problem, file=file, key="contenders", given=word)
    _check_slot(form, file)
    cases = {each: _case(each, form) for each in form.cases}
    made = tuple(_question(each, where, place, cases) for where, each in questions.items())
    idents = [each.id for each in made]
    for ident in idents:
        if idents.count(ident) > 1:
            raise input_error("two questions have this id", file=file, key="questions", given=ident)
    return Pack(
        form.name or name,
        form.title or form.name or name,
        made,
        form.source,
        form.replications,
        form.seed,
        form.contenders,
        file=file,
    )


def _check_slot(form: PackForm, file: str) -> None:
    """Refuses cases that fill the slot."""
    if list(form.contenders) == [""]:
        return
    for name, settings in form.cases.items():
        link = settings.get("bottleneck", form.scenario.get("bottleneck"))
        queue = {"queue", f"{link}.queue", f"links.{link}.queue"}
        for key in (queue if form.slot in queue else {form.slot}) & settings.keys():
            problem = f"the contenders fill `{form.slot}`"
            raise input_error(problem, file=file, key=f"cases.{name}", given=key)


def _case(name: str, form: PackForm) -> Case:
    ground = {**form.scenario, **form.cases[name]}

    def fill(contender: Any) -> dict[str, Any]:
        if contender is None:
            return ground
        return {**form.scenario, form.slot: contender, **form.cases[name]}

    return Case(name, fill, ground=ground)


@dataclass(frozen=True)
class _Place:
    """What the rules of a file may name."""

    file: str
    cases: Iterable[str] = ("",)
    contenders: Sequence[str] = ()
    scenarios: tuple[Any, ...] = ()
    """The scenario, and the settings of the cases."""

    def subjects(self, metric: Metric) -> list[str]:
        """The links or groups that some scenario names."""
        table = "links" if metric.of == "link" else "flows"
        found: dict[str, None] = {}
        for each in self.scenarios:
            inside = each.get(table, {})
            found |= dict.fromkeys(inside if isinstance(inside, Mapping) else ())
            changes = each.get("changes")
            added = [str(change["key"]) for change in changes if isinstance(change, Mapping)
                     and "key" in change] if isinstance(changes, list) else []  # fmt: skip
            dotted = (key.split(".") for key in (*each, *added))
            found |= {parts[1]: None for parts in dotted if parts[0] == table and parts[1:]}
        return list(found)

    def chosen(self, given: list[str] | None, where: str) -> _Place:
        """The same with some of the cases. Raises `InputError` for others."""
        names = list(self.cases) if given is None else given
        if not names:
            problem = "expected a list of names of cases"
            raise input_error(problem, file=self.file, key=f"{where}.cases", given=names)
        for name in names:
            if name not in self.cases:
                raise unknown("case", name, self.cases, file=self.file, key=f"{where}.cases")
        return replace(self, cases=names)


def _question(form: QuestionForm, where: str, place: _Place, cases: Mapping[str, Case]) -> Question:
    ident = form.id or where.replace("s.", "-")
    place = place.chosen(form.cases, where)
    rules = {
        key: _expected(value, place, f"{where}.expect.{key}".strip("."))
        for key, value in form.expect.items()
    }
    lefts = {(each.name, each.subject): each for each in rules.values()}
    return Question(
        ident,
        form.title or ident,
        form.text,
        tuple(cases[name] for name in place.cases),
        tuple(each.rule(key) for key, each in rules.items()),
        lambda filled: [
            left.reading(filled, case) for left in lefts.values() for case in place.cases
        ],
        source=form.source,
    )


@dataclass(frozen=True)
class Expected:
    """A rule of a file: a metric beside a limit in some cases."""

    form: RuleForm
    cases: Iterable[str]
    metric: Metric
    name: str
    """Name of the metric in the file, with its statistic."""
    subject: str
    """Link or group; empty for the bottleneck or the only group."""
    sign: str
    factor: float
    limit: float | str
    """A number, `capacity`, `baseline`, or the name of a contender."""
    margin: float | None = None
    """The difference that is allowed beside another result; None: `factor` is."""
    must_show: bool = False
    """Whether the runs must show that it is kept."""

    def at(self, filled: Filled, case: str) -> str:
        """The subject in a case. Raises `InputError` if there is none, or several are possible."""
        scenario = filled.scenario(case)
        known = list(scenario["links"] if self.metric.of == "link" else groups_of(scenario))
        if self.subject:
            if self.subject not in known:
                raise unknown("subject", self.subject, known, key=self.name)
            return self.subject
        if self.metric.of == "link":
            return str(scenario["bottleneck"])
        if len(known) > 1:
            hint = f"{known[0]}.{self.name}"
            raise input_error("this rule must name a group", key=self.name, hint=hint)
        return str(known[0])

    def mean(self, filled: Filled, case: str) -> float:
        """The mean over the replications."""
        return filled.mean(case, self.name, self.at(filled, case))

    def reading(self, filled: Filled, case: str) -> Reading:
        """The values in a case."""
        return filled.reading(case, self.name, self.at(filled, case))

    def rule(self, ident: str) -> Rule[Filled, list[Comparison]]:
        """The rule of the engine."""
        return Rule(
            ident,
            self.form.text or self.form.rule,
            self.form.rule,
            self._found,
            lambda found: found,
            lambda found: "; ".join(
                f"{each.name} {each.told(each.number)}".strip() for each in found
            ),
            source=self.form.source,
            must_show=self.must_show,
            baseline=self.limit == BASELINE,
        )

    def _found(self, filled: Filled) -> list[Comparison] | None:
        """The cases; numbers beside another contender's are multiples of it, or differences."""
        if filled.contender == self.limit:
            return None
        if self.limit == BASELINE and filled.campaign.baseline is None:
            return None
        unit = "" if self.is_ratio else self.metric.unit
        bounds = self.metric.bounds if self.is_plain else POSITIVE if self.is_ratio else UNBOUNDED
        side = self.sign[0] == ">", self.sign[1:] == "="
        return [
            Comparison(*self._beside(filled, case), *side, case, unit, bounds)
            for case in self.cases
        ]

    @property
    def is_plain(self) -> bool:
        """True if the limit is a number of the metric's unit, and no other result."""
        return isinstance(self.limit, float) or self.limit == CAPACITY

    @property
    def is_ratio(self) -> bool:
        """True if the number is a multiple of another result: of a metric that may be below 0 it is
        the difference from the limit."""
        return not self.is_plain and self.margin is None and self.metric.bounds[0] >= 0

    def _lacks(self, filled: Filled, case: str) -> bool:
        """Whether a replication has no value; beside another result, whether only one of the two
        has."""
        of = case, self.name, self.at(filled, case)
        has = np.isfinite(filled.values(*of))
        if self.is_plain:
            return not has.all()
        beside = filled.beside(str(self.limit))
        other = filled.baseline_values(*of) if self.limit == BASELINE else beside.values(*of)
        return not np.array_equal(has, np.isfinite(other))

    def _beside(self, filled: Filled, case: str) -> tuple[float, float]:
        value = self.mean(filled, case)
        if filled.number is not None and self._lacks(filled, case):
            value = math.nan  # such as a page that did not load: the others do not decide
        if isinstance(self.limit, float):
            return value, self.factor * self.limit
        if self.limit == CAPACITY:
            return value, self.factor * _capacity(filled, case)
        if self.limit == BASELINE:
            other = filled.baseline_mean(case, self.name, self.at(filled, case))
        else:
            other = self.mean(filled.beside(self.limit), case)
        if self.margin is not None:
            return value - other, self.margin
        if not self.is_ratio:
            allowed = abs(other) if self.must_show else other
            return value - other - (self.factor - 1) * allowed, 0.0
        if value == other:  # 0 is any multiple of 0
            side = min if self.sign[0] == "<" else max
            return 1.0 if other else side(1.0, self.factor), self.factor
        return value / other if other else math.inf, self.factor


def _capacity(filled: Filled, case: str) -> float:
    """Rate of the bottleneck in bit/s; of one that varies the mean after the warm-up."""
    scenario = filled.scenario(case)
    link = scenario["bottleneck"]
    rate = scenario["links"][link]["rate"]
    if isinstance(rate, str):
        return float(Rate(rate))
    at = filled[case]
    return float(8 * at.total("links", "capacity_bytes", link=link).mean() / at.lasted)


def _expected(given: Any, place: _Place, where: str) -> Expected:
    def refused(problem: str, given: object) -> InputError:
        return input_error(problem, file=place.file, key=where, given=given)

    table = {"rule": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping) or "rule" not in table:
        raise refused(f"expected a rule: {FORM}", given)
    form = checked(RuleForm, table, place.file, where)
    parts = RULE.fullmatch(form.rule) or NO_WORSE.fullmatch(form.rule)
    if parts is None:
        raise refused(f"expected {FORM}", form.rule)
    try:
        metric, _ = find(parts["metric"])
    except InputError as error:
        raise renamed(error, where, place.file) from None
    subject = parts["subject"] or ""
    known = place.subjects(metric)
    if subject and known and subject not in known:
        kind = "link" if metric.of == "link" else "group of flows"
        raise unknown(kind, subject, known, file=place.file, key=where)
    limit: float | str | None
    least, most = metric.bounds
    margin, must_show = None, "margin" in parts.groupdict()
    if not must_show:
        limit = _limit(parts["limit"], metric, place.contenders)
        if limit is None:
            unit = {"s": "a time such as 30ms", "bit/s": f"a rate such as 5mbit, {CAPACITY}"}
            allowed = [unit.get(metric.unit, "a number, a share such as 5%"), BASELINE]
            if any(place.contenders):
                allowed.append(f"a contender ({', '.join(place.contenders)})")
            raise refused(f"expected {', or '.join(allowed)}", parts["limit"])
        sign, factor = parts["sign"], _amount(parts["factor"] or "1", None)
        if factor is None:
            raise refused("expected a number", parts["factor"])
        if isinstance(limit, float) and not least <= factor * limit <= most:
            range_ = f"{least:g} to {most:g}" + (" (5% is 0.05)" if metric.unit == "share" else "")
            raise refused(f"{metric.name} is from {range_}", parts["limit"])
    else:
        if not metric.direction:
            problem = f"neither more nor less {metric.name} is worse: compare it by <= and >="
            raise refused(problem, parts["metric"])
        limit, names = parts["limit"], [BASELINE, *filter(None, place.contenders)]
        if limit not in names:
            raise unknown("result", limit, names, file=place.file, key=where)
        share = re.fullmatch(r"([\d.]+)\s*%", parts["margin"])
        amount = _amount(share[1] if share else parts["margin"], None if share else metric.unit)
        if amount is None or amount < 0:
            unit = {"s": ", or a time such as 2ms", "bit/s": ", or a rate such as 1mbit"}
            problem = f"expected a margin: a share such as 5%{unit.get(metric.unit, '')}"
            raise refused(problem, parts["margin"])
        end = most - least if not share else 100 if metric.direction > 0 else math.inf
        if amount >= end:
            points = " (5 points are 0.05)" if metric.unit == "share" and not share else ""
            problem = f"every result keeps this margin: expected one below {end:g}{points}"
            raise refused(problem, parts["margin"])
        sign = ">=" if metric.direction > 0 else "<="
        factor = 1 - metric.direction * amount / 100 if share else 1.0
        margin = None if share else -metric.direction * amount
    return Expected(
        form, place.chosen(form.cases, where).cases, metric, parts["metric"], subject, sign, factor,
        limit, margin, must_show,
    )  # fmt: skip


def rule(text: str, where: str) -> Rule[Filled, list[Comparison]]:
    """The rule in a text, for packs of one case without a name; `where` names it in errors. Raises
    `InputError`."""
    return _expected(text, _Place(""), where).rule(text)


def _limit(text: str, metric: Metric, contenders: Sequence[str]) -> float | str | None:
    """A number in the metric's unit, `capacity`, `baseline` or a contender; None if it is none."""
    if text in (*contenders, BASELINE) or (text == CAPACITY and metric.unit == "bit/s"):
        return text
    if metric.unit not in ("s", "bit/s") and text.endswith("%"):
        amount = _amount(text[:-1], None)
        return None if amount is None else amount / 100
    return _amount(text, metric.unit)


def _amount(text: str, unit: str | None) -> float | None:
    """A number in a unit; None if the text is none."""
    kinds: dict[str | None, Callable[[str], Any]] = {"s": Duration, "bit/s": Rate}
    try:
        return float(kinds.get(unit, float)(text))
    except ValueError:
        return None

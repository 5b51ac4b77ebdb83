"""Packs in TOML files: cases as settings of one scenario, and rules on any metric.

docs/packs.md describes the format. Every mistake is one error that names the file, the key, what
was given and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from aqmlab.campaign.pack import Case, Pack, Question, Reading
from aqmlab.campaign.plan import Filled
from aqmlab.campaign.rule import Comparison, Rule
from aqmlab.errors import CustomError, InputError, input_error, unknown
from aqmlab.metrics import Metric, find
from aqmlab.scenario.quantity import Duration, Rate
from aqmlab.scenario.settings import check_keys, parse_toml, read_text

GROUP = "aqmlab.packs"
"""Entry point of packages that bring packs: a name, and a `Pack` as `module:NAME`."""
OWN = (EntryPoint("bbr-draft", "aqmlab.packs.bbr_draft:PACK", GROUP),)
"""Packs of aqmlab itself."""
KEYS = (
    "name", "title", "source", "replications", "seed", "slot", "contenders", "scenario", "cases",
    "questions", "expect",
)  # fmt: skip
QUESTION_KEYS = ("id", "title", "text", "source", "cases", "expect")
RULE_KEYS = ("rule", "text", "source", "cases")
SLOT = "queue"
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


def load(name: str) -> Pack:
    """The pack in this file, or of this name in an installed package.

    Raises `InputError` if there is none or something in it is wrong; `CustomError` if the code of a
    package fails.
    """
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return parse(parse_toml(read_text(path), str(path)), str(path), path.stem)
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
    check_keys(table, KEYS, file)
    cases = _Place(file).table(table, "cases", {"": {}})
    place = _Place(file, (table.get("scenario", {}), *cases.values()))
    questions = place.list(table, "questions")
    if "expect" in table:
        whole = {"id": "expect", "title": "Expectations", "expect": table["expect"]}
        questions = [whole, *questions]
    if not questions:
        hint = '[expect] with NAME = "down.sojourn_p95 <= 30ms"'
        raise input_error("a pack needs rules", file=file, key="expect", hint=hint)
    scenario = place.table(table, "scenario", None)
    contenders = place.table(table, "contenders", {"": None})
    if BASELINE in contenders:
        problem = "this name stands for the results of --baseline"
        raise input_error(problem, file=file, key="contenders", given=BASELINE)
    slot = place.text(table, "slot", SLOT)
    made = tuple(
        _question(each, number, place, scenario, slot, cases, list(contenders))
        for number, each in enumerate(questions, start=1)
    )
    idents = [each.id for each in made]
    for ident in idents:
        if idents.count(ident) > 1:
            raise input_error("two questions have this id", file=file, key="questions", given=ident)
    return Pack(
        place.text(table, "name", name),
        place.text(table, "title", name),
        made,
        place.text(table, "source", ""),
        place.whole(table, "replications", Pack.replications, 1),
        place.whole(table, "seed", Pack.seed, 0),
        contenders,
    )


@dataclass(frozen=True)
class _Place:
    """Values of a file by their kind."""

    file: str
    scenarios: tuple[Any, ...] = ()
    """The scenario, and the settings of the cases."""

    def subjects(self, metric: Metric) -> list[str]:
        """The links or groups that some scenario names."""
        table = "links" if metric.of == "link" else "flows"
        found: dict[str, None] = {}
        for each in self.scenarios:
            if isinstance(each, Mapping):
                inside = each.get(table, {})
                found |= dict.fromkeys(inside if isinstance(inside, Mapping) else ())
                dotted = (key.split(".") for key in each)
                found |= {parts[1]: None for parts in dotted if parts[0] == table and parts[1:]}
        return list(found)

    def text(self, table: Mapping[str, Any], key: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            raise input_error("expected text", file=self.file, key=key, given=value)
        return value

    def whole(self, table: Mapping[str, Any], key: str, default: int, low: int) -> int:
        value = table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            problem = f"expected a whole number from {low}"
            raise input_error(problem, file=self.file, key=key, given=value)
        return value

    def table(self, table: Mapping[str, Any], key: str, default: Any) -> dict[str, Any]:
        value = table.get(key, default)
        if not isinstance(value, Mapping) or not value:
            raise input_error("expected a table", file=self.file, key=key, given=value)
        return dict(value)

    def list(self, table: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
            problem = "expected a list of tables"
            raise input_error(problem, file=self.file, key=key, given=value)
        return value


def _question(
    given: Mapping[str, Any],
    number: int,
    place: _Place,
    scenario: Mapping[str, Any],
    slot: str,
    cases: Mapping[str, Any],
    contenders: Sequence[str],
) -> Question:
    where = f"questions.{number}"
    check_keys(given, QUESTION_KEYS, place.file, where)
    names = _cases(given, cases, place, where)
    ident = place.text(given, "id", f"question-{number}")
    rules = {
        key: _expected(key, value, place, f"{where}.expect.{key}", names, cases, contenders)
        for key, value in place.table(given, "expect", None).items()
    }
    lefts = dict.fromkeys(each.left for each in rules.values())
    return Question(
        ident,
        place.text(given, "title", ident),
        place.text(given, "text", ""),
        tuple(_case(name, scenario, cases[name], slot, place) for name in names),
        tuple(each.rule(key) for key, each in rules.items()),
        lambda filled: [left.reading(filled, case) for left in lefts for case in names],
        source=place.text(given, "source", ""),
    )


def _cases(
    given: Mapping[str, Any], known: Mapping[str, Any], place: _Place, where: str
) -> list[str]:
    names = given.get("cases", list(known))
    if not isinstance(names, list) or not names:
        problem = "expected a list of names of cases"
        raise input_error(problem, file=place.file, key=f"{where}.cases", given=names)
    for name in names:
        if name not in known:
            raise unknown("case", str(name), known, file=place.file, key=f"{where}.cases")
    return names


def _case(name: str, scenario: Mapping[str, Any], settings: Any, slot: str, place: _Place) -> Case:
    if not isinstance(settings, Mapping):
        raise input_error("expected a table", file=place.file, key=f"cases.{name}", given=settings)

    ground = {**scenario, **settings}

    def fill(contender: Any) -> dict[str, Any]:
        return ground if contender is None else {**ground, slot: contender}

    return Case(name, fill, ground=ground)


@dataclass(frozen=True)
class Left:
    """The metric of a rule."""

    metric: Metric
    name: str
    subject: str
    """Link or group; empty for the bottleneck or the only group."""

    def at(self, filled: Filled, case: str) -> str:
        """The subject in a case. Raises `InputError` if there is none, or several are possible."""
        scenario = filled.scenario(case)
        known = list(scenario["links" if self.metric.of == "link" else "flows"])
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
        subject = self.at(filled, case)
        values = filled.values(case, self.name, subject)
        return Reading(case, self.name, subject, self.metric.unit, self.metric.direction, values)


@dataclass(frozen=True)
class Right:
    """The limit of a rule."""

    sign: str
    factor: float
    limit: float | str
    """A number, `capacity`, `baseline`, or the name of a contender."""
    margin: float | None = None
    """The difference that is allowed beside another result; None: `factor` is."""
    must_show: bool = False
    """Whether the runs must show that it is kept."""


@dataclass(frozen=True)
class Expected:
    """A rule of a file: a metric beside a limit in some cases."""

    text: str
    statement: str
    source: str
    left: Left
    right: Right
    cases: Sequence[str]

    def rule(self, ident: str) -> Rule[Filled, list[tuple[str, float, float]]]:
        """The rule of the engine."""
        return Rule(
            ident,
            self.statement or self.text,
            self.text,
            self._found,
            lambda found: [
                Comparison(
                    value, limit, self.right.sign[0] == ">", self.right.sign[1:] == "=", case
                )
                for case, value, limit in found
            ],
            lambda found: "; ".join(f"{case} {value:.4g}".strip() for case, value, _ in found),
            source=self.source,
            must_show=self.right.must_show,
            baseline=self.right.limit == BASELINE,
        )

    def _found(self, filled: Filled) -> list[tuple[str, float, float]] | None:
        """Case, number and limit; numbers beside another contender's are multiples of it."""
        if filled.contender == self.right.limit:
            return None
        if self.right.limit == BASELINE and filled.campaign.baseline is None:
            return None
        return [(case, *self._beside(filled, case)) for case in self.cases]

    def _beside(self, filled: Filled, case: str) -> tuple[float, float]:
        value = self.left.mean(filled, case)
        if isinstance(self.right.limit, float):
            return value, self.right.factor * self.right.limit
        if self.right.limit == CAPACITY:
            scenario = filled.scenario(case)
            rate = scenario["links"][scenario["bottleneck"]]["rate"]
            return value, self.right.factor * float(Rate(rate))
        other = self._other(filled, case)
        if self.right.margin is not None:
            return value - other, self.right.margin
        if value == other:  # also where both are 0
            return 1.0, self.right.factor
        return value / other if other else math.inf, self.right.factor

    def _other(self, filled: Filled, case: str) -> float:
        assert isinstance(self.right.limit, str)
        if self.right.limit == BASELINE:
            return filled.baseline_mean(case, self.left.name, self.left.at(filled, case))
        return self.left.mean(filled.beside(self.right.limit), case)


def _expected(
    key: str,
    given: Any,
    place: _Place,
    where: str,
    names: Sequence[str],
    cases: Mapping[str, Any],
    contenders: Sequence[str],
) -> Expected:
    table = {"rule": given} if isinstance(given, str) else given
    if not isinstance(table, Mapping) or "rule" not in table:
        problem = f"expected a rule: {FORM}"
        raise input_error(problem, file=place.file, key=where, given=given)
    check_keys(table, RULE_KEYS, place.file, where)
    text = place.text(table, "rule", "")
    parts = RULE.fullmatch(text)
    apart = None if parts else NO_WORSE.fullmatch(text)
    found = parts or apart
    if found is None:
        raise input_error(f"expected {FORM}", file=place.file, key=where, given=text)
    try:
        metric, _ = find(found["metric"])
    except InputError as error:
        raise input_error(
            error.problem, file=place.file, key=where, given=error.given, hint=error.hint
        ) from None
    subject = found["subject"] or ""
    known = place.subjects(metric)
    if subject and known and subject not in known:
        kind = "link" if metric.of == "link" else "group of flows"
        raise unknown(kind, subject, known, file=place.file, key=where)
    if parts:
        limit = _limit(parts["limit"], metric, contenders)
        if limit is None:
            unit = {"s": "a time such as 30ms", "bit/s": f"a rate such as 5mbit, {CAPACITY}"}
            allowed = [unit.get(metric.unit, "a number, a share such as 5%"), BASELINE]
            allowed += [f"a contender ({', '.join(contenders)})"] if any(contenders) else []
            problem = f"expected {', or '.join(allowed)}"
            raise input_error(problem, file=place.file, key=where, given=parts["limit"])
        right = Right(parts["sign"], float(parts["factor"] or 1), limit)
    else:
        assert apart is not None
        right = _no_worse(apart, metric, place, where, contenders)
    return Expected(
        text,
        place.text(table, "text", ""),
        place.text(table, "source", ""),
        Left(metric, found["metric"], subject),
        right,
        _cases(table, {name: cases[name] for name in names}, place, where),
    )


def rule(text: str, where: str) -> Rule[Filled, list[tuple[str, float, float]]]:
    """The rule in a text, for packs of one case without a name; `where` names it in errors. Raises
    `InputError`."""
    return _expected(where, text, _Place(""), where, [""], {"": {}}, ()).rule(text)


def _no_worse(
    parts: re.Match[str], metric: Metric, place: _Place, where: str, contenders: Sequence[str]
) -> Right:
    if not metric.direction:
        problem = f"neither more nor less {metric.name} is worse: compare it by <= and >="
        raise input_error(problem, file=place.file, key=where, given=parts["metric"])
    names = [BASELINE, *filter(None, contenders)]
    if parts["limit"] not in names:
        raise unknown("result", parts["limit"], names, file=place.file, key=where)
    sign = ">=" if metric.direction > 0 else "<="
    margin = parts["margin"]
    share = re.fullmatch(r"([\d.]+)\s*%", margin)
    amount = _amount(share[1] if share else margin, None if share else metric.unit)
    if amount is None or amount < 0:
        unit = {"s": ", or a time such as 2ms", "bit/s": ", or a rate such as 1mbit"}
        problem = f"expected a margin: a share such as 5%{unit.get(metric.unit, '')}"
        raise input_error(problem, file=place.file, key=where, given=margin)
    if share:
        factor = 1 - metric.direction * amount / 100
        return Right(sign, factor, parts["limit"], must_show=True)
    return Right(sign, 1.0, parts["limit"], -metric.direction * amount, must_show=True)


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

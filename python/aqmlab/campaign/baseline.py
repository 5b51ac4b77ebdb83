"""Results of an earlier state of the code, which rules compare the current one with.

`aqmlab check --save FILE` writes the readings of every case, one value a replication; `--baseline
FILE` reads them. Both runs have the same seed, so that replication r of one is the pair of
replication r of the other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

import aqmlab
from aqmlab.errors import InputError, input_error, unknown
from aqmlab.files import read_bytes
from aqmlab.metrics.samples import Floats
from aqmlab.report.document import write_text
from aqmlab.storage import MALFORMED

if TYPE_CHECKING:
    from aqmlab.campaign.pack import Case
    from aqmlab.campaign.plan import Campaign, Plan

SCHEMA = 1
"""Version of the file; docs/check.md describes it."""
READING = ("case", "metric", "subject", "unit", "values")
"""Keys of a reading in the file, after its contender."""
AGAIN = "write it again with --save"
Key = tuple[str, str, str, str]
"""Contender, case, metric and subject."""


@dataclass(frozen=True)
class Baseline:
    """A saved baseline."""

    file: str
    seed: int
    replications: int
    grounds: Mapping[str, str]
    """Digest of each case without its contender."""
    readings: Mapping[Key, Floats]
    """Values by contender, case, metric and subject; one a replication."""

    @staticmethod
    def load(path: Path) -> Baseline:
        """Reads a file that `save` wrote. Raises `InputError` for any other."""
        file = str(path)
        try:
            form = json.loads(read_bytes(path))
            if form["schema"] != SCHEMA:
                raise input_error("this baseline is of another version", file=file, hint=AGAIN)
            readings = {
                (each["contender"], each["case"], each["metric"], each["subject"]): np.array(
                    each["values"], dtype=float
                )
                for each in form["readings"]
            }
            grounds = {str(name): str(digest) for name, digest in form["cases"].items()}
            count = int(form["replications"])
            if any(values.shape != (count,) for values in readings.values()):
                raise ValueError("the values are not one a replication")
            return Baseline(file, int(form["seed"]), count, grounds, readings)
        except InputError:
            raise
        except OSError as error:
            problem = f"the baseline cannot be read: {error.strerror}"
            raise input_error(problem, file=file, hint="--save FILE writes one") from None
        except MALFORMED as error:
            why = f"the key {error} is missing" if isinstance(error, KeyError) else error
            raise input_error(f"this is no baseline: {why}", file=file, hint=AGAIN) from None

    def agreed(self, key: Literal["replications", "seed"], given: int | None) -> int:
        """The number of the baseline. Raises `InputError` if another one was given."""
        own: int = getattr(self, key)
        if given not in (None, own):
            problem = f"the baseline has {own}: replications are pairs"
            raise input_error(problem, key=f"--{key}", given=given, hint=AGAIN)
        return own

    def check(self, plan: Plan) -> None:
        """Raises `InputError` unless it has every case and contender of the plan."""
        names = {contender for contender, *_ in self.readings}
        for case in _cases(plan):
            digest = self.grounds.get(case.name)
            if digest is None:
                raise unknown("case", case.name, self.grounds, file=self.file)
            if digest != _digest(case):
                problem = "this case of the pack has changed since the baseline was written"
                raise input_error(problem, file=self.file, key="cases", given=case.name, hint=AGAIN)
        for name in plan.contenders:
            if name not in names:
                raise unknown("contender", name, names, file=self.file)

    def values(self, contender: str, case: str, metric: str, subject: str) -> Floats:
        """The values of a metric. Raises `InputError` if the baseline lacks it."""
        try:
            return self.readings[contender, case, metric, subject]
        except KeyError:
            name = f"{subject}.{metric}"
            problem = "the baseline lacks this metric"
            raise input_error(problem, file=self.file, given=name, hint=AGAIN) from None


def save(campaign: Campaign, path: Path) -> None:
    """Writes the readings of a campaign. Raises `StorageError` if the file cannot be written."""
    info = campaign.result.info
    rows = {
        (contender, each.case, each.metric, each.subject): each
        for question in campaign.plan.pack.questions
        for contender in campaign.plan.contenders
        for each in campaign.readings_of(question, contender)
    }
    form = {
        "schema": SCHEMA,
        "version": aqmlab.__version__,
        "pack": campaign.plan.pack.name,
        "seed": info.seed,
        "replications": info.replications,
        "cases": {case.name: _digest(case) for case in _cases(campaign.plan)},
        "readings": [
            {"contender": contender} | {key: form[key] for key in READING}
            for (contender, *_), each in rows.items()
            for form in [each.to_json()]
        ],
    }
    text = json.dumps(form, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(path, text, "the baseline was not written")


def _cases(plan: Plan) -> list[Case]:
    return [case for question in plan.pack.questions for case in question.cases]


def _digest(case: Case) -> str:
    text = json.dumps(case.ground, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

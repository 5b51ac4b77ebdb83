"""Judges of mixes of applications, in one and in both directions: sections 9.1 and 9.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from aqmlab.campaign import outcomes
from aqmlab.campaign.outcomes import BETTER, EVEN, OPEN, TRADE, WORSE, Beside, Outcome, judged
from aqmlab.packs.rfc7928 import rules
from aqmlab.packs.rfc7928.cases import MIX, UP

OPINION = 0.3
"""Calls: the difference of MOS that counts; the best two categories of ITU-T G.109 are 0.31 apart
(4.34 and 4.03)."""
CONTROL_LOSS = 0.001
"""Bidirectional traffic: more acknowledgements lost than this, and than with the other."""


class Aspect(NamedTuple):
    """One of the questions about a mix of applications, and how it is answered."""

    words: str
    number: outcomes.RuleNumber
    sign: Callable[[float], int]
    """1 for better, -1 for worse, 0 for no difference that counts."""
    more: str = ""
    """Words on numbers that are not judged."""


def mix(view: Beside) -> Outcome:
    """Four questions: load time of pages, the call's MOS, bit rate of the video, and the goodput
    of everything. What browsers take from bulk flows is no loss."""
    aspects = _aspects(view)
    if not aspects:
        return Outcome(OPEN, "nothing was measured")
    words = "; ".join(each.words for each in aspects)
    return judged(_answers(aspects), words, *(each.number for each in aspects))


def _answers(aspects: Sequence[Aspect]) -> Callable[..., str]:
    def rule(*values: float) -> str:
        signs = [each.sign(value) for each, value in zip(aspects, values, strict=True)]
        if -1 in signs:
            return TRADE if 1 in signs else WORSE
        return BETTER if 1 in signs else EVEN

    return rule


def _aspects(view: Beside, cases: Sequence[str] | None = None) -> list[Aspect]:
    """The four aspects, over both directions where the mix has two."""

    def typical(measure: str, *subjects: str) -> rules.Pair:
        return lambda each: each.typical(measure, *subjects, cases=cases)

    def both(measure: str, subject: str) -> rules.Pair:
        return typical(measure, subject, f"{subject}{UP}")

    pages, video, every = (
        both("page_load_mean", "web"),
        both("bitrate", "video"),
        typical("goodput", "all"),
    )
    opinion = view.measured(
        lambda each: np.subtract(*each.average("mos", "voip", cases)).item(), -OPINION, OPINION
    )
    found = [
        Aspect(
            "pages in {:.2f} s against {:.2f} s".format(*pages(view)),
            rules.ratio(view, pages),
            lambda value: (value <= rules.SHORTER) - (value >= rules.LONGER),
        ),
        Aspect(
            "MOS {:.2f} against {:.2f}".format(*view.average("mos", "voip", cases)),
            opinion,
            lambda value: (value >= OPINION) - (value <= -OPINION),
        ),
        Aspect(
            f"video at {rules.rates(video(view))}",
            rules.ratio(view, video),
            lambda value: (value >= rules.LONGER) - (value <= rules.SHORTER),
        ),
        Aspect(
            f"all at {rules.rates(every(view))}",
            rules.change(view, every, rules.KEPT, rules.GAINED),
            lambda value: (value > rules.GAINED) - (value < rules.KEPT),
            f", of that bulk {rules.rates(both('goodput', 'bulk')(view))}",
        ),
    ]
    return [
        each._replace(words=f"{each.words}{_worse(each)}{each.more}")
        for each in found
        if isfinite(each.number.value)
    ]


def _worse(aspect: Aspect) -> str:
    """Words on a number that is worse; only its interval decides that."""
    if aspect.sign(aspect.number.value) >= 0:
        return ""
    is_decided = all(aspect.sign(value) < 0 for value in aspect.number.places)
    return " (worse)" if is_decided else " (worse, not decided)"


def bidirectional(view: Beside) -> Outcome:
    """Compares delay and goodput by the rule of most sections, then the losses of acknowledgements
    and the mix."""
    mixes = [case for case in view.cases() if case.startswith(MIX)]
    mild = [case for case in view.cases() if case not in mixes]
    queue, *found = rules.queue_and_goodput(view, mild)
    aspects = _aspects(view, mixes)
    own, other = view.average("ack_loss", "all", mild)
    words = (
        f"{queue}; {own:.2%} of the acknowledgements lost against {other:.2%}; "
        f"mix: {'; '.join(each.words for each in aspects)}"
    )
    answers = _answers(aspects)

    def rule(ratio: float, change: float, larger: float, more: float, *values: float) -> str:
        outcome = rules.trade(ratio, change)
        is_worse = (larger > 0 and more > CONTROL_LOSS) or answers(*values) == WORSE
        if is_worse and outcome in (BETTER, EVEN):
            return TRADE if outcome == BETTER else WORSE
        return outcome

    lost = rules.more_than_theirs(view, "ack_loss", "all", CONTROL_LOSS, mild)
    numbers = (each.number for each in aspects)
    return judged(rule, words, *found, *lost, *numbers)

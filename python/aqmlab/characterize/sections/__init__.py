"""Scenarios of RFC 7928, a module for each group of sections: functions that return the cases of
one discipline. `aqmlab.characterize.questions` has them with their rules and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aqmlab.characterize.case import Case
from aqmlab.characterize.environment import Contender, Environment

Maker = Callable[[Environment, Contender, Sequence[Contender]], list[Case]]
"""Returns the cases of one discipline; the last argument is all that are compared."""

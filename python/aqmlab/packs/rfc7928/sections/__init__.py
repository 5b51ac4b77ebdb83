"""Scenarios of RFC 7928, a module for each group of sections: functions that return the cases of
one discipline. `aqmlab.packs.rfc7928.questions` has them with their rules and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aqmlab.packs.rfc7928.dumbbell import Made
from aqmlab.packs.rfc7928.environment import Contender, Environment

Maker = Callable[[Environment, Contender, Sequence[Contender]], list[Made]]
"""Returns the cases of one discipline; the last argument is all that are compared."""

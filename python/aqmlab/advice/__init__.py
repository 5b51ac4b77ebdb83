"""Which queue suits the line that somebody has: `aqmlab try`.

A study is made of a line (rates, round-trip time, kind of access), a load (what goes on at home)
and some queues, each at both ends of the line. It says what each user would notice.
"""

from aqmlab.advice.trial import Trial, study_of
from aqmlab.scenarios.access import Line

__all__ = ["Line", "Trial", "study_of"]

"""What is measured: one registry of metrics, asked by every command, page and table.

    import aqmlab

    result = aqmlab.Study("study.toml").run()
    aqmlab.measure.values(result, "sojourn_p95")     # run, subject (a link), value
    aqmlab.measure.values(result, "goodput")         # run, subject (a group), value

A metric of one's own is a function: see `metric`.
"""

from aqmlab.measure import catalogue as _catalogue  # registers what aqmlab measures
from aqmlab.measure.registry import Metric, entries, find, metric, metrics, own
from aqmlab.measure.runs import Runs
from aqmlab.measure.shown import Shown, everything, headlines
from aqmlab.measure.values import add_own, values

COMPUTED = _catalogue.COMPUTED

__all__ = [
    "COMPUTED",
    "Metric",
    "Runs",
    "Shown",
    "add_own",
    "entries",
    "everything",
    "find",
    "headlines",
    "metric",
    "metrics",
    "own",
    "values",
]
